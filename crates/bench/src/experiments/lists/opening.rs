//! Part `opening`: how soon a new process answers on the GPU, and what it answers while lists are loaded. Each opening is a
//! process of its own, in which nothing has touched the driver before.

use super::setup::{LABELS, Setup};
use crate::child::measure_in_child;
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::experiments::gpu::DeviceName;
use crate::experiments::load::table;
use crate::experiments::placement::{check_all_on_gpu, gpu_options};
use crate::load::{QuerySet, Questions, with_delays};
use crate::machine::cores;
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::Lists;
use crate::table::Table;
use clap::ValueEnum;
use lanner::answer::Place;
use lanner::{Answer, Engine, Index, Mode, Policy, Query, ScoreModel};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What a process measures; it gets this as JSON.
#[derive(Serialize, Deserialize)]
pub struct OpeningTask {
    index: PathBuf,
    device: String,
    lists: String,
    mode: Mode,
    k: usize,
    /// A file with a query in each line.
    queries: PathBuf,
    /// The query that is asked first.
    first: usize,
    longest_s: f64,
}

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let part = &setup.run.part.opening;
    let folder = tempfile::tempdir().map_err(BenchError::io(&std::env::temp_dir()))?;
    let queries = folder.path().join("queries.txt");
    let texts = spread(&setup.reporting, part.queries);
    std::fs::write(&queries, texts.join("\n")).map_err(BenchError::io(&queries))?;
    let mut rows = Vec::new();
    for mode in setup.modes() {
        for lists in setup.run.context.kept("lists", &part.lists) {
            let mut runs = Vec::new();
            // The first fills the caches of pages and kernels.
            for repetition in 0..=part.repetitions {
                let task = task(setup, (mode, lists), &queries, repetition % texts.len());
                let json = serde_json::to_string(&task).expect("a task is plain data");
                runs.push(measure_in_child(&setup.run.context.options.program, "child-opening", &json)?);
            }
            rows.push(summary(&runs[1..], setup.measurement("opening", mode, &[("lists", &lists)])));
        }
    }
    let table = opening_table(setup, &rows);
    Ok(Findings::new(rows).table(table))
}

fn task(setup: &Setup<'_>, (mode, lists): (Mode, Lists), queries: &Path, first: usize) -> OpeningTask {
    OpeningTask {
        index: setup.folder.clone(),
        device: setup.run.context.options.device.to_string(),
        lists: lists.to_string(),
        mode,
        k: setup.run.part.k,
        queries: queries.to_owned(),
        first,
        longest_s: setup.run.part.opening.longest_s,
    }
}

/// Medians of all values, and the longest time until the first answer.
fn summary(runs: &[Measurement], row: Measurement) -> Measurement {
    let values = |name: &str| runs.iter().map(|run| run.value(name)).filter(|value| value.is_finite()).collect();
    let names = ["open_s", "first_s", "loaded_s", "meanwhile", "p50_us", "p99_us", "longest_us"];
    let row = names.into_iter().fold(row, |row, name| {
        let values: Vec<f64> = values(name);
        row.with(name, (!values.is_empty()).then(|| Spread::of(values).median))
    });
    let longest: Vec<f64> = values("first_s");
    row.with("first_most_s", longest.into_iter().reduce(f64::max)).with("runs", runs.len() as f64)
}

fn opening_table(setup: &Setup<'_>, rows: &[Measurement]) -> Table {
    let figures = [
        ("index open, s", "open_s"),
        ("first answer, s", "first_s"),
        ("most", "first_most_s"),
        ("all loaded, s", "loaded_s"),
        ("queries meanwhile", "meanwhile"),
        ("p50, us", "p50_us"),
        ("p99", "p99_us"),
        ("longest", "longest_us"),
    ];
    let part = &setup.run.part.opening;
    table("Opening", rows, &LABELS, &figures).notes(&[&format!(
        "A new process opens the index, makes an engine with policy gpu, and asks; seconds from the start of that. Then queries \
         are asked one by one until everything is loaded that is going to be, at most {} s; their times include what loading \
         costs them. The GPU answers all of them. Medians of {} processes, after one that is not counted.",
        part.longest_s, part.repetitions
    )])
}

/// Measures in this process, which is the child.
pub fn run_here(task: &str) -> Result<Measurement> {
    let wrong = |error: &dyn std::fmt::Display| BenchError::Usage(error.to_string());
    let task: OpeningTask = serde_json::from_str(task).map_err(|error| wrong(&error))?;
    let device = DeviceName::from_str(&task.device, false).map_err(|error| wrong(&error))?;
    let lists: Lists = task.lists.parse().map_err(|error| wrong(&error))?;
    let text = std::fs::read_to_string(&task.queries).map_err(BenchError::io(&task.queries))?;
    let mut texts: Vec<String> = text.lines().map(str::to_owned).collect();
    texts.rotate_left(task.first);
    let query = |text: &String| Query::new(text).mode(task.mode).k(task.k).score(ScoreModel::Bm25);
    let queries: Vec<Query> = texts.iter().map(query).collect();

    let start = Instant::now();
    let since = || start.elapsed().as_secs_f64();
    let index = Arc::new(Index::open(&task.index)?);
    let open_s = since();
    let options = gpu_options(Box::new(move || device.open()), &index, lists);
    let engine = Engine::new(Arc::clone(&index)).threads(cores()).policy(Policy::Gpu).gpu(options);
    let mut answers = vec![engine.submit(queries[0].clone())?.wait()?];
    let first_s = since();
    check_is_by_gpu(&answers[0], &queries[0])?;

    let (mut delays, mut loaded_s) = (Vec::new(), None);
    while loaded_s.is_none() && since() < task.longest_s {
        let asked = since();
        answers.push(engine.submit(queries[answers.len() % queries.len()].clone())?.wait()?);
        delays.push(1e6 * (since() - asked));
        loaded_s = engine.residency().filter(|report| report.is_settled).map(|_| since());
    }
    check_all_on_gpu(&engine)?;

    // What the CPU answers is computed now: before, it would have warmed the caches.
    let questions = Questions { mode: task.mode, k: task.k, score: ScoreModel::Bm25 };
    let set = QuerySet::new(&index, &texts, questions, cores())?;
    for (number, answer) in answers.iter().enumerate() {
        set.check(number, answer)?;
    }
    let row = Measurement::default().with("open_s", open_s).with("first_s", first_s).with("loaded_s", loaded_s);
    Ok(with_delays(row.with("meanwhile", delays.len() as f64), delays))
}

/// Fails if a query with hits was answered without the device.
fn check_is_by_gpu(answer: &Answer, query: &Query) -> Result<()> {
    let is_on_device = answer.trace.steps.iter().any(|step| step.place != Place::Cpu);
    match is_on_device || answer.hits.is_empty() {
        true => Ok(()),
        false => Err(BenchError::Device { what: format!("the CPU answered {:?} first", query.text) }),
    }
}
