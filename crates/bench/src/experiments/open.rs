//! Time to open an index, and to answer a first query.

use super::Findings;
use super::build::Indexes;
use crate::engines;
use crate::error::Result;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::OpenPart;
use crate::table::Table;
use lanner::Mode;
use lanner_index::text::Analyzer;
use std::time::Instant;

/// Opens every index repeatedly. The files are in the page cache, because they were just written.
pub fn run(part: &OpenPart, indexes: &Indexes, analyzer: &Analyzer) -> Result<Findings> {
    let mut measurements = Vec::new();
    let columns = ["engine", "open, median ms", "least", "most", "open and answer once, median ms"];
    let mut table = Table::new("Opening the index", 1, &columns);
    for (&reader, folder) in indexes {
        let (mut opened, mut answered) = (Vec::new(), Vec::new());
        for _ in 0..part.repetitions.max(1) {
            let start = Instant::now();
            let engine = engines::open(reader, folder, analyzer)?;
            opened.push(start.elapsed().as_secs_f64() * 1e3);
            engine.answer("the first query", Mode::Or, 10)?;
            answered.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let (opened, answered) = (Spread::of(opened), Spread::of(answered));
        let row = Measurement::new("open", &[("engine", &reader)]).with("first_answer_ms", answered.median);
        measurements.push(row.with_spread(["median_ms", "least_ms", "most_ms"], opened));
        table.numbers(&reader.to_string(), opened.values().into_iter().chain([answered.median]));
    }
    let note = format!("Each index was opened {} times, with files in memory.", part.repetitions.max(1));
    Ok(Findings::new(measurements).table(table.notes(&[&note])))
}
