//! The index of the collection, and queries whose mean number of postings is the one that the suite asks for.

use crate::collection;
use crate::error::{BenchError, Result};
use crate::experiments::Context;
use crate::machine::Usage;
use crate::query_log::{self, Half};
use crate::result::Measurement;
use crate::statistics::{self, timed};
use crate::suite::LogPart;
use crate::table::{Table, bytes, count, number};
use lanner::Index;
use lanner_index::build::BuildOptions;
use lanner_index::format::segment::Section;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Queries and their index.
pub struct Workload {
    /// An index with frequencies and impacts.
    pub index: Arc<Index>,
    pub texts: Vec<String>,
    /// Number of postings of each query.
    pub postings: Vec<u64>,
    choice: Choice,
}

/// Which queries of a log are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    /// Queries in the half of the log that is kept for reporting.
    of: usize,
    /// Queries with at most `cap` postings.
    kept: usize,
    cap: u64,
    /// Mean postings of the kept queries.
    mean: f64,
}

/// Which queries of a log are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub log: &'a LogPart,
    /// Mean postings of a query in a collection of `of_documents` documents; proportional in others.
    pub postings: f64,
    pub of_documents: u64,
}

/// Returns the folder with the index of the suite's collection; builds it if it is not cached.
pub fn index_folder(context: &Context<'_>) -> Result<PathBuf> {
    let (part, data) = (&context.suite.collection, &context.options.data);
    let stamp = collection::stamp(part, data)?;
    let name = part.scale.map_or("whole".to_owned(), |scale| format!("scaled-{}", scale.documents));
    context.cache("gpu").index((&name, &stamp), &context.options.program, |folder| {
        let (analyzer, bm25) = (part.analyzer()?, part.bm25());
        let options = BuildOptions { analyzer, bm25, frequencies: true, impacts: true, ..BuildOptions::default() };
        let (documents, seconds) = timed(|| collection::build_index(part, data, folder, &options))?;
        BuildCost { seconds, peak_bytes: Usage::now().peak_bytes }.write(folder)?;
        Ok(documents)
    })
}

/// What building an index has cost, with generating its documents.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BuildCost {
    seconds: f64,
    /// Peak resident memory of the process.
    peak_bytes: u64,
}

impl BuildCost {
    /// The file in the folder of the index.
    const FILE: &str = "build-cost.json";

    fn write(self, folder: &Path) -> Result<()> {
        let path = folder.join(BuildCost::FILE);
        std::fs::write(&path, serde_json::to_string(&self).expect("it is plain data")).map_err(BenchError::io(&path))
    }

    /// Reads what building an index has cost, if it is known.
    fn read(index: &Index) -> Option<BuildCost> {
        let text = std::fs::read_to_string(index.segment().path().parent()?.join(BuildCost::FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl Workload {
    /// Chooses queries of the log.
    pub fn choose(context: &Context<'_>, wanted: Wanted<'_>, index: Arc<Index>) -> Result<Workload> {
        let mut queries = queries_of(context, wanted.log, &index, Half::Reporting)?;
        let mean = wanted.postings * f64::from(index.documents()) / wanted.of_documents as f64;
        let choice = choose(&queries.iter().map(|query| query.0).collect::<Vec<_>>(), mean);
        queries.retain(|query| query.0 <= choice.cap);
        let sample = context.options.only.sample(wanted.log.sample);
        let (postings, texts) = query_log::spread(&queries, sample).into_iter().unzip();
        let workload = Workload { index, texts, postings, choice };
        if workload.texts.is_empty() {
            return Err(BenchError::Usage("no query of the log has a term of the collection".to_owned()));
        }
        Ok(workload)
    }

    /// Chooses up to `count` queries of the half of the log that is for tuning, with no more postings than those chosen.
    pub fn tuning(&self, context: &Context<'_>, log: &LogPart, count: usize) -> Result<Vec<String>> {
        let queries = queries_of(context, log, &self.index, Half::Tuning)?.into_iter();
        let texts: Vec<String> = queries.filter(|query| query.0 <= self.choice.cap).map(|query| query.1).collect();
        Ok(query_log::spread(&texts, context.options.only.sample(count)))
    }

    /// Returns the mean postings of some queries.
    pub fn mean_postings(&self, numbers: impl Iterator<Item = usize>) -> f64 {
        statistics::mean(numbers.map(|number| self.postings[number] as f64))
    }

    /// Takes up to `wanted` queries, spread by their postings, so that their mean is close to that of all.
    pub fn spread_by_postings(&self, wanted: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.postings.len()).collect();
        numbers.sort_by_key(|&number| self.postings[number]);
        let wanted = wanted.min(numbers.len());
        // The median of each of `wanted` groups.
        (0..wanted).map(|group| numbers[(2 * group + 1) * numbers.len() / (2 * wanted)]).collect()
    }

    /// Describes the index and the queries.
    pub fn describe(&self, log: &str) -> (Vec<Measurement>, Table) {
        let segment = self.index.segment();
        let header = segment.header();
        let list_bytes = list_bytes(&self.index);
        let mean = self.mean_postings(0..self.texts.len());
        let terms = statistics::mean(self.texts.iter().map(|text| text.split(' ').count() as f64));
        let Choice { of, kept, cap, mean: kept_mean } = self.choice;
        let share = kept as f64 / of as f64;
        let built = BuildCost::read(&self.index);
        let measurements = vec![
            Measurement::new("collection", &[])
                .with("build_s", built.map(|built| built.seconds))
                .with("build_peak_bytes", built.map(|built| built.peak_bytes as f64))
                .with("documents", f64::from(header.documents))
                .with("terms", header.terms as f64)
                .with("postings", header.postings as f64)
                .with("index_bytes", header.file_bytes as f64)
                .with("list_bytes", list_bytes as f64),
            Measurement::new("queries", &[("log", &log)])
                .with("queries", self.texts.len() as f64)
                .with("terms", terms)
                .with("postings", mean)
                .with("cap_postings", cap as f64)
                .with("kept", kept as f64)
                .with("kept_share", share)
                .with("kept_postings", kept_mean),
        ];
        let mut table = Table::new("The collection and the queries", 1, &["what", "number"]);
        let rows = [
            ("documents", count(u64::from(header.documents))),
            ("distinct terms", count(header.terms)),
            ("postings", count(header.postings)),
            ("bytes of the index, with frequencies and impacts", bytes(header.file_bytes)),
            ("bytes of its lists", bytes(list_bytes)),
            ("queries", count(self.texts.len() as u64)),
            ("mean terms of a query", number(terms)),
            ("mean postings of a query", count(mean as u64)),
            ("maximal postings of a query; queries with more are left out", count(cap)),
            ("share of the log that is kept", number(share)),
        ];
        rows.into_iter().for_each(|(what, number)| table.row([what.to_owned(), number]));
        if let Some(BuildCost { seconds, peak_bytes }) = built {
            table.numbers("seconds to generate and index the documents", [seconds]);
            table.row(["peak memory of that process".to_owned(), bytes(peak_bytes)]);
        }
        let (kept, of) = (count(kept as u64), count(of as u64));
        let table = table.notes(&[&format!(
            "The queries are spread over {kept} of the {of} queries in the half of {log} that is kept for reporting. \
             Each is reduced to its distinct terms that occur in the collection."
        )]);
        (measurements, table)
    }
}

/// The bytes of all lists of an index.
pub fn list_bytes(index: &Index) -> u64 {
    let sections = [Section::LongLists, Section::ShortLists];
    sections.iter().map(|&section| index.segment().section(section).len() as u64).sum()
}

/// The queries of a half of a log that have terms of the index, with their postings.
fn queries_of(context: &Context<'_>, log: &LogPart, index: &Index, half: Half) -> Result<Vec<(u64, String)>> {
    let is_known = |term: &str| index.lookup(term).is_ok_and(|found| found.is_some());
    let known = query_log::known_terms(&context.read_log(log)?, half, index.analyzer(), is_known);
    known.into_iter().map(|terms| Ok((postings_of(index, &terms)?, terms.join(" ")))).collect()
}

fn postings_of(index: &Index, terms: &[String]) -> Result<u64> {
    let mut postings = 0;
    for term in terms {
        if let Some(term) = index.lookup(term)? {
            postings += u64::from(index.list(term)?.postings());
        }
    }
    Ok(postings)
}

/// Finds the cap that gives the mean closest to `wanted`. The mean grows with the cap.
fn choose(postings: &[u64], wanted: f64) -> Choice {
    let mut sorted = postings.to_vec();
    sorted.sort_unstable();
    // One choice for each distinct number of postings.
    let (mut sum, mut choices) = (0, Vec::new());
    for (at, &cap) in sorted.iter().enumerate() {
        sum += cap;
        if sorted.get(at + 1) != Some(&cap) {
            choices.push(Choice { of: sorted.len(), kept: at + 1, cap, mean: sum as f64 / (at + 1) as f64 });
        }
    }
    let above = choices.partition_point(|choice| choice.mean <= wanted);
    let nearest = choices[above.saturating_sub(1)..choices.len().min(above + 1)]
        .iter()
        .min_by(|one, other| (one.mean - wanted).abs().total_cmp(&(other.mean - wanted).abs()));
    nearest.copied().unwrap_or(Choice { of: 0, kept: 0, cap: 0, mean: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_gives_the_closest_mean() {
        let postings = [9, 1, 100, 3, 3, 5];
        assert_eq!(choose(&postings, 4.0), Choice { of: 6, kept: 5, cap: 9, mean: 4.2 });
        assert_eq!(choose(&postings, 3.1), Choice { of: 6, kept: 4, cap: 5, mean: 3.0 });
        assert_eq!(choose(&postings, 0.0).kept, 1);
        assert_eq!(choose(&postings, 1e9).kept, 6);
        assert_eq!(choose(&[], 4.0).kept, 0);
    }
}
