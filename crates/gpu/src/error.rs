//! Errors of devices, worded so that a user knows what to do.

/// An error of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// There is no driver on this machine.
    #[error("no GPU driver: {reason}; install NVIDIA's driver {needed} or newer, or use the CPU")]
    NoDriver {
        /// What was not found.
        reason: String,
        /// The driver that this build needs.
        needed: &'static str,
    },
    /// The driver is too old for the kernels.
    #[error("the GPU driver supports CUDA {found}, this build needs {needed}; update it, or use the CPU")]
    OldDriver {
        /// The CUDA version that it supports.
        found: String,
        /// The CUDA version that the kernels need.
        needed: &'static str,
    },
    /// There is a driver, but no device that it can use.
    #[error("no GPU: {reason}; make one visible to the driver, or use the CPU")]
    NoDevice {
        /// The driver's explanation.
        reason: String,
    },
    /// The device is out of memory.
    #[error("the GPU cannot allocate {asked} bytes ({reason}); lower the memory budget of the GPU")]
    OutOfMemory {
        /// The bytes asked for.
        asked: u64,
        /// The driver's explanation.
        reason: String,
    },
    /// The allocation exceeds the budget.
    #[error("the memory budget of the GPU has {left} of {budget} bytes left, and {asked} are needed")]
    OverBudget {
        /// The bytes asked for.
        asked: u64,
        /// The bytes left.
        left: u64,
        /// The whole budget.
        budget: u64,
    },
    /// A kernel did not start, or a module did not load.
    #[error("the GPU cannot start {name}: {reason}")]
    Launch {
        /// The kernel or module.
        name: String,
        /// The driver's explanation.
        reason: String,
    },
    /// The device is of no more use: its memory is gone, and it must be opened again, maybe by another process.
    #[error("the GPU is lost: {reason}")]
    Lost {
        /// The driver's explanation.
        reason: String,
    },
    /// Another operation failed.
    #[error("the GPU failed at {at}: {reason}")]
    Failed {
        /// The operation.
        at: &'static str,
        /// The driver's explanation.
        reason: String,
    },
}

impl GpuError {
    /// Whether device memory, or the budget of it, did not suffice.
    pub fn is_out_of_memory(&self) -> bool {
        self.shortage().is_some()
    }

    /// The bytes that were missing, if device memory, or the budget of it, did not suffice. The driver does not say how much
    /// it had: then all that was asked for.
    pub fn shortage(&self) -> Option<u64> {
        match *self {
            GpuError::OverBudget { asked, left, .. } => Some(asked.saturating_sub(left)),
            GpuError::OutOfMemory { asked, .. } => Some(asked),
            _ => None,
        }
    }
}
