//! The device of tests: the simulator, or with `LANNER_REQUIRE_GPU=1` the driver's.

use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::Device;
use lanner_gpu::simulator::Simulator;
use std::sync::{Arc, OnceLock};

/// Whether tests are for the driver's device.
pub fn is_gpu_required() -> bool {
    std::env::var("LANNER_REQUIRE_GPU").is_ok_and(|value| value == "1")
}

/// A simulator with that seed, or the one device that all tests of a process share: to open it and to load its kernels
/// takes longer than most tests do.
pub fn open(seed: u64) -> Arc<dyn Device> {
    static DRIVER: OnceLock<Arc<dyn Device>> = OnceLock::new();
    match is_gpu_required() {
        true => Arc::clone(
            DRIVER.get_or_init(|| Arc::new(Cuda::open(0).expect("LANNER_REQUIRE_GPU=1, and a device that opens"))),
        ),
        false => Arc::new(Simulator::new(seed)),
    }
}
