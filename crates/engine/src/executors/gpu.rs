//! The GPU as a worker: a thread owns the device and its session, and answers jobs on it; while it is idle, a caller
//! takes its place for its own jobs.
//!
//! Callers put submissions into the worker's inbox and go on; the thread takes what has arrived between two steps of
//! its session, so that a query can start while the batch before it runs. Plans of the papers' algorithms run step by
//! step, in turns with batches. A device that fails is closed, its jobs end unanswered, and it is opened again later;
//! who answers them then is not decided here. A panic of the thread's code counts as a failure of the device.
//! docs/scheduling.md has the protocol between the threads.

use super::counters::{Counters, GpuLoad, OpenState};
use super::gpu_options::GpuOptions;
use super::inbox::{Inbox, Mail};
use super::threads::panic_text;
use crate::device::queue::can_have_hits;
use crate::device::session::{Failure, Progress, Refusals, Session};
use crate::device::submission::{Backlog, Job, Submission};
use crate::papers::steps::{self, StepScratch};
use crate::query::Algorithm;
use crate::query::answer::{Answer, Scored};
use crate::query::cost::Costs;
use crate::query::plan::Plan;
use crate::query::score::ScoreModel;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use lanner_index::open::Index;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest pause before a device that failed is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pause that no process outlives.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// How often the batches in flight are polled without effect before other threads get a turn.
const POLLS_PER_YIELD: u32 = 256;

/// A thread that owns a device, and what other threads need to reach it.
pub struct GpuWorker {
    index: Arc<Index>,
    inbox: Arc<Inbox<Connect>>,
    owner: Arc<Mutex<Owner>>,
    counters: Arc<Counters>,
    backlog: Arc<Backlog>,
    state: Arc<OpenState>,
    /// `None` once it was joined, or if it could not be started.
    thread: Option<JoinHandle<()>>,
}

/// Asks for the device to be opened now.
enum Connect {
    /// Replies with the result.
    Reply(Sender<Result<(), GpuError>>),
    /// As for a job: not during the pause after a failure, and a failure is reported.
    NoReply,
}

impl GpuWorker {
    /// Starts the thread. The device is opened with the first job.
    pub fn start(index: Arc<Index>, options: GpuOptions, costs: Arc<Costs>) -> GpuWorker {
        let (inbox, counters) = (Arc::new(Inbox::new()), Arc::new(Counters::default()));
        let state = Arc::new(OpenState::default());
        let owner = Arc::new(Mutex::new(Owner {
            index: Arc::clone(&index),
            counters: Arc::clone(&counters),
            state: Arc::clone(&state),
            costs,
            again: None,
            pause: options.pause,
            options,
            device: None,
            arrived: Vec::new(),
            idle_turns: 0,
        }));
        let (its_owner, its_inbox) = (Arc::clone(&owner), Arc::clone(&inbox));
        let run = move || run(&its_owner, its_inbox);
        let thread = std::thread::Builder::new().name("lanner-gpu".to_owned()).spawn(run);
        if thread.is_err() {
            inbox.abandon();
        }
        GpuWorker { index, inbox, owner, counters, backlog: Arc::default(), state, thread: thread.ok() }
    }

    /// Takes plans one submission after the other, and answers them on the calling thread if the device has nothing
    /// else to do: that spares wake-ups, and memory that crosses threads. The next submission is made while the device
    /// answers those before. Meanwhile the calling thread does what the worker's thread would do for others. If the
    /// device is busy, as [`GpuWorker::submit`].
    pub fn drive(&self, submissions: impl Iterator<Item = Arc<Submission>>) -> Vec<Arc<Submission>> {
        let Some(mut owner) = self.owner.try_lock().ok().filter(|owner| owner.is_idle()) else {
            return submissions.inspect(|submission| self.submit(submission)).collect();
        };
        let mut driven = Vec::new();
        for submission in submissions {
            owner.arrived.extend(submission.jobs());
            owner.turn(self.inbox.take());
            driven.push(submission);
        }
        for submission in &driven {
            while !submission.is_complete() {
                owner.turn(self.inbox.take());
            }
        }
        let is_idle = owner.is_idle();
        drop(owner);
        if !is_idle {
            self.inbox.wake();
        }
        driven
    }

    /// Takes plans; returns at once. Their outcomes are delivered by the worker's thread.
    pub fn submit(&self, submission: &Arc<Submission>) {
        self.inbox.send(submission);
    }

    /// Opens the device now instead of with the first job.
    pub fn connect(&self) -> Result<(), GpuError> {
        let (sender, receiver) = channel();
        self.inbox.tell(Connect::Reply(sender));
        let gone = |_| Err(GpuError::Failed { at: "opening a device", reason: "its thread ended".to_owned() });
        receiver.recv().unwrap_or_else(gone)
    }

    /// Opens the device as soon as its thread gets to it; returns at once.
    pub fn warm_up(&self) {
        self.inbox.tell(Connect::NoReply);
    }

    /// How busy the GPU is.
    pub fn load(&self) -> GpuLoad {
        GpuLoad {
            is_open: self.state.is_open.load(Ordering::Relaxed),
            uploads_lists: self.state.uploads_lists.load(Ordering::Relaxed),
            waiting: self.backlog.time(),
            waiting_jobs: self.backlog.jobs(),
            turnaround: self.backlog.turnaround(),
        }
    }

    /// What the device has been given and has not answered.
    pub fn backlog(&self) -> &Arc<Backlog> {
        &self.backlog
    }

    /// What the GPU has done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The name of the device, if it is open. Waits for the jobs of others.
    pub fn device_name(&self) -> Option<String> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        owner.device.as_ref().map(|device| device.session.device_name().to_owned())
    }

    /// Whether the device answers plans of this kind.
    pub fn supports(&self, plan: &Plan) -> bool {
        let codecs = self.index.segment().list_context().codecs;
        codecs.documents.has_gpu_decoder()
            && codecs.weights.has_gpu_decoder()
            && matches!(plan.score, ScoreModel::Bm25 | ScoreModel::Impact)
            && plan.filter.is_none()
            && plan.stages.iter().all(|stage| stage.algorithm != Algorithm::ScoreAtATime)
    }
}

impl Drop for GpuWorker {
    /// Waits until everything that was submitted has an outcome.
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The thread of a worker: sleeps until there is something to do, and does it until nothing is left.
fn run(owner: &Mutex<Owner>, inbox: Arc<Inbox<Connect>>) {
    let inbox = Abandon(inbox);
    while inbox.0.wait() {
        let mut owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mail = inbox.0.take();
            if mail.is_none() && owner.is_idle() {
                break;
            }
            owner.turn(mail);
        }
    }
}

/// A device with everything that is done on it, by the worker's thread or by a caller in its place: one at a time.
struct Owner {
    index: Arc<Index>,
    counters: Arc<Counters>,
    state: Arc<OpenState>,
    costs: Arc<Costs>,
    options: GpuOptions,
    /// `None` before the device is opened, and after it failed.
    device: Option<OpenDevice>,
    /// When it may be opened again after a failure, and how long to wait if that fails.
    again: Option<Instant>,
    pause: Duration,
    /// Jobs that the device has not taken yet.
    arrived: Vec<Job>,
    /// How many turns in a row have made no progress.
    idle_turns: u32,
}

/// An open device.
struct OpenDevice {
    session: Session,
    /// Jobs whose plans run step by step, and the buffers for them.
    stepwise: VecDeque<Job>,
    scratch: StepScratch,
    /// Whether such a job comes before the next batch.
    steps_are_next: bool,
}

impl Owner {
    /// Takes what has arrived, and takes a step with the device. No panic passes on.
    fn turn(&mut self, mail: Option<Mail<Connect>>) {
        let start = Instant::now();
        // What a panic leaves behind is not used again: it is closed.
        match catch_unwind(AssertUnwindSafe(|| self.step(mail))) {
            Ok(true) => {
                self.idle_turns = 0;
                self.counters.busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            Ok(false) => self.idle_turns += 1,
            Err(panic) => {
                self.close(&GpuError::Failed { at: "the thread of a device", reason: panic_text(&*panic) });
            }
        }
        // Other threads may need this core to make the work that is waited for.
        if self.idle_turns >= POLLS_PER_YIELD {
            self.idle_turns = 0;
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }

    /// Takes what has arrived, and takes a step with the device. Returns whether that made progress.
    fn step(&mut self, mail: Option<Mail<Connect>>) -> bool {
        let has_mail = mail.is_some();
        if let Some(Mail { submissions, messages, .. }) = mail {
            Submission::prefetch(&submissions);
            self.arrived.extend(submissions.iter().flat_map(Submission::jobs));
            for message in messages {
                match message {
                    Connect::Reply(reply) => _ = reply.send(self.connect()),
                    Connect::NoReply if self.is_pausing() => {}
                    Connect::NoReply => {
                        if let Err(error) = self.connect() {
                            self.close(&error);
                        }
                    }
                }
            }
        }
        self.advance() || has_mail
    }

    fn is_idle(&self) -> bool {
        self.arrived.is_empty() && self.device.as_ref().is_none_or(OpenDevice::is_idle)
    }

    /// Whether the device failed and is not to be used for a while.
    fn is_pausing(&self) -> bool {
        self.device.is_none() && self.again.is_some_and(|again| Instant::now() < again)
    }

    fn connect(&mut self) -> Result<(), GpuError> {
        if self.device.is_none() {
            let start = Instant::now();
            let device = self.open()?;
            self.counters.opening.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            self.state.uploads_lists.store(!device.session.has_resident_lists(), Ordering::Relaxed);
            self.device = Some(device);
            self.state.is_open.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn open(&self) -> Result<OpenDevice, GpuError> {
        let device = (self.options.open)()?;
        let memory = device.properties().memory;
        let gpu = Gpu::new(device, self.options.memory.unwrap_or(memory).min(memory));
        let session = Session::open(gpu, &self.index, self.options.usage, Arc::clone(&self.costs))?;
        self.counters.opened.fetch_add(1, Ordering::Relaxed);
        Ok(OpenDevice { session, stepwise: VecDeque::new(), scratch: StepScratch::default(), steps_are_next: false })
    }

    /// Gives the device what has arrived, and takes a step with it. Returns whether a batch was started or answered.
    fn advance(&mut self) -> bool {
        if self.is_idle() {
            return false;
        }
        if self.is_pausing() {
            self.arrived.clear();
            return true;
        }
        if let Err(error) = self.connect() {
            self.close(&error);
            return true;
        }
        let device = self.device.as_mut().expect("it was opened");
        self.arrived.drain(..).for_each(|job| device.take(job));
        let progress = match device.advance(&self.index) {
            Ok(progress) => progress,
            Err(error) => {
                self.close(&error);
                return true;
            }
        };
        let Refusals { jobs, why, .. } = device.session.take_refusals();
        if let Some(why) = why {
            (self.options.report)(&format!("{why}; the CPU answers such queries, the GPU all others"));
        }
        jobs.into_iter().for_each(|(job, why)| job.end(Err(why)));
        if progress == Progress::Answered {
            self.pause = self.options.pause;
        }
        progress != Progress::None
    }

    /// Closes a device that failed, which ends its jobs unanswered, reports the failure, and does not use the device
    /// for a while. Neither the report nor the device may end this thread by a panic.
    fn close(&mut self, error: &GpuError) {
        let pause = self.pause;
        self.state.is_open.store(false, Ordering::Release);
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let line = format!("{error}; the CPU answers, and later queries may try the GPU again after {pause:?}");
        _ = catch_unwind(AssertUnwindSafe(|| (self.options.report)(&line)));
        // A pause beyond what a clock can count has no end; `None` would mean that there is none.
        self.again = Some(Instant::now().checked_add(pause).unwrap_or_else(|| Instant::now() + FOREVER));
        self.pause = pause.saturating_mul(2).min(LONGEST_PAUSE.max(pause));
        let (device, arrived) = (self.device.take(), std::mem::take(&mut self.arrived));
        _ = catch_unwind(AssertUnwindSafe(|| drop(device)));
        drop(arrived);
    }
}

/// Ends what is left in the inbox when the thread of a worker ends, however it does.
struct Abandon(Arc<Inbox<Connect>>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl OpenDevice {
    fn is_idle(&self) -> bool {
        self.session.is_idle() && self.stepwise.is_empty()
    }

    fn take(&mut self, job: Job) {
        if job.runs_in_batches() {
            self.session.push(job);
        } else if !can_have_hits(job.plan()) {
            job.end(Ok(Answer::default()));
        } else {
            self.stepwise.push_back(job);
        }
    }

    /// Plans that run step by step take turns with batches: while one has its turn, no batch is started, and it runs as
    /// soon as none is in flight.
    fn advance(&mut self, index: &Index) -> Result<Progress, GpuError> {
        let OpenDevice { session, scratch, stepwise, steps_are_next } = self;
        session.may_start = stepwise.is_empty() || !*steps_are_next;
        let progress = session.advance(index, &mut || *scratch = StepScratch::default())?;
        if !session.has_free_slots() {
            *steps_are_next = true;
        } else if (*steps_are_next || session.is_idle())
            && let Some(job) = stepwise.pop_front()
        {
            *steps_are_next = false;
            self.answer_in_steps(index, job)?;
            return Ok(Progress::Answered);
        }
        Ok(progress)
    }

    /// Answers a plan step by step. If memory runs out, frees all buffers and tries once more.
    fn answer_in_steps(&mut self, index: &Index, job: Job) -> Result<(), GpuError> {
        let mut answered = self.try_in_steps(index, &job);
        if answered.as_ref().is_err_and(Failure::is_out_of_memory) {
            answered = self.try_in_steps(index, &job);
        }
        match answered {
            Ok(answer) => job.end(Ok(answer)),
            Err(Failure::Gpu(error)) if !error.is_out_of_memory() => {
                self.stepwise.push_front(job);
                return Err(error);
            }
            Err(failure) => self.session.refuse(job, failure),
        }
        Ok(())
    }

    fn try_in_steps(&mut self, index: &Index, job: &Job) -> Result<Answer<Scored>, Failure> {
        let answered = steps::answer(&self.session.context(index), &mut self.scratch, job.plan());
        if answered.as_ref().is_err_and(Failure::is_out_of_memory) {
            self.session.release()?;
            self.scratch = StepScratch::default();
        }
        answered
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
                Submission::new(
                    &index,
                    vec![plan.clone(); count].into_iter().map(Offer::from),
                    |_| true,
                    worker.backlog(),
                )
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
