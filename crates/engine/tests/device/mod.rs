//! The device that tests run on: the simulator, or with `LANNER_REQUIRE_GPU=1` the GPU.

use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::Device;
use lanner_gpu::simulator::Simulator;
use std::sync::{Arc, OnceLock};

/// Whether tests run on the GPU.
pub fn is_gpu_required() -> bool {
    std::env::var("LANNER_REQUIRE_GPU").is_ok_and(|value| value == "1")
}

/// A simulator with this seed, or the GPU. All tests of a process share the GPU: opening it and loading its kernels
/// takes longer than most tests.
pub fn open(seed: u64) -> Arc<dyn Device> {
    static DRIVER: OnceLock<Arc<dyn Device>> = OnceLock::new();
    match is_gpu_required() {
        true => Arc::clone(
            DRIVER.get_or_init(|| Arc::new(Cuda::open(0).expect("LANNER_REQUIRE_GPU=1 needs a GPU that opens"))),
        ),
        false => Arc::new(Simulator::new(seed)),
    }
}
