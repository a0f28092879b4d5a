//! Figure 6: intersection of two lists of the same length by Parallel Merge Find, directly and by one to four levels.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Line, LineChart, Picture};
use crate::query_log::spread;
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Ground, Landing, Resident, agree, time_cpu};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::papers::compaction::{Found, Origins};
use lanner::internals::papers::merge_path::{self, Partitions};
use lanner::internals::papers::parallel_merge_find::MOST_LEVELS;
use lanner::internals::papers::{binary_intersection, parallel_merge_find};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Memory;
use std::sync::Arc;

/// Lengths of both lists. The text gives of the figure only: below 4 ns an element with two or three levels, for the
/// longer lists.
const LENGTHS: [u64; 8] = [5_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 8_000_000, 16_000_000];
const MERGE_PATH: &str = "MergePath";
const CPU_MERGE: &str = "merge, CPU";

pub fn figure_6(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let mut rows = Vec::new();
    for of_paper in LENGTHS {
        let length = ground.length(of_paper);
        if let Some(terms) = ground.lists.two_of_at_least(length) {
            let lists = ground.decode(&terms.map(|term| term.number))?;
            // Spread over the whole list: what is left of it has the same form.
            let cut = |list: &Arc<Vec<u32>>| ground.lay(Arc::new(spread(list, length as usize)));
            rows.extend(measure(ground, &[cut(&lists[0])?, cut(&lists[1])?], of_paper)?);
        }
    }
    Ok(findings(&ground.note(), rows))
}

fn method_names() -> Vec<String> {
    let level = |level: u32| if level == 1 { "1 level".to_owned() } else { format!("{level} levels") };
    let levels = (1..=MOST_LEVELS).map(level);
    std::iter::once("direct".to_owned()).chain(levels).chain([MERGE_PATH.to_owned()]).collect()
}

/// Method 0 searches directly, 1 to 4 have levels, the last is ours.
fn start(ground: &Ground, lists: &[Resident; 2], method: u32, room: &Memory) -> Result<Found, GpuError> {
    let both = [lists[0].list, lists[1].list];
    match method {
        0 => binary_intersection::gpu(&ground.gpu, STREAM, both, None, Origins::NONE, room),
        1..=MOST_LEVELS => parallel_merge_find::gpu(&ground.gpu, STREAM, both, method, Origins::NONE, room),
        _ => merge_path::gpu(&ground.gpu, STREAM, both, Partitions::of(both), Origins::NONE, room),
    }
}

fn measure(ground: &Ground, lists: &[Resident; 2], of_paper: u64) -> Result<Vec<Measurement>, BenchError> {
    let (a, b) = (&lists[0].documents, &lists[1].documents);
    let expected = merge_path::cpu(a, b);
    let levels = (1..=MOST_LEVELS).map(|levels| parallel_merge_find::scratch_bytes(lists[0].list, levels));
    let both = [lists[0].list, lists[1].list];
    let merged = merge_path::scratch_bytes(both, Partitions::of(both));
    let others = [merged, binary_intersection::scratch_bytes(both[0])];
    let room = ground.gpu.allocate(levels.chain(others).max().unwrap_or(16))?;
    let row = |method: &str| {
        Measurement::new("intersect", &[("method", method), ("length", &of_paper.to_string())])
            .with("postings", a.len() as f64)
            .with("results", expected.len() as f64)
    };
    let mut rows = Vec::new();
    for (method, name) in (0..).zip(method_names()) {
        let found = start(ground, lists, method, &room)?.read(&ground.gpu, STREAM)?;
        agree(&format!("Parallel Merge Find, {name}"), &found, &expected)?;
        let average = ground.average(&[()], |()| {
            ground.time(|| Ok(Landing { from: start(ground, lists, method, &room)?.count, bytes: 4 }))
        })?;
        let ns = 1e3 / a.len() as f64;
        rows.push(
            average
                .note(row(&name))
                .with("ns_an_element", average.device_us.median * ns)
                .with("host_ns_an_element", average.us.median * ns),
        );
    }
    let average = ground.average(&[()], |()| time_cpu(CPU_MERGE, &expected, || merge_path::cpu(a, b)))?;
    let ns = average.us.median * 1e3 / a.len() as f64;
    rows.push(average.note(row(CPU_MERGE)).with("ns_an_element", ns).with("host_ns_an_element", ns));
    Ok(rows)
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let names: Vec<String> = method_names().into_iter().chain([CPU_MERGE.to_owned()]).collect();
    let columns: Vec<&str> = ["postings"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut tables = Vec::new();
    for (title, value) in [
        ("Nanoseconds an element of one of two lists of the same length, kernels alone", "ns_an_element"),
        ("The same from the call until the host knows how many documents are in both", "host_ns_an_element"),
    ] {
        let mut table = Table::new(title, 1, &columns);
        for group in rows.chunk_by(|one, other| one.label("length") == other.label("length")) {
            let times = group.iter().map(|row| number(row.value(value)));
            table.row([count(group[0].value("postings") as u64)].into_iter().chain(times).collect());
        }
        tables.push(table);
    }
    tables[0].notes = vec![
        format!(
            "{note} Both lists are cut to the length by taking postings at equal distances, and lie on the device as plain \
             numbers; results are written in order. MergePath is griffin's; the CPU is one core."
        ),
        "The paper's figure has no numbers in its text but this: below 4 ns an element with two or three levels, for the \
         longer lists, where directly searching is much slower."
            .to_owned(),
    ];
    let line = |name: &String| {
        let of_method = rows.iter().filter(|row| row.label("method") == *name);
        let point = |row: &Measurement| (row.value("postings").max(1000.0) / 1e3, row.value("ns_an_element"));
        Line { label: name.clone(), points: of_method.map(point).collect() }
    };
    let chart = LineChart {
        title: "Two lists of the same length by Parallel Merge Find".to_owned(),
        subtitle: "nanoseconds of kernels for an element of one list; lower is better".to_owned(),
        x_label: "thousand postings in each list".to_owned(),
        unit: "ns".to_owned(),
        is_logarithmic: true,
        lines: names.iter().map(line).collect(),
    };
    Findings { measurements: rows, tables, charts: vec![("time".to_owned(), Picture::Lines(chart))] }
}
