//! Builds an index from a CIFF file: lists that another engine exported.
//!
//! Lists arrive term by term in any order. They are collected into batches like inverted documents, except that every
//! batch covers all documents. Document lengths come from the file, and statistics from the lengths.

use super::documents::{DocumentRows, StoredBlocks};
use super::folder::IndexFolder;
use super::invert::{Inverted, TermRow, pack_postings, separated_id};
use super::{BuildError, BuildOptions, BuildReport, Collected, Progress, segment};
use crate::corpus::ciff::{CiffError, CiffReader, List};
use crate::corpus::is_separator;
use crate::format::lexicon::hash;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// A batch ends when its packed postings reach this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Builds an index of a CIFF file, plain or compressed, in a folder and replaces the index there, if any.
///
/// The analyzer of the options is for queries; it should be the one that made the terms of the file.
pub fn build_from_ciff(
    folder: &Path,
    input: &Path,
    options: &BuildOptions,
    progress: &dyn Progress,
) -> Result<BuildReport, BuildError> {
    options.check()?;
    let mut reader = CiffReader::open(input).map_err(in_file(input))?;
    let folder = IndexFolder::open(folder)?;
    let mut collected = Collected::new(&folder, options)?;
    add_lists(input, &mut reader, &mut collected)?;
    add_documents(input, &mut reader, &mut collected)?;
    progress.inverted(u64::from(collected.documents.count), 1, Some(1));
    segment::finish(collected, progress)
}

/// Names the file that an error is about.
fn in_file(input: &Path) -> impl Fn(CiffError) -> BuildError {
    move |source| BuildError::Ciff { path: input.to_owned(), source }
}

fn add_documents<R: Read>(
    input: &Path,
    reader: &mut CiffReader<R>,
    collected: &mut Collected<'_>,
) -> Result<(), BuildError> {
    let mut rows = DocumentRows::default();
    let mut count = 0;
    while let Some(document) = reader.next_document().map_err(in_file(input))? {
        if collected.options.strict && document.id.contains(is_separator) {
            let number = u64::from(collected.documents.count + count) + 1;
            let problem = separated_id(&input.to_string_lossy(), number, &document.id);
            return Err(BuildError::SeparatedId(problem));
        }
        rows.push(&document.id, document.length);
        count += 1;
        if rows.bytes.len() >= BATCH_BYTES {
            collected.documents.push(count, &rows, &StoredBlocks::default())?;
            (rows, count) = (DocumentRows::default(), 0);
        }
    }
    collected.documents.push(count, &rows, &StoredBlocks::default())
}

fn add_lists<R: Read>(
    input: &Path,
    reader: &mut CiffReader<R>,
    collected: &mut Collected<'_>,
) -> Result<(), BuildError> {
    let path = || input.to_owned();
    let mut seen = HashSet::new();
    let mut batch = Inverted::default();
    while let Some(list) = reader.next_list().map_err(in_file(input))? {
        if !seen.insert(hash(list.term.as_bytes())) {
            return Err(BuildError::RepeatedTerm { path: path(), term: list.term });
        }
        // A posting packs into at most ten bytes, and byte offsets in a batch have 32 bits.
        if list.postings.len() > (u32::MAX / 16) as usize {
            return Err(BuildError::TooLongList { path: path(), term: list.term });
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
