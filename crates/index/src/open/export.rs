//! Export of an index as CIFF, for other engines: documents, frequencies or impacts, and exact lengths.

use super::{Column, Index};
use crate::codec::BLOCK;
use crate::corpus::ciff::{CiffError, CiffWriter, Header};
use crate::format::IndexError;
use crate::format::segment::Section;
use std::io::Write;

/// Why an index cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The output cannot be written, or CIFF cannot hold the index.
    #[error(transparent)]
    Ciff(#[from] CiffError),
    /// There are no frequencies to export.
    #[error("the index has impacts only; export these, or build the index with frequencies")]
    NoFrequencies,
    /// There are no impacts to export.
    #[error("the index has no impacts; export frequencies, or build the index with impacts")]
    NoImpacts,
}

/// Writes the whole index as CIFF. Impacts take the place of frequencies, as engines expect it that add what they find
/// there.
pub fn export_ciff(index: &Index, column: Column, output: impl Write) -> Result<(), ExportError> {
    let header = index.segment().header();
    match column {
        Column::Frequency if !header.has_frequencies => return Err(ExportError::NoFrequencies),
        Column::Impact if !header.has_impacts => return Err(ExportError::NoImpacts),
        Column::Frequency | Column::Impact => {}
    }
    let terms = u32::try_from(header.terms).unwrap_or(u32::MAX);
    let statistics = index.statistics();
    let mut writer = CiffWriter::new(
        output,
        &Header {
            lists: terms,
            documents: header.documents,
            total_lists: terms,
            total_documents: header.documents,
            total_tokens: header.tokens,
            average_length: statistics.average_length(),
            description: format!("exported by lanner, analyzer {}", index.analyzer().chain()),
        },
    )?;
    let (mut terms, mut postings) = (index.segment().terms(), Vec::new());
    while let Some((number, term)) = terms.read()? {
        read_postings(index, (number, column), &mut postings)?;
        writer.write_list(term, &postings)?;
    }
    index.segment().check_section(Section::Lengths)?;
    for document in 0..header.documents {
        writer.write_document(&index.segment().id(document)?, index.segment().length(document))?;
    }
    writer.finish()?;
    Ok(())
}

fn read_postings(
    index: &Index,
    (term, column): (u64, Column),
    postings: &mut Vec<(u32, u32)>,
) -> Result<(), IndexError> {
    let list = index.segment().list(term)?;
    let (mut documents, mut values) = ([0; BLOCK], [0; BLOCK]);
    postings.clear();
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        list.decode_values(column, block, &mut values);
        postings.extend(documents[..count].iter().copied().zip(values));
    }
    Ok(())
}
