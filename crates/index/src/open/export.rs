//! Export of an index as CIFF, for other engines: documents, frequencies and exact lengths.

use super::{Column, Index};
use crate::codec::BLOCK;
use crate::corpus::ciff::{CiffError, CiffWriter, Header};
use crate::format::IndexError;
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
    #[error("the index has impacts only and CIFF needs frequencies; build the index with frequencies")]
    NoFrequencies,
}

/// Writes the whole index as CIFF.
pub fn export_ciff(index: &Index, output: impl Write) -> Result<(), ExportError> {
    let header = index.segment().header();
    if !header.has_frequencies {
        return Err(ExportError::NoFrequencies);
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
        read_postings(index, number, &mut postings)?;
        writer.write_list(term, &postings)?;
    }
    for document in 0..header.documents {
        writer.write_document(&index.segment().id(document)?, index.segment().length(document))?;
    }
    writer.finish()?;
    Ok(())
}

fn read_postings(index: &Index, term: u64, postings: &mut Vec<(u32, u32)>) -> Result<(), IndexError> {
    let list = index.segment().list(term)?;
    let (mut documents, mut frequencies) = ([0; BLOCK], [0; BLOCK]);
    postings.clear();
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        list.decode_values(Column::Frequency, block, &mut frequencies);
        postings.extend(documents[..count].iter().copied().zip(frequencies));
    }
    Ok(())
}
