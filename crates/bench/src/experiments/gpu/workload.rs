//! What is asked: an index of the collection, and queries of a log with as many postings as the suite wants.

use super::GpuRun;
use crate::cache::fingerprint;
use crate::collection::{self, synthetic_queries};
use crate::error::BenchError;
use crate::query_log;
use crate::result::Measurement;
use crate::table::{Table, bytes, count, number};
use lanner::Index;
use lanner_index::build::BuildOptions;
use lanner_index::format::segment::Section;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::sync::Arc;

/// Queries for an index.
pub struct Workload {
    /// The index, with frequencies and impacts.
    pub index: Arc<Index>,
    /// The texts of the queries.
    pub texts: Vec<String>,
    /// Postings of each query.
    pub postings: Vec<u64>,
    choice: Choice,
}

/// Which queries of a log are kept, by their postings.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    /// Queries of the half of the log that is kept for reporting.
    of: usize,
    /// Those that are left.
    kept: usize,
    /// None that is left has more postings.
    cap: u64,
    /// Postings of those on average.
    mean: f64,
}

/// Opens the index of the suite's collection, built if it is not there yet.
pub fn open_index(run: &GpuRun<'_>) -> Result<Index, BenchError> {
    let part = &run.suite.collection;
    let source_bytes = match &part.file {
        Some(file) => collection::data_file(run.data, file)?.metadata().map_or(0, |metadata| metadata.len()),
        None => 0,
    };
    let stamp = format!("{part:?}\n{source_bytes} bytes\n{}", fingerprint(run.program)?);
    let name = part.scale.map_or("whole".to_owned(), |scale| format!("scaled-{}", scale.documents));
    let folder = run.cache.within("gpu").folder(&name, &stamp, |folder| {
        let (analyzer, bm25) = (Analyzer::parse(&part.analyzer)?, Bm25 { k1: part.k1, b: part.b });
        let options = BuildOptions { analyzer, bm25, frequencies: true, impacts: true, ..BuildOptions::default() };
        collection::build_index(part, run.data, folder, &options)
    })?;
    Ok(Index::open(folder)?)
}

impl Workload {
    /// Chooses queries.
    pub fn choose(run: &GpuRun<'_>, index: Arc<Index>) -> Result<Workload, BenchError> {
        let part = run.part;
        let log = match &part.log.file {
            Some(file) => query_log::read(&collection::data_file(run.data, file)?)?,
            None => synthetic_queries(run.suite.collection.synthetic.unwrap_or(0)),
        };
        let is_known = |term: &str| index.lookup(term).is_ok_and(|found| found.is_some());
        let known = query_log::known_terms(&log, index.analyzer(), is_known);
        let mut queries = Vec::new();
        for terms in known {
            queries.push((postings_of(&index, &terms)?, terms.join(" ")));
        }
        let wanted = part.postings * f64::from(index.documents()) / part.of_documents as f64;
        let choice = choose(&queries.iter().map(|query| query.0).collect::<Vec<_>>(), wanted);
        queries.retain(|query| query.0 <= choice.cap);
        let (postings, texts) = query_log::spread(&queries, run.only.sample(part.log.sample)).into_iter().unzip();
        let workload = Workload { index, texts, postings, choice };
        if workload.texts.is_empty() {
            return Err(BenchError::Usage("no query of the log has a word of the collection".to_owned()));
        }
        Ok(workload)
    }

    /// Postings of some queries on average.
    pub fn mean_postings(&self, numbers: impl Iterator<Item = usize> + Clone) -> f64 {
        numbers.clone().map(|number| self.postings[number] as f64).sum::<f64>() / numbers.count().max(1) as f64
    }

    /// Up to so many queries, spread over short and long ones: their average is near that of all.
    pub fn spread_by_postings(&self, wanted: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..self.postings.len()).collect();
        numbers.sort_by_key(|&number| self.postings[number]);
        let wanted = wanted.min(numbers.len());
        // The middle one of each of so many groups.
        (0..wanted).map(|group| numbers[(2 * group + 1) * numbers.len() / (2 * wanted)]).collect()
    }

    /// Documents, postings and bytes of the index, and what the queries are.
    pub fn describe(&self, log: &str) -> (Vec<Measurement>, Table) {
        let segment = self.index.segment();
        let header = segment.header();
        let sections = [Section::LongLists, Section::ShortLists];
        let list_bytes: u64 = sections.iter().map(|&section| segment.section(section).len() as u64).sum();
        let mean = self.mean_postings(0..self.texts.len());
        let terms = self.texts.iter().map(|text| text.split(' ').count()).sum::<usize>() as f64;
        let terms = terms / self.texts.len() as f64;
        let Choice { of, kept, cap, mean: kept_mean } = self.choice;
        let share = kept as f64 / of as f64;
        let measurements = vec![
            Measurement::new("collection", &[])
                .with("documents", f64::from(header.documents))
                .with("terms", header.terms as f64)
                .with("postings", header.postings as f64)
                .with("index_bytes", header.file_bytes as f64)
                .with("list_bytes", list_bytes as f64),
            Measurement::new("queries", &[("log", log)])
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
            ("different terms", count(header.terms)),
            ("postings", count(header.postings)),
            ("bytes of the index, with frequencies and impacts", bytes(header.file_bytes)),
            ("bytes of its lists", bytes(list_bytes)),
            ("queries", count(self.texts.len() as u64)),
            ("terms of a query on average", number(terms)),
            ("postings of a query on average", count(mean as u64)),
            ("a query was left out that has more postings than", count(cap)),
            ("share of the log that was kept", number(share)),
        ];
        rows.into_iter().for_each(|(what, number)| table.row(vec![what.to_owned(), number]));
        table.notes = vec![format!(
            "The queries are spread over {} of the {} queries of the half of {log} that is kept for reporting, each \
             reduced to its different terms that the collection has.",
            count(kept as u64),
            count(of as u64)
        )];
        (measurements, table)
    }
}

fn postings_of(index: &Index, terms: &[String]) -> Result<u64, BenchError> {
    let mut postings = 0;
    for term in terms {
        if let Some(term) = index.lookup(term)? {
            postings += u64::from(index.list(term)?.postings());
        }
    }
    Ok(postings)
}

/// Finds the cap that leaves the queries whose mean is the nearest to the one wanted. The mean grows with the cap.
fn choose(postings: &[u64], wanted: f64) -> Choice {
    let mut sorted = postings.to_vec();
    sorted.sort_unstable();
    // One cap for each number of postings, with the queries it leaves and their mean.
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
    fn the_cap_leaves_the_mean_that_is_nearest() {
        let postings = [9, 1, 100, 3, 3, 5];
        assert_eq!(choose(&postings, 4.0), Choice { of: 6, kept: 5, cap: 9, mean: 4.2 });
        assert_eq!(choose(&postings, 3.1), Choice { of: 6, kept: 4, cap: 5, mean: 3.0 });
        assert_eq!(choose(&postings, 0.0).kept, 1);
        assert_eq!(choose(&postings, 1e9).kept, 6);
        assert_eq!(choose(&[], 4.0).kept, 0);
    }
}
