//! Part `policies`: `auto` against `cpu`, `gpu` and `best`, at light, medium and heavy load, with lists that are
//! resident, cached or uploaded.
//!
//! The loads are shares of the capacity of the weakest policy but one, so that at heavy load all policies but at most
//! one still answer as fast as queries arrive. The delays of a policy that cannot keep up say nothing but how long the
//! run was; such runs are marked, and not compared.

use super::open::at_rate;
use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{QUERIES, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::load::{ClosedLoop, Load, Way, with_delays};
use crate::result::{Label, Measurement};
use crate::statistics::Spread;
use crate::suite::Lists;
use crate::table::{Table, number};
use lanner::{Engine, Policy};

/// Names of loads.
const LOADS: [&str; 3] = ["light", "medium", "heavy"];
/// The labels that tell cells apart, in which policies are compared.
const CELL: [&str; 5] = ["log", "mode", "lists", "load", "by"];

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let mut rows = Vec::new();
    for lists in setup.run.context.kept("lists", &setup.run.part.lists) {
        let engines = engines(setup, lists)?;
        for set in setup.first_log() {
            (setup.run.context.say)(&format!("{}, lists {lists}", set.set.questions.mode));
            rows.extend(measure(setup, &engines, set, lists)?);
        }
    }
    let (shortest, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.kind == "shortest");
    let (capacities, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.kind == "capacity");
    let compared: Vec<Measurement> = [&rows, &shortest].into_iter().flat_map(|rows| compare(rows)).collect();
    let tables = [
        capacity_table(&capacities),
        policy_table(setup, "Policies under load: microseconds from arrival to answer", &rows),
        policy_table(setup, "The tenth of queries that the CPU answers fastest, at light load", &shortest),
        compared_table(&compared),
    ];
    let mut findings = Findings::new([capacities, rows, shortest, compared].concat());
    findings.tables.extend(tables);
    Ok(findings)
}

/// An engine for each policy.
fn engines(setup: &Setup<'_>, lists: Lists) -> Result<Vec<(Policy, Engine)>> {
    let (threads, queue) = (setup.threads_beside_senders(), Some(setup.run.part.queue));
    let policies = setup.run.context.kept("policy", &Policy::ALL).into_iter();
    policies.map(|policy| Ok((policy, setup.engine(EngineOptions { policy, threads, lists, queue })?))).collect()
}

fn measure(setup: &Setup<'_>, engines: &[(Policy, Engine)], set: &LogSet, lists: Lists) -> Result<Vec<Measurement>> {
    let (part, mut rows, mut capacities) = (setup.run.part, Vec::new(), Vec::new());
    for (policy, engine) in engines {
        setup.warm_up(engine, &set.set)?;
        let closed = ClosedLoop { engine, set: &set.set, length: setup.length() };
        // A queue of this length must not refuse the clients of the closed loop.
        let capacity = closed.submitted(part.senders, part.clients.min(part.queue))?.rate();
        rows.push(
            set.measurement("capacity", &[("lists", &lists), ("policy", policy)]).with("submitted_a_second", capacity),
        );
        capacities.push(capacity);
    }
    capacities.sort_by(f64::total_cmp);
    let reference = capacities[1.min(capacities.len() - 1)];
    for (load, share) in LOADS.into_iter().zip(part.loads) {
        let is_light = load == LOADS[0];
        for way in if is_light { vec![Way::Submit, Way::Search] } else { vec![Way::Submit] } {
            let by = if way == Way::Submit { "submit" } else { "search" };
            let mut turns = Vec::new();
            // Few queries arrive at light load, so that one run says little.
            for _ in 0..if is_light { part.repetitions } else { 1 } {
                for (policy, engine) in engines {
                    let found = at_rate(setup, (engine, set), (share * reference, part.run_s), way)?;
                    let labels: [Label<'_>; 4] = [("lists", &lists), ("load", &load), ("by", &by), ("policy", policy)];
                    let row = |kind| set.measurement(kind, &labels).with("offered_a_second", share * reference);
                    turns.push(found.add_to(row("policy")));
                    turns.extend(of_shortest(&found, set, row("shortest")).filter(|_| is_light));
                }
            }
            rows.extend(medians(turns));
        }
    }
    Ok(rows)
}

/// Of measurements with the same kind and labels, one with the medians of their values, in the order of the first.
fn medians(rows: Vec<Measurement>) -> Vec<Measurement> {
    let mut cells: Vec<Vec<Measurement>> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|cell| cell[0].is(&row.kind, &row.labels)) {
            Some(cell) => cell.push(row),
            None => cells.push(vec![row]),
        }
    }
    let median = |cell: Vec<Measurement>| {
        let names: Vec<String> = cell[0].values.keys().cloned().collect();
        let value = |name: &str| Spread::of(cell.iter().map(|row| row.value(name))).median;
        let values = names.into_iter().map(|name| (name.clone(), value(&name))).collect();
        Measurement { values, ..cell[0].clone() }
    };
    cells.into_iter().map(median).collect()
}

/// The delays of the shortest queries of a run, if it had any.
fn of_shortest(load: &Load, set: &LogSet, row: Measurement) -> Option<Measurement> {
    let delays = load.delays_us(|number| set.is_short[number % set.is_short.len()]);
    let (count, overloaded) = (delays.len(), f64::from(u8::from(load.is_overloaded())));
    (count > 0).then(|| with_delays(row, delays).with("queries", count as f64).with("is_overloaded", overloaded))
}

/// Compares `auto` with the best of the other policies in each cell.
pub fn compare(rows: &[Measurement]) -> Vec<Measurement> {
    let mut compared = Vec::new();
    let name = |row: &Measurement| CELL.map(|label| row.label(label).to_owned());
    for cell in rows.chunk_by(|one, other| name(one) == name(other)) {
        let Some(auto) = cell.iter().find(|row| row.label("policy") == "auto") else {
            continue;
        };
        let others = || cell.iter().filter(|row| row.label("policy") != "auto" && row.value("is_overloaded") != 1.0);
        let ratio = |value: &str| {
            let best = others().map(|row| row.value(value)).fold(f64::INFINITY, f64::min);
            (best.is_finite() && auto.value(value).is_finite()).then(|| auto.value(value) / best)
        };
        let labels: Vec<(&str, &dyn std::fmt::Display)> = auto
            .labels
            .iter()
            .filter(|(label, _)| *label != "policy")
            .map(|(label, value)| (label.as_str(), value as _))
            .collect();
        let row = Measurement::new("compared", &[&labels[..], &[("queries", &auto.kind)]].concat());
        compared.push(
            row.with("mean_x_best", ratio("mean_us"))
                .with("p50_x_best", ratio("p50_us"))
                .with("p99_x_best", ratio("p99_us")),
        );
    }
    compared
}

fn capacity_table(rows: &[Measurement]) -> Table {
    let labels = [&QUERIES[..], &["lists", "policy"]].concat();
    table(
        "Capacity of each policy: a closed loop from query text",
        rows,
        &labels,
        &[("queries/s", "submitted_a_second")],
    )
}

/// A row for each cell, with mean and 99th percentile of each policy.
fn policy_table(setup: &Setup<'_>, title: &str, rows: &[Measurement]) -> Table {
    let policies = setup.run.context.kept("policy", &Policy::ALL);
    let heads = policies.iter().flat_map(|policy| [format!("{policy}, mean"), "p50".to_owned(), "p99".to_owned()]);
    let columns: Vec<String> =
        CELL.iter().map(|&label| label.to_owned()).chain(["queries/s".to_owned()]).chain(heads).collect();
    let mut table = Table::new(title, CELL.len(), &columns);
    let name = |row: &Measurement| CELL.map(|label| row.label(label).to_owned());
    for cell in rows.chunk_by(|one, other| name(one) == name(other)) {
        let mut cells = cell[0].cells(&CELL, &["offered_a_second"]);
        for policy in &policies {
            let row = cell.iter().find(|row| row.label("policy") == policy.to_string());
            let mark = if row.is_some_and(|row| row.value("is_overloaded") == 1.0) { "*" } else { "" };
            let value = |name| row.map_or(f64::NAN, |row| row.value(name));
            cells.extend(["mean_us", "p50_us", "p99_us"].map(|name| format!("{}{mark}", number(value(name)))));
        }
        table.row(cells);
    }
    let [light, medium, heavy] = setup.run.part.loads.map(|share| number(100.0 * share));
    table.notes(&[
        &format!(
            "Loads: {light}, {medium} and {heavy} % of the capacity of the weakest policy but one. By submit: through the \
             queue of the engine; by search: on the thread that asks."
        ),
        &format!("At light load: medians of {} runs, in turns with the other policies.", setup.run.part.repetitions),
        "* Queries arrived faster than they were answered, or were refused: the delays depend on the length of the run.",
    ])
}

fn compared_table(rows: &[Measurement]) -> Table {
    let figures = [("mean", "mean_x_best"), ("p50", "p50_x_best"), ("p99", "p99_x_best")];
    let labels = [&CELL[..], &["queries"]].concat();
    table("Delays of auto, divided by the least of the other policies'", rows, &labels, &figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_cell_become_their_median() {
        let row = |policy: &str, mean: f64| Measurement::new("policy", &[("policy", &policy)]).with("mean_us", mean);
        let rows =
            [row("cpu", 3.0), row("gpu", 9.0), row("cpu", 1.0), row("gpu", 7.0), row("cpu", 2.0), row("gpu", 8.0)];
        assert_eq!(medians(rows.to_vec()), [row("cpu", 2.0), row("gpu", 8.0)]);
    }

    #[test]
    fn auto_is_compared_with_the_best_policy_that_keeps_up() {
        let row = |load: &str, policy: &str, mean: f64, is_overloaded: f64| {
            Measurement::new("policy", &[("load", &load), ("policy", &policy)])
                .with("mean_us", mean)
                .with("p99_us", 2.0 * mean)
                .with("is_overloaded", is_overloaded)
        };
        let rows = [
            row("light", "cpu", 40.0, 0.0),
            row("light", "auto", 22.0, 0.0),
            row("light", "gpu", 20.0, 0.0),
            row("heavy", "cpu", 10.0, 1.0),
            row("heavy", "gpu", 50.0, 0.0),
            row("heavy", "auto", 40.0, 0.0),
        ];
        let compared = compare(&rows);
        let ratios: Vec<(f64, f64)> =
            compared.iter().map(|row| (row.value("mean_x_best"), row.value("p99_x_best"))).collect();
        assert_eq!(ratios, [(1.1, 1.1), (0.8, 0.8)]);
        assert_eq!((compared[0].label("load"), compared[0].label("policy")), ("light", ""));
    }
}
