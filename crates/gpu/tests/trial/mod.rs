//! Kernels that exercise a device: some are correct, others have a bug that a device must report.

use lanner_gpu::device::Address;
use lanner_gpu::kernel::Module;

/// The kernels of `trial.cu`.
pub static MODULE: Module = Module { name: "trial", ptx: include_str!("trial.ptx") };

lanner_gpu::shared! {
    mod header = "tests/trial/trial.h" of "--test devices";
    /// The argument of all trial kernels.
    struct TrialArguments {
        /// Numbers.
        input: Address to "const unsigned",
        /// Results.
        output: Address to "unsigned",
        /// One more result.
        total: Address to "unsigned",
        /// The number of numbers, or of threads.
        n: u32,
        /// Unused.
        reserved: u32,
    }
}

lanner_gpu::kernels! {
    MODULE;
    /// Sums up `n` numbers, 128 per thread block.
    SUM = "trial_sum": TrialArguments;
    /// Synchronizes parts of a warp.
    PARTIAL = "trial_partial": TrialArguments;
    /// Adds 1 to `n` numbers, and writes their count last.
    TELL = "trial_tell": TrialArguments;
    /// Loses updates between thread blocks.
    RACE = "trial_race": TrialArguments;
    /// Lacks a barrier.
    NO_BARRIER = "trial_no_barrier": TrialArguments;
    /// Has a barrier that only `n` threads reach.
    HALF_BARRIER = "trial_half_barrier": TrialArguments;
    /// Has two barriers, one for `n` threads and one for the others.
    TWO_BARRIERS = "trial_two_barriers": TrialArguments;
    /// Has a shuffle that half of a warp does not reach.
    HALF_SHUFFLE = "trial_half_shuffle": TrialArguments;
    /// Ends with a trap.
    TRAP = "trial_trap": TrialArguments;
    /// Writes to an illegal address.
    FAULT = "trial_fault": TrialArguments;
}

/// The test that `shared!` generates runs only under the standard harness, which the program of these kernels does
/// not have. `UPDATE=1` writes the header.
pub fn the_header_is_what_rust_generates() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trial/trial.h");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, header).expect("a file that can be written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("a committed file"), header);
}
