//! Figures 8 and 13: intersection of two lists on GPU and CPU, by the ratio of their lengths and by their lengths.

use crate::error::Result;
use crate::experiments::Findings;
use crate::experiments::gpu::decode::STREAM;
use crate::plot::{LineChart, lines_by};
use crate::reproduce::setup::{Average, Coded, Download, Resident, Setup, Term, Timed, check, time_cpu};
use crate::result::{Label, Measurement, find, find_value, groups};
use crate::statistics::mean;
use crate::table::{DASH, Table, number};
use lanner::internals::device::decode::DecodeKind::Documents;
use lanner::internals::papers::binary_intersection;
use lanner::internals::papers::compaction::{DeviceList, Found, Operands};
use lanner::internals::papers::merge_path::{self, Partitions};
use lanner::internals::query::answer::Scored;
use lanner::{Mode, Plan};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::codec::{BLOCK, CodecName};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::slice::from_ref;
use std::sync::Arc;

/// Figure 8: ranges of the ratio of both lengths, and which side is faster in the paper. The text says only that the
/// GPU is faster up to 128.
const RATIOS: [(Range<u32>, &str); 7] = [
    (1..16, "GPU"),
    (16..32, "GPU"),
    (32..64, "GPU"),
    (64..128, "GPU"),
    (128..256, "CPU"),
    (256..512, "CPU"),
    (512..1024, "CPU"),
];
/// Figure 8: number of pairs of a range, and the lengths of the longer lists, as in the paper.
const PAIRS: usize = 100;
const LONGER: Range<u64> = 1_000_000..2_000_000;
/// Figure 13: lengths of the longer lists.
const LENGTHS: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Figure 13: ratios of lengths, a quarter of the pairs in each range. Pairs drawn from all lists within a factor of 16
/// would mostly be close to 16, because short lists are more frequent.
const FACTORS: [Range<u32>; 4] = [1..2, 2..4, 4..8, 8..16];
/// Figure 13: maximal sum of the longer lists of one length, to limit the time on one core to seconds.
const MAX_POSTINGS: u64 = 20_000_000;
/// From this ratio of lengths on, the CPU decodes only blocks of the longer list that may match.
const SKIP_RATIO: usize = 16;
/// Number of hits of Lanner's executors.
const K: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    CpuMerge,
    CpuBinary,
    CpuSkips,
    CpuPacked,
    GpuBinary,
    GpuSkips,
    GpuMerge,
    GpuUploaded,
    OurCpu,
    OurGpu,
}

/// The names of the methods, in the order of columns; `sent` stands for uploaded lists in results.
const METHODS: [(Method, &str); 10] = [
    (Method::CpuMerge, "merge, CPU"),
    (Method::CpuBinary, "binary search, CPU"),
    (Method::CpuSkips, "binary search by skips, CPU"),
    (Method::CpuPacked, "PForDelta, merge or skips, CPU"),
    (Method::GpuBinary, "binary search, GPU"),
    (Method::GpuSkips, "binary search by skips, GPU"),
    (Method::GpuMerge, "MergePath, GPU"),
    (Method::GpuUploaded, "sent, Para-EF, MergePath, GPU"),
    (Method::OurCpu, "ours, top 10, CPU"),
    (Method::OurGpu, "ours, top 10, GPU"),
];

impl Method {
    fn name(self) -> &'static str {
        METHODS.iter().find(|(method, _)| *method == self).expect("every method has a name").1
    }
}

/// Two lists on host and device, and their intersection.
struct Pair {
    shorter: Arc<Resident>,
    longer: Arc<Resident>,
    /// `None` unless [`Method::GpuUploaded`] is measured.
    packed: Option<Packed>,
    expected: Vec<u32>,
    plan: Plan,
    hits: Vec<Scored>,
}

/// The two lists packed, as the paper has them.
struct Packed {
    /// For the GPU.
    elias_fano: [Arc<Coded>; 2],
    /// For the CPU.
    pfor: [Arc<Coded>; 2],
    /// The last document of each block of the longer list.
    lasts: Vec<u32>,
}

/// Pairs that are measured together.
struct Pairs {
    pairs: Vec<Pair>,
    scratch: Memory,
}

pub fn figure_8(setup: &Setup) -> Result<Findings> {
    let longer = setup.length(LONGER.start)..setup.length(LONGER.end);
    let mut rows = Vec::new();
    for (ratio, _) in RATIOS {
        let methods = [Method::CpuMerge, Method::CpuPacked, Method::GpuMerge, Method::GpuSkips, Method::GpuUploaded];
        // With lists of similar lengths, one core would search for seconds, and merging is better.
        let skips = (ratio.start > 1).then_some(Method::CpuSkips);
        let methods = methods.into_iter().chain(skips).chain([Method::OurCpu, Method::OurGpu]);
        let terms = setup.lists.pairs(longer.clone(), ratio.clone(), setup.count(PAIRS, 3));
        rows.extend(measure(setup, &terms, ("ratio", &range_name(&ratio)), &methods.collect::<Vec<_>>())?);
    }
    Ok(ratio_findings(&setup.note(), rows))
}

pub fn figure_13(setup: &Setup) -> Result<Findings> {
    use Method::{CpuBinary, CpuMerge, GpuBinary, GpuMerge, GpuSkips, OurCpu, OurGpu};
    let methods = [CpuMerge, CpuBinary, GpuBinary, GpuMerge, GpuSkips, OurCpu, OurGpu];
    let mut rows = Vec::new();
    for length in LENGTHS {
        let longer = setup.length(length * 7 / 10)..setup.length(length * 14 / 10) + 1;
        let most = setup.count(5, 1) as u64;
        let wanted = (MAX_POSTINGS / length / FACTORS.len() as u64).clamp(1, most) as usize;
        let terms = FACTORS.map(|factor| setup.lists.pairs(longer.clone(), factor, wanted)).concat();
        rows.extend(measure(setup, &terms, ("length", &length), &methods)?);
    }
    Ok(length_findings(&setup.note(), rows))
}

fn range_name(ratio: &Range<u32>) -> String {
    format!("[{},{})", ratio.start, ratio.end)
}

/// Checks and times each method on some pairs.
fn measure(setup: &Setup, terms: &[[Term; 2]], group: Label<'_>, methods: &[Method]) -> Result<Vec<Measurement>> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let pairs = Pairs::prepare(setup, terms, methods.contains(&Method::GpuUploaded))?;
    let mean = |value: &dyn Fn(&Pair) -> usize| mean(pairs.pairs.iter().map(|pair| value(pair) as f64));
    let uploaded = |pair: &Pair| pair.packed().elias_fano.iter().map(|list| list.bytes_to_upload()).sum();
    let mut rows = Vec::new();
    for &method in methods {
        let average = pairs.average(setup, method)?;
        let row = Measurement::new("intersect", &[("method", &method.name()), group])
            .with("pairs", pairs.pairs.len() as f64)
            .with("shorter", mean(&|pair| pair.shorter.documents.len()))
            .with("longer", mean(&|pair| pair.longer.documents.len()))
            .with("results", mean(&|pair| pair.expected.len()))
            .with("bytes_sent", (method == Method::GpuUploaded).then(|| mean(&uploaded)));
        rows.push(average.add_to(row));
    }
    Ok(rows)
}

impl Pairs {
    fn prepare(setup: &Setup, terms: &[[Term; 2]], is_uploaded: bool) -> Result<Pairs> {
        let lists = setup.decode(terms.iter().flatten().map(|term| term.number))?;
        let pack = |codec| -> Result<BTreeMap<u64, Arc<Coded>>> {
            let packed = Coded::all(setup, codec, &lists.values().cloned().collect::<Vec<_>>())?;
            Ok(lists.keys().copied().zip(packed.into_iter().map(Arc::new)).collect())
        };
        let packed = if is_uploaded { Some((pack(CodecName::EliasFano)?, pack(CodecName::PforBlock)?)) } else { None };
        let texts: Vec<String> = terms.iter().map(|[one, other]| format!("{} {}", one.text, other.text)).collect();
        let plans = setup.plan(&texts, Mode::And, K)?;
        let hits = setup.hits(&plans)?;
        let intersect = |[one, other]: &[Term; 2]| merge_path::cpu(&lists[&one.number], &lists[&other.number]);
        let expected: Vec<Vec<u32>> = terms.par_iter().map(intersect).collect();
        let upload = |(&number, list)| Ok((number, Arc::new(setup.upload_list(Arc::clone(list))?)));
        let resident = lists.iter().map(upload).collect::<Result<BTreeMap<_, _>, GpuError>>()?;
        let mut pairs = Vec::new();
        for (((terms, plan), hits), expected) in terms.iter().zip(plans).zip(hits).zip(expected) {
            let [shorter, longer] = [0, 1].map(|at: usize| Arc::clone(&resident[&terms[at].number]));
            let of = |lists: &BTreeMap<_, Arc<Coded>>| [0, 1].map(|at: usize| Arc::clone(&lists[&terms[at].number]));
            let packed = packed.as_ref().map(|(elias_fano, pfor)| Packed {
                elias_fano: of(elias_fano),
                pfor: of(pfor),
                lasts: binary_intersection::last_documents(&longer.documents),
            });
            pairs.push(Pair { shorter, longer, packed, expected, plan, hits });
        }
        let scratch_bytes = |pair: &Pair| {
            let lists = pair.lists();
            let merged = merge_path::scratch_bytes(lists, Partitions::of(lists));
            merged.max(binary_intersection::scratch_bytes(lists[0]))
        };
        let scratch = setup.gpu.allocate(pairs.iter().map(scratch_bytes).max().unwrap_or(16))?;
        Ok(Pairs { pairs, scratch })
    }

    /// Checks the results of all pairs, then measures the mean time of a pair.
    fn average(&self, setup: &Setup, method: Method) -> Result<Average> {
        for pair in &self.pairs {
            if let Some(found) = pair.launch(setup, method, &self.scratch)? {
                check(method.name(), &found.read(&setup.gpu, STREAM)?, &pair.expected)?;
            }
        }
        setup.average(&self.pairs, |pair| pair.time(setup, method, &self.scratch))
    }
}

fn merge(gpu: &Gpu, lists: [DeviceList; 2], scratch: &Memory) -> Result<Found, GpuError> {
    merge_path::gpu(gpu, STREAM, Operands::new(lists, scratch), Partitions::of(lists))
}

impl Pair {
    fn lists(&self) -> [DeviceList; 2] {
        [self.shorter.list, self.longer.list]
    }

    fn packed(&self) -> &Packed {
        self.packed.as_ref().expect("lists are packed for methods that need them")
    }

    /// Submits the work of a kernel of the papers; `None` for other methods.
    fn launch(&self, setup: &Setup, method: Method, scratch: &Memory) -> Result<Option<Found>, GpuError> {
        let (gpu, lists) = (&setup.gpu, self.lists());
        let binary = |lasts| binary_intersection::gpu(gpu, STREAM, Operands::new(lists, scratch), lasts);
        Ok(Some(match method {
            Method::GpuMerge => merge(gpu, lists, scratch)?,
            Method::GpuBinary => binary(None)?,
            Method::GpuSkips => binary(Some(self.longer.lasts.address()))?,
            Method::GpuUploaded => {
                let lists = &self.packed().elias_fano;
                for list in lists {
                    list.upload()?;
                    list.launch(Documents)?;
                }
                merge(gpu, [lists[0].list(), lists[1].list()], scratch)?
            }
            _ => return Ok(None),
        }))
    }

    fn time(&self, setup: &Setup, method: Method, scratch: &Memory) -> Result<Timed> {
        let (a, b) = (&self.shorter.documents, &self.longer.documents);
        let name = method.name();
        match method {
            Method::CpuMerge => time_cpu(name, &self.expected, || merge_path::cpu(a, b)),
            Method::CpuBinary => time_cpu(name, &self.expected, || binary_intersection::cpu(a, b)),
            Method::CpuSkips => {
                let lasts = binary_intersection::last_documents(b);
                time_cpu(name, &self.expected, || binary_intersection::cpu_by_skips(a, b, &lasts))
            }
            Method::CpuPacked => time_cpu(name, &self.expected, || self.packed().intersect_on_cpu()),
            Method::OurCpu => setup.time_on_cpu(from_ref(&self.plan), from_ref(&self.hits)),
            Method::OurGpu => setup.time_on_gpu(from_ref(&self.plan), from_ref(&self.hits)),
            Method::GpuBinary | Method::GpuSkips | Method::GpuMerge | Method::GpuUploaded => setup.time(|| {
                let found = self.launch(setup, method, scratch)?.expect("the method has a kernel");
                Ok(Download { from: found.count, bytes: 4 })
            }),
        }
    }
}

impl Packed {
    /// Intersects as the paper's CPU does: lists of similar lengths are decoded and merged; if one is much longer, only
    /// its blocks that may contain a document of the other list are decoded.
    fn intersect_on_cpu(&self) -> Vec<u32> {
        let [shorter, longer] = &self.pfor;
        let documents = shorter.decoded();
        if longer.postings() < SKIP_RATIO * shorter.postings() {
            return merge_path::cpu(&documents, &longer.decoded());
        }
        let (mut block, mut buffer) = (0, [0; BLOCK]);
        let mut length = longer.decode_block(block, &mut buffer).len();
        let mut is_in_longer = |document: &u32| {
            let next = block + self.lasts[block..].partition_point(|last| last < document);
            if next != block {
                if next == self.lasts.len() {
                    return false;
                }
                block = next;
                length = longer.decode_block(block, &mut buffer).len();
            }
            buffer[..length].binary_search(document).is_ok()
        };
        documents.iter().copied().filter(|document| is_in_longer(document)).collect()
    }
}

const HOW_TIMED: &str = "Lists are plain numbers on host and device; the CPU is one core. A time on the GPU is from \
    the call until the host knows the number of documents found, which stay on the device; memory is allocated before. \
    Ours is the executor with the same two terms as a ranked AND: it reads packed lists and bitmaps, scores, and \
    returns the best 10.";

/// Makes a table with a row for each group, and columns for the measured methods and further values.
fn group_table(
    title: &str,
    label: &str,
    rows: &[Measurement],
    (heads, further): (&[&str], impl Fn(&[Measurement]) -> Vec<String>),
) -> (Table, Vec<&'static str>) {
    let is_measured = |name: &&str| find(rows, &[("method", name)]).is_some();
    let names: Vec<&'static str> = METHODS.map(|(_, name)| name).into_iter().filter(is_measured).collect();
    let head = [if label == "length" { "about" } else { label }, "pairs", "shorter", "longer", "in both"];
    let mut table = Table::new(title, 1, &[&head[..], &names, heads].concat());
    for group in groups(rows, label) {
        let counts = ["pairs", "shorter", "longer", "results"].map(|name| group[0].count(name));
        let times = names.iter().map(|name| number(find_value(group, &[("method", name)], "us")));
        let cells = [group[0].label(label).to_owned()].into_iter().chain(counts).chain(times);
        table.row(cells.chain(further(group)));
    }
    (table, names)
}

fn value(group: &[Measurement], method: Method, name: &str) -> f64 {
    find_value(group, &[("method", &method.name())], name)
}

fn ratio_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let faster = |group: &[Measurement]| {
        let is_gpu = value(group, Method::GpuUploaded, "us") < value(group, Method::CpuPacked, "us");
        let paper = RATIOS.iter().find(|(ratio, _)| group[0].label("ratio") == range_name(ratio));
        vec![if is_gpu { "GPU" } else { "CPU" }.to_owned(), paper.map_or(DASH, |(_, faster)| faster).to_owned()]
    };
    let title = "Microseconds to intersect two lists, by the ratio of their lengths";
    let (table, names) = group_table(title, "ratio", &rows, (&["faster, sent", "faster, paper"], faster));
    let table = table.notes(&[
        &format!("{note} {HOW_TIMED}"),
        "Sent, as in the paper: both lists, packed by Elias-Fano, are copied to the device from pageable host memory, \
         decoded and merged. The CPU has both lists packed by PForDelta with a width for each block; from a ratio of \
         16 on it decodes only blocks that may match. Faster compares these two. The text of the paper gives no \
         numbers; it says that the GPU is faster up to a ratio of 128.",
    ]);
    let point = |row: &Measurement| (row.value("longer") / row.value("shorter"), row.value("us"));
    let axes = ["length of the longer list divided by that of the shorter", "us"];
    let subtitle = "microseconds; lower is better";
    let chart = LineChart::logarithmic("Two lists, by the ratio of their lengths", subtitle, axes);
    let chart = chart.lines(lines_by(&rows, "method", &names, point));
    Findings::new(rows).table(table).chart("time", chart)
}

fn length_findings(note: &str, rows: Vec<Measurement>) -> Findings {
    let speedups = |group: &[Measurement]| {
        let others = [(Method::CpuMerge, "us"), (Method::GpuBinary, "us"), (Method::GpuBinary, "device_us")];
        let speedup = |(other, name)| number(value(group, other, name) / value(group, Method::GpuMerge, name));
        others.map(speedup).to_vec()
    };
    let heads = ["MergePath x CPU merge", "x GPU binary", "x GPU binary, on the device"];
    let title = "Microseconds to intersect two lists of comparable lengths";
    let (table, names) = group_table(title, "length", &rows, (&heads, speedups));
    let table = table.notes(&[
        &format!("{note} {HOW_TIMED} A quarter of the pairs each has lengths within a factor of 2, 4, 8 and 16."),
        "On the device: the time that the device records from the start of the work, which clears some counters, to \
         its end. For short lists, most of the time of a call is overhead of the call.",
        "The text of the paper gives only maximal speedups: its MergePath is up to 87.35 times as fast as merging on \
         its CPU, and up to 2.29 times as fast as binary search on its GPU, which is up to 102 times as fast as binary \
         search on its CPU.",
    ]);
    let point = |row: &Measurement| {
        let postings = row.value("shorter") + row.value("longer");
        (row.value("longer").max(1000.0) / 1e3, postings / row.value("us"))
    };
    let subtitle = "postings of both lists per microsecond; higher is better";
    let axes = ["thousand postings in the longer list", "1/us"];
    let chart = LineChart::logarithmic("Two lists of comparable lengths", subtitle, axes);
    let chart = chart.lines(lines_by(&rows, "method", &names, point));
    Findings::new(rows).table(table).chart("rate", chart)
}
