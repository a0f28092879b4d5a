//! Tables and charts of the queries on the GPU.

use super::small;
use crate::experiments::Findings;
use crate::plot::{Chart, Group, Line, LineChart};
use crate::result::Measurement;
use crate::table::{Table, bytes, number};

/// The labels of a cell.
pub const CELL: [&str; 3] = ["score", "mode", "k"];
pub const RATE: [&str; 3] = ["queries_a_second", "queries_a_second_least", "queries_a_second_most"];

/// Makes tables and charts of everything that was measured.
pub fn of_queries(rows: Vec<Measurement>) -> Findings {
    let of_kind = |kind: &str| rows.iter().filter(|row| row.kind == kind).collect::<Vec<_>>();
    let tables = [
        ("throughput", throughput_table as fn(&[&Measurement]) -> Table),
        ("cpu", cpu_table),
        ("latency", latency_table),
        ("batch", batch_table),
        ("small", small::table),
        ("sent", uploaded_table),
    ];
    let mut findings = Findings::default();
    for (rows, table) in tables.map(|(kind, table)| (of_kind(kind), table)) {
        if !rows.is_empty() {
            findings = findings.table(table(&rows));
        }
    }
    let [latency, batches] = ["latency", "batch"].map(of_kind);
    if !latency.is_empty() {
        findings = findings.chart("latency", latency_chart(&latency));
    }
    if !batches.is_empty() {
        findings = findings.chart("batches", batch_chart(&batches));
    }
    findings.measurements = rows;
    findings
}

/// Formats the number of runs, as a range if rows differ.
pub fn runs_of(rows: &[&Measurement]) -> String {
    let runs = || rows.iter().map(|row| row.value("runs"));
    let (least, most) = (runs().fold(f64::INFINITY, f64::min), runs().fold(0.0, f64::max));
    if least == most { format!("{least}") } else { format!("{least} to {most}") }
}

/// Makes a table with the labels of a cell, further labels, and values under their headings.
fn table(title: &str, rows: &[&Measurement], labels: &[&str], figures: &[(&str, &str)]) -> Table {
    let labels = [&CELL[..], labels].concat();
    let (heads, values): (Vec<&str>, Vec<&str>) = figures.iter().copied().unzip();
    let mut table = Table::new(title, 3, &[&labels[..], &heads].concat());
    rows.iter().for_each(|row| table.row(row.cells(&labels, &values)));
    table
}

/// Queries per second, and microseconds per query.
const RATES: [(&str, &str); 4] =
    [("queries/s", RATE[0]), ("least", RATE[1]), ("most", RATE[2]), ("us per query", "us_a_query")];
const KERNELS: (&str, &str) = ("of it kernels", "kernel_us_a_query");

fn throughput_table(rows: &[&Measurement]) -> Table {
    let planning = [("planning, one thread", "plan_us_one_thread"), ("all threads", "plan_us_all_threads")];
    let title = "Batches on the GPU: queries per second, and microseconds per query";
    let (queries, runs) = (rows[0].count("queries"), runs_of(rows));
    table(title, rows, &[], &[&RATES[..], &[KERNELS], &planning].concat()).notes(&[
        &format!(
            "One call with {queries} plans, from plans to answers on the host. Planning happens before and is shown \
             separately. Median, minimum and maximum of {runs} runs."
        ),
        "The time of kernels is their sum on the device, from the traces; two batches can overlap.",
    ])
}

fn cpu_table(rows: &[&Measurement]) -> Table {
    let all = format!("{} threads, queries/s", rows[rows.len() - 1].value("threads"));
    let figures = ["one thread, queries/s", "least", "most", &all, "least", "most", "GPU x one thread", "GPU x all"];
    let mut table = Table::new("The CPU", 3, &[&CELL[..], &figures].concat());
    for pair in rows.chunks(2) {
        let mut row = pair[0].cells(&CELL, &RATE);
        row.extend(pair.iter().skip(1).flat_map(|row| row.cells(&[], &RATE)));
        row.extend(pair.iter().map(|row| number(1.0 / row.value("gpu_of_cpu"))));
        table.row(row);
    }
    let (one, all) = (rows[0], rows[rows.len() - 1]);
    let [queries, all_queries] = [one, all].map(|row| row.count("queries"));
    let [postings, all_postings] = [one, all].map(|row| number(row.value("postings")));
    let runs = runs_of(rows);
    table.notes(&[&format!(
        "The CPU executor with the same plans. One thread answers {queries} of the queries, short and long ones \
         ({postings} postings on average); all threads answer {all_queries} ({all_postings} postings). Median, minimum \
         and maximum of {runs} runs. GPU x: queries per second of the GPU in batches divided by those of the CPU."
    )])
}

fn latency_table(rows: &[&Measurement]) -> Table {
    let figures = [
        ("mean", "mean_us"),
        ("p50", "p50_us"),
        ("p95", "p95_us"),
        ("p99", "p99_us"),
        ("p99, least run", "p99_least_us"),
        ("most", "p99_most_us"),
        ("longest", "most_us"),
        ("of all runs", "most_of_all_us"),
    ];
    let (queries, runs) = (rows[0].count("queries"), runs_of(rows));
    table("Single queries on the GPU: microseconds from plan to answer", rows, &[], &figures).notes(&[&format!(
        "One call for each of {queries} queries, after a warm-up with all of them; each figure is its median over \
         {runs} runs."
    )])
}

fn batch_table(rows: &[&Measurement]) -> Table {
    let (queries, runs) = (rows[0].count("queries"), runs_of(rows));
    table("Batch sizes on the GPU", rows, &["size"], &[&RATES[..], &[KERNELS]].concat()).notes(&[
        &format!("All {queries} queries in consecutive calls of this size; {runs} runs."),
        "The device records no times in calls of up to 64 queries; there the time of kernels is measured on the host, \
         from submission to answers.",
    ])
}

fn uploaded_table(rows: &[&Measurement]) -> Table {
    let heads = ["queries/s", "least", "most", "us per query", "lists resident", "uploaded", "per query", "GB/s"];
    let mut table = Table::new("Lists uploaded with the batch instead of resident", 3, &[&CELL[..], &heads].concat());
    for row in rows {
        let mut cells = row.cells(&CELL, &[&RATE[..], &["us_a_query", "resident_us_a_query"]].concat());
        cells.extend(["bytes_uploaded", "bytes_a_query"].map(|name| bytes(row.value(name) as u64)));
        cells.push(number(row.value("gb_a_second")));
        table.row(cells);
    }
    let (queries, runs) = (rows[0].count("queries"), runs_of(rows));
    table.notes(&[&format!(
        "One call with {queries} queries; a list that several queries share is uploaded once. GB/s: uploaded bytes \
         divided by the time of the whole call. {runs} runs."
    )])
}

fn latency_chart(rows: &[&Measurement]) -> Chart {
    let group = |row: &&Measurement| {
        let cell = format!("{} {} k {}", row.label("score"), row.label("mode").to_uppercase(), row.label("k"));
        Group::of_series(cell, ["p50_us", "p95_us", "p99_us"].map(|name| row.value(name)))
    };
    let subtitle = "microseconds from plan to answer on the host; shorter is better";
    let chart = Chart::new("Single queries on the GPU", subtitle, "us").series(&["p50", "p95", "p99"]);
    chart.groups(rows.iter().map(group))
}

fn batch_chart(rows: &[&Measurement]) -> LineChart {
    let point = |row: &&Measurement| (row.value("size"), row.value("queries_a_second") / 1e3);
    let line = |rows: &[&Measurement]| Line::new(rows[0].label("score"), rows.iter().map(point));
    let title = format!("Throughput by batch size, OR k {}", rows[0].label("k"));
    let subtitle = "thousand queries per second, host to host; higher is better";
    let chart = LineChart::new(title, subtitle, ["queries in a call", "k/s"]);
    chart.lines(rows.chunk_by(|one, other| one.label("score") == other.label("score")).map(line))
}
