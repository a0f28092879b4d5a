//! Bytes of the lists of every engine: documents and frequencies, with directories.

use super::contestant::Contestant;
use super::setup::Setup;
use super::tables::holds;
use super::{Findings, Race};
use crate::engines;
use crate::error::Result;
use crate::result::Measurement;
use crate::suite::QueryEngine;
use crate::table::{DASH, Table, count, number};
use lanner_index::open::Index;
use std::path::Path;

/// Compares the sizes of lists.
pub fn run(race: &Race<'_>, setup: &Setup, contestants: &[Contestant]) -> Result<Findings> {
    let lanner = &setup.lanner;
    let indexes = [
        ("lanner", Some(&lanner.default)),
        ("lanner-bisected", lanner.bisected.as_ref()),
        ("lanner-smallest", Some(&lanner.smallest)),
        ("lanner-smallest-bisected", lanner.smallest_bisected.as_ref()),
    ];
    let mut sizes = Vec::new();
    for (name, folder) in indexes.into_iter().filter_map(|(name, folder)| Some((name, folder?))) {
        sizes.push((name.to_owned(), lists_of(QueryEngine::Lanner, folder, |part| part.ends_with("-lists"))?));
    }
    if let Some(folder) = &setup.tantivy {
        sizes.push(("tantivy".to_owned(), lists_of(QueryEngine::Tantivy, folder, |part| part == "idx")?));
    }
    for contestant in contestants {
        if let Some(about) = contestant.about() {
            sizes.push((contestant.engine.to_string(), about.list_bytes));
            if about.bound_bytes > 0 {
                sizes.push((format!("{}-with-bounds", contestant.engine), about.list_bytes + about.bound_bytes));
            }
        }
    }
    let postings = Index::open(&lanner.default)?.segment().header().postings;
    Ok(findings(race, &setup.name, postings, &sizes))
}

/// Returns the bytes of the parts of an index that hold lists.
fn lists_of(engine: QueryEngine, folder: &Path, is_list: fn(&str) -> bool) -> Result<u64> {
    let parts = engines::parts(engine, folder)?;
    Ok(parts.iter().filter(|(part, _)| is_list(part)).map(|(_, bytes)| bytes).sum())
}

fn findings(race: &Race<'_>, collection: &str, postings: u64, sizes: &[(String, u64)]) -> Findings {
    let bytes_of =
        |name: &str| sizes.iter().find(|(engine, _)| engine == name).map_or(f64::NAN, |(_, bytes)| *bytes as f64);
    let columns =
        ["engine", "bytes", "bits per posting", "x PISA", "x PISA with bounds", "x Tantivy", "at most", "holds"];
    let mut table = Table::new(format!("{collection}: bytes of the lists"), 1, &columns);
    let mut measurements = Vec::new();
    for (engine, bytes) in sizes {
        let values = [
            ("bits_a_posting", *bytes as f64 * 8.0 / postings as f64),
            ("x_pisa", *bytes as f64 / bytes_of("pisa")),
            ("x_pisa_with_bounds", *bytes as f64 / bytes_of("pisa-with-bounds")),
            ("x_tantivy", *bytes as f64 / bytes_of("tantivy")),
        ];
        let measurement = Measurement::new("lists", &[("collection", &collection), ("engine", engine)]);
        let measurement = measurement.with("bytes", *bytes as f64);
        let known = values.iter().filter(|(_, value)| !value.is_nan());
        let measurement = known.fold(measurement, |row, (name, value)| row.with(name, *value));
        let limits = ["x_pisa", "x_tantivy"].map(|value| (value, race.context.suite.limit(&measurement, value)));
        let limit = limits.iter().find_map(|(_, limit)| *limit).map_or(DASH.to_owned(), number);
        let figures = limits.map(|(value, limit)| (value.replace("x_", ""), measurement.value(value), limit));
        let cells = values.iter().map(|(_, value)| number(*value));
        let holds = holds(&figures);
        table.row([engine.clone(), count(*bytes)].into_iter().chain(cells).chain([limit, holds]));
        measurements.push(measurement);
    }
    let codecs = race.part.smallest_codecs;
    let table = table.notes(&[
        &format!(
            "lanner has dense lists; lanner-smallest has none and packs documents by {} and frequencies by {}.",
            codecs.documents, codecs.weights
        ),
        "Lanner's lists contain documents, frequencies, directories and bounds; Tantivy's are its files of postings \
         (.idx), with bounds; PISA's are block_simdbp without bounds, which are in another file; bm25s stores a score \
         and a document with four bytes each. The limits are for the ratios to PISA without bounds and to Tantivy.",
    ]);
    Findings::new(measurements).table(table)
}
