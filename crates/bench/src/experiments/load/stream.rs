//! Part `stream`: how many queries a second the GPU answers if it is never short of them.

use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{QUERIES, RATE, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::placement::check_all_on_gpu;
use crate::load::{RunLength, StreamLoad};
use crate::machine::cores;
use crate::result::Measurement;
use crate::statistics::Spread;
use lanner::{Engine, Policy};

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let engine = setup.engine(EngineOptions::new(Policy::Gpu, cores()))?;
    let mut rows = Vec::new();
    for set in &setup.sets {
        rows.extend(measure(setup, &engine, set)?);
    }
    check_all_on_gpu(&engine)?;
    let figures = [
        ("queries", "queries"),
        ("queries/s", RATE[0]),
        ("least", RATE[1]),
        ("most", RATE[2]),
        ("us per query", "us_a_query"),
        ("x plans", "x_plans"),
    ];
    let table = table("Streams on the GPU", &rows, &[&QUERIES[..], &["from"]].concat(), &figures).notes(&[&format!(
        "One caller, policy gpu, {} threads; the queries of the log over and over. From plans to hits, or from query \
         text to the external ids of the hits. Median, minimum and maximum of {} runs, which alternate; queries: those \
         of the median run.",
        cores(),
        setup.run.part.repetitions
    )]);
    Ok(Findings::new(rows).table(table))
}

fn measure(setup: &Setup<'_>, engine: &Engine, set: &LogSet) -> Result<[Measurement; 2]> {
    setup.warm_up_stream(engine, &set.set)?;
    let part = setup.run.part;
    let length = RunLength { longest_s: part.longest_s, queries: part.queries, ..setup.stream_length() };
    let stream = StreamLoad { engine, set: &set.set, length };
    let (mut from_plans, mut from_text) = (Vec::new(), Vec::new());
    for _ in 0..part.repetitions {
        from_plans.push(stream.plans_to_hits()?);
        from_text.push(stream.texts_to_ids()?);
    }
    let mut plans_us = 0.0;
    Ok([("plans", from_plans), ("text", from_text)].map(|(from, mut runs)| {
        let rates = Spread::of(runs.iter().map(|run| run.rate()));
        runs.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
        let us = 1e6 / rates.median;
        let row = set.measurement("stream", &[("from", &from)]);
        let row = row.with("queries", runs[runs.len() / 2].queries as f64).with("runs", runs.len() as f64);
        let row = row.with("us_a_query", us).with_spread(RATE, rates);
        if from == "plans" {
            plans_us = us;
            return row;
        }
        row.with("x_plans", us / plans_us)
    }))
}
