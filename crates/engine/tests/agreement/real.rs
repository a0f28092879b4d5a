//! Real collections with real queries.

use crate::collection::{Ask, Collection, Content};
use crate::engine::Engine;
use lanner_index::weight::Bm25;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const KS: [usize; 4] = [1, 10, 100, 1000];
const PASSAGES: usize = 20_000;
const PASSAGE_QUERIES: usize = 200;

/// The folder of the data that is not part of the project.
fn data() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(folder) = std::env::var_os("LANNER_DATA") {
        return Some(root.join(folder));
    }
    let is_strict = std::env::var("LANNER_STRICT").is_ok_and(|strict| strict == "1");
    assert!(!is_strict, "LANNER_DATA is not set, and LANNER_STRICT=1 forbids to skip");
    println!("skipped: LANNER_DATA is not set");
    None
}

fn documents(lines: impl BufRead, count: usize) -> Vec<Content> {
    let field = |document: &serde_json::Value, name: &str| document[name].as_str().unwrap_or("").to_owned();
    let parse = |line: std::io::Result<String>| {
        let document: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        Content::Text(field(&document, "title"), field(&document, "text"))
    };
    lines.lines().take(count).map(parse).collect()
}

fn judged(name: &str) -> Option<Collection> {
    let folder = data()?.join("judged").join(name);
    let corpus = std::fs::File::open(folder.join("corpus.jsonl")).unwrap();
    let contents = documents(BufReader::new(corpus), usize::MAX);
    let queries = std::fs::read_to_string(folder.join("queries.tsv")).unwrap();
    let asks = queries.lines().map(|line| Ask::plain(line.split_once('\t').unwrap().1)).collect();
    Some(Collection::new("english", Bm25 { k1: 1.2, b: 0.75 }, contents).with_asks(asks))
}

fn passages() -> Option<Collection> {
    let data = data()?;
    let file = std::fs::File::open(data.join("wiki-passages.jsonl.zst")).unwrap();
    let contents = documents(BufReader::new(zstd::Decoder::new(file).unwrap()), PASSAGES);
    let queries = std::fs::read_to_string(data.join("queries/tb05_efficiency.50k.txt")).unwrap();
    let asks = queries.lines().take(PASSAGE_QUERIES).map(Ask::plain).collect();
    Some(Collection::new("english", Bm25::default(), contents).with_asks(asks))
}

fn judged_sets() -> &'static [Collection] {
    static SETS: OnceLock<Vec<Collection>> = OnceLock::new();
    SETS.get_or_init(|| ["cranfield", "cacm", "npl", "adi"].into_iter().filter_map(judged).collect())
}

fn wiki() -> Option<&'static Collection> {
    static PASSAGES: OnceLock<Option<Collection>> = OnceLock::new();
    PASSAGES.get_or_init(passages).as_ref()
}

/// A simulator takes its time: one k for it here, where the lists are what is real; others are asked of random lists.
fn ks(engine: &Engine) -> &'static [usize] {
    if engine.is_simulated() { &[10] } else { &KS }
}

agreement!(judged_collections, |engine: Engine| {
    // The last one is the smallest.
    for collection in judged_sets().iter().rev().take(if engine.is_slow() { 1 } else { usize::MAX }) {
        engine.check(collection, ks(&engine));
    }
});

agreement!(judged_collections_bisected, steps on a real device, |engine: Engine| {
    for collection in judged_sets().iter().take(if engine.is_simulated() { 1 } else { usize::MAX }) {
        engine.check_order(collection, ks(&engine));
    }
});

agreement!(wikipedia_passages, steps on a real device, |engine: Engine| {
    if let Some(collection) = wiki() {
        engine.check(collection, ks(&engine));
    }
});

agreement!(wikipedia_passages_bisected, steps on a real device, |engine: Engine| {
    if let Some(collection) = wiki() {
        engine.check_order(collection, ks(&engine));
    }
});
