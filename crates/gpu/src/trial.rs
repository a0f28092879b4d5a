//! Kernels that try a device out: some are right, some are wrong in a way that must show.

use crate::device::Address;
use crate::kernel::{Module, kernels};

/// The kernels of `cuda/trial.cu`.
pub static MODULE: Module = Module { name: "trial", ptx: include_str!("../cuda/trial.ptx") };

/// What all of them take.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TrialArguments {
    /// Numbers.
    pub input: Address,
    /// Numbers that come out.
    pub output: Address,
    /// One number more.
    pub total: Address,
    /// How many numbers, or threads.
    pub n: u32,
    /// Nothing.
    pub reserved: u32,
}

kernels! {
    MODULE;
    [TrialArguments: 32 bytes]
    /// Sums up `n` numbers, 128 a block of threads.
    SUM = trial_sum: TrialArguments;
    /// Meets in parts of a warp.
    PARTIAL = trial_partial: TrialArguments;
    /// Adds 1 to `n` numbers, and says last how many there are.
    TELL = trial_tell: TrialArguments;
    /// Loses updates between blocks.
    RACE = trial_race: TrialArguments;
    /// Lacks a barrier.
    NO_BARRIER = trial_no_barrier: TrialArguments;
    /// Has a barrier that only `n` threads reach.
    HALF_BARRIER = trial_half_barrier: TrialArguments;
    /// Has two barriers, one for `n` threads and one for the others.
    TWO_BARRIERS = trial_two_barriers: TrialArguments;
    /// Has a shuffle that half of a warp does not reach.
    HALF_SHUFFLE = trial_half_shuffle: TrialArguments;
    /// Writes where nothing is.
    FAULT = trial_fault: TrialArguments;
}
