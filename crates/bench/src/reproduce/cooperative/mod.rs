//! Wu et al., CPU-GPU cooperative computing: Figures 3 to 8, batches of intersections by PARA and PART.

mod batches;

pub use batches::measure;

use super::{Entry, Reproduction, Side};
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Line, LineChart, Picture};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use batches::{OURS, PARA, PART};

/// Figures 3 and 4, of which the text gives: the throughput that PARA comes to, queries a second; that it grows slowly
/// from a B of 128 on; and that a batch takes at most 10 ms below a B of 256.
const PAPER_QUERIES_A_SECOND: f64 = 30_000.0;
/// The thresholds whose batches Figures 7 and 8 show here; in the paper the former has 513 queries a batch.
const FLUCTUATION_B: u32 = 256;
const SHARES_B: u32 = 128;
/// Queries of a batch in Figure 8.
const PAPER_BATCH: f64 = 260.0;
/// Table II, one card, B of 128: milliseconds of kernels, transfer and CPU for all batches of PARA.
const TABLE_II: [f64; 3] = [299.15, 25.85, 11.93];
const SHARES: [&str; 3] = ["kernel", "transfer", "CPU"];

/// What of this paper can be reproduced.
pub fn entries() -> Vec<Entry> {
    let entry = |name, title, run| Entry { name, title, side: Side::Gpu, targets: Vec::new(), run };
    vec![
        entry("cooperative/figure3", "throughput of PARA by the computation threshold", figure_3),
        entry("cooperative/figure4", "response time of PARA by the computation threshold", figure_4),
        entry("cooperative/figure5", "response time of PART and PARA by the size of batches", figure_5),
        entry("cooperative/figure6", "throughput of PART and PARA by the size of batches", figure_6),
        entry("cooperative/figure7", "fluctuation of response times of PART and PARA", figure_7),
        entry("cooperative/figure8", "shares of transfer, kernel and CPU of PART and PARA", figure_8),
    ]
}

/// What stands on one axis over the other.
struct Curve {
    title: &'static str,
    /// The column of the table and the axis of the plot: the threshold, or the size of batches.
    x: (&'static str, &'static str),
    y: (&'static str, &'static str),
    algorithms: &'static [&'static str],
    note: String,
}

fn figure_3(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let curve = Curve {
        title: "Queries a second by the computation threshold",
        x: ("threshold", "B: thread blocks for each multiprocessor"),
        y: ("queries_a_second", "/s"),
        algorithms: &[PARA, OURS],
        note: format!(
            "The paper: PARA comes to about {} queries a second on a Tesla C1060, and grows slowly from a B of 128 on.",
            count(PAPER_QUERIES_A_SECOND as u64)
        ),
    };
    findings(reproduction, &curve)
}

fn figure_4(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let curve = Curve {
        title: "Response time by the computation threshold",
        x: ("threshold", "B: thread blocks for each multiprocessor"),
        y: ("response_ms", "ms"),
        algorithms: &[PARA, OURS],
        note: "The paper: at most 10 ms below a B of 256, and sharply more above.".to_owned(),
    };
    findings(reproduction, &curve)
}

const OF_SIZES: &str = "The paper's figure has no numbers in its text, which says that PARA is far ahead of PART, and that PART \
    still grows with batches of more than 513 queries where PARA does not.";

fn figure_5(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let curve = Curve {
        title: "Response time by the average size of batches",
        x: ("batch_size", "queries in a batch on average"),
        y: ("response_ms", "ms"),
        algorithms: &[PARA, PART, OURS],
        note: OF_SIZES.to_owned(),
    };
    findings(reproduction, &curve)
}

fn figure_6(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let curve = Curve {
        title: "Queries a second by the average size of batches",
        x: ("batch_size", "queries in a batch on average"),
        y: ("queries_a_second", "/s"),
        algorithms: &[PARA, PART, OURS],
        note: OF_SIZES.to_owned(),
    };
    findings(reproduction, &curve)
}

fn of<'a>(rows: &'a [Measurement], algorithm: &str, threshold: f64) -> Option<&'a Measurement> {
    let is_meant = |row: &&Measurement| {
        row.kind == "batches" && row.label("algorithm") == algorithm && row.value("threshold") == threshold
    };
    rows.iter().find(is_meant)
}

/// A curve as a table and a plot.
fn findings(reproduction: &Reproduction<'_>, curve: &Curve) -> Result<Findings, BenchError> {
    let rows: Vec<Measurement> = reproduction
        .batches()?
        .iter()
        .filter(|row| row.kind == "batches" && curve.algorithms.contains(&row.label("algorithm")))
        .cloned()
        .collect();
    let columns: Vec<&str> =
        ["B", "batches", "queries a batch"].into_iter().chain(curve.algorithms.iter().copied()).collect();
    let mut table = Table::new(curve.title, 1, &columns);
    // Where PART takes part, only thresholds at which it does.
    let is_complete = |row: &&Measurement| {
        curve.algorithms.iter().all(|algorithm| of(&rows, algorithm, row.value("threshold")).is_some())
    };
    let firsts: Vec<&Measurement> =
        rows.iter().filter(|row| row.label("algorithm") == PARA).filter(is_complete).collect();
    for first in &firsts {
        let value = |algorithm: &&str| of(&rows, algorithm, first.value("threshold")).map(|row| row.value(curve.y.0));
        let values = curve.algorithms.iter().map(|algorithm| number(value(algorithm).unwrap_or(f64::NAN)));
        let counts = ["threshold", "batches"].map(|name| count(first.value(name) as u64));
        let head = counts.into_iter().chain([number(first.value("batch_size"))]);
        table.row(head.chain(values).collect());
    }
    table.notes = vec![curve.note.clone(), batches::note(reproduction.ground()?, &rows)];
    let line = |algorithm: &&'static str| {
        let point = |first: &&Measurement| {
            let row = of(&rows, algorithm, first.value("threshold"))?;
            Some((first.value(curve.x.0).max(1.0), row.value(curve.y.0)))
        };
        let mut points: Vec<(f64, f64)> = firsts.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line { label: (*algorithm).to_owned(), points }
    };
    let chart = LineChart {
        title: curve.title.to_owned(),
        subtitle: "host to host; see the table for what each of them does".to_owned(),
        x_label: curve.x.1.to_owned(),
        unit: curve.y.1.to_owned(),
        is_logarithmic: curve.y.1 == "ms",
        lines: curve.algorithms.iter().map(line).collect(),
    };
    let ending = if curve.y.1 == "ms" { "response" } else { "throughput" };
    Ok(Findings { tables: vec![table], charts: vec![(ending.to_owned(), Picture::Lines(chart))], measurements: rows })
}

/// The rows of one threshold, of batches and of their single response times; the largest that was measured if that was
/// not.
fn at_threshold(reproduction: &Reproduction<'_>, wanted: u32) -> Result<Vec<Measurement>, BenchError> {
    let rows = reproduction.batches()?;
    let with_part = rows.iter().filter(|row| row.kind == "batches" && row.label("algorithm") == PART);
    let thresholds: Vec<f64> = with_part.map(|row| row.value("threshold")).collect();
    let largest = thresholds.iter().copied().fold(f64::NAN, f64::max);
    let threshold = if thresholds.contains(&f64::from(wanted)) { f64::from(wanted) } else { largest };
    Ok(rows.iter().filter(|row| row.value("threshold") == threshold).cloned().collect())
}

fn figure_7(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let rows = at_threshold(reproduction, FLUCTUATION_B)?;
    let columns = ["algorithm", "batches", "queries a batch", "mean, ms", "least", "most", "deviation", "of the mean"];
    let mut table = Table::new("Response times of batches", 1, &columns);
    let mut groups = Vec::new();
    for (series, row) in rows.iter().filter(|row| row.kind == "batches").enumerate() {
        let values = ["batches", "batch_size", "response_ms", "response_least_ms", "response_most_ms", "deviation_ms"];
        let share = row.value("deviation_ms") / row.value("response_ms");
        let cells = values.map(|name| row.value(name)).into_iter().chain([share]).map(number);
        table.row([row.label("algorithm").to_owned()].into_iter().chain(cells).collect());
        let range = Some((row.value("response_least_ms"), row.value("response_most_ms")));
        let bars = vec![Bar { series, value: row.value("response_ms"), range }];
        groups.push(Group { label: row.label("algorithm").to_owned(), bars });
    }
    let threshold = rows.first().map_or(f64::NAN, |row| row.value("threshold"));
    table.notes = vec![
        format!(
            "B of {}; the time of each batch is in the result. The last column is the deviation divided by the mean. The \
             paper's figure has no numbers in its text, which says that PARA is steady and PART fluctuates violently.",
            count(threshold as u64)
        ),
        batches::note(reproduction.ground()?, &rows),
    ];
    let chart = Chart {
        title: "Response times of batches".to_owned(),
        subtitle: "milliseconds: mean, with the least and the most of all batches".to_owned(),
        series: Vec::new(),
        unit: "ms".to_owned(),
        groups,
    };
    Ok(Findings { tables: vec![table], charts: vec![("spread".to_owned(), Picture::Bars(chart))], measurements: rows })
}

fn figure_8(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let mut rows = at_threshold(reproduction, SHARES_B)?;
    rows.retain(|row| row.kind == "batches" && row.label("algorithm") != OURS);
    let columns =
        ["algorithm", "queries a batch", "kernel, %", "transfer, %", "CPU, %", "kernel, ms", "transfer, ms", "CPU, ms"];
    let mut table = Table::new("Shares of the steps of a batch", 1, &columns);
    let mut groups = Vec::new();
    let shares_of = |times: [f64; 3]| times.map(|time| time / times.iter().sum::<f64>() * 100.0);
    let bars = |shares: [f64; 3]| {
        (0..).zip(shares).map(|(series, value)| Bar { series, value, range: None }).collect::<Vec<_>>()
    };
    for row in &rows {
        let times = ["kernel_ms", "transfer_ms", "cpu_ms"].map(|name| row.value(name));
        let shares = shares_of(times);
        let cells = [row.value("batch_size")].into_iter().chain(shares).chain(times).map(number);
        table.row([row.label("algorithm").to_owned()].into_iter().chain(cells).collect());
        groups.push(Group { label: row.label("algorithm").to_owned(), bars: bars(shares) });
    }
    let paper = shares_of(TABLE_II);
    let dashes = ["–"; 3].map(str::to_owned);
    let cells = [number(PAPER_BATCH)].into_iter().chain(paper.map(number)).chain(dashes);
    table.row(["PARA, paper, Table II".to_owned()].into_iter().chain(cells).collect());
    groups.push(Group { label: "PARA, paper".to_owned(), bars: bars(paper) });
    table.notes = vec![
        "Transfer is the time of a batch that is neither the CPU's before it nor the kernel's: queries up, results down, and \
         the calls for both. The paper's figure has no numbers in its text; its Table II has, for PARA and all of its 33,337 \
         queries at a B of 128, half of the one that makes batches of 513."
            .to_owned(),
        batches::note(reproduction.ground()?, &rows),
    ];
    let chart = Chart {
        title: "Shares of the steps of a batch".to_owned(),
        subtitle: "percent of the time of a batch".to_owned(),
        series: SHARES.map(str::to_owned).to_vec(),
        unit: "%".to_owned(),
        groups,
    };
    Ok(Findings { tables: vec![table], charts: vec![("shares".to_owned(), Picture::Bars(chart))], measurements: rows })
}
