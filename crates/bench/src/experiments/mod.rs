//! The parts of a suite: each measures, and turns what it measured into tables and charts.

pub mod build;
pub mod codecs;
pub mod gpu;
pub mod open;
pub mod query;
pub mod race;

use crate::plot::Picture;
use crate::result::Measurement;
use crate::table::Table;

/// What a part of a suite gives.
#[derive(Debug, Default)]
pub struct Findings {
    /// Every number.
    pub measurements: Vec<Measurement>,
    /// The numbers for people.
    pub tables: Vec<Table>,
    /// The numbers as pictures: the end of a file name, and the chart.
    pub charts: Vec<(String, Picture)>,
}

impl Findings {
    /// Takes what another part gave.
    pub fn extend(&mut self, other: Findings) {
        self.measurements.extend(other.measurements);
        self.tables.extend(other.tables);
        self.charts.extend(other.charts);
    }
}
