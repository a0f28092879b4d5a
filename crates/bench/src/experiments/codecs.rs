//! How small every codec makes real lists, and how fast it decodes them, by the length of the list.
//!
//! Everything is measured on indexes, through the lists that queries read: for each codec one index whose documents it
//! packs and one whose frequencies it packs, the other stream being raw. A raw stream has four bytes a posting, so the
//! difference of two indexes is the difference of one stream.

use super::Findings;
use crate::cache::{Cache, fingerprint};
use crate::collection;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::BenchError;
use crate::plot::{Line, LineChart, Picture};
use crate::query_log::spread;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::{CodecsPart, Suite};
use crate::table::{Table, count, number};
use lanner_index::codec::{BLOCK, CodecName, Codecs};
use lanner_index::open::{Column, Index, List};
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::path::Path;
use std::time::Instant;

/// Length classes are powers of four.
const CLASSES: usize = 16;
const MEMORY_BYTES: usize = 1 << 30;

/// Codecs to measure.
pub struct CodecLists<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// Its part about codecs.
    pub part: &'a CodecsPart,
    /// Where the files of suites are.
    pub data: &'a Path,
    /// Where indexes are kept.
    pub cache: &'a Cache,
    /// This program, whose code decides what indexes hold.
    pub program: &'a Path,
    /// Is told what happens.
    pub say: &'a dyn Fn(&str),
}

/// The two streams of a list.
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

    /// This stream packed by a codec, the other one raw.
    fn codecs(self, codec: CodecName) -> Codecs {
        match self {
            Part::Documents => Codecs { documents: codec, weights: CodecName::Raw },
            Part::Weights => Codecs { documents: CodecName::Raw, weights: codec },
        }
    }

    /// Bytes of this stream where it is raw.
    fn raw_bytes(self, list: &List<'_>) -> u64 {
        let is_short = (list.postings() as usize) < BLOCK;
        let stored = match self {
            // The first document of a short list is not in its stream.
            Part::Documents if is_short => list.postings() - 1,
            // Nor are frequencies that are all one.
            Part::Weights if is_short && is_all_ones(list) => 0,
            _ => list.postings(),
        };
        4 * u64::from(stored)
    }

    fn decode(self, list: &List<'_>, block: usize, numbers: &mut [u32; BLOCK]) -> usize {
        match self {
            Part::Documents => list.decode_documents(block, numbers),
            Part::Weights => list.decode_weights(Column::Frequency, block, numbers),
        }
    }
}

fn is_all_ones(list: &List<'_>) -> bool {
    let mut numbers = [0; BLOCK];
    let count = list.decode_weights(Column::Frequency, 0, &mut numbers);
    numbers[..count].iter().all(|&number| number == 1)
}

/// The terms of each length class, and their postings together.
struct Classes {
    terms: Vec<Vec<u64>>,
    postings: Vec<u64>,
}

impl CodecLists<'_> {
    /// Measures every codec.
    pub fn run(&self) -> Result<Findings, BenchError> {
        let raw = self.index(Part::Documents, CodecName::Raw)?;
        let classes = classes(&raw)?;
        let mut rows = Vec::new();
        for codec in CodecName::ALL {
            for part in Part::BOTH {
                (self.say)(&format!("{codec}, {}", part.name()));
                let index = self.index(part, codec)?;
                for class in (0..CLASSES).filter(|&class| !classes.terms[class].is_empty()) {
                    rows.push(self.measure((codec, part), (&raw, &index), &classes, class)?);
                }
            }
        }
        Ok(findings(rows))
    }

    fn index(&self, part: Part, codec: CodecName) -> Result<Index, BenchError> {
        let suite = &self.suite.collection;
        let cache = self.cache.within("codecs");
        let codecs = part.codecs(codec);
        let stamp = format!("{suite:?}\n{codecs:?}\n{}", fingerprint(self.program)?);
        let name = format!("{}-{}", codecs.documents, codecs.weights);
        let folder = cache.folder(&name, &stamp, |folder| {
            let temporary = tempfile::tempdir().map_err(BenchError::io(folder))?;
            let input = collection::prepare(suite, self.data, temporary.path())?;
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let (analyzer, bm25) = (Analyzer::parse(&suite.analyzer)?, Bm25 { k1: suite.k1, b: suite.b });
            let task = BuildTask { input: &input, folder, analyzer, bm25, threads, memory_bytes: MEMORY_BYTES };
            engines::build_lanner(&task, &LannerVariant::Codecs(codecs)).map(|_| ())
        })?;
        Ok(Index::open(folder)?)
    }

    fn measure(
        &self,
        (codec, part): (CodecName, Part),
        (raw, index): (&Index, &Index),
        classes: &Classes,
        class: usize,
    ) -> Result<Measurement, BenchError> {
        let bytes = |index: &Index, term| index.segment().list_bytes(term).unwrap_or(0) as i64;
        let mut stream_bytes = 0;
        for &term in &classes.terms[class] {
            let of_stream = part.raw_bytes(&raw.segment().list(term)?) as i64;
            stream_bytes += of_stream + bytes(index, term) - bytes(raw, term);
        }
        let lists = spread(&classes.terms[class], self.part.lists);
        let lists = lists.iter().map(|&term| index.segment().list(term)).collect::<Result<Vec<_>, _>>()?;
        let runs: Vec<f64> =
            (0..self.part.repetitions.max(1)).map(|_| nanoseconds(&lists, part, self.part.numbers)).collect();
        let ns = Spread::of(&runs).median;
        let (codec, at_least) = (codec.to_string(), 4u64.pow(class as u32).to_string());
        let postings = classes.postings[class] as f64;
        Ok(Measurement::new("codec", &[("codec", &codec), ("stream", part.name()), ("at_least", &at_least)])
            .with("lists", classes.terms[class].len() as f64)
            .with("postings", postings)
            .with("stream_bytes", stream_bytes as f64)
            .with("bits_a_posting", stream_bytes as f64 * 8.0 / postings)
            .with("values_a_ns", 1.0 / ns)
            .with("gb_a_second", 4.0 / ns))
    }
}

fn classes(index: &Index) -> Result<Classes, BenchError> {
    let mut classes = Classes { terms: vec![Vec::new(); CLASSES], postings: vec![0; CLASSES] };
    for term in 0..index.segment().header().terms {
        let postings = index.segment().list(term)?.postings().max(1);
        let class = (postings.ilog2() / 2) as usize;
        classes.terms[class].push(term);
        classes.postings[class] += u64::from(postings);
    }
    Ok(classes)
}

/// The time to decode one number, over all of the lists, again and again until enough are decoded.
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

/// The rows of a stream and codec; all codecs in the order they were measured.
pub fn rows_of<'a>(rows: &'a [Measurement], codec: &'a str, stream: &'a str) -> impl Iterator<Item = &'a Measurement> {
    rows.iter().filter(move |row| row.label("codec") == codec && row.label("stream") == stream)
}

/// Bits a posting over all lists of at least so many postings; not a number where there are none.
pub fn bits_from(rows: &[Measurement], codec: &str, stream: &str, at_least: f64) -> f64 {
    let long =
        || rows_of(rows, codec, stream).filter(|row| row.label("at_least").parse().is_ok_and(|n: f64| n >= at_least));
    let bytes: f64 = long().map(|row| row.value("stream_bytes")).sum();
    bytes * 8.0 / long().map(|row| row.value("postings")).sum::<f64>()
}

/// Numbers a nanosecond over the same lists, each class counting by its postings.
pub fn values_a_ns_from(rows: &[Measurement], codec: &str, stream: &str, at_least: f64) -> f64 {
    let long =
        || rows_of(rows, codec, stream).filter(|row| row.label("at_least").parse().is_ok_and(|n: f64| n >= at_least));
    let ns: f64 = long().map(|row| row.value("postings") / row.value("values_a_ns")).sum();
    long().map(|row| row.value("postings")).sum::<f64>() / ns
}

fn findings(rows: Vec<Measurement>) -> Findings {
    let mut findings = Findings::default();
    let codecs: Vec<String> = CodecName::ALL.iter().map(CodecName::to_string).collect();
    for part in Part::BOTH {
        let stream = part.name();
        for (what, value) in [("bits a posting", "bits_a_posting"), ("decoded numbers a nanosecond", "values_a_ns")] {
            findings.tables.push(class_table(&rows, &codecs, stream, (what, value)));
            let line = |codec: &String| {
                let points = rows_of(&rows, codec, stream).map(|row| {
                    let x = row.label("at_least").parse().unwrap_or(1.0);
                    (x, row.value(value))
                });
                Line { label: codec.clone(), points: points.collect() }
            };
            let chart = LineChart {
                title: format!("{}: {what}", if part == Part::Documents { "Documents" } else { "Frequencies" }),
                subtitle: format!(
                    "by the length of the list; {} is better",
                    if value == "values_a_ns" { "higher" } else { "lower" }
                ),
                x_label: "postings in the list, at least".to_owned(),
                unit: if value == "values_a_ns" { "1/ns".to_owned() } else { "bits".to_owned() },
                is_logarithmic: false,
                lines: codecs.iter().map(line).collect(),
            };
            let ending = if value == "values_a_ns" { "speed" } else { "bits" };
            findings.charts.push((format!("{stream}-{ending}"), Picture::Lines(chart)));
        }
        findings.tables.push(whole_table(&rows, &codecs, stream));
    }
    findings.measurements = rows;
    findings
}

fn class_table(rows: &[Measurement], codecs: &[String], stream: &str, (what, value): (&str, &str)) -> Table {
    let columns = ["postings", "lists"].into_iter().chain(codecs.iter().map(String::as_str));
    let mut table = Table::new(format!("{stream}: {what}, by the length of the list"), 1, &columns.collect::<Vec<_>>());
    for row in rows_of(rows, &codecs[0], stream) {
        let least: u64 = row.label("at_least").parse().unwrap_or(1);
        let of = |codec: &String| {
            let same = rows_of(rows, codec, stream).find(|other| other.label("at_least") == row.label("at_least"));
            number(same.map_or(f64::NAN, |other| other.value(value)))
        };
        let head = [format!("{} – {}", count(least), count(4 * least - 1)), count(row.value("lists") as u64)];
        table.row(head.into_iter().chain(codecs.iter().map(of)).collect());
    }
    table
}

fn whole_table(rows: &[Measurement], codecs: &[String], stream: &str) -> Table {
    let columns = ["codec", "bits a posting", "x raw", "numbers/ns", "GB/s"];
    let mut table = Table::new(format!("{stream}: all lists"), 1, &columns);
    for codec in codecs {
        let (bits, speed) = (bits_from(rows, codec, stream, 1.0), values_a_ns_from(rows, codec, stream, 1.0));
        let cells = [bits, bits / 32.0, speed, speed * 4.0].map(number);
        table.row([vec![codec.clone()], cells.to_vec()].concat());
    }
    table.notes = vec!["GB of decoded numbers, four bytes each; every class counts by its postings.".to_owned()];
    table
}
