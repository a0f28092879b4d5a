//! A window of which the touched accumulators are remembered: keeps those that can enter, list by list.

use super::{
    CHUNK, CHUNKS, Candidate, L1_WINDOW, LOOKED_UP_TOGETHER, Lanes, POSTINGS_PER_CANDIDATE, REMEMBERED, Scatter,
};
use super::{WIDEST, Weigher, Window, WindowBuffers};
use crate::algorithms::dense_list::DenseList;
use crate::algorithms::weigher::Postings;
use lanner_index::codec::BLOCK;
use lanner_index::open::BlockBuffer;

impl<W: Weigher> Scatter<'_, W> {
    /// Finds the documents that can enter among those that were touched, and clears their accumulators.
    #[inline(always)]
    pub(super) fn sift<L: Lanes>(&mut self, lanes: L, window: &Window, touched: usize) {
        if touched == 0 {
            return;
        }
        let WindowBuffers { touched: offsets, candidates, .. } = &mut *self.buffers;
        candidates[..touched].copy_from_slice(&offsets[..touched]);
        let (mut count, mut rest, mut from) = (touched, window.rest, window.essential);
        // With one essential list and no dense ones, scattering has compared the same.
        if window.essential > 1 || !self.dense.is_empty() {
            count = self.keep_strong(lanes, count, rest);
        }
        while from < self.sparse.len() && self.sparse[from].are_few(window.width, POSTINGS_PER_CANDIDATE * count) {
            // The candidates of a single list are sorted. Of two lists, a later one has many postings for each.
            let is_pair = self.sparse.len() == 2 && window.essential == 1;
            let sparse = &mut self.sparse[from];
            rest = rest.wrapping_sub(sparse.window_bound);
            let least = self.threshold.saturating_sub(rest.saturating_add(window.dense_bound));
            let accumulators = (&mut *self.buffers.scores, window.origin);
            if is_pair {
                let candidates = &self.buffers.candidates[..count];
                sparse.add_to_candidates(lanes, self.weigher, accumulators, candidates, &mut self.work);
            } else {
                sparse.add_to_strong(lanes, self.weigher, accumulators, (&window.documents, least), &mut self.work);
            }
            count = self.keep_strong(lanes, count, rest);
            from += 1;
        }
        if window.essential > 1 {
            count = self.sort_candidates(count);
        }
        self.finish_candidates(lanes, window, count, (rest, from));
        let WindowBuffers { scores, touched: offsets, .. } = &mut *self.buffers;
        for &offset in &offsets[..touched] {
            scores[offset as usize % WIDEST] = 0;
        }
    }

    /// Keeps the candidates that can still reach the threshold, if sparse lists add at most `rest`.
    #[inline(always)]
    fn keep_strong<L: Lanes>(&mut self, lanes: L, count: usize, rest: u32) -> usize {
        let WindowBuffers { scores, candidates, bounds, .. } = &mut *self.buffers;
        let bounds = (!self.dense.is_empty()).then_some(&**bounds);
        let least = self.threshold.saturating_sub(rest).max(1);
        lanes.keep_strong(&mut candidates[..], count, (scores, bounds), least)
    }

    /// Sorts the candidates, and drops repeated ones.
    #[inline(always)]
    fn sort_candidates(&mut self, count: usize) -> usize {
        if count < 2 {
            return count;
        }
        let WindowBuffers { words, candidates, .. } = &mut *self.buffers;
        let mut chunks = [0u128; WIDEST / L1_WINDOW];
        for &offset in &candidates[..count] {
            let offset = offset as usize % WIDEST;
            words[offset / CHUNK] |= 1 << (offset % CHUNK);
            chunks[offset / L1_WINDOW] |= 1 << (offset / CHUNK % CHUNKS);
        }
        let mut sorted = 0;
        for (part, mut chunks) in chunks.into_iter().enumerate() {
            while chunks != 0 {
                let chunk = part * CHUNKS + chunks.trailing_zeros() as usize % CHUNKS;
                chunks &= chunks - 1;
                let mut word = std::mem::take(&mut words[chunk]);
                while word != 0 {
                    candidates[sorted % REMEMBERED] = (chunk * CHUNK) as u32 + word.trailing_zeros();
                    word &= word - 1;
                    sorted += 1;
                }
            }
        }
        sorted
    }

    /// Looks the candidates up in the dense lists and in the sparse ones from `from` on, which add at most `rest`.
    #[inline(always)]
    fn finish_candidates<L: Lanes>(&mut self, lanes: L, window: &Window, count: usize, (rest, from): (u32, usize)) {
        let mut batch = Batch::default();
        for start in (0..count).step_by(BLOCK) {
            batch.count = (count - start).min(BLOCK);
            for i in 0..batch.count {
                let offset = self.buffers.candidates[start + i] as usize % WIDEST;
                let dense_bound = if self.dense.is_empty() { 0 } else { self.buffers.bounds[offset / CHUNK] };
                batch.documents[i] = window.origin.wrapping_add(offset as u32);
                batch.scores[i] = self.buffers.scores[offset];
                batch.bounds[i] = rest.wrapping_add(dense_bound);
            }
            let mut dense_from = 0;
            while dense_from < self.dense.len() && batch.count >= LOOKED_UP_TOGETHER {
                batch.keep_strong(self.threshold);
                batch.add(lanes, self.weigher, &self.dense[dense_from]);
                dense_from += 1;
            }
            for i in 0..batch.count {
                let (document, score, bound) = (batch.documents[i], batch.scores[i], batch.bounds[i]);
                self.finish(lanes, Candidate { document, score, bound, dense_from, sparse_from: from });
            }
        }
    }
}

/// Candidates that are looked up in dense lists together, list by list, so that their cache misses overlap and their
/// weights are computed with SIMD.
struct Batch {
    count: usize,
    documents: BlockBuffer,
    scores: BlockBuffer,
    /// The most that the lists that are left can add to each.
    bounds: BlockBuffer,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { count: 0, documents: [0; BLOCK], scores: [0; BLOCK], bounds: [0; BLOCK] }
    }
}

impl Batch {
    /// Keeps the candidates that can still reach the threshold.
    #[inline(always)]
    fn keep_strong(&mut self, threshold: u32) {
        let mut kept = 0;
        for i in 0..self.count.min(BLOCK) {
            let (document, score, bound) = (self.documents[i], self.scores[i], self.bounds[i]);
            (self.documents[kept], self.scores[kept], self.bounds[kept]) = (document, score, bound);
            kept += usize::from(score.wrapping_add(bound) >= threshold);
        }
        self.count = kept;
    }

    /// Adds the weights of the candidates in a list.
    #[inline(always)]
    fn add<L: Lanes, W: Weigher>(&mut self, lanes: L, weigher: W, list: &DenseList<'_>) {
        let (mut found, mut documents, mut count) = ([0u8; BLOCK], [0; BLOCK], 0);
        for i in 0..self.count.min(BLOCK) {
            let document = self.documents[i];
            let chunk = document as usize / CHUNK;
            self.bounds[i] = self.bounds[i].wrapping_sub(list.bound_in(chunk));
            (found[count % BLOCK], documents[count % BLOCK]) = (i as u8, document);
            count += (list.dense.word(chunk) >> (document % CHUNK as u32) & 1) as usize;
        }
        let (mut values, mut weights) = ([1; BLOCK], [0; BLOCK]);
        list.dense.values_of(W::COLUMN, &documents[..count.min(BLOCK)], &mut values);
        weigher.weigh_block(
            lanes,
            list.multiplier,
            &Postings { values: &values, documents: &documents, count },
            &mut weights,
        );
        for (&i, &weight) in found.iter().zip(&weights[..count.min(BLOCK)]) {
            let score = &mut self.scores[usize::from(i) % BLOCK];
            *score = score.wrapping_add(weight);
        }
    }
}
