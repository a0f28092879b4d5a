//! Lanner as it is measured: through its library, as a user would call it.

use super::{BuildTask, Engine, files};
use crate::error::BenchError;
use lanner::{Mode, Query, Searcher};
use lanner_index::build::{BuildOptions, Order, Quiet};
use lanner_index::codec::Codecs;
use lanner_index::format::segment::Section;
use lanner_index::open::{Ids, Index};
use std::path::Path;

/// Indexes of ours that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LannerVariant {
    /// As built without options.
    Default,
    /// With documents in the order of recursive graph bisection.
    Bisected,
    /// With codecs named by the user, which pack all lists: none is dense.
    Codecs(Codecs),
    /// With codecs named by the user and documents in the order of recursive graph bisection.
    BisectedCodecs(Codecs),
    /// With impacts, and long lists again in the order of impacts.
    ImpactOrdered,
}

impl LannerVariant {
    /// How it is built.
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

/// Builds an index.
pub fn build(task: &BuildTask<'_>, variant: &LannerVariant) -> Result<u64, BenchError> {
    let options = BuildOptions {
        analyzer: task.analyzer.clone(),
        threads: task.threads,
        memory_bytes: task.memory_bytes,
        bm25: task.bm25,
        ..BuildOptions::default()
    };
    let options = variant.options(options);
    Ok(lanner_index::build::build(task.folder, task.corpus()?, &options, &Quiet)?.documents)
}

/// An opened index of Lanner.
pub struct LannerEngine {
    searcher: Searcher,
}

impl LannerEngine {
    /// Opens the index in a folder.
    pub fn open(folder: &Path) -> Result<LannerEngine, BenchError> {
        Ok(LannerEngine { searcher: Searcher::open(folder)? })
    }
}

impl Engine for LannerEngine {
    fn answer(&self, text: &str, mode: Mode, k: usize) -> Result<Ids, BenchError> {
        let answer = self.searcher.search(&Query::new(text).mode(mode).k(k))?;
        Ok(self.searcher.ids(&answer.hits)?)
    }
}

/// The sections of the segment, and what else is in the folder.
pub fn parts(folder: &Path) -> Result<Vec<(String, u64)>, BenchError> {
    let index = Index::open(folder)?;
    let segment = index.segment();
    let sections = Section::ALL.map(|section| (section.name().to_owned(), segment.section(section).len() as u64));
    let mut parts: Vec<(String, u64)> = sections.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    let total: u64 = files(folder)?.iter().map(|(_, bytes)| bytes).sum();
    let known: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    parts.push(("manifest, header, padding".to_owned(), total - known));
    Ok(parts)
}
