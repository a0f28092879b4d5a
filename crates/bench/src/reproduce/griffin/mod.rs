//! Griffin (Liu et al.): Table 1, compression ratios; Figure 7, ranking; Figure 8, crossover of CPU and GPU; Figure 12,
//! decoding, with an entry for the CPU alone; Figure 13, intersection.

mod decoding;
mod intersection;
mod ranking;

use super::{Entry, Run};
use crate::experiments::Findings;
use crate::experiments::codecs::{bits_per_posting, class_name, class_start, rows_of};
use crate::plot::{Bar, Chart, Group, Line, LineChart};
use crate::result::Measurement;
use crate::table::{DASH, Table, number};
use lanner_index::codec::CodecName;

/// Table 1: the scheme, its mean compression ratio with blocks of 128, and our closest codec.
const TABLE_1: [(&str, f64, &str); 2] = [("PforDelta", 3.3, "pfor-block"), ("EF", 4.6, "elias-fano")];
/// Minimal length of the lists; the paper's lists have at least a thousand postings.
const AT_LEAST: u64 = 256;
/// Minimal length of the lists of Figure 12.
const FIGURE_12_AT_LEAST: u64 = 1024;
/// Figure 12: the text gives only ranges of the speedup of the GPU over PForDelta on the CPU, by list length.
const FIGURE_12: [(u64, &str); 3] =
    [(1024, "below 2"), (16_384, "below 2, then about 11"), (65_536, "about 11 to 29.6")];

pub fn entries() -> Vec<Entry> {
    let new = Entry::new;
    vec![
        new("griffin/table1", "compression ratio of PForDelta and Elias-Fano", Run::Codecs(table_1)),
        new("griffin/figure12", "decoding by list length, CPU side", Run::Codecs(figure_12)),
        new("griffin/figure7", "selecting the best results", Run::Gpu(ranking::figure_7)),
        new("griffin/figure8", "crossover of GPU and CPU by ratio of lengths", Run::Gpu(intersection::figure_8)),
        new("griffin/figure12-gpu", "decoding by list length, GPU and CPU", Run::Gpu(decoding::figure_12)),
        new("griffin/figure13", "intersection of lists of comparable lengths", Run::Gpu(intersection::figure_13)),
    ]
}

fn table_1(rows: Vec<Measurement>) -> Findings {
    let columns = ["scheme", "paper's ratio", "our codec", "ours, bits per document", "our ratio"];
    let mut table = Table::new("Compression ratio of document numbers (32 bits divided by theirs)", 3, &columns);
    let bits = |codec: &str| bits_per_posting(&rows, (codec, "documents"), AT_LEAST);
    let mut groups = Vec::new();
    for (scheme, paper, codec) in TABLE_1 {
        let ratio = 32.0 / bits(codec);
        table.row([scheme.to_owned(), number(paper), codec.to_owned(), number(bits(codec)), number(ratio)]);
        groups.push(Group::of_series(format!("{codec} ({scheme})"), [paper, ratio]));
    }
    let is_other = |codec: &String| TABLE_1.iter().all(|(_, _, of_paper)| of_paper != codec);
    for codec in CodecName::ALL.map(|codec| codec.to_string()).into_iter().filter(is_other) {
        let ratio = 32.0 / bits(&codec);
        table.row([DASH.to_owned(), DASH.to_owned(), codec.clone(), number(bits(&codec)), number(ratio)]);
        groups.push(Group::new(codec, [Bar::new(1, ratio)]));
    }
    let table = table.notes(&[&format!(
        "The paper: lists of a web crawl. Ours: all lists of the Wikipedia passages with at least {AT_LEAST} postings; \
         gaps depend on the collection. A dash: the paper has no such scheme, or this version no such codec."
    )]);
    let subtitle = format!("lists of at least {AT_LEAST} postings; longer is better");
    let chart = Chart::new("Compression ratio of document numbers", subtitle, "x")
        .series(&["the paper, a web crawl", "ours, the Wikipedia passages"])
        .groups(groups);
    Findings::new(rows).table(table).chart("ratio", chart)
}

fn figure_12(rows: Vec<Measurement>) -> Findings {
    let codecs = CodecName::ALL.map(|codec| codec.to_string());
    let columns = ["postings"].into_iter().chain(codecs.iter().map(String::as_str)).chain(["paper: GPU over its CPU"]);
    let columns: Vec<&str> = columns.collect();
    let mut table = Table::new("Microseconds to decode the documents of an average list, one core", 1, &columns);
    for row in long_lists(&rows, &codecs[0]) {
        let of = |codec: &String| {
            let same = long_lists(&rows, codec).find(|other| class_start(other) == class_start(row));
            number(same.map_or(f64::NAN, average_list_us))
        };
        let paper = FIGURE_12.iter().rev().find(|(from, _)| *from <= class_start(row)).map_or(DASH, |(_, words)| words);
        table.row([class_name(row)].into_iter().chain(codecs.iter().map(of)).chain([paper.to_owned()]));
    }
    let table = table.notes(&[
        "The text of the paper gives only these speedups of its GPU over PForDelta on its CPU, for lists of 1 K to 10 \
         M; griffin/figure12-gpu measures the GPU.",
    ]);
    let point = |row| (class_start(row) as f64, average_list_us(row));
    let subtitle = "microseconds for the documents of an average list of the class; lower is better";
    let chart = LineChart::new("Decoding a list, one core", subtitle, ["postings in the list, at least", "us"])
        .lines(codecs.iter().map(|codec| Line::new(codec, long_lists(&rows, codec).map(point))));
    Findings::new(rows.clone()).table(table).chart("time", chart)
}

/// Returns the rows of a codec for the lists of Figure 12.
fn long_lists<'a>(rows: &'a [Measurement], codec: &'a str) -> impl Iterator<Item = &'a Measurement> {
    rows_of(rows, codec, "documents").filter(|row| class_start(row) >= FIGURE_12_AT_LEAST)
}

fn average_list_us(row: &Measurement) -> f64 {
    row.value("postings") / row.value("lists") / row.value("values_a_ns") / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Picture;

    #[test]
    fn tables_have_the_numbers_of_the_paper_and_ours() {
        let row = |codec: &str, bytes: f64| {
            Measurement::new("codec", &[("codec", &codec), ("stream", &"documents"), ("at_least", &"1024")])
                .with("lists", 2.0)
                .with("postings", 4000.0)
                .with("stream_bytes", bytes)
                .with("values_a_ns", 2.0)
        };
        let rows = vec![row("raw", 16_000.0), row("elias-fano", 4000.0)];
        let ratios = table_1(rows.clone());
        assert_eq!(ratios.tables[0].rows[1], ["EF", "4.60", "elias-fano", "8.00", "4.00"]);
        assert_eq!(ratios.tables[0].rows[0][3..], [DASH, DASH], "a codec without measurements");
        let Picture::Bars(chart) = &ratios.charts[0].1 else { panic!("bars") };
        let bars: Vec<(usize, f64)> = chart.groups[1].bars.iter().map(|bar| (bar.series, bar.value)).collect();
        assert_eq!((chart.groups[1].label.as_str(), bars), ("elias-fano (EF)", vec![(0, 4.6), (1, 4.0)]));
        let times = figure_12(rows);
        assert_eq!(times.tables[0].rows[0][..2], ["1,024 – 4,095", "1.00"]);
        assert_eq!(times.tables[0].rows[0].last().unwrap(), "below 2");
    }
}
