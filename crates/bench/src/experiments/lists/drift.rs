//! Part `drift`: the hot terms of the log change at once, and the cache follows.
//!
//! Lists are divided into two sides by a hash. A query belongs to a side if nearly all bytes of its lists do. So what is
//! hot on one side is hardly read on the other.

use super::setup::{LABELS, Setup, lists_of};
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::experiments::load::table;
use crate::experiments::placement::check_all_on_gpu;
use crate::load::{Pass, QuerySet};
use crate::plot::{Line, LineChart};
use crate::result::Measurement;
use crate::scale::random::mix;
use crate::statistics::Spread;
use crate::suite::Lists;
use crate::table::Table;
use lanner::internals::query::planner::Planner;
use lanner::{Mode, Plan, Query, SearchError};

/// A query belongs to a side if its lists there have at least this share of their bytes.
const SHARE: f64 = 0.9;
/// The share of the settled rate that counts as recovered.
const RECOVERED: f64 = 0.9;
/// The seed of the hash.
const SEED: u64 = 28;

/// What is asked before and after the change.
struct Sides {
    before: QuerySet,
    after: QuerySet,
}

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let (mut overlaps, mut rows, mut slices) = (Vec::new(), Vec::new(), Vec::new());
    let slice = setup.run.part.drift.slice;
    for mode in setup.modes() {
        let sides = Sides::of(setup, mode)?;
        overlaps.push(sides.describe(setup.measurement("overlap", mode, &[])));
        let mut rates_of = |lists: Lists| -> Result<Vec<f64>> {
            (setup.run.context.say)(&format!("{mode}, lists {lists}"));
            let rates = measure(setup, &sides, lists)?;
            slices.extend(rates.iter().zip(1..).map(|(rate, number)| {
                let row = setup.measurement("slice", mode, &[("lists", &lists)]);
                row.with("queries", (number * slice) as f64).with("queries_a_second", *rate)
            }));
            Ok(rates)
        };
        let resident = rates_of(Lists::Resident)?;
        for lists in setup.run.context.kept("lists", &setup.run.part.drift.lists) {
            let rates = rates_of(lists)?;
            rows.push(recovery(&rates, &resident, slice, setup.measurement("drift", mode, &[("lists", &lists)])));
        }
    }
    let tables = [recovery_table(setup, &rows), overlap_table(&overlaps)];
    let chart = chart(setup, &slices);
    let mut findings = Findings::new([overlaps, rows, slices].concat()).chart("drift", chart);
    findings.tables.extend(tables);
    Ok(findings)
}

impl Sides {
    /// Divides both halves of the log.
    fn of(setup: &Setup<'_>, mode: Mode) -> Result<Sides> {
        let planner = Planner::new(&setup.index);
        let mut sides = [Vec::new(), Vec::new()];
        for text in setup.reporting.iter().chain(&setup.tuning) {
            let plan = planner.plan(&Query::new(text).mode(mode)).map_err(SearchError::from)?;
            sides.iter_mut().zip([0, 1]).filter(|(_, side)| is_on(&plan, *side)).for_each(|(texts, _)| {
                texts.push(text.clone());
            });
        }
        let least = setup.run.part.drift.slice;
        if sides.iter().any(|texts| texts.len() < least) {
            return Err(BenchError::Usage(format!(
                "part drift needs {least} queries on each side; take a larger sample"
            )));
        }
        let [before, after] = sides.map(|texts| setup.answered(&texts, mode));
        Ok(Sides { before: before?, after: after? })
    }

    /// Adds the numbers of queries, and how many of the bytes that they read after the change were read before.
    fn describe(&self, row: Measurement) -> Measurement {
        let known = lists_of(self.before.plans.iter());
        let (mut shared, mut all) = (0, 0);
        for span in self.after.plans.iter().flat_map(|plan| plan.lists.iter()).map(|list| list.span) {
            all += span.bytes();
            shared += if known.contains_key(&(span.is_long, span.start)) { span.bytes() } else { 0 };
        }
        row.with("before", self.before.len() as f64)
            .with("after", self.after.len() as f64)
            .with("shared_percent", 100.0 * shared as f64 / all.max(1) as f64)
    }
}

/// Whether nearly all bytes of a plan's lists are on a side.
fn is_on(plan: &Plan, side: u64) -> bool {
    let bytes = |is_it: &dyn Fn(usize) -> bool| {
        let spans = plan.lists.iter().map(|list| list.span).filter(|span| is_it(span.start));
        spans.map(|span| span.bytes()).sum::<usize>() as f64
    };
    let all = bytes(&|_| true);
    all > 0.0 && bytes(&|start| mix(SEED, start as u64) & 1 == side) >= SHARE * all
}

/// The rates of slices after the change: medians of several turns.
fn measure(setup: &Setup<'_>, sides: &Sides, lists: Lists) -> Result<Vec<f64>> {
    let slice = setup.run.part.drift.slice;
    let mut turns = Vec::new();
    for _ in 0..setup.run.part.drift.turns {
        let engine = setup.engine(lists)?;
        setup.warm_up(&engine, &sides.before)?;
        let numbers = (0..sides.after.len() / slice).map(|number| slice * number..slice * (number + 1));
        let rates = numbers.map(|numbers| Ok(Pass::over_some(&engine, &sides.after, numbers)?.rate()));
        turns.push(rates.collect::<Result<Vec<f64>>>()?);
        check_all_on_gpu(&engine)?;
    }
    let rate = |number: usize| Spread::of(turns.iter().map(|turn: &Vec<f64>| turn[number])).median;
    Ok((0..turns[0].len()).map(rate).collect())
}

/// Adds rates relative to those with resident lists, since some slices have longer queries than others, and how many
/// queries it takes until the settled rate is back.
fn recovery(rates: &[f64], resident: &[f64], slice: usize, row: Measurement) -> Measurement {
    let relative: Vec<f64> = rates.iter().zip(resident).map(|(rate, resident)| rate / resident).collect();
    let last_third = rates.len() * 2 / 3;
    let median = |values: &[f64]| Spread::of(values[last_third..].iter().copied()).median;
    let settled = median(&relative);
    let is_back = |pair: &[f64]| (pair[0] + pair[1]) / 2.0 >= RECOVERED * settled;
    let recovered = relative.windows(2).position(is_back);
    let queries = recovered.map_or(rates.len(), |number| number + 1) * slice;
    row.with("first_x_resident", relative[0])
        .with("lowest_x_resident", relative.iter().copied().reduce(f64::min))
        .with("settled_x_resident", settled)
        .with("settled_a_second", median(rates))
        .with("recovery_queries", queries as f64)
}

fn recovery_table(setup: &Setup<'_>, rows: &[Measurement]) -> Table {
    let figures = [
        ("first slice, x resident", "first_x_resident"),
        ("lowest", "lowest_x_resident"),
        ("settled", "settled_x_resident"),
        ("settled, queries/s", "settled_a_second"),
        ("queries until 0.9 x settled", "recovery_queries"),
    ];
    let part = setup.run.part;
    table("Other hot terms at once", rows, &LABELS, &figures).notes(&[&format!(
        "Slices of {} queries that the engine has not seen, each a stream of its own; medians of {} turns, each with a new \
         engine that was asked the queries from before the change {} times. Settled: the median of the last third of the \
         slices. The rate is back with the first slice that reaches 0.9 of it, on average with the next.",
        part.drift.slice, part.drift.turns, part.warm_up
    )])
}

fn overlap_table(rows: &[Measurement]) -> Table {
    let figures = [("queries before", "before"), ("after", "after"), ("% of bytes shared", "shared_percent")];
    table("Queries before and after the change", rows, &["mode"], &figures).notes(&[
        "Of both halves of the log, the queries with nine tenths of the bytes of their lists on one side. Shared: of the \
         bytes of lists that queries after the change name, those of lists that queries before it named.",
    ])
}

fn chart(setup: &Setup<'_>, slices: &[Measurement]) -> LineChart {
    let name = |row: &Measurement| LABELS.map(|label| row.label(label).to_owned());
    let lines = slices.chunk_by(|one, other| name(one) == name(other)).map(|rows| {
        let [mode, lists] = name(&rows[0]);
        let point = |row: &Measurement| (row.value("queries"), row.value("queries_a_second") / 1e3);
        Line::new(format!("{} {lists}", mode.to_uppercase()), rows.iter().map(point))
    });
    let slice = setup.run.part.drift.slice;
    let subtitle = format!("thousand queries per second in slices of {slice} after the change; higher is better");
    LineChart::new("Other hot terms at once", subtitle, ["queries", "thousand/s"]).linear().lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_back_with_two_slices() {
        let resident = [100.0, 200.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 200.0];
        let values = |relative: &[f64]| {
            let rates: Vec<f64> =
                relative.iter().zip(resident).map(|(relative, resident)| relative * resident).collect();
            let row = recovery(&rates, &resident, 500, Measurement::default());
            ["settled_x_resident", "recovery_queries", "lowest_x_resident"].map(|name| row.value(name))
        };
        assert_eq!(values(&[0.25, 0.25, 0.5, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5]), [0.5, 2500.0, 0.25]);
        assert_eq!(values(&[0.5; 9]), [0.5, 500.0, 0.5]);
        assert_eq!(values(&[0.125]), [0.125, 500.0, 0.125]);
    }
}
