//! Engines whose lists lie where a suite says.

use super::gpu::workload::list_bytes;
use crate::error::{BenchError, Result};
use crate::machine::cores;
use crate::suite::Lists;
use lanner::internals::executors::{Keep, Open};
use lanner::{Engine, GpuOptions, Index};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

/// Fails if the CPU answered for the GPU of an engine.
pub fn check_all_on_gpu(engine: &Engine) -> Result<()> {
    let counters = engine.counters().expect("it has a GPU");
    let by_cpu = counters.unsupported.load(Ordering::Relaxed) + counters.fallen_back.load(Ordering::Relaxed);
    match by_cpu + counters.failures.load(Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(BenchError::Device { what: format!("the CPU answered {by_cpu} queries for the GPU") }),
    }
}
