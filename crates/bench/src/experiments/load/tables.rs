//! Tables of measurements under load.

use crate::result::Measurement;
use crate::table::Table;

/// The labels of queries.
pub const QUERIES: [&str; 2] = ["log", "mode"];
/// Median, minimum and maximum of rates.
pub const RATE: [&str; 3] = ["queries_a_second", "queries_a_second_least", "queries_a_second_most"];
/// Percentiles of delays under their headings.
pub const DELAYS: [(&str, &str); 5] =
    [("mean", "mean_us"), ("p50", "p50_us"), ("p99", "p99_us"), ("p99.9", "p999_us"), ("longest", "longest_us")];

/// Makes a table of the rows with labels and values under their headings.
pub fn table(title: &str, rows: &[Measurement], labels: &[&str], figures: &[(&str, &str)]) -> Table {
    let (heads, values): (Vec<&str>, Vec<&str>) = figures.iter().copied().unzip();
    let mut table = Table::new(title, labels.len(), &[labels, &heads].concat());
    rows.iter().for_each(|row| table.row(row.cells(labels, &values)));
    table
}
