//! A collection that is known to both sides: the oracle, and an index for each codec.

use lanner::build::{BuildOptions, Order, Quiet, build};
use lanner::corpus::{Corpus, CorpusOptions};
use lanner::oracle::{Oracle, Question};
use lanner::{Bitmap, Hit, Index, Mode, Query, ScoreModel};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tempfile::TempDir;

/// How the lists of an index are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// As by default: those with many documents as bitmaps.
    Dense,
    /// All of them in blocks by one codec.
    Sparse(CodecName),
}

impl Lists {
    fn codecs(self) -> Codecs {
        match self {
            Lists::Dense => Codecs::default(),
            Lists::Sparse(codec) => Codecs { documents: codec, weights: codec },
        }
    }
}

/// A document: its title and its text, or a vector of weights.
#[derive(Clone, Debug)]
pub enum Content {
    Text(String, String),
    Vector(Vec<(String, f32)>),
}

impl Content {
    pub fn words(words: &[impl AsRef<str>]) -> Content {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        Content::Text(String::new(), words.join(" "))
    }
}

/// Words with their weights, and the documents that may be hits.
#[derive(Clone, Debug)]
pub struct Ask {
    words: Vec<(String, f64)>,
    pub filter: Option<Arc<Bitmap>>,
}

impl Ask {
    pub fn weighted(words: Vec<(String, f64)>) -> Ask {
        Ask { words, filter: None }
    }

    /// A text without weights.
    pub fn plain(text: &str) -> Ask {
        Ask::weighted(vec![(text.to_owned(), 1.0)])
    }

    pub fn filtered(self, filter: Bitmap) -> Ask {
        Ask { filter: Some(Arc::new(filter)), ..self }
    }

    /// As a user would write it.
    pub fn query(&self) -> Query {
        let word = |(word, weight): &(String, f64)| match weight {
            1.0 => word.clone(),
            weight => format!("{word}^{weight}"),
        };
        let words: Vec<String> = self.words.iter().map(word).collect();
        Query { filter: self.filter.clone(), ..Query::new(words.join(" ")) }
    }
}

/// Every hit of a question, in order.
struct Expected {
    and: Vec<Hit>,
    or: Vec<Hit>,
}

pub struct Collection {
    pub contents: Vec<Content>,
    pub asks: Vec<Ask>,
    pub oracle: Oracle,
    analyzer: Analyzer,
    bm25: Bm25,
    folder: TempDir,
    /// How many indexes were built in it: tests that share a collection build at the same time.
    built: AtomicUsize,
    indexes: [OnceLock<Arc<Index>>; CodecName::ALL.len() + 1],
    expected: Mutex<HashMap<(usize, String), Arc<Expected>>>,
}

/// A rank for each document, the largest 1.
fn rank(document: usize) -> f64 {
    1.0 - (document % 23) as f64 / 32.0
}

impl Collection {
    pub fn new(analyzer: &str, bm25: Bm25, contents: Vec<Content>) -> Collection {
        let analyzer = Analyzer::parse(analyzer).unwrap();
        let mut oracle = Oracle::new(bm25);
        for content in &contents {
            match content {
                Content::Text(title, text) => {
                    oracle.add(analyzer.terms(title).into_iter().chain(analyzer.terms(text)));
                }
                Content::Vector(weights) => oracle.add_vector(weights),
            }
        }
        oracle.set_ranks((0..contents.len()).map(|document| rank(document) as f32).collect());
        let folder = tempfile::tempdir().unwrap();
        let ranks: String = (0..contents.len()).map(|document| format!("{document}\t{}\n", rank(document))).collect();
        std::fs::write(folder.path().join("ranks"), ranks).unwrap();
        Collection {
            contents,
            asks: Vec::new(),
            oracle,
            analyzer,
            bm25,
            folder,
            built: AtomicUsize::new(0),
            indexes: Default::default(),
            expected: Mutex::default(),
        }
    }

    pub fn with_asks(self, asks: Vec<Ask>) -> Collection {
        Collection { asks, ..self }
    }

    /// The score models that the collection can be asked for.
    pub fn models() -> [ScoreModel; 3] {
        [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.3 }]
    }

    /// The index of the whole collection.
    pub fn index(&self, lists: Lists) -> Arc<Index> {
        let number = match lists {
            Lists::Dense => 0,
            Lists::Sparse(codec) => 1 + CodecName::ALL.iter().position(|&name| name == codec).unwrap(),
        };
        let make = || Arc::new(self.build(lists, 0..self.contents.len()));
        Arc::clone(self.indexes[number].get_or_init(make))
    }

    /// Builds an index of some of the documents.
    pub fn build(&self, lists: Lists, documents: std::ops::Range<usize>) -> Index {
        self.build_in_order(Order::Given, lists, documents)
    }

    /// The index of the whole collection with the documents in bisected order.
    pub fn bisected(&self, lists: Lists) -> Arc<Index> {
        Arc::new(self.build_in_order(Order::Bisection, lists, 0..self.contents.len()))
    }

    fn build_in_order(&self, order: Order, lists: Lists, documents: std::ops::Range<usize>) -> Index {
        let options = BuildOptions {
            analyzer: self.analyzer.clone(),
            threads: 1,
            allow_empty: true,
            memory_bytes: 64 << 20,
            codecs: lists.codecs(),
            dense: lists == Lists::Dense,
            impacts: true,
            impact_ordered: true,
            bm25: self.bm25,
            strict: true,
            ranks: Some(self.folder.path().join("ranks")),
            order,
            ..BuildOptions::default()
        };
        let folder = self.folder.path().join(self.built.fetch_add(1, Ordering::Relaxed).to_string());
        build(&folder, self.corpus(&folder, documents), &options, &Quiet).unwrap();
        Index::open(&folder).unwrap()
    }

    fn corpus(&self, folder: &Path, documents: std::ops::Range<usize>) -> Corpus {
        let options = CorpusOptions { store: Vec::new(), ..CorpusOptions::default() };
        let is_vector = matches!(self.contents.first(), Some(Content::Vector(_)));
        if is_vector {
            let lines = documents.map(|document| {
                let Content::Vector(weights) = &self.contents[document] else { panic!("one kind of documents") };
                let vector: serde_json::Map<_, _> = weights.iter().map(|(t, w)| (t.clone(), (*w).into())).collect();
                format!("{}\n", serde_json::json!({ "id": document.to_string(), "vector": vector }))
            });
            let file = folder.with_extension("jsonl");
            std::fs::write(&file, lines.collect::<String>()).unwrap();
            return Corpus::open(&file, CorpusOptions { vector_field: Some("vector".to_owned()), ..options }).unwrap();
        }
        let texts: Vec<(String, String, String)> = documents
            .map(|document| match &self.contents[document] {
                Content::Text(title, text) => (document.to_string(), title.clone(), text.clone()),
                Content::Vector(_) => panic!("one kind of documents"),
            })
            .collect();
        Corpus::from_documents(texts, options).unwrap()
    }

    /// What must be answered to a question.
    pub fn expected(&self, ask: usize, mode: Mode, k: usize, score: ScoreModel) -> Vec<Hit> {
        let mut hits = self.candidates(ask, mode, k, score);
        hits.truncate(k);
        hits
    }

    /// All hits that the best k of a question are chosen from.
    pub fn candidates(&self, ask: usize, mode: Mode, k: usize, score: ScoreModel) -> Vec<Hit> {
        let key = (ask, score.to_string());
        let known = self.expected.lock().unwrap().get(&key).cloned();
        let expected = known.unwrap_or_else(|| {
            let expected = Arc::new(self.ask_oracle(ask, score));
            self.expected.lock().unwrap().insert(key, Arc::clone(&expected));
            expected
        });
        let hits = match mode {
            Mode::And => &expected.and,
            Mode::AndOr if expected.and.len() >= k => &expected.and,
            Mode::Or | Mode::AndOr => &expected.or,
        };
        hits.clone()
    }

    fn ask_oracle(&self, ask: usize, score: ScoreModel) -> Expected {
        let Ask { words, filter } = &self.asks[ask];
        let terms = words
            .iter()
            .flat_map(|(word, weight)| self.analyzer.terms(word).into_iter().map(move |term| (term, *weight)));
        let terms: Vec<(String, f64)> = terms.collect();
        let answer = |mode| {
            let range = 0..self.oracle.documents();
            let question = Question { terms: &terms, mode, k: usize::MAX, score, range, filter: filter.as_deref() };
            self.oracle.answer(&question)
        };
        Expected { and: answer(Mode::And), or: answer(Mode::Or) }
    }
}
