//! Compiles the kernels for the simulator.

include!("../gpu/cuda/compile.rs");

fn main() {
    let sources = ["src/device/kernels.cu", "src/papers/papers.cu", "src/papers/step_kernels.cu"];
    compile_for_simulator("lanner_kernels", &sources, &["src", "../index/src", "../gpu/cuda"]);
}
