//! Bytes of the lists of every engine: documents and frequencies, with what lies between them.

use super::contestant::Contestant;
use super::ground::Ground;
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
    let mut sizes = vec![
        ("lanner".to_owned(), ours(&ground.lanner)?),
        (format!("lanner-smallest ({})", race.part.smallest_codecs), ours(&ground.smallest)?),
    ];
    if let Some(folder) = &ground.bisected {
        sizes.push(("lanner-bisected".to_owned(), ours(folder)?));
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
                sizes.push((format!("{} with bounds", contestant.engine), lists + bounds));
            }
        }
    }
    let postings = Index::open(&ground.lanner)?.segment().header().postings;
    Ok(findings(&ground.name, postings, &sizes))
}

/// The sections of lists; bounds and directories are in them.
fn ours(folder: &Path) -> Result<u64, BenchError> {
    let parts = engines::parts(QueryEngine::Lanner, folder)?;
    Ok(parts.iter().filter(|(section, _)| section.ends_with("-lists")).map(|(_, bytes)| bytes).sum())
}

fn findings(collection: &str, postings: u64, sizes: &[(String, u64)]) -> Findings {
    let bytes_of =
        |name: &str| sizes.iter().find(|(engine, _)| engine == name).map_or(f64::NAN, |(_, bytes)| *bytes as f64);
    let columns = ["engine", "bytes", "bits a posting", "x PISA", "x Tantivy"];
    let mut table = Table::new(format!("{collection}: bytes of the lists"), 1, &columns);
    let mut measurements = Vec::new();
    for (engine, bytes) in sizes {
        let values = [
            ("bits_a_posting", *bytes as f64 * 8.0 / postings as f64),
            ("x_pisa", *bytes as f64 / bytes_of("pisa")),
            ("x_tantivy", *bytes as f64 / bytes_of("tantivy")),
        ];
        let name = engine.split(' ').next().unwrap_or_default();
        let name = if engine.ends_with("bounds") { "pisa-with-bounds" } else { name };
        let measurement = Measurement::new("lists", &[("collection", collection), ("engine", name)]);
        let measurement = measurement.with("bytes", *bytes as f64);
        let known = values.iter().filter(|(_, value)| !value.is_nan());
        measurements.push(known.fold(measurement, |row, (name, value)| row.with(name, *value)));
        let cells = values.iter().map(|(_, value)| number(*value));
        table.row([engine.clone(), count(*bytes)].into_iter().chain(cells).collect());
    }
    table.notes = vec![
        "Ours hold documents, frequencies, directories and bounds; Tantivy's are its files of postings (.idx), with \
         bounds; PISA's are block_simdbp without bounds, which lie in another file; bm25s keeps a score of four bytes \
         and a document of four."
            .to_owned(),
    ];
    Findings { measurements, tables: vec![table], charts: Vec::new() }
}
