//! Wu et al., CPU-GPU cooperative computing: Figures 3 to 8, batches of intersections by PARA and PART.

mod batches;

pub use batches::measure;

use super::setup::Setup;
use super::{Entry, Run};
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Line, LineChart};
use crate::result::Measurement;
use crate::table::{DASH, Table, number};
use batches::{OURS, PARA, PART};

/// The threshold of Figure 7; in the paper it has 513 queries per batch.
const FLUCTUATION_B: u32 = 256;
/// The threshold of Figure 8.
const SHARES_B: u32 = 128;
/// Queries of a batch in Figure 8 of the paper.
const PAPER_BATCH: f64 = 260.0;
/// Table II, one card, B of 128: milliseconds of kernels, transfer and CPU for all batches of PARA.
const TABLE_II: [f64; 3] = [299.15, 25.85, 11.93];
const SHARES: [&str; 3] = ["kernel", "transfer", "CPU"];

pub fn entries() -> Vec<Entry> {
    let new = |name, title, run| Entry::new(name, title, Run::Batches(run));
    vec![
        new("cooperative/figure3", "throughput of PARA by the computation threshold", |setup, rows| {
            curve(setup, rows, BY_THRESHOLD, THROUGHPUT)
        }),
        new("cooperative/figure4", "response time of PARA by the computation threshold", |setup, rows| {
            curve(setup, rows, BY_THRESHOLD, RESPONSE)
        }),
        new("cooperative/figure5", "response time of PART and PARA by batch size", |setup, rows| {
            curve(setup, rows, BY_SIZE, RESPONSE)
        }),
        new("cooperative/figure6", "throughput of PART and PARA by batch size", |setup, rows| {
            curve(setup, rows, BY_SIZE, THROUGHPUT)
        }),
        new("cooperative/figure7", "fluctuation of response times of PART and PARA", figure_7),
        new("cooperative/figure8", "shares of transfer, kernel and CPU of PART and PARA", figure_8),
    ]
}

/// The x axis of a curve.
#[derive(Clone, Copy)]
struct X {
    value: &'static str,
    title: &'static str,
    label: &'static str,
    algorithms: &'static [&'static str],
}

/// The y axis of a curve.
#[derive(Clone, Copy)]
struct Y {
    value: &'static str,
    title: &'static str,
    unit: &'static str,
    suffix: &'static str,
    /// What the paper says of its curve over the threshold.
    paper: &'static str,
}

const BY_THRESHOLD: X = X {
    value: "threshold",
    title: "the computation threshold",
    label: "B: thread blocks per SM",
    algorithms: &[PARA, OURS],
};
const BY_SIZE: X = X {
    value: "batch_size",
    title: "mean batch size",
    label: "queries in a batch on average",
    algorithms: &[PARA, PART, OURS],
};
const THROUGHPUT: Y = Y {
    value: "queries_a_second",
    title: "Queries per second",
    unit: "/s",
    suffix: "throughput",
    paper: "The paper: PARA reaches about 30,000 queries per second on a Tesla C1060, and grows slowly from a B of 128 \
            on.",
};
const RESPONSE: Y = Y {
    value: "response_ms",
    title: "Response time",
    unit: "ms",
    suffix: "response",
    paper: "The paper: at most 10 ms below a B of 256, and much more above.",
};
/// What the paper says of curves over the batch size.
const PAPER_ON_SIZES: &str = "The text of the paper gives no numbers; it says that PARA is far ahead of PART, and that \
    PART still grows with batches of more than 513 queries, where PARA does not.";

fn row_of<'a>(rows: &'a [Measurement], algorithm: &str, threshold: f64) -> Option<&'a Measurement> {
    rows.iter().find(|row| row.label("algorithm") == algorithm && row.value("threshold") == threshold)
}

/// Makes the table and the chart of a curve.
fn curve(setup: &Setup, rows: &[Measurement], x: X, y: Y) -> Findings {
    let is_shown = |row: &&Measurement| row.kind == "batches" && x.algorithms.contains(&row.label("algorithm"));
    let rows: Vec<Measurement> = rows.iter().filter(is_shown).cloned().collect();
    let title = format!("{} by {}", y.title, x.title);
    let mut table = Table::new(title.as_str(), 1, &[&["B", "batches", "queries per batch"], x.algorithms].concat());
    // With PART, only thresholds at which it was measured.
    let is_complete = |row: &&Measurement| {
        x.algorithms.iter().all(|algorithm| row_of(&rows, algorithm, row.value("threshold")).is_some())
    };
    let of_para: Vec<&Measurement> =
        rows.iter().filter(|row| row.label("algorithm") == PARA).filter(is_complete).collect();
    let value = |para: &Measurement, algorithm: &str| {
        row_of(&rows, algorithm, para.value("threshold")).map_or(f64::NAN, |row| row.value(y.value))
    };
    for para in &of_para {
        let counts = ["threshold", "batches"].map(|name| para.count(name));
        let values = x.algorithms.iter().map(|algorithm| value(para, algorithm));
        let numbers = [para.value("batch_size")].into_iter().chain(values).map(number);
        table.row(counts.into_iter().chain(numbers));
    }
    let paper = if x.value == "threshold" { y.paper } else { PAPER_ON_SIZES };
    let table = table.notes(&[paper, &batches::note(setup, &rows)]);
    let line = |algorithm: &&'static str| {
        let point = |para: &&Measurement| (para.value(x.value).max(1.0), value(para, algorithm));
        let mut points: Vec<(f64, f64)> = of_para.iter().map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line::new(*algorithm, points)
    };
    let subtitle = "host to host; the table describes what each algorithm does";
    let new = if y.unit == "ms" { LineChart::logarithmic } else { LineChart::new };
    let chart = new(title, subtitle, [x.label, y.unit]).lines(x.algorithms.iter().map(line));
    Findings::new(rows).table(table).chart(y.suffix, chart)
}

/// Returns the rows of a threshold; if it was not measured, those of the largest threshold with PART.
fn at_threshold(rows: &[Measurement], wanted: u32) -> Vec<Measurement> {
    let with_part = rows.iter().filter(|row| row.kind == "batches" && row.label("algorithm") == PART);
    let thresholds: Vec<f64> = with_part.map(|row| row.value("threshold")).collect();
    let largest = thresholds.iter().copied().fold(f64::NAN, f64::max);
    let threshold = if thresholds.contains(&f64::from(wanted)) { f64::from(wanted) } else { largest };
    rows.iter().filter(|row| row.value("threshold") == threshold).cloned().collect()
}

fn figure_7(setup: &Setup, rows: &[Measurement]) -> Findings {
    let rows = at_threshold(rows, FLUCTUATION_B);
    let columns =
        ["algorithm", "batches", "queries per batch", "mean, ms", "least", "most", "deviation", "of the mean"];
    let mut table = Table::new("Response times of batches", 1, &columns);
    let mut groups = Vec::new();
    for (series, row) in rows.iter().filter(|row| row.kind == "batches").enumerate() {
        let values = ["batches", "batch_size", "response_ms", "response_least_ms", "response_most_ms", "deviation_ms"];
        let share = row.value("deviation_ms") / row.value("response_ms");
        table.numbers(row.label("algorithm"), values.map(|name| row.value(name)).into_iter().chain([share]));
        let bar = Bar::with_range(series, row, ["response_ms", "response_least_ms", "response_most_ms"]);
        groups.push(Group::new(row.label("algorithm"), [bar]));
    }
    let threshold = rows[0].count("threshold");
    let table = table.notes(&[
        &format!(
            "B of {threshold}; the result file has the time of each batch. The last column is the standard deviation \
             divided by the mean. The text of the paper gives no numbers; it says that PARA is steady and PART \
             fluctuates violently."
        ),
        &batches::note(setup, &rows),
    ]);
    let subtitle = "milliseconds: mean, minimum and maximum of all batches";
    let chart = Chart::new("Response times of batches", subtitle, "ms").groups(groups);
    Findings::new(rows).table(table).chart("spread", chart)
}

fn figure_8(setup: &Setup, rows: &[Measurement]) -> Findings {
    let mut rows = at_threshold(rows, SHARES_B);
    rows.retain(|row| row.kind == "batches" && row.label("algorithm") != OURS);
    let shares_of = |times: [f64; 3]| times.map(|time| time / times.iter().sum::<f64>() * 100.0);
    let heads = ["%", "ms"].map(|unit| SHARES.map(|share| format!("{share}, {unit}"))).concat();
    let columns = [vec!["algorithm".to_owned(), "queries per batch".to_owned()], heads].concat();
    let mut table = Table::new("Shares of the steps of a batch", 1, &columns);
    let mut groups = Vec::new();
    for row in &rows {
        let times = ["kernel_ms", "transfer_ms", "cpu_ms"].map(|name| row.value(name));
        let shares = shares_of(times);
        table.numbers(row.label("algorithm"), [row.value("batch_size")].into_iter().chain(shares).chain(times));
        groups.push(Group::of_series(row.label("algorithm"), shares));
    }
    let cells = [PAPER_BATCH].into_iter().chain(shares_of(TABLE_II)).map(number);
    let label = ["PARA, paper, Table II".to_owned()].into_iter();
    table.row(label.chain(cells).chain([DASH; 3].map(str::to_owned)));
    groups.push(Group::of_series("PARA, paper", shares_of(TABLE_II)));
    let table = table.notes(&[
        "Transfer is the time of a batch that is neither the CPU's before it nor the kernel's: upload of queries, \
         download of results, and their calls. The text of the paper gives no numbers for the figure; its Table II \
         has, for PARA on all of its 33,337 queries with a B of 128, which is half of the one that gives batches of \
         513.",
        &batches::note(setup, &rows),
    ]);
    let chart = Chart::new("Shares of the steps of a batch", "percent of the time of a batch", "%").series(&SHARES);
    Findings::new(rows).table(table).chart("shares", chart.groups(groups))
}
