//! Table 3 for whole queries: the steps of the paper's AND and OR as our executor takes and times them.

use super::queries::algorithm_of;
use super::steps::{AND, K};
use crate::error::BenchError;
use crate::reproduce::on_device::{Ground, disagreement};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::{Answer, Mode};
use std::collections::BTreeMap;

/// Steps of an AND as the paper has them, with its shares in percent, and ours of the same purpose.
const AND_STEPS: [(&str, f64, &[&str]); 3] = [
    ("decompression", AND[0], &["decode"]),
    ("intersection", AND[1], &["intersect"]),
    ("scoring and top-k", AND[2], &["weigh", "select"]),
];
/// Likewise of an OR: initialization 9, decompression 30, scoring 48, selection 13.
const OR_STEPS: [(&str, f64, &[&str]); 3] = [
    ("initialization", 9.0, &["clear"]),
    ("decompression and scoring", 78.0, &["accumulate"]),
    ("top-k", 13.0, &["gather", "select"]),
];

/// Microseconds of each step of a query on average, by the traces of the answers, which must be right.
pub fn measure(ground: &Ground, texts: &[String]) -> Result<Vec<Measurement>, BenchError> {
    let mut rows = Vec::new();
    for mode in [Mode::And, Mode::Or] {
        let plans = ground.plan_by(algorithm_of(mode), texts, mode, K)?;
        let expected = ground.hits(&plans)?;
        // The first call lets the device's buffers grow.
        ground.time_on_gpu(&plans, &expected)?;
        let answers = ground.executor()?.answer(&plans)?;
        if !answers.iter().map(|answer| &answer.hits).eq(&expected) {
            return Err(disagreement("our GPU executor in steps"));
        }
        for (step, us) in sums(&answers) {
            let row = Measurement::new("traced", &[("operation", &mode.to_string()), ("step", step)]);
            rows.push(row.with("queries", plans.len() as f64).with("us", us / plans.len() as f64));
        }
    }
    Ok(rows)
}

/// Microseconds of the steps of one name, of all answers.
fn sums(answers: &[Answer]) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::new();
    for step in answers.iter().flat_map(|answer| &answer.trace.steps) {
        *sums.entry(step.name).or_default() += step.duration.as_secs_f64() * 1e6;
    }
    sums
}

/// The steps of whole ANDs and ORs.
pub fn tables(rows: &[Measurement]) -> [Table; 2] {
    [("AND", Mode::And, AND_STEPS), ("OR", Mode::Or, OR_STEPS)].map(|(name, mode, steps)| {
        let of_step = |row: &&Measurement, step: &str| {
            row.kind == "traced" && row.label("operation") == mode.to_string() && row.label("step") == step
        };
        let us = |ours: &[&str]| {
            let of_one = |step: &&str| rows.iter().find(|row| of_step(row, step)).map_or(0.0, |row| row.value("us"));
            ours.iter().map(of_one).sum::<f64>()
        };
        let sum = steps.iter().map(|(.., ours)| us(ours)).sum::<f64>();
        let columns = [&format!("step of an {name}"), "paper, %", "here, %", "us"];
        let mut table = Table::new(format!("Steps of whole {name}s on the GPU"), 1, &columns);
        for (step, paper, ours) in steps {
            table.row(vec![step.to_owned(), number(paper), number(us(ours) / sum * 100.0), number(us(ours))]);
        }
        table.row(vec!["all of these".to_owned(), number(100.0), number(100.0), number(sum)]);
        let queries = rows.iter().find(|row| row.kind == "traced").map_or(0.0, |row| row.value("queries"));
        table.notes = vec![format!(
            "{} queries answered by `{}`, over the lists of the index, of which some are bitmaps: packed by bitpack, not by \
             PForDelta. Few keys are selected by the CPU; its time is in the last step.",
            count(queries as u64),
            algorithm_of(mode)
        )];
        table
    })
}
