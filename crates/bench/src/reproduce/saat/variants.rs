//! The rows of Table 1 with the paper's numbers, and further variants.

use lanner::internals::papers::saat_variants::{Accumulators, Decoding, Heap, Options};

/// Lanner's default.
pub const DEFAULT: &str = "no heap, one sweep, fused: the default";
/// Document at a time.
pub const EXHAUSTIVE: &str = "document at a time, exhaustive";
/// The fastest variant of the paper.
pub const BEST: &str = "Array, Algorithm 2, inline";
/// The fastest variant of the paper, with decoding and processing fused.
pub const BEST_FUSED: &str = "Array, Algorithm 2, inline, fused";
/// Number of queries in the paper.
const PAPER_QUERIES: f64 = 20_000.0;
/// Table 2: how often each clause of Algorithm 1 is executed, one for each posting.
pub const PAPER_CLAUSES: [u64; 4] = [199_965, 143_406, 73_733_775, 378_923_996_448];

/// One row of Table 1.
pub struct Variant {
    pub label: &'static str,
    pub how: How,
    /// `None` for variants that the paper does not have.
    pub paper: Option<PaperRow>,
}

/// The numbers of a row in the paper.
pub struct PaperRow {
    /// Milliseconds per query.
    pub ms: f64,
    /// Reduction in percent relative to the first row and to the row of JASS.
    pub reductions: [i32; 2],
}

impl PaperRow {
    /// Nanoseconds per posting.
    pub fn ns_per_posting(&self) -> f64 {
        self.ms * 1e6 / paper_postings()
    }
}

/// Mean postings of a query in the paper.
pub fn paper_postings() -> f64 {
    PAPER_CLAUSES.iter().sum::<u64>() as f64 / PAPER_QUERIES
}

/// How a query is answered.
#[derive(Clone, Copy)]
pub enum How {
    /// Document at a time, every posting.
    Exhaustive,
    ScoreAtATime(Options),
}

/// Score-at-a-time as in the paper: a segment is decoded, then processed, with a heap that starts empty.
pub fn of_paper(accumulators: Accumulators, heap: Heap, is_inlined: bool) -> Options {
    Options { accumulators, heap, is_inlined, decoding: Decoding::Separate, is_seeded: false }
}

/// Returns the rows of Table 1 in the order of the paper, then further variants.
pub fn variants() -> Vec<Variant> {
    use Accumulators::{Array, Dynamic};
    use Heap::{Algorithm1, Algorithm2, Never};
    let paper = |label, options, ms, reductions| {
        let how = How::ScoreAtATime(options);
        Variant { label, how, paper: Some(PaperRow { ms, reductions }) }
    };
    let beyond = |label, accumulators, heap, decoding, is_seeded| {
        let options = Options { accumulators, heap, is_inlined: true, decoding, is_seeded };
        Variant { label, how: How::ScoreAtATime(options), paper: None }
    };
    vec![
        paper("Dynamic, Algorithm 1", of_paper(Dynamic, Algorithm1, false), 177.0, [0, -24]),
        paper("Array, Algorithm 1", of_paper(Array, Algorithm1, false), 166.0, [6, -16]),
        paper("Dynamic, Algorithm 2", of_paper(Dynamic, Algorithm2, false), 164.0, [8, -14]),
        paper("Array, Algorithm 2", of_paper(Array, Algorithm2, false), 152.0, [14, -6]),
        paper("JASS: Dynamic, Algorithm 1, inline", of_paper(Dynamic, Algorithm1, true), 143.0, [19, 0]),
        paper(BEST, of_paper(Array, Algorithm2, true), 112.0, [37, 22]),
        Variant { label: EXHAUSTIVE, how: How::Exhaustive, paper: None },
        beyond("Dynamic, Algorithm 2, inline", Dynamic, Algorithm2, Decoding::Separate, false),
        beyond(BEST_FUSED, Array, Algorithm2, Decoding::Fused, false),
        beyond("the same, seeded", Array, Algorithm2, Decoding::Fused, true),
        beyond("no heap, one sweep", Dynamic, Never, Decoding::Separate, true),
        beyond(DEFAULT, Dynamic, Never, Decoding::Fused, true),
    ]
}
