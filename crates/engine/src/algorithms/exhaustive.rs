//! AND and OR: every posting of every list is added up, in windows of 8,192 documents.
//!
//! The baseline for the other algorithms. Lists are added one after the other within a window, so that the accumulators
//! stay in the L1 cache; then the window is scanned in document order. A document matches an OR if a posting was added
//! to it, and an AND if one of each list was.

use super::cursor::{Cursor, END};
use super::weigher::Weigher;
use super::{L1_WINDOW, Task, Workspace, work_of};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;
use crate::query::plan::Operation;
use lanner_index::DocId;

/// The scores and the number of matching lists of a window's documents.
#[derive(Default)]
pub struct Accumulators {
    scores: Vec<u32>,
    matches: Vec<u16>,
}

/// Answers a stage by adding up every posting.
pub fn cpu<W: Weigher>(task: &Task<'_>, mut cursors: Vec<Cursor<'_, W>>, workspace: &mut Workspace) -> Work {
    let Workspace { top, accumulators, .. } = workspace;
    accumulators.scores.resize(L1_WINDOW, 0);
    accumulators.matches.resize(L1_WINDOW, 0);
    let mut documents_scored = 0;
    loop {
        let first = cursors.iter().map(Cursor::document).min().unwrap_or(END);
        if first == END {
            return work_of(&cursors, documents_scored);
        }
        let start = first - first % L1_WINDOW as u32;
        cursors.iter_mut().for_each(|cursor| accumulators.add(cursor, start));
        documents_scored += accumulators.collect(task, start, top);
    }
}

impl Accumulators {
    /// Adds the postings of a list to the window that begins at `start`.
    fn add<W: Weigher>(&mut self, cursor: &mut Cursor<'_, W>, start: u32) {
        let end = start.saturating_add(L1_WINDOW as u32);
        while cursor.document() < end {
            // Only in a damaged file does a document lie before the window.
            let offset = cursor.document().wrapping_sub(start) as usize;
            if offset < L1_WINDOW {
                self.scores[offset] = self.scores[offset].wrapping_add(cursor.weight());
                self.matches[offset] = self.matches[offset].wrapping_add(1);
            }
            cursor.advance();
        }
    }

    /// Pushes the documents of the window that match, clears it, and returns the number of documents pushed.
    fn collect(&mut self, task: &Task<'_>, start: u32, top: &mut TopK) -> u64 {
        let least_matches = match task.stage.operation {
            Operation::And => task.plan.lists.len() as u16,
            Operation::Or => 1,
        };
        let mut documents_scored = 0;
        for (offset, (score, matches)) in self.scores.iter_mut().zip(&mut self.matches).enumerate() {
            let document = start.wrapping_add(offset as u32);
            if *matches >= least_matches && task.passes(document) {
                top.push(DocId(document), score.wrapping_add(task.static_part(document)));
                documents_scored += 1;
            }
            (*score, *matches) = (0, 0);
        }
        documents_scored
    }
}
