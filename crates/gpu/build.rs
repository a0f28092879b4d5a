//! Compiles the kernels that test devices, for the simulator.

include!("cuda/compile.rs");

fn main() {
    compile_for_simulator("lanner_gpu_kernels", &["tests/trial/trial.cu"], &["cuda", "tests/trial"]);
}
