//! Compiles the kernels that test the simulator itself.

include!("cuda/compile.rs");

fn main() {
    compile_for_simulator("lanner_gpu_kernels", &["cuda/trial.cu"], &["cuda"]);
}
