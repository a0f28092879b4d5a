//! Figures 8 and 13: intersections of two lists on GPU and CPU, by the ratio of their lengths and by their lengths.

use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{Line, LineChart, Picture};
use crate::reproduce::Reproduction;
use crate::reproduce::on_device::{
    Average, Coded, Ground, Landing, Resident, Term, Timed, agree, disagreement, time_cpu,
};
use crate::result::Measurement;
use crate::table::{Table, count, number};
use lanner::internals::device::decode::DecodeKind::Documents;
use lanner::internals::papers::binary_intersection;
use lanner::internals::papers::compaction::{DeviceList, Found, Origins};
use lanner::internals::papers::merge_path::{self, Partitions};
use lanner::{Hit, Mode, Plan};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::codec::{BLOCK, CodecName};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The groups of Figure 8: the longer list is so many times as long. The text says of the paper's GPU only that it is
/// faster up to 128 and slower from there on.
const RATIOS: [(Range<u32>, &str); 7] = [
    (1..16, "GPU"),
    (16..32, "GPU"),
    (32..64, "GPU"),
    (64..128, "GPU"),
    (128..256, "CPU"),
    (256..512, "CPU"),
    (512..1024, "CPU"),
];
/// Pairs of a group, and the length of their longer lists, as in the paper.
const PAIRS: usize = 100;
const LONGER: Range<u64> = 1_000_000..2_000_000;
/// Lengths of Figure 13; pairs are within a factor of 16, a quarter of them in each of these ranges. Drawn from all lists
/// within a factor of 16, most would be near it, since short lists are more.
const LENGTHS: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const FACTORS: [Range<u32>; 4] = [1..2, 2..4, 4..8, 8..16];
/// Postings of the longer lists of one length together: what one core takes seconds for.
const MOST_POSTINGS: u64 = 20_000_000;
/// A list that is so many times as long is not decoded whole by the CPU.
const SKIPPED_FROM: usize = 16;
/// Hits of our executor.
const K: usize = 10;

/// Who intersects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    CpuMerge,
    CpuBinary,
    CpuSkips,
    CpuPacked,
    GpuBinary,
    GpuSkips,
    GpuMerge,
    GpuSent,
    OurCpu,
    OurGpu,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::CpuMerge => "merge, CPU",
            Method::CpuBinary => "binary search, CPU",
            Method::CpuSkips => "binary search by skips, CPU",
            Method::CpuPacked => "PForDelta, merge or skips, CPU",
            Method::GpuBinary => "binary search, GPU",
            Method::GpuSkips => "binary search by skips, GPU",
            Method::GpuMerge => "MergePath, GPU",
            Method::GpuSent => "sent, Para-EF, MergePath, GPU",
            Method::OurCpu => "ours, top 10, CPU",
            Method::OurGpu => "ours, top 10, GPU",
        }
    }
}

/// Two lists on host and device, and what they have in common.
struct Pair {
    shorter: Arc<Resident>,
    longer: Arc<Resident>,
    /// As the paper sends them to its GPU, and as its CPU has them; there if they are to be sent.
    packed: Option<Packed>,
    expected: Vec<u32>,
    plan: Plan,
    hits: Vec<Vec<Hit>>,
}

/// The two lists packed.
struct Packed {
    elias_fano: [Arc<Coded>; 2],
    pfor: [Arc<Coded>; 2],
    /// The last documents of the blocks of the longer one.
    lasts: Vec<u32>,
}

/// Pairs that are measured together.
struct Pairs {
    pairs: Vec<Pair>,
    room: Memory,
}

pub fn figure_8(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let wanted = if ground.is_simulated() { 3 } else { PAIRS };
    let longer = ground.length(LONGER.start)..ground.length(LONGER.end);
    let mut rows = Vec::new();
    for (ratio, _) in RATIOS {
        let methods = [Method::CpuMerge, Method::CpuPacked, Method::GpuMerge, Method::GpuSkips, Method::GpuSent];
        // One core would search for seconds where the lists are of about the same length, and merging is better there.
        let skips = (ratio.start > 1).then_some(Method::CpuSkips);
        let methods = methods.into_iter().chain(skips).chain([Method::OurCpu, Method::OurGpu]);
        let terms = ground.lists.pairs(longer.clone(), ratio.clone(), wanted);
        let label = format!("[{},{})", ratio.start, ratio.end);
        rows.extend(measure(ground, &terms, ("ratio", &label), &methods.collect::<Vec<_>>())?);
    }
    Ok(ratio_findings(&ground.note(), rows))
}

pub fn figure_13(reproduction: &Reproduction<'_>) -> Result<Findings, BenchError> {
    let ground = reproduction.ground()?;
    let mut rows = Vec::new();
    for length in LENGTHS {
        let longer = ground.length(length * 7 / 10)..ground.length(length * 14 / 10) + 1;
        let most = if ground.is_simulated() { 1 } else { 5 };
        let wanted = (MOST_POSTINGS / length / FACTORS.len() as u64).clamp(1, most) as usize;
        let terms = FACTORS.map(|factor| ground.lists.pairs(longer.clone(), factor, wanted)).concat();
        let methods = [
            Method::CpuMerge,
            Method::CpuBinary,
            Method::GpuBinary,
            Method::GpuMerge,
            Method::GpuSkips,
            Method::OurCpu,
            Method::OurGpu,
        ];
        rows.extend(measure(ground, &terms, ("length", &length.to_string()), &methods)?);
    }
    Ok(length_findings(&ground.note(), rows))
}

/// Checks and times each method on some pairs.
fn measure(
    ground: &Ground,
    terms: &[[Term; 2]],
    (group, label): (&str, &str),
    methods: &[Method],
) -> Result<Vec<Measurement>, BenchError> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let pairs = Pairs::prepare(ground, terms, methods.contains(&Method::GpuSent))?;
    let mean = |value: &dyn Fn(&Pair) -> usize| {
        pairs.pairs.iter().map(|pair| value(pair) as f64).sum::<f64>() / pairs.pairs.len() as f64
    };
    let sent =
        |pair: &Pair| pair.packed.iter().flat_map(|packed| &packed.elias_fano).map(|list| list.sent_bytes()).sum();
    let mut rows = Vec::new();
    for &method in methods {
        let average = pairs.average(ground, method)?;
        let row = Measurement::new("intersect", &[("method", method.name()), (group, label)])
            .with("pairs", pairs.pairs.len() as f64)
            .with("shorter", mean(&|pair| pair.shorter.documents.len()))
            .with("longer", mean(&|pair| pair.longer.documents.len()))
            .with("results", mean(&|pair| pair.expected.len()));
        let row = if method == Method::GpuSent { row.with("bytes_sent", mean(&sent)) } else { row };
        rows.push(average.note(row));
    }
    Ok(rows)
}

impl Pairs {
    fn prepare(ground: &Ground, terms: &[[Term; 2]], is_sent: bool) -> Result<Pairs, BenchError> {
        let numbers: BTreeMap<u64, ()> = terms.iter().flatten().map(|term| (term.number, ())).collect();
        let numbers: Vec<u64> = numbers.into_keys().collect();
        let lists = ground.decode(&numbers)?;
        let codecs = if is_sent { &[CodecName::EliasFano, CodecName::PforBlock][..] } else { &[] };
        let mut packed: Vec<Vec<Arc<Coded>>> = Vec::new();
        for &codec in codecs {
            packed.push(Coded::all(ground, codec, &lists)?.into_iter().map(Arc::new).collect());
        }
        let lay = |list: &Arc<Vec<u32>>| ground.lay(Arc::clone(list)).map(Arc::new);
        let lists = lists.iter().map(lay).collect::<Result<Vec<_>, GpuError>>()?;
        let place = |term: &Term| numbers.binary_search(&term.number).unwrap_or_default();
        let texts: Vec<String> = terms.iter().map(|[one, other]| format!("{} {}", one.text, other.text)).collect();
        let plans = ground.plan(&texts, Mode::And, K)?;
        let hits = ground.hits(&plans)?;
        let expected = ground.map(terms, |[shorter, longer]| {
            Ok(merge_path::cpu(&lists[place(shorter)].documents, &lists[place(longer)].documents))
        })?;
        let mut pairs = Vec::new();
        for (((terms, plan), hits), expected) in terms.iter().zip(plans).zip(hits).zip(expected) {
            let [shorter, longer] = [0, 1].map(|at| Arc::clone(&lists[place(&terms[at])]));
            let of = |lists: &Vec<Arc<Coded>>| [0, 1].map(|at: usize| Arc::clone(&lists[place(&terms[at])]));
            let packed = is_sent.then(|| Packed {
                elias_fano: of(&packed[0]),
                pfor: of(&packed[1]),
                lasts: binary_intersection::last_documents(&longer.documents),
            });
            pairs.push(Pair { shorter, longer, packed, expected, plan, hits: vec![hits] });
        }
        let room = |pair: &Pair| {
            let lists = pair.lists();
            let merged = merge_path::scratch_bytes(lists, Partitions::of(lists));
            merged.max(binary_intersection::scratch_bytes(lists[0]))
        };
        let room = ground.gpu.allocate(pairs.iter().map(room).max().unwrap_or(16))?;
        Ok(Pairs { pairs, room })
    }

    /// The time of a pair, once its results are known to be right.
    fn average(&self, ground: &Ground, method: Method) -> Result<Average, BenchError> {
        for pair in &self.pairs {
            if let Some(found) = pair.start(ground, method, &self.room)? {
                agree(method.name(), &found.read(&ground.gpu, STREAM)?, &pair.expected)?;
            }
        }
        ground.average(&self.pairs, |pair| pair.time(ground, method, &self.room))
    }
}

fn merge(gpu: &Gpu, lists: [DeviceList; 2], room: &Memory) -> Result<Found, GpuError> {
    merge_path::gpu(gpu, STREAM, lists, Partitions::of(lists), Origins::NONE, room)
}

impl Pair {
    fn lists(&self) -> [DeviceList; 2] {
        [self.shorter.list, self.longer.list]
    }

    /// Puts the work of a method of the device into the stream; `None` for the others.
    fn start(&self, ground: &Ground, method: Method, room: &Memory) -> Result<Option<Found>, GpuError> {
        let gpu = &ground.gpu;
        Ok(Some(match method {
            Method::GpuMerge => merge(gpu, self.lists(), room)?,
            Method::GpuBinary => binary_intersection::gpu(gpu, STREAM, self.lists(), None, Origins::NONE, room)?,
            Method::GpuSkips => {
                let lasts = Some(self.longer.lasts.address());
                binary_intersection::gpu(gpu, STREAM, self.lists(), lasts, Origins::NONE, room)?
            }
            Method::GpuSent => {
                let Some(packed) = &self.packed else { return Ok(None) };
                let lists = &packed.elias_fano;
                for list in lists {
                    list.send()?;
                    list.launch(Documents)?;
                }
                merge(gpu, [lists[0].list(), lists[1].list()], room)?
            }
            _ => return Ok(None),
        }))
    }

    fn time(&self, ground: &Ground, method: Method, room: &Memory) -> Result<Timed, BenchError> {
        let (a, b) = (&self.shorter.documents, &self.longer.documents);
        let name = method.name();
        match method {
            Method::CpuMerge => time_cpu(name, &self.expected, || merge_path::cpu(a, b)),
            Method::CpuBinary => time_cpu(name, &self.expected, || binary_intersection::cpu(a, b)),
            Method::CpuSkips => {
                let lasts = binary_intersection::last_documents(b);
                time_cpu(name, &self.expected, || binary_intersection::cpu_by_skips(a, b, &lasts))
            }
            Method::CpuPacked => {
                let Some(packed) = &self.packed else { return Err(disagreement(name)) };
                time_cpu(name, &self.expected, || packed.intersect_on_cpu())
            }
            Method::OurCpu => ground.time_on_cpu(std::slice::from_ref(&self.plan), &self.hits),
            Method::OurGpu => ground.time_on_gpu(std::slice::from_ref(&self.plan), &self.hits),
            _ => ground.time(|| {
                let found = self.start(ground, method, room)?;
                Ok(found.map_or(Landing { from: self.longer.list.documents, bytes: 0 }, |found| Landing {
                    from: found.count,
                    bytes: 4,
                }))
            }),
        }
    }
}

impl Packed {
    /// The paper's CPU: lists of about the same length are decoded and merged; where one is much longer, only the blocks
    /// of it are decoded that may hold a document of the other.
    fn intersect_on_cpu(&self) -> Vec<u32> {
        let [shorter, longer] = &self.pfor;
        let documents = shorter.decoded();
        if longer.postings() < SKIPPED_FROM * shorter.postings() {
            return merge_path::cpu(&documents, &longer.decoded());
        }
        let (mut block, mut room) = (0, [0; BLOCK]);
        let mut here = longer.decode_block(block, &mut room).len();
        let mut is_in_longer = |document: &u32| {
            let next = block + self.lasts[block..].partition_point(|last| last < document);
            if next != block {
                if next == self.lasts.len() {
                    return false;
                }
                block = next;
                here = longer.decode_block(block, &mut room).len();
            }
            room[..here].binary_search(document).is_ok()
        };
        documents.iter().copied().filter(|document| is_in_longer(document)).collect()
    }
}

const OF_TIMES: &str = "Lists lie as plain numbers on host and device; the CPU is one core. A time on the GPU is from the call until the host \
     knows how many documents were found, which stay on the device; memory was allocated before. Ours is the executor with \
     the same two terms as a ranked AND: it reads packed lists and bitmaps, scores, and returns the best 10.";

/// A table with a row for each group and a column for each method of any group.
fn group_table(title: &str, group: &str, rows: &[Measurement], further: &[&str]) -> (Table, Vec<&'static str>) {
    let all = [
        Method::CpuMerge,
        Method::CpuBinary,
        Method::CpuSkips,
        Method::CpuPacked,
        Method::GpuBinary,
        Method::GpuSkips,
        Method::GpuMerge,
        Method::GpuSent,
        Method::OurCpu,
        Method::OurGpu,
    ];
    let is_there = |name: &&str| rows.iter().any(|row| row.label("method") == *name);
    let names: Vec<&'static str> = all.map(Method::name).into_iter().filter(is_there).collect();
    let head = [group, "pairs", "shorter", "longer", "in both"];
    let columns: Vec<&str> = head.into_iter().chain(names.iter().copied()).chain(further.iter().copied()).collect();
    (Table::new(title, 1, &columns), names)
}

fn value(group: &[Measurement], method: &str, name: &str) -> f64 {
    group.iter().find(|row| row.label("method") == method).map_or(f64::NAN, |row| row.value(name))
}

fn us(group: &[Measurement], method: &str) -> f64 {
    value(group, method, "us")
}

/// The first cells of a row, and the time of each method.
fn cells(group: &[Measurement], label: &str, names: &[&str]) -> Vec<String> {
    let counts = ["pairs", "shorter", "longer", "results"].map(|name| count(group[0].value(name) as u64));
    let times = names.iter().map(|name| number(us(group, name)));
    [group[0].label(label).to_owned()].into_iter().chain(counts).chain(times).collect()
}

fn ratio_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let title = "Microseconds to intersect two lists, by the ratio of their lengths";
    let (mut table, names) = group_table(title, "ratio", &rows, &["faster, sent", "faster, paper"]);
    let groups: Vec<&[Measurement]> = rows.chunk_by(|a, b| a.label("ratio") == b.label("ratio")).collect();
    for group in &groups {
        let paper =
            RATIOS.iter().find(|(ratio, _)| group[0].label("ratio") == format!("[{},{})", ratio.start, ratio.end));
        let is_gpu = us(group, Method::GpuSent.name()) < us(group, Method::CpuPacked.name());
        let faster = if is_gpu { "GPU" } else { "CPU" };
        let further = [faster.to_owned(), paper.map_or("–", |(_, faster)| faster).to_owned()];
        table.row(cells(group, "ratio", &names).into_iter().chain(further).collect());
    }
    table.notes = vec![
        format!("{note} {OF_TIMES}"),
        "Sent, as in the paper: both lists, packed by Elias-Fano, are copied to the device from ordinary memory of the host, \
         decoded whole and merged; beside it the CPU, which has both packed by PForDelta with a width for each block, and from \
         a ratio of 16 on decodes only blocks that may hold a match. Faster compares these two. The paper's figure has no numbers in its text, which says that the \
         GPU is faster up to a ratio of 128."
            .to_owned(),
    ];
    let line = |name: &&'static str| {
        let of_method = rows.iter().filter(|row| row.label("method") == *name);
        let point = |row: &Measurement| (row.value("longer") / row.value("shorter"), row.value("us"));
        Line { label: (*name).to_owned(), points: of_method.map(point).collect() }
    };
    let chart = LineChart {
        title: "Two lists, by the ratio of their lengths".to_owned(),
        subtitle: "microseconds; lower is better".to_owned(),
        x_label: "postings of the longer list for one of the shorter".to_owned(),
        unit: "us".to_owned(),
        is_logarithmic: true,
        lines: names.iter().map(line).collect(),
    };
    Findings { tables: vec![table], charts: vec![("time".to_owned(), Picture::Lines(chart))], measurements: rows }
}

fn length_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let title = "Microseconds to intersect two lists of comparable lengths";
    let further = ["MergePath x CPU merge", "x GPU binary", "x GPU binary, on the device"];
    let (mut table, names) = group_table(title, "about", &rows, &further);
    let groups: Vec<&[Measurement]> = rows.chunk_by(|a, b| a.label("length") == b.label("length")).collect();
    for group in &groups {
        let further = [(Method::CpuMerge, "us"), (Method::GpuBinary, "us"), (Method::GpuBinary, "device_us")];
        let further = further.map(|(method, name)| {
            number(value(group, method.name(), name) / value(group, Method::GpuMerge.name(), name))
        });
        table.row(cells(group, "length", &names).into_iter().chain(further).collect());
    }
    table.notes = vec![
        format!("{note} {OF_TIMES} A quarter of the pairs each has lengths within a factor of 2, 4, 8 and 16."),
        "On the device compares what the device notes between the start of the work, which clears some counters, and its \
         end: most of the time of a call on short lists is the call."
            .to_owned(),
        "The paper's figure has no numbers in its text but the greatest speedups: its MergePath is up to 87.35 times as fast \
         as merging on its CPU and up to 2.29 times as fast as binary search on its GPU, which is up to 102 times as fast as \
         binary search on its CPU."
            .to_owned(),
    ];
    let line = |name: &&'static str| {
        let of_method = rows.iter().filter(|row| row.label("method") == *name);
        let point = |row: &Measurement| {
            let postings = row.value("shorter") + row.value("longer");
            (row.value("longer").max(1000.0) / 1e3, postings / row.value("us"))
        };
        Line { label: (*name).to_owned(), points: of_method.map(point).collect() }
    };
    let chart = LineChart {
        title: "Two lists of comparable lengths".to_owned(),
        subtitle: "postings of both lists in a microsecond; higher is better".to_owned(),
        x_label: "thousand postings in the longer list".to_owned(),
        unit: "1/us".to_owned(),
        is_logarithmic: true,
        lines: names.iter().map(line).collect(),
    };
    Findings { tables: vec![table], charts: vec![("rate".to_owned(), Picture::Lines(chart))], measurements: rows }
}
