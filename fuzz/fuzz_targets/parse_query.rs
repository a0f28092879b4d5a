//! Any text as a query: through every analyzer, the planner, every mode and the snippets, without a panic.
#![no_main]

use lanner::answer::Snippet;
use lanner::{Algorithm, Mode, Query, ScoreModel, Searcher};
use lanner_fuzz::{QUERIES, build_small_index, write_seeds};
use lanner_index::codec::Codecs;
use lanner_index::text::{Analyzer, LONGEST_TERM_BYTES};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const ANALYZERS: [&str; 7] = [
    "english",
    "simple",
    "whitespace",
    "pretokenized",
    "words+stop+porter+possessive",
    "words+cjk-bigram+lowercase+fold+snowball:french",
    "words+lowercase+snowball:turkish+fold",
];

static SEARCHER: OnceLock<Searcher> = OnceLock::new();

fn prepare() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    build_small_index(folder.path(), "bitpack", true, true);
    // The mapping outlives the files, so nothing is left on disk.
    SEARCHER.get_or_init(|| Searcher::open(folder.path()).expect("the index that was just built"));
    let further =
        ["a^2 b^.5 c^1. d^", "don't U.S. 3.14 x^1e3", "\u{4e2d}\u{6587} na\u{ef}ve \u{1f600}", "and the of", ""];
    let names = ["rank-bm25:0.5", "maxscore", "documents=raw,weights=bitpack"];
    write_seeds(QUERIES.into_iter().chain(further).chain(names).chain(ANALYZERS).map(|text| text.as_bytes().to_vec()));
}

fn parse_names(text: &str) {
    if let Ok(analyzer) = Analyzer::parse(text) {
        assert_eq!(Analyzer::parse(&analyzer.chain()).expect("a chain of its own").chain(), analyzer.chain());
    }
    if let Ok(mode) = text.parse::<Mode>() {
        assert_eq!(mode.to_string(), text);
    }
    if let Ok(algorithm) = text.parse::<Algorithm>() {
        assert_eq!(algorithm.to_string(), text);
    }
    let _ = (text.parse::<ScoreModel>(), text.parse::<Codecs>());
}

fn analyze(text: &str) {
    for name in ANALYZERS {
        let analyzer = Analyzer::parse(name).expect("a known name");
        for term in analyzer.terms(text) {
            assert!(!term.is_empty() && term.len() <= LONGEST_TERM_BYTES, "{name}: {term:?}");
        }
        if let Ok(terms) = Query::new(text).terms(&analyzer) {
            let wanted = terms.into_iter().map(|term| term.term).collect();
            let snippet = Snippet::new(text, &wanted, &analyzer, 40);
            snippet.matches.iter().for_each(|range| assert!(snippet.text.get(range.clone()).is_some()));
        }
    }
}

fn search(text: &str) {
    let searcher = SEARCHER.get().expect("made before the first input");
    for model in [ScoreModel::Bm25, ScoreModel::Impact] {
        for mode in [Mode::And, Mode::Or, Mode::AndOr] {
            let answer = |algorithm| {
                let query = Query::new(text).mode(mode).score(model).algorithm(algorithm);
                searcher.search(&query).map(|answer| answer.hits).map_err(|error| error.to_string())
            };
            assert_eq!(answer(Algorithm::Auto), answer(Algorithm::Exhaustive), "{mode} by {model}");
        }
    }
}

fuzz_target!(init: prepare(), |data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    parse_names(&text);
    analyze(&text);
    search(&text);
});
