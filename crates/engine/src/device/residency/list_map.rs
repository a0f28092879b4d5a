//! Which pieces of lists are resident, as the threads that plan see it: a hint for predicted costs, never for answers.

use super::piece::Piece;
use crate::query::cost::{PlanTraffic, Traffic};
use crate::query::plan::{Plan, PlannedList};
use lanner_index::open::{Column, ListSpan};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Lists that begin in the same bytes of the file share a number: those are so short that it matters little.
const GRANULE: usize = 1024;

/// A bit for each piece of a list.
#[derive(Debug, Default)]
pub struct ListMap {
    /// Whether pieces are cached; if not, either all lists are resident or none is.
    is_partial: AtomicBool,
    /// By where lists begin; made when the first piece is resident.
    granules: OnceLock<Box<[AtomicU8]>>,
    bytes: usize,
}

impl ListMap {
    /// For an index whose long lists have this many bytes.
    pub fn new(bytes: usize) -> ListMap {
        ListMap { bytes, ..ListMap::default() }
    }

    pub fn set_partial(&self, is_partial: bool) {
        self.is_partial.store(is_partial, Ordering::Relaxed);
    }

    /// Whether pieces are cached.
    pub fn is_partial(&self) -> bool {
        self.is_partial.load(Ordering::Relaxed)
    }

    /// Notes whether a piece of the list that begins at a byte is resident.
    pub fn set(&self, start: usize, piece: Piece, is_resident: bool) {
        let granules = self.granules.get_or_init(|| (0..self.bytes / GRANULE + 1).map(|_| AtomicU8::new(0)).collect());
        if let Some(granule) = granules.get(start / GRANULE) {
            match is_resident {
                true => granule.fetch_or(bit(piece), Ordering::Relaxed),
                false => granule.fetch_and(!bit(piece), Ordering::Relaxed),
            };
        }
    }

    /// Notes that nothing is resident.
    pub fn clear(&self) {
        let granules = self.granules.get().into_iter().flatten();
        granules.for_each(|granule| granule.store(0, Ordering::Relaxed));
    }

    /// The share of what a plan is predicted to read that lies in host memory, by what it costs to read it there. Lists that
    /// have to be uploaded lie there as a whole, unless nothing is read of them there.
    pub fn missing_share(&self, plan: &Plan, uploads: impl Fn(ListSpan) -> bool) -> f64 {
        let is_partial = self.is_partial();
        if !is_partial && !plan.lists.iter().any(|list| uploads(list.span)) {
            return 0.0;
        }
        let (traffic, column) = (PlanTraffic::of(plan), plan.score.column());
        let (mut missing, mut all) = (0.0, 0.0);
        for list in plan.lists.iter() {
            let of_list = traffic.of_list(list);
            let cost = of_list.cost(column);
            let uncached = if is_partial { self.missing(list, column, &of_list) } else { cost };
            all += cost;
            missing += match uploads(list.span) {
                true if uncached > 0.0 => cost,
                false if is_partial => uncached,
                _ => 0.0,
            };
        }
        f64::from(if all > 0.0 { missing / all } else { 0.0 })
    }

    /// What is read of a list in host memory.
    fn missing(&self, list: &PlannedList, column: Column, traffic: &Traffic) -> f32 {
        let granule = self.granules.get().filter(|_| list.span.is_long);
        let bits = granule.and_then(|granules| granules.get(list.span.start / GRANULE));
        let bits = bits.map_or(0, |bits| bits.load(Ordering::Relaxed));
        let absent = |piece: Piece, bytes: f32| if bits & bit(piece) == 0 { bytes * piece.cost() } else { 0.0 };
        match list.is_dense {
            false => absent(Piece::Directory, traffic.directory) + absent(Piece::Blocks, traffic.blocks),
            true => {
                absent(Piece::bounds(column), traffic.bounds)
                    + absent(Piece::Words, traffic.words)
                    + absent(Piece::Ranks, traffic.ranks)
                    + absent(Piece::values(column), traffic.values)
            }
        }
    }
}

impl Traffic {
    /// What it costs to read all of it in host memory.
    fn cost(&self, column: Column) -> f32 {
        let Traffic { directory, blocks, bounds, words, ranks, values } = *self;
        directory * Piece::Directory.cost()
            + blocks * Piece::Blocks.cost()
            + bounds * Piece::bounds(column).cost()
            + words * Piece::Words.cost()
            + ranks * Piece::Ranks.cost()
            + values * Piece::values(column).cost()
    }
}

/// Pieces of sparse and of dense lists have the same bits.
fn bit(piece: Piece) -> u8 {
    let number = piece as usize;
    1 << if number < Piece::SPARSE { number } else { number - Piece::SPARSE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::tests::plan_of_lists;

    #[test]
    fn a_plan_misses_what_is_not_resident_of_its_lists() {
        let plan = plan_of_lists(&[12_800, 12_800]);
        let place = |(number, list): (usize, &PlannedList)| {
            let start = number * 100 * GRANULE;
            PlannedList { span: ListSpan { is_long: true, start, end: start + 25_600 }, ..list.clone() }
        };
        let plan = Plan { lists: plan.lists.iter().enumerate().map(place).collect(), ..plan };
        let map = ListMap::new(1 << 20);
        assert_eq!(map.missing_share(&plan, |_| false), 0.0, "nothing is said to be cached");
        map.set_partial(true);
        assert_eq!(map.missing_share(&plan, |_| false), 1.0);
        map.set(0, Piece::Directory, true);
        map.set(0, Piece::Blocks, true);
        assert!((map.missing_share(&plan, |_| false) - 0.5).abs() < 1e-6);
        map.set(100 * GRANULE, Piece::Blocks, true);
        assert!((0.02..0.2).contains(&map.missing_share(&plan, |_| false)), "a directory");
        map.set(0, Piece::Blocks, false);
        assert!((0.45..0.6).contains(&map.missing_share(&plan, |_| false)));
        map.set(usize::MAX, Piece::Blocks, true);
        // One list has to be uploaded, of which a directory is cached; then all of both.
        let uploads_second = |span: ListSpan| span.start > 0;
        map.set(0, Piece::Blocks, true);
        assert!((map.missing_share(&plan, uploads_second) - 0.5).abs() < 1e-6);
        map.set(100 * GRANULE, Piece::Directory, true);
        assert_eq!(map.missing_share(&plan, uploads_second), 0.0, "all of it is cached");
        map.set_partial(false);
        assert!((map.missing_share(&plan, uploads_second) - 0.5).abs() < 1e-6, "the other one is resident");
        map.set_partial(true);
        map.clear();
        assert_eq!(map.missing_share(&plan, |_| false), 1.0);
    }
}
