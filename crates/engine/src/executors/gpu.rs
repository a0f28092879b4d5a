//! The GPU as a worker: a thread owns the device, and answers jobs on it; while it is idle, a caller takes its place for
//! its own jobs.
//!
//! Callers put submissions into the worker's inbox and go on; the thread takes what has arrived between two steps of
//! its sessions, so that a query can start while the batch before it runs. Several indexes can share the thread, the
//! device and its memory. `owner.rs` has what the thread does, and `open_device.rs` the device while it is open.
//! docs/scheduling.md has the protocol between the threads.

use super::counters::{Counters, GpuLoad};
use super::gpu_options::GpuOptions;
use super::inbox::Inbox;
use super::owner::{Connect, Owner};
use crate::device::served::Served;
use crate::device::submission::{Backlog, Submission};
use crate::query::Algorithm;
use crate::query::cost::Costs;
use crate::query::plan::Plan;
use lanner_gpu::error::GpuError;
use lanner_index::open::Index;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A device that answers plans over one index.
pub struct GpuWorker {
    thread: Arc<DeviceThread>,
    served: Arc<Served>,
}

/// A thread that owns a device, and what other threads need to reach it. Shared by the workers of all its indexes.
struct DeviceThread {
    inbox: Arc<Inbox<Connect>>,
    owner: Arc<Mutex<Owner>>,
    counters: Arc<Counters>,
    backlog: Arc<Backlog>,
    /// `None` once it was joined, or if it could not be started.
    thread: Option<JoinHandle<()>>,
}

impl GpuWorker {
    /// Starts the thread. The device is opened with the first job.
    pub fn start(index: Arc<Index>, options: GpuOptions, costs: Arc<Costs>) -> GpuWorker {
        let thread = Arc::new(DeviceThread::start(options));
        GpuWorker { thread, served: Arc::new(Served::new(index, costs)) }
    }

    /// A worker for another index, on the same thread and device.
    pub fn share(&self, index: Arc<Index>, costs: Arc<Costs>) -> GpuWorker {
        GpuWorker { thread: Arc::clone(&self.thread), served: Arc::new(Served::new(index, costs)) }
    }

    /// Takes plans one submission after the other, and answers them on the calling thread if the device has nothing
    /// else to do: that spares wake-ups, and memory that crosses threads. The next submission is made while the device
    /// answers those before. Meanwhile the calling thread does what the worker's thread would do for others. If the
    /// device is busy, as [`GpuWorker::submit`].
    pub fn drive(&self, submissions: impl Iterator<Item = Arc<Submission>>) -> Vec<Arc<Submission>> {
        let DeviceThread { inbox, owner, .. } = &*self.thread;
        let Some(mut owner) = owner.try_lock().ok().filter(|owner| owner.is_idle()) else {
            return submissions.inspect(|submission| self.submit(submission)).collect();
        };
        let mut driven = Vec::new();
        for submission in submissions {
            owner.arrived.extend(submission.jobs());
            owner.turn(inbox.take());
            driven.push(submission);
        }
        for submission in &driven {
            while !submission.is_complete() {
                owner.turn(inbox.take());
            }
        }
        let is_idle = owner.is_idle();
        drop(owner);
        if !is_idle {
            inbox.wake();
        }
        driven
    }

    /// Takes plans; returns at once. Their outcomes are delivered by the worker's thread.
    pub fn submit(&self, submission: &Arc<Submission>) {
        self.thread.inbox.send(submission);
    }

    /// Opens the device, and makes the index resident, now instead of with the first job.
    pub fn connect(&self) -> Result<(), GpuError> {
        let (sender, receiver) = channel();
        self.thread.inbox.tell(Connect { served: Arc::clone(&self.served), reply: Some(sender) });
        let gone = |_| Err(GpuError::Failed { at: "opening a device", reason: "its thread ended".to_owned() });
        receiver.recv().unwrap_or_else(gone)
    }

    /// As [`GpuWorker::connect`], as soon as the thread gets to it; returns at once.
    pub fn warm_up(&self) {
        self.thread.inbox.tell(Connect { served: Arc::clone(&self.served), reply: None });
    }

    /// How busy the GPU is, for a plan.
    pub fn load(&self, plan: &Plan) -> GpuLoad {
        let backlog = &self.thread.backlog;
        GpuLoad {
            is_open: self.served.is_open.load(Ordering::Relaxed),
            uploads_lists: self.served.uploads_for(plan),
            waiting: backlog.time(),
            waiting_jobs: backlog.jobs(),
            excess: backlog.excess(),
        }
    }

    /// What the device has been given and has not answered.
    pub fn backlog(&self) -> &Arc<Backlog> {
        &self.thread.backlog
    }

    /// The index, as the device serves it.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// What the GPU has done so far.
    pub fn counters(&self) -> &Counters {
        &self.thread.counters
    }

    /// The name of the device, if it is open. Waits for the jobs of others.
    pub fn device_name(&self) -> Option<String> {
        self.thread.owner.lock().unwrap_or_else(PoisonError::into_inner).device_name()
    }

    /// Whether the device answers plans of this kind.
    pub fn supports(&self, plan: &Plan) -> bool {
        let codecs = self.served.index.segment().list_context().codecs;
        let lacks_ranks = || self.served.lacks_ranks.load(Ordering::Relaxed);
        codecs.documents.has_gpu_decoder()
            && codecs.weights.has_gpu_decoder()
            && (plan.static_bound == 0 || !lacks_ranks())
            && plan.stages.iter().all(|stage| stage.algorithm != Algorithm::ScoreAtATime)
    }
}

impl Drop for GpuWorker {
    /// Lets the device free what it holds for the index.
    fn drop(&mut self) {
        self.served.is_wanted.store(false, Ordering::Relaxed);
        self.thread.inbox.wake();
    }
}

impl DeviceThread {
    fn start(options: GpuOptions) -> DeviceThread {
        let (inbox, counters) = (Arc::new(Inbox::new()), Arc::new(Counters::default()));
        let owner = Arc::new(Mutex::new(Owner::new(options, Arc::clone(&counters))));
        let (its_owner, its_inbox) = (Arc::clone(&owner), Arc::clone(&inbox));
        let run = move || run(&its_owner, its_inbox);
        let thread = std::thread::Builder::new().name("lanner-gpu".to_owned()).spawn(run);
        if thread.is_err() {
            inbox.abandon();
        }
        DeviceThread { inbox, owner, counters, backlog: Arc::default(), thread: thread.ok() }
    }
}

impl Drop for DeviceThread {
    /// Waits until everything that was submitted has an outcome.
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The thread of a device: sleeps until there is something to do, and does it until nothing is left.
fn run(owner: &Mutex<Owner>, inbox: Arc<Inbox<Connect>>) {
    let inbox = Abandon(inbox);
    while inbox.0.wait() {
        let mut owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mail = inbox.0.take();
            if mail.is_none() && owner.is_idle() {
                owner.forget_unwanted();
                break;
            }
            owner.turn(mail);
        }
    }
}

/// Ends what is left in the inbox when the thread of a device ends, however it does.
struct Abandon(Arc<Inbox<Connect>>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::submission::Offer;
    use crate::query::Query;
    use crate::query::planner::Planner;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn a_worker_that_is_dropped_first_answers_what_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let documents = (0..90).map(|number| (number.to_string(), String::new(), "heron at dawn".to_owned()));
        let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
        build(folder.path(), corpus, &BuildOptions::default(), &Quiet).unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        let plan = Planner::new(&index).plan(&Query::new("heron").k(5)).unwrap();
        let worker = GpuWorker::start(Arc::clone(&index), GpuOptions::simulator().unwrap(), Arc::default());
        let submissions: Vec<Arc<Submission>> = (1..20)
            .map(|count| {
                let offers = vec![plan.clone(); count].into_iter().map(Offer::from);
                Submission::new(worker.served(), offers, |_| true, worker.backlog())
            })
            .collect();
        submissions.iter().for_each(|submission| worker.submit(submission));
        drop(worker);
        for (submission, count) in submissions.iter().zip(1..) {
            let answers: Vec<_> = submission.wait().into_iter().map(|outcome| outcome.unwrap().hits).collect();
            assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), vec![5; count]);
        }
    }
}
