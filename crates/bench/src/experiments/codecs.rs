//! Compression and decode speed of every codec by list length.
//!
//! Everything is measured on indexes, through the lists that queries read. For each codec there is one index whose
//! documents it packs and one whose frequencies it packs; the other column is raw. A raw column has four bytes per
//! posting, so the difference in size of two indexes is the difference of one column.

use super::{Context, Findings};
use crate::collection;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::{BenchError, Result};
use crate::plot::{Line, LineChart};
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::CodecsPart;
use crate::table::{Table, count, number};
use lanner_index::codec::{BLOCK, CodecName, Codecs};
use lanner_index::open::{Column, Index, List};
use std::time::Instant;

/// Length classes are powers of four.
const CLASSES: usize = 16;

/// Codecs to measure.
pub struct CodecLists<'a> {
    pub context: Context<'a>,
    pub part: &'a CodecsPart,
}

/// The measured columns of a list; `stream` in result files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Documents,
    Weights,
}

impl Part {
    const BOTH: [Part; 2] = [Part::Documents, Part::Weights];

    fn name(self) -> &'static str {
        match self {
            Part::Documents => "documents",
            Part::Weights => "weights",
        }
    }

    /// This column packed by a codec, the other one raw.
    fn codecs(self, codec: CodecName) -> Codecs {
        match self {
            Part::Documents => Codecs { documents: codec, weights: CodecName::Raw },
            Part::Weights => Codecs { documents: CodecName::Raw, weights: codec },
        }
    }

    /// Bytes of this column when it is raw.
    fn raw_bytes(self, list: &List<'_>) -> u64 {
        let is_short = (list.postings() as usize) < BLOCK;
        let stored = match self {
            // The first document of a short list is stored elsewhere.
            Part::Documents if is_short => list.postings() - 1,
            // Frequencies that are all 1 are not stored.
            Part::Weights if is_short && is_all_ones(list) => 0,
            _ => list.postings(),
        };
        4 * u64::from(stored)
    }

    fn decode(self, list: &List<'_>, block: usize, numbers: &mut [u32; BLOCK]) -> usize {
        match self {
            Part::Documents => list.decode_documents(block, numbers),
            Part::Weights => list.decode_values(Column::Frequency, block, numbers),
        }
    }
}

fn is_all_ones(list: &List<'_>) -> bool {
    let mut numbers = [0; BLOCK];
    let count = list.decode_values(Column::Frequency, 0, &mut numbers);
    numbers[..count].iter().all(|&number| number == 1)
}

/// The terms of each length class, and the sum of their postings.
struct Classes {
    terms: Vec<Vec<u64>>,
    postings: Vec<u64>,
}

impl CodecLists<'_> {
    /// Measures every codec.
    pub fn run(&self) -> Result<Findings> {
        let raw = self.index(Part::Documents, CodecName::Raw)?;
        let classes = classes(&raw)?;
        let mut rows = Vec::new();
        for codec in CodecName::ALL {
            for part in Part::BOTH {
                (self.context.say)(&format!("{codec}, {}", part.name()));
                let index = self.index(part, codec)?;
                for class in (0..CLASSES).filter(|&class| !classes.terms[class].is_empty()) {
                    rows.push(self.measure((codec, part), (&raw, &index), &classes, class)?);
                }
            }
        }
        Ok(findings(rows))
    }

    fn index(&self, part: Part, codec: CodecName) -> Result<Index> {
        let (options, part_of) = (self.context.options, &self.context.suite.collection);
        let codecs = part.codecs(codec);
        let stamp = format!("{}\n{codecs:?}", collection::stamp(part_of, &options.data)?);
        let name = format!("{}-{}", codecs.documents, codecs.weights);
        let folder = self.context.cache("codecs").index((&name, &stamp), &options.program, |folder| {
            let temporary = tempfile::tempdir().map_err(BenchError::io(folder))?;
            let input = collection::prepare(part_of, &options.data, temporary.path())?;
            let task = BuildTask::new(&input, folder, part_of.analyzer()?, part_of.bm25());
            engines::build_lanner(&task, &LannerVariant::Codecs(codecs))
        })?;
        Ok(Index::open(folder)?)
    }

    fn measure(
        &self,
        (codec, part): (CodecName, Part),
        (raw, index): (&Index, &Index),
        classes: &Classes,
        class: usize,
    ) -> Result<Measurement> {
        let bytes = |index: &Index, term| index.segment().list_bytes(term).unwrap_or(0) as i64;
        let mut column_bytes = 0;
        for &term in &classes.terms[class] {
            let raw_bytes = part.raw_bytes(&raw.segment().list(term)?) as i64;
            column_bytes += raw_bytes + bytes(index, term) - bytes(raw, term);
        }
        let lists = spread(&classes.terms[class], self.part.lists);
        let lists = lists.iter().map(|&term| index.segment().list(term)).collect::<Result<Vec<_>, _>>()?;
        let runs = (0..self.part.repetitions.max(1)).map(|_| nanoseconds(&lists, part, self.part.numbers));
        let ns = Spread::of(runs).median;
        let (at_least, postings) = (4u64.pow(class as u32), classes.postings[class] as f64);
        Ok(Measurement::new("codec", &[("codec", &codec), ("stream", &part.name()), ("at_least", &at_least)])
            .with("lists", classes.terms[class].len() as f64)
            .with("postings", postings)
            .with("stream_bytes", column_bytes as f64)
            .with("bits_a_posting", column_bytes as f64 * 8.0 / postings)
            .with("values_a_ns", 1.0 / ns)
            .with("gb_a_second", 4.0 / ns))
    }
}

fn classes(index: &Index) -> Result<Classes> {
    let mut classes = Classes { terms: vec![Vec::new(); CLASSES], postings: vec![0; CLASSES] };
    for term in 0..index.segment().header().terms {
        let postings = index.segment().list(term)?.postings().max(1);
        let class = (postings.ilog2() / 2) as usize;
        classes.terms[class].push(term);
        classes.postings[class] += u64::from(postings);
    }
    Ok(classes)
}

/// Returns the time to decode one number. The lists are decoded repeatedly until `numbers_wanted` are decoded.
fn nanoseconds(lists: &[List<'_>], part: Part, numbers_wanted: u64) -> f64 {
    let mut numbers = [0; BLOCK];
    let (start, mut decoded) = (Instant::now(), 0);
    while decoded < numbers_wanted {
        for list in lists {
            for block in 0..list.blocks() {
                decoded += part.decode(list, block, &mut numbers) as u64;
                std::hint::black_box(&mut numbers);
            }
        }
    }
    start.elapsed().as_nanos() as f64 / decoded as f64
}

/// Returns the rows of a codec and column, one for each length class.
pub fn rows_of<'a>(rows: &'a [Measurement], codec: &'a str, column: &'a str) -> impl Iterator<Item = &'a Measurement> {
    rows.iter().filter(move |row| row.label("codec") == codec && row.label("stream") == column)
}

/// Returns the smallest number of postings in the length class of a row.
pub fn class_start(row: &Measurement) -> u64 {
    row.label("at_least").parse().unwrap_or(1)
}

/// Sums a value over the rows of lists with at least `at_least` postings.
fn sum(rows: &[Measurement], (codec, column): (&str, &str), at_least: u64, value: fn(&Measurement) -> f64) -> f64 {
    rows_of(rows, codec, column).filter(|row| class_start(row) >= at_least).map(value).sum()
}

/// Returns the bits per posting of all lists with at least `at_least` postings; NaN if there are none.
pub fn bits_per_posting(rows: &[Measurement], of: (&str, &str), at_least: u64) -> f64 {
    let bytes = sum(rows, of, at_least, |row| row.value("stream_bytes"));
    bytes * 8.0 / sum(rows, of, at_least, |row| row.value("postings"))
}

/// Returns the decoded numbers per nanosecond of all lists with at least `at_least` postings, weighted by postings.
pub fn numbers_per_ns(rows: &[Measurement], of: (&str, &str), at_least: u64) -> f64 {
    let ns = sum(rows, of, at_least, |row| row.value("postings") / row.value("values_a_ns"));
    sum(rows, of, at_least, |row| row.value("postings")) / ns
}

/// A value by list length: its name in results, its description, its unit, and the suffix of its chart.
struct Figure {
    value: &'static str,
    title: &'static str,
    unit: &'static str,
    better: &'static str,
    suffix: &'static str,
}

const FIGURES: [Figure; 2] = [
    Figure { value: "bits_a_posting", title: "bits per posting", unit: "bits", better: "lower", suffix: "bits" },
    Figure {
        value: "values_a_ns",
        title: "decoded numbers per nanosecond",
        unit: "1/ns",
        better: "higher",
        suffix: "speed",
    },
];

fn findings(rows: Vec<Measurement>) -> Findings {
    let mut findings = Findings::default();
    let codecs: Vec<String> = CodecName::ALL.iter().map(CodecName::to_string).collect();
    for part in Part::BOTH {
        let column = part.name();
        for figure in &FIGURES {
            let line = |codec: &String| {
                let points =
                    rows_of(&rows, codec, column).map(|row| (class_start(row) as f64, row.value(figure.value)));
                Line::new(codec, points)
            };
            let name = if part == Part::Documents { "Documents" } else { "Frequencies" };
            let subtitle = format!("by the length of the list; {} is better", figure.better);
            let axes = ["postings in the list, at least", figure.unit];
            let chart = LineChart::new(format!("{name}: {}", figure.title), subtitle, axes);
            findings = findings
                .table(class_table(&rows, &codecs, column, figure))
                .chart(format!("{column}-{}", figure.suffix), chart.lines(codecs.iter().map(line)));
        }
        findings = findings.table(whole_table(&rows, &codecs, column));
    }
    findings.measurements = rows;
    findings
}

fn class_table(rows: &[Measurement], codecs: &[String], column: &str, figure: &Figure) -> Table {
    let columns: Vec<&str> = ["postings", "lists"].into_iter().chain(codecs.iter().map(String::as_str)).collect();
    let mut table = Table::new(format!("{column}: {}, by the length of the list", figure.title), 1, &columns);
    for row in rows_of(rows, &codecs[0], column) {
        let of = |codec: &String| {
            let same = rows_of(rows, codec, column).find(|other| class_start(other) == class_start(row));
            number(same.map_or(f64::NAN, |other| other.value(figure.value)))
        };
        let head = [class_name(row), row.count("lists")];
        table.row(head.into_iter().chain(codecs.iter().map(of)));
    }
    table
}

/// Formats the length class of a row.
pub fn class_name(row: &Measurement) -> String {
    format!("{} – {}", count(class_start(row)), count(4 * class_start(row) - 1))
}

fn whole_table(rows: &[Measurement], codecs: &[String], column: &str) -> Table {
    let columns = ["codec", "bits per posting", "x raw", "numbers/ns", "GB/s"];
    let mut table = Table::new(format!("{column}: all lists"), 1, &columns);
    for codec in codecs {
        let of = (codec.as_str(), column);
        let (bits, speed) = (bits_per_posting(rows, of, 1), numbers_per_ns(rows, of, 1));
        table.numbers(codec, [bits, bits / 32.0, speed, speed * 4.0]);
    }
    table.notes(&["GB/s of decoded numbers with four bytes each; classes are weighted by their postings."])
}
