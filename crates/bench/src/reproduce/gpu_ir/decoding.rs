//! Table 1 and Figure 4: decode speeds of Rice and PForDelta on GPU and CPU, of the lists of queries and by length.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::plot::{Bar, Chart, Group, Line, LineChart, Picture};
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Average, Coded, Ground, Timed};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::device::decode::DecodeKind;
use lanner_index::codec::CodecName;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Table 1: millions of integers a second on the paper's CPU, which gives gaps, and GPU, which gives documents.
const TABLE_1: [(&str, f64, f64, CodecName); 2] =
    [("Rice", 310.63, 305.27, CodecName::Rice), ("PForDelta", 1165.13, 1237.57, CodecName::Pfor)];
/// What the text says of Figure 4: the GPU without the prefix sum decodes up to so many millions a second.
const FIGURE_4_MOST: f64 = 2500.0;
/// Lengths of Figure 4, in documents: a bin ends here and begins at half of it.
const LENGTHS: [u64; 12] =
    [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000, 4_096_000];
/// Lists of a bin of Figure 4, and of the queries of Table 1, at most.
const LISTS: [usize; 2] = [16, 128];
const BOTH: [DecodeKind; 2] = [DecodeKind::Documents, DecodeKind::Values];

/// Where, and what comes out.
const METHODS: [(&str, DecodeKind, bool); 4] = [
    ("CPU, gaps", DecodeKind::Values, false),
    ("CPU, documents", DecodeKind::Documents, false),
    ("GPU, documents", DecodeKind::Documents, true),
    ("GPU, gaps", DecodeKind::Values, true),
];

pub fn table_1(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let lists = lists_of_queries(ground)?;
    let mut rows = Vec::new();
    for codec in [CodecName::Rice, CodecName::Pfor, CodecName::Bitpack] {
        rows.extend(measure(ground, codec, &lists, "queries")?);
    }
    Ok(speed_findings(&ground.note(), rows))
}

pub fn figure_4(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let mut rows = Vec::new();
    for length in LENGTHS {
        let lengths = ground.length(length / 2)..ground.length(length);
        let terms = ground.lists.some(lengths, if ground.is_simulated() { 2 } else { LISTS[0] });
        let lists = ground.decode(&terms.iter().map(|term| term.number).collect::<Vec<_>>())?;
        for codec in [CodecName::Pfor, CodecName::Bitpack] {
            rows.extend(measure(ground, codec, &lists, &length.to_string())?);
        }
    }
    Ok(length_findings(&ground.note(), rows))
}

/// The lists of queries of the log, each as often as it occurs there.
fn lists_of_queries(ground: &Ground) -> Result<Vec<Arc<Vec<u32>>>, BenchError> {
    let most = if ground.is_simulated() { 4 } else { LISTS[1] };
    let queries = ground.work.spread_by_postings(most);
    let mut numbers = Vec::new();
    for query in queries {
        for term in ground.work.texts[query].split(' ') {
            numbers.extend(ground.index.lookup(term)?.map(|term| term.0));
        }
    }
    let numbers = crate::query_log::spread(&numbers, most);
    let different: Vec<u64> = numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let lists = ground.decode(&different)?;
    let list_of = |number: &u64| Arc::clone(&lists[different.binary_search(number).unwrap_or_default()]);
    Ok(numbers.iter().map(list_of).collect())
}

/// Checks and times a codec on some lists, one at a time.
fn measure(
    ground: &Ground,
    codec: CodecName,
    lists: &[Arc<Vec<u32>>],
    label: &str,
) -> Result<Vec<Measurement>, BenchError> {
    if lists.is_empty() {
        return Ok(Vec::new());
    }
    let (coded, mut room) = (Coded::all(ground, codec, lists)?, Vec::new());
    for list in &coded {
        list.check(ground, &BOTH)?;
        BOTH.iter().try_for_each(|&kind| list.check_on_cpu(kind, &mut room))?;
    }
    let postings = coded.iter().map(Coded::postings).sum::<usize>() as f64 / coded.len() as f64;
    let mut rows = Vec::new();
    for (name, kind, is_on_device) in METHODS {
        let time = |list: &Coded| -> Result<Timed, BenchError> {
            if is_on_device { list.time(ground, kind, false) } else { list.time_on_cpu(kind, &mut room) }
        };
        let average: Average = ground.average(&coded, time)?;
        let row = Measurement::new("decode", &[("codec", &codec.to_string()), ("method", name), ("length", label)])
            .with("lists", coded.len() as f64)
            .with("postings", postings)
            .with("millions_a_second", postings / average.us.median);
        let row =
            if is_on_device { row.with("kernel_millions_a_second", postings / average.device_us.median) } else { row };
        rows.push(average.note(row));
    }
    Ok(rows)
}

fn find<'a>(rows: &'a [Measurement], codec: CodecName, method: &str, length: &str) -> Option<&'a Measurement> {
    let codec = codec.to_string();
    rows.iter()
        .find(|row| row.label("codec") == codec && row.label("method") == method && row.label("length") == length)
}

fn speed_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let columns = [
        "algorithm",
        "our codec",
        "paper, CPU, gaps",
        "paper, GPU, documents",
        "CPU, gaps",
        "CPU, documents",
        "GPU, documents",
        "GPU, gaps",
        "GPU, kernel alone",
        "GPU x CPU",
    ];
    let mut table = Table::new("Millions of integers decoded a second", 2, &columns);
    let ours = [("–", f64::NAN, f64::NAN, CodecName::Bitpack)];
    let mut groups = Vec::new();
    for (algorithm, cpu, gpu, codec) in TABLE_1.into_iter().chain(ours) {
        let of =
            |method: &str, value: &str| find(&rows, codec, method, "queries").map_or(f64::NAN, |row| row.value(value));
        let speeds = METHODS.map(|(method, ..)| of(method, "millions_a_second"));
        let kernel = of("GPU, documents", "kernel_millions_a_second");
        let numbers = [cpu, gpu].into_iter().chain(speeds).chain([kernel, speeds[2] / speeds[1]]).map(number);
        let bar = |(series, value)| Bar { series, value, range: None };
        let shown = (0..).zip([cpu, gpu, speeds[1], speeds[2], kernel]).filter(|(_, value)| value.is_finite());
        groups.push(Group { label: codec.to_string(), bars: shown.map(bar).collect() });
        table.row([algorithm.to_owned(), codec.to_string()].into_iter().chain(numbers).collect());
    }
    let (lists, postings) = rows.first().map_or((0.0, 0.0), |row| (row.value("lists"), row.value("postings")));
    table.notes = vec![
        format!(
            "{} lists of queries of the log, {} postings on average, packed again by each codec. {note} One list at a time; \
             on the GPU the packed list lies there, and the time is from the call until the host knows that it is done.",
            count(lists as u64),
            count(postings as u64)
        ),
        "The paper's CPU is a core at 2.66 GHz, its GPU has 96 stream processors; our CPU is one core. Bitpack, our default, \
         is not in the paper. How fast all of a device decodes at once is in the suite gpu."
            .to_owned(),
    ];
    let series = ["paper, CPU, gaps", "paper, GPU", "CPU, documents", "GPU, a list at a time", "GPU, kernel alone"];
    let chart = Chart {
        title: "Decoding the lists of queries".to_owned(),
        subtitle: "millions of integers a second; longer is better".to_owned(),
        series: series.map(str::to_owned).to_vec(),
        unit: "M/s".to_owned(),
        groups,
    };
    Findings { measurements: rows, tables: vec![table], charts: vec![("speed".to_owned(), Picture::Bars(chart))] }
}

fn length_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let columns = [
        "up to",
        "lists",
        "CPU, gaps",
        "CPU, documents",
        "GPU, documents",
        "GPU, gaps",
        "GPU, documents, kernel",
        "GPU, gaps, kernel",
        "ours, bitpack, CPU",
        "ours, bitpack, GPU",
    ];
    let mut table =
        Table::new("PForDelta: millions of integers decoded a second, by the length of the list", 1, &columns);
    for length in LENGTHS.map(|length| length.to_string()) {
        let of = |codec, method: &str, value: &str| {
            find(&rows, codec, method, &length).map_or(f64::NAN, |row| row.value(value))
        };
        let Some(first) = find(&rows, CodecName::Pfor, METHODS[0].0, &length) else { continue };
        let speeds = METHODS.map(|(method, ..)| of(CodecName::Pfor, method, "millions_a_second"));
        let kernels = [METHODS[2].0, METHODS[3].0];
        let kernels = kernels.map(|method| of(CodecName::Pfor, method, "kernel_millions_a_second"));
        let ours = ["CPU, documents", "GPU, documents"];
        let ours = ours.map(|method| of(CodecName::Bitpack, method, "millions_a_second"));
        let numbers = speeds.into_iter().chain(kernels).chain(ours).map(number);
        let head = [count(length.parse().unwrap_or(0)), count(first.value("lists") as u64)];
        table.row(head.into_iter().chain(numbers).collect());
    }
    table.notes = vec![
        format!(
            "{note} A bin begins at half its length. One list at a time, packed in the device's memory; from the call until \
             the host knows that it is done, and the kernel alone. Documents are the paper's GPU+LPS, with the localized \
             prefix sum; gaps are without. The CPU is one core."
        ),
        format!(
            "The paper's figure has no numbers in its text but this: without the prefix sum its GPU decodes up to \
             {FIGURE_4_MOST} million a second; on short lists its CPU is faster."
        ),
    ];
    let line = |label: &str, codec: CodecName, method: &str| {
        let point = |length: &u64| {
            let row = find(&rows, codec, method, &length.to_string())?;
            Some((*length as f64 / 1e3, row.value("millions_a_second")))
        };
        Line { label: label.to_owned(), points: LENGTHS.iter().filter_map(point).collect() }
    };
    let lines = METHODS.iter().map(|(method, ..)| line(method, CodecName::Pfor, method));
    let chart = LineChart {
        title: "PForDelta by the length of the list".to_owned(),
        subtitle: "millions of integers decoded a second, one list at a time; higher is better".to_owned(),
        x_label: "thousand postings in the list, at most".to_owned(),
        unit: "M/s".to_owned(),
        is_logarithmic: true,
        lines: lines.chain([line("ours, bitpack, GPU", CodecName::Bitpack, "GPU, documents")]).collect(),
    };
    Findings { measurements: rows, tables: vec![table], charts: vec![("speed".to_owned(), Picture::Lines(chart))] }
}
