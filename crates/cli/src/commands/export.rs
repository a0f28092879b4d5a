//! `lanner export`: writes an index in a format that other engines read.

use crate::failure::Failure;
use crate::quantity::{count, duration};
use crate::terminal::tell;
use crate::whole_file::Output;
use lanner::Index;
use lanner_index::open::{Column, export_ciff};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

/// Write an index in a format that other engines read
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The file to write, or `-` for standard output
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// The format: ciff, the Common Index File Format
    #[arg(long, value_name = "FORMAT", default_value = "ciff")]
    format: ExportFormat,
    /// What postings carry: frequencies, or impacts in their place for engines that add impacts
    #[arg(long, value_name = "VALUES", default_value = "frequencies")]
    values: ExportedValues,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug)]
struct ExportedValues(Column);

impl FromStr for ExportedValues {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "frequencies" => Ok(ExportedValues(Column::Frequency)),
            "impacts" => Ok(ExportedValues(Column::Impact)),
            _ => Err(format!("unknown values {name:?}; export frequencies or impacts")),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum ExportFormat {
    Ciff,
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "ciff" => Ok(ExportFormat::Ciff),
            _ => Err(format!("unknown format {name:?}; an index can be exported as ciff")),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let ExportFormat::Ciff = arguments.format;
    let index = Index::open(&arguments.index)?;
    let mut output = Output::create(&arguments.output)?;
    export_ciff(&index, arguments.values.0, &mut output)?;
    output.finish()?;
    if !arguments.quiet {
        let target = match arguments.output == Path::new("-") {
            true => "standard output".to_owned(),
            false => arguments.output.display().to_string(),
        };
        let header = index.segment().header();
        let lists = format!("{} lists, {} documents", count(header.terms), count(u64::from(header.documents)));
        tell(&format!("{target}: {lists}, written as CIFF in {}", duration(start.elapsed())));
    }
    Ok(())
}
