//! Table 3: what the steps of an AND take on the GPU, run as the paper does: lists are decoded, intersected by Parallel
//! Merge Find, and the best are taken off a tree. `traced.rs` has the steps of whole queries, with scoring.

use super::traced;
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Bar, Chart, Group, Picture};
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Average, Coded, Ground, Landing, Timed, agree};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::device::decode::DecodeKind;
use lanner::internals::papers::compaction::{DeviceList, Origins, read_numbers};
use lanner::internals::papers::parallel_merge_find;
use lanner::internals::papers::selection::{Method, Selection};
use lanner::{Hit, Mode, Plan};
use lanner_gpu::memory::Memory;
use lanner_index::codec::CodecName;
use std::collections::BTreeSet;

/// Table 3, AND: shares in percent of decompression, intersection, and scoring with selection.
pub const AND: [f64; 3] = [47.0, 45.0, 8.0];
const STEPS: [&str; 3] = ["decompression", "intersection", "top-k"];
pub const K: usize = 10;
/// Queries of at least two terms, spread over short and long ones.
const QUERIES: usize = 64;
/// The levels that the paper settles on.
const LEVELS: u32 = 3;

/// An AND with its lists, the shortest first.
struct Conjunction {
    lists: Vec<usize>,
    /// All matches.
    expected: Vec<u32>,
    keys: Memory,
    best: Vec<u64>,
    plan: Plan,
    hits: Vec<Vec<Hit>>,
}

/// All that is measured, with room for it.
struct Work<'a> {
    ground: &'a Ground,
    packed: Vec<Coded>,
    queries: Vec<Conjunction>,
    /// Results lie in one while those of the next step are made in the other.
    rooms: [Memory; 2],
    tree: Memory,
}

pub fn table_3(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let work = Work::prepare(ground)?;
    for query in &work.queries {
        work.check(query)?;
    }
    let runs = ground.repeat(|| {
        let mut sums = [Timed::default(); STEPS.len()];
        for query in &work.queries {
            for (sum, step) in sums.iter_mut().zip(work.steps(query)?) {
                *sum = Timed { host: sum.host + step.host, device: sum.device + step.device };
            }
        }
        Ok(sums)
    })?;
    let mut rows = Vec::new();
    for (step, name) in STEPS.into_iter().enumerate() {
        let of_step: Vec<Timed> = runs.iter().map(|run| run[step]).collect();
        rows.push(work.row(name, &Average::of(&of_step, work.queries.len())));
    }
    let ours =
        ground.average(&work.queries, |query| ground.time_on_gpu(std::slice::from_ref(&query.plan), &query.hits))?;
    rows.push(work.row("ours", &ours));
    rows.extend(traced::measure(ground, &texts(ground))?);
    Ok(findings(&ground.note(), rows))
}

/// The queries.
fn texts(ground: &Ground) -> Vec<String> {
    let wanted = if ground.is_simulated() { 3 } else { QUERIES };
    let spread = ground.work.spread_by_postings(4 * wanted);
    let texts = spread.iter().map(|&number| ground.work.texts[number].clone()).filter(|text| text.contains(' '));
    crate::query_log::spread(&texts.collect::<Vec<_>>(), wanted)
}

impl Work<'_> {
    fn prepare(ground: &Ground) -> Result<Work<'_>, BenchError> {
        let texts = texts(ground);
        let all = ground.plan(&texts, Mode::And, ground.index.documents() as usize)?;
        let best = ground.plan(&texts, Mode::And, K)?;
        let numbers: BTreeSet<u64> = all.iter().flat_map(|plan| plan.lists.iter().map(|list| list.id.0)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect();
        let packed = Coded::all(ground, CodecName::Pfor, &ground.decode(&numbers)?)?;
        let mut queries = Vec::new();
        for ((plan, best), hits) in all.iter().zip(best).zip(ground.hits(&all)?) {
            let place = |id: u64| numbers.binary_search(&id).unwrap_or_default();
            let mut lists: Vec<usize> = plan.lists.iter().map(|list| place(list.id.0)).collect();
            lists.sort_by_key(|&list| packed[list].postings());
            queries.push(Conjunction::new(ground, lists, (best, hits))?);
        }
        let shortest = |query: &Conjunction| packed[query.lists[0]].list();
        let room = queries.iter().map(|query| parallel_merge_find::scratch_bytes(shortest(query), LEVELS)).max();
        let room = room.unwrap_or(0).max(16);
        let tree = queries.iter().map(|query| query.selection().scratch_bytes(Method::Tree)).max().unwrap_or(0).max(16);
        let rooms = [ground.gpu.allocate(room)?, ground.gpu.allocate(room)?];
        Ok(Work { ground, packed, queries, rooms, tree: ground.gpu.allocate(tree)? })
    }

    /// Decodes all lists and intersects them; also says what each took.
    fn intersect(&self, query: &Conjunction) -> Result<(DeviceList, [Timed; 2]), BenchError> {
        let gpu = &self.ground.gpu;
        let decoding = self.ground.time(|| {
            query.lists.iter().try_for_each(|&list| self.packed[list].launch(DecodeKind::Documents))?;
            Ok(Landing { from: self.packed[query.lists[0]].list().documents, bytes: 4 })
        })?;
        let (mut common, mut intersecting) = (self.packed[query.lists[0]].list(), Timed::default());
        for (turn, &list) in query.lists[1..].iter().enumerate() {
            let (lists, mut found) = ([common, self.packed[list].list()], None);
            let one = self.ground.time(|| {
                let there = parallel_merge_find::gpu(gpu, STREAM, lists, LEVELS, Origins::NONE, &self.rooms[turn % 2])?;
                found = Some(there);
                Ok(Landing { from: there.count, bytes: 4 })
            })?;
            intersecting = Timed { host: intersecting.host + one.host, device: intersecting.device + one.device };
            if let Some(found) = found {
                common = found.list(gpu, STREAM)?;
            }
        }
        Ok((common, [decoding, intersecting]))
    }

    fn steps(&self, query: &Conjunction) -> Result<[Timed; 3], BenchError> {
        let (_, [decoding, intersecting]) = self.intersect(query)?;
        let gpu = &self.ground.gpu;
        let selecting = self.ground.time(|| {
            let best = query.selection().gpu(gpu, STREAM, Method::Tree, &self.tree)?;
            Ok(Landing { from: best.keys, bytes: 8 * best.count as usize })
        })?;
        Ok([decoding, intersecting, selecting])
    }

    fn check(&self, query: &Conjunction) -> Result<(), BenchError> {
        let gpu = &self.ground.gpu;
        query.lists.iter().try_for_each(|&list| self.packed[list].check(self.ground, &[DecodeKind::Documents]))?;
        let (common, _) = self.intersect(query)?;
        let found = read_numbers(gpu, STREAM, common.documents, common.length as usize)?;
        agree("an AND by Parallel Merge Find", &found, &query.expected)?;
        let best = query.selection().gpu(gpu, STREAM, Method::Tree, &self.tree)?.read(gpu, STREAM)?;
        agree("the tree", &best, &query.best)?;
        self.ground.time_on_gpu(std::slice::from_ref(&query.plan), &query.hits)?;
        Ok(())
    }

    fn row(&self, step: &str, average: &Average) -> Measurement {
        let queries = self.queries.len() as f64;
        let of_query =
            |query: &Conjunction| query.lists.iter().map(|&list| self.packed[list].postings()).sum::<usize>();
        let postings = self.queries.iter().map(of_query).sum::<usize>() as f64 / queries;
        average.note(Measurement::new("step", &[("step", step)]).with("queries", queries).with("postings", postings))
    }
}

impl Conjunction {
    /// Takes all hits, the best first.
    fn new(ground: &Ground, lists: Vec<usize>, (plan, hits): (Plan, Vec<Hit>)) -> Result<Conjunction, BenchError> {
        let mut expected: Vec<u32> = hits.iter().map(|hit| hit.document.0).collect();
        expected.sort_unstable();
        let key = |hit: &Hit| u64::from(hit.units) << 32 | u64::from(!hit.document.0);
        let mut keys: Vec<u64> = hits.iter().map(key).collect();
        let best = keys[..keys.len().min(K)].to_vec();
        keys.sort_unstable_by_key(|key| !(*key as u32));
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).chain([0; 8]).collect();
        let hits = vec![hits[..hits.len().min(K)].to_vec()];
        Ok(Conjunction { lists, expected, keys: ground.upload(&bytes)?, best, plan, hits })
    }

    fn selection(&self) -> Selection {
        Selection { keys: self.keys.address(), count: self.expected.len() as u32, k: K as u32 }
    }
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let device_us =
        |step: &str| rows.iter().find(|row| row.label("step") == step).map_or(f64::NAN, |row| row.value("device_us"));
    let sum: f64 = STEPS.map(device_us).iter().sum();
    let columns = ["step of an AND", "paper, %", "here, %", "us of kernels"];
    let mut and = Table::new("Steps of an AND on the GPU", 1, &columns);
    for (step, paper) in STEPS.into_iter().zip(AND) {
        and.row(vec![step.to_owned(), number(paper), number(device_us(step) / sum * 100.0), number(device_us(step))]);
    }
    let dash = || "–".to_owned();
    and.row(vec!["all of these".to_owned(), number(100.0), number(100.0), number(sum)]);
    and.row(vec!["ours: one kernel for all, with scoring".to_owned(), dash(), dash(), number(device_us("ours"))]);
    let (queries, postings) = rows.first().map_or((0.0, 0.0), |row| (row.value("queries"), row.value("postings")));
    and.notes = vec![
        format!(
            "{note} {} ANDs of the log, {} postings on average. The paper's steps: all lists decoded from PForDelta, then \
             intersected two by two, the shortest first, by Parallel Merge Find with three levels, then the best ten taken \
             off the tree. Times are those of the device, without the host's share; ours is the AND of our executor.",
            count(queries as u64),
            count(postings as u64)
        ),
        "Scores are not in these times: the tree gets the CPU's. The next table has whole queries.".to_owned(),
    ];
    let [whole, or] = traced::tables(&rows);
    let bars = |(step, paper): (&str, f64)| {
        let bar = |(series, value)| Bar { series, value, range: None };
        let values = [paper, device_us(step) / sum * 100.0];
        Group { label: step.to_owned(), bars: (0..).zip(values).map(bar).collect() }
    };
    let chart = Chart {
        title: "Steps of an AND on the GPU".to_owned(),
        subtitle: "percent of the device's time; scoring is in the paper's top-k alone".to_owned(),
        series: ["paper", "here"].map(str::to_owned).to_vec(),
        unit: "%".to_owned(),
        groups: STEPS.into_iter().zip(AND).map(bars).collect(),
    };
    let charts = vec![("shares".to_owned(), Picture::Bars(chart))];
    Findings { tables: vec![and, whole, or], charts, measurements: rows }
}
