//! AND, document at a time: the rarest list drives, the others skip to its documents.
//!
//! Each document of the shortest list is sought in the others, from short to long. The first list that does not have
//! it names the next document that it could be, and the driver skips there. A list of n blocks of which the driver
//! touches m decodes at most m of them; which block holds a document is found in the list's directory.

use super::cursor::{Cursor, END};
use super::weigher::Weigher;
use super::{Task, work_of};
use crate::answer::Work;
use crate::topk::TopK;
use lanner_index::DocId;

/// Answers an AND.
pub fn cpu<W: Weigher>(task: &Task<'_>, mut cursors: Vec<Cursor<'_, W>>, top: &mut TopK) -> Work {
    cursors.sort_by_key(Cursor::postings);
    let mut documents_scored = 0;
    let mut candidate = cursors.first().map_or(END, Cursor::document);
    while candidate != END {
        candidate = match next_in_others(&mut cursors[1..], candidate) {
            Some(later) => cursors[0].seek(later),
            None => {
                if task.passes(candidate) {
                    let weights = cursors.iter_mut().map(Cursor::weight);
                    let score = weights.fold(task.static_part(candidate), u32::wrapping_add);
                    top.push(DocId(candidate), score);
                    documents_scored += 1;
                }
                cursors[0].advance()
            }
        };
    }
    work_of(&cursors, documents_scored)
}

/// Moves the lists to the candidate; a later document if one of them does not have it.
#[inline]
fn next_in_others<W: Weigher>(others: &mut [Cursor<'_, W>], candidate: u32) -> Option<u32> {
    others.iter_mut().map(|cursor| cursor.seek(candidate)).find(|&document| document != candidate)
}
