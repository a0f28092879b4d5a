//! The options that choose who answers queries.

use crate::failure::Failure;
use crate::quantity::parse_bytes;
use crate::terminal::tell;
use lanner::internals::calibrate::{CalibrationError, Folder};
use lanner::{Engine, GpuOptions, Policy};

/// The choice of executors and of a policy.
#[derive(clap::Args, Clone, Debug)]
pub struct ExecutorOptions {
    /// Where queries may run, separated by commas: `cpu`, `gpu` (without `cpu`, only queries that the GPU cannot answer
    /// run on the CPU), or `simulator`, which runs the GPU's kernels slowly on the CPU, for learning; all give the same
    /// answers [default: cpu, and gpu if there is one]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_possible_values = true)]
    executor: Vec<ExecutorName>,
    /// Who answers a query, where there is a choice: `auto` (who is predicted to finish first), `best` (who is
    /// predicted to be faster, whatever waits there), `cpu` or `gpu`
    #[arg(long, value_name = "NAME")]
    policy: Option<Policy>,
    /// The GPU memory that may be used, such as 8GiB; of an index that does not fit, the GPU keeps what is read most and
    /// reads the rest in host memory [default: all that is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_memory: Option<usize>,
    /// The host memory in which the GPU may read lists, such as 16GiB: these pages of indexes stay in memory. Lists
    /// beyond it are copied for each query that needs them [default: half of the memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_host_memory: Option<usize>,
}

/// An executor by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExecutorName {
    Cpu,
    Gpu,
    Simulator,
}

impl ExecutorOptions {
    /// Gives an engine the chosen executors, and `threads` threads of the CPU.
    pub fn apply(&self, engine: Engine, threads: usize) -> Result<Engine, Failure> {
        let gpu = self.gpu(threads)?;
        let default = if self.has(ExecutorName::Cpu) { Policy::Auto } else { Policy::Gpu };
        let engine = engine.threads(threads).policy(self.policy.unwrap_or(default));
        Ok(match gpu.filter(|_| self.policy != Some(Policy::Cpu)) {
            Some(gpu) => calibrated(engine).gpu(gpu),
            None => engine,
        })
    }

    /// The chosen GPU, which fills uploads with `threads` CPU threads; `None` if only the CPU may be used.
    pub fn gpu(&self, threads: usize) -> Result<Option<GpuOptions>, Failure> {
        let gpu = if self.has(ExecutorName::Simulator) {
            GpuOptions::simulator().ok_or_else(no_simulator)?
        } else if self.has(ExecutorName::Gpu) {
            GpuOptions::driver()
        } else if let Some(option) = self.gpu_option() {
            return Err(Failure::new(format!("{option} needs --executor gpu; leave it out or choose that executor")));
        } else if matches!(self.policy, Some(Policy::Gpu | Policy::Best)) {
            return Err(Failure::new("the policy needs a GPU, and --executor names none; add gpu to it"));
        } else {
            return Ok(None);
        };
        // Nobody is told of a GPU that nobody asked for.
        let gpu = match self.names_gpu() {
            true => gpu.report(Box::new(|line| tell(&format!("warning: {line}")))),
            false => gpu,
        };
        let gpu = gpu.threads(threads);
        let gpu = match self.gpu_memory {
            Some(bytes) => gpu.memory(bytes as u64),
            None => gpu,
        };
        Ok(Some(match self.gpu_host_memory {
            Some(bytes) => gpu.registered(bytes as u64),
            None => gpu,
        }))
    }

    /// An option that is only for GPUs, if one was given.
    fn gpu_option(&self) -> Option<&'static str> {
        let options = [(self.gpu_memory, "--gpu-memory"), (self.gpu_host_memory, "--gpu-host-memory")];
        options.iter().find_map(|(given, name)| given.map(|_| *name))
    }

    /// Whether any of these options was given.
    pub fn names_any(&self) -> bool {
        !self.executor.is_empty() || self.policy.is_some() || self.gpu_option().is_some()
    }

    /// Whether the GPU's kernels run on the CPU.
    pub fn is_simulated(&self) -> bool {
        self.has(ExecutorName::Simulator)
    }

    /// Whether the user asked for a GPU.
    pub fn names_gpu(&self) -> bool {
        !self.executor.is_empty() && (self.has(ExecutorName::Gpu) || self.is_simulated())
            || matches!(self.policy, Some(Policy::Gpu | Policy::Best))
            || self.gpu_option().is_some()
    }

    fn has(&self, name: ExecutorName) -> bool {
        match self.executor[..] {
            [] => name != ExecutorName::Simulator,
            _ => self.executor.contains(&name),
        }
    }
}

/// An engine with the costs that `lanner calibrate` stored, if it did.
fn calibrated(engine: Engine) -> Engine {
    match Folder::of_user().and_then(|folder| folder.load_latest(engine.index())) {
        Ok(Some(costs)) => engine.costs(costs),
        Ok(None) | Err(CalibrationError::NoFolder) => engine,
        Err(error) => {
            tell(&format!("warning: {error}; costs are not calibrated"));
            engine
        }
    }
}

fn no_simulator() -> Failure {
    let reason = "this build has no simulator, since no C++ compiler was found";
    Failure::new(format!("{reason}; install one and build again, or search with '--executor cpu'"))
}
