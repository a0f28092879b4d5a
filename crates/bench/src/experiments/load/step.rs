//! Part `step`: a load that rises and falls at once, and how long delays take to be normal again.

use super::open::{SEED, capacity_of};
use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{QUERIES, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::load::{Interval, OpenLoop, Phase, Way, intervals, poisson, recovery};
use crate::plot::{Line, LineChart};
use crate::result::Measurement;
use crate::table::number;
use lanner::{Engine, Policy};

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let engine = setup.engine(EngineOptions::new(Policy::Auto, setup.threads_beside_senders()))?;
    let (mut steps, mut by_interval, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for set in setup.first_log() {
        let found = measure(setup, &engine, set)?;
        steps.extend(steps_of(setup, set, &found));
        let name = set.set.questions.mode.to_string();
        let known = || found.iter().filter(|interval| interval.answered > 0);
        lines.push(Line::new(name.to_uppercase(), known().map(|interval| (interval.start_s, interval.p99_us))));
        by_interval.extend(known().map(|interval| {
            let row = set.measurement("interval", &[]);
            let row = row.with("start_s", interval.start_s).with("p99_us", interval.p99_us);
            row.with("answered", interval.answered as f64)
        }));
    }
    let figures = [("settled p99, us", "settled_us"), ("highest p99", "highest_us"), ("normal after, s", "recovery_s")];
    let labels = [&QUERIES[..], &["from", "to"]].concat();
    let interval_ms = setup.run.part.interval_ms;
    let table = table("Load steps, as shares of the capacity", &steps, &labels, &figures).notes(&[&format!(
        "99th percentiles of the delays of queries that arrived within {interval_ms} ms. Settled: the median of the second \
         half of a phase. Normal: three intervals in a row within twice that, and below {interval_ms} ms, with no two in a row \
         above it later in the first half. A phase that does not get there shows its whole length."
    )]);
    let subtitle = format!("99th percentile of each {interval_ms} ms, microseconds from arrival to answer");
    let loads: Vec<String> = setup.run.part.steps.iter().map(|step| number(100.0 * step[0])).collect();
    let title = format!("A load of {} % of the capacity", loads.join(", "));
    let chart = LineChart::logarithmic(title, subtitle, ["seconds", "us"]).linear().lines(lines);
    Ok(Findings::new([steps, by_interval].concat()).table(table).chart("step", chart))
}

/// Runs through all phases once.
fn measure(setup: &Setup<'_>, engine: &Engine, set: &LogSet) -> Result<Vec<Interval>> {
    let part = setup.run.part;
    setup.warm_up(engine, &set.set)?;
    let capacity = capacity_of(setup, engine, set)?;
    let phase = |&[share, seconds]: &[f64; 2]| Phase { rate: share * capacity, seconds };
    let arrivals = poisson(&part.steps.iter().map(phase).collect::<Vec<_>>(), 0, SEED);
    let open = OpenLoop { engine, queries: &set.set.queries, senders: part.senders, way: Way::Submit };
    let load = open.run(&arrivals)?;
    load.check(&set.set)?;
    Ok(intervals(&load, part.interval_ms / 1e3))
}

/// One row for each phase but the first.
fn steps_of(setup: &Setup<'_>, set: &LogSet, found: &[Interval]) -> Vec<Measurement> {
    let mut start = 0.0;
    let mut rows = Vec::new();
    for pair in setup.run.part.steps.windows(2) {
        let ([from, before_s], [to, seconds]) = (pair[0], pair[1]);
        start += before_s;
        let is_within = |interval: &&Interval| (start - 1e-9..start + seconds - 1e-9).contains(&interval.start_s);
        let phase: Vec<Interval> = found.iter().filter(is_within).copied().collect();
        let known: Vec<f64> = phase.iter().filter(|it| it.answered > 0).map(|it| it.p99_us).collect();
        let mut settled = known[known.len() / 2..].to_vec();
        settled.sort_by(f64::total_cmp);
        let row = set.measurement("step", &[("from", &from), ("to", &to)]);
        let row = row.with("settled_us", settled.get(settled.len() / 2).copied());
        let row = row.with("highest_us", known.iter().copied().reduce(f64::max));
        rows.push(row.with("recovery_s", recovery(&phase, setup.run.part.interval_ms / 1e3).unwrap_or(seconds)));
    }
    rows
}
