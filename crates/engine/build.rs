//! Compiles the kernels for the simulator.

include!("../gpu/cuda/compile.rs");

fn main() {
    let folders = [
        "src",
        "src/algorithms",
        "src/device",
        "src/device/kernels",
        "src/papers",
        "../index/src",
        "../index/src/codec",
        "../gpu/cuda",
    ];
    for (library, source) in [
        ("lanner_kernels", "src/device/kernels.cu"),
        ("lanner_papers", "src/papers/papers.cu"),
        ("lanner_steps", "src/papers/step_kernels.cu"),
    ] {
        compile_for_simulator(library, source, &folders);
    }
}
