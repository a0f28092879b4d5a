//! One list packed by one codec, on the host and on the device: decoded on either, and compared.

use super::{Ground, Landing, Timed, agree, disagreement, time_cpu};
use crate::error::BenchError;
use crate::experiments::gpu::decode::{Encoded, STREAM, Uploaded};
use lanner::internals::device::decode::{DecodeArguments, DecodeKind, DecodeOutput, DecodeRow, decoder};
use lanner::internals::papers::compaction::{DeviceList, read_numbers};
use lanner_gpu::error::GpuError;
use lanner_gpu::kernel::TypedKernel;
use lanner_index::codec::{BLOCK, CodecName, Packed};
use std::sync::Arc;

/// A list as a codec packs it, on the host and on the device.
pub struct Coded {
    codec: CodecName,
    documents: Arc<Vec<u32>>,
    encoded: Encoded,
    rows: Vec<u8>,
    uploaded: Uploaded,
}

impl Coded {
    /// Packs lists on all threads, and uploads them.
    pub fn all(ground: &Ground, codec: CodecName, lists: &[Arc<Vec<u32>>]) -> Result<Vec<Coded>, BenchError> {
        let encode = |documents: &Arc<Vec<u32>>| {
            let mut encoded = Encoded::default();
            encoded.add_list(codec, documents);
            Ok((Arc::clone(documents), encoded))
        };
        let upload = |(documents, encoded): (Arc<Vec<u32>>, Encoded)| {
            let (rows, uploaded) = (encoded.row_bytes(), Uploaded::new(&ground.gpu, &encoded)?);
            Ok(Coded { codec, documents, encoded, rows, uploaded })
        };
        ground.map(lists, encode)?.into_iter().map(upload).collect()
    }

    /// Postings of the list.
    pub fn postings(&self) -> usize {
        self.documents.len()
    }

    /// Bytes that travel where it is sent.
    pub fn sent_bytes(&self) -> usize {
        self.encoded.bytes.len() + self.rows.len()
    }

    /// Where the list lies once it is decoded.
    pub fn list(&self) -> DeviceList {
        DeviceList { documents: self.uploaded.out.address(), length: self.documents.len() as u32 }
    }

    /// Sends the list again.
    pub fn send(&self) -> Result<(), GpuError> {
        self.uploaded.send(&self.rows, &self.encoded.bytes)
    }

    /// Starts to decode documents, or gaps.
    pub fn launch(&self, kind: DecodeKind) -> Result<(), GpuError> {
        self.uploaded.launch(kernel(self.codec), kind, DecodeOutput::Numbers)
    }

    /// Decodes on the device, and compares: documents, and the gaps between them where the codec stores gaps.
    pub fn check(&self, ground: &Ground, kinds: &[DecodeKind]) -> Result<(), BenchError> {
        for &kind in kinds {
            self.launch(kind)?;
            let found = read_numbers(&ground.gpu, STREAM, self.list().documents, self.postings())?;
            let what = format!("decoding {} on the GPU", self.codec);
            match kind {
                DecodeKind::Documents => agree(&what, &found, &*self.documents)?,
                _ => agree(&what, &found, &gaps_of(&self.documents))?,
            }
        }
        Ok(())
    }

    /// The time to decode on the device, of a list that lies there or is sent first.
    pub fn time(&self, ground: &Ground, kind: DecodeKind, is_sent: bool) -> Result<Timed, BenchError> {
        ground.time(|| {
            if is_sent {
                self.send()?;
            }
            self.launch(kind)?;
            Ok(Landing { from: self.list().documents, bytes: 4 })
        })
    }

    /// The time to decode on one core, into the room given.
    pub fn time_on_cpu(&self, kind: DecodeKind, room: &mut Vec<u32>) -> Result<Timed, BenchError> {
        // The last number changes with every other one: it is all that is compared within a run.
        let gaps = |documents: &[u32]| match documents {
            [.., before, last] => last - before,
            [last] => last + 1,
            [] => 0,
        };
        let expected = match kind {
            DecodeKind::Documents => self.documents.last().copied().unwrap_or(0),
            _ => gaps(&self.documents),
        };
        room.resize(self.documents.len(), 0);
        time_cpu(&format!("decoding {} on the CPU", self.codec), &expected, || {
            self.decode_on_cpu(kind, room);
            room.last().copied().unwrap_or(0)
        })
    }

    /// Decodes on one core, and compares all.
    pub fn check_on_cpu(&self, kind: DecodeKind, room: &mut Vec<u32>) -> Result<(), BenchError> {
        room.resize(self.documents.len(), 0);
        self.decode_on_cpu(kind, room);
        let is_right = match kind {
            DecodeKind::Documents => *room == *self.documents,
            _ => *room == gaps_of(&self.documents),
        };
        is_right.then_some(()).ok_or_else(|| disagreement(&format!("decoding {} on the CPU", self.codec)))
    }

    fn decode_on_cpu(&self, kind: DecodeKind, room: &mut [u32]) {
        for (row, numbers) in self.encoded.rows.iter().zip(room.chunks_mut(BLOCK)) {
            self.decode_row(row, kind, numbers);
        }
    }

    /// All documents, decoded on one core.
    pub fn decoded(&self) -> Vec<u32> {
        let mut documents = vec![0; self.documents.len()];
        self.decode_on_cpu(DecodeKind::Documents, &mut documents);
        documents
    }

    /// The documents of a block, decoded on one core.
    pub fn decode_block<'a>(&self, block: usize, room: &'a mut [u32; BLOCK]) -> &'a [u32] {
        let Some(row) = self.encoded.rows.get(block) else { return &[] };
        let documents = &mut room[..row.count as usize];
        self.decode_row(row, DecodeKind::Documents, documents);
        documents
    }

    fn decode_row(&self, row: &DecodeRow, kind: DecodeKind, numbers: &mut [u32]) {
        let shared = &self.encoded.bytes[row.shared_start as usize..][..row.shared_bytes as usize];
        let bytes = &self.encoded.bytes[row.start as usize..];
        let packed = Packed { byte: row.byte as u8, bytes, shared, block: row.block as usize };
        match kind {
            DecodeKind::Documents => self.codec.codec().decode_documents(packed, row.base, numbers),
            _ => self.codec.codec().decode_values(packed, numbers),
        }
    }
}

fn kernel(codec: CodecName) -> &'static TypedKernel<DecodeArguments> {
    decoder(codec).expect("figures about a GPU have codecs with a GPU decoder")
}

/// The distances between documents; the first is from just before document 0.
fn gaps_of(documents: &[u32]) -> Vec<u32> {
    let before = std::iter::once(u32::MAX).chain(documents.iter().copied());
    documents.iter().zip(before).map(|(document, before)| document.wrapping_sub(before)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_add_up_to_documents() {
        assert_eq!(gaps_of(&[0, 1, 5, 6]), [1, 1, 4, 1]);
        assert_eq!(gaps_of(&[7]), [8]);
        assert!(gaps_of(&[]).is_empty());
    }
}
