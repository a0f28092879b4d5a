//! Random collections of few words, so that lists collide, and random questions about them.

use crate::collection::{Ask, Collection, Content, Lists};
use crate::engine::{Engine, Runs};
use lanner::{Algorithm, DocId, DocumentSet};
use lanner_index::codec::CodecName;
use lanner_index::weight::Bm25;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const KS: [usize; 5] = [0, 1, 3, 10, 1000];

/// A word of the vocabulary: the first ones are frequent.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![3 => 0u32..3, 2 => 0u32..8, 1 => 0u32..40].prop_map(|number| format!("w{number}"))
}

/// Few documents, or enough for lists of several blocks.
fn documents() -> impl Strategy<Value = usize> {
    prop_oneof![1usize..40, 150usize..700]
}

fn text() -> impl Strategy<Value = Content> {
    prop::collection::vec(word(), 0..12).prop_map(|words| Content::words(&words))
}

fn texts() -> impl Strategy<Value = Vec<Content>> {
    documents().prop_flat_map(|count| prop::collection::vec(text(), count))
}

fn vectors() -> impl Strategy<Value = Vec<Content>> {
    // Whole numbers up to 255 are stored as they are, others are scaled.
    let weights = prop_oneof![Just(1.0f32), Just(0.37f32)];
    (weights, documents()).prop_flat_map(|(unit, count)| {
        let weight = (1u32..256).prop_map(move |number| number as f32 * unit);
        let vector = prop::collection::btree_map(word(), weight, 1..10);
        prop::collection::vec(vector.prop_map(|vector| Content::Vector(vector.into_iter().collect())), count)
    })
}

/// Words that may repeat, may be unknown and may be weighted; and perhaps a filter.
fn ask() -> impl Strategy<Value = Ask> {
    let weight = prop_oneof![3 => Just(1.0), 1 => (1u32..40).prop_map(|quarters| f64::from(quarters) / 4.0)];
    let filter = prop::option::weighted(0.3, prop::collection::vec(0u32..700, 0..300));
    (prop::collection::vec((word(), weight), 0..6), filter).prop_map(|(words, filter)| {
        let ask = Ask::weighted(words);
        match filter {
            Some(documents) => ask.filtered(documents.into_iter().map(DocId).collect::<DocumentSet>()),
            None => ask,
        }
    })
}

fn bm25() -> impl Strategy<Value = Bm25> {
    prop_oneof![Just(Bm25::default()), Just(Bm25 { k1: 1.2, b: 0.75 }), Just(Bm25 { k1: 0.0, b: 0.0 })]
}

fn collection(contents: impl Strategy<Value = Vec<Content>>) -> impl Strategy<Value = Collection> {
    (contents, bm25(), prop::collection::vec(ask(), 1..6))
        .prop_map(|(contents, bm25, asks)| Collection::new("whitespace", bm25, contents).with_asks(asks))
        .no_shrink()
}

/// Runs a test on several collections, the same ones each time.
pub fn for_each<T: std::fmt::Debug>(cases: u32, strategy: impl Strategy<Value = T>, test: impl Fn(T)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    )
    .run(&strategy, |value| {
        test(value);
        Ok(())
    });
    outcome.unwrap();
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection").field("contents", &self.contents).field("asks", &self.asks).finish()
    }
}

agreement!(random_texts, |engine: Engine| {
    for_each(24, collection(texts()), |collection| engine.check(&collection, &KS));
});

agreement!(random_vectors, |engine: Engine| {
    for_each(8, collection(vectors()), |collection| engine.check(&collection, &KS));
});

#[test]
fn all_lanes_agree_on_random_texts_and_vectors() {
    let codecs = [CodecName::Bitpack, CodecName::Rice, CodecName::Raw];
    for lists in codecs.map(Lists::Sparse).into_iter().chain([Lists::Dense]) {
        for algorithm in [Algorithm::Auto, Algorithm::Conjunction, Algorithm::Scatter] {
            let engine = Engine { algorithm, lists, runs: Runs::Threads(1) };
            for_each(8, collection(texts()), |collection| engine.check_lanes(&collection, &KS));
            for_each(4, collection(vectors()), |collection| engine.check_lanes(&collection, &KS));
        }
    }
}

agreement!(random_orders, |engine: Engine| {
    for_each(8, collection(texts()), |collection| engine.check_order(&collection, &KS));
    for_each(4, collection(vectors()), |collection| engine.check_order(&collection, &KS));
});

agreement!(random_texts_alone, |engine: Engine| {
    for_each(6, collection(texts()), |collection| engine.check_split(&collection, &KS));
});

agreement!(random_parts, |engine: Engine| {
    let cuts = prop::collection::vec(0u32..700, 0..4);
    for_each(8, (collection(texts()), cuts), |(collection, cuts)| engine.check_parts(&collection, &KS, &cuts));
});

agreement!(random_shards, |engine: Engine| {
    let cut = any::<prop::sample::Index>();
    for_each(8, (collection(texts()), cut), |(collection, cut)| {
        engine.check_shards(&collection, &KS, cut.index(collection.contents.len()));
    });
});
