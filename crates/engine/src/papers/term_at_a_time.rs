//! AND on a GPU, a list after the other, the shortest first.
//!
//! The documents of the shortest list are the first candidates. Each further list is intersected with them, and what is
//! left are the candidates for the next. After each intersection the weights of the new list are added to the scores of
//! the candidates, by fetching one frequency each from its block, which is not decoded for it. In the end the best k are
//! selected. A bitmap is asked bit by bit, and expanded where it is the shortest list. A list in blocks is
//! - decoded whole and merged with the candidates (`merge_path`), where it is not much longer than they are;
//! - else searched: its skip pointers, the last documents of its blocks, tell which blocks can have a candidate, and only
//!   these are decoded, each by a warp, and searched (`binary_intersection`); of a list that does not lie on the device
//!   only these are sent;
//! - or decoded whole and searched in segments (`parallel_merge_find`).
//!
//! Liu et al., Griffin (section 3.1.2); Ding et al., Using Graphics Processors for High Performance IR Query Processing
//! (sections 7 and 8.1 to 8.3). Here is how an intersection is chosen; `executors/steps.rs` takes the steps.

use crate::query::Algorithm;

/// A list so many times as long as there are candidates is searched; a shorter one is merged with them. Griffin's.
pub const SEARCHED_FROM: u32 = 128;
/// The levels of Parallel Merge Find, on which its paper settles.
pub const LEVELS: u32 = 3;
/// Merged lists have fewer documents together.
const MOST_MERGED: u64 = 1 << 31;

/// How a list in blocks is intersected with candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intersection {
    /// By merging both.
    MergePath,
    /// By searching the blocks that can have a candidate.
    BinarySearch,
    /// By searching segments of all of the list.
    ParallelMergeFind,
}

impl Intersection {
    /// The one that an algorithm names, or the better one for a list with so many postings.
    pub fn choose(algorithm: Algorithm, candidates: u32, postings: u32) -> Intersection {
        let is_longer = u64::from(postings) >= u64::from(SEARCHED_FROM) * u64::from(candidates);
        let is_merged = u64::from(postings) + u64::from(candidates) < MOST_MERGED;
        match algorithm {
            Algorithm::BinaryIntersection => Intersection::BinarySearch,
            Algorithm::ParallelMergeFind => Intersection::ParallelMergeFind,
            Algorithm::MergePath if is_merged => Intersection::MergePath,
            _ if is_merged && !is_longer => Intersection::MergePath,
            _ => Intersection::BinarySearch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_lengths_chooses_unless_an_algorithm_is_named() {
        use Intersection::{BinarySearch, MergePath, ParallelMergeFind};
        for (algorithm, candidates, postings, expected) in [
            (Algorithm::TermAtATime, 100, 100, MergePath),
            (Algorithm::TermAtATime, 100, 12_799, MergePath),
            (Algorithm::TermAtATime, 100, 12_800, BinarySearch),
            (Algorithm::TermAtATime, 1 << 31, 1 << 31, BinarySearch),
            (Algorithm::MergePath, 1, 1_000_000, MergePath),
            (Algorithm::MergePath, 1, u32::MAX, BinarySearch),
            (Algorithm::BinaryIntersection, 100, 100, BinarySearch),
            (Algorithm::ParallelMergeFind, 100, 100, ParallelMergeFind),
        ] {
            assert_eq!(Intersection::choose(algorithm, candidates, postings), expected, "{algorithm} {postings}");
        }
    }
}
