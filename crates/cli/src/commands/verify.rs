//! `lanner verify`: checks every checksum and every structure of an index.

use crate::failure::Failure;
use crate::quantity::{bytes, count, duration};
use crate::terminal::printable_path;
use crate::whole_file::{stdout, write_json_line};
use lanner::Index;
use lanner_index::open::Verified;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Read a whole index and check it; an error names the first damaged section
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    verified: Verified,
    generation: u64,
    seconds: f64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let index = Index::open(&arguments.index)?;
    let verified = index.verify()?;
    let time = start.elapsed();
    let generation = index.manifest().generation;
    let mut out = stdout();
    if arguments.json {
        let report = Report { verified, generation, seconds: time.as_secs_f64() };
        write_json_line(&report, &mut out)?;
    } else {
        let Verified { documents, terms, postings, .. } = verified;
        writeln!(out, "{}: generation {generation} is sound", printable_path(&arguments.index))?;
        let counts = [("documents", documents), ("terms", terms), ("postings", postings)];
        let counts = counts.map(|(noun, number)| format!("{} {noun}", count(number)));
        writeln!(out, "read {}: {} in {}", bytes(verified.bytes), counts.join(", "), duration(time))?;
    }
    out.flush()?;
    Ok(())
}
