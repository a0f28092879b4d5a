//! OR, document at a time, by MaxScore: Turtle and Flood, *Query evaluation: strategies and optimizations* (1995).
//!
//! Lists are sorted by their bounds. Those with the lowest bounds are not *essential* as long as their bounds together
//! stay below the threshold: a document that occurs only in them cannot enter. So only essential lists propose
//! documents; the others are looked up, highest bound first, as long as the document can still enter. As the threshold
//! rises, more lists become non-essential. `block_max_maxscore` adds the bounds of blocks.
//!
//! The threshold is `TopK::threshold_in_order`: documents come in order, so with k hits only a score above the worst
//! enters; before that, a score equal to the seed does.

use super::cursor::{Cursor, END};
use super::weigher::Weigher;
use super::{Task, work_of};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use lanner_index::DocId;

/// Answers an OR.
pub fn cpu<W: Weigher>(task: &Task<'_>, cursors: Vec<Cursor<'_, W>>, top: &mut TopK) -> Work {
    run::<W, false>(task, cursors, top)
}

/// Answers an OR, with the bounds of blocks or without.
pub(super) fn run<W: Weigher, const BLOCK_BOUNDS: bool>(
    task: &Task<'_>,
    cursors: Vec<Cursor<'_, W>>,
    top: &mut TopK,
) -> Work {
    let mut lists = Lists::<W, BLOCK_BOUNDS>::new(cursors, task.plan.static_bound);
    let mut documents_scored = 0;
    lists.set_threshold(top.threshold_in_order());
    loop {
        let candidate = lists.next_candidate();
        if candidate == END {
            return work_of(&lists.cursors, documents_scored);
        }
        if !task.passes(candidate) {
            lists.pass(candidate);
            continue;
        }
        let score = task.static_part(candidate).wrapping_add(lists.take_essential(candidate));
        let Some(score) = lists.look_up_others(candidate, score) else {
            continue;
        };
        documents_scored += 1;
        if top.push(DocId(candidate), score) {
            lists.set_threshold(top.threshold_in_order());
        }
    }
}

/// The lists, lowest bound first, divided into those that are looked up and those that propose documents.
struct Lists<'a, W, const BLOCK_BOUNDS: bool> {
    cursors: Vec<Cursor<'a, W>>,
    /// `heads[i]`: the document of cursor i, in one array for speed; only maintained for essential lists.
    heads: Vec<u32>,
    /// `reach[i]`: the most that lists 0..i can add together.
    reach: Vec<u32>,
    /// The most that the static rank can add.
    static_bound: u32,
    /// The first essential list; all after it are essential too.
    essential: usize,
    /// The least score that can enter.
    threshold: u32,
}

impl<'a, W: Weigher, const BLOCK_BOUNDS: bool> Lists<'a, W, BLOCK_BOUNDS> {
    fn new(mut cursors: Vec<Cursor<'a, W>>, static_bound: u32) -> Self {
        cursors.sort_by_key(Cursor::bound);
        let heads = cursors.iter().map(Cursor::document).collect();
        let mut reach = vec![0u32];
        for cursor in &cursors {
            reach.push(reach[reach.len() - 1].saturating_add(cursor.bound()));
        }
        Lists { cursors, heads, reach, static_bound, essential: 0, threshold: 0 }
    }

    /// Sets a new threshold, which is not below the one before.
    fn set_threshold(&mut self, threshold: u32) {
        self.threshold = threshold;
        let is_needed = |reach: &u32| reach.saturating_add(self.static_bound) >= threshold;
        let lookups = self.reach[1..].iter().position(is_needed);
        self.essential = lookups.unwrap_or(self.cursors.len());
    }

    /// Returns the smallest document that an essential list proposes.
    #[inline]
    fn next_candidate(&mut self) -> u32 {
        let last = self.cursors.len().wrapping_sub(1);
        if BLOCK_BOUNDS && self.essential == last {
            let others = self.reach[last].saturating_add(self.static_bound);
            self.heads[last] = self.cursors[last].skip_light_blocks(self.threshold.saturating_sub(others));
            return self.heads[last];
        }
        self.heads[self.essential..].iter().copied().min().unwrap_or(END)
    }

    /// Moves the essential lists past the candidate.
    fn pass(&mut self, candidate: u32) {
        for i in self.essential..self.cursors.len() {
            if self.heads[i] == candidate {
                self.heads[i] = self.cursors[i].advance();
            }
        }
    }

    /// Moves the essential lists past the candidate, and returns the sum of their weights for it.
    #[inline]
    fn take_essential(&mut self, candidate: u32) -> u32 {
        let mut score = 0u32;
        for i in self.essential..self.cursors.len() {
            if self.heads[i] == candidate {
                score = score.wrapping_add(self.cursors[i].weight());
                self.heads[i] = self.cursors[i].advance();
            }
        }
        score
    }

    /// Adds the weights of the other lists for the candidate; returns `None` as soon as it cannot enter.
    #[inline]
    fn look_up_others(&mut self, candidate: u32, mut score: u32) -> Option<u32> {
        for i in (0..self.essential).rev() {
            if score.saturating_add(self.reach[i + 1]) < self.threshold {
                return None;
            }
            if BLOCK_BOUNDS {
                let in_block = self.cursors[i].bound_at(candidate);
                if score.saturating_add(in_block).saturating_add(self.reach[i]) < self.threshold {
                    return None;
                }
            }
            if self.cursors[i].seek(candidate) == candidate {
                score = score.wrapping_add(self.cursors[i].weight());
            }
        }
        Some(score)
    }
}
