//! What all parts share: the device, the index, the queries of both halves of the log, and engines.

use super::ListsRun;
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::gpu::workload::{self, Wanted, Workload, list_bytes};
use crate::experiments::placement::{gpu_options, own_index};
use crate::load::{Pass, QuerySet, Questions, with_delays};
use crate::machine::cores;
use crate::result::{Label, Measurement};
use crate::statistics::timed;
use crate::suite::Lists;
use crate::table::{Table, bytes, number};
use lanner::internals::executors::{CacheReport, Piece, ResidencyReport, bytes_of_pieces};
use lanner::internals::query::plan::PlannedList;
use lanner::{Engine, GpuOptions, Index, Mode, Plan, Policy, Query, ScoreModel, SearchError};
use lanner_gpu::device::Device;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The labels of measurements.
pub const LABELS: [&str; 2] = ["mode", "lists"];

/// What is measured.
pub struct Setup<'a> {
    pub run: ListsRun<'a>,
    pub device: Arc<dyn Device>,
    pub folder: PathBuf,
    pub index: Arc<Index>,
    /// Queries that warm up caches.
    pub tuning: Vec<String>,
    /// Queries that are measured.
    pub reporting: Vec<String>,
    /// Bytes of all lists.
    pub list_bytes: u64,
    /// Bytes of their directories, with the bounds of chunks.
    pub directory_bytes: u64,
}

impl<'a> Setup<'a> {
    /// Opens the index and the device, and chooses the queries.
    pub fn prepare(run: ListsRun<'a>) -> Result<(Setup<'a>, Findings)> {
        let ListsRun { context, part } = run;
        (context.say)("preparing the index");
        let folder = workload::index_folder(&context)?;
        let index = Arc::new(Index::open(&folder)?);
        let device = context.options.device.open()?;
        (context.say)(&format!("opened {}; choosing queries", device.properties().name));
        let wanted = Wanted { log: &part.log, postings: part.postings, of_documents: part.of_documents };
        let work = Workload::choose(&context, wanted, Arc::clone(&index))?;
        let tuning = work.tuning(&context, &part.log, part.log.sample)?;
        let (mut measurements, table) = work.describe(&part.log.name);
        let list_bytes = list_bytes(&index);
        let column = ScoreModel::Bm25.column();
        let of_pieces = bytes_of_pieces(&index)?;
        let directories = [Piece::Directory, Piece::bounds(column)].map(|piece| of_pieces[piece as usize]);
        let directory_bytes = directories.iter().sum();
        measurements.push(
            Measurement::new("directories", &[])
                .with("directory_bytes", directory_bytes as f64)
                .with("length_code_bytes", index.length_codes().len() as f64)
                .with("list_bytes", list_bytes as f64),
        );
        let mut directories = Table::new("What every query needs", 1, &["what", "bytes", "% of all lists"]);
        let rows = [("directories and bounds", directory_bytes), ("length codes", index.length_codes().len() as u64)];
        for (what, count) in rows {
            directories.row([what.to_owned(), bytes(count), number(100.0 * count as f64 / list_bytes as f64)]);
        }
        let setup = Setup { run, device, folder, index, tuning, reporting: work.texts, list_bytes, directory_bytes };
        Ok((setup, Findings::new(measurements).table(table).table(directories)))
    }

    /// The modes that `--only` keeps.
    pub fn modes(&self) -> Vec<Mode> {
        self.run.context.kept("mode", &self.run.part.modes)
    }

    /// Plans queries.
    pub fn plans(&self, texts: &[String], mode: Mode) -> Result<Vec<Plan>> {
        let engine = Engine::new(Arc::clone(&self.index));
        let query = |text: &String| Query::new(text).mode(mode).k(self.run.part.k).score(ScoreModel::Bm25);
        let plans = texts.iter().map(|text| engine.plan(&query(text)));
        Ok(plans.collect::<std::result::Result<Vec<_>, _>>().map_err(SearchError::from)?)
    }

    /// Plans queries, and answers them on the CPU.
    pub fn answered(&self, texts: &[String], mode: Mode) -> Result<QuerySet> {
        (self.run.context.say)(&format!("the CPU answers {} queries, {mode}", texts.len()));
        let questions = Questions { mode, k: self.run.part.k, score: ScoreModel::Bm25 };
        QuerySet::new(&self.index, texts, questions, cores())
    }

    /// An engine whose queries the GPU answers. It is open, and all lists are loaded that can be.
    pub fn engine(&self, lists: Lists) -> Result<Engine> {
        let device = Arc::clone(&self.device);
        let options = gpu_options(Box::new(move || Ok(Arc::clone(&device))), &self.index, lists);
        self.engine_with(options, lists)
    }

    /// An engine as [`Setup::engine`], with other options.
    pub fn engine_with(&self, options: GpuOptions, lists: Lists) -> Result<Engine> {
        let index = own_index(&self.index, &self.folder, lists)?;
        let engine = Engine::new(index).threads(cores()).policy(Policy::Gpu).gpu(options);
        engine.connect()?;
        Ok(engine)
    }

    /// Asks each query as often as the suite says.
    pub fn warm_up(&self, engine: &Engine, set: &QuerySet) -> Result<()> {
        (0..self.run.part.warm_up).try_for_each(|_| Pass::over(engine, set).map(drop))
    }

    /// A measurement with the labels of a mode and of lists, and further ones.
    pub fn measurement(&self, kind: &str, mode: Mode, further: &[Label<'_>]) -> Measurement {
        let log = &self.run.part.log.name;
        let labels: [Label<'_>; 3] = [("log", log), ("mode", &mode), ("k", &self.run.part.k)];
        Measurement::new(kind, &[&labels, further].concat())
    }
}

/// Asks up to `count` queries one by one, spread over all, and adds the percentiles of their times.
pub fn one_by_one(engine: &Engine, set: &QuerySet, count: usize, row: Measurement) -> Result<Measurement> {
    let count = count.min(set.len());
    let ask = |number: usize| {
        let number = number * set.len() / count;
        let (answer, seconds) = timed(|| engine.search(&set.queries[number]))?;
        set.check(number, &answer)?;
        Ok(1e6 * seconds)
    };
    Ok(with_delays(row, (0..count).map(ask).collect::<Result<Vec<f64>>>()?))
}

/// Where lists lie now.
pub fn residency(engine: &Engine) -> ResidencyReport {
    engine.residency().expect("the GPU is open")
}

/// The share of pieces that were resident when batches named them, between two reports; `None` if there was no cache.
pub fn hit_rate(before: &CacheReport, after: &CacheReport) -> Option<f64> {
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

/// The bytes of each list that plans read, by where it begins.
pub fn lists_of<'a>(plans: impl Iterator<Item = &'a Plan>) -> HashMap<(bool, usize), u64> {
    let lists = plans.flat_map(|plan| plan.lists.iter());
    lists.map(|PlannedList { span, .. }| ((span.is_long, span.start), span.bytes() as u64)).collect()
}
