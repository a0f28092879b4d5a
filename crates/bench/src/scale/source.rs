//! The real collection in memory: words as numbers, documents as sequences of their terms.

use crate::error::{BenchError, Result};
use lanner_index::corpus::Corpus;
use lanner_index::text::{Analyzer, Scratch};
use std::collections::HashMap;

/// Maximal number of distinct terms of a document; further terms are dropped.
const MOST_TERMS: usize = u16::MAX as usize;

/// A collection in memory.
#[derive(Clone, Debug, Default)]
pub struct Source {
    words: String,
    /// `word_ends[word]`: end of the word in `words`.
    word_ends: Vec<u32>,
    /// `frequencies[word]`: number of documents that contain the word.
    frequencies: Vec<u32>,
    documents: Vec<SourceDocument>,
    ids: Vec<String>,
    /// The terms of all documents, each with its frequency in the document.
    terms: Vec<(u32, u32)>,
    /// The tokens of all documents: positions in the terms of the document.
    tokens: Vec<u16>,
    /// Growth of the vocabulary: (tokens, distinct words) after 1/16, 2/16 … of the documents.
    pub growth: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct SourceDocument {
    first_term: usize,
    first_token: usize,
    title_tokens: u32,
}

/// One document of the source.
#[derive(Clone, Copy, Debug)]
pub struct DocumentView<'a> {
    pub id: &'a str,
    /// Words and their frequencies.
    pub terms: &'a [(u32, u32)],
    /// Positions in `terms`.
    pub tokens: &'a [u16],
    /// The first tokens belong to the title.
    pub title_tokens: usize,
}

impl Source {
    /// Reads a collection with an analyzer that keeps words or changes them to lower case.
    pub fn read(mut corpus: Corpus, analyzer: &Analyzer) -> Result<Source> {
        let mut source = Source::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut scratch = Scratch::default();
        let mut sizes = Vec::new();
        while let Some(batch) = corpus.next_batch()? {
            batch.documents(&mut |record| {
                let Ok(document) = record else { return };
                let mut words = Vec::new();
                let mut title_tokens = 0;
                for (field, text) in document.indexed.iter().enumerate() {
                    analyzer.analyze(text, &mut scratch, &mut |word| words.push(source.number(word, &mut numbers)));
                    // A single field is the text.
                    if field == 0 && document.indexed.len() > 1 {
                        title_tokens = words.len();
                    }
                }
                source.add(document.id, &words, title_tokens);
                sizes.push((source.tokens.len(), source.word_ends.len()));
            });
        }
        let sixteenths = (1..=16).filter_map(|part| sizes.get((sizes.len() * part / 16).checked_sub(1)?));
        source.growth = sixteenths.map(|&(tokens, words)| (tokens as f64, words as f64)).collect();
        if source.documents.len() < 2 {
            return Err(BenchError::Usage("the collection to scale needs at least two documents".to_owned()));
        }
        Ok(source)
    }

    fn number(&mut self, word: &str, numbers: &mut HashMap<String, u32>) -> u32 {
        if let Some(&number) = numbers.get(word) {
            return number;
        }
        // Quotation marks occur within Hebrew words; dropping them avoids escaping in every copy.
        let number = self.word_ends.len() as u32;
        self.words.extend(word.chars().filter(|character| !matches!(character, '"' | '\\' | '\0'..' ')));
        self.word_ends.push(self.words.len() as u32);
        self.frequencies.push(0);
        numbers.insert(word.to_owned(), number);
        number
    }

    fn add(&mut self, id: &str, words: &[u32], title_tokens: usize) {
        let first_term = self.terms.len();
        let first_token = self.tokens.len();
        let mut positions: HashMap<u32, u16> = HashMap::with_capacity(words.len());
        let mut kept_title = 0;
        for (at, &word) in words.iter().enumerate() {
            let next = self.terms.len() - first_term;
            let position = match positions.get(&word) {
                Some(&position) => position,
                None if next == MOST_TERMS => continue,
                None => {
                    positions.insert(word, next as u16);
                    self.terms.push((word, 0));
                    self.frequencies[word as usize] += 1;
                    next as u16
                }
            };
            self.terms[first_term + usize::from(position)].1 += 1;
            self.tokens.push(position);
            kept_title += u32::from(at < title_tokens);
        }
        self.ids.push(id.to_owned());
        self.documents.push(SourceDocument { first_term, first_token, title_tokens: kept_title });
    }

    pub fn documents(&self) -> u32 {
        self.documents.len() as u32
    }

    /// The number of distinct words.
    pub fn words(&self) -> u32 {
        self.word_ends.len() as u32
    }

    #[inline]
    pub fn word(&self, word: u32) -> &str {
        let start = if word == 0 { 0 } else { self.word_ends[word as usize - 1] };
        &self.words[start as usize..self.word_ends[word as usize] as usize]
    }

    /// The number of documents that contain a word.
    #[inline]
    pub fn frequency(&self, word: u32) -> u32 {
        self.frequencies[word as usize]
    }

    #[inline]
    pub fn document(&self, number: u32) -> DocumentView<'_> {
        let document = self.documents[number as usize];
        let next = self.documents.get(number as usize + 1);
        DocumentView {
            id: &self.ids[number as usize],
            terms: &self.terms[document.first_term..next.map_or(self.terms.len(), |next| next.first_term)],
            tokens: &self.tokens[document.first_token..next.map_or(self.tokens.len(), |next| next.first_token)],
            title_tokens: document.title_tokens as usize,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::collection::synthetic_documents;
    use lanner_index::corpus::CorpusOptions;

    pub(crate) fn source(documents: usize) -> Source {
        let corpus = Corpus::from_documents(synthetic_documents(documents), CorpusOptions::default()).unwrap();
        Source::read(corpus, &Analyzer::parse("simple").unwrap()).unwrap()
    }

    #[test]
    fn a_document_is_kept_word_by_word() {
        let documents = [("a", "Two words", "two falcons, two herons"), ("b", "", "words")];
        let documents = documents.map(|(id, title, text)| (id.to_owned(), title.to_owned(), text.to_owned()));
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        let source = Source::read(corpus, &Analyzer::parse("simple").unwrap()).unwrap();
        let first = source.document(0);
        let words: Vec<&str> = first.tokens.iter().map(|&at| source.word(first.terms[usize::from(at)].0)).collect();
        assert_eq!(words, ["two", "words", "two", "falcons", "two", "herons"]);
        assert_eq!((first.id, first.title_tokens, first.terms[0].1), ("a", 2, 3));
        assert_eq!((source.frequency(1), source.frequency(0), source.words()), (2, 1, 4));
    }

    #[test]
    fn one_document_is_too_few() {
        let documents = [("a".to_owned(), String::new(), "falcon".to_owned())];
        let corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
        let error = Source::read(corpus, &Analyzer::parse("simple").unwrap()).unwrap_err();
        assert!(error.to_string().contains("at least two documents"));
    }
}
