//! Figure 12: decoding one list at a time, by length, on the GPU by Para-EF and on the CPU by PForDelta.

use crate::error::Result;
use crate::experiments::Findings;
use crate::plot::{LineChart, lines_by};
use crate::reproduce::setup::{Coded, Setup, Way};
use crate::result::{Measurement, find, find_value};
use crate::statistics::mean;
use crate::table::{Table, number};
use lanner::internals::device::decode::DecodeKind::Documents;
use lanner_index::codec::CodecName;

/// List lengths, and the speedup of the paper's GPU over PForDelta on its CPU, which the text gives as ranges.
const FIGURE_12: [(u64, &str); 5] = [
    (1_000, "below 2"),
    (10_000, "below 2"),
    (100_000, "11 to 29.6"),
    (1_000_000, "11 to 29.6"),
    (10_000_000, "11 to 29.6"),
];
/// Maximal number of lists of each length.
const LISTS: usize = 24;
/// The methods of the paper, and Lanner's; `sent` stands for uploaded lists.
const METHODS: [(&str, CodecName, Way); 7] = [
    ("Para-EF, GPU, sent", CodecName::EliasFano, Way::Uploaded),
    ("Para-EF, GPU, resident", CodecName::EliasFano, Way::Resident),
    ("PForDelta, CPU", CodecName::PforBlock, Way::Cpu),
    ("ours, bitpack, GPU, sent", CodecName::Bitpack, Way::Uploaded),
    ("ours, bitpack, GPU, resident", CodecName::Bitpack, Way::Resident),
    ("ours, bitpack, CPU", CodecName::Bitpack, Way::Cpu),
    ("elias-fano, CPU", CodecName::EliasFano, Way::Cpu),
];

pub fn figure_12(setup: &Setup) -> Result<Findings> {
    let mut rows = Vec::new();
    for (length, _) in FIGURE_12 {
        rows.extend(measure(setup, length)?);
    }
    Ok(findings(&setup.note(), rows))
}

/// Measures each method on lists of about a length.
fn measure(setup: &Setup, length: u64) -> Result<Vec<Measurement>> {
    let lengths = setup.length(length * 7 / 10)..setup.length(length * 14 / 10) + 1;
    let terms = setup.lists.some(lengths, LISTS);
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let lists: Vec<_> = setup.decode(terms.iter().map(|term| term.number))?.into_values().collect();
    let (mut rows, mut buffer) = (Vec::new(), Vec::new());
    for codec in [CodecName::EliasFano, CodecName::PforBlock, CodecName::Bitpack] {
        let coded = Coded::all(setup, codec, &lists)?;
        coded.iter().try_for_each(|list| list.check(setup, &[Documents]))?;
        let postings = mean(coded.iter().map(|list| list.postings() as f64));
        for (name, _, way) in METHODS.iter().filter(|method| method.1 == codec) {
            let average = setup.average(&coded, |list| list.time(setup, Documents, *way, &mut buffer))?;
            let row = Measurement::new("decode", &[("method", name), ("length", &length)])
                .with("lists", coded.len() as f64)
                .with("postings", postings);
            rows.push(average.add_to(row));
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
        let Some(first) = find(&rows, &[("method", &names[0]), ("length", &length)]) else { continue };
        let us = |name| find_value(&rows, &[("method", &name), ("length", &length)], "us");
        let head = ["postings", "lists"].map(|name| first.count(name));
        let times = names.map(us).into_iter().chain([us(names[2]) / us(names[0])]).map(number);
        table.row(head.into_iter().chain(times).chain([paper.to_owned()]));
    }
    let table = table.notes(&[
        note,
        "One list at a time. GPU: from the call until the host knows that decoding is done; the numbers stay on the \
         device. Sent: the packed list and a row of 40 bytes for each block are first copied from pageable host \
         memory, as in the paper, which also allocates memory. CPU: one core, numbers written to memory; PForDelta is \
         pfor-block, with a width for each block. The text of the paper gives only the speedups.",
    ]);
    let point = |row: &Measurement| (row.value("postings").max(1000.0) / 1e3, row.value("postings") / row.value("us"));
    let subtitle = "postings decoded per microsecond, one list at a time; higher is better";
    let axes = ["thousand postings in the list", "1/us"];
    let chart = LineChart::logarithmic("Decoding a list, GPU and one core", subtitle, axes);
    let chart = chart.lines(lines_by(&rows, "method", &names[..6], point));
    Findings::new(rows).table(table).chart("rate", chart)
}
