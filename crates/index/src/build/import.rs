//! Building from a CIFF file: postings as another engine exported them, without a text to analyze.
//!
//! Lists arrive term by term in any order and go the way of inverted batches, only that each covers all documents.
//! Lengths are the file's, statistics follow from them.

use super::dictionary::hash;
use super::documents::{DocumentRows, StoredBlocks};
use super::folder::IndexFolder;
use super::invert::{Inverted, TermRow, pack_postings};
use super::{BuildError, BuildOptions, BuildReport, Collected, Progress, segment};
use crate::corpus::ciff::{CiffReader, List};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// Lists are handed on when their packed postings pass this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Builds an index of a CIFF file, plain or compressed, in a folder, replacing the index that is there.
///
/// The analyzer of the options serves queries; it should be the one that made the file's terms.
pub fn build_from_ciff(
    folder: &Path,
    input: &Path,
    options: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    options.check()?;
    let mut reader = CiffReader::open(input)?;
    let folder = IndexFolder::open(folder)?;
    let mut collected = Collected::new(&folder, options)?;
    add_lists(&mut reader, &mut collected)?;
    add_documents(&mut reader, &mut collected)?;
    progress.inverted(u64::from(collected.documents.count), 1, Some(1));
    segment::finish(collected, progress)
}

fn add_documents<R: Read>(reader: &mut CiffReader<R>, collected: &mut Collected<'_>) -> Result<(), BuildError> {
    let mut rows = DocumentRows::default();
    let mut count = 0;
    while let Some(document) = reader.next_document()? {
        rows.push(&document.id, document.length);
        count += 1;
        if rows.bytes.len() >= BATCH_BYTES {
            collected.documents.push(count, &rows, &StoredBlocks::default())?;
            (rows, count) = (DocumentRows::default(), 0);
        }
    }
    collected.documents.push(count, &rows, &StoredBlocks::default())
}

fn add_lists<R: Read>(reader: &mut CiffReader<R>, collected: &mut Collected<'_>) -> Result<(), BuildError> {
    let mut seen = HashSet::new();
    let mut batch = Inverted::default();
    while let Some(list) = reader.next_list()? {
        if !seen.insert(hash(list.term.as_bytes())) {
            return Err(BuildError::RepeatedTerm(list.term));
        }
        // A list packs into at most ten bytes a posting, and its place is counted in 32 bits.
        if list.postings.len() > (u32::MAX / 16) as usize {
            return Err(BuildError::TooLongList(list.term));
        }
        push_list(&mut batch, &list);
        if batch.postings.len() >= BATCH_BYTES {
            collected.add_postings(&mut std::mem::take(&mut batch))?;
        }
    }
    collected.add_postings(&mut batch)
}

fn push_list(batch: &mut Inverted, list: &List) {
    if list.postings.is_empty() {
        return;
    }
    batch.dictionary.number(list.term.as_bytes());
    pack_postings(&list.postings, &mut batch.postings);
    batch.terms.push(TermRow { count: list.postings.len() as u32, postings_end: batch.postings.len() as u32 });
}
