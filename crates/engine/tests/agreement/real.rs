//! Real collections with real queries.

use crate::collection::{Ask, Collection, Content};
use crate::engine::Engine;
use crate::requirements::{data_folder, needs_data};
use crate::table::Agreement;
use lanner_index::weight::Bm25;
use libtest_mimic::Trial;
use std::io::{BufRead, BufReader};
use std::sync::OnceLock;

const KS: [usize; 4] = [1, 10, 100, 1000];
const PASSAGES: usize = 20_000;
const PASSAGE_QUERIES: usize = 200;

fn documents(lines: impl BufRead, count: usize) -> Vec<Content> {
    let field = |document: &serde_json::Value, name: &str| document[name].as_str().unwrap_or("").to_owned();
    let parse = |line: std::io::Result<String>| {
        let document: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        Content::Text(field(&document, "title"), field(&document, "text"))
    };
    lines.lines().take(count).map(parse).collect()
}

fn judged(name: &str) -> Collection {
    let folder = data_folder().join("judged").join(name);
    let corpus = std::fs::File::open(folder.join("corpus.jsonl")).unwrap();
    let contents = documents(BufReader::new(corpus), usize::MAX);
    let queries = std::fs::read_to_string(folder.join("queries.tsv")).unwrap();
    let asks = queries.lines().map(|line| Ask::plain(line.split_once('\t').unwrap().1)).collect();
    Collection::new("english", Bm25 { k1: 1.2, b: 0.75 }, contents).with_asks(asks)
}

fn passages() -> Collection {
    let data = data_folder();
    let file = std::fs::File::open(data.join("wiki-passages.jsonl.zst")).unwrap();
    let contents = documents(BufReader::new(zstd::Decoder::new(file).unwrap()), PASSAGES);
    let queries = std::fs::read_to_string(data.join("queries/tb05_efficiency.50k.txt")).unwrap();
    let asks = queries.lines().take(PASSAGE_QUERIES).map(Ask::plain).collect();
    Collection::new("english", Bm25::default(), contents).with_asks(asks)
}

fn judged_sets() -> &'static [Collection] {
    static SETS: OnceLock<Vec<Collection>> = OnceLock::new();
    SETS.get_or_init(|| ["cranfield", "cacm", "npl", "adi"].into_iter().map(judged).collect())
}

fn wiki() -> &'static Collection {
    static PASSAGES: OnceLock<Collection> = OnceLock::new();
    PASSAGES.get_or_init(passages)
}

/// One k for the simulator, which is slow: here the lists matter, and random collections are asked with other k.
fn ks(engine: &Engine) -> &'static [usize] {
    if engine.is_simulated() { &[10] } else { &KS }
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Agreement::new(judged_collections).trials();
    trials.extend(Agreement::new(judged_collections_bisected).slow_on_a_simulator(Engine::is_slow).trials());
    trials.extend(Agreement::new(wikipedia_passages).slow_on_a_simulator(Engine::is_slow).trials());
    trials.extend(Agreement::new(wikipedia_passages_bisected).slow_on_a_simulator(Engine::is_slow).trials());
    trials.into_iter().map(needs_data).collect()
}

fn judged_collections(engine: &Engine) {
    // The last one is the smallest.
    for collection in judged_sets().iter().rev().take(if engine.is_slow() { 1 } else { usize::MAX }) {
        engine.check(collection, ks(engine));
    }
}

fn judged_collections_bisected(engine: &Engine) {
    for collection in judged_sets().iter().take(if engine.is_simulated() { 1 } else { usize::MAX }) {
        engine.check_order(collection, ks(engine));
    }
}

fn wikipedia_passages(engine: &Engine) {
    engine.check(wiki(), ks(engine));
}

fn wikipedia_passages_bisected(engine: &Engine) {
    engine.check_order(wiki(), ks(engine));
}
