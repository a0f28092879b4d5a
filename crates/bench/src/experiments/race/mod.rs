//! Engines on one thread against each other. Each has its own index of the same postings and gets the same terms.

mod check;
mod contestant;
mod setup;
mod size;
mod tables;
mod threads;
mod timing;

use super::{Context, Findings};
use crate::error::Result;
use crate::peers::Environment;
use crate::query_log;
use crate::result::{Label, Measurement};
use crate::suite::{LogPart, NamedCollection, PeersPart, RaceEngine};
use contestant::Contestant;
use lanner::Mode;
use lanner_index::open::Index;
use lanner_index::text::Analyzer;
use setup::Setup;
use std::collections::BTreeMap;

/// The experiment of section `[peers]`.
pub struct Race<'a> {
    context: Context<'a>,
    part: &'a PeersPart,
    analyzer: Analyzer,
}

/// Queries of one log, reduced to terms of the collection.
struct QuerySet {
    name: String,
    /// The terms of each query.
    terms: Vec<Vec<String>>,
    /// The terms of each query, joined by spaces.
    texts: Vec<String>,
}

/// A mode and a number of hits.
type Cell = (Mode, usize);

/// The versions of the Python peers by name.
type Versions = BTreeMap<String, String>;

impl<'a> Race<'a> {
    pub fn new(context: Context<'a>, part: &'a PeersPart) -> Result<Race<'a>> {
        Ok(Race { context, part, analyzer: context.suite.collection.analyzer()? })
    }

    /// Measures all collections; also returns the versions of the peers.
    pub fn run(&self) -> Result<(Findings, Versions)> {
        let (mut findings, mut versions) = (Findings::default(), BTreeMap::new());
        let environment = self.environment();
        for named in self.part.collections.iter().filter(|named| self.context.keeps("collection", &named.name)) {
            let (of_collection, of_peers) = self.measure(named, environment.as_ref())?;
            findings.extend(of_collection);
            versions.extend(of_peers);
        }
        Ok((findings, versions))
    }

    /// Returns the environment of the Python peers. If it cannot be made, they are left out with a message.
    fn environment(&self) -> Option<Environment> {
        if !self.engines().any(RaceEngine::is_python) {
            return None;
        }
        let folder = self.context.options.cache.join("environment");
        let environment = Environment::prepare(&folder, self.context.say);
        environment.map_err(|error| (self.context.say)(&format!("LEFT OUT: {error}"))).ok()
    }

    fn engines(&self) -> impl Iterator<Item = RaceEngine> {
        self.context.kept("engine", &self.part.engines).into_iter()
    }

    fn modes(&self) -> Vec<Mode> {
        self.context.kept("mode", &self.part.modes)
    }

    fn k(&self) -> Vec<usize> {
        self.context.kept("k", &self.part.k)
    }

    fn cells(&self) -> Vec<Cell> {
        self.modes().into_iter().flat_map(|mode| self.k().into_iter().map(move |k| (mode, k))).collect()
    }

    fn measure(&self, named: &NamedCollection, environment: Option<&Environment>) -> Result<(Findings, Versions)> {
        let say = |what: &str| (self.context.say)(&format!("{}: {what}", named.name));
        say("preparing documents and indexes");
        let setup = Setup::prepare(self, named)?;
        let sets = self.query_sets(&setup)?;
        let mut contestants = Vec::new();
        for engine in self.engines() {
            say(&format!("opening {engine}"));
            contestants.extend(Contestant::open(engine, &setup, &self.analyzer, environment)?);
        }
        say("checking the answers");
        let mut findings = check::run(self, &setup, &sets, &mut contestants)?;
        let mut overheads = BTreeMap::new();
        for (at, contestant) in contestants.iter_mut().enumerate() {
            for &k in &self.part.k {
                let overhead = contestant.overhead(k)?;
                overheads.insert((at, k), overhead);
                if contestant.engine == RaceEngine::Pisa {
                    let labels: [Label<'_>; 3] =
                        [("collection", &named.name), ("engine", &contestant.engine), ("k", &k)];
                    let row = Measurement::new("overhead", &labels).with("empty_us", overhead.empty_us);
                    findings.measurements.push(row.with("row_us", overhead.row_us));
                }
            }
        }
        let mut rows = Vec::new();
        for set in &sets {
            for cell in self.cells() {
                say(&format!("{}, {}, k {}", set.name, cell.0, cell.1));
                let overhead = |at: usize| overheads.get(&(at, cell.1)).copied().unwrap_or_default();
                let timed = timing::run(self.part, &mut contestants, (set, cell), &overhead)?;
                rows.extend(timed.into_iter().map(|timed| timed.measurement(&named.name, &set.name, cell)));
            }
        }
        findings.extend(tables::run(self, &named.name, &sets, rows));
        findings.extend(size::run(self, &setup, &contestants)?);
        if !self.part.threads.is_empty() {
            say("answering on several threads");
            findings.extend(threads::run(self, &setup, &sets)?);
        }
        let version = |one: &Contestant| Some((one.engine.to_string(), one.about()?.version.clone()));
        let versions = contestants.iter().filter_map(version).collect();
        Ok((findings, versions))
    }

    fn query_sets(&self, setup: &Setup) -> Result<Vec<QuerySet>> {
        let index = Index::open(&setup.lanner.default)?;
        let is_known = |term: &str| index.lookup(term).is_ok_and(|found| found.is_some());
        let read = |log: &LogPart| {
            let known = query_log::known_terms(&self.context.read_log(log)?, &self.analyzer, is_known);
            let sample = self.context.options.only.sample(log.sample);
            let terms = match log.terms {
                Some(terms) => query_log::joined(&known, sample, terms),
                None => query_log::spread(&known, sample),
            };
            let texts = terms.iter().map(|terms| terms.join(" ")).collect();
            Ok(QuerySet { name: log.name.clone(), terms, texts })
        };
        self.part.logs.iter().filter(|log| self.context.keeps("log", &log.name)).map(read).collect()
    }
}
