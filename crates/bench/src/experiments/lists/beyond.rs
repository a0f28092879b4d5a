//! Part `beyond`: almost no device memory, less than the directories of the lists take.

use super::setup::{Setup, hit_rate, one_by_one, residency};
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::load::table;
use crate::experiments::placement::{check_all_on_gpu, reported};
use crate::load::Pass;
use crate::query_log::spread;
use crate::suite::Lists;
use std::sync::Arc;

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let part = setup.run.part.beyond;
    let limit = (part.share * setup.list_bytes as f64) as u64;
    let mut rows = Vec::new();
    for mode in setup.modes() {
        let set = setup.answered(&spread(&setup.reporting, part.queries), mode)?;
        let device = Arc::clone(&setup.device);
        let options = reported(Box::new(move || Ok(Arc::clone(&device)))).memory(limit);
        // Whatever the limit, the lists are read in host memory.
        let engine = setup.engine_with(options, Lists::Host)?;
        let row = setup.measurement("beyond", mode, &[]);
        let row = one_by_one(&engine, &set, set.len(), row)?;
        let before = residency(&engine).cache;
        let stream = Pass::over(&engine, &set)?;
        let report = residency(&engine);
        check_all_on_gpu(&engine)?;
        rows.push(
            row.with("queries", set.len() as f64)
                .with("limit_bytes", limit as f64)
                .with("limit_mb", limit as f64 / 1e6)
                .with("limit_of_directories", limit as f64 / setup.directory_bytes as f64)
                .with("cache_mb", report.memory_bytes as f64 / 1e6)
                .with("stream_a_second", stream.rate())
                .with("hit_rate", hit_rate(&before, &report.cache)),
        );
    }
    let figures = [
        ("memory, MB", "limit_mb"),
        ("x the directories", "limit_of_directories"),
        ("for lists, MB", "cache_mb"),
        ("queries", "queries"),
        ("mean, us", "mean_us"),
        ("p50", "p50_us"),
        ("p99", "p99_us"),
        ("in a stream, queries/s", "stream_a_second"),
        ("hit rate", "hit_rate"),
    ];
    let table = table("Almost no device memory", &rows, &["mode"], &figures).notes(&[&format!(
        "All device memory that may be used is {} % of the bytes of the lists, with length codes and the buffers of batches. \
         Queries one by one, then as a stream, which repeats them once; policy gpu.",
        100.0 * part.share
    )]);
    Ok(Findings::new(rows).table(table))
}
