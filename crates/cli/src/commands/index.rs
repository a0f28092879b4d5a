//! `lanner index`: builds an index of a collection.

use crate::analyzer_options::AnalyzerOptions;
use crate::failure::Failure;
use crate::progress::BuildMeter;
use crate::quantity::{bytes, count, counted, duration, parse_bytes, parse_share};
use crate::terminal::{printable, printable_path, tell};
use crate::whole_file::{stdout, write_json_line};
use lanner_index::build::{BuildOptions, BuildReport, Order, Weights, build, build_from_ciff};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions, Format, LeftOut, Reason};
use lanner_index::format::dense::DENSE_SHARE;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How many skipped records the summary names one by one.
const NAMED_PROBLEMS: usize = 5;
/// How many files and folders that cannot be read the summary names one by one.
const NAMED_UNREADABLE: usize = 5;
/// How many kinds of files that were left out the summary names.
const NAMED_KINDS: usize = 8;

/// Build an index of a collection; an existing index is replaced when the new one is complete
#[derive(clap::Args)]
pub struct Arguments {
    /// A file, a folder, or `-` for standard input; plain, gzip or zstd
    #[arg(long, value_name = "PATH")]
    input: PathBuf,
    /// The index folder; created if it does not exist
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// jsonl, json (objects on any lines, also in arrays), tsv, csv, trec, beir, bulk (Elasticsearch), text or ciff
    /// [default: detected for each file by its name and content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<InputFormat>,
    #[command(flatten)]
    analyzer: AnalyzerOptions,
    /// The number of worker threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The memory that the build may use, at least 32MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    memory: usize,
    #[arg(long, value_name = "NAME", help = codec_help())]
    codec: Option<Codecs>,
    /// The order of documents: given, or bisection for smaller lists and faster queries at the cost of time and memory
    #[arg(long, value_name = "ORDER", default_value = "given")]
    order: Order,
    /// The weights to store: tf, impact or tf,impact [default: tf, or impact with --vector-field]
    #[arg(long, value_name = "LIST")]
    weights: Option<Weights>,
    /// Store a second, impact-ordered copy of long lists, for score-at-a-time
    #[arg(long)]
    impact_ordered: bool,
    /// A file of static ranks with an id and a number on each line; plain, gzip or zstd
    #[arg(long, value_name = "FILE")]
    rank: Option<PathBuf>,
    /// The parameter k1 of BM25: how slowly the weight of a frequency saturates
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    k1: f64,
    /// The parameter b of BM25: how much the length of a document counts, from 0 to 1
    #[arg(long, default_value_t = 0.4, allow_negative_numbers = true)]
    b: f64,
    /// Fields to index, separated by commas [default: title,text; in JSON and CSV, contents or else body stands for a
    /// text that is absent or empty]
    #[arg(long, value_name = "LIST")]
    fields: Option<String>,
    /// Fields to store for showing hits, separated by commas, or none [default: title,text, as for --fields]
    #[arg(long, value_name = "LIST")]
    store: Option<String>,
    /// The field with the id of a document [default: the first of id, _id, docno and docid that a document has; in BEIR
    /// _id comes first, in bulk files that of the action]
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// The field with term weights, for input that is already tokenized
    #[arg(long, value_name = "FIELD")]
    vector_field: Option<String>,
    /// Follow symbolic links below a folder; each file is read once, and links in circles end
    #[arg(long)]
    follow_links: bool,
    /// Read hidden files and folders, whose names begin with a dot
    #[arg(long)]
    hidden: bool,
    /// Stop at the first malformed record, repeated id or unreadable file instead of skipping it, and at an id with white
    /// space, which TREC runs would hold percent-coded
    #[arg(long)]
    strict: bool,
    /// The largest share of records that may be skipped, such as 0.1 or 10%; with more, the build fails and the old
    /// index stays
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse_share, allow_negative_numbers = true)]
    max_skipped: f64,
    /// Build an empty index if the input has no document, instead of failing
    #[arg(long)]
    allow_empty: bool,
    /// Show no progress and no summary
    #[arg(long)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A format of documents, or CIFF, which has postings.
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
            _ => name.parse().map(InputFormat::Documents).map_err(|_| {
                format!("unknown format {name:?}; choose one of jsonl, json, tsv, csv, trec, beir, bulk, text, ciff")
            }),
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
        write_json_line(&summary, &mut out)?;
        out.flush()?;
        return Ok(());
    }
    if !arguments.quiet {
        let mut out = stdout();
        write_summary(&summary, &arguments.index, &mut out)?;
        out.flush()?;
    }
    warn_of_skipped(&summary.report, arguments.quiet);
    warn_of_unreadable(&summary.report, arguments.quiet);
    warn_of_missing_fields(&summary.report, arguments.fields.as_deref());
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
        Ok(build_from_ciff(&self.index, &self.input, &self.build_options()?, &meter)?)
    }

    fn build_documents(&self) -> Result<BuildReport, Failure> {
        let corpus = Corpus::open(&self.input, self.corpus_options())?;
        let meter = BuildMeter::new(self.quiet, None);
        Ok(build(&self.index, corpus, &self.build_options()?, &meter)?)
    }

    fn corpus_options(&self) -> CorpusOptions {
        CorpusOptions {
            format: match self.format {
                Some(InputFormat::Documents(format)) => Some(format),
                Some(InputFormat::Ciff) | None => None,
            },
            id_field: self.id_field.clone(),
            fields: self.fields.as_deref().map(parse_list),
            store: self.store.as_deref().map(parse_list),
            vector_field: self.vector_field.clone(),
            follow_links: self.follow_links,
            hidden: self.hidden,
        }
    }

    fn build_options(&self) -> Result<BuildOptions, Failure> {
        let defaults = BuildOptions::default();
        let is_tokenized = self.vector_field.is_some();
        // Learned weights are impacts, and their terms must not be stemmed again.
        let weights = self.weights.unwrap_or(Weights { frequencies: !is_tokenized, impacts: is_tokenized });
        let usual = match is_tokenized {
            true => Analyzer::parse("pretokenized")?,
            false => defaults.analyzer,
        };
        Ok(BuildOptions {
            analyzer: self.analyzer.analyzer(usual)?,
            threads: self.threads.unwrap_or(defaults.threads),
            memory_bytes: self.memory,
            codecs: self.codec.unwrap_or_default(),
            dense: self.codec.is_none(),
            frequencies: weights.frequencies,
            impacts: weights.impacts,
            impact_ordered: self.impact_ordered,
            bm25: Bm25 { k1: self.k1, b: self.b },
            strict: self.strict,
            max_skipped: self.max_skipped,
            allow_empty: self.allow_empty,
            ranks: self.rank.clone(),
            order: self.order,
        })
    }
}

fn codec_help() -> String {
    let names = CodecName::names();
    format!(
        "{names}, for both columns or for each: documents=bitpack,weights=raw; makes all lists sparse [default: \
         bitpack, and dense lists for terms in at least one of {DENSE_SHARE} documents]"
    )
}

/// Splits names at commas; none for an empty text or `none`.
fn parse_list(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    if text.trim() == "none" { Vec::new() } else { names.map(str::to_owned).collect() }
}

/// The report of a build and how long it took.
#[derive(Serialize)]
pub struct Summary {
    /// The report.
    #[serde(flatten)]
    pub report: BuildReport,
    /// The time from the start of the command to the finished index.
    pub seconds: f64,
}

/// Writes the summary as a small table.
pub fn write_summary(summary: &Summary, index: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let Summary { report, seconds } = summary;
    let rate = report.documents as f64 / seconds.max(1e-9);
    writeln!(out, "index       {} (generation {})", printable_path(index), report.generation)?;
    writeln!(out, "documents   {}", count(report.documents))?;
    writeln!(out, "terms       {}", count(report.terms))?;
    writeln!(out, "postings    {}", count(report.postings))?;
    writeln!(out, "size        {}", bytes(report.bytes))?;
    let time = duration(Duration::from_secs_f64(*seconds));
    writeln!(out, "time        {time}, {} documents/s", count(rate as u64))?;
    if report.runs > 0 {
        writeln!(out, "runs        {} spilled to disk to stay within the memory", count(report.runs))?;
    }
    if !report.left_out.is_empty() {
        let mut kinds: Vec<String> = report.left_out.iter().take(NAMED_KINDS).map(LeftOut::to_string).collect();
        let more: u64 = report.left_out.iter().skip(NAMED_KINDS).map(|kind| kind.count).sum();
        kinds.extend((more > 0).then(|| format!("and {} more", count(more))));
        writeln!(out, "left out    {}", printable(&kinds.join(", ")))?;
    }
    for error in report.unreadable.iter().take(NAMED_UNREADABLE) {
        writeln!(out, "unreadable  {error}")?;
    }
    Ok(())
}

/// Warns on standard error of skipped records and missing ranks.
fn warn_of_skipped(report: &BuildReport, quiet: bool) {
    let skipped = report.skipped();
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
        tell(&format!("warning: {} not in the file of ranks; their rank is 0", counted(report.unranked, "document")));
    }
}

/// Warns on standard error of files and folders that could not be read.
fn warn_of_unreadable(report: &BuildReport, quiet: bool) {
    let is_unreadable = |kind: &&LeftOut| matches!(kind.reason, Reason::UnreadableFile | Reason::UnreadableFolder);
    let unreadable: Vec<String> = report.left_out.iter().filter(is_unreadable).map(LeftOut::to_string).collect();
    if unreadable.is_empty() {
        return;
    }
    tell(&format!("warning: {} left out", unreadable.join(" and ")));
    let named = if quiet { 0 } else { NAMED_UNREADABLE.min(report.unreadable.len()) };
    report.unreadable[..named].iter().for_each(|error| tell(&format!("  {error}")));
    let all: u64 = report.left_out.iter().filter(is_unreadable).map(|kind| kind.count).sum();
    if named > 0 && all > named as u64 {
        tell(&format!("  and {} more", count(all - named as u64)));
    }
}

/// Warns on standard error of documents without any of the fields to index.
fn warn_of_missing_fields(report: &BuildReport, fields: Option<&str>) {
    if report.without_fields == 0 {
        return;
    }
    let wanted = fields.map_or("title, text, contents or body".to_owned(), |list| parse_list(list).join(", "));
    let documents = counted(report.without_fields, "document");
    let seen = match &report.other_fields[..] {
        [] => String::new(),
        names => format!("; fields seen: {}", names.join(", ")),
    };
    tell(&format!(
        "warning: {documents} without any of the indexed fields ({wanted}){seen}; name the fields with --fields"
    ));
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
