//! Tables and charts of the times of a race, with ratios and their limits.

use super::queries::QuerySet;
use super::{Cell, Findings, Race};
use crate::plot::{Bar, Chart, Group};
use crate::result::Measurement;
use crate::statistics::mean;
use crate::suite::{AnswerKind, RaceEngine};
use crate::table::{DASH, Table, number};

/// The engines that are compared with the peers.
const LANNER: [RaceEngine; 2] = [RaceEngine::Lanner, RaceEngine::LannerBisected];
/// The peers; `tantivy` is the faster of its two sources of external ids.
const PEERS: [&str; 4] = ["pisa-net", "lucene", "tantivy", "bm25s"];
/// The peers of which the fastest in each figure is [`BEST`].
const CONTENDERS: [&str; 3] = ["pisa-net", "lucene", "tantivy"];
const BEST: &str = "best";
/// The engines in charts, in the order of their colours.
const CHARTED: [&str; 7] =
    ["lanner", "tantivy", "pisa-net", "bm25s", "lanner-bisected", "lucene", "tantivy-ids-in-memory"];

/// Tables and charts of one collection. Charts show the first kind of answers.
pub fn run(race: &Race<'_>, collection: &str, sets: &[QuerySet], rows: Vec<Measurement>) -> Findings {
    let mut findings = Findings::default();
    for (number, answer) in race.answers().into_iter().enumerate() {
        let of_answer: Vec<&Measurement> =
            rows.iter().filter(|row| row.label("answer") == answer.to_string()).collect();
        let lanner = of_answer.iter().filter(|row| is_lanner(row));
        let ratios: Vec<Measurement> = lanner.flat_map(|row| ratios(row, &of_answer, sets)).collect();
        findings = findings.table(ratio_table(race, (collection, answer), &of_answer, &ratios));
        for set in sets {
            let is_whole = |row: &Measurement| row.label("log") == set.name && row.label("terms") == set.whole();
            let of_set: Vec<&Measurement> = of_answer.iter().copied().filter(|row| is_whole(row)).collect();
            findings = findings.table(time_table(race, (collection, answer), set, &of_set));
            if number == 0 {
                let chart = chart((collection, answer), set, &race.cells(answer), &of_set);
                findings = findings.chart(format!("{collection}-{}", set.name), chart);
            }
        }
        findings.measurements.extend(ratios);
    }
    findings.measurements.extend(rows);
    findings
}

/// What a query is timed to, in titles.
fn goal(answer: AnswerKind) -> &'static str {
    match answer {
        AnswerKind::Documents => "to document numbers",
        AnswerKind::Ids => "to external ids",
    }
}

fn is_lanner(row: &Measurement) -> bool {
    LANNER.iter().any(|engine| engine.to_string() == row.label("engine"))
}

fn is_same_cell(one: &Measurement, other: &Measurement) -> bool {
    ["log", "mode", "k", "terms"].iter().all(|name| one.label(name) == other.label(name))
}

/// Returns the times of a row divided by those of every peer in the same cell, and by those of the best. A class of
/// queries is compared only with the best.
fn ratios(row: &Measurement, rows: &[&Measurement], sets: &[QuerySet]) -> Vec<Measurement> {
    let is_whole = sets.iter().any(|set| set.name == row.label("log") && set.whole() == row.label("terms"));
    let peers = if is_whole { &PEERS[..] } else { &[] };
    let mut ratios: Vec<Measurement> = peers.iter().map(|peer| ratio(row, rows, (peer, &[peer]))).collect();
    ratios.push(ratio(row, rows, (BEST, &CONTENDERS)));
    ratios.retain(|ratio| !ratio.values.is_empty());
    ratios
}

/// Returns the times of a row divided by the lowest of some peers, for each figure.
fn ratio(row: &Measurement, rows: &[&Measurement], (name, peers): (&str, &[&str])) -> Measurement {
    let is_peer = |engine: &str| {
        peers.iter().any(|peer| engine == *peer || (*peer == "tantivy" && engine == "tantivy-ids-in-memory"))
    };
    let others: Vec<&&Measurement> =
        rows.iter().filter(|other| is_same_cell(row, other) && is_peer(other.label("engine"))).collect();
    let mut measurement = Measurement { kind: "ratio".to_owned(), ..row.clone() };
    measurement.values.clear();
    measurement.labels.insert("peer".to_owned(), name.to_owned());
    let fastest = others.iter().min_by(|one, other| one.value("mean_us").total_cmp(&other.value("mean_us")));
    if let (BEST, Some(fastest)) = (name, fastest) {
        measurement.labels.insert("fastest".to_owned(), fastest.label("engine").to_owned());
    }
    let values = ["mean", "p50", "p95", "p99"].map(|name| {
        let value = format!("{name}_us");
        (name, row.value(&value) / others.iter().map(|other| other.value(&value)).fold(f64::NAN, f64::min))
    });
    let known = values.iter().filter(|(_, ratio)| !ratio.is_nan());
    known.fold(measurement, |measurement, (name, ratio)| measurement.with(name, *ratio))
}

/// A table with one row for each cell, engine of Lanner and peer.
fn ratio_table(
    race: &Race<'_>,
    (collection, answer): (&str, AnswerKind),
    rows: &[&Measurement],
    ratios: &[Measurement],
) -> Table {
    let labels = ["log", "mode", "k", "terms", "engine", "peer"];
    let figures = ["mean us", "peer's", "ratio", "p99 us", "peer's", "ratio", "at most", "holds"];
    let title = format!("{collection}: Lanner's times divided by those of the peers, {}", goal(answer));
    let mut table = Table::new(title, labels.len(), &[&labels[..], &figures].concat());
    for ratio in ratios {
        let is_row = |row: &&&Measurement| is_same_cell(row, ratio) && row.label("engine") == ratio.label("engine");
        let Some(row) = rows.iter().find(is_row) else { continue };
        let mut cells: Vec<String> = labels.map(|name| ratio.label(name).to_owned()).to_vec();
        if let Some(fastest) = ratio.labels.get("fastest") {
            cells[labels.len() - 1] = format!("{BEST}: {fastest}");
        }
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
    let about_ids = match answer {
        AnswerKind::Documents => "External ids are left out, except in PISA, whose binding has no other answers.",
        AnswerKind::Ids => "tantivy is the faster of its two sources of external ids.",
    };
    table.notes(&[
        "pisa-net is the best of PISA's algorithms minus the overhead of its Python binding. PISA and Lucene have the \
         documents in the given order, also where Lanner's are bisected.",
        about_ids,
        "best is the lowest of pisa-net, lucene and tantivy for each figure; the one named has the lowest mean. With few \
         queries in a class, its p99 is close to the maximum.",
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

fn time_table(
    race: &Race<'_>,
    (collection, answer): (&str, AnswerKind),
    set: &QuerySet,
    rows: &[&Measurement],
) -> Table {
    let title = format!("{collection}, {}: time of a query in microseconds, one thread, {}", set.name, goal(answer));
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

fn chart((collection, answer): (&str, AnswerKind), set: &QuerySet, cells: &[Cell], rows: &[&Measurement]) -> Chart {
    let is_there = |engine: &&&str| rows.iter().any(|row| row.label("engine") == **engine);
    let series: Vec<&str> = CHARTED.iter().filter(is_there).copied().collect();
    let groups = cells.iter().map(|Cell { mode, k, .. }| {
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
    let title = format!("Time of a query {}, {collection}, {}", goal(answer), set.name);
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
