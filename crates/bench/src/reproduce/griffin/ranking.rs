//! Figure 7: the best ten of all results of a query, on the GPU and on the CPU.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Bar, Chart, Group, Picture};
use crate::query_log::spread;
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{Average, Ground, Landing, agree, time_cpu};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::papers::selection::{self, Method, Selection};
use lanner::{Hit, Mode};
use lanner_gpu::memory::Memory;

/// Queries, as in the paper.
const QUERIES: usize = 100;
/// Hits that are kept.
const K: usize = 10;
/// Results of a query: classes from so many on.
const CLASSES: [usize; 4] = [1, 1_000, 10_000, 100_000];
/// Who selects on the device, and whether the paper has it.
const METHODS: [(&str, Method, bool); 5] = [
    ("bucket select, GPU", Method::BucketSelect, true),
    ("radix sort, GPU", Method::RadixSort, true),
    ("ours: radix select, GPU", Method::RadixSelect, false),
    ("gpu-ir's tree, GPU", Method::Tree, false),
    ("bitonic sort, GPU", Method::Bitonic, false),
];
const PARTIAL_SORT: &str = "partial sort, CPU";

/// All results of a query, scored.
struct Results {
    keys: Vec<u64>,
    best: Vec<u64>,
    there: Memory,
    room: Memory,
}

pub fn figure_7(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let results = results(ground)?;
    let mut rows = Vec::new();
    for (number, &from) in CLASSES.iter().enumerate() {
        let to = CLASSES.get(number + 1).copied().unwrap_or(usize::MAX);
        let class: Vec<&Results> = results.iter().filter(|query| (from..to).contains(&query.keys.len())).collect();
        if !class.is_empty() {
            rows.extend(measure(ground, &class, &from.to_string())?);
        }
    }
    let all: Vec<&Results> = results.iter().collect();
    rows.extend(measure(ground, &all, "all")?);
    Ok(findings(&ground.note(), rows))
}

/// All hits of ANDs, as keys on host and device.
fn results(ground: &Ground) -> Result<Vec<Results>, BenchError> {
    let several: Vec<String> = ground.work.texts.iter().filter(|text| text.contains(' ')).cloned().collect();
    let plans = ground.plan(&spread(&several, 2 * QUERIES), Mode::And, ground.index.documents() as usize)?;
    let mut results = Vec::new();
    for hits in ground.hits(&plans)?.into_iter().filter(|hits| !hits.is_empty()).take(QUERIES) {
        let key = |hit: &Hit| u64::from(hit.units) << 32 | u64::from(!hit.document.0);
        // By document, as intersections leave them.
        let mut keys: Vec<u64> = hits.iter().map(key).collect();
        let best = keys[..keys.len().min(K)].to_vec();
        keys.sort_unstable_by_key(|key| !(*key as u32));
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        let there = ground.upload(&bytes)?;
        let selection = Selection { keys: there.address(), count: keys.len() as u32, k: K as u32 };
        let room = METHODS.iter().map(|method| selection.scratch_bytes(method.1)).max().unwrap_or(0);
        results.push(Results { keys, best, there, room: ground.gpu.allocate(room.max(16))? });
    }
    Ok(results)
}

impl Results {
    fn selection(&self) -> Selection {
        Selection { keys: self.there.address(), count: self.keys.len() as u32, k: K as u32 }
    }
}

fn measure(ground: &Ground, class: &[&Results], name: &str) -> Result<Vec<Measurement>, BenchError> {
    let results = class.iter().map(|query| query.keys.len() as f64).sum::<f64>() / class.len() as f64;
    let row = |method: &str, average: &Average| {
        let row = Measurement::new("select", &[("method", method), ("at_least", name)]);
        average.note(row.with("queries", class.len() as f64).with("results", results).with("k", K as f64))
    };
    let mut rows = Vec::new();
    for (label, method, _) in METHODS {
        for query in class {
            let best = query.selection().gpu(&ground.gpu, STREAM, method, &query.room)?.read(&ground.gpu, STREAM)?;
            agree(label, &best, &query.best)?;
        }
        let average = ground.average(class, |query| {
            ground.time(|| {
                let best = query.selection().gpu(&ground.gpu, STREAM, method, &query.room)?;
                Ok(Landing { from: best.keys, bytes: 8 * best.count as usize })
            })
        })?;
        rows.push(row(label, &average));
    }
    let average = ground.average(class, |query| {
        let mut keys = query.keys.clone();
        time_cpu(PARTIAL_SORT, &query.best, move || {
            selection::cpu(&mut keys, K);
            keys
        })
    })?;
    rows.push(row(PARTIAL_SORT, &average));
    Ok(rows)
}

fn findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let names: Vec<&str> = METHODS.iter().map(|method| method.0).chain([PARTIAL_SORT]).collect();
    let columns: Vec<&str> = ["results, from", "queries", "results"].into_iter().chain(names.iter().copied()).collect();
    let mut table = Table::new("Microseconds to select the best ten of all results of a query", 1, &columns);
    for class in rows.chunk_by(|one, other| one.label("at_least") == other.label("at_least")) {
        let head = [
            class[0].label("at_least").to_owned(),
            count(class[0].value("queries") as u64),
            count(class[0].value("results") as u64),
        ];
        table.row(head.into_iter().chain(class.iter().map(|row| number(row.value("us")))).collect());
    }
    table.notes = vec![
        format!(
            "All matches of up to {QUERIES} ANDs of the log, scored by BM25. {note} The GPU: from the call until the best \
             are on the host, the keys lying on the device; its memory was allocated before. The CPU: one core, keys in \
             memory, of which a copy is made before the clock runs."
        ),
        "The paper has bucket select, radix sort and partial sort; its figure has no numbers in its text, which says that \
         the partial sort of the CPU was the fastest, most queries having no more than several thousand matches."
            .to_owned(),
    ];
    let groups = rows.chunk_by(|one, other| one.label("at_least") == other.label("at_least")).map(|class| Group {
        label: match class[0].label("at_least") {
            "all" => "all queries".to_owned(),
            from => format!("from {from} results"),
        },
        bars: (0..)
            .zip(class)
            .map(|(series, row)| Bar {
                series,
                value: row.value("us"),
                range: Some((row.value("us_least"), row.value("us_most"))),
            })
            .collect(),
    });
    let chart = Chart {
        title: "The best ten of all results".to_owned(),
        subtitle: "microseconds a query, by how many results it has; shorter is better".to_owned(),
        series: names.iter().map(|&name| name.to_owned()).collect(),
        unit: "us".to_owned(),
        groups: groups.collect(),
    };
    Findings { tables: vec![table], charts: vec![("time".to_owned(), Picture::Bars(chart))], measurements: rows }
}
