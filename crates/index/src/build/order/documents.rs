//! Puts ids, lengths and stored fields into the new order of documents.
//!
//! Blocks of stored fields are decompressed once, in the order of the input; the new blocks are compressed in parallel.

use super::buckets::{Buckets, Records};
use crate::build::documents::{DocumentRows, DocumentSpool, StoredBlocks};
use crate::build::numbering::Numbering;
use crate::build::pipeline::Pipeline;
use crate::build::write::Spool;
use crate::build::{BuildError, Collected};

/// Documents are compressed in portions of about this many bytes. A block of stored fields ends with its portion.
const PORTION_BYTES: usize = 1 << 20;

/// Consecutive documents in the new order.
#[derive(Default)]
struct Portion {
    documents: u32,
    rows: DocumentRows,
    /// The encoded stored fields of all documents.
    stored: Vec<u8>,
    /// The end of the fields of each document.
    ends: Vec<usize>,
}

/// Replaces the documents by the kept ones, in the new order.
pub fn rearrange(collected: &mut Collected<'_>, numbering: Numbering<'_>, count: u32) -> Result<(), BuildError> {
    let spool = |name: &str| Spool::create(collected.folder.building().join(name));
    let mut ordered = DocumentSpool::new(spool("documents-ordered")?, spool("stored-ordered")?);
    let mut rows = distribute_rows(collected, numbering, count)?;
    let mut stored = distribute_stored(collected, numbering, count)?;
    let pipeline = Pipeline {
        threads: collected.options.workers(),
        make: || (),
        work: |(): &mut (), portion: Portion| Ok::<_, BuildError>((compress(&portion)?, portion)),
    };
    pipeline.run(
        || next_portion(&mut rows, &mut stored),
        |(stored, portion)| ordered.push(portion.documents, &portion.rows, &stored),
    )?;
    std::mem::replace(&mut collected.documents, ordered).remove()
}

/// How many buckets records of `bytes` bytes need: one that is read back may take an eighth of the memory.
fn buckets(collected: &Collected<'_>, bytes: u64) -> u64 {
    bytes.div_ceil(collected.options.memory_bytes as u64 / 8)
}

fn distribute_rows(collected: &mut Collected<'_>, numbering: Numbering<'_>, count: u32) -> Result<Records, BuildError> {
    let (folder, bytes) = (collected.folder.building(), collected.documents.row_bytes());
    let mut buckets = Buckets::create(&folder, "rows", count, buckets(collected, bytes))?;
    let mut row = DocumentRows::default();
    collected.documents.each(|document, id, length| {
        let Some(number) = numbering.number(document) else {
            return Ok(());
        };
        row.bytes.clear();
        row.push(id, length);
        buckets.push(number, &row.bytes)
    })?;
    Ok(buckets.records())
}

/// Has no records if no fields are stored.
fn distribute_stored(
    collected: &mut Collected<'_>,
    numbering: Numbering<'_>,
    count: u32,
) -> Result<Records, BuildError> {
    let (folder, bytes) = (collected.folder.building(), collected.documents.stored_bytes());
    let mut buckets = Buckets::create(&folder, "fields", count, buckets(collected, bytes))?;
    collected.documents.each_stored(|document, fields| match numbering.number(document) {
        Some(number) => buckets.push(number, fields),
        None => Ok(()),
    })?;
    Ok(buckets.records())
}

/// The next portion. Its size depends only on its documents, so that the files do not depend on the memory.
fn next_portion(rows: &mut Records, stored: &mut Records) -> Result<Option<Portion>, BuildError> {
    let mut portion = Portion::default();
    while portion.rows.bytes.len() + portion.stored.len() < PORTION_BYTES {
        let Some(row) = rows.next()? else {
            break;
        };
        portion.documents += 1;
        portion.rows.bytes.extend_from_slice(row);
        if let Some(fields) = stored.next()? {
            portion.stored.extend_from_slice(fields);
            portion.ends.push(portion.stored.len());
        }
    }
    Ok((portion.documents > 0).then_some(portion))
}

fn compress(portion: &Portion) -> Result<StoredBlocks, BuildError> {
    let mut blocks = StoredBlocks::default();
    let mut start = 0;
    for &end in &portion.ends {
        blocks.push_encoded(&portion.stored[start..end])?;
        start = end;
    }
    blocks.finish()?;
    Ok(blocks)
}
