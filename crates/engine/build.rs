//! Compiles the kernels for the simulator.

include!("../gpu/cuda/compile.rs");

fn main() {
    let folders = ["src", "src/kernels", "src/algorithms", "../index/src/codec", "../index/src", "../gpu/cuda"];
    compile_for_simulator("lanner_kernels", "src/kernels.cu", &folders);
    compile_for_simulator("lanner_papers", "src/algorithms/papers.cu", &["src/algorithms", "../gpu/cuda"]);
}
