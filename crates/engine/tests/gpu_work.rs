//! A device reports the work done for an answer, as the CPU does.

mod device;

use lanner::internals::executors::Executor;
use lanner::internals::query::planner::Planner;
use lanner::{Algorithm, Engine, GpuOptions, Index, Mode, Plan, Query};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::list::{SHARED_HEADER_BYTES, UNIT};
use lanner_index::open::ListSpan;
use std::sync::Arc;
use tempfile::TempDir;

const DOCUMENTS: usize = 3000;

/// An index with falcons in every 5th document (5 blocks), herons in every 50th (one block), and one egret in document
/// 10.
fn index() -> (TempDir, Arc<Index>) {
    index_with(CodecName::Bitpack)
}

fn index_with(codec: CodecName) -> (TempDir, Arc<Index>) {
    let text = |document: usize| {
        let mut text = "bird".to_owned();
        [("falcon", 5), ("heron", 50)].iter().filter(|(_, every)| document.is_multiple_of(*every)).for_each(
            |(word, _)| {
                text += " ";
                text += word;
            },
        );
        if document == 10 { text + " egret" } else { text }
    };
    let folder = tempfile::tempdir().unwrap();
    let documents = (0..DOCUMENTS).map(|document| (document.to_string(), String::new(), text(document)));
    let corpus = Corpus::from_documents(documents.collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
    let codecs = Codecs { documents: codec, weights: codec };
    let options = BuildOptions { threads: 1, dense: false, codecs, ..BuildOptions::default() };
    build(folder.path(), corpus, &options, &Quiet).unwrap();
    let index = Arc::new(Index::open(folder.path()).unwrap());
    (folder, index)
}

fn engine(index: &Arc<Index>, usage: fn(GpuOptions) -> GpuOptions) -> Engine {
    Engine::new(Arc::clone(index)).gpu(usage(GpuOptions::new(Box::new(|| Ok(device::open(1))))))
}

/// Hits, postings and blocks decoded, blocks skipped, documents scored: the same in a batch of two and as a single
/// query.
fn work_of(index: &Arc<Index>, plan: &Plan) -> [u64; 5] {
    let gpu = engine(index, |options| options);
    let both = gpu.run(&[plan.clone(), plan.clone()]).unwrap();
    let single = gpu.run(std::slice::from_ref(plan)).unwrap();
    let works = both.iter().chain(&single).map(|answer| {
        let work = answer.work;
        let hits = answer.hits.len() as u64;
        assert!(work.bytes_uploaded > 0);
        [hits, work.postings_decoded, work.blocks_decoded, work.blocks_skipped, work.documents_scored]
    });
    let works: Vec<_> = works.collect();
    assert_eq!([works[0], works[1]], [works[2]; 2]);
    assert_eq!(gpu.counters().unwrap().answered.load(std::sync::atomic::Ordering::Relaxed), 3);
    works[0]
}

fn plan(index: &Index, words: &str, mode: Mode) -> Plan {
    Planner::new(index).plan(&Query::new(words).mode(mode).k(DOCUMENTS)).unwrap()
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn every_posting_of_an_or_with_k_for_all_hits_is_decoded_once() {
    let (_folder, index) = index();
    assert_eq!(work_of(&index, &plan(&index, "falcon heron", Mode::Or)), [600, 660, 6, 0, 600]);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_and_decodes_the_blocks_that_it_needs() {
    let (_folder, index) = index();
    // Two warps share the block of herons, 32 and 28 of them, and each needs three blocks of falcons: both decode the
    // block of herons, and both decode the third block of falcons.
    assert_eq!(work_of(&index, &plan(&index, "falcon heron", Mode::And)), [60, 2 * 60 + 5 * 128 + 88, 8, 0, 60]);
    assert_eq!(work_of(&index, &plan(&index, "falcon egret", Mode::And)), [1, 129, 2, 4, 1]);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_or_after_an_and_adds_to_its_work() {
    let (_folder, index) = index();
    let (and, or) = ([1, 129, 2, 4, 1], [600, 601, 6, 0, 600]);
    let both = work_of(&index, &plan(&index, "falcon egret", Mode::AndOr));
    assert_eq!(both, [600, and[1] + or[1], and[2] + or[2], and[3] + or[3], and[4] + or[4]]);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn of_a_part_of_a_plan_only_its_blocks_count() {
    let (_folder, index) = index();
    // Blocks of falcons end with documents 635, 1275, 1915, 2555 and 2995.
    let part = plan(&index, "falcon heron", Mode::Or).over(700..1200);
    assert_eq!(work_of(&index, &part), [100, 128 + 60, 2, 0, 100]);
}

/// Bytes uploaded for an AND by one of the papers' algorithms when no list is resident, and the number of hits.
fn uploaded_for(index: &Arc<Index>, words: &str, algorithm: Algorithm) -> (u64, usize) {
    let gpu = engine(index, GpuOptions::upload_lists);
    let query = Query::new(words).mode(Mode::And).k(DOCUMENTS).algorithm(algorithm);
    let answer = gpu.run(&[Planner::new(index).plan(&query).unwrap()]).unwrap().remove(0);
    assert_eq!(gpu.counters().unwrap().answered.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert!(answer.trace.steps.iter().any(|step| step.name == "upload"));
    (answer.work.bytes_uploaded, answer.hits.len())
}

/// The span of the list of a word.
fn span_of(index: &Index, word: &str) -> ListSpan {
    index.find_terms([word.as_bytes()]).unwrap()[0].unwrap().1
}

/// Bytes of the lists of some words.
fn bytes_of(index: &Index, words: &[&str]) -> u64 {
    words.iter().map(|word| span_of(index, word)).map(|span| (span.end - span.start) as u64).sum()
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn of_a_list_that_is_searched_only_the_directory_and_the_blocks_hit_are_uploaded() {
    for codec in [CodecName::Bitpack, CodecName::Pfor, CodecName::EliasFano] {
        let (_folder, index) = index_with(codec);
        let falcons = index.list_at(span_of(&index, "falcon")).unwrap();
        // The header with the lengths of the shared parts is not uploaded.
        let row = if codec == CodecName::Pfor { SHARED_HEADER_BYTES } else { 0 };
        let directory = falcons.directory_bytes().unwrap() - row + falcons.shared_bytes().iter().sum::<usize>();
        // A table of up to four blocks takes one unit.
        let blocks = UNIT + falcons.block_bytes(0).len();
        let uploaded = bytes_of(&index, &["egret"]) + (directory + blocks) as u64;
        // The list of falcons is more than 128 times as long, so it is searched.
        for algorithm in [Algorithm::SkipSearch, Algorithm::TermAtATime] {
            assert_eq!(uploaded_for(&index, "falcon egret", algorithm), (uploaded, 1), "{codec:?}");
        }
        assert!(uploaded < bytes_of(&index, &["falcon"]), "{codec:?}");
        let whole = bytes_of(&index, &["egret", "falcon"]);
        assert_eq!(uploaded_for(&index, "falcon egret", Algorithm::MergePath), (whole, 1), "{codec:?}");
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn an_and_that_is_empty_uploads_no_further_lists() {
    let (_folder, index) = index();
    let uploaded = bytes_of(&index, &["egret", "heron"]);
    assert_eq!(uploaded_for(&index, "falcon heron egret", Algorithm::MergePath), (uploaded, 0));
}
