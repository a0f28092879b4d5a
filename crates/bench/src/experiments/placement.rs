//! Engines whose lists lie where a suite says.

use super::gpu::workload::list_bytes;
use crate::error::{BenchError, Result};
use crate::machine::cores;
use crate::suite::Lists;
use lanner::internals::executors::{Keep, Open};
use lanner::{Engine, GpuOptions, Index};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A GPU for the lists of an index.
pub fn gpu_options(open: Open, index: &Index, lists: Lists) -> GpuOptions {
    let options = reported(open);
    match lists {
        Lists::Resident => options,
        Lists::Uploaded => options.upload_lists(),
        Lists::Host => options.keep(Keep::Nothing),
        Lists::Directories => options.keep(Keep::Directories),
        Lists::Cached(percent) => options.cached((list_bytes(index) as f64 * percent / 100.0) as usize),
    }
}

/// A GPU that reports failures, and copies lists on all cores if it has to.
pub fn reported(open: Open) -> GpuOptions {
    GpuOptions::new(open).threads(cores()).report(Box::new(|line| eprintln!("{line}")))
}

/// The index for an engine, with a mapping of its own if it reads lists in host memory: of one mapping the driver refuses
/// pages that another engine has registered in other ranges.
pub fn own_index(index: &Arc<Index>, folder: &Path, lists: Lists) -> Result<Arc<Index>> {
    match lists {
        Lists::Resident | Lists::Uploaded => Ok(Arc::clone(index)),
        Lists::Host | Lists::Directories | Lists::Cached(_) => Ok(Arc::new(Index::open(folder)?)),
    }
}

/// Fails if the CPU answered for the GPU of an engine, or if its device failed.
pub fn check_all_on_gpu(engine: &Engine) -> Result<()> {
    let counters = engine.counters().expect("it has a GPU");
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let by_cpu = count(&counters.unsupported) + count(&counters.fallen_back);
    match fault(by_cpu, count(&counters.failures)) {
        None => Ok(()),
        Some(what) => Err(BenchError::Device { what }),
    }
}

/// What is wrong after a number of queries that the CPU answered for the GPU, and of failures of the device.
fn fault(by_cpu: u64, failures: u64) -> Option<String> {
    match (by_cpu, failures) {
        (0, 0) => None,
        (_, 0) => Some(format!("the CPU answered {by_cpu} queries for the GPU")),
        (0, _) => Some(format!("failures of the device: {failures}; no query was left to the CPU")),
        _ => Some(format!("failures of the device: {failures}; the CPU answered {by_cpu} queries for it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_device_are_told_from_queries_that_the_cpu_answered() {
        assert_eq!(fault(0, 0), None);
        for (by_cpu, failures, expected) in [
            (3, 0, "the CPU answered 3 queries for the GPU"),
            (0, 1, "failures of the device: 1; no query was left to the CPU"),
            (3, 2, "failures of the device: 2; the CPU answered 3 queries for it"),
        ] {
            assert_eq!(fault(by_cpu, failures).as_deref(), Some(expected));
        }
    }
}
