//! The build: invert ▸ order ▸ merge ▸ weigh ▸ write.
//!
//! Batches of documents are inverted in parallel (`invert`) and kept in memory (`accumulate`). When the memory budget
//! is exhausted, they are written to disk as a sorted run (`run`). Documents may be renumbered (`order`). The runs are
//! merged term by term (`merge`), each list is encoded with its bounds (`list`), and everything is written to one
//! segment (`write`), which a rename makes visible (`folder`). The files depend on the input and the options, never on
//! threads, memory or timing.

mod accumulate;
mod dense;
mod dictionary;
mod documents;
mod error;
mod folder;
mod impact_ordered;
mod import;
mod invert;
mod list;
mod merge;
mod numbering;
mod order;
mod pipeline;
mod ranks;
mod run;
mod segment;
mod terms;
mod weights;
mod write;

pub use crate::format::manifest::Order;
pub use error::BuildError;
pub use import::build_from_ciff;
pub use weights::Weights;

use crate::codec::Codecs;
use crate::corpus::{Corpus, LeftOut};
use crate::format::segment::MAX_DOCUMENTS;
use crate::text::Analyzer;
use crate::weight::Bm25;
use accumulate::Accumulator;
use documents::DocumentSpool;
use folder::IndexFolder;
use invert::{Inverted, Inverter};
use merge::Merge;
use pipeline::Pipeline;
use run::{RunReader, RunWriter};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use write::Spool;

/// The smallest memory budget of a build.
pub const MIN_MEMORY_BYTES: usize = 32 << 20;
/// The memory of a worker that inverts a batch.
const WORKER_BYTES: usize = 8 << 20;
/// This many runs are merged into one, to limit the open files and buffers of a merge.
const MAX_RUNS: usize = 128;
/// The number of skipped records that a report describes.
const REPORTED_PROBLEMS: usize = 20;
/// The number of fields that a report names.
const REPORTED_FIELDS: usize = 20;

/// Options of a build. Analyzers, codecs and orders are parsed from the names that the command line has:
///
/// ```
/// use lanner_index::build::BuildOptions;
/// let options = BuildOptions { analyzer: "simple".parse()?, order: "bisection".parse()?, ..BuildOptions::default() };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The analyzer that turns text into terms.
    pub analyzer: Analyzer,
    /// The number of worker threads.
    pub threads: usize,
    /// The memory budget.
    pub memory_bytes: usize,
    /// The codecs of sparse lists.
    pub codecs: Codecs,
    /// Whether lists with many documents are dense, which makes queries faster and the index slightly larger.
    pub dense: bool,
    /// Whether to store frequencies.
    pub frequencies: bool,
    /// Whether to store 8-bit impacts.
    pub impacts: bool,
    /// Whether to store a second, impact-ordered copy of long lists, for score-at-a-time.
    pub impact_ordered: bool,
    /// The parameters of BM25.
    pub bm25: Bm25,
    /// Whether the build fails at the first malformed record, repeated id or unreadable file, instead of skipping and
    /// counting them, and at an id with white space, which a TREC run cannot hold as it is.
    pub strict: bool,
    /// The largest share of records that may be skipped, from 0 to 1; with more, the build fails and the folder keeps
    /// its index.
    pub max_skipped: f64,
    /// Whether the index may be empty; otherwise a build without a usable document fails.
    pub allow_empty: bool,
    /// A file of static ranks, with an id and a number on each line.
    pub ranks: Option<PathBuf>,
    /// The order of documents.
    pub order: Order,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            analyzer: Analyzer::parse("english").expect("a known name"),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: 1 << 30,
            codecs: Codecs::default(),
            dense: true,
            frequencies: true,
            impacts: false,
            impact_ordered: false,
            bm25: Bm25::default(),
            strict: false,
            max_skipped: 0.1,
            allow_empty: false,
            ranks: None,
            order: Order::Given,
        }
    }
}

/// Observes the progress of a build. Calls do not overlap.
pub trait Progress: Sync {
    /// `documents` documents are inverted, from `bytes_read` bytes of the input.
    fn inverted(&self, documents: u64, bytes_read: u64, bytes_total: Option<u64>);
    /// A record was skipped.
    fn skipped(&self, problem: &str);
    /// `done` of `total` units of ordering the documents are done; not called with [`Order::Given`].
    fn ordered(&self, done: u64, total: u64);
    /// `postings` of `total` postings are in the segment.
    fn merged(&self, postings: u64, total: u64);
}

/// A [`Progress`] that ignores all calls.
pub struct Quiet;

impl Progress for Quiet {
    fn inverted(&self, _documents: u64, _bytes_read: u64, _bytes_total: Option<u64>) {}
    fn skipped(&self, _problem: &str) {}
    fn ordered(&self, _done: u64, _total: u64) {}
    fn merged(&self, _postings: u64, _total: u64) {}
}

/// The result of a build.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct BuildReport {
    /// The generation of the index.
    pub generation: u64,
    /// Documents.
    pub documents: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Pairs of term and document.
    pub postings: u64,
    /// The sum of the lengths of all documents.
    pub tokens: u64,
    /// The size of the segment in bytes.
    pub bytes: u64,
    /// Runs written to disk to stay within the memory budget.
    pub runs: u64,
    /// Malformed records, which were skipped.
    pub malformed: u64,
    /// Records with the id of an earlier document, which were skipped.
    pub duplicates: u64,
    /// Documents without a rank in the file of ranks, if there is one; their rank is 0.
    pub unranked: u64,
    /// Descriptions of the first skipped records.
    pub problems: Vec<String>,
    /// Documents without any of the indexed fields; no query finds them.
    pub without_fields: u64,
    /// The fields that the first of these documents have instead; those of arrays and objects say so.
    pub other_fields: Vec<String>,
    /// Descriptions of the first files and folders that could not be read.
    pub unreadable: Vec<String>,
    /// Files below the input that were not read, by kind.
    pub left_out: Vec<LeftOut>,
}

impl BuildReport {
    /// Returns the number of records that were skipped.
    pub fn skipped(&self) -> u64 {
        self.malformed + self.duplicates
    }
}

impl BuildOptions {
    fn check(&self) -> Result<(), BuildError> {
        let wrong = |what: &str| Err(BuildError::Options(what.to_owned()));
        if !self.bm25.is_valid() {
            return wrong("k1 must be from 0 to 1000 and b from 0 to 1");
        }
        if self.memory_bytes < MIN_MEMORY_BYTES {
            return wrong("the memory must be at least 32MiB");
        }
        if self.threads == 0 || self.threads > 1024 {
            return wrong("the number of threads must be from 1 to 1024");
        }
        if !(0.0..=1.0).contains(&self.max_skipped) {
            return wrong("the share of records that may be skipped must be from 0 to 1");
        }
        if !self.frequencies && !self.impacts {
            return wrong("an index must store frequencies, impacts or both");
        }
        if self.impact_ordered && !self.impacts {
            return wrong(
                "impact-ordered lists need impacts; store impacts too, or leave out the impact-ordered lists",
            );
        }
        Ok(())
    }

    /// Returns the number of workers: `threads`, or fewer so that they take at most four tenths of the memory.
    fn workers(&self) -> usize {
        self.threads.min((self.memory_bytes / 10 * 4 / WORKER_BYTES).max(1))
    }

    /// Returns the size at which inverted batches in memory become a run; the rest is for the batches being inverted.
    fn held_bytes(&self) -> usize {
        let working = self.workers() * WORKER_BYTES;
        (self.memory_bytes / 10 * 6).saturating_sub(working).max(self.memory_bytes / 4)
    }
}

/// Builds an index of a collection in a folder, and replaces the index in it, if any.
///
/// If the build fails, the folder keeps its index.
pub fn build(
    folder: &Path,
    mut corpus: Corpus,
    options: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    options.check()?;
    let folder = IndexFolder::open(folder)?;
    let mut collected = Collected::new(&folder, options)?;
    collected.fields = corpus.fields();
    collected.stored = corpus.stored();
    let learned = corpus.has_vectors();
    collected.learned = learned;
    let position = Mutex::new((0, None));
    let pipeline = Pipeline {
        threads: options.workers(),
        make: || Inverter::new(options, learned),
        work: |inverter: &mut Inverter, batch| inverter.invert(&batch),
    };
    pipeline.run(
        || {
            let batch = corpus.next_batch()?;
            if let (true, [first, ..]) = (options.strict, corpus.unreadable()) {
                return Err(BuildError::Unreadable(first.clone()));
            }
            *position.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                (corpus.bytes_read(), corpus.bytes_total());
            Ok(batch)
        },
        |inverted| {
            collected.add(inverted, progress)?;
            let (read, total) = *position.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            progress.inverted(u64::from(collected.documents.count), read, total);
            Ok::<(), BuildError>(())
        },
    )?;
    collected.report.left_out = corpus.left_out();
    collected.report.unreadable = corpus.unreadable().to_vec();
    segment::finish(collected, progress)
}

/// The documents inverted so far: the run in memory, the runs on disk, and the rows of the documents.
struct Collected<'a> {
    folder: &'a IndexFolder,
    options: &'a BuildOptions,
    accumulator: Accumulator,
    runs: Vec<PathBuf>,
    documents: DocumentSpool,
    report: BuildReport,
    /// The names of the indexed fields.
    fields: Vec<String>,
    /// The names of the stored fields.
    stored: Vec<String>,
    /// Whether postings have learned weights.
    learned: bool,
    /// Static ranks by id, if there are any.
    ranks: Option<HashMap<String, f32>>,
    postings: u64,
}

impl<'a> Collected<'a> {
    fn new(folder: &'a IndexFolder, options: &'a BuildOptions) -> Result<Collected<'a>, BuildError> {
        let spool = |name: &str| Spool::create(folder.building().join(name));
        Ok(Collected {
            folder,
            options,
            accumulator: Accumulator::default(),
            runs: Vec::new(),
            documents: DocumentSpool::new(spool("documents")?, spool("stored")?),
            report: BuildReport { generation: folder.generation(), ..Default::default() },
            fields: Vec::new(),
            stored: Vec::new(),
            learned: false,
            ranks: options.ranks.as_deref().map(ranks::read).transpose()?,
            postings: 0,
        })
    }

    /// Adds the next batch.
    fn add(&mut self, mut inverted: Inverted, progress: &dyn Progress) -> Result<(), BuildError> {
        for problem in std::mem::take(&mut inverted.problems) {
            if self.options.strict {
                return Err(BuildError::Malformed(problem));
            }
            self.report.malformed += 1;
            self.skip(problem.to_string(), progress);
        }
        if let Some(problem) = inverted.separated_id.take() {
            return Err(BuildError::SeparatedId(problem));
        }
        // Who indexes no fields misses none.
        let has_fields = !self.fields.is_empty();
        self.report.without_fields += u64::from(if has_fields { inverted.without_fields } else { 0 });
        for name in std::mem::take(&mut inverted.other_fields) {
            if has_fields
                && self.report.other_fields.len() < REPORTED_FIELDS
                && !self.report.other_fields.contains(&name)
            {
                self.report.other_fields.push(name);
            }
        }
        if u64::from(self.documents.count) + u64::from(inverted.documents) > MAX_DOCUMENTS {
            return Err(BuildError::TooManyDocuments);
        }
        self.add_postings(&mut inverted)?;
        self.documents.push(inverted.documents, &inverted.rows, &inverted.stored)
    }

    /// Adds the postings of the next batch, whose documents follow the documents added so far.
    fn add_postings(&mut self, inverted: &mut Inverted) -> Result<(), BuildError> {
        self.postings += inverted.terms.iter().map(|row| u64::from(row.count)).sum::<u64>();
        self.accumulator.add(self.documents.count, inverted);
        if self.accumulator.bytes() > self.options.held_bytes() || self.accumulator.is_full() {
            self.spill()?;
        }
        Ok(())
    }

    /// Fails if the index would be empty or if too many records were skipped. Called when all records are known, long
    /// before the folder changes its generation.
    fn check_usable(&self) -> Result<(), BuildError> {
        let BuildReport { problems, left_out, unreadable, duplicates, .. } = &self.report;
        let skipped = self.report.skipped();
        let documents = u64::from(self.documents.count) - duplicates;
        if documents == 0 && !self.options.allow_empty {
            return Err(BuildError::Empty {
                skipped,
                first: problems.first().cloned(),
                left_out: left_out.clone(),
                unreadable: unreadable.first().cloned(),
            });
        }
        let (records, max_skipped) = (documents + skipped, self.options.max_skipped);
        match problems.first() {
            Some(first) if skipped as f64 > max_skipped * records as f64 => {
                Err(BuildError::TooManySkipped { skipped, records, max_skipped, first: first.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Reports a record that is skipped.
    fn skip(&mut self, problem: String, progress: &dyn Progress) {
        progress.skipped(&problem);
        if self.report.problems.len() < REPORTED_PROBLEMS {
            self.report.problems.push(problem);
        }
    }

    /// Writes the postings in memory to disk as a run.
    fn spill(&mut self) -> Result<(), BuildError> {
        if self.accumulator.is_empty() {
            return Ok(());
        }
        let path = self.next_run();
        let mut writer = RunWriter::create(&path)?;
        let mut sorted = std::mem::take(&mut self.accumulator).sorted();
        let (mut text, mut pieces) = (Vec::new(), Vec::new());
        while let Some(count) = sorted.next(&mut text, &mut pieces) {
            writer.write(&text, count, &pieces)?;
            pieces.clear();
        }
        writer.finish()?;
        self.runs.push(path);
        if self.runs.len() == MAX_RUNS { self.merge_runs() } else { Ok(()) }
    }

    /// Writes all postings to disk to read them more than once; this does not count as a run in the report.
    fn spill_to_read_again(&mut self) -> Result<(), BuildError> {
        let runs = self.report.runs;
        self.spill()?;
        self.report.runs = runs;
        Ok(())
    }

    /// Merges all runs into one. The pieces of a list keep the order of the runs, as in the final merge.
    fn merge_runs(&mut self) -> Result<(), BuildError> {
        let path = self.next_run();
        let mut merge = Merge::new(self.open_runs()?, None)?;
        let mut writer = RunWriter::create(&path)?;
        while let Some(batch) = merge.next()? {
            for (text, pieces, count) in batch.iter() {
                writer.write(text, count, pieces)?;
            }
        }
        writer.finish()?;
        for run in std::mem::replace(&mut self.runs, vec![path]) {
            std::fs::remove_file(&run).map_err(BuildError::io(&run))?;
        }
        Ok(())
    }

    fn open_runs(&self) -> Result<Vec<RunReader>, BuildError> {
        self.runs.iter().map(|path| RunReader::open(path)).collect()
    }

    /// Returns the path of the next run.
    fn next_run(&mut self) -> PathBuf {
        self.report.runs += 1;
        self.folder.building().join(format!("run-{}", self.report.runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::CorpusOptions;

    /// Builds with a run for each batch and merges the runs whenever there are `most` of them; `most` 0 writes no runs.
    fn segment_with_runs(most: usize) -> Vec<u8> {
        let place = tempfile::tempdir().unwrap();
        let text = |number: u32| (0..20).map(|i| format!("w{} ", (number * (i + 7)) % 997)).collect::<String>();
        let documents = (0..40_000).map(move |number| (number.to_string(), String::new(), text(number)));
        let mut corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        let options = BuildOptions { analyzer: Analyzer::parse("whitespace").unwrap(), ..Default::default() };
        let folder = IndexFolder::open(place.path()).unwrap();
        let mut collected = Collected::new(&folder, &options).unwrap();
        let mut inverter = Inverter::new(&options, false);
        let mut batches = 0;
        while let Some(batch) = corpus.next_batch().unwrap() {
            collected.add(inverter.invert(&batch).unwrap(), &Quiet).unwrap();
            batches += 1;
            if most > 0 {
                collected.spill().unwrap();
            }
            if most > 0 && collected.runs.len() == most {
                collected.merge_runs().unwrap();
                assert_eq!(collected.runs.len(), 1);
            }
        }
        assert!(batches > 3, "{batches} batches");
        segment::finish(collected, &Quiet).unwrap();
        std::fs::read(place.path().join("segment-00000001")).unwrap()
    }

    #[test]
    fn runs_merged_on_the_way_give_the_same_bytes() {
        let in_memory = segment_with_runs(0);
        assert!(in_memory == segment_with_runs(usize::MAX), "a run for each batch");
        assert!(in_memory == segment_with_runs(2), "two runs merged again and again");
    }

    #[test]
    fn the_memory_limits_the_number_of_workers() {
        let workers = |threads, memory_bytes| BuildOptions { threads, memory_bytes, ..Default::default() }.workers();
        assert_eq!(workers(2, 1 << 30), 2);
        assert_eq!(workers(64, 256 << 20), 12);
        assert_eq!(workers(64, MIN_MEMORY_BYTES), 1);
        assert_eq!(workers(64, usize::MAX), 64);
    }
}
