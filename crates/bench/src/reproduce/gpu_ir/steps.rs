//! Table 3: the steps of an AND on the GPU, as in the paper: lists are decoded, intersected by Parallel Merge Find, and
//! the best are selected by a tree. `traced.rs` has the steps of whole queries, with scoring.

use super::traced;
use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Chart, Group};
use crate::query_log::spread;
use crate::reproduce::setup::{Average, Coded, Download, Ranked, Setup, Timed, check, list_numbers};
use crate::result::{Measurement, find_value};
use crate::table::{DASH, Table, number};
use lanner::internals::device::decode::DecodeKind;
use lanner::internals::papers::compaction::{DeviceList, Operands, read_numbers};
use lanner::internals::papers::parallel_merge_find;
use lanner::internals::papers::selection::Method;
use lanner::internals::query::answer::Scored;
use lanner::{Mode, Plan};
use lanner_gpu::memory::Memory;
use lanner_index::codec::CodecName;
use std::collections::BTreeMap;
use std::slice::from_ref;

/// Table 3, AND: shares in percent of decompression, intersection, and scoring with selection.
pub const AND: [f64; 3] = [47.0, 45.0, 8.0];
const STEPS: [&str; 3] = ["decompression", "intersection", "top-k"];
pub const K: usize = 10;
/// Number of queries with at least two terms, short and long ones.
const QUERIES: usize = 64;
/// The number of levels that the paper uses.
const LEVELS: u32 = 3;

/// An AND.
struct Conjunction {
    /// The numbers of its lists, the shortest first.
    lists: Vec<u64>,
    /// All matching documents.
    expected: Vec<u32>,
    ranked: Ranked,
    plan: Plan,
    /// The best k.
    hits: Vec<Scored>,
}

struct Work<'a> {
    setup: &'a Setup,
    /// Lists by their numbers.
    packed: BTreeMap<u64, Coded>,
    queries: Vec<Conjunction>,
    /// One holds the results of a step while the next step writes to the other.
    scratch: [Memory; 2],
    tree: Memory,
}

pub fn table_3(setup: &Setup) -> Result<Findings> {
    let texts = texts(setup);
    let work = Work::prepare(setup, &texts)?;
    for query in &work.queries {
        work.check(query)?;
    }
    let runs = setup.repeat(|| {
        let mut sums = [Timed::default(); STEPS.len()];
        for query in &work.queries {
            sums.iter_mut().zip(work.steps(query)?).for_each(|(sum, step)| *sum += step);
        }
        Ok(sums)
    })?;
    let mut rows = Vec::new();
    for (step, name) in STEPS.into_iter().enumerate() {
        let of_step: Vec<Timed> = runs.iter().map(|run| run[step]).collect();
        rows.push(work.row(name, &Average::of(&of_step, work.queries.len())));
    }
    let ours = setup.average(&work.queries, |query| setup.time_on_gpu(from_ref(&query.plan), from_ref(&query.hits)))?;
    rows.push(work.row("ours", &ours));
    rows.extend(traced::measure(setup, &texts)?);
    Ok(findings(&setup.note(), rows))
}

/// Returns the queries.
fn texts(setup: &Setup) -> Vec<String> {
    let wanted = setup.count(QUERIES, 3);
    let numbers = setup.work.spread_by_postings(4 * wanted);
    let texts = numbers.iter().map(|&number| setup.work.texts[number].clone()).filter(|text| text.contains(' '));
    spread(&texts.collect::<Vec<_>>(), wanted)
}

impl Work<'_> {
    fn prepare<'a>(setup: &'a Setup, texts: &[String]) -> Result<Work<'a>> {
        let all = setup.plan(texts, Mode::And, setup.index.documents() as usize)?;
        let best = setup.plan(texts, Mode::And, K)?;
        let lists = setup.decode(all.iter().flat_map(list_numbers))?;
        let packed = Coded::all(setup, CodecName::Pfor, &lists.values().cloned().collect::<Vec<_>>())?;
        let packed: BTreeMap<u64, Coded> = lists.into_keys().zip(packed).collect();
        let mut queries = Vec::new();
        for ((plan, best), hits) in all.iter().zip(best).zip(setup.hits(&all)?) {
            let mut lists: Vec<u64> = list_numbers(plan).collect();
            lists.sort_by_key(|list| packed[list].postings());
            let mut expected: Vec<u32> = hits.iter().map(|hit| hit.document.0).collect();
            expected.sort_unstable();
            let ranked = Ranked::upload(setup, &hits, K)?;
            let hits = hits[..hits.len().min(K)].to_vec();
            queries.push(Conjunction { lists, expected, ranked, plan: best, hits });
        }
        let intersected =
            |query: &Conjunction| parallel_merge_find::scratch_bytes(packed[&query.lists[0]].list(), LEVELS);
        let selected = |query: &Conjunction| query.ranked.selection().scratch_bytes(Method::Tree);
        let allocate = |bytes: &dyn Fn(&Conjunction) -> usize| {
            setup.gpu.allocate(queries.iter().map(bytes).max().unwrap_or(0).max(16))
        };
        let (scratch, tree) = ([allocate(&intersected)?, allocate(&intersected)?], allocate(&selected)?);
        Ok(Work { setup, scratch, tree, packed, queries })
    }

    /// Decodes all lists and intersects them; returns the result and the time of both steps.
    fn intersect(&self, query: &Conjunction) -> Result<(DeviceList, [Timed; 2])> {
        let gpu = &self.setup.gpu;
        let decoding = self.setup.time(|| {
            query.lists.iter().try_for_each(|list| self.packed[list].launch(DecodeKind::Documents))?;
            Ok(Download { from: self.packed[&query.lists[0]].list().documents, bytes: 4 })
        })?;
        let (mut common, mut intersecting) = (self.packed[&query.lists[0]].list(), Timed::default());
        for (turn, list) in query.lists[1..].iter().enumerate() {
            let (lists, mut found) = ([common, self.packed[list].list()], None);
            intersecting += self.setup.time(|| {
                let scratch = &self.scratch[turn % 2];
                let there = parallel_merge_find::gpu(gpu, STREAM, Operands::new(lists, scratch), LEVELS)?;
                found = Some(there);
                Ok(Download { from: there.count, bytes: 4 })
            })?;
            common = found.expect("the timed closure has run").list(gpu, STREAM)?;
        }
        Ok((common, [decoding, intersecting]))
    }

    fn steps(&self, query: &Conjunction) -> Result<[Timed; 3]> {
        let (_, [decoding, intersecting]) = self.intersect(query)?;
        let selecting = self.setup.time(|| {
            let best = query.ranked.selection().gpu(&self.setup.gpu, STREAM, Method::Tree, &self.tree)?;
            Ok(Download { from: best.keys, bytes: 8 * best.count as usize })
        })?;
        Ok([decoding, intersecting, selecting])
    }

    fn check(&self, query: &Conjunction) -> Result<()> {
        let gpu = &self.setup.gpu;
        query.lists.iter().try_for_each(|list| self.packed[list].check(self.setup, &[DecodeKind::Documents]))?;
        let (common, _) = self.intersect(query)?;
        let found = read_numbers(gpu, STREAM, common.documents, common.length as usize)?;
        check("an AND by Parallel Merge Find", &found, &query.expected)?;
        let best = query.ranked.selection().gpu(gpu, STREAM, Method::Tree, &self.tree)?.read(gpu, STREAM)?;
        check("selection by a tree", &best, &query.ranked.best)?;
        self.setup.time_on_gpu(from_ref(&query.plan), from_ref(&query.hits))?;
        Ok(())
    }

    fn row(&self, step: &str, average: &Average) -> Measurement {
        let queries = self.queries.len() as f64;
        let lists = self.queries.iter().flat_map(|query| &query.lists);
        let postings = lists.map(|list| self.packed[list].postings()).sum::<usize>() as f64 / queries;
        average.add_to(Measurement::new("step", &[("step", &step)]).with("queries", queries).with("postings", postings))
    }
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let device_us = |step: &str| find_value(&rows, &[("step", &step)], "device_us");
    let sum: f64 = STEPS.map(device_us).iter().sum();
    let columns = ["step of an AND", "paper, %", "here, %", "us of kernels"];
    let mut and = Table::new("Steps of an AND on the GPU", 1, &columns);
    for (step, paper) in STEPS.into_iter().zip(AND) {
        and.numbers(step, [paper, device_us(step) / sum * 100.0, device_us(step)]);
    }
    and.numbers("sum", [100.0, 100.0, sum]);
    let dash = || DASH.to_owned();
    and.row(["ours: one kernel for all steps, with scoring".to_owned(), dash(), dash(), number(device_us("ours"))]);
    let [queries, postings] = ["queries", "postings"].map(|name| rows[0].count(name));
    let and = and.notes(&[
        &format!(
            "{note} {queries} ANDs of the log with {postings} postings on average. The paper's steps: all lists are \
             decoded from PForDelta, then intersected two by two, the shortest first, by Parallel Merge Find with \
             three levels, then a tree selects the best ten. Times are those of the device only; ours is the AND of \
             Lanner's executor."
        ),
        "Scoring is not in these times: the tree gets scores of the CPU. The next table has whole queries.",
    ]);
    let [whole, or] = traced::tables(&rows);
    let group = |(step, paper)| Group::of_series(step, [paper, device_us(step) / sum * 100.0]);
    let subtitle = "percent of the time of the device; only the paper's top-k includes scoring";
    let chart = Chart::new("Steps of an AND on the GPU", subtitle, "%").series(&["paper", "here"]);
    let chart = chart.groups(STEPS.into_iter().zip(AND).map(group));
    Findings::new(rows).table(and).table(whole).table(or).chart("shares", chart)
}
