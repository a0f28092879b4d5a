//! What can go wrong with a device, said so that a user knows what to do.

/// Why a device did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// There is no driver on this machine.
    #[error("no GPU driver: {reason}; install NVIDIA's driver {needed} or newer, or search with '--executor cpu'")]
    NoDriver {
        /// What was looked for.
        reason: String,
        /// The driver that this build needs.
        needed: &'static str,
    },
    /// The driver is too old for the kernels.
    #[error(
        "the GPU driver supports CUDA {found}, this build needs {needed}; update it, or search with '--executor cpu'"
    )]
    OldDriver {
        /// What it supports.
        found: String,
        /// What the kernels need.
        needed: &'static str,
    },
    /// There is a driver, but no device that it can use.
    #[error("no GPU: {reason}; let the driver see another, or search with '--executor cpu'")]
    NoDevice {
        /// What the driver says.
        reason: String,
    },
    /// The device has no room.
    #[error("the GPU has no room for {asked} bytes ({reason}); give it less with '--gpu-memory'")]
    OutOfMemory {
        /// What was asked for.
        asked: u64,
        /// What the driver says.
        reason: String,
    },
    /// The budget is spent.
    #[error("'--gpu-memory' leaves {left} of {budget} bytes, and {asked} are needed")]
    OverBudget {
        /// What was asked for.
        asked: u64,
        /// What is left.
        left: u64,
        /// The whole budget.
        budget: u64,
    },
    /// A kernel did not start, or a module did not load.
    #[error("the GPU does not start {name}: {reason}")]
    Launch {
        /// The kernel or module.
        name: String,
        /// What the driver says.
        reason: String,
    },
    /// The device is of no more use: its memory is gone, and it must be opened anew, if need be by another process.
    #[error("the GPU is lost: {reason}")]
    Lost {
        /// What the driver says.
        reason: String,
    },
    /// A copy, or anything else, failed.
    #[error("the GPU failed at {at}: {reason}")]
    Failed {
        /// What it was doing.
        at: &'static str,
        /// What the driver says.
        reason: String,
    },
}
