//! Ding et al., *Using Graphics Processors for High Performance IR Query Processing*: Figure 3, bytes per document;
//! Table 1, decode speeds, with an entry for the CPU alone; Figure 4, decode speed by length; Figure 6, intersection;
//! Tables 2 and 3, queries.

mod decoding;
mod merge_find;
mod queries;
mod steps;
mod traced;

use super::{Entry, Run};
use crate::experiments::Findings;
use crate::experiments::codecs::{bits_per_posting, numbers_per_ns};
use crate::plot::{Bar, Chart, Group};
use crate::result::Measurement;
use crate::table::{DASH, Table, number};
use lanner_index::codec::CodecName;

/// Figure 3, whose bars have no numbers: our codec, the paper's method, and what the text says about it.
const FIGURE_3: [(&str, &str, &str); 3] = [
    ("rice", "Rice", "the smallest"),
    ("pfor-block", "PForDelta with a width for each block", "slightly larger than with one level of recursion"),
    (
        "pfor",
        "PForDelta, one width for a list, recursive exceptions",
        "one level slightly below a width for each block",
    ),
];
/// Table 1: the algorithm, millions of integers per second on the paper's CPU and GPU, and our codec.
const TABLE_1: [(&str, f64, f64, CodecName); 2] =
    [("Rice", 310.63, 305.27, CodecName::Rice), ("PForDelta", 1165.13, 1237.57, CodecName::Pfor)];
/// Minimal length of the lists.
const AT_LEAST: u64 = 256;

pub fn entries() -> Vec<Entry> {
    let new = Entry::new;
    let on_both = "decode speed on GPU and CPU, millions of integers per second";
    vec![
        new("gpu-ir/figure3", "bytes per document number", Run::Codecs(figure_3)),
        new("gpu-ir/table1", "decode speed in millions of integers per second", Run::Codecs(table_1)),
        new("gpu-ir/table1-gpu", on_both, Run::Gpu(decoding::table_1)),
        new("gpu-ir/figure4", "decode speed of PForDelta by list length", Run::Gpu(decoding::figure_4)),
        new("gpu-ir/figure6", "intersection by Parallel Merge Find", Run::Gpu(merge_find::figure_6)),
        new("gpu-ir/table2", "milliseconds per query on GPU and CPU", Run::Gpu(queries::table_2)),
        new("gpu-ir/table3", "shares of the steps of a query on the GPU", Run::Gpu(steps::table_3)),
    ]
}

fn figure_3(rows: Vec<Measurement>) -> Findings {
    let columns = ["our codec", "paper's method", "the paper says", "bytes per document"];
    let mut table = Table::new("Bytes per document number", 3, &columns);
    let bytes = |codec: &str| bits_per_posting(&rows, (codec, "documents"), AT_LEAST) / 8.0;
    for (codec, method, words) in FIGURE_3 {
        table.row([codec.to_owned(), method.to_owned(), words.to_owned(), number(bytes(codec))]);
    }
    let in_paper = FIGURE_3.map(|(codec, _, _)| codec);
    let codecs = CodecName::ALL.map(|codec| codec.to_string());
    for codec in codecs.iter().filter(|codec| !in_paper.contains(&codec.as_str())) {
        table.row([codec.clone(), DASH.to_owned(), DASH.to_owned(), number(bytes(codec))]);
    }
    let table = table.notes(&[&format!(
        "The paper: GOV2; its text gives no numbers. Ours: all lists of the Wikipedia passages with at least \
         {AT_LEAST} postings."
    )]);
    let group = |codec: &String| {
        let series = usize::from(!in_paper.contains(&codec.as_str()));
        Group::new(codec, [Bar::new(series, bytes(codec))])
    };
    let subtitle = format!("lists of at least {AT_LEAST} postings; shorter is better");
    let chart = Chart::new("Bytes per document number", subtitle, "bytes")
        .series(&["in the paper", "not in the paper"])
        .groups(codecs.iter().map(group));
    Findings::new(rows.clone()).table(table).chart("bytes", chart)
}

fn table_1(rows: Vec<Measurement>) -> Findings {
    let columns = ["algorithm", "our codec", "paper, CPU", "paper, GPU", "ours, one core", "x the paper's CPU"];
    let mut table = Table::new("Millions of integers decoded per second", 2, &columns);
    let speed = |codec: &str| numbers_per_ns(&rows, (codec, "documents"), AT_LEAST) * 1e3;
    let mut groups = Vec::new();
    for (algorithm, cpu, gpu, codec) in TABLE_1 {
        let (codec, ours) = (codec.to_string(), speed(&codec.to_string()));
        let cells = [cpu, gpu, ours, ours / cpu].map(number);
        table.row([algorithm.to_owned(), codec.clone()].into_iter().chain(cells));
        groups.push(Group::of_series(codec, [cpu, gpu, ours]));
    }
    let in_paper = TABLE_1.map(|(.., codec)| codec);
    for codec in CodecName::ALL.iter().filter(|codec| !in_paper.contains(codec)).map(CodecName::to_string) {
        let (dash, ours) = (|| DASH.to_owned(), speed(&codec));
        table.row([dash(), codec.clone(), dash(), dash(), number(ours), dash()]);
        groups.push(Group::new(codec, [Bar::new(2, ours)]));
    }
    let table = table.notes(&[
        "The paper: a core at 2.66 GHz, which decodes gaps, and a GPU with 96 stream processors, which decodes \
         documents. Ours decodes documents; gpu-ir/table1-gpu measures the GPU.",
    ]);
    let subtitle = format!("lists of at least {AT_LEAST} postings; longer is better");
    let chart = Chart::new("Millions of integers decoded per second", subtitle, "M/s")
        .series(&["the paper's CPU", "the paper's GPU", "ours, one core"])
        .groups(groups);
    Findings::new(rows).table(table).chart("speed", chart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Picture;

    #[test]
    fn tables_have_the_numbers_of_the_paper_and_ours() {
        let row = Measurement::new("codec", &[("codec", &"rice"), ("stream", &"documents"), ("at_least", &"1024")])
            .with("postings", 4000.0)
            .with("stream_bytes", 4000.0)
            .with("values_a_ns", 0.62126);
        let speeds = table_1(vec![row.clone()]);
        assert_eq!(speeds.tables[0].rows[0], ["Rice", "rice", "311", "305", "621", "2.00"]);
        let Picture::Bars(chart) = &speeds.charts[0].1 else { panic!("bars") };
        let bars: Vec<(usize, f64)> = chart.groups[0].bars.iter().map(|bar| (bar.series, bar.value.round())).collect();
        assert_eq!((chart.groups[0].label.as_str(), bars), ("rice", vec![(0, 311.0), (1, 305.0), (2, 621.0)]));
        assert_eq!(figure_3(vec![row]).tables[0].rows[0][3], "1.00");
    }
}
