// Compiles kernels for the simulator: shared by the build scripts of all crates that have some.

/// Compiles a `.cu` file, in which every other one is included, into the crate, and sets `cfg(simulator)`.
///
/// Where there is no C++ compiler the simulator is absent, which is no error. `LANNER_SANITIZE=address` compiles the
/// kernels with AddressSanitizer.
fn compile_for_simulator(library: &str, source: &str, folders: &[&str]) {
    println!("cargo::rustc-check-cfg=cfg(simulator)");
    println!("cargo::rerun-if-env-changed=LANNER_SANITIZE");
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_device_code = |path: &std::path::Path| path.extension().is_some_and(|end| end == "cu" || end == "h");
        for path in entries.map(|entry| entry.path()).filter(|path| is_device_code(path)) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let target = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !["x86_64", "aarch64"].contains(&target.as_str()) {
        return;
    }
    let mut build = cc::Build::new();
    // Scores must be the same to the last bit: no fused multiply-add.
    build.cpp(true).std("c++17").file(source).flags(["-x", "c++", "-ffp-contract=off", "-Wno-unknown-pragmas"]);
    build.opt_level(2).debug(false).extra_warnings(false).cargo_warnings(false).includes(folders);
    let sanitize = std::env::var("LANNER_SANITIZE").is_ok_and(|value| value == "address");
    if sanitize {
        build.flags(["-fsanitize=address", "-fno-omit-frame-pointer", "-g"]);
    }
    match build.try_compile(library) {
        Ok(()) => {
            println!("cargo::rustc-cfg=simulator");
            if sanitize {
                println!("cargo::rustc-link-lib=dylib=asan");
            }
        }
        Err(error) => println!("cargo::warning=no simulator of GPU kernels in this build: {error}"),
    }
}
