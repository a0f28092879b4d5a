//! `lanner index`: a collection in, an index out.

use crate::failure::Failure;
use crate::progress::BuildMeter;
use crate::quantity::{bytes, count, counted, duration, parse_bytes};
use crate::terminal::tell;
use crate::whole_file::stdout;
use lanner_index::build::{BuildOptions, BuildReport, Order, Weights, build, build_from_ciff};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions, Format};
use lanner_index::format::dense::DENSE_SHARE;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Skipped records that the summary names one by one.
const NAMED_PROBLEMS: usize = 5;

/// Build an index of a collection; an index that is there already is replaced when the new one is whole
#[derive(clap::Args)]
pub struct Arguments {
    /// A file, a folder, or `-` for standard input; plain, gzip or zstd
    #[arg(long, value_name = "PATH")]
    input: PathBuf,
    /// The folder of the index; made if it is not there
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// jsonl, tsv, trec, beir, text or ciff [default: found from names and content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<InputFormat>,
    /// english, simple, whitespace, pretokenized, or a chain such as words+lowercase+stop+porter [default: english]
    #[arg(long, value_name = "NAME", value_parser = Analyzer::parse)]
    analyzer: Option<Analyzer>,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How much memory the build may use, at least 32MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    memory: usize,
    #[arg(long, value_name = "NAME", help = codec_help())]
    codec: Option<Codecs>,
    /// The order of documents: given, or bisection for smaller lists and faster queries, which takes time and memory
    #[arg(long, value_name = "ORDER", default_value = "given")]
    order: Order,
    /// What postings carry: tf, impact or tf,impact [default: tf, or impact with --vector-field]
    #[arg(long, value_name = "LIST")]
    weights: Option<Weights>,
    /// Store long lists again in the order of impacts, for score-at-a-time
    #[arg(long)]
    impact_ordered: bool,
    /// Static ranks: a file with an id and a number a line
    #[arg(long, value_name = "FILE")]
    rank: Option<PathBuf>,
    /// How slowly a frequency saturates in BM25
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    k1: f64,
    /// How much a document's length counts in BM25, from 0 to 1
    #[arg(long, default_value_t = 0.4, allow_negative_numbers = true)]
    b: f64,
    /// Fields to index, separated by commas [default: title,text]
    #[arg(long, value_name = "LIST")]
    fields: Option<String>,
    /// Fields to keep for showing hits, separated by commas, or none [default: title,text]
    #[arg(long, value_name = "LIST")]
    store: Option<String>,
    /// The field of a document's id [default: id, or _id in BEIR]
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// The field of term weights, for input that is already tokenized
    #[arg(long, value_name = "FIELD")]
    vector_field: Option<String>,
    /// Stop at the first malformed record or repeated id instead of skipping it
    #[arg(long)]
    strict: bool,
    /// No progress and no summary
    #[arg(long)]
    quiet: bool,
    /// The summary as JSON
    #[arg(long)]
    json: bool,
}

/// A format of documents, or postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputFormat {
    Documents(Format),
    Ciff,
}

impl FromStr for InputFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ciff" => Ok(InputFormat::Ciff),
            _ => name
                .parse()
                .map(InputFormat::Documents)
                .map_err(|_| format!("unknown format {name:?}; choose one of jsonl, tsv, trec, beir, text, ciff")),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let report = if arguments.is_ciff() { arguments.build_ciff()? } else { arguments.build_documents()? };
    let summary = Summary { report, seconds: start.elapsed().as_secs_f64() };
    if arguments.json {
        let mut out = stdout();
        serde_json::to_writer(&mut out, &summary).map_err(std::io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
        return Ok(());
    }
    if !arguments.quiet {
        let mut out = stdout();
        write_summary(&summary, &arguments.index, &mut out)?;
        out.flush()?;
    }
    warn_of_skipped(&summary.report, arguments.quiet);
    Ok(())
}

impl Arguments {
    fn is_ciff(&self) -> bool {
        let name = self.input.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let is_named_so = [".ciff", ".ciff.gz", ".ciff.zst"].iter().any(|ending| name.ends_with(ending));
        self.format == Some(InputFormat::Ciff) || (self.format.is_none() && is_named_so)
    }

    fn build_ciff(&self) -> Result<BuildReport, Failure> {
        let of_documents = [
            ("--fields", self.fields.is_some()),
            ("--store", self.store.as_deref().is_some_and(|list| !parse_list(list).is_empty())),
            ("--id-field", self.id_field.is_some()),
            ("--vector-field", self.vector_field.is_some()),
        ];
        if let Some((option, _)) = of_documents.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::new(format!("a CIFF file holds postings and no fields; leave out {option}")));
        }
        if self.input == Path::new("-") {
            return Err(Failure::new("a CIFF file cannot come from standard input; save it to a file first"));
        }
        let meter = BuildMeter::new(self.quiet, None);
        Ok(build_from_ciff(&self.index, &self.input, &self.build_options(), &meter)?)
    }

    fn build_documents(&self) -> Result<BuildReport, Failure> {
        let corpus = Corpus::open(&self.input, self.corpus_options())?;
        let meter = BuildMeter::new(self.quiet, None);
        Ok(build(&self.index, corpus, &self.build_options(), &meter)?)
    }

    fn corpus_options(&self) -> CorpusOptions {
        let defaults = CorpusOptions::default();
        let list = |given: &Option<String>, default| given.as_deref().map_or(default, parse_list);
        CorpusOptions {
            format: match self.format {
                Some(InputFormat::Documents(format)) => Some(format),
                Some(InputFormat::Ciff) | None => None,
            },
            id_field: self.id_field.clone().unwrap_or(defaults.id_field),
            fields: list(&self.fields, defaults.fields),
            store: list(&self.store, defaults.store),
            vector_field: self.vector_field.clone(),
        }
    }

    fn build_options(&self) -> BuildOptions {
        let defaults = BuildOptions::default();
        let is_tokenized = self.vector_field.is_some();
        // Learned weights are impacts, and their terms are not to be stemmed again.
        let weights = self.weights.unwrap_or(Weights { frequencies: !is_tokenized, impacts: is_tokenized });
        let usual = || match is_tokenized {
            true => Analyzer::parse("pretokenized").expect("a known name"),
            false => defaults.analyzer.clone(),
        };
        BuildOptions {
            analyzer: self.analyzer.clone().unwrap_or_else(usual),
            threads: self.threads.unwrap_or(defaults.threads),
            memory_bytes: self.memory,
            codecs: self.codec.unwrap_or_default(),
            dense: self.codec.is_none(),
            frequencies: weights.frequencies,
            impacts: weights.impacts,
            impact_ordered: self.impact_ordered,
            bm25: Bm25 { k1: self.k1, b: self.b },
            strict: self.strict,
            ranks: self.rank.clone(),
            order: self.order,
            ..defaults
        }
    }
}

/// Names separated by commas; none for an empty text or `none`.
fn codec_help() -> String {
    let names = CodecName::names();
    format!(
        "{names}; for both streams or each: documents=bitpack,weights=raw; packs all lists [default: bitpack, and \
         bitmaps for terms of at least one in {DENSE_SHARE} documents]"
    )
}

fn parse_list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    if text.trim() == "none" { Vec::new() } else { names.map(str::to_owned).collect() }
}

/// What a build has made and how long it took.
#[derive(Serialize)]
pub struct Summary {
    /// What the build says.
    #[serde(flatten)]
    pub report: BuildReport,
    /// From the command to the finished index.
    pub seconds: f64,
}

/// The summary as a small table.
pub fn write_summary(summary: &Summary, index: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let Summary { report, seconds } = summary;
    let rate = report.documents as f64 / seconds.max(1e-9);
    writeln!(out, "index       {} (generation {})", index.display(), report.generation)?;
    writeln!(out, "documents   {}", count(report.documents))?;
    writeln!(out, "terms       {}", count(report.terms))?;
    writeln!(out, "postings    {}", count(report.postings))?;
    writeln!(out, "size        {}", bytes(report.bytes))?;
    let time = duration(Duration::from_secs_f64(*seconds));
    writeln!(out, "time        {time}, {} documents/s", count(rate as u64))?;
    if report.runs > 0 {
        writeln!(out, "runs        {} spilled to disk to stay within the memory", count(report.runs))?;
    }
    Ok(())
}

/// Says on standard error what was left out.
fn warn_of_skipped(report: &BuildReport, quiet: bool) {
    let skipped = report.malformed + report.duplicates;
    if skipped > 0 {
        let (malformed, repeated) = (count(report.malformed), count(report.duplicates));
        let records = counted(skipped, "record");
        tell(&format!("warning: {records} skipped ({malformed} malformed, {repeated} with an id seen before)"));
        let named = if quiet { 0 } else { NAMED_PROBLEMS.min(report.problems.len()) };
        report.problems[..named].iter().for_each(|problem| tell(&format!("  {problem}")));
        if named > 0 && skipped > named as u64 {
            tell(&format!("  and {} more", count(skipped - named as u64)));
        }
    }
    if report.unranked > 0 {
        tell(&format!(
            "warning: {} not named in the file of ranks; their rank is 0",
            counted(report.unranked, "document")
        ));
    }
    if report.documents == 0 {
        tell("warning: the index is empty; check --input and --format");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_fields_may_be_empty() {
        assert_eq!(parse_list("title, text"), ["title", "text"]);
        assert_eq!(parse_list(""), Vec::<String>::new());
        assert_eq!(parse_list("none"), Vec::<String>::new());
    }
}
