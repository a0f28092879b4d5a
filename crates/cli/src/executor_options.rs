//! The options that choose an executor.

use crate::failure::Failure;
use crate::quantity::parse_bytes;
use crate::terminal::tell;
use lanner::{GpuExecutor, Searcher};
use std::sync::Arc;

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

    /// Gives a searcher the chosen executor, which uses `threads` CPU threads for queries that the device cannot answer.
    pub fn apply(&self, searcher: Searcher, threads: usize) -> Result<Searcher, Failure> {
        let index = Arc::clone(searcher.index());
        let executor = match self.executor {
            ExecutorName::Cpu if self.gpu_memory.is_some() => {
                return Err(Failure::new("--gpu-memory needs --executor gpu; leave it out or choose that executor"));
            }
            ExecutorName::Cpu => return Ok(searcher),
            ExecutorName::Gpu => GpuExecutor::on_driver(index),
            ExecutorName::Simulator => GpuExecutor::on_simulator(index).ok_or_else(no_simulator)?,
        };
        let executor = executor.threads(threads).report(Box::new(|line| tell(&format!("warning: {line}"))));
        let executor = match self.gpu_memory {
            Some(bytes) => executor.memory(bytes as u64),
            None => executor,
        };
        Ok(searcher.with_gpu(executor))
    }
}

fn no_simulator() -> Failure {
    let reason = "this build has no simulator, since no C++ compiler was found";
    Failure::new(format!("{reason}; install one and build again, or search with '--executor cpu'"))
}
