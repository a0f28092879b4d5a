//! Random collections with a small vocabulary, so that lists overlap, and random questions about them.

use crate::collection::{Ask, Collection, Content, Lists};
use crate::engine::{Engine, Runs};
use crate::requirements::test;
use crate::table::Agreement;
use lanner::{Algorithm, DocId, DocumentSet};
use lanner_index::codec::CodecName;
use lanner_index::weight::Bm25;
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::OnceLock;

const KS: [usize; 5] = [0, 1, 3, 10, 1000];

/// A word of the vocabulary: the first ones are frequent.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![3 => 0u32..3, 2 => 0u32..8, 1 => 0u32..40].prop_map(|number| format!("w{number}"))
}

/// A few documents, or enough for lists of several blocks.
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
    // Integers up to 255 are stored as they are, other weights are scaled.
    let weights = prop_oneof![Just(1.0f32), Just(0.37f32)];
    (weights, documents()).prop_flat_map(|(unit, count)| {
        let weight = (1u32..256).prop_map(move |number| number as f32 * unit);
        let vector = prop::collection::btree_map(word(), weight, 1..10);
        prop::collection::vec(vector.prop_map(|vector| Content::Vector(vector.into_iter().collect())), count)
    })
}

/// Words that may repeat, may be unknown and may have weights; sometimes with a filter.
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

/// The first values of a strategy: the same ones each time.
pub fn sample<T: std::fmt::Debug>(count: usize, strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// The first `count` collections of texts.
fn of_texts(count: usize) -> &'static [Collection] {
    static TEXTS: OnceLock<Vec<Collection>> = OnceLock::new();
    &TEXTS.get_or_init(|| sample(24, collection(texts())))[..count]
}

/// The first `count` collections of vectors.
fn of_vectors(count: usize) -> &'static [Collection] {
    static VECTORS: OnceLock<Vec<Collection>> = OnceLock::new();
    &VECTORS.get_or_init(|| sample(8, collection(vectors())))[..count]
}

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![test(all_lanes_agree_on_random_texts_and_vectors)];
    trials.extend(Agreement::new(random_texts).trials());
    trials.extend(Agreement::new(random_vectors).trials());
    trials.extend(Agreement::new(random_orders).trials());
    trials.extend(Agreement::new(random_texts_as_single_queries).trials());
    trials.extend(Agreement::new(random_parts).trials());
    trials.extend(Agreement::new(random_shards).only(Engine::answers_shards).trials());
    trials
}

fn random_texts(engine: &Engine) {
    of_texts(24).iter().for_each(|collection| engine.check(collection, &KS));
}

fn random_vectors(engine: &Engine) {
    of_vectors(8).iter().for_each(|collection| engine.check(collection, &KS));
}

fn all_lanes_agree_on_random_texts_and_vectors() {
    let codecs = [CodecName::Bitpack, CodecName::Rice, CodecName::Raw];
    for lists in codecs.map(Lists::Sparse).into_iter().chain([Lists::Dense]) {
        for algorithm in [Algorithm::Auto, Algorithm::Conjunction, Algorithm::Scatter] {
            let engine = Engine::new(algorithm, lists, Runs::Threads(1));
            of_texts(8).iter().chain(of_vectors(4)).for_each(|collection| engine.check_lanes(collection, &KS));
        }
    }
}

fn random_orders(engine: &Engine) {
    of_texts(8).iter().chain(of_vectors(4)).for_each(|collection| engine.check_order(collection, &KS));
}

fn random_texts_as_single_queries(engine: &Engine) {
    of_texts(6).iter().for_each(|collection| engine.check_split(collection, &KS));
}

fn random_parts(engine: &Engine) {
    static PARTS: OnceLock<Vec<(Collection, Vec<u32>)>> = OnceLock::new();
    let cuts = prop::collection::vec(0u32..700, 0..4);
    for (collection, cuts) in PARTS.get_or_init(|| sample(8, (collection(texts()), cuts))) {
        engine.check_parts(collection, &KS, cuts);
    }
}

fn random_shards(engine: &Engine) {
    static SHARDS: OnceLock<Vec<(Collection, prop::sample::Index)>> = OnceLock::new();
    let cut = any::<prop::sample::Index>();
    for (collection, cut) in SHARDS.get_or_init(|| sample(8, (collection(texts()), cut))) {
        engine.check_shards(collection, &KS, cut.index(collection.contents.len()));
    }
}
