//! Part `together`: what the CPU adds to the GPU when both answer one stream.

use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{QUERIES, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::load::StreamLoad;
use crate::machine::cores;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::Lists;
use lanner::{Engine, Policy};

/// Threads that planning for the GPU and its own thread take; the CPU alone is measured without them.
const KEPT_FOR_GPU: usize = 2;

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let cpu_threads = cores().saturating_sub(KEPT_FOR_GPU).max(1);
    let mut rows = Vec::new();
    for lists in setup.lists_on_device() {
        let engines = [(Policy::Gpu, cores()), (Policy::Auto, cores()), (Policy::Cpu, cpu_threads)];
        let engine = |(policy, threads)| setup.engine(EngineOptions { lists, ..EngineOptions::new(policy, threads) });
        let [gpu, auto, cpu] = engines.map(engine);
        let engines = [gpu?, auto?, cpu?];
        for set in setup.first_log() {
            rows.push(measure(setup, &engines, set, lists)?);
        }
    }
    let figures = [
        ("gpu, queries/s", "gpu_a_second"),
        ("auto", "auto_a_second"),
        ("cpu", "cpu_a_second"),
        ("(auto - gpu) / cpu", "share"),
        ("least", "share_least"),
        ("most", "share_most"),
    ];
    let table = table("Both together", &rows, &[&QUERIES[..], &["lists"]].concat(), &figures).notes(&[&format!(
        "Streams from query text to external ids: policies gpu and auto on {} threads, policy cpu on {cpu_threads}. \
         Medians of {} turns, in each of which all three run.",
        cores(),
        setup.run.part.turns
    )]);
    Ok(Findings::new(rows).table(table))
}

fn measure(setup: &Setup<'_>, engines: &[Engine; 3], set: &LogSet, lists: Lists) -> Result<Measurement> {
    for engine in engines {
        setup.warm_up_stream(engine, &set.set)?;
    }
    let (mut rates, mut shares) = ([const { Vec::new() }; 3], Vec::new());
    for _ in 0..setup.run.part.turns {
        for (engine, rates) in engines.iter().zip(&mut rates) {
            rates.push(StreamLoad { engine, set: &set.set, length: setup.stream_length() }.texts_to_ids()?.rate());
        }
        let [gpu, auto, cpu] = [0, 1, 2].map(|engine: usize| rates[engine][rates[engine].len() - 1]);
        shares.push((auto - gpu) / cpu);
    }
    let [gpu, auto, cpu] = rates.map(|rates| Spread::of(rates).median);
    let shares = Spread::of(shares);
    Ok(set
        .measurement("together", &[("lists", &lists)])
        .with("gpu_a_second", gpu)
        .with("auto_a_second", auto)
        .with("cpu_a_second", cpu)
        .with_spread(["share", "share_least", "share_most"], shares)
        .with("missing", 1.0 - shares.median))
}
