//! Decode speed of kernels: full blocks of real lists, packed by each codec, in device memory.

use super::GpuRun;
use super::tables::runs_of;
use crate::error::{BenchError, Result};
use crate::experiments::Findings;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::table::{Table, number};
use lanner::Index;
use lanner::internals::device::decode::{
    DECODE_SHARED, DECODE_THREADS, DecodeArguments, DecodeKind, DecodeOutput, DecodeRow, decoder,
};
use lanner::internals::papers::compaction::read_numbers;
use lanner_gpu::device::{Command, Device, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory};
use lanner_index::codec::{BLOCK, CodecName, LONGEST_COLUMN_BYTES};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// What kernels do with the decoded numbers: store all, or sum them up.
const OUTPUTS: [(&str, DecodeOutput); 2] = [("written", DecodeOutput::Numbers), ("read", DecodeOutput::Sum)];

/// Minimal number of full blocks of a list.
const LONG_BLOCKS: usize = 16;
/// Thread blocks of a launch per SM.
const THREAD_BLOCKS_PER_SM: u32 = 16;
/// Decoders may read up to this many bytes beyond the last payload.
const PADDING: usize = LONGEST_COLUMN_BYTES;
/// Alignment of payloads.
const ALIGNMENT: usize = 16;
/// The CUDA stream of all measurements except those of queries.
pub const STREAM: Stream = Stream(0);

/// Blocks packed by a codec.
#[derive(Default)]
pub struct Encoded {
    /// Payloads and shared parts, aligned.
    pub bytes: Vec<u8>,
    /// A row for each block.
    pub rows: Vec<DecodeRow>,
    /// Bytes of payloads and shared parts, without padding.
    pub packed: usize,
}

/// Packed blocks on the device.
pub struct Uploaded {
    gpu: Gpu,
    kernel: &'static TypedKernel<DecodeArguments>,
    rows: Memory,
    bytes: Memory,
    /// The decoded numbers, 128 per block.
    pub out: Memory,
    sink: Memory,
    blocks: u32,
}

/// Measures every codec that has a GPU decoder.
pub fn run(run: &GpuRun<'_>, index: &Index, device: Arc<dyn Device>) -> Result<Findings> {
    let lists = full_blocks(index, run.part.decoded_blocks)?;
    if lists.is_empty() {
        let what = format!("no sparse list of the collection has {LONG_BLOCKS} full blocks; leave part=decode out");
        return Err(BenchError::Usage(what));
    }
    let memory = device.properties().memory;
    let gpu = Gpu::new(device, memory);
    let mut rows = Vec::new();
    for codec in CodecName::ALL.into_iter().filter(|codec| codec.has_gpu_decoder()) {
        (run.context.say)(&format!("decoding {codec}"));
        let encoded = Encoded::lists(codec, &lists);
        let uploaded = Uploaded::new(&gpu, codec, &encoded)?;
        uploaded.check(codec, &lists.concat())?;
        for (name, output) in OUTPUTS {
            let runs = run.repeat(|| Ok(uploaded.seconds(output)?))?;
            rows.push(measurement((codec, name), &runs, lists.len(), &encoded));
        }
    }
    Ok(findings(rows))
}

/// Returns the documents of the full blocks of long sparse lists. Lists are taken at equal distances, from the longest
/// on, so that there are at least as many blocks as wanted if the index has as many.
fn full_blocks(index: &Index, wanted: usize) -> Result<Vec<Vec<u32>>> {
    let mut long = Vec::new();
    for term in 0..index.segment().header().terms {
        if index.segment().span(term).is_some_and(|span| span.is_long) {
            let list = index.segment().list(term)?;
            let full = list.postings() as usize / BLOCK;
            if full >= LONG_BLOCKS && list.dense().is_none() {
                long.push((full, term));
            }
        }
    }
    long.sort_unstable_by(|one, other| other.cmp(one));
    let all: usize = long.iter().map(|(full, _)| full).sum();
    let taken = long.iter().step_by((all / wanted).max(1));
    taken.map(|&(full, term)| documents_of(index, term, full)).collect()
}

/// Returns the documents of the first blocks of a list.
pub fn documents_of(index: &Index, term: u64, blocks: usize) -> Result<Vec<u32>> {
    let list = index.segment().list(term)?;
    let (mut documents, mut buffer) = (Vec::with_capacity(list.postings() as usize), [0; BLOCK]);
    for block in 0..blocks.min(list.blocks()) {
        let count = list.decode_documents(block, &mut buffer);
        documents.extend_from_slice(&buffer[..count]);
    }
    Ok(documents)
}

impl Encoded {
    /// Packs a list as in an index: a shared part, then the payloads of its blocks.
    pub fn list(name: CodecName, documents: &[u32]) -> Encoded {
        let (codec, mut shared, mut list) = (name.codec(), Vec::new(), Encoded::default());
        let before = std::iter::once(0).chain(documents.iter().map(|document| document + 1));
        codec.encode_shared(&mut documents.iter().zip(before).map(|(document, before)| document - before), &mut shared);
        let shared_start = list.align() as u64;
        list.bytes.extend(&shared);
        list.packed += shared.len();
        let mut base = 0;
        for (block, numbers) in documents.chunks(BLOCK).enumerate() {
            let start = list.align();
            let byte = u32::from(codec.encode_documents(&shared, base, numbers, &mut list.bytes));
            list.packed += list.bytes.len() - start;
            let (count, shared_bytes, block) = (numbers.len() as u32, shared.len() as u32, block as u32);
            let start = start as u64;
            list.rows.push(DecodeRow { start, shared_start, shared_bytes, base, count, byte, block, reserved: 0 });
            base = numbers[numbers.len() - 1] + 1;
        }
        list
    }

    /// Packs several lists.
    fn lists(codec: CodecName, lists: &[Vec<u32>]) -> Encoded {
        let encoded: Vec<Encoded> = lists.par_iter().map(|list| Encoded::list(codec, list)).collect();
        let mut all = Encoded::default();
        for list in encoded {
            let start = all.align() as u64;
            all.bytes.extend(list.bytes);
            let moved =
                |row: DecodeRow| DecodeRow { start: row.start + start, shared_start: row.shared_start + start, ..row };
            all.rows.extend(list.rows.into_iter().map(moved));
            all.packed += list.packed;
        }
        all
    }

    /// Returns the rows as bytes.
    pub fn row_bytes(&self) -> Vec<u8> {
        self.rows.iter().flat_map(|row| row.bytes().to_vec()).collect()
    }

    /// Pads to the next position where a payload may start, and returns it.
    fn align(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self.bytes.len()
    }
}

impl Uploaded {
    /// Uploads blocks and allocates the buffers of the kernels.
    pub fn new(gpu: &Gpu, codec: CodecName, encoded: &Encoded) -> Result<Uploaded, GpuError> {
        let rows = encoded.row_bytes();
        let uploaded = Uploaded {
            gpu: gpu.clone(),
            kernel: decoder(codec).expect("measurements on a GPU use codecs with a GPU decoder"),
            rows: gpu.allocate(rows.len())?,
            bytes: gpu.allocate(encoded.bytes.len() + PADDING)?,
            out: gpu.allocate(4 * BLOCK * encoded.rows.len())?,
            sink: gpu.allocate(4)?,
            blocks: encoded.rows.len() as u32,
        };
        let padding = uploaded.bytes.address().plus(encoded.bytes.len());
        uploaded.upload(&rows, &encoded.bytes)?;
        gpu.submit(STREAM, Command::Clear { at: padding, bytes: PADDING })?;
        gpu.submit(STREAM, Command::Clear { at: uploaded.sink.address(), bytes: 4 })?;
        gpu.wait(STREAM)?;
        Ok(uploaded)
    }

    /// Copies rows and bytes to the device.
    pub fn upload(&self, rows: &[u8], bytes: &[u8]) -> Result<(), GpuError> {
        self.gpu.submit(STREAM, Command::Write { from: rows, to: self.rows.address() })?;
        self.gpu.submit(STREAM, Command::Write { from: bytes, to: self.bytes.address() })
    }

    /// Launches the kernel that decodes all blocks.
    pub fn launch(&self, kind: DecodeKind, output: DecodeOutput) -> Result<(), GpuError> {
        let argument = DecodeArguments {
            rows: self.rows.address(),
            bytes: self.bytes.address(),
            out: self.out.address(),
            blocks: self.blocks,
            tag: 0,
            kind,
            output,
            sink: self.sink.address(),
        };
        let needed = self.blocks.div_ceil(DECODE_THREADS / 32);
        let grid = (THREAD_BLOCKS_PER_SM * self.gpu.properties().multiprocessors).min(needed);
        self.gpu.launch(STREAM, self.kernel, Shape { grid, block: DECODE_THREADS, shared: DECODE_SHARED }, &argument)
    }

    /// Compares the decoded numbers and their sum with the documents. This also warms the kernel up.
    fn check(&self, codec: CodecName, documents: &[u32]) -> Result<()> {
        self.launch(DecodeKind::Documents, DecodeOutput::Numbers)?;
        self.launch(DecodeKind::Documents, DecodeOutput::Sum)?;
        let read = |memory: &Memory| read_numbers(&self.gpu, STREAM, memory.address(), memory.bytes() / 4);
        let sum = documents.iter().fold(0, |sum: u32, document| sum.wrapping_add(*document));
        if read(&self.out)? == documents && read(&self.sink)?[0] == sum {
            return Ok(());
        }
        let what = format!("the GPU decodes other documents from blocks of {codec} than the CPU has encoded");
        Err(BenchError::Device { what })
    }

    /// Measures the time of a launch on the device.
    fn seconds(&self, output: DecodeOutput) -> Result<f64, GpuError> {
        self.gpu.submit(STREAM, Command::Mark)?;
        self.launch(DecodeKind::Documents, output)?;
        self.gpu.submit(STREAM, Command::Mark)?;
        Ok(self.gpu.wait(STREAM)?.iter().map(Duration::as_secs_f64).sum())
    }
}

const RATE: [&str; 3] = ["g_values_a_second", "g_values_a_second_least", "g_values_a_second_most"];

fn measurement((codec, output): (CodecName, &str), runs: &[f64], lists: usize, encoded: &Encoded) -> Measurement {
    let values = (encoded.rows.len() * BLOCK) as f64;
    let seconds = Spread::of(runs.iter().copied());
    Measurement::new("decode", &[("codec", &codec), ("output", &output)])
        .with("lists", lists as f64)
        .with("blocks", encoded.rows.len() as f64)
        .with("values", values)
        .with("bits_a_value", encoded.packed as f64 * 8.0 / values)
        .with("runs", runs.len() as f64)
        .with("ps_a_value", seconds.median * 1e12 / values)
        .with_spread(RATE, seconds.rates(values / 1e9))
}

fn findings(rows: Vec<Measurement>) -> Findings {
    let rates = ["ids written, G values/s", "read only, G values/s"].map(|head| [head, "least", "most"]).concat();
    let columns = [&["codec", "bits per value"], &rates[..]].concat();
    let mut table = Table::new("Decoding on the device", 1, &columns);
    for pair in rows.chunks(OUTPUTS.len()) {
        let mut cells = vec![pair[0].label("codec").to_owned(), number(pair[0].value("bits_a_value"))];
        cells.extend(pair.iter().flat_map(|row| row.cells(&[], &RATE)));
        table.row(cells);
    }
    let (blocks, lists, runs) =
        (rows[0].count("blocks"), rows[0].count("lists"), runs_of(&rows.iter().collect::<Vec<_>>()));
    let table = table.notes(&[&format!(
        "{blocks} full blocks of {lists} sparse lists; a decoded value has 4 bytes. Time of a launch on the device, \
         median of {runs} runs, after the numbers were compared."
    )]);
    Findings::new(rows).table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::codec::Packed;

    #[test]
    fn packed_blocks_decode_to_the_same_documents() {
        let list = |first: u32, gap: u32| (0..3 * BLOCK as u32).map(move |number| first + number * gap + number % 3);
        let lists: [Vec<u32>; 3] = [list(5, 7).collect(), list(0, 1000).collect(), list(99, 4).collect()];
        for name in CodecName::ALL {
            let encoded = Encoded::lists(name, &lists);
            assert_eq!(encoded.rows.len(), 9);
            for (row, expected) in encoded.rows.iter().zip(lists.concat().chunks(BLOCK)) {
                let shared = &encoded.bytes[row.shared_start as usize..][..row.shared_bytes as usize];
                let bytes = &encoded.bytes[row.start as usize..];
                let packed = Packed { byte: row.byte as u8, bytes, shared, block: row.block as usize };
                let mut decoded = [0; BLOCK];
                name.codec().decode_documents(packed, row.base, &mut decoded);
                assert_eq!(decoded, expected, "{name}");
                assert_eq!(row.start % 16, 0);
            }
        }
    }
}
