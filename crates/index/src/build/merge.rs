//! The merge of all runs, term by term.
//!
//! Runs cover consecutive documents, so the pieces of a term are concatenated. Terms are returned in batches, the unit
//! of parallel encoding.

use super::BuildError;
use super::accumulate::Sorted;
use super::run::RunReader;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A batch ends when its pieces have this many bytes.
const BATCH_BYTES: usize = 512 * 1024;
/// A batch ends when it has this many terms.
const BATCH_TERMS: usize = 8192;

/// Consecutive terms with their pieces.
#[derive(Default)]
pub struct TermBatch {
    /// The text of all terms.
    pub text: Vec<u8>,
    /// The pieces of all terms.
    pub pieces: Vec<u8>,
    /// For each term: number of documents, end of its text, end of its pieces.
    pub terms: Vec<(u32, usize, usize)>,
}

impl TermBatch {
    /// The text, pieces and number of documents of each term.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], u32)> {
        let mut starts = (0, 0);
        self.terms.iter().map(move |&(count, text_end, pieces_end)| {
            let term = (&self.text[starts.0..text_end], &self.pieces[starts.1..pieces_end], count);
            starts = (text_end, pieces_end);
            term
        })
    }
}

/// All runs; the one in memory comes last.
pub struct Merge {
    runs: Vec<RunReader>,
    memory: Option<Sorted>,
    /// The next term of each run that has one, smallest first; for equal terms the earlier run first.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// `waiting[run]`: number of documents and pieces of the term in `heads`.
    waiting: Vec<(u32, Vec<u8>)>,
}

impl Merge {
    /// Starts reading the runs, which are sorted by their documents.
    pub fn new(runs: Vec<RunReader>, memory: Option<Sorted>) -> Result<Merge, BuildError> {
        let sources = runs.len() + 1;
        let waiting = (0..sources).map(|_| (0, Vec::new())).collect();
        let mut merge = Merge { runs, memory, heads: BinaryHeap::new(), waiting };
        for source in 0..sources {
            merge.advance(source, Vec::new())?;
        }
        Ok(merge)
    }

    /// Reads the next term of a run; reuses the memory of `text`.
    fn advance(&mut self, source: usize, mut text: Vec<u8>) -> Result<(), BuildError> {
        let (count, pieces) = &mut self.waiting[source];
        pieces.clear();
        let found = match self.runs.get_mut(source) {
            Some(run) => run.next(&mut text, pieces)?,
            None => self.memory.as_mut().and_then(|memory| memory.next(&mut text, pieces)),
        };
        if let Some(found) = found {
            *count = found;
            self.heads.push(Reverse((text, source)));
        }
        Ok(())
    }

    /// The next batch of terms.
    pub fn next(&mut self) -> Result<Option<TermBatch>, BuildError> {
        let mut batch = TermBatch::default();
        while batch.pieces.len() < BATCH_BYTES && batch.terms.len() < BATCH_TERMS {
            let Some(Reverse((text, source))) = self.heads.pop() else {
                break;
            };
            let start = batch.text.len();
            batch.text.extend_from_slice(&text);
            let mut count = self.take(source, &mut batch);
            self.advance(source, text)?;
            while let Some(Reverse((same, _))) = self.heads.peek() {
                if *same != batch.text[start..] {
                    break;
                }
                if let Some(Reverse((text, source))) = self.heads.pop() {
                    count += self.take(source, &mut batch);
                    self.advance(source, text)?;
                }
            }
            batch.terms.push((count, batch.text.len(), batch.pieces.len()));
        }
        Ok((!batch.terms.is_empty()).then_some(batch))
    }

    fn take(&self, source: usize, batch: &mut TermBatch) -> u32 {
        let (count, pieces) = &self.waiting[source];
        batch.pieces.extend_from_slice(pieces);
        *count
    }
}
