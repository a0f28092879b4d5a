//! The times of a race as tables and charts, with the ratios that are claimed.

use super::{Cell, Findings, QuerySet, Race};
use crate::plot::{Bar, Chart, Group, Picture};
use crate::result::Measurement;
use crate::suite::RaceEngine;
use crate::table::{Table, number};

/// Engines whose times are compared with the peers'.
const OURS: [RaceEngine; 2] = [RaceEngine::Lanner, RaceEngine::LannerBisected];
/// What they are compared with; `tantivy` is the faster of its two ways to external ids.
const PEERS: [&str; 3] = ["pisa-net", "tantivy", "bm25s"];
/// What charts show, in the order of the colours.
const CHARTED: [&str; 5] = ["lanner", "tantivy-ids-in-memory", "pisa-net", "bm25s", "lanner-bisected"];

/// Tables and charts of one collection.
pub fn run(race: &Race<'_>, collection: &str, sets: &[QuerySet], rows: Vec<Measurement>) -> Findings {
    let mut findings = Findings::default();
    let ratios: Vec<Measurement> = rows.iter().filter(|row| is_ours(row)).flat_map(|row| ratios(row, &rows)).collect();
    findings.tables.push(ratio_table(race, collection, &rows, &ratios));
    for set in sets {
        let of_set: Vec<&Measurement> = rows.iter().filter(|row| row.label("log") == set.name).collect();
        findings.tables.push(time_table(race, collection, set, &of_set));
        let chart = Picture::Bars(chart(collection, set, &race.cells(), &of_set));
        findings.charts.push((format!("{collection}-{}", set.name), chart));
    }
    findings.measurements.extend(rows);
    findings.measurements.extend(ratios);
    findings
}

fn is_ours(row: &Measurement) -> bool {
    OURS.iter().any(|engine| engine.to_string() == row.label("engine"))
}

fn is_same_cell(one: &Measurement, other: &Measurement) -> bool {
    ["log", "mode", "k"].iter().all(|name| one.label(name) == other.label(name))
}

/// The times of one of our rows, divided by those of every peer in the same cell.
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

/// One row for each of our engines and peers in each cell.
fn ratio_table(race: &Race<'_>, collection: &str, rows: &[Measurement], ratios: &[Measurement]) -> Table {
    let labels = ["log", "mode", "k", "engine", "peer"];
    let figures = ["mean us", "the peer's", "ratio", "p99 us", "the peer's", "ratio", "at most", "holds"];
    let mut table =
        Table::new(format!("{collection}: our times divided by the peers'"), 5, &[&labels[..], &figures].concat());
    for ratio in ratios {
        let is_row = |row: &&Measurement| is_same_cell(row, ratio) && row.label("engine") == ratio.label("engine");
        let Some(row) = rows.iter().find(is_row) else { continue };
        let mut cells: Vec<String> = labels.map(|name| ratio.label(name).to_owned()).to_vec();
        for name in ["mean", "p99"] {
            let (ours, x) = (row.value(&format!("{name}_us")), ratio.value(name));
            cells.extend([ours, ours / x, x].map(number));
        }
        let claims = ["mean", "p99"].map(|name| (name.to_owned(), ratio.value(name), race.suite.limit(ratio, name)));
        cells.push(claims[0].2.map_or("–".to_owned(), number));
        cells.push(holds(&claims));
        table.row(cells);
    }
    let net = "pisa-net is the best of PISA's algorithms net of its binding's overhead; PISA has the documents as given, \
               also where ours are in bisected order. tantivy is the faster of its two ways to external ids.";
    table.notes = vec![net.to_owned()];
    table
}

/// Whether figures are as small as is claimed, by name where one is not; a dash where nothing is claimed or measured.
pub fn holds(figures: &[(String, f64, Option<f64>)]) -> String {
    let known = figures.iter().filter_map(|(name, value, limit)| Some((name, *value, (*limit)?)));
    let claims: Vec<(&String, bool)> =
        known.filter(|(_, value, _)| !value.is_nan()).map(|(name, value, limit)| (name, value <= limit)).collect();
    let broken: Vec<&str> = claims.iter().filter(|(_, is_met)| !is_met).map(|(name, _)| name.as_str()).collect();
    match (claims.len(), broken.len()) {
        (0, _) => "–".to_owned(),
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
        let labels = ["mode", "k", "engine", "algorithm"].map(|name| row.label(name).to_owned());
        let values = ["mean_us", "p50_us", "p95_us", "p99_us", "runs", "mean_least_us", "mean_most_us"];
        let values =
            values.map(|name| if name == "runs" { row.value(name).to_string() } else { number(row.value(name)) });
        table.row(labels.into_iter().chain(values).collect());
    }
    let terms = set.terms.iter().map(Vec::len).sum::<usize>() as f64 / set.terms.len().max(1) as f64;
    table.notes = vec![format!(
        "{} queries of {} terms on average, exact, the engines in turns, up to {} runs each.",
        set.terms.len(),
        number(terms),
        race.part.repetitions
    )];
    table
}

fn chart(collection: &str, set: &QuerySet, cells: &[Cell], rows: &[&Measurement]) -> Chart {
    let is_raced = |engine: &&&str| rows.iter().any(|row| row.label("engine") == **engine);
    let series: Vec<&str> = CHARTED.iter().filter(is_raced).copied().collect();
    let groups = cells.iter().map(|(mode, k)| {
        let of_cell =
            rows.iter().filter(|row| row.label("mode") == mode.to_string() && row.label("k") == k.to_string());
        let bar = |row: &&Measurement| {
            let series = series.iter().position(|engine| *engine == row.label("engine"))?;
            Some(Bar { series, value: row.value("mean_us"), range: None })
        };
        let mut bars: Vec<Bar> = of_cell.filter_map(bar).collect();
        bars.sort_by_key(|bar| bar.series);
        Group { label: format!("{} k {k}", mode.to_string().to_uppercase()), bars }
    });
    Chart {
        title: format!("Time of a query, {collection}, {}", set.name),
        subtitle: "mean microseconds, one thread; shorter is better".to_owned(),
        series: series.iter().map(|&name| name.to_owned()).collect(),
        unit: "us".to_owned(),
        groups: groups.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_does_not_hold_is_named() {
        let figures = |mean, p99, limit| [("mean".to_owned(), mean, limit), ("p99".to_owned(), p99, limit)];
        assert_eq!(holds(&figures(0.4, 0.3, Some(0.45))), "yes");
        assert_eq!(holds(&figures(0.4, 0.5, Some(0.45))), "NO: p99");
        assert_eq!(holds(&figures(0.4, 0.5, None)), "–");
        assert_eq!(holds(&figures(f64::NAN, f64::NAN, Some(0.45))), "–");
    }
}
