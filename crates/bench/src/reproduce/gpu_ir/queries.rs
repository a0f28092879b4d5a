//! Table 2: AND, OR and AND+OR for the best ten, on GPU and CPU, by Lanner's executors.

use crate::error::Result;
use crate::experiments::Findings;
use crate::plot::{Chart, Group};
use crate::reproduce::setup::{Average, Setup};
use crate::result::{Measurement, find_value};
use crate::table::Table;
use lanner::internals::query::answer::Scored;
use lanner::{Algorithm, Mode, Plan};
use std::slice::from_ref;

/// Table 2: milliseconds per query of the paper's CPU and GPU.
const TABLE_2: [(Mode, f64, f64); 3] = [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];
const K: usize = 10;
/// Number of single queries, short and long ones; one core takes seconds for them.
const QUERIES: usize = 200;

/// A query and its hits.
struct Asked {
    plan: Plan,
    hits: Vec<Scored>,
}

pub fn table_2(setup: &Setup) -> Result<Findings> {
    let mut rows = Vec::new();
    for (mode, ..) in TABLE_2 {
        rows.extend(measure(setup, mode)?);
    }
    Ok(findings(&setup.note(), rows))
}

fn measure(setup: &Setup, mode: Mode) -> Result<Vec<Measurement>> {
    let plans = setup.plan(&setup.work.texts, mode, K)?;
    let hits = setup.hits(&plans)?;
    let numbers = setup.work.spread_by_postings(setup.count(QUERIES, 3));
    let asked = |plans: &[Plan]| -> Vec<Asked> {
        numbers.iter().map(|&number| Asked { plan: plans[number].clone(), hits: hits[number].clone() }).collect()
    };
    let row = |how: &str, average: &Average, numbers: &[usize]| {
        let postings = setup.work.mean_postings(numbers.iter().copied());
        let row = Measurement::new("query", &[("mode", &mode), ("how", &how)])
            .with("queries", numbers.len() as f64)
            .with("postings", postings)
            .with("ms", average.us.median / 1e3);
        average.add_to(row)
    };
    let some = asked(&plans);
    let single = time_single(setup, &some)?;
    let on_cpu = setup.average(&some, |asked| setup.time_on_cpu(from_ref(&asked.plan), from_ref(&asked.hits)))?;
    let in_steps = setup.plan_by(algorithm_of(mode), &setup.work.texts, mode, K)?;
    let steps = time_single(setup, &asked(&in_steps))?;
    setup.time_on_gpu(&plans, &hits)?;
    let runs = setup.repeat(|| setup.time_on_gpu(&plans, &hits))?;
    let batch = Average::of(&runs, plans.len());
    let all: Vec<usize> = (0..plans.len()).collect();
    Ok(vec![
        row("cpu", &on_cpu, &numbers),
        row("steps", &steps, &numbers),
        row("alone", &single, &numbers),
        row("batch", &batch, &all),
    ])
}

/// Times single queries on the GPU. Each is answered once before, since buffers of the device grow on demand.
fn time_single(setup: &Setup, some: &[Asked]) -> Result<Average> {
    let time = |asked: &Asked| setup.time_on_gpu(from_ref(&asked.plan), from_ref(&asked.hits));
    some.iter().try_for_each(|asked| time(asked).map(drop))?;
    setup.average(some, time)
}

/// Returns the paper's algorithm for a mode.
pub fn algorithm_of(mode: Mode) -> Algorithm {
    match mode {
        Mode::Or => Algorithm::Accumulators,
        Mode::And | Mode::AndOr => Algorithm::ParallelMergeFind,
    }
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let ms = |mode: Mode, how: &str| find_value(&rows, &[("mode", &mode), ("how", &how)], "ms");
    let ours = [
        ("ours, CPU, one thread", "cpu"),
        ("the paper's algorithms here, GPU, single queries", "steps"),
        ("ours, GPU, single queries", "alone"),
        ("ours, GPU, in batches", "batch"),
    ];
    let mut table = Table::new("Milliseconds per query, the best ten by BM25", 1, &["who", "AND", "OR", "AND+OR"]);
    table.numbers("paper, CPU", TABLE_2.map(|row| row.1));
    table.numbers("paper, GPU", TABLE_2.map(|row| row.2));
    for (name, how) in ours {
        table.numbers(name, TABLE_2.map(|(mode, ..)| ms(mode, how)));
    }
    table.numbers("paper, GPU x CPU", TABLE_2.map(|(_, cpu, gpu)| cpu / gpu));
    for (name, how) in [("ours, single queries, GPU x CPU", "alone"), ("ours, in batches, GPU x CPU", "batch")] {
        table.numbers(name, TABLE_2.map(|(mode, ..)| ms(mode, "cpu") / ms(mode, how)));
    }
    let [queries, postings] = ["queries", "postings"].map(|name| rows[0].count(name));
    let table = table.notes(&[
        &format!(
            "{note} Single queries: {queries} queries of the log with {postings} postings on average (the paper: 1,000 \
             with 3.74 million). From plan to answer on the host, with lists in the memory of CPU or GPU, as in the \
             paper. The paper's GPU is a GeForce 8800 GTS, its CPU one core at 2.66 GHz."
        ),
        "Ours are Lanner's executors. The paper's algorithms here are AND by Parallel Merge Find, term at a time, and \
         OR with an accumulator for each document, on the same lists, some of which are bitmaps; gpu-ir/table3 shows \
         their steps.",
    ]);
    let group = |(mode, cpu, gpu): (Mode, f64, f64)| {
        let values = [cpu, gpu].into_iter().chain(ours.map(|(_, how)| ms(mode, how)));
        Group::of_series(mode.to_string().to_uppercase(), values)
    };
    let series = ["paper, CPU", "paper, GPU", "ours, CPU", "its way, GPU", "ours, GPU", "ours, batches"];
    let subtitle = "milliseconds per query, the best ten; shorter is better";
    let chart = Chart::new("Queries on CPU and GPU, the paper's and ours", subtitle, "ms");
    let chart = chart.series(&series).groups(TABLE_2.map(group));
    Findings::new(rows).table(table).chart("time", chart)
}
