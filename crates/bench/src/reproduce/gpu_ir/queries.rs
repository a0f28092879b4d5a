//! Table 2: AND, OR and AND+OR for the best ten, on GPU and CPU, by our executors.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Picture};
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Average, Ground};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::{Algorithm, Hit, Mode, Plan};
use std::slice::from_ref;

/// Table 2: milliseconds a query of the paper's CPU and GPU.
const TABLE_2: [(Mode, f64, f64); 3] = [(Mode::And, 8.71, 7.66), (Mode::Or, 212.72, 29.31), (Mode::AndOr, 23.85, 9.98)];
const K: usize = 10;
/// Queries that are asked one at a time, spread over short and long ones: one core takes seconds for them.
const QUERIES: usize = 200;

/// A query and its hits.
struct Asked {
    plan: Plan,
    hits: Vec<Hit>,
}

pub fn table_2(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let mut rows = Vec::new();
    for (mode, ..) in TABLE_2 {
        rows.extend(measure(ground, mode)?);
    }
    Ok(findings(&ground.note(), rows))
}

fn measure(ground: &Ground, mode: Mode) -> Result<Vec<Measurement>, BenchError> {
    let plans = ground.plan(&ground.work.texts, mode, K)?;
    let hits = ground.hits(&plans)?;
    let numbers = ground.work.spread_by_postings(if ground.is_simulated() { 3 } else { QUERIES });
    let asked = |plans: &[Plan], number: usize| Asked { plan: plans[number].clone(), hits: hits[number].clone() };
    let some: Vec<Asked> = numbers.iter().map(|&number| asked(&plans, number)).collect();
    let row = |how: &str, average: &Average, numbers: &[usize]| {
        let postings = ground.work.mean_postings(numbers.iter().copied());
        let row = Measurement::new("query", &[("mode", &mode.to_string()), ("how", how)])
            .with("queries", numbers.len() as f64)
            .with("postings", postings)
            .with("ms", average.us.median / 1e3);
        average.note(row)
    };
    let alone = time_alone(ground, &some)?;
    let on_cpu = ground.average(&some, |asked| ground.time_on_cpu(from_ref(&asked.plan), from_ref(&asked.hits)))?;
    let in_steps = ground.plan_by(algorithm_of(mode), &ground.work.texts, mode, K)?;
    let in_steps: Vec<Asked> = numbers.iter().map(|&number| asked(&in_steps, number)).collect();
    let steps = time_alone(ground, &in_steps)?;
    ground.time_on_gpu(&plans, &hits)?;
    let runs = ground.repeat(|| ground.time_on_gpu(&plans, &hits))?;
    let batch = Average::of(&runs, plans.len());
    let all: Vec<usize> = (0..plans.len()).collect();
    Ok(vec![
        row("cpu", &on_cpu, &numbers),
        row("steps", &steps, &numbers),
        row("alone", &alone, &numbers),
        row("batch", &batch, &all),
    ])
}

/// The time of a query that comes alone, on the GPU. There is a call for each before the clock runs: the device's buffers
/// grow with what comes.
fn time_alone(ground: &Ground, some: &[Asked]) -> Result<Average, BenchError> {
    let time = |asked: &Asked| ground.time_on_gpu(from_ref(&asked.plan), from_ref(&asked.hits));
    some.iter().try_for_each(|asked| time(asked).map(drop))?;
    ground.average(some, time)
}

/// The paper's algorithm for a mode.
pub fn algorithm_of(mode: Mode) -> Algorithm {
    match mode {
        Mode::Or => Algorithm::Accumulators,
        Mode::And | Mode::AndOr => Algorithm::ParallelMergeFind,
    }
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let ms = |mode: Mode, how: &str| {
        let row = rows.iter().find(|row| row.label("mode") == mode.to_string() && row.label("how") == how);
        row.map_or(f64::NAN, |row| row.value("ms"))
    };
    let mut table = Table::new("Milliseconds a query, the best ten by BM25", 1, &["who", "AND", "OR", "AND+OR"]);
    let ours = [
        ("ours, CPU, one thread", "cpu"),
        ("the paper's algorithms here, GPU, one query at a time", "steps"),
        ("ours, GPU, one query at a time", "alone"),
        ("ours, GPU, in batches", "batch"),
    ];
    table.row([vec!["paper, CPU".to_owned()], TABLE_2.map(|row| number(row.1)).to_vec()].concat());
    table.row([vec!["paper, GPU".to_owned()], TABLE_2.map(|row| number(row.2)).to_vec()].concat());
    for (name, how) in ours {
        table.row([vec![name.to_owned()], TABLE_2.map(|(mode, ..)| number(ms(mode, how))).to_vec()].concat());
    }
    let ratio = |one: &dyn Fn(Mode) -> f64| TABLE_2.map(|(mode, ..)| number(one(mode))).to_vec();
    let of_paper = TABLE_2.map(|(_, cpu, gpu)| number(cpu / gpu)).to_vec();
    table.row([vec!["paper, GPU x CPU".to_owned()], of_paper].concat());
    let alone = ratio(&|mode| ms(mode, "cpu") / ms(mode, "alone"));
    table.row([vec!["ours, one at a time, GPU x CPU".to_owned()], alone].concat());
    let batch = ratio(&|mode| ms(mode, "cpu") / ms(mode, "batch"));
    table.row([vec!["ours, in batches, GPU x CPU".to_owned()], batch].concat());
    let (queries, postings) = rows.first().map_or((0.0, 0.0), |row| (row.value("queries"), row.value("postings")));
    table.notes = vec![
        format!(
            "{note} One at a time: {} queries of the log, {} postings on average (the paper: 1,000 of 3.74 million). From \
             plan to answer on the host, lists in the memory of whoever answers, as in the paper. The paper's GPU is a \
             GeForce 8800 GTS, its CPU one core at 2.66 GHz.",
            count(queries as u64),
            count(postings as u64)
        ),
        "Ours are the executors of both engines. The paper's algorithms here are its AND by Parallel Merge Find, term at a \
         time, and its OR with an accumulator for each document, over the same lists, some of which are bitmaps; gpu-ir/table3 \
         has their steps."
            .to_owned(),
    ];
    let bars = |(mode, cpu, gpu): (Mode, f64, f64)| {
        let values = [cpu, gpu].into_iter().chain(ours.map(|(_, how)| ms(mode, how)));
        let bar = |(series, value)| Bar { series, value, range: None };
        Group { label: mode.to_string().to_uppercase(), bars: (0..).zip(values).map(bar).collect() }
    };
    let chart = Chart {
        title: "Queries on CPU and GPU, the paper's and ours".to_owned(),
        subtitle: "milliseconds a query, the best ten; shorter is better".to_owned(),
        series: ["paper, CPU", "paper, GPU", "ours, CPU", "its way, GPU", "ours, GPU", "ours, batches"]
            .map(str::to_owned)
            .to_vec(),
        unit: "ms".to_owned(),
        groups: TABLE_2.map(bars).to_vec(),
    };
    Findings { tables: vec![table], charts: vec![("time".to_owned(), Picture::Bars(chart))], measurements: rows }
}
