//! Every codec with a GPU decoder decodes the same numbers as on the CPU: documents, values, single values, and where a
//! column ends. On the simulator, or on a GPU where `LANNER_REQUIRE_GPU=1` asks for one.

mod device;

use lanner::internals::device::decode::{
    DECODE, DECODE_SHARED, DECODE_THREADS, DecodeArguments, DecodeKind, DecodeOutput, DecodeRow, decoder,
};
use lanner::internals::executors::Executor;
use lanner::internals::oracle::{Oracle, Question};
use lanner::internals::query::planner::Planner;
use lanner::{Engine, GpuOptions, Index, Mode, Query};
use lanner_gpu::device::{Address, Command, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory};
use lanner_gpu::simulator::Simulator;
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::{BLOCK, CodecName, Codecs, LONGEST_COLUMN_BYTES, Packed};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::weight::Bm25;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The codecs that have a GPU decoder, each with the kernel that decodes only it.
fn codecs() -> impl Iterator<Item = (CodecName, &'static TypedKernel<DecodeArguments>)> {
    let codecs = CodecName::ALL.into_iter().filter(|codec| codec.has_gpu_decoder());
    codecs.map(|codec| (codec, decoder(codec).expect("a kernel of its own")))
}

/// The bytes between columns, like the ones and high bits of other columns.
const RUBBISH: u8 = 0xFF;

/// Columns of one codec and kind, with what the CPU decodes from them.
#[derive(Debug)]
struct Columns {
    name: CodecName,
    is_documents: bool,
    bytes: Vec<u8>,
    /// The byte that follows all of them.
    behind: u8,
    rows: Vec<DecodeRow>,
    /// By row.
    wanted: Vec<Vec<u32>>,
    /// By row.
    lengths: Vec<usize>,
}

impl Columns {
    fn new(name: CodecName, is_documents: bool) -> Columns {
        let (bytes, rows, wanted, lengths) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Columns { name, is_documents, bytes, behind: RUBBISH, rows, wanted, lengths }
    }

    /// Adds a list as it is stored in a file: with a shared part, unless it is one partial block.
    fn add_list(&mut self, list: &List) {
        let numbers = if self.is_documents { &list.documents } else { &list.values };
        let mut shared = Vec::new();
        if numbers.len() >= BLOCK {
            self.name.codec().encode_shared(&mut list.packed_numbers(self.is_documents).into_iter(), &mut shared);
        }
        let shared_start = self.add_bytes(&shared, 0);
        for (block, chunk) in numbers.chunks(BLOCK).enumerate() {
            let base = if block == 0 { list.base } else { numbers[block * BLOCK - 1].wrapping_add(1) };
            let row = DecodeRow { shared_start, block: block as u32, base, ..DecodeRow::default() };
            self.add_block(row, &shared, chunk, list.skew);
        }
    }

    /// Adds one block, which starts at the next multiple of 16 or, where its kind allows it, `skew` bytes after it.
    fn add_block(&mut self, row: DecodeRow, shared: &[u8], numbers: &[u32], skew: usize) {
        let (codec, mut column) = (self.name.codec(), Vec::new());
        let byte = match self.is_documents {
            true => codec.encode_documents(shared, row.base, numbers, &mut column),
            false => codec.encode_values(shared, numbers, &mut column),
        };
        let skew = match (numbers.len(), self.is_documents) {
            (BLOCK, true) => 0,
            (BLOCK, false) => skew / 4 * 4,
            _ => skew,
        };
        let start = self.add_bytes(&column, skew);
        let (count, shared_bytes) = (numbers.len() as u32, shared.len() as u32);
        self.rows.push(DecodeRow { start, shared_bytes, count, byte: u32::from(byte), ..row });
        let packed = Packed { byte, bytes: &column, shared, block: row.block as usize };
        let mut decoded = vec![0; numbers.len()];
        match self.is_documents {
            true => codec.decode_documents(packed, row.base, &mut decoded),
            false => codec.decode_values(packed, &mut decoded),
        }
        assert_eq!(decoded, numbers);
        self.lengths.push(codec.length(packed, numbers.len()));
        self.wanted.push(decoded);
    }

    fn add_bytes(&mut self, bytes: &[u8], skew: usize) -> u64 {
        let start = self.bytes.len().next_multiple_of(16) + skew;
        self.bytes.resize(start, RUBBISH);
        self.bytes.extend(bytes);
        start as u64
    }

    fn kinds(&self) -> &'static [DecodeKind] {
        if self.is_documents { &[DecodeKind::Documents] } else { &[DecodeKind::Values, DecodeKind::SingleValues] }
    }

    /// Runs a kernel over all rows; returns the numbers of each block, and the sum.
    fn run(&self, run: Run) -> Result<(Vec<u32>, u32), GpuError> {
        let gpu = Gpu::new(device::open(run.seed), 1 << 30);
        let rows: Vec<u8> = self.rows.iter().flat_map(|row| row.bytes().to_vec()).collect();
        let mut bytes = self.bytes.clone();
        bytes.resize((bytes.len() + LONGEST_COLUMN_BYTES).next_multiple_of(4), self.behind);
        let (rows, bytes, sink) = (upload(&gpu, &rows)?, upload(&gpu, &bytes)?, upload(&gpu, &[0; 4])?);
        let out = gpu.allocate(4 * BLOCK * self.rows.len())?;
        let argument = DecodeArguments {
            rows: rows.address(),
            bytes: bytes.address(),
            out: out.address(),
            blocks: self.rows.len() as u32,
            tag: self.name as u32,
            kind: run.kind,
            output: run.output,
            sink: sink.address(),
        };
        let shape = Shape { grid: 1 + (run.seed % 3) as u32, block: DECODE_THREADS, shared: DECODE_SHARED };
        gpu.launch(Stream(0), run.kernel, shape, &argument)?;
        Ok((download(&gpu, &out)?, download(&gpu, &sink)?[0]))
    }

    /// A kernel decodes what the CPU decodes.
    fn assert_equal(&self, kernel: &TypedKernel<DecodeArguments>, seed: u64) {
        for &kind in self.kinds() {
            let run = |output| self.run(Run { kernel, kind, output, seed }).unwrap();
            let (numbers, _) = run(DecodeOutput::Numbers);
            let (lengths, _) = run(DecodeOutput::Lengths);
            let (_, sum) = run(DecodeOutput::Sum);
            let what = format!("{} by {}, {kind:?}", self.name, kernel.kernel.name);
            for (row, wanted) in self.wanted.iter().enumerate() {
                let place = row * BLOCK;
                assert_eq!(&numbers[place..place + wanted.len()], wanted, "{what}: {:?}", self.rows[row]);
                assert_eq!(lengths[place] as usize, self.lengths[row], "{what}: {:?}", self.rows[row]);
            }
            let wanted = self.wanted.iter().flatten().fold(0, |sum: u32, number| sum.wrapping_add(*number));
            assert_eq!(sum, wanted, "{what}");
        }
    }
}

/// How columns are decoded.
struct Run<'a> {
    kernel: &'a TypedKernel<DecodeArguments>,
    kind: DecodeKind,
    output: DecodeOutput,
    seed: u64,
}

fn upload(gpu: &Gpu, bytes: &[u8]) -> Result<Memory, GpuError> {
    let memory = gpu.allocate(bytes.len())?;
    gpu.submit(Stream(0), Command::Write { from: bytes, to: memory.address() })?;
    Ok(memory)
}

fn download(gpu: &Gpu, memory: &Memory) -> Result<Vec<u32>, GpuError> {
    let pinned = gpu.pin(memory.bytes())?;
    gpu.submit(Stream(0), Command::Copy { from: memory.address(), to: pinned.address(), bytes: memory.bytes() })?;
    gpu.wait(Stream(0))?;
    Ok(pinned.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// Postings of a list, and how many bytes after a multiple of 16 its partial block starts.
#[derive(Clone, Debug)]
struct List {
    base: u32,
    documents: Vec<u32>,
    values: Vec<u32>,
    skew: usize,
}

impl List {
    /// Values are the numbers plus 1; documents have them as gaps, as long as they fit.
    fn of_numbers(base: u32, numbers: &[u32], skew: usize) -> List {
        let (mut next, mut left) = (base, numbers.len() as u32);
        let document_after = |gap: &u32| {
            left -= 1;
            let document = next + (*gap).min(u32::MAX - next - left);
            next = document.wrapping_add(1);
            document
        };
        let documents = numbers.iter().map(document_after).collect();
        let values = numbers.iter().map(|number| number.saturating_add(1)).collect();
        List { base, documents, values, skew }
    }

    /// What codecs pack: gaps, or values less 1.
    fn packed_numbers(&self, is_documents: bool) -> Vec<u32> {
        if !is_documents {
            return self.values.iter().map(|value| value - 1).collect();
        }
        let before = std::iter::once(self.base).chain(self.documents.iter().map(|document| document.wrapping_add(1)));
        self.documents.iter().zip(before).map(|(document, before)| document - before).collect()
    }
}

/// How large the numbers of a list are.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// All the same.
    Equal(u32),
    /// Of this many bits.
    Bits(u32),
    /// Bits of most, of one in about twelve, of one in about two hundred.
    Mixed([u32; 3]),
    /// Bits of most, and of those in bursts, which are far from each other.
    Bursts([u32; 2]),
}

impl Sizes {
    /// The number at a place, from random bits.
    fn number(self, place: usize, random: u64) -> u32 {
        let (number, chance) = (random as u32, (random >> 32) % 200);
        let of_bits = |bits: u32| (u64::from(number) & ((1 << bits) - 1)) as u32;
        match self {
            Sizes::Equal(number) => number,
            Sizes::Bits(bits) => of_bits(bits),
            Sizes::Mixed(bits) => of_bits(bits[if chance == 0 { 2 } else { usize::from(chance < 17) }]),
            Sizes::Bursts(bits) => of_bits(bits[usize::from(place % 64 < 12)]),
        }
    }
}

fn sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        1 => prop_oneof![Just(0), Just(1), any::<u32>()].prop_map(Sizes::Equal),
        2 => (0u32..=32).prop_map(Sizes::Bits),
        2 => [0u32..=4, 0u32..=10, 0u32..=32].prop_map(Sizes::Mixed),
        1 => prop::array::uniform3(0u32..=32).prop_map(Sizes::Mixed),
        2 => [0u32..=3, 0u32..=32].prop_map(Sizes::Bursts),
    ]
}

fn list() -> impl Strategy<Value = List> {
    let count = prop_oneof![2 => Just(BLOCK), 4 => 1..BLOCK, 1 => Just(1), 3 => BLOCK + 1..4 * BLOCK];
    let random = count.prop_flat_map(|count| prop::collection::vec(any::<u64>(), count));
    let base = prop_oneof![Just(0), any::<u32>().prop_map(|base| base >> 8)];
    (base, sizes(), random, 0usize..16).prop_map(|(base, sizes, random, skew)| {
        let numbers = random.iter().enumerate().map(|(place, &random)| sizes.number(place, random));
        List::of_numbers(base, &numbers.collect::<Vec<u32>>(), skew)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn every_codec_reads_on_the_gpu_what_it_reads_on_the_cpu(
        lists in prop::collection::vec(list(), 1..16), seed: u64, is_documents: bool,
    ) {
        for (name, kernel) in codecs() {
            let mut columns = Columns::new(name, is_documents);
            lists.iter().for_each(|list| columns.add_list(list));
            columns.assert_equal(kernel, seed);
            columns.assert_equal(&DECODE, seed ^ 1);
        }
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn a_full_block_needs_no_shared_part(lists in prop::collection::vec(list(), 1..16), seed: u64) {
        for name in [CodecName::Pfor, CodecName::PforBlock] {
            let kernel = decoder(name).unwrap();
            let mut columns = Columns::new(name, false);
            for list in &lists {
                let values = &list.values[..list.values.len().min(BLOCK)];
                columns.add_block(DecodeRow::default(), &[], values, list.skew);
            }
            columns.assert_equal(kernel, seed);
        }
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn damaged_bytes_make_wrong_numbers_and_nothing_else(
        lists in prop::collection::vec(list(), 1..8), seed: u64, is_documents: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        directory in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..66], 8),
    ) {
        for (name, kernel) in codecs() {
            let mut columns = Columns::new(name, is_documents);
            lists.iter().for_each(|list| columns.add_list(list));
            // Every column may be empty.
            columns.add_bytes(&[RUBBISH], 0);
            for (at, byte) in &damage {
                let at = at.index(columns.bytes.len());
                columns.bytes[at] = *byte;
            }
            for (row, byte) in columns.rows.iter_mut().zip(&directory) {
                row.byte = u32::from(*byte);
            }
            assert_ends_are_near(&columns, kernel, seed);
        }
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn any_bytes_are_read_in_bounds(
        bytes in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>(), 1 => 0u8..33], 64..200),
        behind in prop_oneof![2 => Just(0u8), 1 => Just(RUBBISH), 1 => any::<u8>()],
        byte in prop_oneof![any::<u8>(), 0u8..66], count in prop_oneof![Just(BLOCK), 1..=BLOCK],
        block in 0u32..9, shared_bytes in 0u32..64, seed: u64, is_documents: bool,
    ) {
        for (name, kernel) in codecs() {
            let mut columns = Columns::new(name, is_documents);
            // Nearly all that is read of the column is after the bytes.
            let start = if count == BLOCK { bytes.len() / 4 * 4 - 4 } else { bytes.len() - 1 } as u64;
            let (byte, count) = (u32::from(byte), count as u32);
            columns.rows.push(DecodeRow { start, shared_bytes, count, byte, block, ..DecodeRow::default() });
            columns.bytes.clone_from(&bytes);
            columns.behind = behind;
            assert_ends_are_near(&columns, kernel, seed);
        }
    }
}

/// Whatever the bytes hold, the kernel ends, and the end of the column is where the next one may start.
fn assert_ends_are_near(columns: &Columns, kernel: &TypedKernel<DecodeArguments>, seed: u64) {
    for &kind in columns.kinds() {
        let (lengths, _) = columns.run(Run { kernel, kind, output: DecodeOutput::Lengths, seed }).unwrap();
        for (row, &length) in columns.rows.iter().zip(lengths.iter().step_by(BLOCK)) {
            assert!(length as usize <= LONGEST_COLUMN_BYTES, "{}, {kind:?}: {length} bytes of {row:?}", columns.name);
            assert!(row.count as usize != BLOCK || length % 4 == 0, "{}, {kind:?}: {length}, {row:?}", columns.name);
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn words_are_read_for_what_does_not_fit_into_slots() {
    // Most numbers take a bit, one in four takes five, and of these one in ten takes 24.
    let random = |i: u32| i.wrapping_mul(0x9E37_79B9) >> 5;
    let number = |i: u32| match (random(i) % 4, random(i) / 4 % 10) {
        (0, 0) => 1 << 23 | i,
        (0, _) => 16 + i % 16,
        _ => i % 2,
    };
    // Exceptions in bursts, the first of which is 49 numbers from the one before; of each other burst it takes 24 bits.
    let burst = |i: u32| match (i % 64, i / 64 % 2) {
        (0, 0) => 1 << 23 | i,
        (0..16, _) => 900 + i % 100,
        _ => i % 2,
    };
    let (numbers, bursts): (Vec<u32>, Vec<u32>) = (0..48_000).map(|i| (number(i), burst(i))).unzip();
    for (numbers, far_bits) in [(&numbers, 32), (&bursts, 6)] {
        let list = List::of_numbers(0, numbers, 0);
        let mut shared = Vec::new();
        CodecName::Pfor.codec().encode_shared(&mut numbers.iter().copied(), &mut shared);
        assert!(shared[1] < far_bits && shared[0] + shared[2] < 24, "{:?}", &shared[..4]);
        let mut columns = Columns::new(CodecName::Pfor, false);
        columns.add_list(&list);
        let mut kept = (0..columns.rows.len()).map(|row| row % 5 == 0);
        columns.wanted.retain(|_| kept.next().unwrap());
        columns.rows = columns.rows.into_iter().step_by(5).collect();
        columns.lengths = columns.lengths.into_iter().step_by(5).collect();
        columns.assert_equal(decoder(CodecName::Pfor).unwrap(), 7);
    }
}

/// A document of a collection that gives lists of many blocks, of one, and of a single posting.
fn text(document: usize) -> String {
    let words = [("falcon", 3), ("heron", 40), ("egret", 601)];
    let times = |every: usize| if document.is_multiple_of(every) { 1 + document % 4 } else { 0 };
    let word = |(word, every): (&str, usize)| [word, " "].concat().repeat(times(every));
    words.map(word).concat() + "bird"
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_index_of_any_codec_is_answered_right_by_the_device_or_else_by_the_cpu() {
    let words = [("falcon", 1.0), ("heron", 2.0), ("egret", 1.0)].map(|(word, weight)| (word.to_owned(), weight));
    for codec in CodecName::ALL {
        let folder = tempfile::tempdir().unwrap();
        let documents: Vec<_> = (0..2000).map(|number| (number.to_string(), String::new(), text(number))).collect();
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        let codecs = Codecs { documents: codec, weights: codec };
        build(folder.path(), corpus, &BuildOptions { dense: false, codecs, ..BuildOptions::default() }, &Quiet)
            .unwrap();
        let index = Arc::new(Index::open(folder.path()).unwrap());
        let oracle = Oracle::from_texts(Bm25::default(), index.analyzer(), (0..2000).map(text));
        let gpu = Engine::new(Arc::clone(&index)).gpu(GpuOptions::new(Box::new(|| Ok(device::open(1)))));
        for mode in [Mode::And, Mode::Or, Mode::AndOr] {
            let plan = Planner::new(&index).plan(&Query::new("falcon heron^2 egret").mode(mode).k(20)).unwrap();
            let question = Question { terms: &words, mode, k: 20, score: plan.score, range: 0..u32::MAX, filter: None };
            let [answer] = &gpu.run(&[plan]).unwrap()[..] else { panic!("an answer for each plan") };
            assert_eq!(answer.hits, oracle.answer(&question), "{codec}, {mode:?}");
        }
        let counters = gpu.counters().unwrap();
        let counters = [&counters.answered, &counters.unsupported].map(|counter| counter.load(Relaxed));
        assert_eq!(counters, if codec.has_gpu_decoder() { [3, 0] } else { [0, 3] }, "{codec}");
    }
    let has_decoder = |codec: &CodecName| codec.has_gpu_decoder();
    assert!(
        CodecName::ALL.iter().any(has_decoder) && !CodecName::ALL.iter().all(has_decoder),
        "with and without a decoder"
    );
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_unknown_tag_traps() {
    let is_known = |tag: &u32| codecs().any(|(codec, _)| codec as u32 == *tag);
    for tag in (0..=u32::from(u8::MAX)).chain([u32::MAX]).filter(|tag| !is_known(tag)) {
        let gpu = Gpu::new(Arc::new(Simulator::new(1)), 1 << 30);
        let row = DecodeRow { count: 1, ..DecodeRow::default() };
        let (rows, bytes) = (upload(&gpu, row.bytes()).unwrap(), upload(&gpu, &[0; LONGEST_COLUMN_BYTES]).unwrap());
        let out = gpu.allocate(4 * BLOCK).unwrap();
        let argument = DecodeArguments {
            rows: rows.address(),
            bytes: bytes.address(),
            out: out.address(),
            blocks: 1,
            tag,
            kind: DecodeKind::Documents,
            output: DecodeOutput::Numbers,
            sink: Address::NULL,
        };
        let shape = Shape { grid: 1, block: DECODE_THREADS, shared: DECODE_SHARED };
        gpu.launch(Stream(0), &DECODE, shape, &argument).unwrap();
        let error = gpu.wait(Stream(0)).unwrap_err();
        assert!(matches!(&error, GpuError::Lost { reason } if reason.contains(": trap (")), "tag {tag}: {error}");
    }
}
