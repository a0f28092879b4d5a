//! How much longer queries take in a larger collection, for every engine.

use super::Findings;
use super::queries::ALL;
use crate::result::{Measurement, find_value};
use crate::suite::GrowthPart;
use crate::table::{Table, number};

/// The engines, in the order of the columns.
const ENGINES: [&str; 5] = ["lanner", "lanner-bisected", "pisa-net", "lucene", "tantivy"];

/// Divides the mean times in the larger collection by those in the smaller one. Finds nothing unless both were measured.
pub fn run(part: &GrowthPart, rows: &[Measurement]) -> Findings {
    let documents = |collection: &str| {
        let rows: Vec<Measurement> = rows.iter().filter(|row| row.kind == "collection").cloned().collect();
        find_value(&rows, &[("collection", &collection)], "documents")
    };
    let growth_of_documents = documents(&part.to) / documents(&part.from);
    let of = |collection: &str| {
        let is_whole = |row: &&Measurement| row.kind == "race" && row.label("terms") == ALL;
        rows.iter().filter(is_whole).filter(|row| row.label("collection") == collection).collect::<Vec<_>>()
    };
    let (smaller, larger) = (of(&part.from), of(&part.to));
    let mut grown: Vec<Measurement> = Vec::new();
    for row in &larger {
        let is_same = |other: &&&Measurement| {
            ["log", "answer", "mode", "k", "engine"].iter().all(|name| row.label(name) == other.label(name))
        };
        let Some(before) = smaller.iter().find(is_same) else { continue };
        let mut measurement = Measurement { kind: "growth".to_owned(), ..(*row).clone() };
        measurement.labels.remove("algorithm");
        measurement.labels.insert("collection".to_owned(), format!("{} / {}", part.to, part.from));
        measurement.values.clear();
        grown.push(measurement.with("mean", row.value("mean_us") / before.value("mean_us")));
    }
    if grown.is_empty() {
        return Findings::default();
    }
    let table = table(part, growth_of_documents, &grown);
    Findings::new(grown).table(table)
}

/// A table with a row for each cell and a column for each engine.
fn table(part: &GrowthPart, growth_of_documents: f64, grown: &[Measurement]) -> Table {
    let labels = ["log", "answer", "mode", "k"];
    let is_there = |engine: &&&str| grown.iter().any(|row| row.label("engine") == **engine);
    let engines: Vec<&str> = ENGINES.iter().filter(is_there).copied().collect();
    let title = format!("Growth of the mean from {} to {}", part.from, part.to);
    let mut table = Table::new(title, labels.len(), &[&labels[..], &engines].concat());
    let mut cells: Vec<Vec<String>> = Vec::new();
    for row in grown {
        let cell = labels.map(|name| row.label(name).to_owned()).to_vec();
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    for cell in cells {
        let is_in_cell = |row: &&Measurement| labels.iter().zip(&cell).all(|(name, value)| row.label(name) == value);
        let of_cell: Vec<Measurement> = grown.iter().filter(is_in_cell).cloned().collect();
        let values = engines.iter().map(|engine| number(find_value(&of_cell, &[("engine", engine)], "mean")));
        let values: Vec<String> = values.collect();
        table.row(cell.into_iter().chain(values));
    }
    table.notes(&[&format!(
        "There are {} times as many documents. Queries are reduced to the terms of each collection, so a few of them \
         have more terms in the larger one.",
        number(growth_of_documents)
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_shown_for_cells_that_both_collections_have() {
        let row = |collection: &str, engine: &str, terms: &str, us: f64| {
            let cell: [crate::result::Label<'_>; 4] =
                [("collection", &collection), ("engine", &engine), ("terms", &terms), ("log", &"web")];
            Measurement::new("race", &cell).with("mean_us", us)
        };
        let documents = |collection: &str, count: f64| {
            Measurement::new("collection", &[("collection", &collection)]).with("documents", count)
        };
        let rows = [
            row("small", "lanner", "all", 10.0),
            row("large", "lanner", "all", 25.0),
            row("large", "lucene", "all", 40.0),
            row("small", "lanner", "1-2", 1.0),
            row("large", "lanner", "1-2", 9.0),
            documents("small", 100.0),
            documents("large", 400.0),
        ];
        let part = GrowthPart { from: "small".to_owned(), to: "large".to_owned() };
        let found = run(&part, &rows);
        let values: Vec<f64> = found.measurements.iter().map(|row| row.value("mean")).collect();
        assert_eq!((values, found.measurements[0].label("collection")), (vec![2.5], "large / small"));
        assert!(found.tables[0].to_text().contains("4.00 times as many documents"));
        assert!(run(&part, &rows[1..2]).tables.is_empty());
    }
}
