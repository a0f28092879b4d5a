//! Ding et al., using graphics processors for IR: Figure 3, bytes of a document number; Table 1, decode speeds, of which
//! the CPU side is an entry of its own, and Figure 4, by length; Figure 6, intersection; Tables 2 and 3, queries.

mod decoding;
mod merge_find;
mod queries;
mod steps;
mod traced;

use super::{Entry, Reproduction, Side};
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::codecs::{bits_from, values_a_ns_from};
use crate::plot::{Bar, Chart, Group, Picture};
use crate::result::Measurement;
use crate::table::{Table, number};
use lanner_index::codec::CodecName;

/// Figure 3, in words, since its bars have no numbers: our codec, the paper's method, and what the paper says of it.
const FIGURE_3: [(&str, &str, &str); 3] = [
    ("rice", "Rice", "the smallest"),
    ("pfor-block", "PForDelta with a width for each block", "slightly larger than with one level of recursion"),
    ("pfor", "PForDelta, one width a list, recursive exceptions", "one level slightly under a width for each block"),
];
/// Table 1: millions of integers a second on the paper's CPU and GPU, and our codec.
const TABLE_1: [(&str, f64, f64, &str); 2] =
    [("Rice", 310.63, 305.27, "rice"), ("PForDelta", 1165.13, 1237.57, "pfor")];
/// Lists of at least so many postings.
const AT_LEAST: f64 = 256.0;

/// What of this paper can be reproduced.
pub fn entries() -> Vec<Entry> {
    let entry = |side, name, title, run| Entry { name, title, side, targets: Vec::new(), run };
    let (cpu, gpu) = (Side::Cpu, Side::Gpu);
    vec![
        entry(cpu, "gpu-ir/figure3", "bytes of a document number", figure_3),
        entry(cpu, "gpu-ir/table1", "decode speed in millions of integers a second", table_1),
        entry(
            gpu,
            "gpu-ir/table1-gpu",
            "decode speed on GPU and CPU, millions of integers a second",
            decoding::table_1,
        ),
        entry(gpu, "gpu-ir/figure4", "decode speed of PForDelta by the length of the list", decoding::figure_4),
        entry(gpu, "gpu-ir/figure6", "intersection by Parallel Merge Find", merge_find::figure_6),
        entry(gpu, "gpu-ir/table2", "milliseconds a query on GPU and CPU", queries::table_2),
        entry(gpu, "gpu-ir/table3", "shares of the steps of a query on the GPU", steps::table_3),
    ]
}

fn figure_3(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    Ok(byte_findings(reproduction.codecs()?))
}

fn byte_findings(rows: Vec<Measurement>) -> Findings {
    let columns = ["our codec", "paper's method", "the paper says", "bytes a document"];
    let mut table = Table::new("Bytes of a document number", 3, &columns);
    let bytes = |codec: &str| bits_from(&rows, codec, "documents", AT_LEAST) / 8.0;
    for (codec, method, words) in FIGURE_3 {
        table.row(vec![codec.to_owned(), method.to_owned(), words.to_owned(), number(bytes(codec))]);
    }
    let in_paper = FIGURE_3.map(|(codec, _, _)| codec);
    let others = CodecName::ALL.map(|codec| codec.to_string());
    for codec in others.iter().filter(|codec| !in_paper.contains(&codec.as_str())) {
        table.row(vec![codec.clone(), "–".to_owned(), "–".to_owned(), number(bytes(codec))]);
    }
    table.notes = vec![
        "The paper: GOV2; its bars have no numbers in its text. Ours: all lists of at least 256 postings of the Wikipedia \
         passages."
            .to_owned(),
    ];
    let group = |codec: &String| {
        let series = usize::from(!in_paper.contains(&codec.as_str()));
        Group { label: codec.clone(), bars: vec![Bar { series, value: bytes(codec), range: None }] }
    };
    let chart = Chart {
        title: "Bytes of a document number".to_owned(),
        subtitle: "lists of at least 256 postings; shorter is better".to_owned(),
        series: vec!["in the paper".to_owned(), "not in the paper".to_owned()],
        unit: "bytes".to_owned(),
        groups: others.iter().map(group).collect(),
    };
    Findings {
        tables: vec![table],
        charts: vec![("bytes".to_owned(), Picture::Bars(chart))],
        measurements: rows.clone(),
    }
}

fn table_1(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    Ok(speed_findings(reproduction.codecs()?))
}

fn speed_findings(rows: Vec<Measurement>) -> Findings {
    let columns = ["algorithm", "our codec", "paper, CPU", "paper, GPU", "ours, one core", "x the paper's CPU"];
    let mut table = Table::new("Millions of integers decoded a second", 2, &columns);
    let speed = |codec: &str| values_a_ns_from(&rows, codec, "documents", AT_LEAST) * 1e3;
    let bar = |series, value| Bar { series, value, range: None };
    let mut groups = Vec::new();
    for (algorithm, cpu, gpu, codec) in TABLE_1 {
        let ours = speed(codec);
        let cells = [cpu, gpu, ours, ours / cpu].map(number);
        table.row([vec![algorithm.to_owned(), codec.to_owned()], cells.to_vec()].concat());
        groups.push(Group { label: codec.to_owned(), bars: vec![bar(0, cpu), bar(1, gpu), bar(2, ours)] });
    }
    let is_other = |codec: &String| TABLE_1.iter().all(|(_, _, _, of_paper)| of_paper != codec);
    for codec in CodecName::ALL.map(|codec| codec.to_string()).into_iter().filter(is_other) {
        let (dash, ours) = (|| "–".to_owned(), speed(&codec));
        table.row(vec![dash(), codec.clone(), dash(), dash(), number(ours), dash()]);
        groups.push(Group { label: codec, bars: vec![bar(2, ours)] });
    }
    table.notes = vec![
        "The paper: a core at 2.66 GHz, which gives gaps, and a GPU with 96 stream processors, which gives documents; ours \
         gives documents. Ours on a GPU is gpu-ir/table1-gpu."
            .to_owned(),
    ];
    let chart = Chart {
        title: "Millions of integers decoded a second".to_owned(),
        subtitle: "lists of at least 256 postings; longer is better".to_owned(),
        series: ["the paper's CPU", "the paper's GPU", "ours, one core"].map(str::to_owned).to_vec(),
        unit: "M/s".to_owned(),
        groups,
    };
    let charts = vec![("speed".to_owned(), Picture::Bars(chart))];
    Findings { measurements: rows, tables: vec![table], charts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_figures_stand_beside_ours() {
        let row = Measurement::new("codec", &[("codec", "rice"), ("stream", "documents"), ("at_least", "1024")])
            .with("postings", 4000.0)
            .with("stream_bytes", 4000.0)
            .with("values_a_ns", 0.62126);
        let speeds = speed_findings(vec![row.clone()]);
        assert_eq!(speeds.tables[0].rows[0], ["Rice", "rice", "311", "305", "621", "2.00"]);
        let Picture::Bars(chart) = &speeds.charts[0].1 else { panic!("bars") };
        let bars: Vec<(usize, f64)> = chart.groups[0].bars.iter().map(|bar| (bar.series, bar.value.round())).collect();
        assert_eq!((chart.groups[0].label.as_str(), bars), ("rice", vec![(0, 311.0), (1, 305.0), (2, 621.0)]));
        assert_eq!(byte_findings(vec![row]).tables[0].rows[0][3], "1.00");
    }
}
