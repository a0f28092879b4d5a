//! A window that is scanned chunk by chunk: dense lists alone can reach the threshold there, or postings are many.

use super::{ACCUMULATED_TOGETHER, CHUNK, CHUNKS, Candidate, Lanes, Scatter, WIDEST, Weigher, Window, WindowBuffers};

impl<W: Weigher> Scatter<'_, W> {
    /// Finds the highest score of each chunk.
    pub(super) fn find_peaks(&mut self, chunks: usize) {
        let WindowBuffers { scores, peaks, .. } = &mut *self.buffers;
        for (peak, scores) in peaks[..chunks].iter_mut().zip(scores.as_chunks::<CHUNK>().0) {
            *peak = scores.iter().fold(0, |peak, &score| peak.max(score));
        }
    }

    /// Pushes the documents of a window that can enter, chunk by chunk, and clears its accumulators.
    #[inline(always)]
    pub(super) fn scan<L: Lanes>(&mut self, lanes: L, window: &Window) {
        let first_chunk = window.origin as usize / CHUNK;
        let chunks = (self.task.index.documents() as usize).div_ceil(CHUNK).saturating_sub(first_chunk);
        for start in (0..window.width / CHUNK).step_by(CHUNKS) {
            let WindowBuffers { peaks, bounds, .. } = &*self.buffers;
            let peaks: [u32; CHUNKS] = *peaks[start..].first_chunk().expect("windows are multiples of L1 windows");
            let mut sums = peaks.map(|peak| peak.wrapping_add(window.rest));
            if !self.dense.is_empty() {
                for (sum, &bound) in sums.iter_mut().zip(&bounds[start..]) {
                    *sum = sum.wrapping_add(bound);
                }
            }
            let mut live = lanes.chunks_at_least(&sums, self.threshold);
            if chunks < start + CHUNKS {
                live &= (1 << chunks.saturating_sub(start)) - 1;
            }
            let mut dead = lanes.chunks_at_least(&peaks, 1) & !live;
            while dead != 0 {
                self.chunk_scores(start + dead.trailing_zeros() as usize).fill(0);
                dead &= dead - 1;
            }
            while live != 0 {
                let chunk = live.trailing_zeros() as usize % CHUNKS;
                live &= live - 1;
                self.collect(lanes, window, start + chunk, sums[chunk].wrapping_sub(peaks[chunk]));
            }
        }
    }

    /// The accumulators of a chunk of the window.
    #[inline(always)]
    fn chunk_scores(&mut self, chunk: usize) -> &mut [u32; CHUNK] {
        &mut self.buffers.scores.as_chunks_mut::<CHUNK>().0[chunk % (WIDEST / CHUNK)]
    }

    /// Pushes the documents of a chunk that can enter, and clears its accumulators. `bound` is the most that the lists
    /// that were not scattered can add.
    #[inline(always)]
    fn collect<L: Lanes>(&mut self, lanes: L, window: &Window, chunk_in_window: usize, mut bound: u32) {
        let chunk = window.origin as usize / CHUNK + chunk_in_window;
        let scores = &mut self.buffers.scores.as_chunks_mut::<CHUNK>().0[chunk_in_window % (WIDEST / CHUNK)];
        let (mut dense_from, mut candidates) = (0, u64::MAX);
        // While no document is ruled out, and while many are left, the strongest list is accumulated for all of them.
        while (bound >= self.threshold || candidates.count_ones() >= ACCUMULATED_TOGETHER)
            && dense_from < self.dense.len()
        {
            let strongest = &self.dense[dense_from];
            bound = bound.wrapping_sub(strongest.bound_in(chunk));
            self.work.postings_decoded += u64::from(strongest.add(lanes, self.weigher, chunk, scores));
            dense_from += 1;
            candidates = lanes.at_least(scores, self.threshold.saturating_sub(bound).max(1));
        }
        // A document without a posting so far cannot enter: all lists are accumulated, or the others do not suffice.
        if dense_from == 0 {
            candidates = lanes.at_least(scores, self.threshold.saturating_sub(bound).max(1));
        }
        if candidates == 0 {
            *scores = [0; CHUNK];
            return;
        }
        let found = *scores;
        *scores = [0; CHUNK];
        candidates &= self.inside(chunk);
        while candidates != 0 {
            let bit = candidates.trailing_zeros();
            candidates &= candidates - 1;
            let (document, score) = ((chunk * CHUNK) as u32 + bit, found[bit as usize % CHUNK]);
            self.finish(lanes, Candidate { document, score, bound, dense_from, sparse_from: window.essential });
        }
    }

    /// Returns the bits of a chunk's documents that are in the plan's range.
    #[inline(always)]
    fn inside(&self, chunk: usize) -> u64 {
        let range = &self.task.plan.range;
        let first = (chunk * CHUNK) as u64;
        let mut mask = u64::MAX;
        if u64::from(range.start) > first {
            mask = u64::MAX.checked_shl((u64::from(range.start) - first) as u32).unwrap_or(0);
        }
        if u64::from(range.end) < first + CHUNK as u64 {
            mask &= (1 << (u64::from(range.end).saturating_sub(first))) - 1;
        }
        mask
    }
}
