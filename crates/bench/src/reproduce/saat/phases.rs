//! Table 1, where the time of a query goes: decoding, adding to accumulators, and the rest.

use super::variants::{PaperRow, variants};
use super::workload::{Phase, Workload};
use crate::error::Result;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::table::{Table, bytes, number};

/// Mean milliseconds of a query and of its parts.
pub struct Phases {
    decode: f64,
    decode_and_add: f64,
    baseline: f64,
    best: f64,
    default: f64,
    /// Mean postings of a query.
    postings: f64,
    /// Mean postings of a query in impact-ordered lists, which are the decoded ones.
    ordered_postings: f64,
    list_bytes: f64,
}

impl Phases {
    /// Measures the parts; the times of whole queries are given.
    pub fn measure(workload: &Workload, runs: usize, [baseline, best, default]: [f64; 3]) -> Result<Phases> {
        let median = |phase| -> Result<f64> {
            let times = (0..runs).map(|_| workload.phase_ms(phase)).collect::<Result<Vec<f64>, _>>()?;
            Ok(Spread::of(times).median)
        };
        let [ordered_postings, list_bytes] = workload.ordered_lists()?;
        Ok(Phases {
            decode: median(Phase::Decode)?,
            decode_and_add: median(Phase::DecodeAndAdd)?,
            baseline,
            best,
            default,
            postings: workload.postings(),
            ordered_postings,
            list_bytes,
        })
    }

    fn ns(&self, ms: f64) -> f64 {
        ms * 1e6 / self.postings
    }

    pub fn measurement(&self) -> Measurement {
        Measurement::new("phases", &[])
            .with("decode_ms", self.decode)
            .with("decode_and_add_ms", self.decode_and_add)
            .with("postings_a_query", self.postings)
            .with("ordered_postings_a_query", self.ordered_postings)
            .with("stream_bytes_a_query", self.list_bytes)
    }

    pub fn table(&self) -> Table {
        let columns = ["part", "ms", "ns per posting", "million postings/s", "lists read, MB/s"];
        let mut table = Table::new("Where the time goes", 1, &columns);
        for (part, ms) in [
            ("decoding alone", self.decode),
            ("decoding, and adding each posting to its accumulator", self.decode_and_add),
            ("the default: the same, fused, with the sweep for the best", self.default),
            ("the paper's best: pages, Algorithm 2, inline", self.best),
            ("the paper's baseline: pages, Algorithm 1, a call for each posting", self.baseline),
        ] {
            table.numbers(part, [ms, self.ns(ms), self.postings / ms / 1e3, self.list_bytes / ms / 1e3]);
        }
        table.notes(&[&format!(
            "Impact-ordered lists have {:.1} % of the postings, with {} bits per posting. The first two rows leave the \
             other lists out, and neither reset accumulators nor select hits.",
            100.0 * self.ordered_postings / self.postings,
            number(8.0 * self.list_bytes / self.ordered_postings)
        )])
    }

    /// Explains by the measurements why the reduction is not the paper's 37 %.
    pub fn reason(&self, workload: &Workload) -> String {
        let paper = |row: usize| variants()[row].paper.as_ref().map_or(f64::NAN, PaperRow::ns_per_posting);
        let (saved, left) = (self.ns(self.baseline - self.best), self.ns(self.best));
        let (paper_saved, paper_left) = (paper(0) - paper(5), paper(5));
        let accumulators = bytes(2 * u64::from(workload.documents()));
        let caches = caches().map_or(String::new(), |caches| format!("; caches of the CPU: {caches}"));
        let reduction = 100.0 * saved / (saved + left);
        let (decoding, adding) = (self.ns(self.decode), self.ns(self.decode_and_add - self.decode));
        let [x_saved, x_left] = [saved / paper_saved, left / paper_left].map(number);
        let [paper_whole, whole] = [paper_saved + paper_left, saved + left].map(number);
        let [paper_saved, saved, left, decoding, adding] = [paper_saved, saved, left, decoding, adding].map(number);
        format!(
            "Reduction from the first row to the paper's best: 37 % there, {reduction:.0} % here. The changes save \
             {paper_saved} of {paper_whole} ns per posting there, and {saved} of {whole} here: {x_saved} x as much is \
             saved, and {x_left} x as much is left. Of the {left} ns left here, decoding takes {decoding} and adding \
             {adding}; the rest are flags of pages, the heap, and the setup of queries. The accumulators take \
             {accumulators}{caches}."
        )
    }
}

/// Returns the sizes of the L2 and L3 caches, if the operating system reports them.
fn caches() -> Option<String> {
    let size = |level: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size");
        Some(format!("L{level} {}", std::fs::read_to_string(path).ok()?.trim()))
    };
    let known: Vec<String> = [2, 3].into_iter().filter_map(size).collect();
    (!known.is_empty()).then(|| known.join(", "))
}
