//! The best engines on one thread: each has its own index of the same postings and gets the same terms.

mod check;
mod contestant;
mod ground;
mod size;
mod tables;
mod threads;
mod timing;

use super::Findings;
use crate::cache::Cache;
use crate::collection::{self, synthetic_queries};
use crate::error::BenchError;
use crate::only::Only;
use crate::peers::{Environment, Overhead};
use crate::query_log;
use crate::result::Measurement;
use crate::suite::{LogPart, NamedCollection, PeersPart, RaceEngine, Suite};
use contestant::Contestant;
use ground::Ground;
use lanner::Mode;
use lanner_index::open::Index;
use lanner_index::text::Analyzer;
use std::collections::BTreeMap;
use std::path::Path;

/// Engines to race.
pub struct Race<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// Its part about peers.
    pub part: &'a PeersPart,
    /// Which of it to run.
    pub only: &'a Only,
    /// What turns text into terms.
    pub analyzer: &'a Analyzer,
    /// Where the files of suites are.
    pub data: &'a Path,
    /// Where indexes and the peers' environment are kept.
    pub cache: &'a Cache,
    /// This program, whose code decides what our indexes hold.
    pub program: &'a Path,
    /// Is told what happens.
    pub say: &'a dyn Fn(&str),
}

/// Queries of one log, reduced to terms that the collection has.
struct QuerySet {
    name: String,
    /// The terms of each query.
    terms: Vec<Vec<String>>,
    /// The same as text.
    texts: Vec<String>,
}

/// A mode and a number of hits.
type Cell = (Mode, usize);

impl Race<'_> {
    /// Races on every collection; also returns the versions of the peers.
    pub fn run(&self) -> Result<(Findings, BTreeMap<String, String>), BenchError> {
        let (mut findings, mut versions) = (Findings::default(), BTreeMap::new());
        let environment = self.environment();
        for named in self.part.collections.iter().filter(|named| self.only.keeps("collection", &named.name)) {
            let (of_collection, of_peers) = self.on_collection(named, environment.as_ref())?;
            findings.extend(of_collection);
            versions.extend(of_peers);
        }
        Ok((findings, versions))
    }

    /// The peers' environment; without one they are left out, and it is said why.
    fn environment(&self) -> Option<Environment> {
        if !self.engines().any(RaceEngine::is_python) {
            return None;
        }
        let environment = self.cache.folder("environment", "", |_| Ok(()));
        let environment = environment.and_then(|folder| Environment::prepare(&folder, self.say));
        environment.map_err(|error| (self.say)(&format!("LEFT OUT: {error}"))).ok()
    }

    fn engines(&self) -> impl Iterator<Item = RaceEngine> {
        self.part.engines.iter().copied().filter(|engine| self.only.keeps("engine", engine))
    }

    fn cells(&self) -> Vec<Cell> {
        let modes = self.part.modes.iter().filter(|mode| self.only.keeps("mode", mode));
        let k = || self.part.k.iter().copied().filter(|k| self.only.keeps("k", k));
        modes.flat_map(|&mode| k().map(move |k| (mode, k))).collect()
    }

    fn on_collection(
        &self,
        named: &NamedCollection,
        environment: Option<&Environment>,
    ) -> Result<(Findings, BTreeMap<String, String>), BenchError> {
        let say = |what: &str| (self.say)(&format!("{}: {what}", named.name));
        say("preparing documents and indexes");
        let ground = Ground::prepare(self, named)?;
        let sets = self.query_sets(&ground)?;
        let mut contestants = Vec::new();
        for engine in self.engines() {
            say(&format!("opening {engine}"));
            contestants.extend(Contestant::open(engine, &ground, self.analyzer, environment)?);
        }
        say("checking the answers");
        let mut findings = check::run(self, &ground, &sets, &mut contestants)?;
        let mut overheads = BTreeMap::new();
        for (at, contestant) in contestants.iter_mut().enumerate() {
            for &k in &self.part.k {
                overheads.insert((at, k), contestant.overhead(k)?);
            }
        }
        let mut rows = Vec::new();
        for set in &sets {
            for cell in self.cells() {
                say(&format!("{}, {}, k {}", set.name, cell.0, cell.1));
                let overhead = |at: usize| overheads.get(&(at, cell.1)).copied().unwrap_or_default();
                let timed = timing::run(self.part, &mut contestants, set, cell, &overhead)?;
                rows.extend(timed.into_iter().map(|timed| timed.measurement(&named.name, &set.name, cell)));
            }
        }
        findings.measurements.extend(overhead_measurements(&named.name, &contestants, &overheads));
        findings.extend(tables::run(self, &named.name, &sets, rows));
        findings.extend(size::run(self, &ground, &contestants)?);
        if !self.part.threads.is_empty() {
            say("answering on several threads");
            findings.extend(threads::run(self, &ground, &sets)?);
        }
        let versions = contestants.iter().filter_map(|one| Some((one.engine.to_string(), one.version()?))).collect();
        Ok((findings, versions))
    }

    fn query_sets(&self, ground: &Ground) -> Result<Vec<QuerySet>, BenchError> {
        let index = Index::open(&ground.ours.lanner)?;
        let is_known = |term: &str| index.lookup(term).is_ok_and(|found| found.is_some());
        let read = |log: &LogPart| {
            let queries = match &log.file {
                Some(file) => query_log::read(&collection::data_file(self.data, file)?)?,
                None => synthetic_queries(self.suite.collection.synthetic.unwrap_or(0)),
            };
            let known = query_log::known_terms(&queries, self.analyzer, is_known);
            let sample = self.only.sample(log.sample);
            let terms = match log.terms {
                Some(terms) => query_log::joined(&known, sample, terms),
                None => query_log::spread(&known, sample),
            };
            let texts = terms.iter().map(|terms| terms.join(" ")).collect();
            Ok(QuerySet { name: log.name.clone(), terms, texts })
        };
        self.part.logs.iter().filter(|log| self.only.keeps("log", &log.name)).map(read).collect()
    }
}

fn overhead_measurements(
    collection: &str,
    contestants: &[Contestant],
    overheads: &BTreeMap<(usize, usize), Overhead>,
) -> Vec<Measurement> {
    let of_python = overheads.iter().filter(|((at, _), _)| contestants[*at].engine == RaceEngine::Pisa);
    let measurement = |(&(at, k), overhead): (&(usize, usize), &Overhead)| {
        let (engine, k) = (contestants[at].engine.to_string(), k.to_string());
        Measurement::new("overhead", &[("collection", collection), ("engine", &engine), ("k", &k)])
            .with("empty_us", overhead.empty_us)
            .with("row_us", overhead.row_us)
    };
    of_python.map(measurement).collect()
}
