//! Figure 7: selecting the best ten of all results of a query, on the GPU and on the CPU.

use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Bar, Chart, Group};
use crate::query_log::spread;
use crate::reproduce::setup::{Average, Download, Ranked, Setup, check, time_cpu};
use crate::result::{Measurement, groups};
use crate::statistics::mean;
use crate::table::{Table, number};
use lanner::Mode;
use lanner::internals::papers::selection::{self, Method};
use lanner_gpu::memory::Memory;

/// Number of queries, as in the paper.
const QUERIES: usize = 100;
/// Number of hits.
const K: usize = 10;
/// Classes of queries: the minimal number of their results.
const CLASSES: [usize; 4] = [1, 1_000, 10_000, 100_000];
const METHODS: [(&str, Method); 5] = [
    ("bucket select, GPU", Method::BucketSelect),
    ("radix sort, GPU", Method::RadixSort),
    ("ours: radix select, GPU", Method::RadixSelect),
    ("gpu-ir's tree, GPU", Method::Tree),
    ("bitonic sort, GPU", Method::Bitonic),
];
const PARTIAL_SORT: &str = "partial sort, CPU";

/// All results of a query, with the scratch memory to select from them.
struct Results {
    ranked: Ranked,
    scratch: Memory,
}

pub fn figure_7(setup: &Setup) -> Result<Findings> {
    let results = results(setup)?;
    let mut rows = Vec::new();
    for (number, &from) in CLASSES.iter().enumerate() {
        let to = CLASSES.get(number + 1).copied().unwrap_or(usize::MAX);
        let class: Vec<&Results> =
            results.iter().filter(|query| (from..to).contains(&query.ranked.keys.len())).collect();
        if !class.is_empty() {
            rows.extend(measure(setup, &class, &from.to_string())?);
        }
    }
    rows.extend(measure(setup, &results.iter().collect::<Vec<_>>(), "all")?);
    Ok(findings(&setup.note(), rows))
}

/// Uploads all hits of ANDs.
fn results(setup: &Setup) -> Result<Vec<Results>> {
    let several: Vec<String> = setup.work.texts.iter().filter(|text| text.contains(' ')).cloned().collect();
    let plans = setup.plan(&spread(&several, 2 * QUERIES), Mode::And, setup.index.documents() as usize)?;
    let mut results = Vec::new();
    for hits in setup.hits(&plans)?.iter().filter(|hits| !hits.is_empty()).take(QUERIES) {
        let ranked = Ranked::upload(setup, hits, K)?;
        let bytes = METHODS.iter().map(|method| ranked.selection().scratch_bytes(method.1)).max().unwrap_or(0);
        results.push(Results { ranked, scratch: setup.gpu.allocate(bytes.max(16))? });
    }
    Ok(results)
}

fn measure(setup: &Setup, class: &[&Results], name: &str) -> Result<Vec<Measurement>> {
    let results = mean(class.iter().map(|query| query.ranked.keys.len() as f64));
    let row = |method: &str, average: &Average| {
        let row = Measurement::new("select", &[("method", &method), ("at_least", &name)]);
        average.add_to(row.with("queries", class.len() as f64).with("results", results).with("k", K as f64))
    };
    let mut rows = Vec::new();
    for (label, method) in METHODS {
        let select = |query: &Results| query.ranked.selection().gpu(&setup.gpu, STREAM, method, &query.scratch);
        for query in class {
            check(label, &select(query)?.read(&setup.gpu, STREAM)?, &query.ranked.best)?;
        }
        let average = setup.average(class, |query| {
            setup.time(|| {
                let best = select(query)?;
                Ok(Download { from: best.keys, bytes: 8 * best.count as usize })
            })
        })?;
        rows.push(row(label, &average));
    }
    let average = setup.average(class, |query| {
        let mut keys = query.ranked.keys.clone();
        time_cpu(PARTIAL_SORT, &query.ranked.best, move || {
            selection::cpu(&mut keys, K);
            keys
        })
    })?;
    rows.push(row(PARTIAL_SORT, &average));
    Ok(rows)
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let names: Vec<&str> = METHODS.iter().map(|method| method.0).chain([PARTIAL_SORT]).collect();
    let columns = [&["results, from", "queries", "results"], &names[..]].concat();
    let mut table = Table::new("Microseconds to select the best ten of all results of a query", 1, &columns);
    for class in groups(&rows, "at_least") {
        let counts = ["queries", "results"].map(|name| class[0].count(name));
        let times = class.iter().map(|row| number(row.value("us")));
        table.row([class[0].label("at_least").to_owned()].into_iter().chain(counts).chain(times));
    }
    let table = table.notes(&[
        &format!(
            "All matches of up to {QUERIES} ANDs of the log, scored by BM25. {note} GPU: from the call until the best \
             are on the host; keys are on the device, and memory is allocated before. CPU: one core, on a copy of the \
             keys that is made before."
        ),
        "The paper has bucket select, radix sort and partial sort. Its text gives no numbers; it says that the partial \
         sort of the CPU was fastest, because most queries have at most several thousand matches.",
    ]);
    let group = |class: &[Measurement]| {
        let label = match class[0].label("at_least") {
            "all" => "all queries".to_owned(),
            from => format!("from {from} results"),
        };
        let bars = (0..).zip(class).map(|(series, row)| Bar::with_range(series, row, ["us", "us_least", "us_most"]));
        Group::new(label, bars)
    };
    let subtitle = "microseconds per query, by the number of its results; shorter is better";
    let chart = Chart::new("The best ten of all results", subtitle, "us").series(&names);
    let chart = chart.groups(groups(&rows, "at_least").map(group));
    Findings::new(rows).table(table).chart("time", chart)
}
