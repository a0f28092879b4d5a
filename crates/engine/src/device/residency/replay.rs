//! The cache over a recorded log instead of a device: which bytes would have crossed the bus. The same code decides as
//! in `mod.rs`; every copy ends before the next batch.

use super::cache::{Cache, Keep};
use super::device_lists::range_of_piece;
use super::entry::{ListKey, SegmentNumber};
use super::report::CacheReport;
use crate::query::cost::PlanTraffic;
use crate::query::plan::Plan;
use lanner_gpu::device::Address;
use lanner_index::open::Index;

/// The only segment.
const SEGMENT: SegmentNumber = SegmentNumber(0);

/// A cache for one index.
pub struct Replay<'a> {
    index: &'a Index,
    cache: Cache,
}

impl<'a> Replay<'a> {
    /// A cache with this much memory.
    pub fn new(index: &'a Index, bytes: usize) -> Replay<'a> {
        let mut cache = Cache::new(Keep::Pieces);
        cache.add_memory(Address(1 << 40), bytes);
        Replay { index, cache }
    }

    /// The plans of a batch read their lists; then pieces are copied and evicted. Returns the bytes that cross the bus for
    /// the plans, without copies and short lists.
    pub fn run(&mut self, batch: &[Plan]) -> f64 {
        let before = self.cache.report().bytes_across_bus;
        let number = self.cache.begin_batch(batch.len());
        for plan in batch {
            let (traffic, column) = (PlanTraffic::of(plan), plan.score.column());
            for list in plan.lists.iter().filter(|list| list.span.is_long) {
                let key = ListKey { segment: SEGMENT, start: list.span.start };
                let of_list = traffic.of_list(list);
                if list.is_dense {
                    self.cache.visit_dense(key, list.span, column, &of_list, Address::NULL);
                } else {
                    self.cache.visit_sparse(key, list.span, &of_list, Address::NULL);
                }
            }
        }
        self.cache.end_batch(number);
        let segment = self.index.segment();
        while !self.cache.is_settled() {
            self.cache.decide(|key, span, most| range_of_piece(segment, key.1, span, most));
            self.cache.take_moves(usize::MAX).iter().for_each(|it| self.cache.publish(it));
        }
        self.cache.report().bytes_across_bus - before
    }

    /// What the cache did so far.
    pub fn report(&self) -> CacheReport {
        self.cache.report()
    }
}
