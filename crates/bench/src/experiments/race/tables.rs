//! Tables and charts of the times of a race, with ratios and their limits.

use super::{Cell, Findings, QuerySet, Race};
use crate::plot::{Bar, Chart, Group};
use crate::result::Measurement;
use crate::statistics::mean;
use crate::suite::RaceEngine;
use crate::table::{DASH, Table, number};

/// The engines that are compared with the peers.
const LANNER: [RaceEngine; 2] = [RaceEngine::Lanner, RaceEngine::LannerBisected];
/// The peers; `tantivy` is the faster of its two sources of external ids.
const PEERS: [&str; 3] = ["pisa-net", "tantivy", "bm25s"];
/// The engines in charts, in the order of their colours.
const CHARTED: [&str; 5] = ["lanner", "tantivy-ids-in-memory", "pisa-net", "bm25s", "lanner-bisected"];

/// Tables and charts of one collection.
pub fn run(race: &Race<'_>, collection: &str, sets: &[QuerySet], rows: Vec<Measurement>) -> Findings {
    let ratios: Vec<Measurement> =
        rows.iter().filter(|row| is_lanner(row)).flat_map(|row| ratios(row, &rows)).collect();
    let mut findings = Findings::default().table(ratio_table(race, collection, &rows, &ratios));
    for set in sets {
        let of_set: Vec<&Measurement> = rows.iter().filter(|row| row.label("log") == set.name).collect();
        let chart = chart(collection, set, &race.cells(), &of_set);
        findings = findings
            .table(time_table(race, collection, set, &of_set))
            .chart(format!("{collection}-{}", set.name), chart);
    }
    findings.measurements.extend(rows);
    findings.measurements.extend(ratios);
    findings
}

fn is_lanner(row: &Measurement) -> bool {
    LANNER.iter().any(|engine| engine.to_string() == row.label("engine"))
}

fn is_same_cell(one: &Measurement, other: &Measurement) -> bool {
    ["log", "mode", "k"].iter().all(|name| one.label(name) == other.label(name))
}

/// Returns the times of a row divided by those of every peer in the same cell.
fn ratios(row: &Measurement, rows: &[Measurement]) -> Vec<Measurement> {
    let figure = |peer: &str, value: &str| {
        let is_peer = |other: &&Measurement| {
            let engine = other.label("engine");
            is_same_cell(row, other) && (engine == peer || (peer == "tantivy" && engine.starts_with("tantivy")))
        };
        rows.iter().filter(is_peer).map(|other| other.value(value)).fold(f64::NAN, f64::min)
    };
    let ratio = |peer: &&str| {
        let mut measurement = Measurement { kind: "ratio".to_owned(), ..row.clone() };
        measurement.labels.insert("peer".to_owned(), (*peer).to_owned());
        measurement.values.clear();
        let values = ["mean", "p50", "p95", "p99"].map(|name| {
            let value = format!("{name}_us");
            (name, row.value(&value) / figure(peer, &value))
        });
        let known = values.iter().filter(|(_, ratio)| !ratio.is_nan());
        known.fold(measurement, |measurement, (name, ratio)| measurement.with(name, *ratio))
    };
    PEERS.iter().map(ratio).filter(|measurement| !measurement.values.is_empty()).collect()
}

/// A table with one row for each cell, engine of Lanner and peer.
fn ratio_table(race: &Race<'_>, collection: &str, rows: &[Measurement], ratios: &[Measurement]) -> Table {
    let labels = ["log", "mode", "k", "engine", "peer"];
    let figures = ["mean us", "peer's", "ratio", "p99 us", "peer's", "ratio", "at most", "holds"];
    let title = format!("{collection}: Lanner's times divided by those of the peers");
    let mut table = Table::new(title, 5, &[&labels[..], &figures].concat());
    for ratio in ratios {
        let is_row = |row: &&Measurement| is_same_cell(row, ratio) && row.label("engine") == ratio.label("engine");
        let Some(row) = rows.iter().find(is_row) else { continue };
        let mut cells: Vec<String> = labels.map(|name| ratio.label(name).to_owned()).to_vec();
        for name in ["mean", "p99"] {
            let (us, x) = (row.value(&format!("{name}_us")), ratio.value(name));
            cells.extend([us, us / x, x].map(number));
        }
        let limit = |name| race.context.suite.limit(ratio, name);
        let limits = ["mean", "p99"].map(|name| (name.to_owned(), ratio.value(name), limit(name)));
        cells.push(limits[0].2.map_or(DASH.to_owned(), number));
        cells.push(holds(&limits));
        table.row(cells);
    }
    table.notes(&[
        "pisa-net is the best of PISA's algorithms minus the overhead of its Python binding. PISA has the documents in \
         the given order, also where Lanner's are bisected. tantivy is the faster of its two sources of external \
         ids.",
    ])
}

/// Returns whether all values (name, value, limit) meet their limits, with the names of those that do not; a dash if
/// there is no limit or no value.
pub fn holds(figures: &[(String, f64, Option<f64>)]) -> String {
    let known = figures.iter().filter_map(|(name, value, limit)| Some((name, *value, (*limit)?)));
    let limits: Vec<(&String, bool)> =
        known.filter(|(_, value, _)| !value.is_nan()).map(|(name, value, limit)| (name, value <= limit)).collect();
    let broken: Vec<&str> = limits.iter().filter(|(_, is_met)| !is_met).map(|(name, _)| name.as_str()).collect();
    match (limits.len(), broken.len()) {
        (0, _) => DASH.to_owned(),
        (_, 0) => "yes".to_owned(),
        _ => format!("NO: {}", broken.join(", ")),
    }
}

fn time_table(race: &Race<'_>, collection: &str, set: &QuerySet, rows: &[&Measurement]) -> Table {
    let title = format!("{collection}, {}: time of a query in microseconds, one thread", set.name);
    let columns =
        ["mode", "k", "engine", "algorithm", "mean", "p50", "p95", "p99", "runs", "mean of a run: least", "most"];
    let mut table = Table::new(title, 4, &columns);
    for row in rows {
        let values = ["mean_us", "p50_us", "p95_us", "p99_us", "runs", "mean_least_us", "mean_most_us"];
        let mut cells = row.cells(&columns[..4], &values);
        cells[8] = row.value("runs").to_string();
        table.row(cells);
    }
    let terms = number(mean(set.terms.iter().map(|terms| terms.len() as f64)));
    let (queries, runs) = (set.terms.len(), race.part.repetitions);
    table.notes(&[&format!(
        "{queries} queries with {terms} terms on average, exact, up to {runs} alternating runs of each engine."
    )])
}

fn chart(collection: &str, set: &QuerySet, cells: &[Cell], rows: &[&Measurement]) -> Chart {
    let is_there = |engine: &&&str| rows.iter().any(|row| row.label("engine") == **engine);
    let series: Vec<&str> = CHARTED.iter().filter(is_there).copied().collect();
    let groups = cells.iter().map(|(mode, k)| {
        let of_cell =
            rows.iter().filter(|row| row.label("mode") == mode.to_string() && row.label("k") == k.to_string());
        let bar = |row: &&Measurement| {
            let series = series.iter().position(|engine| *engine == row.label("engine"))?;
            Some(Bar::new(series, row.value("mean_us")))
        };
        let mut bars: Vec<Bar> = of_cell.filter_map(bar).collect();
        bars.sort_by_key(|bar| bar.series);
        Group::new(format!("{} k {k}", mode.to_string().to_uppercase()), bars)
    });
    let title = format!("Time of a query, {collection}, {}", set.name);
    Chart::new(title, "mean microseconds, one thread; shorter is better", "us").series(&series).groups(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_not_met_is_named() {
        let figures = |mean, p99, limit| [("mean".to_owned(), mean, limit), ("p99".to_owned(), p99, limit)];
        assert_eq!(holds(&figures(0.4, 0.3, Some(0.45))), "yes");
        assert_eq!(holds(&figures(0.4, 0.5, Some(0.45))), "NO: p99");
        assert_eq!(holds(&figures(0.4, 0.5, None)), "–");
        assert_eq!(holds(&figures(f64::NAN, f64::NAN, Some(0.45))), "–");
    }
}
