//! Figure 12: decoding one list after the other, by length, on the GPU by Para-EF and on the CPU by PForDelta.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::plot::{Line, LineChart, Picture};
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Average, Coded, Ground, Timed};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::device::decode::DecodeKind::Documents;
use lanner_index::codec::CodecName;

/// Lengths, and the speedup of the paper's GPU over PForDelta on its CPU, which its text gives as ranges.
const FIGURE_12: [(u64, &str); 5] = [
    (1_000, "below 2"),
    (10_000, "below 2"),
    (100_000, "11 to 29.6"),
    (1_000_000, "11 to 29.6"),
    (10_000_000, "11 to 29.6"),
];
/// Lists of each length, at most.
const LISTS: usize = 24;
/// Who decodes: the paper's GPU and CPU, and ours beside them.
const METHODS: [(&str, CodecName, Way); 7] = [
    ("Para-EF, GPU, sent", CodecName::EliasFano, Way::Sent),
    ("Para-EF, GPU, resident", CodecName::EliasFano, Way::Resident),
    ("PForDelta, CPU", CodecName::PforBlock, Way::Cpu),
    ("ours, bitpack, GPU, sent", CodecName::Bitpack, Way::Sent),
    ("ours, bitpack, GPU, resident", CodecName::Bitpack, Way::Resident),
    ("ours, bitpack, CPU", CodecName::Bitpack, Way::Cpu),
    ("elias-fano, CPU", CodecName::EliasFano, Way::Cpu),
];

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Sent,
    Resident,
    Cpu,
}

pub fn figure_12(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let mut rows = Vec::new();
    for (length, _) in FIGURE_12 {
        rows.extend(measure(ground, length)?);
    }
    Ok(findings(&ground.note(), rows))
}

/// Lists of about a length, each method.
fn measure(ground: &Ground, length: u64) -> Result<Vec<Measurement>, BenchError> {
    // A third of a decade around the length, and what there is above for the longest.
    let (from, to) = (ground.length(length * 7 / 10), ground.length(length * 14 / 10) + 1);
    let numbers: Vec<u64> = ground.lists.some(from..to, LISTS).iter().map(|term| term.number).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let lists = ground.decode(&numbers)?;
    let mut rows = Vec::new();
    for codec in [CodecName::EliasFano, CodecName::PforBlock, CodecName::Bitpack] {
        let coded = Coded::all(ground, codec, &lists)?;
        let (mut room, postings) = (Vec::new(), coded.iter().map(Coded::postings).sum::<usize>());
        for list in &coded {
            list.check(ground, &[Documents])?;
            list.check_on_cpu(Documents, &mut room)?;
        }
        for (name, _, way) in METHODS.iter().filter(|method| method.1 == codec) {
            let time = |list: &Coded| -> Result<Timed, BenchError> {
                match way {
                    Way::Sent => list.time(ground, Documents, true),
                    Way::Resident => list.time(ground, Documents, false),
                    Way::Cpu => list.time_on_cpu(Documents, &mut room),
                }
            };
            let average: Average = ground.average(&coded, time)?;
            let row = Measurement::new("decode", &[("method", name), ("length", &length.to_string())])
                .with("lists", coded.len() as f64)
                .with("postings", postings as f64 / coded.len() as f64);
            rows.push(average.note(row));
        }
    }
    Ok(rows)
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let names = METHODS.map(|(name, ..)| name);
    let columns: Vec<&str> =
        ["postings", "lists"].into_iter().chain(names).chain(["sent x PForDelta, CPU", "paper's x"]).collect();
    let mut table = Table::new("Microseconds to decode the documents of one list", 1, &columns);
    for (length, paper) in FIGURE_12 {
        let of = |name: &str| {
            rows.iter().find(|row| row.label("method") == name && row.label("length") == length.to_string())
        };
        let Some(first) = of(names[0]) else { continue };
        let us = |name: &str| of(name).map_or(f64::NAN, |row| row.value("us"));
        let head = [count(first.value("postings") as u64), count(first.value("lists") as u64)];
        let times = names.iter().map(|name| number(us(name)));
        let speedup = us(names[2]) / us(names[0]);
        table.row(head.into_iter().chain(times).chain([number(speedup), paper.to_owned()]).collect());
    }
    table.notes = vec![
        note.to_owned(),
        "One list at a time. On the GPU from the call until the host knows that it is done, the numbers staying there; \
         sent: with the packed list, and a row of 40 bytes for each block, copied from ordinary memory of the host first, \
         as in the paper, where memory was allocated too. CPU: one core, numbers written to memory; PForDelta is \
         pfor-block, a width for each block. The paper's figure has no numbers in its text but the speedups."
            .to_owned(),
    ];
    let line = |name: &str| {
        let of_method = rows.iter().filter(|row| row.label("method") == name);
        let point =
            |row: &Measurement| (row.value("postings").max(1000.0) / 1e3, row.value("postings") / row.value("us"));
        Line { label: name.to_owned(), points: of_method.map(point).collect() }
    };
    let chart = LineChart {
        title: "Decoding a list, GPU and one core".to_owned(),
        subtitle: "postings decoded in a microsecond, one list at a time; higher is better".to_owned(),
        x_label: "thousand postings in the list".to_owned(),
        unit: "1/us".to_owned(),
        is_logarithmic: true,
        lines: names[..6].iter().map(|name| line(name)).collect(),
    };
    Findings { measurements: rows, tables: vec![table], charts: vec![("rate".to_owned(), Picture::Lines(chart))] }
}
