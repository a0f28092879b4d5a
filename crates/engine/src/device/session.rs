//! An open device with an index on it: answers plans in batches.
//!
//! Batches alternate between two slots (`slot.rs`), so that the host prepares one while the device answers the other.
//! `queue.rs` divides plans into batches. A batch that does not fit in device memory is tried again with all buffers
//! freed, then halved; a single plan that does not fit is refused.

use super::Context;
use super::queue::{Queue, Request, Rules, SmallBatches, needs_work};
use super::resident::Resident;
use super::slot::Slot;
use crate::query::answer::{Answer, Place, Scored};
use crate::query::plan::Plan;
use lanner_gpu::device::Stream;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use lanner_index::format::IndexError;
use lanner_index::open::Index;

/// Bytes of device memory that are left to the buffers of batches before lists become resident.
const RESERVE: u64 = 64 << 20;

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Whether each batch uploads its lists, even if all lists would fit on the device.
    pub uploads_lists: bool,
    pub small_batches: SmallBatches,
    /// Threads of the host that copy lists into pinned memory.
    pub threads: usize,
    /// The most bytes of lists that a batch uploads, unless a single plan needs more: this many bytes of the host are
    /// pinned for each slot.
    pub upload_limit: usize,
}

/// An open device with its resident data and its buffers.
pub struct Session {
    gpu: Gpu,
    resident: Resident,
    usage: Usage,
    place: Place,
    slots: [Slot; 2],
    refusal: Refusal,
}

/// Why a plan did not fit on the device. It is reported once, not for each plan.
#[derive(Default)]
struct Refusal {
    latest: Option<GpuError>,
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

impl Failure {
    /// Whether device memory, or the budget of it, did not suffice.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Failure::Gpu(GpuError::OverBudget { .. } | GpuError::OutOfMemory { .. }))
    }
}

impl Session {
    /// Uploads the resident data: lengths and norms, and the lists if they fit and batches are not to upload them.
    pub fn open(gpu: Gpu, index: &Index, usage: Usage) -> Result<Session, GpuError> {
        let place = if gpu.properties().is_simulated { Place::Simulator } else { Place::Gpu };
        let reserve = if usage.uploads_lists { u64::MAX } else { RESERVE.min(gpu.left() / 4) };
        let resident = Resident::upload(&gpu, index, reserve)?;
        // Two batches have to fit, each with its other buffers.
        let usage = Usage { upload_limit: usage.upload_limit.min((gpu.left() / 4) as usize), ..usage };
        let slots = [0, 1].map(|number| Slot::new(Stream(number), usage));
        Ok(Session { gpu, resident, usage, place, slots, refusal: Refusal::default() })
    }

    /// The device, its resident data and the index, for plans that run step by step.
    pub fn context<'a>(&'a self, index: &'a Index) -> Context<'a> {
        Context { gpu: &self.gpu, resident: &self.resident, index, place: self.place }
    }

    /// Answers the plans that run in batches, and those that cannot have hits. Plans that do not fit in device memory
    /// stay without an answer; before one is refused, `free_more` frees the device memory that the caller holds.
    pub fn answer(
        &mut self,
        index: &Index,
        plans: &[Plan],
        answers: &mut [Option<Answer<Scored>>],
        free_more: &mut dyn FnMut(),
    ) -> Result<(), Failure> {
        for (_, answer) in plans.iter().zip(answers.iter_mut()).filter(|(plan, _)| !needs_work(plan)) {
            *answer = Some(Answer::default());
        }
        let lists_are_resident = self.resident.has_lists();
        let Usage { small_batches, upload_limit, .. } = self.usage;
        let mut queue = Queue::new(plans, &Rules { lists_are_resident, small_batches, upload_limit });
        let mut turn = 0;
        loop {
            // The slot that started first finishes first; a further stage of its plan comes next.
            queue.put_first(self.collect(turn, index, answers)?);
            let Some(request) = queue.pop() else {
                queue.put_first(self.collect(1 - turn, index, answers)?);
                if queue.is_empty() {
                    return Ok(());
                }
                continue;
            };
            let mut started = self.start(turn, index, plans, &request);
            if started.as_ref().is_err_and(Failure::is_out_of_memory) {
                // With nothing else in flight all other buffers can be freed.
                queue.put_first(self.collect(1 - turn, index, answers)?);
                self.release()?;
                free_more();
                started = self.start(turn, index, plans, &request);
            }
            match started {
                Ok(()) => turn = 1 - turn,
                Err(failure) if !failure.is_out_of_memory() => return Err(failure),
                Err(failure) if !queue.halve(request) => self.refuse(failure),
                Err(_) => {}
            }
        }
    }

    /// Notes that a plan does not fit on the device.
    pub fn refuse(&mut self, failure: Failure) {
        if let Failure::Gpu(why) = failure {
            self.refusal.latest = Some(why);
        }
    }

    /// Why a plan stayed without an answer, if one did; reported once for all plans to come.
    pub fn take_refusal(&mut self) -> Option<GpuError> {
        let why = self.refusal.latest.take().filter(|_| !self.refusal.is_reported);
        self.refusal.is_reported |= why.is_some();
        why
    }

    /// Frees the buffers of both slots. Nothing may be in flight.
    pub fn release(&mut self) -> Result<(), GpuError> {
        self.slots.iter_mut().try_for_each(|slot| slot.release(&self.gpu))
    }

    /// Drops the batches in flight.
    pub fn forget(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.forget(&self.gpu));
    }

    fn start(&mut self, turn: usize, index: &Index, plans: &[Plan], request: &Request) -> Result<(), Failure> {
        let Session { gpu, resident, place, slots, .. } = self;
        slots[turn].start(&Context { gpu, resident, index, place: *place }, plans, request)
    }

    fn collect(
        &mut self,
        turn: usize,
        index: &Index,
        answers: &mut [Option<Answer<Scored>>],
    ) -> Result<Option<Request>, GpuError> {
        let Session { gpu, resident, place, slots, .. } = self;
        slots[turn].collect(&Context { gpu, resident, index, place: *place }, answers)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget();
    }
}
