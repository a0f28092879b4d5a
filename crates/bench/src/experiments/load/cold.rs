//! Part `cold`: the first queries of a new process. Each policy runs in a process of its own, in which nothing has
//! touched the driver before.

use super::open::SEED;
use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{DELAYS, QUERIES, table};
use crate::child::measure_in_child;
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::experiments::gpu::DeviceName;
use crate::experiments::placement::gpu_options;
use crate::load::{ClosedLoop, OpenLoop, Phase, QuerySet, Questions, Way, poisson};
use crate::machine::cores;
use crate::result::Measurement;
use crate::suite::Lists;
use clap::ValueEnum;
use lanner::internals::calibrate::Folder;
use lanner::{Engine, Index, Mode, Policy, Query, ScoreModel};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The load, as a share of the capacity of the CPU alone: it could answer everything without a GPU.
const SHARE: f64 = 0.5;

/// What a process measures; it gets this as JSON.
#[derive(Serialize, Deserialize)]
pub struct ColdTask {
    index: PathBuf,
    costs: PathBuf,
    /// Of the costs.
    device_name: String,
    device: String,
    policy: String,
    lists: String,
    mode: Mode,
    k: usize,
    /// A file with a query in each line.
    queries: PathBuf,
    threads: usize,
    senders: usize,
    rate: f64,
    seconds: f64,
    fewest: usize,
}

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let folder = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let cpu = setup.engine(EngineOptions::new(Policy::Cpu, setup.threads_beside_senders()))?;
    let mut rows = Vec::new();
    for set in setup.first_log() {
        let queries = folder.path().join("queries.txt");
        let texts: Vec<&str> = set.set.queries.iter().map(|query| query.text.as_str()).collect();
        std::fs::write(&queries, texts.join("\n")).map_err(BenchError::io(&queries))?;
        setup.warm_up(&cpu, &set.set)?;
        let closed = ClosedLoop { engine: &cpu, set: &set.set, length: setup.length() };
        let rate = SHARE * closed.submitted(setup.run.part.senders, setup.run.part.clients)?.rate();
        for lists in setup.lists_on_device() {
            for policy in setup.run.context.kept("policy", &Policy::ALL) {
                let task = task(setup, set, (policy, lists), (rate, queries.clone()));
                let json = serde_json::to_string(&task).expect("a task is plain data");
                let values = measure_in_child(&setup.run.context.options.program, "child-cold", &json)?;
                let row = set.measurement("cold", &[("policy", &policy), ("lists", &lists), ("load", &"cold")]);
                rows.push(Measurement { values: values.values, ..row }.with("offered_a_second", rate));
            }
        }
    }
    let compared = super::policies::compare(&rows);
    let of_queries = [("queries/s", "offered_a_second"), ("queries", "queries"), ("within the time", "in_time")];
    let figures = [&of_queries[..], &DELAYS, &[("by CPU", "by_cpu"), ("by GPU", "by_gpu")]].concat();
    let labels = [&QUERIES[..], &["lists", "policy"]].concat();
    let table = table("Cold start: microseconds from arrival to answer", &rows, &labels, &figures).notes(&[&format!(
        "A new process opens the index and makes an engine; from then on queries arrive for {} s at half of the CPU's \
         capacity. The GPU is opened when the policy asks for it. Within the time: queries answered while others still \
         arrived.",
        setup.run.part.cold_s
    )]);
    Ok(Findings::new([rows, compared].concat()).table(table))
}

fn task(
    setup: &Setup<'_>,
    set: &LogSet,
    (policy, lists): (Policy, Lists),
    (rate, queries): (f64, PathBuf),
) -> ColdTask {
    let part = setup.run.part;
    ColdTask {
        index: setup.folder.clone(),
        costs: setup.costs_folder(),
        device_name: setup.device.properties().name.clone(),
        device: setup.run.context.options.device.to_string(),
        policy: policy.to_string(),
        lists: lists.to_string(),
        mode: set.set.questions.mode,
        k: part.k,
        queries,
        threads: setup.threads_beside_senders(),
        senders: part.senders,
        rate,
        seconds: part.cold_s,
        fewest: part.fewest,
    }
}

/// Measures in this process, which is the child.
pub fn run_here(task: &str) -> Result<Measurement> {
    let wrong = |error: &dyn std::fmt::Display| BenchError::Usage(error.to_string());
    let task: ColdTask = serde_json::from_str(task).map_err(|error| wrong(&error))?;
    let policy: Policy = task.policy.parse().map_err(|error| wrong(&error))?;
    let device = DeviceName::from_str(&task.device, false).map_err(|error| wrong(&error))?;
    let lists: Lists = task.lists.parse().map_err(|error| wrong(&error))?;
    let text = std::fs::read_to_string(&task.queries).map_err(BenchError::io(&task.queries))?;
    let texts: Vec<String> = text.lines().map(str::to_owned).collect();
    let query = |text: &String| Query::new(text).mode(task.mode).k(task.k).score(ScoreModel::Bm25);
    let queries: Vec<Query> = texts.iter().map(query).collect();
    let arrivals = poisson(&[Phase { rate: task.rate, seconds: task.seconds }], task.fewest, SEED);

    let index = Arc::new(Index::open(&task.index)?);
    let costs = Folder::new(&task.costs).load(&index, &task.device_name)?.unwrap_or_default();
    let engine = Engine::new(Arc::clone(&index)).costs(costs).threads(task.threads).policy(policy);
    let engine = engine.gpu(gpu_options(Box::new(move || device.open()), &index, lists));
    let open = OpenLoop { engine: &engine, queries: &queries, senders: task.senders, way: Way::Submit };
    let load = open.run(&arrivals)?;

    // What the CPU answers is computed now: before, it would have warmed the caches.
    let questions = Questions { mode: task.mode, k: task.k, score: ScoreModel::Bm25 };
    load.check(&QuerySet::new(&index, &texts, questions, cores())?)?;
    let in_time = load.answered_within(load.arriving_s);
    Ok(load.add_to(Measurement::default()).with("in_time", in_time as f64))
}
