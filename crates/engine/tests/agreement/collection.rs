//! A collection as both sides know it: the oracle, and an index for each codec.

use lanner::internals::oracle::{Oracle, Question};
use lanner::internals::query::answer::Scored;
use lanner::{DocumentSet, Index, Mode, Query, ScoreModel, Verify};
use lanner_index::build::{BuildOptions, Order, Quiet, build};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::segment::Section;
use lanner_index::text::Analyzer;
use lanner_index::weight::Bm25;
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// How the lists of an index are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// As by default: lists with many documents are bitmaps.
    Dense,
    /// All lists in blocks of one codec.
    Sparse(CodecName),
}

impl Lists {
    /// Its position in [`Indexes`].
    fn number(self) -> usize {
        match self {
            Lists::Dense => 0,
            Lists::Sparse(codec) => 1 + CodecName::ALL.iter().position(|&name| name == codec).unwrap(),
        }
    }

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

/// The words of a query with their weights, and the filter.
#[derive(Clone, Debug)]
pub struct Ask {
    words: Vec<(String, f64)>,
    pub filter: Option<Arc<DocumentSet>>,
}

impl Ask {
    pub fn weighted(words: Vec<(String, f64)>) -> Ask {
        Ask { words, filter: None }
    }

    /// A text without weights.
    pub fn plain(text: &str) -> Ask {
        Ask::weighted(vec![(text.to_owned(), 1.0)])
    }

    pub fn filtered(self, filter: DocumentSet) -> Ask {
        Ask { filter: Some(Arc::new(filter)), ..self }
    }

    /// The query as a user would write it.
    pub fn query(&self) -> Query {
        let word = |(word, weight): &(String, f64)| match weight {
            1.0 => word.clone(),
            weight => format!("{word}^{weight}"),
        };
        let words: Vec<String> = self.words.iter().map(word).collect();
        Query { filter: self.filter.clone(), ..Query::new(words.join(" ")) }
    }
}

/// One index for each way to store lists, built when it is first asked for.
type Indexes = [OnceLock<Arc<Index>>; CodecName::ALL.len() + 1];

/// Every hit of a question, best first.
struct Expected {
    and: Vec<Scored>,
    or: Vec<Scored>,
}

pub struct Collection {
    pub contents: Vec<Content>,
    pub asks: Vec<Ask>,
    /// The score models of the questions.
    pub models: Vec<ScoreModel>,
    pub oracle: Oracle,
    analyzer: Analyzer,
    bm25: Bm25,
    /// Ranks that a build would refuse, to be written into an index.
    foreign_ranks: Option<Vec<f32>>,
    indexes: Indexes,
    bisected: Indexes,
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
        Collection {
            contents,
            asks: Vec::new(),
            models: vec![ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.3 }],
            oracle,
            analyzer,
            bm25,
            foreign_ranks: None,
            indexes: Default::default(),
            bisected: Default::default(),
            expected: Mutex::default(),
        }
    }

    pub fn with_asks(self, asks: Vec<Ask>) -> Collection {
        Collection { asks, ..self }
    }

    /// Asks with these score models.
    pub fn with_models(self, models: Vec<ScoreModel>) -> Collection {
        Collection { models, ..self }
    }

    /// Gives the documents other ranks, which need not be such that a build takes them. Only for the order given.
    pub fn with_foreign_ranks(mut self, rank: impl Fn(usize) -> f32) -> Collection {
        let ranks: Vec<f32> = (0..self.contents.len()).map(rank).collect();
        self.oracle.set_ranks(ranks.clone());
        Collection { foreign_ranks: Some(ranks), ..self }
    }

    /// The index of the whole collection.
    pub fn index(&self, lists: Lists) -> Arc<Index> {
        let make = || Arc::new(self.build(lists, 0..self.contents.len()));
        Arc::clone(self.indexes[lists.number()].get_or_init(make))
    }

    /// Builds an index of some of the documents.
    pub fn build(&self, lists: Lists, documents: std::ops::Range<usize>) -> Index {
        self.build_in_order(Order::Given, lists, documents)
    }

    /// The index of the whole collection with the documents in bisected order.
    pub fn bisected(&self, lists: Lists) -> Arc<Index> {
        let make = || Arc::new(self.build_in_order(Order::Bisection, lists, 0..self.contents.len()));
        Arc::clone(self.bisected[lists.number()].get_or_init(make))
    }

    fn build_in_order(&self, order: Order, lists: Lists, documents: std::ops::Range<usize>) -> Index {
        let folder = tempfile::tempdir().unwrap();
        let ranks = (0..self.contents.len()).map(|document| format!("{document}\t{}\n", rank(document)));
        std::fs::write(folder.path().join("ranks"), ranks.collect::<String>()).unwrap();
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
            ranks: Some(folder.path().join("ranks")),
            order,
            ..BuildOptions::default()
        };
        let index = folder.path().join("index");
        build(&index, self.corpus(&index, documents.clone()), &options, &Quiet).unwrap();
        if let Some(ranks) = &self.foreign_ranks {
            assert_eq!(order, Order::Given);
            let written = Index::open(&index).unwrap();
            let at = written.segment().section_range(Section::Ranks).start as u64;
            let bytes: Vec<u8> = ranks[documents].iter().flat_map(|rank| rank.to_le_bytes()).collect();
            let file = std::fs::OpenOptions::new().write(true).open(written.segment().path()).unwrap();
            file.write_all_at(&bytes, at).unwrap();
        }
        // Other ranks have another checksum.
        let verify = if self.foreign_ranks.is_some() { Verify::Off } else { Verify::Lazy };
        // A mapped file can still be read after the folder is removed.
        Index::open_with(&index, verify).unwrap()
    }

    fn corpus(&self, folder: &Path, documents: std::ops::Range<usize>) -> Corpus {
        let options = CorpusOptions { store: Some(Vec::new()), ..CorpusOptions::default() };
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

    /// The hits that every engine must give.
    pub fn expected(&self, ask: usize, mode: Mode, k: usize, score: ScoreModel) -> Vec<Scored> {
        let mut hits = self.candidates(ask, mode, k, score);
        hits.truncate(k);
        hits
    }

    /// All hits from which the best k are chosen.
    pub fn candidates(&self, ask: usize, mode: Mode, k: usize, score: ScoreModel) -> Vec<Scored> {
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

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection").field("contents", &self.contents).field("asks", &self.asks).finish()
    }
}
