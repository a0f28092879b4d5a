//! Figure 6: intersection of two lists of the same length by Parallel Merge Find, with zero to four levels.

use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{LineChart, lines_by};
use crate::query_log::spread;
use crate::reproduce::setup::{Average, Download, Resident, Setup, Term, check, time_cpu};
use crate::result::{Measurement, groups};
use crate::table::{Table, number};
use lanner::internals::papers::compaction::{Found, Operands};
use lanner::internals::papers::merge_path::{self, Partitions};
use lanner::internals::papers::parallel_merge_find::MOST_LEVELS;
use lanner::internals::papers::{binary_intersection, parallel_merge_find};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Memory;
use std::sync::Arc;

/// Lengths of both lists.
const LENGTHS: [u64; 8] = [5_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 8_000_000, 16_000_000];
const MERGE_PATH: &str = "MergePath";
const CPU_MERGE: &str = "merge, CPU";

pub fn figure_6(setup: &Setup) -> Result<Findings> {
    let mut rows = Vec::new();
    for in_paper in LENGTHS {
        let length = setup.length(in_paper);
        if let Some(terms) = setup.lists.two_of_at_least(length) {
            let lists = setup.decode(terms.iter().map(|term| term.number))?;
            // Postings at equal distances keep the distribution of the list.
            let cut = |term: &Term| setup.upload_list(Arc::new(spread(&lists[&term.number], length as usize)));
            rows.extend(measure(setup, &[cut(&terms[0])?, cut(&terms[1])?], in_paper)?);
        }
    }
    Ok(findings(&setup.note(), rows))
}

/// The names of the methods on the GPU: direct search, one to four levels, and MergePath.
fn method_names() -> Vec<String> {
    let level = |level: u32| if level == 1 { "1 level".to_owned() } else { format!("{level} levels") };
    let levels = (1..=MOST_LEVELS).map(level);
    std::iter::once("direct".to_owned()).chain(levels).chain([MERGE_PATH.to_owned()]).collect()
}

/// Launches the method with a number of [`method_names`].
fn launch(setup: &Setup, lists: &[Resident; 2], method: u32, scratch: &Memory) -> Result<Found, GpuError> {
    let (gpu, operands) = (&setup.gpu, Operands::new([lists[0].list, lists[1].list], scratch));
    match method {
        0 => binary_intersection::gpu(gpu, STREAM, operands, None),
        1..=MOST_LEVELS => parallel_merge_find::gpu(gpu, STREAM, operands, method),
        _ => merge_path::gpu(gpu, STREAM, operands, Partitions::of(operands.lists)),
    }
}

fn measure(setup: &Setup, lists: &[Resident; 2], in_paper: u64) -> Result<Vec<Measurement>> {
    let (a, b) = (&lists[0].documents, &lists[1].documents);
    let expected = merge_path::cpu(a, b);
    let both = [lists[0].list, lists[1].list];
    let levels = (1..=MOST_LEVELS).map(|levels| parallel_merge_find::scratch_bytes(both[0], levels));
    let others = [merge_path::scratch_bytes(both, Partitions::of(both)), binary_intersection::scratch_bytes(both[0])];
    let scratch = setup.gpu.allocate(levels.chain(others).max().unwrap_or(16))?;
    let row = |method: &str, average: &Average, kernel_us: f64| {
        let ns = 1e3 / a.len() as f64;
        let row = Measurement::new("intersect", &[("method", &method), ("length", &in_paper)])
            .with("postings", a.len() as f64)
            .with("results", expected.len() as f64)
            .with("ns_an_element", kernel_us * ns)
            .with("host_ns_an_element", average.us.median * ns);
        average.add_to(row)
    };
    let mut rows = Vec::new();
    for (method, name) in (0..).zip(method_names()) {
        let found = launch(setup, lists, method, &scratch)?.read(&setup.gpu, STREAM)?;
        check(&format!("Parallel Merge Find, {name}"), &found, &expected)?;
        let average = setup.average(&[()], |()| {
            setup.time(|| Ok(Download { from: launch(setup, lists, method, &scratch)?.count, bytes: 4 }))
        })?;
        rows.push(row(&name, &average, average.device_us.median));
    }
    let average = setup.average(&[()], |()| time_cpu(CPU_MERGE, &expected, || merge_path::cpu(a, b)))?;
    rows.push(row(CPU_MERGE, &average, average.us.median));
    Ok(rows)
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let names: Vec<String> = method_names().into_iter().chain([CPU_MERGE.to_owned()]).collect();
    let columns: Vec<&str> = ["postings"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let table = |title, value| {
        let mut table = Table::new(title, 1, &columns);
        for group in groups(&rows, "length") {
            let times = group.iter().map(|row| number(row.value(value)));
            table.row([group[0].count("postings")].into_iter().chain(times));
        }
        table
    };
    let title = "Nanoseconds per element of one of two lists of the same length, kernels alone";
    let kernels = table(title, "ns_an_element");
    let title = "The same from the call until the host knows how many documents are in both";
    let host = table(title, "host_ns_an_element");
    let kernels = kernels.notes(&[
        &format!(
            "{note} Both lists are cut to the length by taking postings at equal distances, and are plain numbers on \
             the device; results are written in order. MergePath is griffin's; the CPU is one core."
        ),
        "The text of the paper says only that two or three levels take less than 4 ns per element for the longer \
         lists, where direct search is much slower.",
    ]);
    let point = |row: &Measurement| (row.value("postings").max(1000.0) / 1e3, row.value("ns_an_element"));
    let subtitle = "nanoseconds of kernels per element of one list; lower is better";
    let axes = ["thousand postings in each list", "ns"];
    let chart = LineChart::logarithmic("Two lists of the same length by Parallel Merge Find", subtitle, axes);
    let chart = chart.lines(lines_by(&rows, "method", &names, point));
    Findings::new(rows).table(kernels).table(host).chart("time", chart)
}
