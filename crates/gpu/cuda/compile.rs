// Compiles kernels for the simulator: shared by the build scripts of all crates that have some.

/// Compiles `.cu` files into the crate, with the folders that they include from, and sets `cfg(simulator)`.
///
/// Without a C++ compiler there is no simulator, which is no error; kernels that do not compile are one.
/// `LANNER_SANITIZE=address` compiles the kernels with AddressSanitizer.
fn compile_for_simulator(library: &str, sources: &[&str], folders: &[&str]) {
    println!("cargo::rustc-check-cfg=cfg(simulator)");
    println!("cargo::rerun-if-env-changed=LANNER_SANITIZE");
    println!("cargo::rerun-if-env-changed=UPDATE");
    folders.iter().for_each(|folder| watch(std::path::Path::new(folder)));
    let target = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !["x86_64", "aarch64"].contains(&target.as_str()) {
        return;
    }
    let mut build = cc::Build::new();
    // Scores must be the same to the last bit: no fused multiply-add.
    build.cpp(true).std("c++17").files(sources).flags(["-x", "c++", "-ffp-contract=off", "-Wno-unknown-pragmas"]);
    // Generated headers are out of date while they are written anew.
    let is_update = std::env::var_os("UPDATE").is_some();
    build.opt_level(2).debug(false).warnings(false).cargo_warnings(!is_update).includes(folders);
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
        Err(error) if build.is_flag_supported("-Wall").unwrap_or(false) && !is_update => {
            panic!("the kernels do not compile for the simulator: {error}")
        }
        Err(error) => println!("cargo::warning=no simulator of GPU kernels in this build: {error}"),
    }
}

/// Builds again when device code changes.
fn watch(folder: &std::path::Path) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            watch(&path);
        } else if path.extension().is_some_and(|end| end == "cu" || end == "h") {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}
