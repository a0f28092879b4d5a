//! Bytes of the lists of every engine: documents and frequencies, with what lies between them.

use super::contestant::Contestant;
use super::ground::Ground;
use super::tables::holds;
use super::{Findings, Race};
use crate::engines;
use crate::error::BenchError;
use crate::result::Measurement;
use crate::suite::QueryEngine;
use crate::table::{Table, count, number};
use lanner_index::open::Index;
use std::path::Path;

/// Compares the sizes.
pub fn run(race: &Race<'_>, ground: &Ground, contestants: &[Contestant]) -> Result<Findings, BenchError> {
    let our = &ground.ours;
    let indexes = [
        ("lanner", Some(&our.lanner)),
        ("lanner-bisected", our.bisected.as_ref()),
        ("lanner-smallest", Some(&our.smallest)),
        ("lanner-smallest-bisected", our.smallest_bisected.as_ref()),
    ];
    let mut sizes = Vec::new();
    for (name, folder) in indexes.into_iter().filter_map(|(name, folder)| Some((name, folder?))) {
        sizes.push((name.to_owned(), ours(folder)?));
    }
    if let Some(folder) = &ground.tantivy {
        let parts = engines::parts(QueryEngine::Tantivy, folder)?;
        sizes
            .push(("tantivy".to_owned(), parts.iter().filter(|(part, _)| part == "idx").map(|(_, bytes)| bytes).sum()));
    }
    for contestant in contestants {
        if let Some((lists, bounds)) = contestant.list_bytes() {
            sizes.push((contestant.engine.to_string(), lists));
            if bounds > 0 {
                sizes.push((format!("{}-with-bounds", contestant.engine), lists + bounds));
            }
        }
    }
    let postings = Index::open(&ground.ours.lanner)?.segment().header().postings;
    Ok(findings(race, &ground.name, postings, &sizes))
}

/// The sections of lists; bounds and directories are in them.
fn ours(folder: &Path) -> Result<u64, BenchError> {
    let parts = engines::parts(QueryEngine::Lanner, folder)?;
    Ok(parts.iter().filter(|(section, _)| section.ends_with("-lists")).map(|(_, bytes)| bytes).sum())
}

fn findings(race: &Race<'_>, collection: &str, postings: u64, sizes: &[(String, u64)]) -> Findings {
    let bytes_of =
        |name: &str| sizes.iter().find(|(engine, _)| engine == name).map_or(f64::NAN, |(_, bytes)| *bytes as f64);
    let columns =
        ["engine", "bytes", "bits a posting", "x PISA", "x PISA with bounds", "x Tantivy", "at most", "holds"];
    let mut table = Table::new(format!("{collection}: bytes of the lists"), 1, &columns);
    let mut measurements = Vec::new();
    for (engine, bytes) in sizes {
        let values = [
            ("bits_a_posting", *bytes as f64 * 8.0 / postings as f64),
            ("x_pisa", *bytes as f64 / bytes_of("pisa")),
            ("x_pisa_with_bounds", *bytes as f64 / bytes_of("pisa-with-bounds")),
            ("x_tantivy", *bytes as f64 / bytes_of("tantivy")),
        ];
        let measurement = Measurement::new("lists", &[("collection", collection), ("engine", engine)]);
        let measurement = measurement.with("bytes", *bytes as f64);
        let known = values.iter().filter(|(_, value)| !value.is_nan());
        let measurement = known.fold(measurement, |row, (name, value)| row.with(name, *value));
        let claims = ["x_pisa", "x_tantivy"].map(|value| (value, race.suite.limit(&measurement, value)));
        let limit = claims.iter().find_map(|(_, limit)| *limit).map_or("–".to_owned(), number);
        let figures = claims.map(|(value, limit)| (value.replace("x_", ""), measurement.value(value), limit));
        let cells = values.iter().map(|(_, value)| number(*value));
        let holds = holds(&figures);
        table.row([engine.clone(), count(*bytes)].into_iter().chain(cells).chain([limit, holds]).collect());
        measurements.push(measurement);
    }
    let codecs = race.part.smallest_codecs;
    table.notes = vec![
        format!(
            "lanner has dense lists, lanner-smallest has none: documents by {}, frequencies by {}.",
            codecs.documents, codecs.weights
        ),
        "Ours hold documents, frequencies, directories and bounds; Tantivy's are its files of postings (.idx), with \
         bounds; PISA's are block_simdbp without bounds, which lie in another file; bm25s keeps a score of four bytes \
         and a document of four. What may be at most so large is the ratio to PISA without bounds and to Tantivy."
            .to_owned(),
    ];
    Findings { measurements, tables: vec![table], charts: Vec::new() }
}
