//! AND on a GPU, one list after the other, shortest first.
//!
//! The documents of the shortest list are the first candidates. Each further list is intersected with the candidates,
//! and the matches are the candidates for the next list. After each intersection the weights of the new list are added
//! to the scores of the candidates: single frequencies are fetched from packed blocks, without decoding them. At the
//! end the best k are selected. A dense list is tested bit by bit, or expanded if it is the shortest. A sparse list is
//! - decoded whole and merged with the candidates (`merge_path.rs`), if it is not much longer than they are;
//! - otherwise searched over its skip pointers (`skip_search.rs`);
//! - or decoded whole and searched in segments (`parallel_merge_find.rs`), if asked for.
//!
//! Liu et al., Griffin (section 3.1.2); Ding et al., Using Graphics Processors for High Performance IR Query Processing
//! (sections 7 and 8.1 to 8.3). This file chooses an intersection; `steps.rs` and `intersections.rs` run them.

use crate::query::Algorithm;

/// A list at least this many times as long as the candidates is searched, a shorter one is merged. Griffin's ratio.
pub const SEARCHED_FROM: u32 = 128;
/// The levels of Parallel Merge Find, as its paper chooses them.
pub const MERGE_FIND_LEVELS: u32 = 3;
/// Lists with this many documents together cannot be merged.
const MOST_MERGED: u64 = 1 << 31;

/// How a sparse list is intersected with candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intersection {
    /// Merge both.
    MergePath,
    /// Search the blocks that can hold a candidate.
    SkipSearch,
    /// Decode the whole list and search it in segments.
    ParallelMergeFind,
}

impl Intersection {
    /// The one that an algorithm names, or the better one for the numbers of candidates and postings.
    pub fn choose(algorithm: Algorithm, candidates: u32, postings: u32) -> Intersection {
        let is_longer = u64::from(postings) >= u64::from(SEARCHED_FROM) * u64::from(candidates);
        let is_merged = u64::from(postings) + u64::from(candidates) < MOST_MERGED;
        match algorithm {
            Algorithm::SkipSearch => Intersection::SkipSearch,
            Algorithm::ParallelMergeFind => Intersection::ParallelMergeFind,
            Algorithm::MergePath if is_merged => Intersection::MergePath,
            _ if is_merged && !is_longer => Intersection::MergePath,
            _ => Intersection::SkipSearch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_lengths_chooses_unless_an_algorithm_is_named() {
        use Intersection::{MergePath, ParallelMergeFind, SkipSearch};
        for (algorithm, candidates, postings, expected) in [
            (Algorithm::TermAtATime, 100, 100, MergePath),
            (Algorithm::TermAtATime, 100, 12_799, MergePath),
            (Algorithm::TermAtATime, 100, 12_800, SkipSearch),
            (Algorithm::TermAtATime, 1 << 31, 1 << 31, SkipSearch),
            (Algorithm::MergePath, 1, 1_000_000, MergePath),
            (Algorithm::MergePath, 1, u32::MAX, SkipSearch),
            (Algorithm::SkipSearch, 100, 100, SkipSearch),
            (Algorithm::ParallelMergeFind, 100, 100, ParallelMergeFind),
        ] {
            assert_eq!(Intersection::choose(algorithm, candidates, postings), expected, "{algorithm} {postings}");
        }
    }
}
