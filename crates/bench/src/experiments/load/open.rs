//! Part `open`: delays at rates that are shares of the engine's capacity.

use super::setup::{EngineOptions, LogSet, Setup};
use super::tables::{DELAYS, QUERIES, table};
use crate::error::Result;
use crate::experiments::Findings;
use crate::load::{ClosedLoop, Load, OpenLoop, Phase, StreamLoad, Way, poisson};
use crate::machine::cores;
use crate::plot::{Line, LineChart};
use crate::result::Measurement;
use lanner::{Engine, Policy};

/// The seed of arrivals.
pub const SEED: u64 = 14;

pub fn run(setup: &Setup<'_>) -> Result<Findings> {
    let options = EngineOptions::new(Policy::Auto, setup.threads_beside_senders());
    let engine = setup.engine(options)?;
    let bounded = setup.engine(EngineOptions { queue: Some(setup.run.part.queue), ..options })?;
    let (mut capacities, mut rows) = (Vec::new(), Vec::new());
    for set in &setup.sets {
        setup.warm_up(&engine, &set.set)?;
        setup.warm_up(&bounded, &set.set)?;
        let (row, capacity) = capacity(setup, &engine, set)?;
        capacities.push(row);
        for &share in &setup.run.part.rates {
            let engine = if share > 1.0 { &bounded } else { &engine };
            let load = at_rate(setup, (engine, set), (share * capacity, setup.run.part.open_s), Way::Submit)?;
            let row = set.measurement("open", &[("rate", &share), ("policy", &Policy::Auto)]);
            rows.push(load.add_to(row.with("rate", share).with("offered_a_second", share * capacity)));
        }
    }
    let chart = chart(&rows);
    let tables = [capacity_table(setup, &capacities), open_table(setup, &rows)];
    let mut findings = Findings::new([capacities, rows].concat()).chart("open", chart);
    findings.tables.extend(tables);
    Ok(findings)
}

/// An open loop at a rate for some seconds, whose answers are checked.
pub fn at_rate(
    setup: &Setup<'_>,
    (engine, set): (&Engine, &LogSet),
    (rate, seconds): (f64, f64),
    way: Way,
) -> Result<Load> {
    let part = setup.run.part;
    let arrivals = poisson(&[Phase { rate, seconds }], part.fewest, SEED);
    let load = OpenLoop { engine, queries: &set.set.queries, senders: part.senders, way }.run(&arrivals)?;
    load.check(&set.set)?;
    if load.is_late() {
        (setup.run.context.say)(&format!(
            "at {rate:.0} queries/s, the senders were late; use more of them (--senders)"
        ));
    }
    Ok(load)
}

/// How many queries a second the engine answers: the rate of a closed loop with many queries under way.
pub fn capacity_of(setup: &Setup<'_>, engine: &Engine, set: &LogSet) -> Result<f64> {
    let part = setup.run.part;
    let closed = ClosedLoop { engine, set: &set.set, length: setup.length() };
    Ok(closed.submitted(part.senders, part.clients)?.rate())
}

/// The capacity, and beside it the rates of clients that call `search`, and of a stream.
fn capacity(setup: &Setup<'_>, engine: &Engine, set: &LogSet) -> Result<(Measurement, f64)> {
    let capacity = capacity_of(setup, engine, set)?;
    let clients = ClosedLoop { engine, set: &set.set, length: setup.length() }.clients(cores())?;
    let stream = StreamLoad { engine, set: &set.set, length: setup.stream_length() }.texts_to_ids()?;
    let row = set.measurement("capacity", &[("policy", &Policy::Auto)]);
    let row = clients.add_to(row).with("stream_a_second", stream.rate()).with("submitted_a_second", capacity);
    Ok((row, capacity))
}

fn capacity_table(setup: &Setup<'_>, rows: &[Measurement]) -> crate::table::Table {
    let figures = [
        ("submitted, queries/s", "submitted_a_second"),
        ("clients", "answered_a_second"),
        ("p50, us", "p50_us"),
        ("p99, us", "p99_us"),
        ("stream", "stream_a_second"),
    ];
    table("Capacity of the engine, policy auto, from query text", rows, &QUERIES, &figures).notes(&[&format!(
        "Submitted: a closed loop with {} queries under way, sent by {} threads; this is the capacity below. Clients: {} \
         threads that call search, and their delays. Stream: to external ids. The engine has {} threads, one of them \
         that of a sender.",
        setup.run.part.clients,
        setup.run.part.senders,
        cores(),
        setup.threads_beside_senders()
    )])
}

fn open_table(setup: &Setup<'_>, rows: &[Measurement]) -> crate::table::Table {
    let of_queries = [
        ("queries/s", "offered_a_second"),
        ("answered/s", "answered_a_second"),
        ("queries", "queries"),
        ("refused", "refused"),
    ];
    let places =
        [("by CPU", "by_cpu"), ("by GPU", "by_gpu"), ("busy cores", "busy_cores"), ("sent late, p99", "late_p99_us")];
    let figures = [&of_queries[..], &DELAYS, &places].concat();
    let labels = [&QUERIES[..], &["rate"]].concat();
    table("Open loop: microseconds from arrival to answer, at shares of the capacity", rows, &labels, &figures).notes(&[
        "Queries arrive at random moments; delays count from these. p99.9 is shown from 10,000 queries on. Sent late: how \
         much later than its arrival a query was sent, which is part of its delay.",
        &format!("Above the capacity, the engine accepts {} queries and refuses more.", setup.run.part.queue),
    ])
}

fn chart(rows: &[Measurement]) -> LineChart {
    let name = |row: &Measurement| QUERIES.map(|label| row.label(label).to_owned());
    let lines = rows.chunk_by(|one, other| name(one) == name(other));
    let lines = lines.flat_map(|rows| {
        ["p50_us", "p99_us"].map(|name| {
            let label = format!("{} {} {}", rows[0].label("log"), rows[0].label("mode").to_uppercase(), &name[..3]);
            Line::new(label, rows.iter().map(|row| (100.0 * row.value("rate"), row.value(name))))
        })
    });
    let subtitle = "microseconds from arrival to answer; lower is better";
    LineChart::logarithmic("Delays by load", subtitle, ["% of capacity", "us"]).linear().lines(lines)
}
