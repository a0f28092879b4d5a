//! Recursive graph bisection: an order in which documents with common terms are close, so that gaps are small.
//!
//! Dhulipala, Kabiljo, Karrer, Ottaviano, Pupyrev, Shalita: Compressing Graphs and Indexes with Recursive Graph
//! Bisection (KDD 2016); Mackenzie, Mallia, Petri, Culpepper, Suel: Compressing Inverted Indexes with Recursive Graph
//! Bisection (ECIR 2019); Mackenzie, Petri, Moffat: Faster Index Reordering with Bipartite Graph Partitioning (SIGIR
//! 2021).
//!
//! The documents are split into two halves such that the lists, cut at the middle, cost as little as possible; then
//! each half is split, down to a few documents. The part of a list with d of the n documents of a half costs about d ·
//! log2(n / (d + 1)) bits. The halves have equal sizes, so n does not matter, and the cost falls as the sum of f(d) = d
//! · log2(d + 1) grows. A document that moves from a part with l other documents to one with r saves g(r) - g(l) bits,
//! where g(d) = f(d + 1) - f(d).
//!
//! The *gain* of a document from being on the right is the sum of g(r) - g(l) over its terms, not counting itself. In
//! each round the half of the documents with the largest gains goes right. This gives the same halves as swapping
//! pairs, best first, as long as a pair gains, but takes one selection instead of two sorts. All gains are computed
//! before any document moves, so two similar documents in different halves could swap forever. A document therefore
//! resists a move, a little more in each round (the cooling of the last paper).
//!
//! Gains are integers, so that neither the order of additions nor the number of threads changes the result.

use super::graph::Graph;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// A part of up to this many documents is not split; its documents stay in the order of the input.
const LEAF_DOCUMENTS: usize = 32;
const MAX_ROUNDS: usize = 20;
/// The rounds end when at most one in this many documents moves.
const SETTLED_SHARE: usize = 1000;
/// Fractional bits of a gain.
const FRACTION_BITS: u32 = 16;
/// The least gain of a move in the first round, and how much it grows with each round.
const RESISTANCE: i64 = 1 << FRACTION_BITS;
const RESISTANCE_GROWTH: i64 = RESISTANCE / 10;
/// Gains below this degree come from a table, the others are computed.
const TABLE_DEGREES: u32 = 1 << 14;
/// A graph of up to this many documents is finished by one worker.
const SMALL_DOCUMENTS: usize = 2048;
/// A graph of fewer edges is split by one thread.
const SHARED_EDGES: usize = 1 << 17;

/// Orders the documents of a graph: position `i` of the new order has document `order[i]`.
///
/// `report` is called with the work done and the total, by one thread at a time.
pub fn order(graph: Graph, threads: usize, report: &(dyn Fn(u64, u64) + Sync)) -> Vec<u32> {
    let count = graph.documents().len();
    let mut order = vec![0; count];
    let work = Work { report: Mutex::new(report), done: AtomicU64::new(0), levels: levels(count), documents: count };
    let bisection = Bisection { gains: Gains::new(count as u32), work };
    let mut tasks = vec![Task { graph, order: &mut order, level: 0 }];
    // A few large graphs are split by several threads each, many small ones in parallel.
    while tasks.len() < 8 * threads && tasks.iter().any(|task| task.order.len() > SMALL_DOCUMENTS) {
        let each = (threads / tasks.len()).max(1);
        let halves = Mutex::new(Vec::with_capacity(2 * tasks.len()));
        run_tasks(tasks, threads, |task, scratch| {
            let both = bisection.halve(task, each, scratch);
            bisection.work.tell();
            halves.lock().unwrap_or_else(PoisonError::into_inner).extend(both.into_iter().flatten());
        });
        tasks = halves.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    run_tasks(tasks, threads, |task, scratch| {
        bisection.finish(task, scratch);
        bisection.work.tell();
    });
    order
}

/// How many times `documents` documents are halved.
fn levels(documents: usize) -> u64 {
    let mut levels = 0;
    while documents.div_ceil(1 << levels) > LEAF_DOCUMENTS {
        levels += 1;
    }
    levels
}

/// Runs the tasks on up to `threads` workers. Each worker has its own scratch buffers and takes the next task when it
/// has finished one.
fn run_tasks<'a>(tasks: Vec<Task<'a>>, threads: usize, run: impl Fn(Task<'a>, &mut Scratch) + Sync) {
    let workers = threads.min(tasks.len());
    let tasks = Mutex::new(tasks.into_iter());
    let next = || tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
    on_threads(0..workers, |_| {
        let mut scratch = Scratch::default();
        while let Some(task) = next() {
            run(task, &mut scratch);
        }
    });
}

/// Calls `work` with each item, on as many threads as there are items or as the system starts, this one among them, and
/// returns the results in order.
// Not a `Pipeline`, which pulls many items from a source: here every thread has about one item.
fn on_threads<T, R: Send>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = items.into_iter();
    let (others, items) = (items.len().saturating_sub(1), Mutex::new(items.enumerate()));
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let results = Mutex::new(Vec::with_capacity(others + 1));
    let work = || {
        while let Some((number, item)) = next() {
            let result = work(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A graph whose documents are to be ordered, and the part of the order that they fill.
struct Task<'a> {
    graph: Graph,
    order: &'a mut [u32],
    level: u64,
}

/// The progress: on every level, all documents are work.
struct Work<'a> {
    report: Mutex<&'a (dyn Fn(u64, u64) + Sync)>,
    done: AtomicU64,
    levels: u64,
    documents: usize,
}

impl Work<'_> {
    fn add(&self, documents: usize, levels: u64) {
        self.done.fetch_add(documents as u64 * levels, Ordering::Relaxed);
    }

    fn tell(&self) {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report(self.done.load(Ordering::Relaxed), self.documents as u64 * self.levels);
    }
}

/// The bits saved by a document that joins a part with `degree` others.
struct Gains {
    table: Vec<i32>,
}

impl Gains {
    fn new(documents: u32) -> Gains {
        Gains { table: (0..TABLE_DEGREES.min(documents + 1)).map(Gains::compute).collect() }
    }

    fn compute(degree: u32) -> i32 {
        let degree = f64::from(degree);
        let gain = (degree + 1.0) * libm::log2(degree + 2.0) - degree * libm::log2(degree + 1.0);
        (gain * f64::from(1u32 << FRACTION_BITS)).round_ties_even() as i32
    }

    #[inline]
    fn of(&self, degree: u32) -> i32 {
        self.table.get(degree as usize).copied().unwrap_or_else(|| Gains::compute(degree))
    }
}

/// The buffers of a worker, reused for each graph.
#[derive(Default)]
struct Scratch {
    /// `is_right[position]`: whether the document is in the right half.
    is_right: Vec<bool>,
    /// `left_degrees[term]`: the number of documents in the left half with the term.
    left_degrees: Vec<u32>,
    /// `term_gains[side][term]`: what the term adds to the gain of a document on that side.
    term_gains: [Vec<i32>; 2],
    /// The gain of each document, with its position to break ties: see `key_of`.
    keys: Vec<u64>,
    /// The same keys, partitioned by the selection.
    selected: Vec<u64>,
}

struct Bisection<'a> {
    gains: Gains,
    work: Work<'a>,
}

impl Bisection<'_> {
    /// Splits a graph once; of a leaf, only fills the order.
    fn halve<'a>(&self, task: Task<'a>, threads: usize, scratch: &mut Scratch) -> Option<[Task<'a>; 2]> {
        let Task { graph, order, level } = task;
        if graph.documents().len() <= LEAF_DOCUMENTS || graph.edges() == 0 {
            self.work.add(order.len(), self.work.levels - level);
            order.copy_from_slice(graph.documents());
            return None;
        }
        self.work.add(order.len(), 1);
        let (left, right) = self.divide(graph, threads, scratch);
        let (left_order, right_order) = order.split_at_mut(left.documents().len());
        let half = |graph, order| Task { graph, order, level: level + 1 };
        Some([half(left, left_order), half(right, right_order)])
    }

    /// Splits a graph down to the leaves.
    fn finish(&self, task: Task<'_>, scratch: &mut Scratch) {
        for half in self.halve(task, 1, scratch).into_iter().flatten() {
            self.finish(half, scratch);
        }
    }

    /// Splits a graph into two halves: first in the order of the input, then improved round by round.
    fn divide(&self, graph: Graph, threads: usize, scratch: &mut Scratch) -> (Graph, Graph) {
        let threads = if graph.edges() < SHARED_EDGES { 1 } else { threads };
        let count = graph.documents().len();
        let left_count = count.div_ceil(2);
        scratch.start(&graph);
        scratch.move_documents(&graph, threads, |position| position >= left_count);
        for round in 0..MAX_ROUNDS {
            scratch.weigh_terms(&graph, &self.gains);
            scratch.weigh_documents(&graph, threads, RESISTANCE + RESISTANCE_GROWTH * round as i64);
            let last_on_left = scratch.last_on_left(left_count);
            let keys = std::mem::take(&mut scratch.keys);
            let moved = scratch.move_documents(&graph, threads, |position| keys[position] > last_on_left);
            scratch.keys = keys;
            if moved * SETTLED_SHARE <= count {
                break;
            }
        }
        graph.split(&scratch.is_right, &scratch.left_degrees)
    }
}

/// A key that sorts by gain, then by position: the gain in the upper 32 bits, the position in the lower.
#[inline]
fn key_of(gain: i64, position: usize) -> u64 {
    let gain = gain.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    u64::from(gain as u32 ^ 1 << 31) << 32 | position as u64
}

impl Scratch {
    /// Starts with all documents on the right.
    fn start(&mut self, graph: &Graph) {
        self.is_right.clear();
        self.is_right.resize(graph.documents().len(), true);
        self.left_degrees.clear();
        self.left_degrees.resize(graph.degrees().len(), 0);
    }

    fn weigh_terms(&mut self, graph: &Graph, gains: &Gains) {
        let [of_left, of_right] = &mut self.term_gains;
        of_left.clear();
        of_right.clear();
        for (&all, &left) in graph.degrees().iter().zip(&self.left_degrees) {
            let right = all - left;
            of_left.push(gains.of(right) - gains.of(left.saturating_sub(1)));
            of_right.push(gains.of(right.saturating_sub(1)) - gains.of(left));
        }
    }

    /// Computes the key of each document. The resistance adds to its gain on the side where it is.
    fn weigh_documents(&mut self, graph: &Graph, threads: usize, resistance: i64) {
        self.keys.resize(self.is_right.len(), 0);
        let (is_right, term_gains) = (&self.is_right, &self.term_gains);
        let share = self.keys.len().div_ceil(threads);
        on_threads(self.keys.chunks_mut(share).enumerate(), |(number, keys)| {
            let first = number * share;
            for (position, (key, row)) in (first..).zip(keys.iter_mut().zip(graph.rows(first))) {
                let right = is_right[position];
                let gains = &term_gains[usize::from(right)];
                let gain: i64 = row.iter().map(|&term| i64::from(gains[term as usize])).sum();
                *key = key_of(gain + if right { resistance } else { -resistance }, position);
            }
        });
    }

    /// The largest of the `left_count` smallest keys.
    fn last_on_left(&mut self, left_count: usize) -> u64 {
        self.selected.clear();
        self.selected.extend_from_slice(&self.keys);
        *self.selected.select_nth_unstable(left_count - 1).1
    }

    /// Moves each document to its side; returns how many moved.
    fn move_documents(&mut self, graph: &Graph, threads: usize, goes_right: impl Fn(usize) -> bool + Sync) -> usize {
        let is_right = &self.is_right;
        let count_moves = |first: usize, is_right: &[bool], left_degrees: &mut [u32]| {
            for (position, (&right, row)) in (first..).zip(is_right.iter().zip(graph.rows(first))) {
                if goes_right(position) != right {
                    change_degrees(left_degrees, row, goes_right(position));
                }
            }
        };
        if threads == 1 {
            count_moves(0, is_right, &mut self.left_degrees);
        } else {
            let share = is_right.len().div_ceil(threads);
            let changes = on_threads(is_right.chunks(share).enumerate(), |(number, is_right)| {
                let mut changes = vec![0; graph.degrees().len()];
                count_moves(number * share, is_right, &mut changes);
                changes
            });
            for changes in changes {
                let both = self.left_degrees.iter_mut().zip(changes);
                both.for_each(|(degree, change)| *degree = degree.wrapping_add(change));
            }
        }
        let mut moved = 0;
        for (position, right) in self.is_right.iter_mut().enumerate() {
            let new = goes_right(position);
            moved += usize::from(*right != new);
            *right = new;
        }
        moved
    }
}

/// Updates the degrees of the left half for a document that leaves or joins it. Changes wrap around, so that those of
/// several threads can be added.
fn change_degrees(left_degrees: &mut [u32], row: &[u32], goes_right: bool) {
    let change = if goes_right { u32::MAX } else { 1 };
    for &term in row {
        let degree = &mut left_degrees[term as usize];
        *degree = degree.wrapping_add(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows of terms below `terms`, without repetition.
    fn graph(rows: &[Vec<u32>], terms: u32) -> Graph {
        let mut degrees = vec![0; terms as usize];
        let mut ends = Vec::new();
        for row in rows {
            row.iter().for_each(|&term| degrees[term as usize] += 1);
            ends.push(ends.last().unwrap_or(&0) + row.len());
        }
        Graph::new(ends, rows.concat(), degrees)
    }

    fn order_of(rows: &[Vec<u32>], terms: u32, threads: usize) -> Vec<u32> {
        order(graph(rows, terms), threads, &|_, _| {})
    }

    /// The sum of log2(gap) over all lists.
    fn cost(rows: &[Vec<u32>], order: &[u32]) -> f64 {
        let mut last = std::collections::HashMap::new();
        let mut cost = 0.0;
        for (position, &document) in (1..).zip(order) {
            for &term in &rows[document as usize] {
                cost += f64::from(position - last.insert(term, position).unwrap_or(0)).log2();
            }
        }
        cost
    }

    fn given(rows: &[Vec<u32>]) -> Vec<u32> {
        (0..rows.len() as u32).collect()
    }

    /// Documents about topics: each topic has terms of its own beside common ones.
    fn topics(documents: u32, topics: u32, topic_of: impl Fn(u32) -> u32) -> (Vec<Vec<u32>>, u32) {
        let mut state = 0x2545_F491u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let row = |document| {
            let own = 100 + 60 * topic_of(document);
            let mut row: Vec<u32> = (0..20).map(|i| if i % 4 == 0 { draw(100) } else { own + draw(60) }).collect();
            row.sort_unstable();
            row.dedup();
            row
        };
        ((0..documents).map(row).collect(), 100 + 60 * topics)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_order_is_a_permutation_whatever_the_graph(
            sets in prop::collection::vec(prop::collection::btree_set(0u32..50, 0..12), 0..400),
            threads in 1usize..5,
        ) {
            let rows: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let mut order = order_of(&rows, 50, threads);
            order.sort_unstable();
            prop_assert_eq!(order, given(&rows));
        }
    }

    #[test]
    fn a_shuffled_collection_finds_its_topics_again() {
        let (rows, terms) = topics(4096, 64, |document| document.wrapping_mul(2_654_435_761) >> 26);
        let (before, after) = (cost(&rows, &given(&rows)), cost(&rows, &order_of(&rows, terms, 1)));
        assert!(after < 0.65 * before, "{before} before, {after} after");
    }

    #[test]
    fn a_good_order_is_not_made_worse() {
        let (rows, terms) = topics(4096, 64, |document| document / 64);
        let (before, after) = (cost(&rows, &given(&rows)), cost(&rows, &order_of(&rows, terms, 1)));
        assert!(after <= before, "{before} before, {after} after");
    }

    #[test]
    fn the_order_is_the_same_for_any_number_of_threads() {
        let (rows, terms) = topics(20_000, 100, |document| document.wrapping_mul(2_654_435_761) % 100);
        assert!(rows.iter().map(Vec::len).sum::<usize>() > SHARED_EDGES, "enough to be divided by several threads");
        let one = order_of(&rows, terms, 1);
        for threads in [2, 3, 7] {
            assert!(order_of(&rows, terms, threads) == one, "{threads} threads");
        }
    }

    #[test]
    fn all_work_is_reported() {
        for documents in [0, 5, 33, 1000, 9001] {
            let (rows, terms) = topics(documents, 10, |document| document % 10);
            let told = Mutex::new(vec![(0, 0)]);
            order(graph(&rows, terms), 2, &|done, total| told.lock().unwrap().push((done, total)));
            let told = told.into_inner().unwrap();
            assert!(told.is_sorted());
            assert_eq!(
                told.last(),
                Some(&(
                    u64::from(documents) * levels(documents as usize),
                    u64::from(documents) * levels(documents as usize)
                ))
            );
        }
    }

    #[test]
    fn gains_are_those_of_the_cost_and_grow_with_the_degree() {
        let saved = |degree: f64| degree * (degree + 1.0).log2();
        let gains = Gains::new(u32::MAX - 1);
        for degree in [0, 1, 2, 77, TABLE_DEGREES - 1, TABLE_DEGREES, 1_000_000] {
            let expected = saved(f64::from(degree) + 1.0) - saved(f64::from(degree));
            assert!((f64::from(gains.of(degree)) / 65536.0 - expected).abs() < 1e-4, "{degree}");
        }
        assert!((0..20_000).is_sorted_by_key(|degree| gains.of(degree)));
    }
}
