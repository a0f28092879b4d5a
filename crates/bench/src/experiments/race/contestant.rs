//! An engine of a race, in this process or in its own.

use super::setup::Setup;
use super::{Cell, QuerySet};
use crate::engines::{self, Engine};
use crate::error::{BenchError, Result};
use crate::peers::{About, Environment, Overhead, Peer, Request, Times};
use crate::statistics::timed;
use crate::suite::{QueryEngine, RaceEngine};
use lanner::Mode;
use lanner_index::open::Ids;
use lanner_index::text::Analyzer;
use std::path::Path;

/// An engine that is ready to answer.
pub struct Contestant {
    pub engine: RaceEngine,
    runner: Runner,
}

enum Runner {
    Library(Box<dyn Engine>),
    Process(Peer),
}

impl Contestant {
    /// Opens an engine; `None` if its index or environment does not exist.
    pub fn open(
        engine: RaceEngine,
        setup: &Setup,
        analyzer: &Analyzer,
        environment: Option<&Environment>,
    ) -> Result<Option<Contestant>> {
        let library = |folder, reader| Ok::<_, BenchError>(Runner::Library(engines::open(reader, folder, analyzer)?));
        let runner = match (engine, &setup.tantivy, &setup.lanner.bisected) {
            (RaceEngine::Lanner, _, _) => library(&setup.lanner.default, QueryEngine::Lanner)?,
            (RaceEngine::LannerBisected, _, Some(folder)) => library(folder, QueryEngine::Lanner)?,
            (RaceEngine::Tantivy, Some(folder), _) => library(folder, QueryEngine::Tantivy)?,
            (RaceEngine::TantivyIdsInMemory, Some(folder), _) => library(folder, QueryEngine::TantivyIdsInMemory)?,
            (RaceEngine::Pisa | RaceEngine::Bm25s, _, _) => {
                let (Some(environment), Some(postings)) = (environment, &setup.postings) else { return Ok(None) };
                let name = engine.to_string();
                let start = |index: &Path| Peer::start(&name, environment.command(&name, postings, index));
                // A peer builds its index at its first start.
                let index = setup.cache.folder(&name, &setup.postings_stamp, |index| start(index).map(drop))?;
                Runner::Process(start(&index)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Contestant { engine, runner }))
    }

    /// Returns the algorithms for a mode; none if the mode is not supported.
    pub fn algorithms(&self, mode: Mode) -> Vec<String> {
        match &self.runner {
            Runner::Library(_) => vec![String::new()],
            Runner::Process(peer) => peer.algorithms(mode).to_vec(),
        }
    }

    /// Runs every `step`-th query once.
    pub fn pass(&mut self, set: &QuerySet, (mode, k): Cell, algorithm: &str, step: usize) -> Result<Times> {
        match &mut self.runner {
            Runner::Library(engine) => {
                let mut times = Times::default();
                for text in set.texts.iter().step_by(step) {
                    let (answer, seconds) = timed(|| engine.answer(text, mode, k))?;
                    times.us.push(seconds * 1e6);
                    times.rows.push(answer.len());
                }
                Ok(times)
            }
            Runner::Process(peer) => {
                let queries: Vec<&[String]> = set.terms.iter().step_by(step).map(Vec::as_slice).collect();
                peer.times(&Request { mode, k, algorithm, queries: &queries })
            }
        }
    }

    /// Returns the external ids of the hits of every query; `None` if the mode is not supported.
    pub fn answers(&mut self, set: &QuerySet, (mode, k): Cell) -> Result<Option<Vec<Vec<String>>>> {
        let Some(algorithm) = self.algorithms(mode).into_iter().next() else { return Ok(None) };
        Ok(Some(match &mut self.runner {
            Runner::Library(engine) => {
                let strings = |ids: Ids| ids.iter().map(str::to_owned).collect();
                let answers = set.texts.iter().map(|text| engine.answer(text, mode, k).map(strings));
                answers.collect::<Result<_, _>>()?
            }
            Runner::Process(peer) => {
                let queries: Vec<&[String]> = set.terms.iter().map(Vec::as_slice).collect();
                let answers = peer.answers(&Request { mode, k, algorithm: &algorithm, queries: &queries })?;
                let ids = |hits: Vec<(String, f64)>| hits.into_iter().map(|(id, _)| id).collect();
                answers.into_iter().map(ids).collect()
            }
        }))
    }

    /// Measures what to subtract from the times.
    pub fn overhead(&mut self, k: usize) -> Result<Overhead> {
        match &mut self.runner {
            Runner::Library(_) => Ok(Overhead::default()),
            Runner::Process(peer) => peer.overhead(k),
        }
    }

    /// Returns what a Python peer reports about itself.
    pub fn about(&self) -> Option<&About> {
        match &self.runner {
            Runner::Library(_) => None,
            Runner::Process(peer) => Some(peer.about()),
        }
    }
}
