//! The program `lanner-bench`.

fn main() -> std::process::ExitCode {
    lanner_bench::main()
}
