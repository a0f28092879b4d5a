//! Verification of a whole index: every checksum first, then the manifest, then every structure.

use super::checks::Checks;
use super::impact_ordered::verify_impact_ordered;
use super::{Column, Index, Largest, List, Segment};
use crate::codec::BLOCK;
use crate::format::IndexError;
use crate::format::list::{UNIT, largest_and_kth};
use crate::format::manifest::{Manifest, Statistics};
use crate::format::segment::{HEADER_BYTES, Section, WINDOW};
use crate::weight::{Norms, chunk_saturation_code, length_code, saturation};

/// What was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verified {
    /// Bytes of the segment.
    pub bytes: u64,
    /// Documents.
    pub documents: u64,
    /// Terms.
    pub terms: u64,
    /// Postings.
    pub postings: u64,
}

/// Verifies all sections, checksums first; the error names the first damaged one.
pub fn verify(index: &Index) -> Result<Verified, IndexError> {
    let segment = index.segment();
    verify_checksums(segment)?;
    verify_manifest(index)?;
    verify_documents(segment)?;
    let terms = verify_terms(segment)?;
    let postings = verify_lists(index)?;
    let header = segment.header();
    if postings != header.postings {
        let what = format!("there are {postings} postings, not {}", header.postings);
        return Err(segment.damaged(Section::LongLists, what));
    }
    Ok(Verified { bytes: header.file_bytes, documents: u64::from(header.documents), terms, postings })
}

fn verify_checksums(segment: &Segment) -> Result<(), IndexError> {
    let file = segment.file();
    let mut free = HEADER_BYTES;
    for entry in &segment.header().table {
        let known = Section::ALL.into_iter().find(|&section| section as u32 == entry.tag);
        let name = known.map_or("unknown to this version", Section::name);
        let (start, end) = (entry.offset as usize, (entry.offset + entry.length) as usize);
        if file[free..start].iter().any(|&byte| byte != 0) {
            return Err(IndexError::damaged(segment.path(), name, "the bytes before it are not zero"));
        }
        if crc32fast::hash(&file[start..end]) != entry.checksum {
            return Err(IndexError::damaged(segment.path(), name, "its checksum does not match"));
        }
        free = end;
    }
    verify_chunks(segment)?;
    match file[free..].iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(IndexError::damaged(segment.path(), "end of file", "the bytes there are not zero")),
    }
}

/// Checks that the checksums of chunks are those of the bytes that every section has.
fn verify_chunks(segment: &Segment) -> Result<(), IndexError> {
    let Some(entry) = segment.header().entry(Section::Checksums) else {
        return Ok(());
    };
    let table = segment.section_range(Section::Checksums);
    let checks = Checks::new(table.clone(), entry.checksum);
    let what = "they are not those of the bytes before them";
    checks.check(segment.file(), HEADER_BYTES..table.start).map_err(|_| segment.damaged(Section::Checksums, what))
}

/// Checks that the manifest states the statistics and parameters with which the segment was built.
fn verify_manifest(index: &Index) -> Result<(), IndexError> {
    let (manifest, header, segment) = (index.manifest(), index.segment().header(), index.segment().path());
    let built = Statistics { documents: u64::from(header.documents), tokens: header.tokens };
    let path = segment.with_file_name(Manifest::file_name(manifest.generation));
    let wrong = |what: String| Err(IndexError::damaged(&path, "manifest", what));
    if !index.has_other_statistics && index.statistics() != built {
        let Statistics { documents, tokens } = built;
        return wrong(format!("its statistics are not the {documents} documents and {tokens} tokens of the segment"));
    }
    if built.fingerprint(&manifest.bm25) != header.fingerprint {
        return wrong("its k1 and b are not those that the segment was built with".to_owned());
    }
    Ok(())
}

fn verify_documents(segment: &Segment) -> Result<(), IndexError> {
    let codes = segment.length_codes();
    let (mut lengths, mut tokens) = ([0; BLOCK], 0u64);
    for block in 0..codes.len().div_ceil(BLOCK) {
        let count = segment.decode_lengths(block, &mut lengths);
        let expected = &codes[block * BLOCK..];
        if lengths[..count].iter().zip(expected).any(|(&length, &code)| length_code(length) != code) {
            return Err(segment.damaged(Section::LengthCodes, "a code does not match the length"));
        }
        tokens += lengths[..count].iter().map(|&length| u64::from(length)).sum::<u64>();
    }
    if tokens != segment.header().tokens {
        return Err(segment.damaged(Section::Lengths, "their sum is not the number of tokens in the header"));
    }
    for document in 0..segment.documents() {
        segment.id(document)?;
        if segment.rank(document).is_some_and(|rank| !(0.0..=1.0).contains(&rank)) {
            return Err(segment.damaged(Section::Ranks, format!("the rank of document {document} is not in 0..=1")));
        }
    }
    Ok(())
}

/// Checks that terms increase and that the lexicon finds each of them.
fn verify_terms(segment: &Segment) -> Result<u64, IndexError> {
    let (mut terms, mut last) = (segment.terms(), None::<String>);
    while let Some((number, term)) = terms.read()? {
        if last.as_deref().is_some_and(|last| last >= term) {
            return Err(segment.damaged(Section::Terms, format!("term {number} is not after the one before it")));
        }
        let found = segment.find_term(term.as_bytes())?.map(|(found, _)| found);
        if found != Some(number) {
            return Err(segment.damaged(Section::Lexicon, format!("it does not find term {number}")));
        }
        last = Some(term.to_owned());
    }
    Ok(segment.header().terms)
}

fn verify_lists(index: &Index) -> Result<u64, IndexError> {
    // Bounds are checked with the statistics that they were computed with.
    let header = index.segment().header();
    let statistics = Statistics { documents: u64::from(header.documents), tokens: header.tokens };
    let norms = index.manifest().bm25.norms(statistics.average_length());
    let mut postings = 0;
    for term in 0..index.segment().header().terms {
        let list = index.segment().list(term)?;
        verify_list(index, &norms, &list).map_err(|what| {
            let section = if (list.postings() as usize) < BLOCK { Section::ShortLists } else { Section::LongLists };
            index.segment().damaged(section, format!("list of term {term}: {what}"))
        })?;
        verify_impact_ordered(index.segment(), term, &list)?;
        postings += u64::from(list.postings());
    }
    Ok(postings)
}

/// Checks that documents increase and exist, that weights are at least 1 and within their bounds, and k-th weights.
fn verify_list(index: &Index, norms: &Norms, list: &List<'_>) -> Result<(), &'static str> {
    let header = index.segment().header();
    let (mut documents, mut weights) = ([0; BLOCK], [0; BLOCK]);
    let (mut saturations, mut impacts) = (Vec::new(), Vec::new());
    let window = |document: u32| (document / WINDOW) as usize;
    verify_list_documents(list, header.documents)?;
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        if header.has_frequencies {
            list.decode_values(Column::Frequency, block, &mut weights);
            let of_block = list.saturation_bound(block..block + 1);
            for (&document, &frequency) in documents[..count].iter().zip(&weights) {
                let s = saturation(frequency, norms.of(index.length_codes()[document as usize]));
                let bound = of_block.min(list.window_saturation_bound(window(document)));
                if frequency == 0 || s > bound {
                    return Err("a frequency is 0 or exceeds its bound");
                }
                saturations.push(s);
            }
        }
        if header.has_impacts {
            list.decode_values(Column::Impact, block, &mut weights);
            for (&document, &impact) in documents[..count].iter().zip(&weights) {
                let bound = list.impact_bound(block).min(list.window_impact_bound(window(document)));
                if impact == 0 || impact > bound {
                    return Err("an impact is 0 or exceeds its bound");
                }
                impacts.push(impact);
            }
        }
    }
    verify_windows(list, index.documents())?;
    verify_blocks(list)?;
    if let Some(dense) = list.dense() {
        dense.verify(header.documents, list.postings(), |column, document, value| match column {
            Column::Frequency => {
                chunk_saturation_code(saturation(value, norms.of(index.length_codes()[document as usize])))
            }
            Column::Impact => value as u8,
        })?;
    }
    let has_largest =
        !header.has_frequencies || list.largest(norms, index.length_codes()) == Largest::of(&mut saturations);
    let has_largest_impacts = !header.has_impacts || list.largest_impacts() == largest_and_kth(&mut impacts, u32::cmp);
    if has_largest && has_largest_impacts { Ok(()) } else { Err("a stored k-th weight does not match its postings") }
}

fn verify_list_documents(list: &List<'_>, documents_of_segment: u32) -> Result<(), &'static str> {
    let is_directory_exact = list.blocks() > 1 && list.dense().is_none();
    let (mut documents, mut next) = ([0; BLOCK], 0u64);
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        for &document in &documents[..count] {
            if u64::from(document) < next || document >= documents_of_segment {
                return Err("its documents do not increase inside the collection");
            }
            next = u64::from(document) + 1;
        }
        if is_directory_exact && documents[count - 1] != list.last_document(block) {
            return Err("a block does not end with the document its directory names");
        }
    }
    Ok(())
}

/// Checks that the blocks of a list lie one after the other without gaps.
fn verify_blocks(list: &List<'_>) -> Result<(), &'static str> {
    let is_long = list.directory_bytes().is_some() && list.dense().is_none();
    for block in 0..if is_long { list.blocks() } else { 0 } {
        let bytes = list.column_bytes(block).iter().sum::<usize>();
        if list.block_bytes(block).len() != bytes.next_multiple_of(UNIT) {
            return Err("a block does not end where the next one begins");
        }
    }
    Ok(())
}

/// Checks that every window starts with the first block that reaches into it.
fn verify_windows(list: &List<'_>, documents: u32) -> Result<(), &'static str> {
    for window in 0..list.windows() {
        let start = window as u32 * WINDOW;
        if start < documents && list.first_block(window) != list.find_block(0, start) {
            return Err("a window does not start with the first block that reaches into it");
        }
    }
    Ok(())
}
