//! The options that choose an executor.

use crate::failure::Failure;
use crate::quantity::parse_bytes;
use crate::terminal::tell;
use lanner::{GpuOptions, Searcher};

/// The choice of an executor.
#[derive(clap::Args, Clone, Debug)]
pub struct ExecutorOptions {
    /// Where queries run: `cpu`, `gpu` (queries that the GPU cannot answer run on the CPU), or `simulator`, which runs
    /// the GPU's kernels slowly on the CPU, for learning; all give the same answers
    #[arg(long, value_name = "NAME", default_value = "cpu", hide_possible_values = true)]
    executor: ExecutorName,
    /// The GPU memory that may be used, such as 8GiB [default: all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_memory: Option<usize>,
}

/// An executor by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExecutorName {
    Cpu,
    Gpu,
    Simulator,
}

impl ExecutorOptions {
    /// Whether a query log is answered as one batch.
    pub fn takes_batches(&self) -> bool {
        self.executor != ExecutorName::Cpu
    }

    /// Gives a searcher the chosen executor, which uses `threads` CPU threads for queries that the device cannot
    /// answer.
    pub fn apply(&self, searcher: Searcher, threads: usize) -> Result<Searcher, Failure> {
        let gpu = match self.executor {
            ExecutorName::Cpu if self.gpu_memory.is_some() => {
                return Err(Failure::new("--gpu-memory needs --executor gpu; leave it out or choose that executor"));
            }
            ExecutorName::Cpu => return Ok(searcher),
            ExecutorName::Gpu => GpuOptions::driver(),
            ExecutorName::Simulator => GpuOptions::simulator().ok_or_else(no_simulator)?,
        };
        let gpu = gpu.threads(threads).report(Box::new(|line| tell(&format!("warning: {line}"))));
        let gpu = match self.gpu_memory {
            Some(bytes) => gpu.memory(bytes as u64),
            None => gpu,
        };
        Ok(searcher.with_gpu(gpu).with_threads(threads))
    }
}

fn no_simulator() -> Failure {
    let reason = "this build has no simulator, since no C++ compiler was found";
    Failure::new(format!("{reason}; install one and build again, or search with '--executor cpu'"))
}
