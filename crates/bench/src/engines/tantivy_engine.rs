//! Tantivy through its crate, with one segment and our analyzer as its tokenizer.

use super::{BuildTask, Engine, files};
use crate::collection;
use crate::error::{BenchError, Result};
use lanner::Mode;
use lanner_index::open::Ids;
use lanner_index::text::{Analyzer, Scratch};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use tantivy::collector::TopDocs;
use tantivy::columnar::StrColumn;
use tantivy::directory::MmapDirectory;
use tantivy::query::{BooleanQuery, Occur, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{
    DocAddress, Index, IndexBuilder, IndexSettings, IndexWriter, ReloadPolicy, Score, SingleSegmentIndexWriter,
    TantivyDocument, Term,
};

const TOKENIZER: &str = "lanner";

/// Terms with frequencies and lengths but no positions; external ids in a fast field; nothing stored.
fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(true);
    let mut builder = Schema::builder();
    builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    builder.add_text_field("id", TextOptions::default().set_fast("raw"));
    builder.build()
}

fn tokenizers(analyzer: &Analyzer) -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(TOKENIZER, AnalyzerTokenizer::new(analyzer.clone()));
    manager
}

fn builder(task: &BuildTask<'_>) -> IndexBuilder {
    // Nothing is stored, so the thread that compresses stored fields would only disturb a build on one thread.
    let settings = IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() };
    Index::builder().schema(schema()).settings(settings).tokenizers(tokenizers(&task.analyzer))
}

fn directory(folder: &Path) -> Result<MmapDirectory> {
    std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    Ok(MmapDirectory::open(folder).map_err(tantivy::TantivyError::from)?)
}

/// Builds an index with the writer of a single segment, in the calling thread.
pub fn build_single(task: &BuildTask<'_>) -> Result<u64> {
    let mut writer: SingleSegmentIndexWriter =
        builder(task).single_segment_index_writer(directory(task.folder)?, task.memory_bytes)?;
    let count = feed(task, |document| writer.add_document(document))?;
    writer.finalize()?;
    Ok(count)
}

/// Builds an index with Tantivy's ordinary writer.
pub fn build_with_writer(task: &BuildTask<'_>) -> Result<u64> {
    let index = builder(task).open_or_create(directory(task.folder)?)?;
    let mut writer: IndexWriter = index.writer_with_num_threads(task.threads, task.memory_bytes)?;
    let count = feed(task, |document| writer.add_document(document).map(|_| ()))?;
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(count)
}

/// Reads all documents and adds them to a writer; returns their number.
fn feed(task: &BuildTask<'_>, mut add: impl FnMut(TantivyDocument) -> tantivy::Result<()>) -> Result<u64> {
    let (text_field, id_field) = fields(&schema());
    let mut corpus = collection::open(task.input)?;
    let (mut count, mut failure) = (0, None);
    while let Some(batch) = corpus.next_batch()? {
        batch.documents(&mut |record| {
            let Ok(document) = record else { return };
            let mut tantivy_document = TantivyDocument::default();
            tantivy_document.add_text(id_field, document.id);
            for text in &document.indexed {
                tantivy_document.add_text(text_field, text);
            }
            count += 1;
            failure = failure.take().or(add(tantivy_document).err());
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
    }
    Ok(count)
}

fn fields(schema: &Schema) -> (Field, Field) {
    let field = |name| schema.get_field(name).expect("the field is in the schema");
    (field("text"), field("id"))
}

/// An open index of Tantivy.
pub struct TantivyEngine {
    searcher: tantivy::Searcher,
    /// The external ids of each segment.
    ids: Vec<StrColumn>,
    /// The external ids by segment and document; empty unless requested.
    ids_in_memory: Vec<Vec<String>>,
    text_field: Field,
    analyzer: Analyzer,
}

impl TantivyEngine {
    pub fn open(folder: &Path, analyzer: &Analyzer) -> Result<TantivyEngine> {
        let index = Index::open_in_dir(folder)?;
        let searcher = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?.searcher();
        let columns = searcher.segment_readers().iter().map(|segment| segment.fast_fields().str("id"));
        let columns = columns.collect::<tantivy::Result<Vec<_>>>()?;
        let ids = columns.into_iter().map(|column| column.expect("every document has an id")).collect();
        let (text_field, analyzer) = (fields(&index.schema()).0, analyzer.clone());
        Ok(TantivyEngine { searcher, ids, ids_in_memory: Vec::new(), text_field, analyzer })
    }

    /// Reads the external ids of all documents, so that answers need no dictionary lookups.
    pub fn with_ids_in_memory(mut self) -> Result<TantivyEngine> {
        let segments = (0u32..).zip(self.searcher.segment_readers());
        let addresses = segments.map(|(segment, reader)| {
            (0..reader.max_doc()).map(|document| DocAddress::new(segment, document)).collect::<Vec<_>>()
        });
        let ids = addresses.map(|addresses| self.external_ids(&addresses)).collect::<Result<_, _>>()?;
        self.ids_in_memory = ids;
        Ok(self)
    }

    fn hits(&self, text: &str, mode: Mode, k: usize) -> Result<Vec<(Score, DocAddress)>> {
        let search = |occur: Occur| {
            let mut clauses: Vec<(Occur, Box<dyn tantivy::query::Query>)> = Vec::new();
            self.analyzer.analyze(text, &mut Scratch::default(), &mut |term| {
                let term = Term::from_field_text(self.text_field, term);
                clauses.push((occur, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
            });
            self.searcher.search(&BooleanQuery::new(clauses), &TopDocs::with_limit(k).order_by_score())
        };
        Ok(match mode {
            Mode::Or => search(Occur::Should)?,
            Mode::And => search(Occur::Must)?,
            Mode::AndOr => {
                let all = search(Occur::Must)?;
                if all.len() >= k { all } else { search(Occur::Should)? }
            }
        })
    }

    /// Looks up the external ids of hits in one pass over the dictionary of ids.
    fn external_ids(&self, hits: &[DocAddress]) -> Result<Vec<String>> {
        let mut ids = vec![String::new(); hits.len()];
        for (segment, column) in self.ids.iter().enumerate() {
            let ranks = (0..hits.len()).filter(|&rank| hits[rank].segment_ord as usize == segment);
            let mut ordinals: Vec<(u64, usize)> =
                ranks.map(|rank| (column.ords().first(hits[rank].doc_id).unwrap_or(0), rank)).collect();
            ordinals.sort_unstable();
            let sorted: Vec<u64> = ordinals.iter().map(|&(ordinal, _)| ordinal).collect();
            let mut next = ordinals.iter();
            let found = column.dictionary().sorted_ords_to_term_cb(&sorted, |id| {
                if let Some(&(_, rank)) = next.next() {
                    ids[rank] = String::from_utf8_lossy(id).into_owned();
                }
            });
            found.map_err(tantivy::TantivyError::from)?;
        }
        Ok(ids)
    }
}

impl Engine for TantivyEngine {
    fn answer(&self, text: &str, mode: Mode, k: usize) -> Result<Ids> {
        let hits = self.hits(text, mode, k)?;
        if self.ids_in_memory.is_empty() {
            let addresses: Vec<DocAddress> = hits.into_iter().map(|(_, address)| address).collect();
            return Ok(self.external_ids(&addresses)?.into_iter().collect());
        }
        let id = |hit: &DocAddress| &self.ids_in_memory[hit.segment_ord as usize][hit.doc_id as usize];
        Ok(hits.iter().map(|(_, address)| id(address)).collect())
    }

    fn documents(&self, text: &str, mode: Mode, k: usize) -> Result<usize> {
        Ok(black_box(&self.hits(text, mode, k)?).len())
    }
}

/// Returns the sizes of the files by extension.
pub fn parts(folder: &Path) -> Result<Vec<(String, u64)>> {
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    for (file, bytes) in files(folder)? {
        let kind = match file.rsplit_once('.') {
            Some((_, "json" | "lock")) | None => "metadata".to_owned(),
            Some((_, extension)) => extension.to_owned(),
        };
        *parts.entry(kind).or_default() += bytes;
    }
    Ok(parts.into_iter().filter(|(_, bytes)| *bytes > 0).collect())
}

/// Our analyzer as a tokenizer of Tantivy. Our analyzer pushes terms and Tantivy pulls them, so the terms of a text are
/// buffered in one string.
#[derive(Clone)]
struct AnalyzerTokenizer {
    analyzer: Analyzer,
    scratch: Scratch,
    terms: String,
    /// `ends[n]`: end of the n-th term in `terms`.
    ends: Vec<usize>,
    token: Token,
}

impl AnalyzerTokenizer {
    fn new(analyzer: Analyzer) -> AnalyzerTokenizer {
        let (scratch, terms, ends) = (Scratch::default(), String::new(), Vec::new());
        AnalyzerTokenizer { analyzer, scratch, terms, ends, token: Token::default() }
    }
}

impl Tokenizer for AnalyzerTokenizer {
    type TokenStream<'a> = AnalyzedText<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> AnalyzedText<'a> {
        let AnalyzerTokenizer { analyzer, scratch, terms, ends, token } = self;
        terms.clear();
        ends.clear();
        token.reset();
        analyzer.analyze(text, scratch, &mut |term| {
            terms.push_str(term);
            ends.push(terms.len());
        });
        AnalyzedText { terms, ends, start: 0, next: 0, token }
    }
}

/// The terms of one text.
struct AnalyzedText<'a> {
    terms: &'a str,
    ends: &'a [usize],
    start: usize,
    next: usize,
    token: &'a mut Token,
}

impl TokenStream for AnalyzedText<'_> {
    fn advance(&mut self) -> bool {
        let Some(&end) = self.ends.get(self.next) else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(&self.terms[self.start..end]);
        self.token.position = self.next;
        (self.token.offset_from, self.token.offset_to) = (self.start, end);
        (self.start, self.next) = (end, self.next + 1);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tantivy_sees_the_terms_of_our_analyzer() {
        let analyzer = Analyzer::parse("simple").unwrap();
        let text = "Lanner falcons hunt in pairs: don't they? ἀρχή 東京 3.14";
        let mut tokenizer = AnalyzerTokenizer::new(analyzer.clone());
        for _ in 0..2 {
            let mut tokens = tokenizer.token_stream(text);
            let mut seen = Vec::new();
            while let Some(token) = tokens.next() {
                assert_eq!(token.position, seen.len());
                seen.push(token.text.clone());
            }
            assert_eq!(seen, analyzer.terms(text));
        }
    }
}
