//! Part `memory`: rates and times alone by where lists lie, after warming up with the other half of the log.
//!
//! A cache learns from every query, and a sample that is asked over and over soon has what it needs. So there are three
//! rates: of the very *first* pass over queries that the engine has not seen; of such passes with the other half of the
//! log before each (*apart*), which last long enough to be measured and come close to a log that never repeats; and of
//! passes one after the other (*again*).

use super::setup::{LABELS, Setup, hit_rate, lists_of, one_by_one, residency};
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::load::table;
use crate::experiments::placement::check_all_on_gpu;
use crate::load::{Pass, QuerySet};
use crate::plot::{Chart, Group};
use crate::result::{Measurement, find_value};
use crate::suite::Lists;
use crate::table::Table;
use lanner::Mode;

/// The halves of the log in one mode.
struct Halves {
    tuning: QuerySet,
    reporting: QuerySet,
    /// Bytes of the lists that the half for reporting reads.
    touched: u64,
}

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let mut rows = Vec::new();
    for mode in setup.modes() {
        let tuning = setup.answered(&setup.tuning, mode)?;
        let reporting = setup.answered(&setup.reporting, mode)?;
        let touched = lists_of(reporting.plans.iter()).values().sum();
        let halves = Halves { tuning, reporting, touched };
        let mut of_mode = Vec::new();
        for lists in setup.run.context.kept("lists", &setup.run.part.lists) {
            (setup.run.context.say)(&format!("{mode}, lists {lists}"));
            of_mode.push(measure(setup, &halves, lists, mode)?);
        }
        rows.extend(compared(of_mode));
    }
    let tables = [rate_table(setup, &rows), single_table(setup, &rows), memory_table(setup, &rows)];
    let chart = chart(setup, &rows);
    let mut findings = Findings::new(rows).chart("memory", chart);
    findings.tables.extend(tables);
    Ok(findings)
}

fn measure(setup: &Setup<'_>, halves: &Halves, lists: Lists, mode: Mode) -> Result<Measurement> {
    let part = setup.run.part;
    let engine = setup.engine(lists)?;
    let Halves { tuning, reporting, touched } = halves;
    setup.warm_up(&engine, tuning)?;
    let before = residency(&engine).cache;
    let first = Pass::over(&engine, reporting)?;
    let report = residency(&engine);
    let after = report.cache;

    let apart = first.and_more(part.seconds, || {
        Pass::over(&engine, tuning)?;
        Pass::over(&engine, reporting)
    })?;
    let again = Pass::over(&engine, reporting)?.and_more(part.seconds, || Pass::over(&engine, reporting))?;
    Pass::over(&engine, tuning)?;
    let row = setup.measurement("memory", mode, &[("lists", &lists)]);
    let row = one_by_one(&engine, reporting, part.single, row)?;
    check_all_on_gpu(&engine)?;

    // Only what is resident counts of the memory that is not limited.
    let held = if matches!(lists, Lists::Cached(_)) { report.memory_bytes } else { report.resident_bytes } as f64;
    Ok(row
        .with("queries", first.queries as f64)
        .with("first_a_second", first.rate())
        .with("apart_a_second", apart.rate())
        .with("apart_s", apart.seconds)
        .with("us_a_query", 1e6 / apart.rate())
        .with("again_a_second", again.rate())
        .with("hit_rate", hit_rate(&before, &after))
        .with("host_bytes_a_query", first.host_bytes as f64 / first.queries as f64)
        .with("uploaded_bytes_a_query", first.uploaded_bytes as f64 / first.queries as f64)
        .with("evictions", (after.evictions - before.evictions) as f64)
        .with("held_bytes", held)
        .with("memory_bytes", report.memory_bytes as f64)
        .with("resident_bytes", report.resident_bytes as f64)
        .with("registered_bytes", report.registered_bytes as f64)
        .with("touched_bytes", *touched as f64)
        .with("held_of_lists", held / setup.list_bytes as f64)
        .with("held_of_touched", held / *touched as f64))
}

/// Adds ratios to the row of resident lists, if there is one.
fn compared(rows: Vec<Measurement>) -> Vec<Measurement> {
    let resident = |name: &str| find_value(&rows, &[("lists", &Lists::Resident)], name);
    let [first, apart, again, p50] = ["first_a_second", "apart_a_second", "again_a_second", "p50_us"].map(resident);
    let of = |value: f64, resident: f64| Some(value / resident).filter(|ratio| ratio.is_finite());
    let compare = |row: &Measurement| {
        let rate = of(row.value("apart_a_second"), apart);
        row.clone()
            .with("first_x_resident", of(row.value("first_a_second"), first))
            .with("x_resident", rate)
            .with("missing", rate.map(|rate| 1.0 - rate))
            .with("again_x_resident", of(row.value("again_a_second"), again))
            .with("p50_x_resident", of(row.value("p50_us"), p50))
    };
    rows.iter().map(compare).collect()
}

fn rate_table(setup: &Setup<'_>, rows: &[Measurement]) -> Table {
    let figures = [
        ("first, queries/s", "first_a_second"),
        ("apart", "apart_a_second"),
        ("again", "again_a_second"),
        ("first, x resident", "first_x_resident"),
        ("apart", "x_resident"),
        ("again", "again_x_resident"),
    ];
    table("Rates by where lists lie", rows, &LABELS, &figures).notes(&[&format!(
        "Streams from plans, policy gpu. Before the first figure, the {} queries of the half for tuning are asked {} \
         times. First: one pass over the {} queries of the other half, which the engine has not seen. Apart: such passes \
         with one over the half for tuning before each, at least {} s without these. Again: the same queries over and \
         over for as long, so that the cache has learnt them.",
        setup.tuning.len(),
        setup.run.part.warm_up,
        setup.reporting.len(),
        setup.run.part.seconds
    )])
}

fn single_table(setup: &Setup<'_>, rows: &[Measurement]) -> Table {
    let figures =
        [("mean, us", "mean_us"), ("p50", "p50_us"), ("p99", "p99_us"), ("p50, x resident", "p50_x_resident")];
    table("Queries one by one, by where lists lie", rows, &LABELS, &figures)
        .notes(&[&format!("{} queries of the half for reporting, after the half for tuning.", setup.run.part.single)])
}

fn memory_table(setup: &Setup<'_>, rows: &[Measurement]) -> Table {
    let shown = |row: &Measurement| {
        let in_units = [
            ("held_bytes", 1e-6),
            ("held_of_lists", 100.0),
            ("held_of_touched", 100.0),
            ("host_bytes_a_query", 1e-3),
            ("uploaded_bytes_a_query", 1e-3),
        ];
        in_units.into_iter().fold(row.clone(), |shown, (name, factor)| shown.with(name, factor * row.value(name)))
    };
    let figures = [
        ("memory, MB", "held_bytes"),
        ("% of all lists", "held_of_lists"),
        ("% of those asked for", "held_of_touched"),
        ("hit rate", "hit_rate"),
        ("kB per query read in host memory", "host_bytes_a_query"),
        ("uploaded", "uploaded_bytes_a_query"),
        ("evictions", "evictions"),
    ];
    let rows: Vec<Measurement> = rows.iter().map(shown).collect();
    table("Device memory for lists", &rows, &LABELS, &figures).notes(&[&format!(
        "In the first pass. Memory: of a cache, what it has; of others, what is resident. All lists have {} MB; those asked for \
         are the lists that the half for reporting reads, as a whole. The hit rate counts pieces of lists. What kernels \
         read in host memory is predicted; uploads have the rows of batches, too.",
        setup.list_bytes / 1_000_000
    )])
}

fn chart(setup: &Setup<'_>, rows: &[Measurement]) -> Chart {
    let modes = setup.modes();
    let lists = setup.run.context.kept("lists", &setup.run.part.lists);
    let group = |lists: &Lists| {
        let rate = |mode: &Mode| find_value(rows, &[("mode", mode), ("lists", lists)], "apart_a_second") / 1e3;
        Group::of_series(lists.to_string(), modes.iter().map(rate))
    };
    let subtitle = "thousand queries per second that the cache has not just seen; longer is better";
    let names: Vec<String> = modes.iter().map(|mode| mode.to_string().to_uppercase()).collect();
    Chart::new("Rates by where lists lie", subtitle, "thousand/s").series(&names).groups(lists.iter().map(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_with_resident_lists() {
        let row = |lists: Lists, rate: f64| {
            let row = Measurement::new("memory", &[("lists", &lists)]).with("apart_a_second", rate);
            row.with("p50_us", 1e3 / rate)
        };
        let rows = compared(vec![row(Lists::Resident, 100.0), row(Lists::Cached(40.0), 80.0)]);
        let values = |name: &str| rows.iter().map(|row| row.value(name)).collect::<Vec<_>>();
        assert_eq!((values("x_resident"), values("p50_x_resident")), (vec![1.0, 0.8], vec![1.0, 1.25]));
        let rows = compared(vec![row(Lists::Cached(40.0), 80.0)]);
        assert!(rows[0].value("x_resident").is_nan(), "there is nothing to compare with");
    }
}
