//! How long it takes until an index can be asked, and until it has answered for the first time.

use super::Findings;
use super::build::Indexes;
use crate::engines;
use crate::error::BenchError;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::suite::OpenPart;
use crate::table::{Table, number};
use lanner::Mode;
use lanner_index::text::Analyzer;
use std::time::Instant;

/// Opens every index as often as the suite says. The files are in memory: they were written a moment ago.
pub fn run(part: &OpenPart, indexes: &Indexes, analyzer: &Analyzer) -> Result<Findings, BenchError> {
    let mut findings = Findings::default();
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
        let (opened, answered) = (Spread::of(&opened), Spread::of(&answered));
        let engine = reader.to_string();
        findings.measurements.push(
            Measurement::new("open", &[("engine", &engine)])
                .with("median_ms", opened.median)
                .with("least_ms", opened.least)
                .with("most_ms", opened.most)
                .with("first_answer_ms", answered.median),
        );
        let cells = [opened.median, opened.least, opened.most, answered.median].map(number);
        table.row([vec![engine], cells.to_vec()].concat());
    }
    table.notes = vec![format!("{} openings each, files in memory.", part.repetitions.max(1))];
    findings.tables.push(table);
    Ok(findings)
}
