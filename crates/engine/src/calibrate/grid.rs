//! The plans that calibration measures, drawn from the terms of the index.
//!
//! A cell of the grid says how many terms a query has, how long the shortest list is (by powers of two), k and the
//! operation. Numbers of terms are drawn about as often as logs have them: most queries are short. All lengths are
//! drawn alike, and the other lists are as long or longer. Terms of real queries go together, and an AND of such terms
//! has more to do than one of unrelated terms; so in a third of the plans, all terms are in one document, as far as the
//! grid's terms allow it. Plans that take long are drawn less often ([`Grid::keeps`]), or they would take all the time.
//!
//! If there are queries of a log, most plans are theirs: what terms of real queries have in common decides how
//! much an algorithm can skip, and no grid has it.

use crate::algorithms::L1_WINDOW;
use crate::query::plan::{Operation, Plan};
use crate::query::planner::{PlanError, Planner};
use crate::query::{Mode, Query, QueryTerm};
use lanner_index::codec::BLOCK;
use lanner_index::format::IndexError;
use lanner_index::open::{Index, ListSpan};
use std::sync::Arc;
use std::time::Duration;

/// The seed of all draws.
const SEED: u64 = 0x1A22_E200;
/// Terms that are kept for each power of two of list sizes.
const KEPT: usize = 128;
/// The numbers of terms of a query, and how often each is drawn. In Terabyte-2005, 93 % of the queries that have a list
/// have up to five; the others are drawn more often than there, because models need some of each.
const TERMS: [(usize, usize); 12] =
    [(1, 9), (2, 14), (3, 10), (4, 7), (5, 4), (6, 3), (7, 2), (8, 2), (10, 2), (12, 1), (16, 1), (32, 1)];
/// The numbers of hits. Most queries ask for ten.
const K: [usize; 4] = [10, 10, 100, 1000];

/// In one of this many plans, all terms are in one document.
const PLANS_PER_RELATED: usize = 3;
/// If there are queries of a log, one in this many plans is drawn from the grid all the same, for queries that are not
/// like those of the log.
const PLANS_PER_GRID_PLAN: usize = 4;
/// One in this many plans is a part of a plan, so that models learn what a shorter range saves.
const PLANS_PER_PART: usize = 16;

/// Random numbers, the same in every calibration (SplitMix64).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which is at least 1.
    fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// One of some values, each as often as its weight says.
    fn weighted<T: Copy>(&mut self, from: &[(T, usize)]) -> T {
        let mut at = self.below(from.iter().map(|(_, weight)| weight).sum());
        let is_it = |&&(_, weight): &&(T, usize)| {
            let is_it = at < weight;
            at = at.wrapping_sub(weight);
            is_it
        };
        from.iter().find(is_it).expect("the sum of the weights is above the number").0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A term of the index.
#[derive(Clone, Debug)]
struct Term {
    text: String,
    span: ListSpan,
}

/// One cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub mode: Mode,
    pub k: usize,
    terms: usize,
    /// Which of the lengths of the grid's terms the shortest list has.
    length: usize,
}

/// Draws plans.
#[derive(Clone)]
pub struct Grid<'a> {
    index: &'a Index,
    /// Terms by the power of two of their lists' lengths, shortest first; none is empty.
    lengths: Arc<[Vec<Term>]>,
    /// Queries of a log.
    queries: &'a [String],
    random: Random,
}

impl<'a> Grid<'a> {
    /// Chooses the terms.
    pub fn new(index: &'a Index, queries: &'a [String]) -> Result<Grid<'a>, IndexError> {
        let mut random = Random(SEED);
        let mut lengths: Vec<Vec<Term>> = vec![Vec::new(); u32::BITS as usize];
        for term in sample_by_bytes(index, &mut random)? {
            let postings = index.summary_at(term.span)?.postings;
            lengths[postings.max(1).ilog2() as usize].push(term);
        }
        lengths.retain(|terms| !terms.is_empty());
        Ok(Grid { index, lengths: lengths.into(), queries, random })
    }

    /// The same terms, drawn in another order.
    pub fn fork(&self, number: u64) -> Grid<'a> {
        let mut random = Random(SEED ^ (number + 1));
        Grid { random: Random(random.next()), ..self.clone() }
    }

    /// Whether the index has no terms, so that there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Draws a number of hits.
    pub fn k(&mut self) -> usize {
        *self.random.pick(&K)
    }

    /// Draws a cell with an operation and a number of hits. The grid is not empty.
    pub fn cell(&mut self, operation: Operation, k: usize) -> Cell {
        let mode = match operation {
            Operation::And => Mode::And,
            Operation::Or => Mode::Or,
        };
        Cell { mode, k, terms: self.random.weighted(&TERMS), length: self.random.below(self.lengths.len()) }
    }

    /// Decides whether to measure what is predicted to take some time. What takes longer than `most` is kept so seldom
    /// that it takes no more time, in all, than if it took `most` and were always kept.
    pub fn keeps(&mut self, predicted: Duration, most: Duration) -> bool {
        let number = self.random.next() as f64 / u64::MAX as f64;
        number * predicted.as_secs_f64() <= most.as_secs_f64()
    }

    /// Draws a plan with an operation and a number of hits, from the log or from the grid. The grid is not empty.
    pub fn single(&mut self, operation: Operation, k: usize) -> Result<Plan, PlanError> {
        let cell = self.cell(operation, k);
        if !self.queries.is_empty() && self.random.below(PLANS_PER_GRID_PLAN) > 0 {
            let query = Query::new(self.random.pick(self.queries).as_str()).mode(cell.mode).k(k);
            let plan = Planner::new(self.index).plan(&query)?;
            // A query without a list takes no time.
            if !plan.stages.is_empty() {
                return Ok(self.maybe_part_of(plan));
            }
        }
        self.plan(cell)
    }

    /// Draws a plan of a cell.
    pub fn plan(&mut self, cell: Cell) -> Result<Plan, PlanError> {
        let query = Query::new("").mode(cell.mode).k(cell.k);
        let terms = self.terms(cell)?;
        let terms = terms.into_iter().map(|Term { text, .. }| QueryTerm { term: text, weight: 1.0 }).collect();
        let plan = Planner::new(self.index).plan_terms(&query, terms)?;
        Ok(self.maybe_part_of(plan))
    }

    /// Now and then a part of a plan, else the whole.
    fn maybe_part_of(&mut self, plan: Plan) -> Plan {
        match self.random.below(PLANS_PER_PART) {
            0 => self.part_of(&plan),
            _ => plan,
        }
    }

    /// A half, a quarter or an eighth of a plan, somewhere in the collection.
    fn part_of(&mut self, plan: &Plan) -> Plan {
        let length = (plan.documents >> (1 + self.random.below(3))).next_multiple_of(L1_WINDOW as u32);
        let start = self.random.below(plan.documents as usize + 1) / L1_WINDOW * L1_WINDOW;
        let start = (start as u32).min(plan.documents.saturating_sub(length));
        plan.over(start..start.saturating_add(length))
    }

    fn terms(&mut self, cell: Cell) -> Result<Vec<Term>, IndexError> {
        let driver = self.random.pick(&self.lengths[cell.length]).clone();
        let related = match cell.terms > 1 && self.random.below(PLANS_PER_RELATED) == 0 {
            true => self.related(&driver, cell.length)?,
            false => Vec::new(),
        };
        let related: Vec<&[Term]> = related.iter().map(Vec::as_slice).filter(|terms| !terms.is_empty()).collect();
        let mut terms = vec![driver];
        // The grid's terms may be too few.
        for _ in 0..4 * cell.terms {
            if terms.len() == cell.terms {
                break;
            }
            let term = match related.is_empty() {
                true => {
                    let length = cell.length + self.random.below(self.lengths.len() - cell.length);
                    self.random.pick(&self.lengths[length])
                }
                false => {
                    let length = *self.random.pick(&related);
                    self.random.pick(length)
                }
            };
            if terms.iter().all(|known| known.text != term.text) {
                terms.push(term.clone());
            }
        }
        Ok(terms)
    }

    /// The grid's terms in one document of a list, by length, from a length on.
    fn related(&mut self, driver: &Term, from: usize) -> Result<Vec<Vec<Term>>, IndexError> {
        let list = self.index.list_at(driver.span)?;
        let mut documents = [0; BLOCK];
        let count = list.decode_documents(self.random.below(list.blocks().max(1)), &mut documents);
        if count == 0 {
            return Ok(Vec::new());
        }
        let document = *self.random.pick(&documents[..count]);
        let mut related = Vec::new();
        for terms in &self.lengths[from..] {
            let mut kept = Vec::new();
            for term in terms {
                if has(self.index, term.span, document)? {
                    kept.push(term.clone());
                }
            }
            related.push(kept);
        }
        Ok(related)
    }
}

/// Whether a list has a document.
fn has(index: &Index, span: ListSpan, document: u32) -> Result<bool, IndexError> {
    let list = index.list_at(span)?;
    let block = list.find_block(0, document);
    if block >= list.blocks() {
        return Ok(false);
    }
    let mut documents = [0; BLOCK];
    let count = list.decode_documents(block, &mut documents);
    Ok(documents[..count].contains(&document))
}

/// Some terms for each power of two of list sizes in bytes; lists are not read.
fn sample_by_bytes(index: &Index, random: &mut Random) -> Result<Vec<Term>, IndexError> {
    let mut kept: Vec<(usize, Vec<Term>)> = vec![(0, Vec::new()); usize::BITS as usize];
    let mut terms = index.segment().terms();
    while let Some((number, text)) = terms.read()? {
        let Some(span) = index.segment().span(number) else {
            continue;
        };
        let (seen, terms) = &mut kept[span.bytes().max(1).ilog2() as usize];
        *seen += 1;
        let term = || Term { text: text.to_owned(), span };
        if terms.len() < KEPT {
            terms.push(term());
        } else if let at = random.below(*seen)
            && at < KEPT
        {
            terms[at] = term();
        }
    }
    Ok(kept.into_iter().flat_map(|(_, terms)| terms).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::tests::index_of;

    #[test]
    fn three_quarters_of_the_plans_are_queries_of_a_log_if_there_is_one() {
        let (_folder, index) = index_of(600);
        // Words that the index has, and a query that it has no list for.
        let queries = ["word3 word50 word51 word52 word53 word54 word55 word56 word57", "absent"].map(str::to_owned);
        let words: Vec<&str> = queries[0].split(' ').collect();
        let of_log = |queries: &[String]| {
            let mut grid = Grid::new(&index, queries).unwrap().fork(1);
            let plans = (0..2000).map(|_| grid.single(Operation::Or, 10).unwrap());
            // The grid hardly ever draws these nine together.
            let is_query =
                |plan: &Plan| plan.lists.len() == 9 && plan.lists.iter().all(|list| words.contains(&&*list.term));
            plans.filter(is_query).count()
        };
        assert_eq!(of_log(&[]), 0);
        assert!((1400..1600).contains(&of_log(&queries[..1])), "{}", of_log(&queries[..1]));
        assert!((650..850).contains(&of_log(&queries)), "{}", of_log(&queries));
    }

    #[test]
    fn plans_are_those_of_their_cells_and_the_same_each_time() {
        let (_folder, index) = index_of(600);
        let draw = || {
            let mut grid = Grid::new(&index, &[]).unwrap().fork(7);
            let cell = |number: usize| grid.cell([Operation::And, Operation::Or][number % 2], K[number % K.len()]);
            let cells: Vec<Cell> = (0..200).map(cell).collect();
            let plans = cells.iter().map(|&cell| (cell, grid.plan(cell).unwrap()));
            plans.collect::<Vec<_>>()
        };
        let plans = draw();
        assert!(plans.iter().zip(&draw()).all(|(one, other)| one.1.to_string() == other.1.to_string()));
        for (cell, plan) in &plans {
            let shortest = plan.lists.iter().map(|list| list.postings).min().unwrap();
            let lengths = &Grid::new(&index, &[]).unwrap().lengths;
            let driver = &lengths[cell.length][0];
            let driver = index.summary_at(driver.span).unwrap().postings;
            assert_eq!(shortest.ilog2(), driver.ilog2(), "{cell:?}\n{plan}");
            assert!(plan.lists.len() <= cell.terms && plan.missing.is_empty(), "{cell:?}\n{plan}");
            assert_eq!((plan.k, plan.mode), (cell.k, cell.mode));
        }
        assert!(plans.iter().any(|(cell, plan)| plan.lists.len() == cell.terms && cell.terms > 4));
    }

    #[test]
    fn related_terms_share_a_document() {
        let (_folder, index) = index_of(600);
        let mut grid = Grid::new(&index, &[]).unwrap();
        let driver = grid.lengths[0][0].clone();
        let related = grid.related(&driver, 0).unwrap().concat();
        let documents = |term: &Term| {
            let list = index.list_at(term.span).unwrap();
            let mut documents = [0; BLOCK];
            (0..list.blocks())
                .flat_map(|block| {
                    let count = list.decode_documents(block, &mut documents);
                    documents[..count].to_vec()
                })
                .collect::<Vec<u32>>()
        };
        let shared = related
            .iter()
            .map(documents)
            .reduce(|one, other| one.into_iter().filter(|document| other.contains(document)).collect());
        assert!(shared.is_some_and(|shared| !shared.is_empty()) && related.len() > 1, "{related:?}");
    }

    #[test]
    fn threads_draw_different_plans_from_the_same_terms() {
        let (_folder, index) = index_of(600);
        let grid = Grid::new(&index, &[]).unwrap();
        let draw = |number: u64| {
            let mut grid = grid.fork(number);
            (0..20).map(|_| grid.cell(Operation::Or, 10)).collect::<Vec<_>>()
        };
        assert_ne!(draw(0), draw(1));
        assert!(Arc::ptr_eq(&grid.fork(0).lengths, &grid.lengths));
    }

    #[test]
    fn short_queries_are_drawn_most_often_and_long_ones_too() {
        let (_folder, index) = index_of(600);
        let mut grid = Grid::new(&index, &[]).unwrap();
        let mut drawn = [0; 33];
        (0..8000).for_each(|_| drawn[grid.cell(Operation::And, 10).terms] += 1);
        let weights: usize = TERMS.iter().map(|(_, weight)| weight).sum();
        for (terms, weight) in TERMS {
            let expected = 8000 * weight / weights;
            assert!((expected / 2..2 * expected).contains(&drawn[terms]), "{terms} terms: {drawn:?}");
        }
    }

    #[test]
    fn what_takes_four_times_the_limit_is_kept_once_in_four_times() {
        let (_folder, index) = index_of(0);
        let mut grid = Grid::new(&index, &[]).unwrap();
        let most = Duration::from_millis(1);
        let mut kept = |predicted: Duration| (0..4000).filter(|_| grid.keeps(predicted, most)).count();
        assert_eq!([kept(Duration::ZERO), kept(most)], [4000, 4000]);
        assert!((900..1100).contains(&kept(4 * most)));
    }

    #[test]
    fn the_grid_of_an_empty_index_is_empty() {
        let (_folder, index) = index_of(0);
        assert!(Grid::new(&index, &[]).unwrap().is_empty());
    }
}
