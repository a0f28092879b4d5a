//! Every posting of every list is added up: AND and OR, a window of documents at a time.
//!
//! The baseline that the other algorithms are measured against, and the fastest where lists are short or k is large.
//! Term at a time within a window, so that the accumulators stay in the L1 cache; then the window is scanned in
//! document order. A document matches an OR if anything was added to it (a weight is at least one unit) and an AND if
//! as many postings were added as there are lists.

use super::cursor::{Cursor, END};
use super::weigher::Weigher;
use super::{Task, Workspace, work_of};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::Operation;
use lanner_index::DocId;

/// Documents accumulated at a time: with 32-bit scores, 32 KiB.
const WINDOW: usize = 8192;

/// Scores and matching lists of the documents of one window.
#[derive(Default)]
pub struct Accumulators {
    scores: Vec<u32>,
    matches: Vec<u16>,
}

/// Answers a stage by looking at every posting.
pub fn cpu<W: Weigher>(task: &Task<'_>, mut cursors: Vec<Cursor<'_, W>>, workspace: &mut Workspace) -> Work {
    let Workspace { top, accumulators, .. } = workspace;
    accumulators.scores.resize(WINDOW, 0);
    accumulators.matches.resize(WINDOW, 0);
    let mut documents_scored = 0;
    loop {
        let first = cursors.iter().map(Cursor::document).min().unwrap_or(END);
        if first == END {
            return work_of(&cursors, documents_scored);
        }
        let start = first - first % WINDOW as u32;
        cursors.iter_mut().for_each(|cursor| accumulators.add(cursor, start));
        documents_scored += accumulators.collect(task, start, top);
    }
}

impl Accumulators {
    /// Adds the postings of a list to the window that starts at `start`.
    fn add<W: Weigher>(&mut self, cursor: &mut Cursor<'_, W>, start: u32) {
        let end = start.saturating_add(WINDOW as u32);
        while cursor.document() < end {
            // Only in a damaged file does a document lie before the window.
            let place = cursor.document().wrapping_sub(start) as usize;
            if place < WINDOW {
                self.scores[place] = self.scores[place].wrapping_add(cursor.weight());
                self.matches[place] = self.matches[place].wrapping_add(1);
            }
            cursor.advance();
        }
    }

    /// Pushes the documents of the window that match, empties it, and returns how many they were.
    fn collect(&mut self, task: &Task<'_>, start: u32, top: &mut TopK) -> u64 {
        let least_matches = match task.stage.operation {
            Operation::And => task.plan.lists.len() as u16,
            Operation::Or => 1,
        };
        let mut documents_scored = 0;
        let slots = self.scores.iter_mut().zip(&mut self.matches);
        for (place, (score, matches)) in slots.enumerate() {
            let document = start.wrapping_add(place as u32);
            if *matches >= least_matches && task.passes(document) {
                top.push(DocId(document), score.wrapping_add(task.static_part(document)));
                documents_scored += 1;
            }
            (*score, *matches) = (0, 0);
        }
        documents_scored
    }
}
