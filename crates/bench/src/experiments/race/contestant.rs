//! An engine of a race, in this process or in its own.

use super::Cell;
use super::queries::QuerySet;
use super::setup::Setup;
use crate::engines::{self, Engine};
use crate::error::{BenchError, Result};
use crate::peers::{About, Environment, Lucene, Overhead, Peer, Request, Times};
use crate::statistics::timed;
use crate::suite::{AnswerKind, QueryEngine, RaceEngine};
use lanner::Mode;
use lanner_index::open::Ids;
use lanner_index::text::Analyzer;
use std::path::Path;
use std::process::Command;

/// The peers that could be installed and run in their own processes.
pub struct Installed {
    pub python: Option<Environment>,
    pub lucene: Option<Lucene>,
}

impl Installed {
    /// Returns the command that starts a peer on postings, with a folder for its index.
    fn command(&self, engine: RaceEngine, postings: &Path, index: &Path) -> Option<Command> {
        if engine == RaceEngine::Lucene {
            return Some(self.lucene.as_ref()?.command(postings, index));
        }
        Some(self.python.as_ref()?.command(&engine.to_string(), postings, index))
    }
}

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
        installed: &Installed,
    ) -> Result<Option<Contestant>> {
        let library = |folder, reader| Ok::<_, BenchError>(Runner::Library(engines::open(reader, folder, analyzer)?));
        let runner = match (engine, &setup.tantivy, &setup.lanner.bisected) {
            (RaceEngine::Lanner, _, _) => library(&setup.lanner.default, QueryEngine::Lanner)?,
            (RaceEngine::LannerBisected, _, Some(folder)) => library(folder, QueryEngine::Lanner)?,
            (RaceEngine::Tantivy, Some(folder), _) => library(folder, QueryEngine::Tantivy)?,
            (RaceEngine::TantivyIdsInMemory, Some(folder), _) => library(folder, QueryEngine::TantivyIdsInMemory)?,
            (RaceEngine::Pisa | RaceEngine::Bm25s | RaceEngine::Lucene, _, _) => {
                let Some(postings) = &setup.postings else { return Ok(None) };
                let name = engine.to_string();
                let command = |index: &Path| installed.command(engine, postings, index);
                if command(Path::new("")).is_none() {
                    return Ok(None);
                }
                let start = |index: &Path| command(index).map(|command| Peer::start(&name, command)).transpose();
                // A peer builds its index at its first start.
                let index = setup.cache.folder(&name, &setup.postings_stamp, |index| start(index).map(drop))?;
                let Some(peer) = start(&index)? else { return Ok(None) };
                Runner::Process(peer)
            }
            _ => return Ok(None),
        };
        Ok(Some(Contestant { engine, runner }))
    }

    /// Whether its times of these answers are worth measuring: without ids, both of Tantivy's sources of ids are the same.
    pub fn times(&self, answer: AnswerKind) -> bool {
        answer == AnswerKind::Ids || self.engine != RaceEngine::TantivyIdsInMemory
    }

    /// Returns the algorithms for a mode; none if the mode is not supported.
    pub fn algorithms(&self, mode: Mode) -> Vec<String> {
        match &self.runner {
            Runner::Library(_) => vec![String::new()],
            Runner::Process(peer) => peer.algorithms(mode).to_vec(),
        }
    }

    /// Runs every `step`-th query once.
    pub fn pass(&mut self, set: &QuerySet, cell: Cell, algorithm: &str, step: usize) -> Result<Times> {
        let Cell { mode, k, answer } = cell;
        match &mut self.runner {
            Runner::Library(engine) => {
                let mut times = Times::default();
                for text in set.texts.iter().step_by(step) {
                    let (rows, seconds) = match answer {
                        AnswerKind::Documents => timed(|| engine.documents(text, mode, k))?,
                        AnswerKind::Ids => {
                            let (ids, seconds) = timed(|| engine.answer(text, mode, k))?;
                            (ids.len(), seconds)
                        }
                    };
                    times.us.push(seconds * 1e6);
                    times.rows.push(rows);
                }
                Ok(times)
            }
            Runner::Process(peer) => {
                let queries: Vec<&[String]> = set.terms.iter().step_by(step).map(Vec::as_slice).collect();
                peer.times(&Request { mode, k, ids: answer == AnswerKind::Ids, algorithm, queries: &queries })
            }
        }
    }

    /// Returns the external ids of the hits of every query; `None` if the mode is not supported.
    pub fn answers(&mut self, set: &QuerySet, (mode, k): (Mode, usize)) -> Result<Option<Vec<Vec<String>>>> {
        let Some(algorithm) = self.algorithms(mode).into_iter().next() else { return Ok(None) };
        Ok(Some(match &mut self.runner {
            Runner::Library(engine) => {
                let strings = |ids: Ids| ids.iter().map(str::to_owned).collect();
                let answers = set.texts.iter().map(|text| engine.answer(text, mode, k).map(strings));
                answers.collect::<Result<_, _>>()?
            }
            Runner::Process(peer) => {
                let queries: Vec<&[String]> = set.terms.iter().map(Vec::as_slice).collect();
                let answers =
                    peer.answers(&Request { mode, k, ids: true, algorithm: &algorithm, queries: &queries })?;
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

    /// Returns what a peer in its own process reports about itself.
    pub fn about(&self) -> Option<&About> {
        match &self.runner {
            Runner::Library(_) => None,
            Runner::Process(peer) => Some(peer.about()),
        }
    }
}
