//! A list packed by a codec on host and device: decodes it on either, and compares the result.

use super::{Download, Setup, Timed, check, time_cpu};
use crate::error::Result;
use crate::experiments::gpu::decode::{Encoded, STREAM, Uploaded};
use lanner::internals::device::decode::{DecodeKind, DecodeOutput, DecodeRow};
use lanner::internals::papers::compaction::{DeviceList, read_numbers};
use lanner_gpu::error::GpuError;
use lanner_index::codec::{BLOCK, CodecName, Packed};
use rayon::prelude::*;
use std::sync::Arc;

/// A list packed by a codec, on host and device.
pub struct Coded {
    codec: CodecName,
    documents: Arc<Vec<u32>>,
    encoded: Encoded,
    rows: Vec<u8>,
    uploaded: Uploaded,
}

/// How a list is decoded.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// On the GPU, with the upload.
    Uploaded,
    /// On the GPU, without the upload.
    Resident,
    /// On one core.
    Cpu,
}

impl Coded {
    /// Packs and uploads lists.
    pub fn all(setup: &Setup, codec: CodecName, lists: &[Arc<Vec<u32>>]) -> Result<Vec<Coded>> {
        let encoded: Vec<Encoded> = lists.par_iter().map(|documents| Encoded::list(codec, documents)).collect();
        let upload = |(documents, encoded): (&Arc<Vec<u32>>, Encoded)| {
            let (rows, uploaded) = (encoded.row_bytes(), Uploaded::new(&setup.gpu, codec, &encoded)?);
            Ok(Coded { codec, documents: Arc::clone(documents), encoded, rows, uploaded })
        };
        lists.iter().zip(encoded).map(upload).collect()
    }

    pub fn postings(&self) -> usize {
        self.documents.len()
    }

    /// Bytes to upload.
    pub fn bytes_to_upload(&self) -> usize {
        self.encoded.bytes.len() + self.rows.len()
    }

    /// The decoded list on the device.
    pub fn list(&self) -> DeviceList {
        DeviceList { documents: self.uploaded.out.address(), length: self.documents.len() as u32 }
    }

    /// Uploads the list again.
    pub fn upload(&self) -> Result<(), GpuError> {
        self.uploaded.upload(&self.rows, &self.encoded.bytes)
    }

    /// Launches the kernel that decodes documents or gaps.
    pub fn launch(&self, kind: DecodeKind) -> Result<(), GpuError> {
        self.uploaded.launch(kind, DecodeOutput::Numbers)
    }

    /// Decodes on the device and on the CPU, and compares.
    pub fn check(&self, setup: &Setup, kinds: &[DecodeKind]) -> Result<()> {
        for &kind in kinds {
            let gaps = (kind != DecodeKind::Documents).then(|| gaps_of(&self.documents));
            let expected = gaps.as_ref().unwrap_or(&self.documents);
            let mut decoded = vec![0; self.postings()];
            self.decode_on_cpu(kind, &mut decoded);
            check(&format!("decoding {} on the CPU", self.codec), &decoded, expected)?;
            self.launch(kind)?;
            let found = read_numbers(&setup.gpu, STREAM, self.list().documents, self.postings())?;
            check(&format!("decoding {} on the GPU", self.codec), &found, expected)?;
        }
        Ok(())
    }

    /// Times decoding; the CPU decodes into a buffer.
    pub fn time(&self, setup: &Setup, kind: DecodeKind, way: Way, buffer: &mut Vec<u32>) -> Result<Timed> {
        if way == Way::Cpu {
            return self.time_on_cpu(kind, buffer);
        }
        setup.time(|| {
            if way == Way::Uploaded {
                self.upload()?;
            }
            self.launch(kind)?;
            Ok(Download { from: self.list().documents, bytes: 4 })
        })
    }

    /// Times decoding on one core into a buffer.
    fn time_on_cpu(&self, kind: DecodeKind, buffer: &mut Vec<u32>) -> Result<Timed> {
        // Only the last number is compared here; `check` has compared all.
        let expected = match (kind, self.documents.as_slice()) {
            (_, []) => 0,
            (DecodeKind::Documents, [.., last]) => *last,
            (_, [last]) => last + 1,
            (_, [.., before, last]) => last - before,
        };
        buffer.resize(self.documents.len(), 0);
        time_cpu(&format!("decoding {} on the CPU", self.codec), &expected, || {
            self.decode_on_cpu(kind, buffer);
            buffer.last().copied().unwrap_or(0)
        })
    }

    fn decode_on_cpu(&self, kind: DecodeKind, buffer: &mut [u32]) {
        for (row, numbers) in self.encoded.rows.iter().zip(buffer.chunks_mut(BLOCK)) {
            self.decode_row(row, kind, numbers);
        }
    }

    /// Decodes all documents on one core.
    pub fn decoded(&self) -> Vec<u32> {
        let mut documents = vec![0; self.documents.len()];
        self.decode_on_cpu(DecodeKind::Documents, &mut documents);
        documents
    }

    /// Decodes the documents of a block on one core.
    pub fn decode_block<'a>(&self, block: usize, buffer: &'a mut [u32; BLOCK]) -> &'a [u32] {
        let Some(row) = self.encoded.rows.get(block) else { return &[] };
        let documents = &mut buffer[..row.count as usize];
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

/// Returns the gaps between documents; the first is relative to -1.
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
