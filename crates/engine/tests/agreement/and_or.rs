//! AND+OR: an OR that follows an AND keeps its hits, and ties with them are broken as always.

use crate::collection::{Ask, Collection, Content, Lists};
use crate::engine::Engine;
use crate::random::sample;
use crate::requirements::test;
use crate::table::Agreement;
use lanner::internals::executors::{Cpu, Executor};
use lanner::internals::query::answer::Scored;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Answer, DocId, DocumentSet, Mode, ScoreModel};
use lanner_index::codec::CodecName;
use lanner_index::weight::Bm25;
use libtest_mimic::Trial;
use proptest::prelude::*;
use std::sync::OnceLock;

/// Documents with a frequent term and two rare ones, all with weights 1, 2 or 3: an AND has few hits, and many
/// documents with some of the terms tie with documents that have all of them.
fn tied() -> impl Strategy<Value = Collection> {
    let term = |name: &'static str, likely: f64| {
        let weight = prop_oneof![Just(1.0f32), Just(2.0), Just(3.0)];
        prop::option::weighted(likely, weight.prop_map(move |weight| (name.to_owned(), weight)))
    };
    let document = (term("frequent", 0.7), term("rare", 0.06), term("scarce", 0.3)).prop_map(|(a, b, c)| {
        let filler = ("filler".to_owned(), 255.0);
        Content::Vector([a, b, c, Some(filler)].into_iter().flatten().collect())
    });
    let filter = prop::collection::vec(0u32..500, 200..400);
    let count = prop_oneof![1usize..60, 300usize..500];
    (count.prop_flat_map(move |count| prop::collection::vec(document.clone(), count)), filter)
        .prop_map(|(contents, filter)| {
            let texts = ["frequent rare", "rare scarce", "frequent rare scarce", "scarce frequent unknown"];
            let mut asks: Vec<Ask> = texts.into_iter().map(Ask::plain).collect();
            asks.push(Ask::plain("frequent rare").filtered(filter.into_iter().map(DocId).collect::<DocumentSet>()));
            Collection::new("whitespace", Bm25 { k1: 0.9, b: 0.0 }, contents).with_asks(asks)
        })
        .no_shrink()
}

pub fn trials() -> Vec<Trial> {
    let mut trials =
        vec![test(the_documents_of_an_and_are_not_scored_again_by_the_or), test(an_and_with_k_hits_is_all_there_is)];
    let is_and_or = |engine: &Engine| engine.modes().contains(&Mode::AndOr);
    trials.extend(Agreement::new(an_or_after_an_and_with_ties).only(is_and_or).trials());
    trials
}

fn an_or_after_an_and_with_ties(engine: &Engine) {
    static TIED: OnceLock<Vec<Collection>> = OnceLock::new();
    let collections = TIED.get_or_init(|| sample(16, tied()));
    for collection in &collections[..if engine.is_slow() { 4 } else { 16 }] {
        engine.check(collection, &[1, 2, 3, 5, 8, 13, 21, 34, 55, 1000]);
    }
}

const ORS: [Algorithm; 5] =
    [Algorithm::Auto, Algorithm::Scatter, Algorithm::Maxscore, Algorithm::BlockMaxMaxscore, Algorithm::Exhaustive];

/// Documents 0, 7, 14, ... contain `seventh`, documents 0, 50, 100, ... `fiftieth`, and 0, 350, 700, ... both.
fn known() -> Collection {
    let contents = (0..3000u32).map(|document| {
        let words = [("seventh", 7), ("fiftieth", 50), ("filler", 1)];
        let words = words.into_iter().filter(|(_, every)| document.is_multiple_of(*every));
        Content::words(&words.map(|(word, _)| word).collect::<Vec<_>>())
    });
    Collection::new("whitespace", Bm25::default(), contents.collect()).with_asks(vec![Ask::plain("seventh fiftieth")])
}

fn answer(collection: &Collection, lists: Lists, algorithm: Algorithm, mode: Mode, k: usize) -> Answer<Scored> {
    let index = collection.index(lists);
    let query = collection.asks[0].query().mode(mode).k(k).algorithm(algorithm).score(ScoreModel::Bm25);
    let plan = Planner::new(&index).plan(&query).unwrap();
    Cpu::new(index, 1).run(&[plan]).unwrap().remove(0)
}

fn the_documents_of_an_and_are_not_scored_again_by_the_or() {
    let collection = known();
    let common = 3000u64.div_ceil(350);
    let all = 3000u64.div_ceil(7) + 3000 / 50 - common;
    for lists in [Lists::Dense, Lists::Sparse(CodecName::Bitpack)] {
        for algorithm in ORS {
            // k is larger than the number of hits, so that every document is scored.
            let both = answer(&collection, lists, algorithm, Mode::AndOr, 2000);
            assert_eq!(both.hits, collection.expected(0, Mode::AndOr, 2000, ScoreModel::Bm25));
            assert_eq!((both.hits.len() as u64, both.trace.steps.len()), (all, 2));
            assert_eq!(both.work.documents_scored, all, "{algorithm}, {lists:?}: each document once");
            let or = answer(&collection, lists, algorithm, Mode::Or, 2000);
            assert_eq!(or.work.documents_scored, all, "{algorithm}, {lists:?}");
        }
    }
}

fn an_and_with_k_hits_is_all_there_is() {
    let collection = known();
    for algorithm in ORS {
        let answer = answer(&collection, Lists::Dense, algorithm, Mode::AndOr, 9);
        assert_eq!((answer.hits.len(), answer.trace.steps.len()), (9, 1), "{algorithm}");
        assert_eq!(answer.hits, collection.expected(0, Mode::And, 9, ScoreModel::Bm25));
    }
}
