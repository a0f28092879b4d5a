//! The public interface of the searcher: plans as text, explanations that add up, refused queries, damaged files.

use lanner::answer::Place;
use lanner::{
    Algorithm, DocId, Document, DocumentSet, GpuOptions, Index, IndexBuilder, Mode, Policy, Query, ScoreModel, Searcher,
};
use lanner_index::build::{BuildOptions, Order, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;

/// Documents of a few words with varying frequencies.
fn documents(count: usize) -> Vec<(String, String, String)> {
    let text = |document: usize| {
        let mut text = format!("falcons hunt {}", "in pairs ".repeat(document % 7));
        if document.is_multiple_of(3) {
            text.push_str(&"over water ".repeat(1 + document % 4));
        }
        if document % 200 == 5 {
            text.push_str("at dawn");
        }
        text
    };
    (0..count).map(|document| (format!("d{document}"), format!("Title {}", document % 10), text(document))).collect()
}

fn build_index(folder: &Path, options: BuildOptions) {
    let corpus = Corpus::from_documents(documents(1000), CorpusOptions::default()).unwrap();
    build(folder, corpus, &BuildOptions { threads: 1, ..options }, &Quiet).unwrap();
}

/// An index with everything that can be stored.
fn full_index() -> (TempDir, Searcher) {
    let folder = tempfile::tempdir().unwrap();
    let ranks: String = (0..1000).map(|document| format!("d{document}\t{}\n", 1000 - document)).collect();
    std::fs::write(folder.path().join("ranks"), ranks).unwrap();
    let ranks = Some(folder.path().join("ranks"));
    build_index(&folder.path().join("index"), BuildOptions { impacts: true, ranks, ..BuildOptions::default() });
    let searcher = Searcher::open(folder.path().join("index")).unwrap();
    (folder, searcher)
}

/// Compares with a file under `tests/golden`, or writes it when `UPDATE=1`.
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} differs; UPDATE=1 rewrites it");
}

#[test]
fn plans_print_as_in_the_golden_files() {
    let (_folder, searcher) = full_index();
    let plan = |query: Query| searcher.plan(&query).unwrap().to_string();
    assert_golden("or.txt", &plan(Query::new("water falcons^2.5 water at dawn unknown").k(50)));
    assert_golden("and-or.txt", &plan(Query::new("hunting water").mode(Mode::AndOr)));
    assert_golden("nothing.txt", &plan(Query::new("hunting unknown").mode(Mode::And)));
    let filter: Arc<DocumentSet> = Arc::new((10..20).map(DocId).collect());
    assert_golden("impact.txt", &plan(Query::new("pairs dawn").score(ScoreModel::Impact).filter(filter)));
    let rank = ScoreModel::RankBm25 { alpha: 0.3 };
    assert_golden("rank.txt", &plan(Query::new("pairs dawn").score(rank).algorithm(Algorithm::Exhaustive)));
}

#[test]
fn explanations_print_as_in_the_golden_files() {
    let (_folder, searcher) = full_index();
    let explain = |query: Query| searcher.explain(&query, DocId(405)).unwrap().unwrap().to_string();
    assert_golden("explain.txt", &explain(Query::new("water hunting dawn^2 unknown")));
    let rank = ScoreModel::RankBm25 { alpha: 0.3 };
    assert_golden("explain-rank.txt", &explain(Query::new("water unknown").mode(Mode::And).score(rank)));
    assert_golden("explain-impact.txt", &explain(Query::new("water pairs").score(ScoreModel::Impact)));
}

#[test]
fn every_hit_is_explained_by_weights_that_add_up_to_its_score() {
    let (_folder, searcher) = full_index();
    for score in [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.6 }] {
        for mode in [Mode::And, Mode::Or] {
            let query = Query::new("water^3 pairs falcon dawn").mode(mode).score(score).k(2000);
            let answer = searcher.search(&query).unwrap();
            assert!(!answer.hits.is_empty());
            for hit in answer.hits {
                let explanation = searcher.explain(&query, hit.document).unwrap().unwrap();
                let terms = explanation.terms.iter().filter_map(|term| term.posting.as_ref());
                let rank = explanation.static_part.map_or(0, |part| part.weight);
                assert_eq!(terms.map(|posting| posting.weight).sum::<u32>() + rank, hit.units);
                assert_eq!((explanation.score, explanation.matches), (hit.units, true));
            }
        }
    }
    assert_eq!(searcher.explain(&Query::new("water"), DocId(1000)).unwrap(), None);
}

#[test]
fn hits_come_with_ids_fields_and_passages() {
    let (_folder, searcher) = full_index();
    let query = Query::new("dawn").k(1);
    let hit = searcher.search(&query).unwrap().hits[0];
    let document = searcher.document(hit.document).unwrap();
    assert_eq!(document.id, searcher.id(hit.document).unwrap());
    assert_eq!(document.get("title"), Some("Title 5"));
    let snippet = searcher.snippet(&query, &document, 40).unwrap();
    assert_eq!(&snippet.text[snippet.matches[0].clone()], "dawn");
}

#[test]
fn a_batch_is_answered_as_its_queries_are_one_by_one() {
    let (_folder, searcher) = full_index();
    let words = ["water", "pairs dawn", "falcon water pairs", "", "unknown"];
    let modes = [Mode::And, Mode::Or, Mode::AndOr];
    let queries: Vec<Query> = (0..60).map(|i| Query::new(words[i % 5]).mode(modes[i % 3]).k(1 + i * 7)).collect();
    for threads in [1, 3] {
        let batches = Searcher::new(Arc::clone(searcher.index())).threads(threads);
        let answers = batches.search_batch(&queries).unwrap();
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer.hits, searcher.search(query).unwrap().hits, "{query:?}");
        }
    }
    let bad = [Query::new("water"), Query::new("water^0")];
    let error = searcher.search_batch(&bad).unwrap_err().to_string();
    assert_eq!(error, "query 2: the weight 0 of \"water\" is out of range; give one from 0.000001 to 1000000");
}

/// Score models take turns, and an impact is another unit than a weight: an answer that was paired with the plan of
/// another query would have wrong scores.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_batch_of_all_score_models_is_answered_on_a_device_as_its_queries_are_on_the_cpu() {
    let (_folder, searcher) = full_index();
    let on_device = |threads| {
        let gpu = GpuOptions::simulator().expect("a simulator");
        Searcher::new(Arc::clone(searcher.index())).gpu(gpu).policy(Policy::Gpu).threads(threads)
    };
    let words = ["water", "pairs dawn", "falcon^2 water pairs", "hunting dawn^3"];
    let models = [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.3 }];
    let modes = [Mode::And, Mode::Or, Mode::AndOr];
    let query = |i: usize| Query::new(words[i % 4]).score(models[i % 3]).mode(modes[i / 3 % 3]).k(1 + i);
    let queries: Vec<Query> = (0..35).map(query).collect();
    for threads in [1, 3] {
        let answers = on_device(threads).search_batch(&queries).unwrap();
        assert_eq!(answers.len(), queries.len());
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer.hits, searcher.search(query).unwrap().hits, "{query:?}");
            assert!(!answer.hits.is_empty(), "{query:?}");
            let is_simulated = answer.trace.steps.iter().skip(1).all(|step| step.place == Place::Simulator);
            assert!(is_simulated, "{query:?}: {:?}", answer.trace);
        }
    }
}

#[test]
fn the_and_part_of_an_and_or_query_answers_if_it_has_k_hits() {
    let (_folder, searcher) = full_index();
    let query = Query::new("dawn water").mode(Mode::AndOr);
    let names = |k| {
        let trace = searcher.search(&query.clone().k(k)).unwrap().trace;
        trace.steps.iter().map(|step| step.name).collect::<Vec<_>>()
    };
    assert_eq!(names(1), ["plan", "conjunction"]);
    assert_eq!(names(10), ["plan", "conjunction", "scatter"]);
}

#[test]
fn what_the_index_lacks_is_said_with_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), BuildOptions::default());
    let searcher = Searcher::open(folder.path()).unwrap();
    let error = |query: Query| searcher.plan(&query).unwrap_err().to_string();
    assert!(error(Query::new("water").score(ScoreModel::Impact)).contains("rebuild the index with impacts"));
    assert!(
        error(Query::new("water").score(ScoreModel::RankBm25 { alpha: 0.3 }))
            .contains("rebuild the index with static ranks")
    );
    assert!(error(Query::new("water").score(ScoreModel::RankBm25 { alpha: 1.5 })).contains("from 0 to 1"));
    let far = "the weights of the query are too far apart: the largest is 1000000000000 times the smallest";
    assert!(error(Query::new("water^1000000 pairs^0.000001")).starts_with(far));

    let impacts_only = BuildOptions { impacts: true, frequencies: false, ..BuildOptions::default() };
    build_index(folder.path(), impacts_only);
    let searcher = Searcher::open(folder.path()).unwrap();
    let error = searcher.plan(&Query::new("water").score(ScoreModel::Bm25)).unwrap_err().to_string();
    assert!(error.contains("rebuild the index with frequencies"), "{error}");
    assert_eq!(searcher.plan(&Query::new("water")).unwrap().score, ScoreModel::Impact, "the default");
    let error = searcher.plan(&Query::new("water^1000000 pairs^0.000001")).unwrap_err().to_string();
    assert!(error.starts_with(far), "{error}");
}

#[test]
fn with_statistics_from_elsewhere_stored_bounds_and_impacts_are_not_used() {
    let (folder, _) = full_index();
    let mut index = Index::open(folder.path().join("index")).unwrap();
    let own = index.statistics();
    index.set_statistics(lanner_index::format::manifest::Statistics { documents: own.documents * 9, ..own });
    let searcher = Searcher::new(Arc::new(index));
    let plan = searcher.plan(&Query::new("water")).unwrap();
    assert_eq!((plan.seed, plan.block_bounds_hold), (None, false));
    let unbounded = lanner_index::weight::units(plan.lists[0].multiplier, 1.0);
    assert_eq!(plan.lists[0].bound, unbounded);
    let error = searcher.plan(&Query::new("water").score(ScoreModel::Impact)).unwrap_err().to_string();
    assert!(error.contains("made with other statistics"), "{error}");
}

/// Damaged lists give an answer or an error, never a panic, and never a hit outside the collection.
#[test]
fn a_damaged_index_is_searched_without_panic() {
    let (folder, searcher) = full_index();
    let segment = searcher.index().segment().path().to_owned();
    let intact = std::fs::read(&segment).unwrap();
    drop(searcher);
    let mut random = 12345u64;
    for _ in 0..300 {
        let mut bytes = intact.clone();
        for _ in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = 1024 + (random >> 33) as usize % (intact.len() - 1024);
            bytes[place] = (random >> 20) as u8;
        }
        std::fs::write(&segment, &bytes).unwrap();
        let searcher = Searcher::open(folder.path().join("index")).unwrap();
        for score in [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.3 }] {
            for (mode, algorithm) in [
                (Mode::And, Algorithm::Conjunction),
                (Mode::Or, Algorithm::Maxscore),
                (Mode::AndOr, Algorithm::Exhaustive),
            ] {
                let query = Query::new("falcon water pairs dawn title").mode(mode).algorithm(algorithm).score(score);
                let Ok(answer) = searcher.search(&query) else {
                    continue;
                };
                assert!(answer.hits.iter().all(|hit| hit.document.0 < 1000));
            }
        }
    }
}

#[test]
fn a_filter_of_external_ids_keeps_those_documents_and_ignores_unknown_ids() {
    let folder = tempfile::tempdir().unwrap();
    for order in [Order::Given, Order::Bisection] {
        build_index(folder.path(), BuildOptions { order, ..BuildOptions::default() });
        let searcher = Searcher::open(folder.path()).unwrap();
        let found = |ids: &[&str]| {
            let query = Query::new("falcons").k(10).filter(searcher.filter(ids).unwrap());
            let hits = searcher.search(&query).unwrap().hits;
            let mut ids: Vec<String> = hits.iter().map(|hit| searcher.id(hit.document).unwrap()).collect();
            ids.sort();
            ids
        };
        assert_eq!(found(&["d7", "no such id", "d500"]), ["d500", "d7"], "{order:?}");
        assert_eq!(found(&["no such id"]), Vec::<String>::new(), "{order:?}");
    }
}

#[test]
fn fields_of_a_document_are_indexed_and_stored_as_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let input =
        CorpusOptions { fields: Some(names(&["body"])), store: Some(names(&["url"])), ..CorpusOptions::default() };
    let document = Document::new("a").field("body", "falcons").field("url", "heron").field("note", "kestrel");
    IndexBuilder::new(folder.path()).input(input).documents([document]).unwrap();
    let searcher = Searcher::open(folder.path()).unwrap();
    let hits = ["falcons", "heron", "kestrel"].map(|word| searcher.search(&Query::new(word)).unwrap().hits.len());
    assert_eq!(hits, [1, 0, 0]);
    assert_eq!(searcher.document(DocId(0)).unwrap(), Document::new("a").field("url", "heron"));
}

#[test]
fn plans_and_explanations_say_how_weights_count() {
    let (_folder, searcher) = full_index();
    let plan = |text: &str| searcher.plan(&Query::new(text)).unwrap().to_string();
    assert!(plan("water^0.5 dawn").contains("\nweights: only their ratios count, the smallest counts as 1\n"));
    assert!(!plan("water dawn^2").contains("ratios"));
    let explain = |text: &str| searcher.explain(&Query::new(text), DocId(405)).unwrap().unwrap();
    let (half, whole) = (explain("water^0.5 dawn"), explain("water dawn^2"));
    assert!(half.to_string().contains("(weight 0.5, which counts as 1, idf "), "{half}");
    assert_eq!(half.score, whole.score);
}

#[test]
fn an_explanation_has_the_length_that_scores_are_computed_with() {
    let folder = tempfile::tempdir().unwrap();
    let words = |count: usize| Document::new(format!("d{count}")).field("text", "falcon ".repeat(count));
    IndexBuilder::new(folder.path()).documents([words(3), words(100)]).unwrap();
    let searcher = Searcher::open(folder.path()).unwrap();
    let explain = |document| searcher.explain(&Query::new("falcon"), DocId(document)).unwrap().unwrap();
    assert_eq!(
        [0, 1].map(|document| (explain(document).length, explain(document).scored_length)),
        [(3, Some(3)), (100, Some(96)),]
    );
    assert!(explain(1).to_string().contains("by bm25, length 100, scored as 96\n"), "{}", explain(1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn scaling_all_weights_of_a_query_changes_no_hit(
        weights in prop::collection::vec(1u64..=5000, 1..=5), scale in 1u64..=100_000, mode in 0usize..3,
    ) {
        static INDEX: OnceLock<(TempDir, Searcher)> = OnceLock::new();
        let (_, searcher) = INDEX.get_or_init(full_index);
        let mode = [Mode::And, Mode::Or, Mode::AndOr][mode];
        // Weights in thousandths, scaled by thousandths.
        let text = |scale: u64| {
            let words = ["water", "falcons", "dawn", "pairs", "unknown"].iter().zip(&weights);
            let words = words.map(|(word, weight)| {
                let weight = weight * scale;
                format!("{word}^{}.{:06}", weight / 1_000_000, weight % 1_000_000)
            });
            words.collect::<Vec<_>>().join(" ")
        };
        for model in [ScoreModel::Bm25, ScoreModel::Impact, ScoreModel::RankBm25 { alpha: 0.3 }] {
            let hits = |scale| searcher.search(&Query::new(text(scale)).mode(mode).score(model).k(1000)).unwrap().hits;
            prop_assert_eq!(hits(scale), hits(1000), "{} and {}", text(scale), text(1000));
        }
    }
}

#[test]
fn the_smallest_weights_rank_as_the_largest_do() {
    let (_folder, searcher) = full_index();
    let ids = |text: &str| searcher.search(&Query::new(text).k(1000)).unwrap().hits;
    for (small, large) in [("water^0.000001 dawn^0.000002", "water^500000 dawn^1000000"), ("dawn^0.000001", "dawn")] {
        assert_eq!(ids(small), ids(large));
    }
}
