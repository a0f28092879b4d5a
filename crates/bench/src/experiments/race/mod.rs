//! Engines on one thread against each other. Each has its own index of the same postings and gets the same terms.

mod check;
mod contestant;
mod growth;
mod queries;
mod setup;
mod size;
mod tables;
mod threads;
mod timing;

use super::{Context, Findings};
use crate::error::{BenchError, Result};
use crate::peers::{Environment, Lucene};
use crate::result::{Label, Measurement};
use crate::suite::{AnswerKind, NamedCollection, PeersPart, RaceEngine};
use contestant::{Contestant, Installed};
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

/// What is timed: a mode, a number of hits, and what is returned.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    mode: Mode,
    k: usize,
    answer: AnswerKind,
}

/// The versions of the peers in their own processes, by name.
type Versions = BTreeMap<String, String>;

impl<'a> Race<'a> {
    pub fn new(context: Context<'a>, part: &'a PeersPart) -> Result<Race<'a>> {
        Ok(Race { context, part, analyzer: context.suite.collection.analyzer()? })
    }

    /// Measures all collections; also returns the versions of the peers.
    pub fn run(&self) -> Result<(Findings, Versions)> {
        let (mut findings, mut versions) = (Findings::default(), BTreeMap::new());
        let installed = self.install();
        for named in self.part.collections.iter().filter(|named| self.context.keeps("collection", &named.name)) {
            if !setup::is_there(self, named) {
                let file = named.file.as_deref().unwrap_or_default();
                let folders = "the data folder nor in that of --large (or LANNER_LARGE)";
                (self.context.say)(&format!("LEFT OUT: {}: {file} is neither in {folders}", named.name));
                continue;
            }
            let (of_collection, of_peers) = self.measure(named, &installed)?;
            findings.extend(of_collection);
            versions.extend(of_peers);
        }
        if let Some(part) = &self.part.growth {
            let grown = growth::run(part, &findings.measurements);
            findings.extend(grown);
        }
        Ok((findings, versions))
    }

    /// Installs the peers that run in their own processes. Those that cannot be installed are left out with a message.
    fn install(&self) -> Installed {
        let say = self.context.say;
        let left_out = |error: &BenchError| say(&format!("LEFT OUT: {error}"));
        let folder = |name: &str| self.context.options.cache.join(name);
        let python = self
            .engines()
            .any(RaceEngine::is_python)
            .then(|| Environment::prepare(&folder("environment"), say).inspect_err(left_out).ok());
        let lucene = self
            .engines()
            .any(|engine| engine == RaceEngine::Lucene)
            .then(|| Lucene::prepare(&folder("lucene"), say).inspect_err(left_out).ok());
        Installed { python: python.flatten(), lucene: lucene.flatten() }
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

    fn answers(&self) -> Vec<AnswerKind> {
        self.context.kept("answer", &self.part.answers)
    }

    fn cells(&self, answer: AnswerKind) -> Vec<Cell> {
        let cell = |mode| self.k().into_iter().map(move |k| Cell { mode, k, answer });
        self.modes().into_iter().flat_map(cell).collect()
    }

    fn measure(&self, named: &NamedCollection, installed: &Installed) -> Result<(Findings, Versions)> {
        let say = |what: &str| (self.context.say)(&format!("{}: {what}", named.name));
        say("preparing documents and indexes");
        let setup = Setup::prepare(self, named)?;
        let index = Index::open(&setup.lanner.default)?;
        let sets = queries::read(self.context, self.part, &self.analyzer, &index)?;
        let mut contestants = Vec::new();
        for engine in self.engines() {
            say(&format!("opening {engine}"));
            contestants.extend(Contestant::open(engine, &setup, &self.analyzer, installed)?);
        }
        say("checking the answers");
        let mut findings = check::run(self, &setup, &sets, &mut contestants)?;
        let header = index.segment().header();
        let row = Measurement::new("collection", &[("collection", &named.name)]);
        let row = row.with("documents", f64::from(header.documents)).with("postings", header.postings as f64);
        findings.measurements.push(row);
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
        for (set, answer) in sets.iter().flat_map(|set| self.answers().into_iter().map(move |answer| (set, answer))) {
            for cell in self.cells(answer) {
                say(&format!("{}, {answer}, {}, k {}", set.name, cell.mode, cell.k));
                let overhead = |at: usize| overheads.get(&(at, cell.k)).copied().unwrap_or_default();
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
}
