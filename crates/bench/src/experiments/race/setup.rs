//! The documents of a race and every engine's index of them, made once and kept.

use super::Race;
use crate::cache::Cache;
use crate::collection;
use crate::engines::{self, BuildTask, LannerVariant};
use crate::error::{BenchError, Result};
use crate::peers::write_postings;
use crate::suite::{BuildEngine, CollectionPart, NamedCollection, RaceEngine};
use lanner_index::open::Index;
use std::path::{Path, PathBuf};

/// The documents and indexes of one collection.
pub struct Setup {
    /// The name of the collection.
    pub name: String,
    /// The documents.
    pub input: PathBuf,
    pub lanner: LannerIndexes,
    pub tantivy: Option<PathBuf>,
    /// The postings that the peers in their own processes build their indexes from.
    pub postings: Option<PathBuf>,
    /// The cache in which these peers keep their indexes.
    pub cache: Cache,
    /// The stamp of everything made from the postings.
    pub postings_stamp: String,
}

/// Lanner's indexes of a collection.
pub struct LannerIndexes {
    pub default: PathBuf,
    /// Documents in bisected order; `None` unless it takes part.
    pub bisected: Option<PathBuf>,
    /// The smallest lists.
    pub smallest: PathBuf,
    /// The smallest lists, with documents in bisected order.
    pub smallest_bisected: Option<PathBuf>,
}

impl Setup {
    /// Makes the documents and indexes that are not cached.
    pub fn prepare(race: &Race<'_>, named: &NamedCollection) -> Result<Setup> {
        let cache = race.context.cache(&named.name);
        let (input, stamp) = documents(race, named, &cache)?;
        let collection = &race.context.suite.collection;
        let build = |engine, folder: &Path, variant: &LannerVariant| {
            let task = BuildTask::new(&input, folder, race.analyzer.clone(), collection.bm25());
            engines::build(engine, &task, variant)
        };
        let lanner = |name: &str, variant: LannerVariant| {
            let stamp = format!("{stamp}\n{variant:?}");
            let build = |folder: &Path| build(BuildEngine::Lanner, folder, &variant);
            cache.index((name, &stamp), &race.context.options.program, build)
        };
        let wants = |engines: &[RaceEngine]| race.engines().any(|engine| engines.contains(&engine));
        let bisected = |name, variant| wants(&[RaceEngine::LannerBisected]).then(|| lanner(name, variant)).transpose();
        let codecs = race.part.smallest_codecs;
        let lanner = LannerIndexes {
            default: lanner("lanner", LannerVariant::Default)?,
            bisected: bisected("lanner-bisected", LannerVariant::Bisected)?,
            smallest: lanner("lanner-smallest", LannerVariant::Codecs(codecs))?,
            smallest_bisected: bisected("lanner-smallest-bisected", LannerVariant::BisectedCodecs(codecs))?,
        };
        let tantivy = wants(&[RaceEngine::Tantivy, RaceEngine::TantivyIdsInMemory]).then(|| {
            let stamp = format!("{stamp}\n{}", tantivy::version_string());
            let build = |folder: &Path| build(BuildEngine::TantivySingle, folder, &LannerVariant::Default);
            cache.folder("tantivy", &stamp, |folder| build(folder).map(drop))
        });
        let index = Index::open(&lanner.default)?;
        let header = index.segment().header();
        // Postings are identified by counts, so that a new version of the program does not invalidate them.
        let counts = [u64::from(header.documents), header.terms, header.postings, header.tokens];
        let postings_stamp = format!("{stamp}\n{}", counts.map(|count| count.to_string()).join(" "));
        let write = |folder: &Path| write_postings(&index, folder);
        let is_written = race.engines().any(RaceEngine::is_process);
        let postings = is_written.then(|| cache.folder("postings", &postings_stamp, write));
        let (name, tantivy, postings) = (named.name.clone(), tantivy.transpose()?, postings.transpose()?);
        Ok(Setup { name, input, lanner, tantivy, postings, cache, postings_stamp })
    }
}

/// Whether the file of a collection exists; that of the suite's collection must.
pub fn is_there(race: &Race<'_>, named: &NamedCollection) -> bool {
    named.file.as_ref().is_none_or(|file| folder(race, named).join(file).is_file())
}

/// Returns the folder with the documents: the data folder, or that of large collections.
fn folder<'a>(race: &'a Race<'_>, named: &NamedCollection) -> &'a Path {
    let options = race.context.options;
    let is_large = named.file.as_ref().is_some_and(|file| !options.data.join(file).is_file());
    if is_large { &options.large } else { &options.data }
}

/// Returns the documents, scaled if the collection is, and the text that identifies them.
fn documents(race: &Race<'_>, named: &NamedCollection, cache: &Cache) -> Result<(PathBuf, String)> {
    let (collection, data) = (&race.context.suite.collection, folder(race, named));
    let (file, scale) = (named.file.clone().or(collection.file.clone()), named.scale.or(collection.scale));
    let part = CollectionPart { file, scale, ..collection.clone() };
    let stamp = collection::stamp(&part, data)?;
    if part.file.is_some() && part.scale.is_none() {
        return Ok((collection::prepare(&part, data, Path::new(""))?, stamp));
    }
    let folder = cache.folder("documents", &stamp, |folder| {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let path = collection::prepare(&part, data, folder)?;
        let note = folder.join("path");
        std::fs::write(&note, path.to_string_lossy().as_bytes()).map_err(BenchError::io(&note))
    })?;
    let note = folder.join("path");
    let path = std::fs::read_to_string(&note).map_err(BenchError::io(&note))?;
    Ok((PathBuf::from(path), stamp))
}
