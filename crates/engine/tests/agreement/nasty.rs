//! A collection built to be nasty: more than three windows, dense lists, lists of more than 64 K postings, tied scores,
//! documents at the edges of blocks and windows, and unusual queries.

use crate::collection::{Ask, Collection, Content, Lists};
use crate::device;
use crate::engine::{Engine, Runs};
use crate::requirements::test;
use crate::table::{Agreement, device_test};
use lanner::answer::Work;
use lanner::error::PlanError;
use lanner::internals::query::LARGEST_WEIGHT;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, DocId, DocumentSet, GpuOptions, Mode, Policy, Query, ScoreModel, Searcher};
use lanner_index::codec::CodecName;
use lanner_index::format::segment::WINDOW;
use lanner_index::weight::Bm25;
use libtest_mimic::Trial;
use std::sync::OnceLock;

/// A little more than three windows.
const DOCUMENTS: u32 = 3 * WINDOW + 1696;
/// How many words are spread over all documents.
const SPREAD: u32 = 1100;

/// The words of a document.
fn words(document: u32) -> Vec<String> {
    let mut words = vec!["all".to_owned()];
    let mut add = |word: &str, times: u32| words.extend((0..times).map(|_| word.to_owned()));
    add("half", u32::from(document.is_multiple_of(2)));
    add("third", u32::from(document.is_multiple_of(3)) * (1 + document % 5));
    add("rare", u32::from(document % 5000 == 77));
    add("first", u32::from(document == 0));
    add("last", u32::from(document == DOCUMENTS - 1));
    add("edge", u32::from(matches!(document % WINDOW, 0 | 1 | 127 | 128) || document % WINDOW == WINDOW - 1));
    add("cluster", u32::from((40_000..40_300).contains(&document)));
    // The best documents come last, when thresholds are already high.
    add("late", if document + 300 > DOCUMENTS { 20 } else { u32::from(document.is_multiple_of(50)) });
    for turn in 0..3 {
        add(&format!("s{}", document.wrapping_mul(2_654_435_761).wrapping_add(turn * 367) % SPREAD), 1);
    }
    words
}

fn spread(count: u32) -> Ask {
    Ask::weighted((0..count).map(|number| (format!("s{number}"), 1.0)).collect())
}

fn asks() -> Vec<Ask> {
    let third: DocumentSet = (0..DOCUMENTS).step_by(3).map(DocId).collect();
    let plain = [
        "",
        "unknown",
        "all",
        "all unknown",
        "half third",
        "all half third",
        "rare all",
        "rare half third cluster",
        "first last",
        "first all last",
        "edge half",
        "edge cluster late",
        "late all",
        "cluster all half",
    ];
    let mut asks: Vec<Ask> = plain.into_iter().map(Ask::plain).collect();
    asks.push(Ask::plain("all all all half all"));
    asks.push(Ask::weighted(vec![("third".to_owned(), 1000.0), ("all".to_owned(), 0.001), ("rare".to_owned(), 2.5)]));
    asks.push(Ask::plain("all late").filtered(third.clone()));
    asks.push(Ask::plain("all half third").filtered(third));
    asks.push(Ask::plain("all").filtered(DocumentSet::default()));
    asks.push(spread(2));
    asks.push(spread(60));
    asks
}

/// With b = 0 the length of a document has no influence, so that equal frequencies tie.
fn collection(asks: Vec<Ask>) -> Collection {
    let contents = (0..DOCUMENTS).map(|document| Content::words(&words(document))).collect();
    Collection::new("whitespace", Bm25 { k1: 0.9, b: 0.0 }, contents).with_asks(asks)
}

fn nasty() -> &'static Collection {
    static NASTY: OnceLock<Collection> = OnceLock::new();
    NASTY.get_or_init(|| collection(asks()))
}

/// The same words in fewer documents, for queries of many terms.
fn many_terms() -> &'static Collection {
    static MANY: OnceLock<Collection> = OnceLock::new();
    MANY.get_or_init(|| {
        let contents = (0..12_000).map(|document| Content::words(&words(document))).collect();
        let asks = [1, 16, 17, 255, 1024].map(spread).to_vec();
        Collection::new("whitespace", Bm25::default(), contents).with_asks(asks)
    })
}

/// Short documents, then long ones: the statistics of either half give other weights than those of the whole.
fn uneven() -> Collection {
    let content = |document: u32| {
        let filler = if document < 600 { 0 } else { 60 };
        let times = 1 + (document % 11 * document % 7) as usize;
        let words = vec![format!("w{}", document % 5); times];
        let words = words.into_iter().chain(["common".to_owned()]).chain((0..filler).map(|i| format!("f{i}")));
        Content::words(&words.collect::<Vec<_>>())
    };
    let asks = ["common", "w1", "w1 w2 common", "w0 w3 f7 f8"].map(Ask::plain).to_vec();
    Collection::new("whitespace", Bm25 { k1: 1.2, b: 0.75 }, (0..1200).map(content).collect()).with_asks(asks)
}

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        test(a_query_of_stop_words_has_no_hits),
        test(all_lanes_agree_on_the_nasty_collection),
        test(conjunction_skips_most_of_what_exhaustive_reads),
        test(maxscore_skips_most_of_what_exhaustive_reads),
        test(the_work_of_exhaustive_is_every_posting),
        device_test(a_list_that_is_searched_is_decoded_only_where_candidates_can_be),
        device_test(blocks_are_uploaded_as_searches_hit_them),
        device_test(frequencies_that_bitmaps_keep_apart_are_found_on_a_device),
        device_test(nasty_collection_in_steps_on_a_device),
        device_test(nasty_collection_with_more_k_than_hits_on_a_device),
        device_test(nasty_collection_with_more_k_than_hits_in_steps_on_a_device),
        device_test(queries_of_up_to_1024_terms_in_steps_on_a_device),
        device_test(scores_just_within_32_bits_agree_and_greater_ones_are_refused),
    ];
    trials.extend(Agreement::new(uneven_shards).only(Engine::answers_shards).trials());
    trials.extend(Agreement::new(nasty_collection).slow_on_a_simulator(Engine::is_slow).trials());
    // With a k this large the simulator is slow whatever the codec.
    let more_k = Agreement::new(nasty_collection_with_more_k_than_hits);
    trials.extend(more_k.slow_on_a_simulator(Engine::is_simulated).trials());
    trials.extend(Agreement::new(nasty_collection_in_parts).slow_on_a_simulator(Engine::is_slow).trials());
    trials.extend(Agreement::new(nasty_collection_split_among_threads).slow_on_a_simulator(Engine::is_slow).trials());
    trials.extend(Agreement::new(queries_of_up_to_1024_terms).slow_on_a_simulator(Engine::is_slow).trials());
    trials
}

fn uneven_shards(engine: &Engine) {
    static UNEVEN: OnceLock<Collection> = OnceLock::new();
    engine.check_shards(UNEVEN.get_or_init(uneven), &[1, 10, 100, 1000], 600);
}

fn nasty_collection(engine: &Engine) {
    engine.check(nasty(), &[0, 1, 10, 1000]);
}

fn nasty_collection_with_more_k_than_hits(engine: &Engine) {
    engine.check(nasty(), &[200_000]);
}

fn nasty_collection_in_parts(engine: &Engine) {
    engine.check_parts(nasty(), &[10], &[0, 1, WINDOW - 1, WINDOW, 40_100, 2 * WINDOW + 64]);
}

fn nasty_collection_split_among_threads(engine: &Engine) {
    engine.check_split(nasty(), &[10]);
}

fn queries_of_up_to_1024_terms(engine: &Engine) {
    engine.check(many_terms(), &[10, 1000]);
}

/// One engine of each kind that answers step by step, for what is too slow on the simulator with all of them.
fn steps() -> [Engine; 3] {
    [
        Engine::new(Algorithm::TermAtATime, Lists::Dense, Runs::Device),
        Engine::new(Algorithm::MergePath, Lists::Sparse(CodecName::EliasFano), Runs::Device),
        Engine::new(Algorithm::Accumulators, Lists::Sparse(CodecName::Bitpack), Runs::Device),
    ]
}

fn nasty_collection_in_steps_on_a_device() {
    steps().iter().for_each(|engine| engine.check(nasty(), &[1000]));
}

fn all_lanes_agree_on_the_nasty_collection() {
    for algorithm in [Algorithm::Scatter, Algorithm::Conjunction] {
        for lists in [Lists::Dense, Lists::Sparse(CodecName::Bitpack)] {
            Engine::new(algorithm, lists, Runs::Threads(1)).check_lanes(nasty(), &[10, 1000]);
        }
    }
}

/// Hundreds of frequencies too large for the bits of a dense list, crowded at the start and sparse later, so that an
/// interpolated position is always wrong. Many documents match, so that every part of a query has more hits than it
/// keeps.
fn frequencies_that_bitmaps_keep_apart_are_found_on_a_device() {
    let every = |document: usize| match document {
        ..9000 => 9,
        9000..30_000 => 701,
        _ => 13,
    };
    let contents = (0..36_000usize).map(|document| {
        let often = 17 + document % 32;
        let mut words = vec!["heron"; if document % every(document) == 0 { often } else { 1 }];
        words.extend((document % 7 == 0).then_some("egret"));
        Content::words(if document % 2 == 0 { &words } else { &["other"] })
    });
    let asks = vec![Ask::plain("heron"), Ask::plain("egret heron")];
    let collection = Collection::new("whitespace", Bm25::default(), contents.collect()).with_asks(asks);
    Engine::new(Algorithm::Auto, Lists::Dense, Runs::Device).check(&collection, &[10, 1000]);
}

/// The same words in fewer documents, and ANDs whose other lists are more than 128 times as long as the first.
fn blocks_are_uploaded_as_searches_hit_them() {
    let contents = (0..12_000).map(|document| Content::words(&words(document))).collect();
    let asks = ["rare third", "rare all half", "edge third all", "edge half", "s7 all", "s7 third half", "edge s5 all"];
    let collection = Collection::new("whitespace", Bm25::default(), contents).with_asks(asks.map(Ask::plain).to_vec());
    for (algorithm, codec) in [
        (Algorithm::TermAtATime, CodecName::Bitpack),
        (Algorithm::TermAtATime, CodecName::Rice),
        (Algorithm::SkipSearch, CodecName::Pfor),
        (Algorithm::SkipSearch, CodecName::EliasFano),
    ] {
        Engine::new(algorithm, Lists::Sparse(codec), Runs::Uploading).check(&collection, &[1]);
    }
}

fn nasty_collection_with_more_k_than_hits_on_a_device() {
    Engine::new(Algorithm::Auto, Lists::Dense, Runs::Device).check(nasty(), &[200_000]);
}

fn nasty_collection_with_more_k_than_hits_in_steps_on_a_device() {
    Engine::new(Algorithm::TermAtATime, Lists::Dense, Runs::Device).check(nasty(), &[200_000]);
}

fn queries_of_up_to_1024_terms_in_steps_on_a_device() {
    steps().iter().for_each(|engine| engine.check(many_terms(), &[10, 1000]));
}

fn a_query_of_stop_words_has_no_hits() {
    let contents = vec![Content::Text("The title".to_owned(), "the text of it".to_owned())];
    let collection = Collection::new("english", Bm25::default(), contents).with_asks(vec![Ask::plain("the of it")]);
    let searcher = Searcher::new(collection.index(Lists::Dense));
    for mode in [Mode::And, Mode::Or, Mode::AndOr] {
        assert_eq!(searcher.search(&collection.asks[0].query().mode(mode)).unwrap().hits, []);
    }
}

fn work(query: &Query, algorithm: Algorithm) -> Work {
    static SEARCHER: OnceLock<Searcher> = OnceLock::new();
    let searcher = SEARCHER.get_or_init(|| Searcher::new(nasty().index(Lists::Sparse(CodecName::Bitpack))));
    searcher.search(&query.clone().algorithm(algorithm)).unwrap().work
}

fn the_work_of_exhaustive_is_every_posting() {
    let work = work(&Query::new("all half"), Algorithm::Exhaustive);
    assert_eq!(work.postings_decoded, u64::from(DOCUMENTS + DOCUMENTS / 2));
    assert_eq!(work.blocks_decoded, u64::from(DOCUMENTS.div_ceil(128) + (DOCUMENTS / 2).div_ceil(128)));
    assert_eq!((work.blocks_skipped, work.documents_scored), (0, u64::from(DOCUMENTS)));
}

fn maxscore_skips_most_of_what_exhaustive_reads() {
    for text in ["all", "rare all half", "late all third", "edge cluster all"] {
        for score in [ScoreModel::Bm25, ScoreModel::Impact] {
            let query = Query::new(text).score(score);
            let (skipping, all) = (work(&query, Algorithm::Maxscore), work(&query, Algorithm::Exhaustive));
            assert!(skipping.postings_decoded * 4 < all.postings_decoded, "{text} {score}: {skipping:?}, {all:?}");
            assert!(skipping.documents_scored * 4 < all.documents_scored, "{text} {score}: {skipping:?}, {all:?}");
            let blocks = |work: Work| work.blocks_decoded + work.blocks_skipped;
            assert_eq!(blocks(skipping), blocks(all), "{text} {score}");
        }
    }
}

fn conjunction_skips_most_of_what_exhaustive_reads() {
    for text in ["rare all", "cluster all half", "edge late all third"] {
        let query = Query::new(text).mode(Mode::And);
        let (skipping, all) = (work(&query, Algorithm::Conjunction), work(&query, Algorithm::Exhaustive));
        assert!(skipping.postings_decoded * 4 < all.postings_decoded, "{text}: {skipping:?}, {all:?}");
        assert!(skipping.documents_scored <= all.documents_scored, "{text}: {skipping:?}, {all:?}");
    }
}

/// Searching with skip pointers decodes at most one block for each candidate; merging decodes all blocks.
fn a_list_that_is_searched_is_decoded_only_where_candidates_can_be() {
    let index = nasty().index(Lists::Sparse(CodecName::Bitpack));
    let gpu = GpuOptions::new(Box::new(|| Ok(device::open(5))));
    let searcher = Searcher::new(index).gpu(gpu).policy(Policy::Gpu);
    let decoded = |algorithm| {
        let query = Query::new("rare all").mode(Mode::And).algorithm(algorithm);
        let answer = searcher.search(&query).unwrap();
        (answer.hits.len(), answer.work.blocks_decoded, answer.work.blocks_skipped)
    };
    let (rare, blocks) = (u64::from(DOCUMENTS.div_ceil(5000)), u64::from(DOCUMENTS.div_ceil(128)));
    assert_eq!(decoded(Algorithm::MergePath), (10, 1 + blocks, 0));
    for algorithm in [Algorithm::SkipSearch, Algorithm::TermAtATime] {
        assert_eq!(decoded(algorithm), (10, 1 + rare, blocks - rare), "{algorithm}");
    }
}

fn scores_just_within_32_bits_agree_and_greater_ones_are_refused() {
    let weighted = |weight: f64| {
        let words = [("all", 0.001), ("half", weight), ("third", weight)];
        Ask::weighted(words.map(|(word, weight)| (word.to_owned(), weight)).to_vec())
    };
    let contents: Vec<Content> = (0..6000).map(|document| Content::words(&words(document))).collect();
    // Saturations are 1, so that scores reach what the planner expects of them.
    let bm25 = Bm25 { k1: 0.0, b: 0.0 };
    let index = Collection::new("whitespace", bm25, contents.clone()).index(Lists::Dense);
    for score in [ScoreModel::Bm25, ScoreModel::Impact] {
        let query = |weight: f64| weighted(weight).query().mode(Mode::Or).score(score).k(10);
        let plan = |weight: f64| Planner::new(&index).plan(&query(weight));
        let (mut fits, mut refused) = (1.0, LARGEST_WEIGHT);
        for _ in 0..60 {
            let middle = (fits + refused) / 2.0;
            if plan(middle).is_ok() { fits = middle } else { refused = middle }
        }
        assert!(matches!(plan(refused), Err(PlanError::WeightsTooFarApart { .. })));
        // No list has impacts of 255 for all terms, which is what the limit reckons with.
        let least = if score == ScoreModel::Bm25 { u32::MAX / 100 * 98 } else { u32::MAX / 100 };
        assert!(plan(fits).unwrap().largest_score > least);
        let collection = Collection::new("whitespace", bm25, contents.clone());
        let collection =
            collection.with_asks(vec![weighted(fits)]).with_models(vec![score, ScoreModel::RankBm25 { alpha: 0.3 }]);
        let engine = |algorithm, runs| Engine::new(algorithm, Lists::Dense, runs);
        engine(Algorithm::Scatter, Runs::Threads(1)).check(&collection, &[1, 10, 1000]);
        engine(Algorithm::Conjunction, Runs::Threads(1)).check(&collection, &[1, 10, 1000]);
        for algorithm in [Algorithm::Auto, Algorithm::TermAtATime, Algorithm::Accumulators] {
            engine(algorithm, Runs::Device).check(&collection, &[1, 10, 1000]);
        }
    }
}
