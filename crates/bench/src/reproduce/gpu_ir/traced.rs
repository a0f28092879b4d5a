//! Table 3 for whole queries: the steps of the paper's AND and OR, from the traces of Lanner's executor.

use super::queries::algorithm_of;
use super::steps::{AND, K};
use crate::error::Result;
use crate::reproduce::setup::{Setup, check_answers};
use crate::result::{Measurement, find, find_value};
use crate::table::{Table, count};
use lanner::internals::query::answer::Scored;
use lanner::{Answer, Mode};
use std::collections::BTreeMap;

/// The paper's steps of an AND, their shares in percent, and our steps of the same purpose.
const AND_STEPS: [(&str, f64, &[&str]); 3] = [
    ("decompression", AND[0], &["decode"]),
    ("intersection", AND[1], &["intersect"]),
    ("scoring and top-k", AND[2], &["weigh", "select"]),
];
/// The steps of an OR. The paper has 30 % for decompression and 48 % for scoring, which are one step here.
const OR_STEPS: [(&str, f64, &[&str]); 3] = [
    ("initialization", 9.0, &["clear"]),
    ("decompression and scoring", 78.0, &["accumulate"]),
    ("top-k", 13.0, &["gather", "select"]),
];

/// Checks the answers, and measures the mean microseconds of each step of a query by their traces.
pub fn measure(setup: &Setup, texts: &[String]) -> Result<Vec<Measurement>> {
    let mut rows = Vec::new();
    for mode in [Mode::And, Mode::Or] {
        let plans = setup.plan_by(algorithm_of(mode), texts, mode, K)?;
        let expected = setup.hits(&plans)?;
        // The first call grows the buffers of the device.
        setup.time_on_gpu(&plans, &expected)?;
        let answers = setup.executor()?.answer(&plans)?;
        check_answers("Lanner's GPU executor, step by step", &answers, &expected)?;
        for (step, us) in sums(&answers) {
            let row = Measurement::new("traced", &[("operation", &mode), ("step", &step)]);
            rows.push(row.with("queries", plans.len() as f64).with("us", us / plans.len() as f64));
        }
    }
    Ok(rows)
}

/// Returns the microseconds of each step over all answers.
fn sums(answers: &[Answer<Scored>]) -> BTreeMap<&'static str, f64> {
    let mut sums = BTreeMap::new();
    for step in answers.iter().flat_map(|answer| &answer.trace.steps) {
        *sums.entry(step.name).or_default() += step.duration.as_secs_f64() * 1e6;
    }
    sums
}

/// Makes the tables of whole ANDs and ORs.
pub fn tables(rows: &[Measurement]) -> [Table; 2] {
    [("AND", Mode::And, AND_STEPS), ("OR", Mode::Or, OR_STEPS)].map(|(name, mode, steps)| {
        let row_of = |step: &&str| find(rows, &[("operation", &mode), ("step", step)]);
        let us = |ours: &[&str]| ours.iter().filter_map(row_of).map(|row| row.value("us")).sum::<f64>();
        let sum = steps.iter().map(|(.., ours)| us(ours)).sum::<f64>();
        let columns = [&format!("step of an {name}"), "paper, %", "here, %", "us"];
        let mut table = Table::new(format!("Steps of whole {name}s on the GPU"), 1, &columns);
        for (step, paper, ours) in steps {
            table.numbers(step, [paper, us(ours) / sum * 100.0, us(ours)]);
        }
        table.numbers("sum", [100.0, 100.0, sum]);
        let queries = count(find_value(rows, &[("operation", &mode)], "queries") as u64);
        let algorithm = algorithm_of(mode);
        table.notes(&[&format!(
            "{queries} queries answered by `{algorithm}` on the lists of the index, which are packed by bitpack, not \
             by PForDelta, and some of which are bitmaps. If there are few keys, the CPU selects; its time is in the \
             last step."
        )])
    })
}
