//! Lanner through its library, as a user would call it.

use super::{BuildTask, Engine, files};
use crate::collection;
use crate::error::Result;
use lanner::{Mode, Query, Searcher};
use lanner_index::build::{BuildOptions, Order, Quiet, build as build_index};
use lanner_index::codec::Codecs;
use lanner_index::format::segment::Section;
use lanner_index::open::{Ids, Index};
use std::hint::black_box;
use std::path::Path;

/// Lanner's indexes that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LannerVariant {
    /// Default options.
    Default,
    /// Documents in the order of recursive graph bisection.
    Bisected,
    /// All lists packed by these codecs, none of them dense.
    Codecs(Codecs),
    /// These codecs, and documents in the order of recursive graph bisection.
    BisectedCodecs(Codecs),
    /// Impacts, and a copy of long lists in the order of impacts.
    ImpactOrdered,
}

impl LannerVariant {
    fn options(self, options: BuildOptions) -> BuildOptions {
        let order = Order::Bisection;
        match self {
            LannerVariant::Default => options,
            LannerVariant::Bisected => BuildOptions { order, ..options },
            LannerVariant::Codecs(codecs) => BuildOptions { codecs, dense: false, ..options },
            LannerVariant::BisectedCodecs(codecs) => BuildOptions { codecs, dense: false, order, ..options },
            LannerVariant::ImpactOrdered => BuildOptions { impacts: true, impact_ordered: true, ..options },
        }
    }
}

/// Builds an index and returns its number of documents.
pub fn build(task: &BuildTask<'_>, variant: &LannerVariant) -> Result<u64> {
    let options = BuildOptions {
        analyzer: task.analyzer.clone(),
        threads: task.threads,
        memory_bytes: task.memory_bytes,
        bm25: task.bm25,
        ..BuildOptions::default()
    };
    let options = variant.options(options);
    Ok(build_index(task.folder, collection::open(task.input)?, &options, &Quiet)?.documents)
}

impl Engine for Searcher {
    fn answer(&self, text: &str, mode: Mode, k: usize) -> Result<Ids> {
        let answer = self.search(&Query::new(text).mode(mode).k(k))?;
        Ok(self.ids(&answer.hits)?)
    }

    fn documents(&self, text: &str, mode: Mode, k: usize) -> Result<usize> {
        let answer = self.search(&Query::new(text).mode(mode).k(k))?;
        Ok(black_box(&answer.hits).len())
    }
}

/// Returns the sizes of the sections of the segment, and of the rest of the folder.
pub fn parts(folder: &Path) -> Result<Vec<(String, u64)>> {
    let index = Index::open(folder)?;
    let segment = index.segment();
    let sections = Section::ALL.map(|section| (section.name().to_owned(), segment.section(section).len() as u64));
    let mut parts: Vec<(String, u64)> = sections.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    let total: u64 = files(folder)?.iter().map(|(_, bytes)| bytes).sum();
    let known: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    parts.push(("manifest, header, padding".to_owned(), total - known));
    Ok(parts)
}
