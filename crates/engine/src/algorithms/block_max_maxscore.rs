//! OR: MaxScore with the bounds of blocks, after Ding and Suel, *Faster top-k document retrieval using block-max
//! indexes* (2011), as PISA's `block_max_maxscore`.
//!
//! It differs from `maxscore` in two ways: the bound of the block that can have a document, known without decoding it,
//! may end lookups earlier; and when only one list is essential, its blocks whose bounds are too low are skipped.

use super::cursor::Cursor;
use super::weigher::Weigher;
use super::{Task, maxscore};
use crate::algorithms::topk::TopK;
use crate::query::answer::Work;

/// Answers an OR.
pub fn cpu<W: Weigher>(task: &Task<'_>, cursors: Vec<Cursor<'_, W>>, top: &mut TopK) -> Work {
    maxscore::run::<W, true>(task, cursors, top)
}
