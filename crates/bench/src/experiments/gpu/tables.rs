//! What was measured of queries, for people: tables and pictures.

use super::small;
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Line, LineChart, Picture};
use crate::result::Measurement;
use crate::table::{Table, bytes, count, number};

/// The labels of a cell.
pub const CELL: [&str; 3] = ["score", "mode", "k"];
const RATE: [&str; 3] = ["queries_a_second", "queries_a_second_least", "queries_a_second_most"];

/// Tables and pictures of all kinds of which something was measured.
pub fn of_queries(rows: Vec<Measurement>) -> Findings {
    let of_kind = |kind: &str| rows.iter().filter(|row| row.kind == kind).collect::<Vec<_>>();
    let [throughput, latency, cpu, batches, small, sent] =
        ["throughput", "latency", "cpu", "batch", "small", "sent"].map(of_kind);
    let mut findings = Findings::default();
    let tables = [
        (!throughput.is_empty()).then(|| throughput_table(&throughput)),
        (!cpu.is_empty()).then(|| cpu_table(&cpu)),
        (!latency.is_empty()).then(|| latency_table(&latency)),
        (!batches.is_empty()).then(|| batch_table(&batches)),
        (!small.is_empty()).then(|| small::table(&small)),
        (!sent.is_empty()).then(|| sent_table(&sent)),
    ];
    findings.tables.extend(tables.into_iter().flatten());
    if !latency.is_empty() {
        findings.charts.push(("latency".to_owned(), Picture::Bars(latency_chart(&latency))));
    }
    if !batches.is_empty() {
        findings.charts.push(("batches".to_owned(), Picture::Lines(batch_chart(&batches))));
    }
    findings.measurements = rows;
    findings
}

/// The cells of a row: its labels, then its values.
pub fn cells(row: &Measurement, labels: &[&str], values: &[&str]) -> Vec<String> {
    let labels = labels.iter().map(|name| row.label(name).to_owned());
    labels.chain(values.iter().map(|name| number(row.value(name)))).collect()
}

/// How many queries were asked.
pub fn queries_of(row: &Measurement) -> String {
    count(row.value("queries") as u64)
}

/// How many runs there were, from the least to the most of the rows.
pub fn runs_of(rows: &[&Measurement]) -> String {
    let runs = || rows.iter().map(|row| row.value("runs"));
    let (least, most) = (runs().fold(f64::INFINITY, f64::min), runs().fold(0.0, f64::max));
    if least == most { format!("{least}") } else { format!("{least} to {most}") }
}

fn throughput_table(rows: &[&Measurement]) -> Table {
    let figures = ["queries/s", "least", "most", "us a query", "of it kernels", "planning, one thread", "all threads"];
    let title = "Batches on the GPU: queries a second, and microseconds of a query";
    let mut table = Table::new(title, 3, &[&CELL[..], &figures].concat());
    let further = ["us_a_query", "kernel_us_a_query", "plan_us_one_thread", "plan_us_all_threads"];
    rows.iter().for_each(|row| table.row(cells(row, &CELL, &[&RATE[..], &further].concat())));
    table.notes = vec![
        format!(
            "One call with {} plans, from plans to answers on the host; planning comes before, and its time stands \
             beside. Median, least and most of {} runs.",
            queries_of(rows[0]),
            runs_of(rows)
        ),
        "Kernels are the sum of their times on the device, as the traces have them; two batches can overlap there."
            .to_owned(),
    ];
    table
}

fn cpu_table(rows: &[&Measurement]) -> Table {
    let all = format!("{} threads, queries/s", rows[rows.len() - 1].value("threads"));
    let figures = ["one thread, queries/s", "least", "most", &all, "least", "most", "GPU x one thread", "GPU x all"];
    let mut table = Table::new("The CPU beside it", 3, &[&CELL[..], &figures].concat());
    for pair in rows.chunks(2) {
        let mut row = cells(pair[0], &CELL, &RATE);
        row.extend(pair.iter().skip(1).flat_map(|row| RATE.map(|name| number(row.value(name)))));
        row.extend(pair.iter().map(|row| number(1.0 / row.value("gpu_of_cpu"))));
        table.row(row);
    }
    let (one, all) = (rows[0], rows[rows.len() - 1]);
    table.notes = vec![format!(
        "The CPU executor with the same plans. One thread answers {} of the queries, spread over short and long ones \
         ({} postings on average), all threads {} ({} postings). Median, least and most of {} runs; GPU x is its \
         queries a second in batches divided by the CPU's.",
        queries_of(one),
        number(one.value("postings")),
        queries_of(all),
        number(all.value("postings")),
        runs_of(rows)
    )];
    table
}

fn latency_table(rows: &[&Measurement]) -> Table {
    let figures = ["mean", "p50", "p95", "p99", "p99, least run", "most", "longest", "of all runs"];
    let title = "One query at a time on the GPU: microseconds from plan to answer";
    let mut table = Table::new(title, 3, &[&CELL[..], &figures].concat());
    let values = ["mean_us", "p50_us", "p95_us", "p99_us", "p99_least_us", "p99_most_us", "most_us", "most_of_all_us"];
    rows.iter().for_each(|row| table.row(cells(row, &CELL, &values)));
    table.notes = vec![format!(
        "A call for each of {} queries, all asked once before; each figure is the median of those of {} runs.",
        queries_of(rows[0]),
        runs_of(rows)
    )];
    table
}

fn batch_table(rows: &[&Measurement]) -> Table {
    let labels = [&CELL[..], &["size"]].concat();
    let figures = ["queries/s", "least", "most", "us a query", "of it kernels"];
    let mut table = Table::new("Batches of several sizes on the GPU", 3, &[&labels[..], &figures].concat());
    let values = [&RATE[..], &["us_a_query", "kernel_us_a_query"]].concat();
    rows.iter().for_each(|row| table.row(cells(row, &labels, &values)));
    table.notes = vec![
        format!(
            "All {} queries in calls of that size, one call after the other; {} runs.",
            queries_of(rows[0]),
            runs_of(rows)
        ),
        "The device notes no times in calls of up to 64: there the host's clock counts, from the start to the answers."
            .to_owned(),
    ];
    table
}

fn sent_table(rows: &[&Measurement]) -> Table {
    let figures = ["queries/s", "least", "most", "us a query", "lists resident", "sent", "a query", "GB/s"];
    let mut table = Table::new("Lists sent with the batch instead of resident", 3, &[&CELL[..], &figures].concat());
    for row in rows {
        let mut of_row = cells(row, &CELL, &[&RATE[..], &["us_a_query", "resident_us_a_query"]].concat());
        of_row.extend(["bytes_uploaded", "bytes_a_query"].map(|name| bytes(row.value(name) as u64)));
        of_row.push(number(row.value("gb_a_second")));
        table.row(of_row);
    }
    table.notes = vec![format!(
        "One call with {} queries; a list that several of them have is sent once. GB/s are bytes sent over the whole \
         time of the call. {} runs.",
        queries_of(rows[0]),
        runs_of(rows)
    )];
    table
}

fn cell_name(row: &Measurement) -> String {
    format!("{} {} k {}", row.label("score"), row.label("mode").to_uppercase(), row.label("k"))
}

fn latency_chart(rows: &[&Measurement]) -> Chart {
    let bars = |row: &Measurement| {
        let bar = |(series, name)| Bar { series, value: row.value(name), range: None };
        (0..).zip(["p50_us", "p95_us", "p99_us"]).map(bar).collect()
    };
    Chart {
        title: "One query at a time on the GPU".to_owned(),
        subtitle: "microseconds from plan to answer on the host; shorter is better".to_owned(),
        series: ["p50", "p95", "p99"].map(str::to_owned).to_vec(),
        unit: "us".to_owned(),
        groups: rows.iter().map(|row| Group { label: cell_name(row), bars: bars(row) }).collect(),
    }
}

fn batch_chart(rows: &[&Measurement]) -> LineChart {
    let of_score = rows.chunk_by(|one, other| one.label("score") == other.label("score"));
    let point = |row: &&Measurement| (row.value("size"), row.value("queries_a_second") / 1e3);
    let line = |rows: &[&Measurement]| Line {
        label: rows[0].label("score").to_owned(),
        points: rows.iter().map(point).collect(),
    };
    LineChart {
        title: format!("Throughput by the size of the batch, OR k {}", rows[0].label("k")),
        subtitle: "thousand queries a second, host to host; higher is better".to_owned(),
        x_label: "queries in a call".to_owned(),
        unit: "k/s".to_owned(),
        is_logarithmic: false,
        lines: of_score.map(line).collect(),
    }
}
