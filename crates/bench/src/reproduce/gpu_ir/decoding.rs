//! Table 1 and Figure 4: decode speeds of Rice and PForDelta on GPU and CPU, for the lists of queries and by length.

use super::TABLE_1;
use crate::error::Result;
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Line, LineChart};
use crate::query_log::spread;
use crate::reproduce::setup::{Coded, Setup, Way};
use crate::result::{Measurement, find};
use crate::statistics::mean;
use crate::table::{DASH, Table, count, number};
use lanner::internals::device::decode::DecodeKind;
use lanner_index::codec::CodecName;
use std::sync::Arc;

/// Figure 4: without the prefix sum, the paper's GPU decodes up to this many millions per second.
const FIGURE_4_MOST: f64 = 2500.0;
/// Figure 4: bins of list lengths. A bin ends at this length and starts at half of it.
const LENGTHS: [u64; 12] =
    [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000, 4_096_000];
/// Maximal number of lists of a bin of Figure 4, and of the queries of Table 1.
const LISTS: [usize; 2] = [16, 128];
const KINDS: [DecodeKind; 2] = [DecodeKind::Documents, DecodeKind::Values];

/// Name, what is decoded, and how.
const METHODS: [(&str, DecodeKind, Way); 4] = [
    ("CPU, gaps", DecodeKind::Values, Way::Cpu),
    ("CPU, documents", DecodeKind::Documents, Way::Cpu),
    ("GPU, documents", DecodeKind::Documents, Way::Resident),
    ("GPU, gaps", DecodeKind::Values, Way::Resident),
];
const SPEED: &str = "millions_a_second";
const KERNEL_SPEED: &str = "kernel_millions_a_second";

pub fn table_1(setup: &Setup) -> Result<Findings> {
    let lists = lists_of_queries(setup)?;
    let mut rows = Vec::new();
    for codec in [CodecName::Rice, CodecName::Pfor, CodecName::Bitpack] {
        rows.extend(measure(setup, codec, &lists, "queries")?);
    }
    Ok(speed_findings(&setup.note(), rows))
}

pub fn figure_4(setup: &Setup) -> Result<Findings> {
    let mut rows = Vec::new();
    for length in LENGTHS {
        let lengths = setup.length(length / 2)..setup.length(length);
        let terms = setup.lists.some(lengths, setup.count(LISTS[0], 2));
        let lists: Vec<_> = setup.decode(terms.iter().map(|term| term.number))?.into_values().collect();
        for codec in [CodecName::Pfor, CodecName::Bitpack] {
            rows.extend(measure(setup, codec, &lists, &length.to_string())?);
        }
    }
    Ok(length_findings(&setup.note(), rows))
}

/// Returns the lists of queries of the log, each as often as it occurs there.
fn lists_of_queries(setup: &Setup) -> Result<Vec<Arc<Vec<u32>>>> {
    let most = setup.count(LISTS[1], 4);
    let mut numbers = Vec::new();
    for query in setup.work.spread_by_postings(most) {
        for term in setup.work.texts[query].split(' ') {
            numbers.extend(setup.index.lookup(term)?.map(|term| term.0));
        }
    }
    let numbers = spread(&numbers, most);
    let lists = setup.decode(numbers.iter().copied())?;
    Ok(numbers.iter().map(|number| Arc::clone(&lists[number])).collect())
}

/// Checks and times a codec on some lists, one at a time.
fn measure(setup: &Setup, codec: CodecName, lists: &[Arc<Vec<u32>>], label: &str) -> Result<Vec<Measurement>> {
    if lists.is_empty() {
        return Ok(Vec::new());
    }
    let (coded, mut buffer) = (Coded::all(setup, codec, lists)?, Vec::new());
    coded.iter().try_for_each(|list| list.check(setup, &KINDS))?;
    let postings = mean(coded.iter().map(|list| list.postings() as f64));
    let mut rows = Vec::new();
    for (name, kind, way) in METHODS {
        let average = setup.average(&coded, |list| list.time(setup, kind, way, &mut buffer))?;
        let row = Measurement::new("decode", &[("codec", &codec), ("method", &name), ("length", &label)])
            .with("lists", coded.len() as f64)
            .with("postings", postings)
            .with(SPEED, postings / average.us.median)
            .with(KERNEL_SPEED, (way != Way::Cpu).then(|| postings / average.device_us.median));
        rows.push(average.add_to(row));
    }
    Ok(rows)
}

fn row_of<'a>(rows: &'a [Measurement], codec: CodecName, method: &str, length: &str) -> Option<&'a Measurement> {
    find(rows, &[("codec", &codec), ("method", &method), ("length", &length)])
}

fn speed_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let head = ["algorithm", "our codec", "paper, CPU, gaps", "paper, GPU, documents"];
    let methods = METHODS.map(|(method, ..)| method);
    let columns = [&head[..], &methods, &["GPU, kernel alone", "GPU x CPU"]].concat();
    let mut table = Table::new("Millions of integers decoded per second", 2, &columns);
    let mut groups = Vec::new();
    for (algorithm, cpu, gpu, codec) in TABLE_1.into_iter().chain([(DASH, f64::NAN, f64::NAN, CodecName::Bitpack)]) {
        let of = |method, value| row_of(&rows, codec, method, "queries").map_or(f64::NAN, |row| row.value(value));
        let speeds = methods.map(|method| of(method, SPEED));
        let kernel = of("GPU, documents", KERNEL_SPEED);
        let numbers = [cpu, gpu].into_iter().chain(speeds).chain([kernel, speeds[2] / speeds[1]]).map(number);
        table.row([algorithm.to_owned(), codec.to_string()].into_iter().chain(numbers));
        let shown = (0..).zip([cpu, gpu, speeds[1], speeds[2], kernel]).filter(|(_, value)| value.is_finite());
        groups.push(Group::new(codec.to_string(), shown.map(|(series, value)| Bar::new(series, value))));
    }
    let [lists, postings] = ["lists", "postings"].map(|name| rows[0].count(name));
    let table = table.notes(&[
        &format!(
            "{lists} lists of queries of the log with {postings} postings on average, packed by each codec. {note} One \
             list at a time; on the GPU the packed list is resident, and the time is from the call until the host \
             knows that decoding is done."
        ),
        "The paper's CPU is a core at 2.66 GHz, its GPU has 96 stream processors; our CPU is one core. Bitpack, our \
         default, is not in the paper. The suite gpu measures the decode speed of the whole device.",
    ]);
    let series = ["paper, CPU, gaps", "paper, GPU", "CPU, documents", "GPU, a list at a time", "GPU, kernel alone"];
    let subtitle = "millions of integers per second; longer is better";
    let chart = Chart::new("Decoding the lists of queries", subtitle, "M/s").series(&series).groups(groups);
    Findings::new(rows).table(table).chart("speed", chart)
}

fn length_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let methods = METHODS.map(|(method, ..)| method);
    let further = ["GPU, documents, kernel", "GPU, gaps, kernel", "ours, bitpack, CPU", "ours, bitpack, GPU"];
    let title = "PForDelta: millions of integers decoded per second, by list length";
    let mut table = Table::new(title, 1, &[&["up to", "lists"], &methods[..], &further].concat());
    for length in LENGTHS.map(|length| length.to_string()) {
        let of = |codec, method, value| row_of(&rows, codec, method, &length).map_or(f64::NAN, |row| row.value(value));
        let Some(first) = row_of(&rows, CodecName::Pfor, methods[0], &length) else { continue };
        let speeds = methods.map(|method| of(CodecName::Pfor, method, SPEED));
        let kernels = [methods[2], methods[3]].map(|method| of(CodecName::Pfor, method, KERNEL_SPEED));
        let ours = [methods[1], methods[2]].map(|method| of(CodecName::Bitpack, method, SPEED));
        let numbers = speeds.into_iter().chain(kernels).chain(ours).map(number);
        let head = [count(length.parse().unwrap_or(0)), first.count("lists")];
        table.row(head.into_iter().chain(numbers));
    }
    let table = table.notes(&[
        &format!(
            "{note} A bin starts at half its length. One list at a time, packed and resident; from the call until the \
             host knows that decoding is done, and the kernel alone. Documents are the paper's GPU+LPS, with the \
             localized prefix sum; gaps are without it. The CPU is one core."
        ),
        &format!(
            "The text of the paper says only that without the prefix sum its GPU decodes up to {FIGURE_4_MOST} million \
             per second, and that its CPU is faster on short lists."
        ),
    ]);
    let line = |label: &str, codec: CodecName, method: &str| {
        let point = |length: &u64| {
            let row = row_of(&rows, codec, method, &length.to_string())?;
            Some((*length as f64 / 1e3, row.value(SPEED)))
        };
        Line::new(label, LENGTHS.iter().filter_map(point))
    };
    let lines = methods.iter().map(|method| line(method, CodecName::Pfor, method));
    let lines = lines.chain([line("ours, bitpack, GPU", CodecName::Bitpack, methods[2])]);
    let subtitle = "millions of integers decoded per second, one list at a time; higher is better";
    let axes = ["thousand postings in the list, at most", "M/s"];
    let chart = LineChart::logarithmic("PForDelta by list length", subtitle, axes).lines(lines);
    Findings::new(rows).table(table).chart("speed", chart)
}
