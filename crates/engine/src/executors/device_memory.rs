//! How the memory of a device is divided: among what is resident of each index, pieces of lists in the cache, and the
//! buffers of batches and of plans that run step by step.
//!
//! Lists leave a *reserve* to buffers, the same as long as the device is open. Batches that do not fit there are halved. A
//! single plan that does not fit gets what it needs: first the buffers of other sessions, then the memory of the cache,
//! which takes what is left. Large buffers are kept for plans like it, and the cache gets its memory back after
//! [`LENT_FOR`] batches: so it is emptied at most that often, however plans with large buffers and others alternate.

use crate::device::residency::DeviceLists;
use crate::device::session::{Session, Shortage};
use crate::papers::steps::StepScratch;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;

/// Bytes of the reserve: an eighth of the budget, but within these limits, and never more than a quarter. Two batches of
/// 1,024 plans take 12 MiB for a k of 10, and 400 MiB for a k of 1000; with less memory they are halved.
const RESERVE_BYTES: std::ops::RangeInclusive<u64> = 64 << 20..=512 << 20;
/// Batches and stepwise plans that are answered before the cache gets its memory back.
const LENT_FOR: u32 = 256;

/// Bytes of a budget that lists leave to buffers.
pub fn reserve(budget: u64) -> u64 {
    (budget / 8).clamp(*RESERVE_BYTES.start(), *RESERVE_BYTES.end()).min(budget / 4)
}

/// What the cache gave for large buffers.
#[derive(Debug, Default)]
pub struct Lent {
    /// How many batches it still waits until it gets it back; `None` if it gave nothing.
    batches: Option<u32>,
    /// The shortage of a step for which it gave its memory without effect: a later step of the plan did not fit all the
    /// same.
    without_effect: Option<u64>,
}

impl Lent {
    /// A batch, or a plan that runs step by step, was answered.
    pub fn count(&mut self) {
        self.batches = self.batches.map(|batches| batches.saturating_sub(1));
    }

    /// Whether it is time to give it back.
    pub fn is_due(&self) -> bool {
        self.batches == Some(0)
    }
}

/// What was freed so far for a batch, or a plan, that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freed {
    #[default]
    Nothing,
    /// The buffers of others.
    Buffers,
    /// The memory of the cache, too, for this shortage.
    Cache { shortage: u64 },
}

impl Freed {
    /// Whether the cache may take what is left.
    pub fn has_cache(self) -> bool {
        matches!(self, Freed::Cache { .. })
    }
}

/// Device memory that a batch, or a plan, may be given which does not fit without it.
pub struct OfOthers<'a> {
    pub gpu: &'a Gpu,
    pub lists: &'a DeviceLists,
    /// The sessions before and after the one whose batch it is.
    pub sessions: [&'a mut [Session]; 2],
    pub scratch: &'a mut StepScratch,
    pub lent: &'a mut Lent,
}

impl OfOthers<'_> {
    /// Frees some more memory, if that helps.
    pub fn free(&mut self, freed: &mut Freed, shortage: Shortage) -> Result<bool, GpuError> {
        // Batches can be smaller; a plan needs what it needs.
        let is_single = shortage.plans == 1;
        for session in self.sessions.iter_mut().flat_map(|sessions| sessions.iter_mut()) {
            if is_single {
                session.finish()?;
            }
            if session.has_free_slots() {
                session.release()?;
            }
        }
        *self.scratch = StepScratch::default();
        let is_known = !shortage.is_all && self.lent.without_effect.is_some_and(|bytes| shortage.bytes >= bytes);
        let may_help = is_single && !is_known;
        match freed {
            Freed::Nothing => *freed = Freed::Buffers,
            Freed::Buffers if may_help && self.lists.give_way(self.gpu, shortage.bytes) => {
                *freed = Freed::Cache { shortage: shortage.bytes };
                self.lent.batches = Some(LENT_FOR);
            }
            Freed::Buffers => return Ok(false),
            Freed::Cache { shortage: before } => {
                if !shortage.is_all {
                    self.lent.without_effect = Some(*before);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }
}
