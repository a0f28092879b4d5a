//! `lanner stats`: shows what an index holds and how its bytes are used, and where its lists lie on a GPU.
//!
//! The tables are lines with fixed column widths; a table crate would not make them shorter.

use crate::executor_options::ExecutorOptions;
use crate::failure::Failure;
use crate::gpu_report::GpuReport;
use crate::list_sizes::{ColumnBytes, ListSizes};
use crate::quantity::{bytes, count};
use crate::terminal::printable;
use crate::whole_file::{stdout, write_json_line};
use lanner::eval::Topics;
use lanner::{Engine, Index, Mode, Policy, Query};
use lanner_index::codec::Codecs;
use lanner_index::format::manifest::Manifest;
use lanner_index::format::segment::{HEADER_BYTES, Section};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// The length of a full bar in characters.
const BAR: usize = 24;

/// Show documents, terms, postings, bytes by section, bits per posting, and the lengths of lists
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Show where the lists of the index lie on the GPU instead: in device memory, or in host memory
    #[arg(long)]
    gpu: bool,
    #[command(flatten)]
    executor: ExecutorOptions,
    /// With --gpu, answer the queries of a log first, so that the GPU keeps what they read
    #[arg(long, value_name = "FILE", requires = "gpu")]
    queries: Option<PathBuf>,
    /// How the words of these queries are combined: `and`, `or`, or `and-or`
    #[arg(long, default_value = "or", value_name = "MODE", requires = "queries")]
    mode: Mode,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.gpu {
        return run_on_gpu(arguments);
    }
    if arguments.executor.names_any() {
        return Err(Failure::new(
            "--executor, --policy and options of the GPU need --gpu here; leave them out or add it",
        ));
    }
    let index = Index::open(&arguments.index)?;
    let report = Report::new(&index)?;
    let mut out = stdout();
    if arguments.json {
        write_json_line(&report, &mut out)?;
    } else {
        report.write(&mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Opens the GPU, answers the queries of a log on it, and shows where lists lie then.
fn run_on_gpu(arguments: &Arguments) -> Result<(), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let gpu = arguments.executor.gpu(threads)?;
    let gpu = gpu.ok_or_else(|| Failure::new("--gpu needs a GPU, and --executor names none; leave it out"))?;
    let engine = Engine::open(&arguments.index)?.threads(threads).policy(Policy::Gpu).gpu(gpu);
    engine.connect()?;
    let mut answered = 0;
    if let Some(log) = &arguments.queries {
        let query = |text: &str| Query::new(text).mode(arguments.mode);
        let queries: Vec<Query> = Topics::open(log, None)?.topics.iter().map(|topic| query(&topic.text)).collect();
        for answer in engine.stream(queries) {
            answer?;
            answered += 1;
        }
    }
    let (report, mut out) = (GpuReport::new(&engine, answered)?, stdout());
    match arguments.json {
        true => write_json_line(&report, &mut out)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

#[derive(Serialize)]
struct Report<'a> {
    manifest: &'a Manifest,
    documents: u32,
    terms: u64,
    postings: u64,
    tokens: u64,
    average_length: f64,
    bytes: u64,
    frequencies: bool,
    impacts: bool,
    codecs: Codecs,
    sections: Vec<SectionSize>,
    lists: ListSizes,
}

#[derive(Serialize)]
struct SectionSize {
    name: &'static str,
    bytes: u64,
}

impl<'a> Report<'a> {
    fn new(index: &'a Index) -> Result<Report<'a>, Failure> {
        let header = index.segment().header();
        let sections = Section::ALL.into_iter().filter_map(|section| {
            let entry = header.entry(section)?;
            Some(SectionSize { name: section.name(), bytes: entry.length })
        });
        Ok(Report {
            manifest: index.manifest(),
            documents: header.documents,
            terms: header.terms,
            postings: header.postings,
            tokens: header.tokens,
            average_length: index.statistics().average_length(),
            bytes: header.file_bytes,
            frequencies: header.has_frequencies,
            impacts: header.has_impacts,
            codecs: header.codecs,
            sections: sections.collect(),
            lists: ListSizes::of(index)?,
        })
    }

    fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        self.write_overview(out)?;
        self.write_sections(out)?;
        self.write_bits(out)?;
        self.write_lengths(out)
    }

    fn write_overview(&self, out: &mut impl Write) -> Result<(), Failure> {
        let Manifest { generation, analyzer, chain, stop_words, fields, stored, bm25, order, impacts, .. } =
            self.manifest;
        writeln!(out, "generation      {generation}")?;
        writeln!(out, "documents       {}", count(u64::from(self.documents)))?;
        writeln!(out, "terms           {}", count(self.terms))?;
        writeln!(out, "postings        {}", count(self.postings))?;
        writeln!(out, "tokens          {}", count(self.tokens))?;
        writeln!(out, "average length  {:.2}", self.average_length)?;
        let steps = if analyzer == chain { String::new() } else { format!(" ({chain})") };
        writeln!(out, "analyzer        {}", printable(&format!("{analyzer}{steps}")))?;
        if !stop_words.is_empty() {
            writeln!(out, "stop words      {}", count(stop_words.len() as u64))?;
        }
        writeln!(out, "fields          {}", listed(fields))?;
        writeln!(out, "stored          {}", listed(stored))?;
        writeln!(out, "order           {order}")?;
        writeln!(out, "bm25            k1 {}, b {}", bm25.k1, bm25.b)?;
        let weights = [("frequencies", self.frequencies), ("impacts", self.impacts)];
        let weights: Vec<_> = weights.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
        writeln!(out, "weights         {}", weights.join(", "))?;
        if let Some(impacts) = impacts {
            let origin = if impacts.learned { "given with the documents" } else { "made from BM25" };
            writeln!(out, "impacts         {origin}, scale {:.4}", impacts.scale)?;
        }
        Ok(())
    }

    fn write_sections(&self, out: &mut impl Write) -> Result<(), Failure> {
        writeln!(out, "\n{:<14}  {:>14}  {:>6}", "section", "bytes", "share")?;
        let share = |bytes: u64| 100.0 * bytes as f64 / self.bytes as f64;
        let mut rest = self.bytes;
        for SectionSize { name, bytes } in &self.sections {
            writeln!(out, "{name:<14}  {:>14}  {:>5.1}%", count(*bytes), share(*bytes))?;
            rest -= bytes;
        }
        let note = format!("header of {HEADER_BYTES} bytes, and padding of sections");
        writeln!(out, "{:<14}  {:>14}  {:>5.1}%  {note}", "other", count(rest), share(rest))?;
        writeln!(out, "{:<14}  {:>14}  100.0%  {}", "all", count(self.bytes), bytes(self.bytes))?;
        Ok(())
    }

    fn write_bits(&self, out: &mut impl Write) -> Result<(), Failure> {
        let Codecs { documents, weights } = self.codecs;
        writeln!(out, "\nbits per posting (documents by {documents}, weights by {weights})")?;
        let names = ["documents", "frequencies", "impacts", "directory", "padding", "all"];
        write!(out, "{:<6}  {:>11}  {:>14}", "lists", "lists", "postings")?;
        names.iter().try_for_each(|name| write!(out, "  {name:>11}"))?;
        writeln!(out)?;
        let ListSizes { short, sparse, dense, .. } = &self.lists;
        let kinds = [("short", short), ("sparse", sparse), ("dense", dense), ("all", &self.lists.all())];
        for (name, kind) in kinds {
            write!(out, "{name:<6}  {:>11}  {:>14}", count(kind.lists), count(kind.postings))?;
            let ColumnBytes { documents, frequencies, impacts, directory, padding } = kind.bytes;
            for bytes in [documents, frequencies, impacts, directory, padding, kind.bytes.all()] {
                write!(out, "  {:>11.3}", bits(bytes, kind.postings))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_lengths(&self, out: &mut impl Write) -> Result<(), Failure> {
        let lengths = &self.lists.lengths;
        let most_lists = lengths.iter().map(|row| row.lists).max().unwrap_or(0);
        let most_postings = lengths.iter().map(|row| row.postings).max().unwrap_or(0);
        let label = |row: &crate::list_sizes::LengthRow| match row.from == row.to {
            true => count(row.from),
            false => format!("{}..={}", count(row.from), count(row.to)),
        };
        let width = lengths.iter().map(|row| label(row).len()).max().unwrap_or(0).max("list length".len());
        writeln!(out, "\n{:>width$}  {:>11}  {:BAR$}  {:>14}", "list length", "lists", "", "postings")?;
        for row in lengths {
            let (lists, postings) = (bar(row.lists, most_lists), bar(row.postings, most_postings));
            let line = format!(
                "{:>width$}  {:>11}  {lists:BAR$}  {:>14}  {postings}",
                label(row),
                count(row.lists),
                count(row.postings)
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { printable(&names.join(", ")) }
}

fn bits(bytes: u64, postings: u64) -> f64 {
    if postings == 0 { 0.0 } else { 8.0 * bytes as f64 / postings as f64 }
}

/// Draws a bar for a value as a share of the largest, in eighths of a character.
fn bar(value: u64, largest: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if value == 0 {
        return String::new();
    }
    let eighths = (u128::from(value) * BAR as u128 * 8).div_ceil(u128::from(largest)) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(100, 100), "█".repeat(BAR));
        assert_eq!(bar(50, 100), "█".repeat(BAR / 2));
        assert_eq!(bar(1, 1_000_000), "▏", "the smallest share is visible");
        assert_eq!(bar(0, 100), "");
    }
}
