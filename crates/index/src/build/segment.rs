//! From collected postings to a committed segment: drops duplicates, merges and encodes lists, writes all sections.

use super::impact_ordered::{ImpactOrderedLists, ImpactOrderedWriter};
use super::list::{Encoded, ListEncoder, Weighing};
use super::merge::{Merge, TermBatch};
use super::numbering::Numbering;
use super::pipeline::Pipeline;
use super::terms::{EncodedTerms, TermsWriter};
use super::write::{SegmentWriter, Spool};
use super::{BuildError, BuildReport, Collected, Order, Progress, order};
use crate::format::manifest::{Impacts, Manifest, SegmentEntry, Statistics};
use crate::format::segment::{Header, Section, u32_at};
use crate::open::ListContext;
use crate::weight::Norms;

/// Writes the segment and makes it the current generation.
pub fn finish(mut collected: Collected<'_>, progress: &dyn Progress) -> Result<BuildReport, BuildError> {
    let dropped = drop_duplicates(&mut collected, progress)?;
    collected.check_usable()?;
    let numbers = match collected.options.order {
        Order::Given => None,
        Order::Bisection => Some(order::bisect(&mut collected, &dropped, progress)?),
    };
    let numbering = Numbering { dropped: &dropped, numbers: numbers.as_deref() };
    if let Some(numbers) = &numbers {
        order::rearrange(&mut collected, numbering, numbers.len() as u32)?;
    }
    // Rearranging has already removed the dropped documents.
    let dropped_rows = if numbering.keeps_order() { &dropped[..] } else { &[] };
    let (length_codes, tokens) = collected.documents.length_codes(dropped_rows)?;
    let statistics = Statistics { documents: length_codes.len() as u64, tokens };
    let options = collected.options;
    let norms = options.bm25.norms(statistics.average_length());
    let context = ListContext {
        codecs: options.codecs,
        has_frequencies: options.frequencies,
        has_impacts: options.impacts,
        has_dense: options.dense,
        documents: length_codes.len() as u32,
    };
    let length_codes = &length_codes[..];
    let mut job = Job { context, norms: &norms, length_codes, numbering, dropped_rows, impact_scale: 1.0 };
    let impacts = if options.impacts { Some(job.scale_impacts(&mut collected)?) } else { None };
    let path = collected.folder.building().join("segment");
    let mut segment = SegmentWriter::create(&path)?;
    let (terms, postings) = job.write_lists(&mut collected, &mut segment, progress)?;
    job.write_documents(&mut collected, &mut segment)?;
    let header = segment.finish(Header {
        file_bytes: 0,
        documents: length_codes.len() as u32,
        terms,
        postings,
        tokens,
        fingerprint: statistics.fingerprint(&options.bm25),
        codecs: options.codecs,
        has_frequencies: options.frequencies,
        has_impacts: options.impacts,
        has_dense: options.dense,
        table: Vec::new(),
    })?;
    let manifest = manifest(&collected, statistics, impacts, &header);
    collected.folder.commit(&path, &manifest)?;
    let report = BuildReport {
        documents: statistics.documents,
        terms,
        postings,
        tokens,
        bytes: header.file_bytes,
        ..collected.report
    };
    Ok(report)
}

fn manifest(collected: &Collected<'_>, statistics: Statistics, impacts: Option<Impacts>, header: &Header) -> Manifest {
    let options = collected.options;
    Manifest {
        generation: collected.folder.generation(),
        analyzer: options.analyzer.name().to_owned(),
        chain: options.analyzer.chain(),
        stop_words: options.analyzer.stop_words().to_vec(),
        fields: collected.fields.clone(),
        stored: collected.stored.clone(),
        bm25: options.bm25,
        order: options.order,
        statistics,
        impacts,
        segments: vec![SegmentEntry {
            file: collected.folder.segment_name(),
            bytes: header.file_bytes,
            checksum: u32_at(&header.encode(), crate::format::segment::CHECKSUM.start),
        }],
    }
}

/// Finds documents with the id of an earlier one: an error in a strict build, dropped otherwise.
fn drop_duplicates(collected: &mut Collected<'_>, progress: &dyn Progress) -> Result<Vec<u32>, BuildError> {
    let duplicates = collected.documents.duplicates(collected.options.memory_bytes / 4)?;
    if let (true, Some((document, id))) = (collected.options.strict, duplicates.first()) {
        return Err(BuildError::Duplicate { id: id.clone(), document: u64::from(*document) + 1 });
    }
    for (document, id) in &duplicates {
        let number = document + 1;
        collected.skip(format!("document {number}: an earlier document has the id {id:?} and is kept"), progress);
    }
    collected.report.duplicates = duplicates.len() as u64;
    Ok(duplicates.into_iter().map(|(document, _)| document).collect())
}

/// Everything that is needed to encode lists.
struct Job<'a> {
    context: ListContext,
    norms: &'a Norms,
    length_codes: &'a [u8],
    numbering: Numbering<'a>,
    /// Documents still to be dropped from ids, lengths, ranks and stored fields.
    dropped_rows: &'a [u32],
    impact_scale: f64,
}

/// Consecutive terms with their encoded lists.
#[derive(Default)]
struct EncodedBatch {
    terms: EncodedTerms,
    /// Their impact-ordered lists, if asked for.
    impact_ordered: Option<ImpactOrderedLists>,
}

impl<'a> Job<'a> {
    fn encoder(&self, learned: bool) -> ListEncoder<'a> {
        let weighing =
            Weighing { norms: self.norms, length_codes: self.length_codes, learned, impact_scale: self.impact_scale };
        ListEncoder::new(self.context, weighing, self.numbering)
    }

    /// Reads all lists to find the largest weight, which gives the scale of impacts.
    fn scale_impacts(&mut self, collected: &mut Collected<'_>) -> Result<Impacts, BuildError> {
        collected.spill_to_read_again()?;
        let learned = collected.learned;
        let (mut largest, mut is_whole) = (0.0f64, learned);
        let mut merge = Merge::new(collected.open_runs()?, None)?;
        let pipeline = Pipeline {
            threads: collected.options.workers(),
            make: || self.encoder(learned),
            work: |encoder: &mut ListEncoder<'_>, batch: TermBatch| {
                let mut found = (0.0f64, true);
                for (_, pieces, count) in batch.iter() {
                    encoder.read(count, pieces).ok_or(BuildError::DamagedFile)?;
                    let (strongest, whole) = encoder.strongest();
                    found = (found.0.max(strongest), found.1 && (whole || encoder.count() == 0));
                }
                Ok::<_, BuildError>(found)
            },
        };
        pipeline.run(
            || merge.next(),
            |(strongest, whole)| {
                (largest, is_whole) = (largest.max(strongest), is_whole && whole);
                Ok(())
            },
        )?;
        self.impact_scale = if is_whole || largest <= 0.0 { 1.0 } else { 255.0 / largest };
        Ok(Impacts { scale: self.impact_scale, learned })
    }

    /// Merges the runs and writes the lists, the terms and the lexicon. Returns the numbers of terms and postings.
    fn write_lists(
        &self,
        collected: &mut Collected<'_>,
        segment: &mut SegmentWriter,
        progress: &dyn Progress,
    ) -> Result<(u64, u64), BuildError> {
        let memory = std::mem::take(&mut collected.accumulator).sorted();
        let mut merge = Merge::new(collected.open_runs()?, Some(memory))?;
        let mut terms = TermsWriter::create(&collected.folder.building())?;
        let is_asked_for = collected.options.impact_ordered;
        let create = || ImpactOrderedWriter::create(&collected.folder.building());
        let mut impact_ordered = if is_asked_for { Some(create()?) } else { None };
        segment.begin(Section::LongLists)?;
        let (learned, total) = (collected.learned, collected.postings);
        let pipeline = Pipeline {
            threads: collected.options.workers(),
            make: || self.encoder(learned),
            work: |encoder: &mut ListEncoder<'_>, batch: TermBatch| encode_batch(encoder, &batch, is_asked_for),
        };
        pipeline.run(
            || merge.next(),
            |batch| {
                terms.push(&batch.terms)?;
                segment.write(&batch.terms.lists.long)?;
                if let (Some(writer), Some(lists)) = (&mut impact_ordered, &batch.impact_ordered) {
                    writer.push(lists)?;
                }
                progress.merged(terms.postings, total);
                Ok(())
            },
        )?;
        let numbers = terms.finish(segment)?;
        if let Some(writer) = impact_ordered {
            writer.finish(segment)?;
        }
        Ok(numbers)
    }

    fn write_documents(&self, collected: &mut Collected<'_>, segment: &mut SegmentWriter) -> Result<(), BuildError> {
        let spool = |name: &str| Spool::create(collected.folder.building().join(name));
        let spools = [spool("lengths")?, spool("ranks")?];
        let ranked = collected.documents.write_rows(self.dropped_rows, collected.ranks.as_ref(), segment, spools)?;
        segment.section(Section::LengthCodes, self.length_codes)?;
        if collected.ranks.is_some() {
            collected.report.unranked = self.length_codes.len() as u64 - ranked;
        }
        collected.documents.write_stored(self.dropped_rows, segment)
    }
}

fn encode_batch(
    encoder: &mut ListEncoder<'_>,
    batch: &TermBatch,
    is_impact_ordered: bool,
) -> Result<EncodedBatch, BuildError> {
    let impact_ordered = is_impact_ordered.then(ImpactOrderedLists::default);
    let mut encoded = EncodedBatch { impact_ordered, ..EncodedBatch::default() };
    for (text, pieces, count) in batch.iter() {
        encoder.read(count, pieces).ok_or(BuildError::DamagedFile)?;
        let terms = &mut encoded.terms;
        let list = encoder.encode(&mut terms.lists);
        if list != Encoded::Empty {
            terms.text.extend_from_slice(text);
            terms.terms.push((terms.text.len(), list, encoder.count() as u32));
            if let Some(lists) = &mut encoded.impact_ordered {
                lists.push(encoder.impacts());
            }
        }
    }
    Ok(encoded)
}
