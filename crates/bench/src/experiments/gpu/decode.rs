//! How fast kernels decode: full blocks of real lists, packed again by each codec, in the device's memory.

use super::GpuRun;
use super::tables::runs_of;
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::result::Measurement;
use crate::statistics::Spread;
use crate::table::{Table, count, number};
use lanner::Index;
use lanner::internals::device::decode::{
    DECODE_SHARED, DECODE_THREADS, DecodeArguments, DecodeKind, DecodeOutput, DecodeRow, decoder,
};
use lanner_gpu::device::{Command, Device, Shape, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::{Argument, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use lanner_index::codec::{BLOCK, CodecName, LONGEST_COLUMN_BYTES};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const CODECS: [CodecName; 4] = [CodecName::Bitpack, CodecName::EliasFano, CodecName::Pfor, CodecName::Rice];
/// What is done with the decoded numbers: all are stored, or they are summed up.
const OUTPUTS: [(&str, DecodeOutput); 2] = [("written", DecodeOutput::Numbers), ("read", DecodeOutput::Sum)];

/// A list is long from so many full blocks on.
const LONG_BLOCKS: usize = 16;
/// Thread blocks of a launch for each processor of the device.
const GRID_A_PROCESSOR: u32 = 16;
/// Decoders may read this many bytes after the last column.
const PADDING: usize = LONGEST_COLUMN_BYTES;
/// Streams of full blocks start at multiples of this.
const ALIGNMENT: usize = 16;
/// The stream of all measurements but those of queries.
pub(crate) const STREAM: Stream = Stream(0);

/// The documents of the full blocks of some lists.
struct Blocks {
    documents: Vec<u32>,
    /// Where each list lies in `documents`.
    lists: Vec<Range<usize>>,
}

/// Blocks as a codec packs them.
#[derive(Default)]
pub(crate) struct Encoded {
    /// The streams and shared parts.
    pub bytes: Vec<u8>,
    /// A row for each stream.
    pub rows: Vec<DecodeRow>,
    /// Bytes of the streams and shared parts alone.
    pub packed: usize,
}

/// Blocks on the device.
pub(crate) struct Uploaded {
    gpu: Gpu,
    rows: Memory,
    bytes: Memory,
    /// What is decoded, 128 numbers a block.
    pub out: Memory,
    sink: Memory,
    blocks: u32,
}

/// Measures every codec that has a kernel of its own.
pub fn run(run: &GpuRun<'_>, index: &Index, device: Arc<dyn Device>) -> Result<Findings, BenchError> {
    let blocks = Blocks::of(index, run.part.decoded_blocks)?;
    if blocks.lists.is_empty() {
        let what = format!("no sparse list of the collection has {LONG_BLOCKS} full blocks; leave out part=decode");
        return Err(BenchError::Usage(what));
    }
    let memory = device.limits().memory;
    let gpu = Gpu::new(device, memory);
    let mut rows = Vec::new();
    for codec in CODECS {
        let kernel = decoder(codec).expect("a codec with a GPU decoder");
        let encoded = blocks.encode(codec);
        (run.say)(&format!("decoding {codec}"));
        let uploaded = Uploaded::new(&gpu, &encoded)?;
        uploaded.check(codec, kernel, &blocks.documents)?;
        for (name, output) in OUTPUTS {
            let runs = run.repeat(|| Ok(uploaded.seconds(kernel, output)?))?;
            rows.push(measurement(codec, name, &runs, &blocks, encoded.packed));
        }
    }
    Ok(findings(rows))
}

impl Blocks {
    /// Full blocks of long lists that are not bitmaps: every so many-th list from the longest on, so that there are at
    /// least as many blocks as wanted, where the index has them.
    fn of(index: &Index, wanted: usize) -> Result<Blocks, BenchError> {
        let mut long = Vec::new();
        for term in 0..index.segment().header().terms {
            if index.segment().span(term).is_some_and(|span| span.is_long) {
                let list = index.segment().list(term)?;
                let full = list.postings() as usize / BLOCK;
                if list.dense().is_none() && full >= LONG_BLOCKS {
                    long.push((full, term));
                }
            }
        }
        long.sort_unstable_by(|one, other| other.cmp(one));
        let all: usize = long.iter().map(|(full, _)| full).sum();
        let mut blocks = Blocks { documents: Vec::new(), lists: Vec::new() };
        for &(full, term) in long.iter().step_by((all / wanted).max(1)) {
            let list = index.segment().list(term)?;
            let start = blocks.documents.len();
            let mut buffer = [0; BLOCK];
            for block in 0..full {
                list.decode_documents(block, &mut buffer);
                blocks.documents.extend(buffer);
            }
            blocks.lists.push(start..blocks.documents.len());
        }
        Ok(blocks)
    }

    fn count(&self) -> usize {
        self.documents.len() / BLOCK
    }

    /// Packs all lists on all threads.
    fn encode(&self, codec: CodecName) -> Encoded {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = self.documents.len().div_ceil(threads);
        let parts = self.lists.chunk_by(|one, other| one.start / share == other.start / share);
        let parts: Vec<Encoded> = std::thread::scope(|scope| {
            let workers: Vec<_> = parts.map(|lists| scope.spawn(move || self.encode_lists(codec, lists))).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        let mut all = Encoded::default();
        for part in parts {
            let start = all.align() as u64;
            all.bytes.extend(part.bytes);
            let moved = part.rows.into_iter();
            all.rows.extend(moved.map(|row| DecodeRow {
                start: row.start + start,
                shared_start: row.shared_start + start,
                ..row
            }));
            all.packed += part.packed;
        }
        all
    }

    fn encode_lists(&self, codec: CodecName, lists: &[Range<usize>]) -> Encoded {
        let mut encoded = Encoded::default();
        for list in lists {
            encoded.add_list(codec, &self.documents[list.clone()]);
        }
        encoded
    }
}

impl Encoded {
    /// Adds a list of full blocks as it would lie in a file: a shared part, then the streams.
    pub fn add_list(&mut self, name: CodecName, documents: &[u32]) {
        let (codec, mut shared) = (name.codec(), Vec::new());
        let before = std::iter::once(0).chain(documents.iter().map(|document| document + 1));
        codec.encode_shared(&mut documents.iter().zip(before).map(|(document, before)| document - before), &mut shared);
        let shared_start = self.align() as u64;
        self.bytes.extend(&shared);
        self.packed += shared.len();
        let mut base = 0;
        for (block, numbers) in documents.chunks(BLOCK).enumerate() {
            let start = self.align();
            let byte = u32::from(codec.encode_documents(&shared, base, numbers, &mut self.bytes));
            self.packed += self.bytes.len() - start;
            let (count, shared_bytes, block) = (numbers.len() as u32, shared.len() as u32, block as u32);
            let start = start as u64;
            self.rows.push(DecodeRow { start, shared_start, shared_bytes, base, count, byte, block, reserved: 0 });
            base = numbers[numbers.len() - 1] + 1;
        }
    }

    /// The bytes of the rows.
    pub fn row_bytes(&self) -> Vec<u8> {
        self.rows.iter().flat_map(|row| row.bytes().to_vec()).collect()
    }

    /// Fills up to where a stream may start, and returns that.
    fn align(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self.bytes.len()
    }
}

impl Uploaded {
    /// Uploads them.
    pub fn new(gpu: &Gpu, encoded: &Encoded) -> Result<Uploaded, GpuError> {
        let rows = encoded.row_bytes();
        let uploaded = Uploaded {
            gpu: gpu.clone(),
            rows: gpu.allocate(rows.len())?,
            bytes: gpu.allocate(encoded.bytes.len() + PADDING)?,
            out: gpu.allocate(4 * BLOCK * encoded.rows.len())?,
            sink: gpu.allocate(4)?,
            blocks: encoded.rows.len() as u32,
        };
        let behind = uploaded.bytes.address().plus(encoded.bytes.len());
        uploaded.send(&rows, &encoded.bytes)?;
        gpu.submit(STREAM, Command::Clear { at: behind, bytes: PADDING })?;
        gpu.submit(STREAM, Command::Clear { at: uploaded.sink.address(), bytes: 4 })?;
        gpu.wait(STREAM)?;
        Ok(uploaded)
    }

    /// Writes rows and bytes again.
    pub fn send(&self, rows: &[u8], bytes: &[u8]) -> Result<(), GpuError> {
        self.gpu.submit(STREAM, Command::Write { from: rows, to: self.rows.address() })?;
        self.gpu.submit(STREAM, Command::Write { from: bytes, to: self.bytes.address() })
    }

    /// Decodes all of them.
    pub fn launch(
        &self,
        kernel: &TypedKernel<DecodeArguments>,
        kind: DecodeKind,
        output: DecodeOutput,
    ) -> Result<(), GpuError> {
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
        let most = self.blocks.div_ceil(DECODE_THREADS / 32);
        let grid = (GRID_A_PROCESSOR * self.gpu.limits().multiprocessors).min(most);
        self.gpu.launch(STREAM, kernel, Shape { grid, block: DECODE_THREADS, shared: DECODE_SHARED }, &argument)
    }

    /// What is decoded must be what was encoded, and its sum the sum. This warms the kernel up, too.
    fn check(
        &self,
        codec: CodecName,
        kernel: &TypedKernel<DecodeArguments>,
        documents: &[u32],
    ) -> Result<(), BenchError> {
        self.launch(kernel, DecodeKind::Documents, DecodeOutput::Numbers)?;
        self.launch(kernel, DecodeKind::Documents, DecodeOutput::Sum)?;
        let numbers = self.download(&self.out)?;
        let decoded = numbers.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let sum = documents.iter().fold(0, |sum: u32, document| sum.wrapping_add(*document));
        if !decoded.eq(documents.iter().copied()) || self.download(&self.sink)?[..4] != sum.to_le_bytes() {
            let what = format!("the GPU decodes blocks of {codec} into other documents than the CPU has encoded");
            return Err(BenchError::Device { what });
        }
        Ok(())
    }

    fn download(&self, memory: &Memory) -> Result<Pinned, GpuError> {
        let pinned = self.gpu.pin(memory.bytes())?;
        let (from, to, bytes) = (memory.address(), pinned.address(), memory.bytes());
        self.gpu.submit(STREAM, Command::Copy { from, to, bytes })?;
        self.gpu.wait(STREAM)?;
        Ok(pinned)
    }

    /// The time of a launch on the device.
    fn seconds(&self, kernel: &TypedKernel<DecodeArguments>, output: DecodeOutput) -> Result<f64, GpuError> {
        self.gpu.submit(STREAM, Command::Mark)?;
        self.launch(kernel, DecodeKind::Documents, output)?;
        self.gpu.submit(STREAM, Command::Mark)?;
        Ok(self.gpu.wait(STREAM)?.iter().map(Duration::as_secs_f64).sum())
    }
}

fn measurement(codec: CodecName, output: &str, runs: &[f64], blocks: &Blocks, packed: usize) -> Measurement {
    let values = blocks.documents.len() as f64;
    let seconds = Spread::of(runs);
    Measurement::new("decode", &[("codec", &codec.to_string()), ("output", output)])
        .with("lists", blocks.lists.len() as f64)
        .with("blocks", blocks.count() as f64)
        .with("values", values)
        .with("bits_a_value", packed as f64 * 8.0 / values)
        .with("runs", runs.len() as f64)
        .with("ps_a_value", seconds.median * 1e12 / values)
        .with("g_values_a_second", values / 1e9 / seconds.median)
        .with("g_values_a_second_least", values / 1e9 / seconds.most)
        .with("g_values_a_second_most", values / 1e9 / seconds.least)
}

fn findings(rows: Vec<Measurement>) -> Findings {
    let columns =
        ["codec", "bits a value", "ids written, G values/s", "least", "most", "read only, G values/s", "least", "most"];
    let mut table = Table::new("Decoding on the device", 1, &columns);
    for pair in rows.chunks(OUTPUTS.len()) {
        let mut cells = vec![pair[0].label("codec").to_owned(), number(pair[0].value("bits_a_value"))];
        for row in pair {
            let names = ["g_values_a_second", "g_values_a_second_least", "g_values_a_second_most"];
            cells.extend(names.map(|name| number(row.value(name))));
        }
        table.row(cells);
    }
    if let Some(row) = rows.first() {
        table.notes = vec![format!(
            "{} full blocks of {} sparse lists, of 4 bytes a value when decoded; the time of a launch on the device, the \
             median of {} runs, after the numbers were compared.",
            count(row.value("blocks") as u64),
            count(row.value("lists") as u64),
            runs_of(&rows.iter().collect::<Vec<_>>())
        )];
    }
    Findings { measurements: rows, tables: vec![table], charts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::codec::Packed;

    #[test]
    fn blocks_packed_on_several_threads_are_read_again() {
        let list = |first: u32, gap: u32| (0..3 * BLOCK as u32).map(move |number| first + number * gap + number % 3);
        let documents: Vec<u32> = list(5, 7).chain(list(0, 1000)).chain(list(99, 4)).collect();
        let lists = (0..3).map(|number| number * 3 * BLOCK..(number + 1) * 3 * BLOCK).collect();
        let blocks = Blocks { documents, lists };
        for name in CODECS {
            let encoded = blocks.encode(name);
            assert_eq!(encoded.rows.len(), blocks.count());
            for (row, expected) in encoded.rows.iter().zip(blocks.documents.chunks(BLOCK)) {
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
