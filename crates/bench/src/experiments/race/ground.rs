//! What a race stands on: the documents and every engine's index of them, made once and kept.

use super::Race;
use crate::cache::{Cache, fingerprint};
use crate::collection;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::BenchError;
use crate::peers::write_postings;
use crate::suite::{BuildEngine, CollectionPart, NamedCollection, RaceEngine};
use lanner_index::open::Index;
use lanner_index::weight::Bm25;
use std::path::{Path, PathBuf};

/// Memory that builds may use.
const MEMORY_BYTES: usize = 1 << 30;

/// The documents and indexes of one collection.
pub struct Ground {
    /// The collection's name.
    pub name: String,
    /// The documents.
    pub input: PathBuf,
    /// Our indexes.
    pub ours: OurIndexes,
    /// Tantivy's index.
    pub tantivy: Option<PathBuf>,
    /// The postings that other peers build from.
    pub postings: Option<PathBuf>,
    /// Where peers keep their indexes.
    pub cache: Cache,
    /// What was made of the postings has this stamp.
    pub postings_stamp: String,
}

/// Our indexes of a collection.
pub struct OurIndexes {
    /// The default one.
    pub lanner: PathBuf,
    /// With documents in bisected order, where that takes part.
    pub bisected: Option<PathBuf>,
    /// With the smallest lists.
    pub smallest: PathBuf,
    /// With the smallest lists and documents in bisected order.
    pub smallest_bisected: Option<PathBuf>,
}

impl Ground {
    /// Makes what is not there yet.
    pub fn prepare(race: &Race<'_>, named: &NamedCollection) -> Result<Ground, BenchError> {
        let cache = race.cache.within(&named.name);
        let (input, stamp) = documents(race, named, &cache)?;
        let collection = &race.suite.collection;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let task = |folder: &Path, build: &dyn Fn(&BuildTask<'_>) -> Result<(), BenchError>| {
            let bm25 = Bm25 { k1: collection.k1, b: collection.b };
            let analyzer = race.analyzer.clone();
            build(&BuildTask { input: &input, folder, analyzer, bm25, threads, memory_bytes: MEMORY_BYTES })
        };
        let ours = |name: &str, variant: &LannerVariant| {
            let stamp = format!("{stamp}\n{}\n{variant:?}", fingerprint(race.program)?);
            cache.folder(name, &stamp, |folder| task(folder, &|task| engines::build_lanner(task, variant).map(|_| ())))
        };
        let wants = |engines: &[RaceEngine]| race.engines().any(|engine| engines.contains(&engine));
        let lanner = ours("lanner", &LannerVariant::Default)?;
        let (wants_bisected, codecs) = (wants(&[RaceEngine::LannerBisected]), race.part.smallest_codecs);
        let bisected = wants_bisected.then(|| ours("lanner-bisected", &LannerVariant::Bisected)).transpose()?;
        let smallest = ours("lanner-smallest", &LannerVariant::Codecs(codecs))?;
        let smallest_bisected = LannerVariant::BisectedCodecs(codecs);
        let smallest_bisected =
            wants_bisected.then(|| ours("lanner-smallest-bisected", &smallest_bisected)).transpose()?;
        let tantivy = wants(&[RaceEngine::Tantivy, RaceEngine::TantivyIdsInMemory]).then(|| {
            let stamp = format!("{stamp}\n{}", tantivy::version_string());
            let build = |task: &BuildTask<'_>| {
                engines::build(BuildEngine::TantivySingle, task, &LannerVariant::Default).map(|_| ())
            };
            cache.folder("tantivy", &stamp, |folder| task(folder, &build))
        });
        let postings_stamp = postings_stamp(&Index::open(&lanner)?, &stamp);
        let postings = wants(&[RaceEngine::Pisa, RaceEngine::Bm25s]).then(|| {
            cache.folder("postings", &postings_stamp, |folder| write_postings(&Index::open(&lanner)?, folder))
        });
        let (name, tantivy, postings) = (named.name.clone(), tantivy.transpose()?, postings.transpose()?);
        let ours = OurIndexes { lanner, bisected, smallest, smallest_bisected };
        Ok(Ground { name, input, ours, tantivy, postings, cache, postings_stamp })
    }
}

/// The documents, scaled if the collection is, and what they are known by.
fn documents(race: &Race<'_>, named: &NamedCollection, cache: &Cache) -> Result<(PathBuf, String), BenchError> {
    let part = CollectionPart { scale: named.scale.or(race.suite.collection.scale), ..race.suite.collection.clone() };
    let source_bytes = match &part.file {
        Some(file) => collection::data_file(race.data, file)?.metadata().map_or(0, |metadata| metadata.len()),
        None => 0,
    };
    let stamp = format!("{part:?}\n{source_bytes} bytes");
    let prepare = |folder: &Path| {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let path = collection::prepare(&part, race.data, folder)?;
        let note = folder.join("path");
        std::fs::write(&note, path.to_string_lossy().as_bytes()).map_err(BenchError::io(&note))
    };
    if part.file.is_some() && part.scale.is_none() {
        return Ok((collection::prepare(&part, race.data, Path::new(""))?, stamp));
    }
    let note = cache.folder("documents", &stamp, prepare)?.join("path");
    let path = std::fs::read_to_string(&note).map_err(BenchError::io(&note))?;
    Ok((PathBuf::from(path), stamp))
}

/// Indexes with the same numbers of everything have the same postings, whatever code wrote them.
fn postings_stamp(index: &Index, stamp: &str) -> String {
    let header = index.segment().header();
    format!("{stamp}\n{} {} {} {}", header.documents, header.terms, header.postings, header.tokens)
}
