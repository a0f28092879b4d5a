//! An index on an open device: answers jobs in batches. Several sessions can share a device.
//!
//! Two batches can be in flight, one in each slot (`slot.rs`), so that the host prepares one while the device answers
//! the other. `queue.rs` makes batches of the jobs that wait. A batch that does not fit in device memory is tried again
//! with all buffers freed, then halved; a single plan that does not fit even in what others give for it is refused. The
//! owner calls [`Session::advance`] between its other work; it waits for a batch only if memory runs out.

use super::Context;
use super::batch::is_bitpack;
use super::kernels::Variant;
use super::queue::{Queue, Request, Rules, SmallBatches};
use super::residency::{DeviceLists, Holding, Reserve, Residency};
use super::served::Served;
use super::slot::{Rejected, Slot};
use super::submission::{Job, Unanswered};
use crate::query::answer::Place;
use crate::query::cost::{Features, Together};
use lanner_gpu::device::{Command, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use lanner_index::format::IndexError;
use lanner_index::open::{Column, Index, ListSpan};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub holding: Holding,
    pub small_batches: SmallBatches,
    /// Threads of the host that copy lists into pinned memory.
    pub threads: usize,
    /// The most bytes of lists that a batch uploads, unless a single plan needs more: this many bytes of the host are
    /// pinned for each slot.
    pub upload_limit: usize,
}

/// An index on an open device, with its resident data and its buffers.
pub struct Session {
    pub served: Arc<Served>,
    gpu: Gpu,
    residency: Residency,
    usage: Usage,
    place: Place,
    slots: [Slot; 2],
    /// The slot of the next batch, if both are free; of two batches in flight, the one that started first.
    turn: usize,
    queue: Queue,
    /// When the last batch was answered.
    last_answered: Instant,
    refusals: Refusals,
}

/// The progress that a step of a session has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nothing.
    None,
    /// Lists were loaded.
    Loaded,
    /// A batch was started, or its jobs were refused.
    Started,
    /// A batch was answered.
    Answered,
}

/// Jobs that this session does not answer, and why the last one did not fit on the device, which is reported once and
/// not for each job.
#[derive(Default)]
pub struct Refusals {
    pub jobs: Vec<(Job, Unanswered)>,
    pub why: Option<GpuError>,
    is_reported: bool,
}

/// Why a batch was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The device failed.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Device memory that was missing for a batch, or for a plan that runs step by step.
#[derive(Clone, Copy, Debug)]
pub struct Shortage {
    /// How many plans there are.
    pub plans: usize,
    /// How many bytes were missing.
    pub bytes: u64,
    /// Whether these are all: later steps may need more.
    pub is_all: bool,
}

/// Frees device memory that is not the session's own, for a batch that does not fit without it; returns whether the batch
/// is to be tried again.
pub type FreeMore<'a> = dyn FnMut(Shortage) -> Result<bool, GpuError> + 'a;

impl Failure {
    /// The bytes that were missing, if device memory, or the budget of it, did not suffice.
    pub fn shortage(&self) -> Option<u64> {
        match self {
            Failure::Index(_) => None,
            Failure::Gpu(error) => error.shortage(),
        }
    }
}

impl Session {
    /// Loads the kernels that answer by default, and uploads lengths and norms. The lists come while queries are answered.
    pub fn open(
        gpu: Gpu,
        served: Arc<Served>,
        usage: Usage,
        lists: &Arc<DeviceLists>,
        reserve: Reserve,
    ) -> Result<Session, GpuError> {
        let index = &served.index;
        let place = if gpu.properties().is_simulated { Place::Simulator } else { Place::Gpu };
        load_kernels(&gpu, index)?;
        let residency = Residency::open(&gpu, &served, usage.holding, lists, reserve)?;
        // Two batches have to fit, each with its other buffers. Pieces of lists take what the reserve leaves.
        let for_batches = if residency.is_cached() { reserve.bytes } else { gpu.left() };
        let usage = Usage { upload_limit: usage.upload_limit.min((for_batches / 4) as usize), ..usage };
        let slots = [0, 1].map(|number| Slot::new(Stream(number), usage));
        let session = Session {
            served,
            gpu,
            residency,
            usage,
            place,
            slots,
            turn: 0,
            queue: Queue::default(),
            last_answered: Instant::now(),
            refusals: Refusals::default(),
        };
        session.tell();
        Ok(session)
    }

    /// Tells other threads where lists lie.
    fn tell(&self) {
        let Session { served, residency, .. } = self;
        served.note_readable(residency.readable(&served.index));
        served.lacks_ranks.store(residency.documents.lacks_ranks(), Ordering::Relaxed);
        *served.residency.lock().unwrap_or_else(PoisonError::into_inner) = residency.report(&served.index);
    }

    /// The device, its resident data and the index, for plans that run step by step.
    pub fn context(&self) -> Context<'_> {
        let Session { gpu, residency, served, place, .. } = self;
        Context { gpu, residency, index: &served.index, place: *place }
    }

    /// Whether all lists are where they are going to be, but for what the cache changes.
    pub fn is_loaded(&self) -> bool {
        self.residency.is_loaded()
    }

    /// Loads or registers some more lists; returns whether there were any left.
    pub fn load(&mut self) -> Result<bool, GpuError> {
        let is_more = self.residency.step(&self.gpu, &self.served.index)?;
        if is_more {
            self.tell();
        }
        Ok(is_more)
    }

    /// Whether kernels can read all that a plan needs; known only once the index is open on the device.
    pub fn can_answer(&self, job: &Job) -> bool {
        !self.residency.documents.lacks_ranks() || job.plan().static_bound == 0
    }

    /// Takes a job whose plan runs in batches.
    pub fn push(&mut self, job: Job) {
        self.queue.push(job);
    }

    /// Whether no job waits or is in flight.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.has_free_slots()
    }

    /// Whether no batch is in flight.
    pub fn has_free_slots(&self) -> bool {
        self.slots.iter().all(Slot::is_free)
    }

    /// Which slots have no batch in flight.
    pub fn free_slots(&self) -> [bool; 2] {
        self.slots.each_ref().map(Slot::is_free)
    }

    /// Starts a batch if a slot is free, else delivers the answers of those that have finished. Only slots that
    /// `may_start` are used. Before a batch is halved, or its only plan refused, `free_more` frees device memory that others
    /// hold. After a failure of the device, the session is of no further use; dropping it ends its jobs.
    pub fn advance(&mut self, may_start: [bool; 2], free_more: &mut FreeMore<'_>) -> Result<Progress, GpuError> {
        let uploads = |span: ListSpan| self.residency.uploads(span);
        let rules = Rules {
            uploads: if self.residency.uploads_lists() { Some(&uploads) } else { None },
            small_batches: self.usage.small_batches,
            upload_limit: self.usage.upload_limit,
            most_filters: self.residency.filters.borrow().capacity(),
        };
        let is_free = |&slot: &usize| self.slots[slot].is_free() && may_start[slot];
        if let Some(slot) = [self.turn, 1 - self.turn].into_iter().find(is_free)
            && let Some(request) = self.queue.pop(&rules)
        {
            self.start(slot, request, free_more)?;
            return Ok(Progress::Started);
        }
        let mut progress = Progress::None;
        for slot in [self.turn, 1 - self.turn] {
            if self.slots[slot].is_done(&self.gpu)? {
                self.collect(slot)?;
                progress = Progress::Answered;
            }
        }
        Ok(progress)
    }

    /// Notes that a job is not answered here.
    pub fn refuse(&mut self, job: Job, failure: Failure) {
        let why = match failure {
            Failure::Index(_) => Unanswered::Unreadable,
            Failure::Gpu(error) => {
                self.refusals.why = Some(error).filter(|_| !self.refusals.is_reported);
                Unanswered::TooLarge
            }
        };
        self.refusals.jobs.push((job, why));
    }

    /// Takes the jobs that were refused since the last call, to be ended once the reason is reported.
    pub fn take_refusals(&mut self) -> Refusals {
        let is_reported = self.refusals.is_reported || self.refusals.why.is_some();
        std::mem::replace(&mut self.refusals, Refusals { is_reported, ..Refusals::default() })
    }

    /// Frees the buffers of both slots, and all filters. Nothing may be in flight.
    pub fn release(&mut self) -> Result<(), GpuError> {
        self.slots.iter_mut().try_for_each(|slot| slot.release(&self.gpu))?;
        self.residency.filters.get_mut().clear();
        Ok(())
    }

    /// Waits for the batches in flight, and delivers their answers.
    pub fn finish(&mut self) -> Result<(), GpuError> {
        self.collect(self.turn)?;
        self.collect(1 - self.turn)
    }

    /// The device memory that the index takes, without the pieces of lists that are cached, and without buffers.
    pub fn resident_bytes(&self) -> u64 {
        self.residency.bytes()
    }

    fn start(&mut self, slot: usize, request: Request, free_more: &mut FreeMore<'_>) -> Result<(), GpuError> {
        let mut request = request;
        loop {
            let rejected = match self.try_start(slot, request) {
                Ok(()) => {
                    self.turn = 1 - slot;
                    return Ok(());
                }
                Err(rejected) => *rejected,
            };
            request = rejected.request;
            let Some(bytes) = rejected.failure.shortage() else {
                return self.give_up(rejected.failure, request);
            };
            let shortage = Shortage { plans: request.jobs.len(), bytes, is_all: true };
            // With nothing else in flight all other buffers can be freed.
            let own = self.finish().and_then(|()| self.release());
            match own.and_then(|()| free_more(shortage)) {
                Ok(true) => {}
                Ok(false) => return self.give_up(rejected.failure, request),
                Err(error) => {
                    self.queue.put_first([request]);
                    return Err(error);
                }
            }
        }
    }

    fn try_start(&mut self, slot: usize, request: Request) -> Result<(), Box<Rejected>> {
        let Session { gpu, residency, served, place, slots, .. } = self;
        slots[slot].start(&Context { gpu, residency, index: &served.index, place: *place }, request)
    }

    /// Halves a request that could not be started; a single job is refused. Fails if the device did: then the jobs wait
    /// until the session is dropped.
    fn give_up(&mut self, failure: Failure, request: Request) -> Result<(), GpuError> {
        match failure {
            Failure::Gpu(error) if !error.is_out_of_memory() => {
                self.queue.put_first([request]);
                return Err(error);
            }
            failure => {
                if let Some(job) = self.queue.halve(request) {
                    self.refuse(job, failure);
                }
            }
        }
        Ok(())
    }

    /// Waits for the batch of a slot, if there is one.
    fn collect(&mut self, slot: usize) -> Result<(), GpuError> {
        let is_alone = self.slots[1 - slot].is_free();
        let Session { gpu, residency, served, place, slots, last_answered, .. } = self;
        let (index, costs) = (&*served.index, &served.costs);
        // The device works on batches one after the other, whenever they were submitted.
        let observe = |request: &Request, started: Instant| {
            let time = started.max(std::mem::replace(last_answered, Instant::now())).elapsed();
            match &request.jobs[..] {
                [job] if is_alone && job.plan().stages.len() == 1 => {
                    let (plan, missing) = (job.plan(), served.missing_share(job.plan()));
                    let (modelled, route) = costs.modelled_on_gpu(&Features::of(plan), missing, Together::Alone);
                    costs.observe(modelled, route, time);
                }
                [_] => {}
                jobs => costs.observe_batch(jobs.iter().map(|job| (job.modelled(), job.route())), time),
            }
        };
        let next_stage = slots[slot].collect(&Context { gpu, residency, index, place: *place }, observe)?;
        self.queue.put_first(next_stage);
        if served.list_map.is_partial() {
            self.tell();
        }
        Ok(())
    }
}

/// Loads the kernels for the index's default score model. The first queries would otherwise wait for it, and more would
/// join them, since the policy takes the GPU to be open by then. It takes 4 ms on an H200 if the driver has compiled the
/// kernels before, and longer if it has not.
fn load_kernels(gpu: &Gpu, index: &Index) -> Result<(), GpuError> {
    let column = if index.segment().header().has_frequencies { Column::Frequency } else { Column::Impact };
    for is_single in [false, true] {
        for kernel in (Variant { is_bitpack: is_bitpack(index), column, is_single }).kernels() {
            gpu.submit(Stream(0), Command::Load { kernel: &kernel.kernel })?;
        }
    }
    Ok(())
}

impl Drop for Session {
    /// Waits until the device has stopped using the buffers.
    fn drop(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.forget(&self.gpu));
        self.residency.forget(&self.gpu);
    }
}
