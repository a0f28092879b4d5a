//! Griffin (Liu et al.): Table 1, compression ratios; Figures 7, ranking, 8, where CPU and GPU cross over, 12, decoding,
//! of which the CPU side is an entry of its own, and 13, intersection.

mod decoding;
mod intersection;
mod ranking;

use super::{Entry, Reproduction, Side};
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::codecs::{bits_from, rows_of};
use crate::plot::{Bar, Chart, Group, Line, LineChart, Picture};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner_index::codec::CodecName;

/// Table 1: the mean compression ratio of PForDelta and of Elias-Fano, blocks of 128, with the codec of ours that is
/// nearest.
const TABLE_1: [(&str, f64, &str); 2] = [("PforDelta", 3.3, "pfor-block"), ("EF", 4.6, "elias-fano")];
/// Lists of a full block at least: shorter ones are hardly lists, and the paper's begin at a thousand.
const AT_LEAST: f64 = 256.0;
/// Figure 12, in words: the speedup of decoding on the paper's GPU over PForDelta on its CPU, by the length of lists.
const FIGURE_12: [(u64, &str); 3] =
    [(1024, "below 2"), (16_384, "below 2, then about 11"), (65_536, "about 11 to 29.6")];

/// What of this paper can be reproduced.
pub fn entries() -> Vec<Entry> {
    let entry = |side, name, title, run| Entry { name, title, side, targets: Vec::new(), run };
    let (cpu, gpu) = (Side::Cpu, Side::Gpu);
    vec![
        entry(cpu, "griffin/table1", "compression ratio of PForDelta and Elias-Fano", table_1),
        entry(cpu, "griffin/figure12", "decoding by the length of the list, CPU side", figure_12),
        entry(gpu, "griffin/figure7", "selecting the best results", ranking::figure_7),
        entry(gpu, "griffin/figure8", "where GPU and CPU cross over, by the ratio of lengths", intersection::figure_8),
        entry(gpu, "griffin/figure12-gpu", "decoding by the length of the list, GPU and CPU", decoding::figure_12),
        entry(gpu, "griffin/figure13", "intersection of lists of comparable lengths", intersection::figure_13),
    ]
}

fn table_1(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let rows = reproduction.codecs()?;
    Ok(ratio_findings(rows))
}

fn ratio_findings(rows: Vec<Measurement>) -> Findings {
    let columns = ["scheme", "paper", "our codec", "ours, bits a document", "ours"];
    let mut table = Table::new("Compression ratio of document numbers (32 bits divided by theirs)", 3, &columns);
    table.columns[1] = "paper's ratio".to_owned();
    table.columns[4] = "our ratio".to_owned();
    let bits = |codec: &str| bits_from(&rows, codec, "documents", AT_LEAST);
    let bar = |series, value| Bar { series, value, range: None };
    let mut groups = Vec::new();
    for (scheme, paper, codec) in TABLE_1 {
        let (bits, ratio) = (bits(codec), 32.0 / bits(codec));
        table.row(vec![scheme.to_owned(), number(paper), codec.to_owned(), number(bits), number(ratio)]);
        groups.push(Group { label: format!("{codec} ({scheme})"), bars: vec![bar(0, paper), bar(1, ratio)] });
    }
    let is_other = |codec: &String| TABLE_1.iter().all(|(_, _, of_paper)| of_paper != codec);
    for codec in CodecName::ALL.map(|codec| codec.to_string()).into_iter().filter(is_other) {
        let (bits, ratio) = (bits(&codec), 32.0 / bits(&codec));
        table.row(vec!["–".to_owned(), "–".to_owned(), codec.clone(), number(bits), number(ratio)]);
        groups.push(Group { label: codec, bars: vec![bar(1, ratio)] });
    }
    table.notes = vec![format!(
        "The paper: lists of a web crawl; ours: all lists of at least {AT_LEAST} postings of the Wikipedia passages, whose \
         gaps are smaller or larger as the collection is. A dash: the paper has no such scheme, or this version no such codec."
    )];
    let chart = Chart {
        title: "Compression ratio of document numbers".to_owned(),
        subtitle: format!("lists of at least {AT_LEAST} postings; longer is better"),
        series: vec!["the paper, a web crawl".to_owned(), "ours, the Wikipedia passages".to_owned()],
        unit: "x".to_owned(),
        groups,
    };
    let charts = vec![("ratio".to_owned(), Picture::Bars(chart))];
    Findings { measurements: rows, tables: vec![table], charts }
}

fn figure_12(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    Ok(time_findings(reproduction.codecs()?))
}

fn time_findings(rows: Vec<Measurement>) -> Findings {
    let codecs = CodecName::ALL.map(|codec| codec.to_string());
    let columns = ["postings"].into_iter().chain(codecs.iter().map(String::as_str)).chain(["paper: GPU over its CPU"]);
    let columns: Vec<&str> = columns.collect();
    let mut table = Table::new("Microseconds to decode the documents of an average list, one core", 1, &columns);
    for row in rows_of(&rows, &codecs[0], "documents").filter(|row| least(row) >= 1024) {
        let of = |codec: &String| {
            let same = rows_of(&rows, codec, "documents").find(|other| least(other) == least(row));
            number(same.map_or(f64::NAN, average_list_us))
        };
        let paper = FIGURE_12.iter().rev().find(|(from, _)| *from <= least(row)).map_or("–", |(_, words)| words);
        let head = format!("{} – {}", count(least(row)), count(4 * least(row) - 1));
        table.row([head].into_iter().chain(codecs.iter().map(of)).chain([paper.to_owned()]).collect());
    }
    table.notes = vec![
        "The paper's figure has no numbers in its text but these speedups, of its GPU over PForDelta on its CPU, for lists \
         of 1 K to 10 M; the GPU side is griffin/figure12-gpu."
            .to_owned(),
    ];
    let line = |codec: &String| {
        let long = rows_of(&rows, codec, "documents").filter(|row| least(row) >= 1024);
        Line { label: codec.clone(), points: long.map(|row| (least(row) as f64, average_list_us(row))).collect() }
    };
    let chart = LineChart {
        title: "Decoding a list, one core".to_owned(),
        subtitle: "microseconds for the documents of an average list of the class; lower is better".to_owned(),
        x_label: "postings in the list, at least".to_owned(),
        unit: "us".to_owned(),
        is_logarithmic: false,
        lines: codecs.iter().map(line).collect(),
    };
    Findings {
        measurements: rows.clone(),
        tables: vec![table],
        charts: vec![("time".to_owned(), Picture::Lines(chart))],
    }
}

fn least(row: &Measurement) -> u64 {
    row.label("at_least").parse().unwrap_or(0)
}

fn average_list_us(row: &Measurement) -> f64 {
    row.value("postings") / row.value("lists") / row.value("values_a_ns") / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_figures_stand_beside_ours() {
        let row = |codec: &str, bytes: f64| {
            Measurement::new("codec", &[("codec", codec), ("stream", "documents"), ("at_least", "1024")])
                .with("lists", 2.0)
                .with("postings", 4000.0)
                .with("stream_bytes", bytes)
                .with("values_a_ns", 2.0)
        };
        let rows = vec![row("raw", 16_000.0), row("elias-fano", 4000.0)];
        let table = &ratio_findings(rows.clone()).tables[0];
        assert_eq!(table.rows[1], ["EF", "4.60", "elias-fano", "8.00", "4.00"]);
        assert_eq!(table.rows[0][3..], ["–", "–"], "a codec that is not there");
        let Picture::Bars(chart) = &ratio_findings(rows.clone()).charts[0].1 else { panic!("bars") };
        let bars: Vec<(usize, f64)> = chart.groups[1].bars.iter().map(|bar| (bar.series, bar.value)).collect();
        assert_eq!((chart.groups[1].label.as_str(), bars), ("elias-fano (EF)", vec![(0, 4.6), (1, 4.0)]));
        let times = time_findings(rows);
        assert_eq!(times.tables[0].rows[0][..2], ["1,024 – 4,095", "1.00"]);
        assert_eq!(times.tables[0].rows[0].last().unwrap(), "below 2");
    }
}
