//! The experiments of suites: each measures, and turns its measurements into tables and charts.

pub mod build;
pub mod codecs;
pub mod gpu;
pub mod lists;
pub mod load;
pub mod open;
mod placement;
pub mod query;
pub mod race;

use crate::cache::Cache;
use crate::collection;
use crate::error::Result;
use crate::only::Only;
use crate::plot::Picture;
use crate::result::Measurement;
use crate::suite::{LogPart, Suite};
use crate::table::Table;
use gpu::DeviceName;
use std::path::PathBuf;

/// Receives progress messages.
pub type Say<'a> = &'a dyn Fn(&str);

/// How a suite is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folder with the files that suites need.
    pub data: PathBuf,
    /// The folder with large collections that are not in `data`.
    pub large: PathBuf,
    /// The folder for results.
    pub out: PathBuf,
    /// The folder of the [`Cache`].
    pub cache: PathBuf,
    pub only: Only,
    pub device: DeviceName,
    /// The path of this program.
    pub program: PathBuf,
    /// The command that reproduces the result, without paths of this machine.
    pub command: String,
}

/// What every experiment of a suite gets.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub suite: &'a Suite,
    pub options: &'a RunOptions,
    pub say: Say<'a>,
}

impl Context<'_> {
    /// Returns the part of the cache for an experiment or a collection.
    pub fn cache(&self, name: &str) -> Cache {
        Cache::new(self.options.cache.join(name))
    }

    /// Whether `--only` keeps a value of a key.
    pub fn keeps(&self, key: &str, value: impl ToString) -> bool {
        self.options.only.keeps(key, value)
    }

    /// Returns the values that `--only` keeps.
    pub fn kept<T: Copy + ToString>(&self, key: &str, values: &[T]) -> Vec<T> {
        values.iter().copied().filter(|value| self.keeps(key, value.to_string())).collect()
    }

    /// Reads all queries of a log.
    pub fn read_log(&self, log: &LogPart) -> Result<Vec<String>> {
        collection::read_log(log, &self.suite.collection, &self.options.data)
    }
}

/// What an experiment produces.
#[derive(Debug, Default)]
pub struct Findings {
    pub measurements: Vec<Measurement>,
    pub tables: Vec<Table>,
    /// Charts with the suffixes of their file names.
    pub charts: Vec<(String, Picture)>,
}

impl Findings {
    pub fn new(measurements: Vec<Measurement>) -> Findings {
        Findings { measurements, ..Findings::default() }
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Findings {
        self.tables.push(table);
        self
    }

    /// Adds a chart with the suffix of its file name.
    pub fn chart(mut self, suffix: impl Into<String>, chart: impl Into<Picture>) -> Findings {
        self.charts.push((suffix.into(), chart.into()));
        self
    }

    /// Appends the findings of another experiment.
    pub fn extend(&mut self, other: Findings) {
        self.measurements.extend(other.measurements);
        self.tables.extend(other.tables);
        self.charts.extend(other.charts);
    }
}
