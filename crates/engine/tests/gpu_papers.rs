//! The papers' algorithms agree with sets and sorted arrays, on the simulator or, with `LANNER_REQUIRE_GPU=1`, on a
//! GPU.

mod device;

use lanner::internals::papers::batched_intersection::Batch;
use lanner::internals::papers::compaction::{DeviceList, Found, Operands, Origins, read_numbers};
use lanner::internals::papers::merge_path::Partitions;
use lanner::internals::papers::parallel_merge_find::MOST_LEVELS;
use lanner::internals::papers::selection::{Choice, MOST_KEPT, Method, Selection};
use lanner::internals::papers::{
    batched_intersection, binary_intersection, merge_path, parallel_merge_find, selection,
};
use lanner_gpu::device::{Command, Stream};
use lanner_gpu::memory::{Gpu, Memory};
use proptest::prelude::*;
use std::collections::BTreeSet;

const STREAM: Stream = Stream(0);

fn open(seed: u64) -> Gpu {
    Gpu::new(device::open(seed), 1 << 30)
}

fn upload(gpu: &Gpu, bytes: &[u8]) -> Memory {
    let memory = gpu.allocate(bytes.len()).unwrap();
    gpu.submit(STREAM, Command::Write { from: bytes, to: memory.address() }).unwrap();
    // A test may drop the memory without a launch that is waited for.
    gpu.wait(STREAM).unwrap();
    memory
}

/// A list on a device, with its skip pointers.
struct Uploaded {
    list: DeviceList,
    lasts: Memory,
    _documents: Memory,
}

impl Uploaded {
    fn new(gpu: &Gpu, documents: &[u32]) -> Uploaded {
        let bytes = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let lasts = upload(gpu, &bytes(&binary_intersection::last_documents(documents)));
        let memory = upload(gpu, &bytes(documents));
        let list = DeviceList { documents: memory.address(), length: documents.len() as u32 };
        Uploaded { list, lasts, _documents: memory }
    }
}

/// The documents that all lists contain.
fn intersection_of(lists: &[Vec<u32>]) -> Vec<u32> {
    let sets: Vec<BTreeSet<u32>> = lists.iter().map(|list| list.iter().copied().collect()).collect();
    sets[0].iter().copied().filter(|document| sets.iter().all(|set| set.contains(document))).collect()
}

/// Checks every intersection of two lists, on the device and on the CPU, against that of sets.
fn assert_intersections(gpu: &Gpu, a: &[u32], b: &[u32]) {
    let expected = intersection_of(&[a.to_vec(), b.to_vec()]);
    let what = format!("{} and {} documents", a.len(), b.len());
    let [a_there, b_there] = [a, b].map(|list| Uploaded::new(gpu, list));
    let lists = [a_there.list, b_there.list];

    let places = [(); 2].map(|()| gpu.allocate(4 * a.len()).unwrap());
    let origins = Origins { shorter: places[0].address(), longer: places[1].address() };
    let assert_found = |found: Found, how: &str| {
        assert_eq!(found.read(gpu, STREAM).unwrap(), expected, "{how}, {what}");
        for (places, list) in [(origins.shorter, a), (origins.longer, b)] {
            let places = read_numbers(gpu, STREAM, places, expected.len()).unwrap();
            let there: Vec<u32> = places.into_iter().map(|place| list[place as usize]).collect();
            assert_eq!(there, expected, "origins by {how}, {what}");
        }
    };

    for partitions in Partitions::ALL {
        let scratch = gpu.allocate(merge_path::scratch_bytes(lists, partitions)).unwrap();
        let found =
            merge_path::gpu(gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, partitions).unwrap();
        assert_found(found, &format!("merge path, {partitions:?}"));
    }

    let scratch = gpu.allocate(binary_intersection::scratch_bytes(lists[0])).unwrap();
    for lasts in [None, Some(b_there.lasts.address())] {
        let found =
            binary_intersection::gpu(gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, lasts)
                .unwrap();
        assert_found(found, &format!("binary search, {lasts:?}"));
    }
    for levels in 1..=MOST_LEVELS {
        let scratch = gpu.allocate(parallel_merge_find::scratch_bytes(lists[0], levels)).unwrap();
        let found =
            parallel_merge_find::gpu(gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, levels)
                .unwrap();
        assert_found(found, &format!("parallel merge find, {levels} levels"));
    }

    assert_eq!(merge_path::cpu(a, b), expected);
    assert_eq!(binary_intersection::cpu(a, b), expected);
    assert_eq!(binary_intersection::cpu_by_skips(a, b, &binary_intersection::last_documents(b)), expected);
}

/// Sorted documents with random gaps, one in each range of `distance`.
fn spread(count: u32, distance: u32, seed: u32) -> Vec<u32> {
    let random = |i: u32| (i ^ seed).wrapping_mul(0x9E37_79B9) >> 7;
    (0..count).map(|i| i * distance + random(i) % distance).collect()
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn lists_of_nasty_lengths_are_intersected() {
    let lengths = [0, 1, 31, 32, 33, 127, 128, 129, 896, 1023, 1025, 2432, 3840];
    for (number, &a) in lengths.iter().enumerate() {
        let gpu = open(number as u64);
        for &b in &lengths {
            assert_intersections(&gpu, &spread(a, 3, 1), &spread(b, 2, 2));
        }
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn lists_of_nasty_contents_are_intersected() {
    let gpu = open(3);
    let even: Vec<u32> = (0..5000).map(|i| 2 * i).collect();
    let odd: Vec<u32> = (0..5000).map(|i| 2 * i + 1).collect();
    let all: Vec<u32> = (0..12_000).collect();
    let highest: Vec<u32> = (0..4000).map(|i| u32::MAX - 3999 + i).collect();
    let ends = vec![0, u32::MAX - 1, u32::MAX];
    // If one list has an additional first document, partitions end between equal documents.
    let later = even[1..].to_vec();
    for (a, b) in [
        (&even, &even),
        (&even, &later),
        (&later, &even),
        (&even, &odd),
        (&even, &all),
        (&all, &even),
        (&even, &highest),
        (&highest, &even),
        (&highest, &highest),
        (&ends, &highest),
        (&highest, &ends),
        (&ends, &all),
        (&ends, &ends),
    ] {
        assert_intersections(&gpu, a, b);
    }
}

/// A damaged list may not be sorted. Its intersection is undefined, but kernels stay within their buffers, which the
/// step `sanitize` of ./check shows, and report no more matches than documents.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn lists_that_are_not_sorted_harm_nothing() {
    let gpu = open(10);
    let random = |i: u32| (i ^ 77).wrapping_mul(0x9E37_79B9) >> 20;
    let [a, b] = [5000, 9000].map(|count| (0..count).map(random).collect::<Vec<u32>>());
    for (a, b) in [(&a, &b), (&b, &a), (&a, &a)] {
        let [there, other] = [a, b].map(|list| Uploaded::new(&gpu, list));
        let lists = [there.list, other.list];
        let places = [(); 2].map(|()| gpu.allocate(4 * a.len()).unwrap());
        let origins = Origins { shorter: places[0].address(), longer: places[1].address() };
        for partitions in Partitions::ALL {
            let scratch = gpu.allocate(merge_path::scratch_bytes(lists, partitions)).unwrap();
            merge_path::gpu(&gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, partitions).unwrap();
            gpu.wait(STREAM).unwrap();
        }
        let scratch = gpu.allocate(parallel_merge_find::scratch_bytes(lists[0], 3)).unwrap();
        let found =
            parallel_merge_find::gpu(&gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, 3).unwrap();
        assert!(found.list(&gpu, STREAM).unwrap().length <= lists[0].length);
        let scratch = gpu.allocate(binary_intersection::scratch_bytes(lists[0])).unwrap();
        let found =
            binary_intersection::gpu(&gpu, STREAM, Operands { origins, ..Operands::new(lists, &scratch) }, None)
                .unwrap();
        assert!(found.list(&gpu, STREAM).unwrap().length <= lists[0].length);
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_result_is_a_list_for_the_next_intersection() {
    let gpu = open(4);
    let lists = [spread(3000, 5, 1), spread(8000, 2, 2), spread(9000, 2, 3)];
    let [a, b, c] = [0, 1, 2].map(|number: usize| Uploaded::new(&gpu, &lists[number]));
    let (both, partitions) = ([a.list, b.list], Partitions::Short);
    let scratch = gpu.allocate(merge_path::scratch_bytes(both, partitions)).unwrap();
    let found = merge_path::gpu(&gpu, STREAM, Operands::new(both, &scratch), partitions).unwrap();
    let found = found.list(&gpu, STREAM).unwrap();
    let next_scratch = gpu.allocate(binary_intersection::scratch_bytes(found)).unwrap();
    let lasts = Some(c.lasts.address());
    let found = binary_intersection::gpu(&gpu, STREAM, Operands::new([found, c.list], &next_scratch), lasts).unwrap();
    assert_eq!(found.read(&gpu, STREAM).unwrap(), intersection_of(&lists));
}

fn list() -> impl Strategy<Value = Vec<u32>> {
    let length = prop_oneof![3 => 0usize..300, 2 => 300usize..3000, 1 => 3000usize..9000];
    let range = prop_oneof![Just(1u32 << 8), Just(1 << 12), Just(1 << 14), Just(u32::MAX)];
    (length, range, any::<bool>()).prop_flat_map(|(length, range, is_high)| {
        let place = move |document: u32| if is_high { u32::MAX - document } else { document };
        prop::collection::vec((0..=range).prop_map(place), length)
            .prop_map(|documents| documents.into_iter().collect::<BTreeSet<u32>>().into_iter().collect())
    })
}

/// Checks that PART and PARA give the intersections of all queries.
fn assert_batch(gpu: &Gpu, queries: &[Vec<Vec<u32>>]) {
    let uploaded: Vec<Vec<Uploaded>> =
        queries.iter().map(|lists| lists.iter().map(|list| Uploaded::new(gpu, list)).collect()).collect();
    let there: Vec<Vec<DeviceList>> =
        uploaded.iter().map(|lists| lists.iter().map(|uploaded| uploaded.list).collect()).collect();
    let expected: Vec<Vec<u32>> = queries.iter().map(|lists| intersection_of(lists)).collect();
    let batch = Batch::new(&there);
    let scratch = gpu.allocate(batch.scratch_bytes()).unwrap();
    let found = batch.part(gpu, STREAM, &scratch).unwrap();
    assert_eq!(found.read(gpu, STREAM, &batch).unwrap(), expected, "PART");
    let found = batch.para(gpu, STREAM, &scratch).unwrap();
    assert_eq!(found.read(gpu, STREAM, &batch).unwrap(), expected, "PARA");
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn a_batch_may_have_no_query_and_queries_without_results() {
    let gpu = open(5);
    assert_batch(&gpu, &[]);
    let (none, one, some) = (vec![], vec![u32::MAX], spread(700, 3, 1));
    let queries = [
        vec![none.clone()],
        vec![some.clone(), none.clone(), some.clone()],
        vec![one.clone(), some.clone()],
        vec![some.clone()],
        vec![none],
        vec![one.clone(), one],
        vec![some.clone(), some.clone(), spread(2000, 2, 2), some],
        vec![spread(257, 2, 3), spread(256, 2, 3)],
    ];
    assert_batch(&gpu, &queries);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn every_intersection_of_two_lists_is_that_of_sets(a in list(), b in list(), seed: u64) {
        assert_intersections(&open(seed), &a, &b);
    }

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn every_intersection_of_a_batch_is_that_of_sets(
        queries in prop::collection::vec(prop::collection::vec(list(), 1..5), 1..12), seed: u64,
    ) {
        assert_batch(&open(seed), &queries);
    }
}

/// The distribution of scores.
#[derive(Clone, Copy, Debug)]
enum Scores {
    /// All the same: documents break the ties.
    Equal(u32),
    /// Uniform, with this number of bits.
    Bits(u32),
    /// Most are low, few are very high.
    Skewed,
}

impl Scores {
    /// Keys of distinct documents, unsorted.
    fn keys(self, count: u32, seed: u32) -> Vec<u64> {
        let key = |i: u32| {
            let (document, random) = (i.wrapping_mul(0x9E37_79B1) ^ seed, (i ^ seed).wrapping_mul(0x85EB_CA6B));
            let random = (random ^ random >> 15).wrapping_mul(0xC2B2_AE35);
            let score = match self {
                Scores::Equal(score) => score,
                Scores::Bits(bits) => (u64::from(random) & ((1 << bits) - 1)) as u32,
                Scores::Skewed => (random & 0xFFFF) >> (random >> 28) << if random >> 16 & 0xFFF == 0 { 16 } else { 0 },
            };
            u64::from(score) << 32 | u64::from(!document)
        };
        (0..count).map(key).collect()
    }
}

fn assert_selections(gpu: &Gpu, keys: &[u64], k: usize, methods: &[Method]) {
    let mut expected = keys.to_vec();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    expected.truncate(k);
    let mut partial = keys.to_vec();
    selection::cpu(&mut partial, k);
    assert_eq!(partial, expected);
    let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
    let there = upload(gpu, &bytes);
    for &method in methods {
        let selection = Selection { keys: there.address(), count: keys.len() as u32, k: k as u32 };
        let scratch = gpu.allocate(selection.scratch_bytes(method)).unwrap();
        let best = selection.gpu(gpu, STREAM, method, &scratch).unwrap();
        assert_eq!(best.read(gpu, STREAM).unwrap(), expected, "{method:?}, {k} of {}", keys.len());
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn few_keys_are_selected() {
    let gpu = open(6);
    for count in [0, 1, 32, 33, 64, 511, 513, 1025] {
        for k in [0, 1, 64] {
            assert_selections(&gpu, &Scores::Bits(7).keys(count, 0), k, &Method::ALL);
        }
    }
    for count in [1, 65, 513] {
        assert_selections(&gpu, &Scores::Bits(7).keys(count, 1), 2000, &Method::ALL);
    }
    // A key that is zero, and one with all bits set.
    assert_selections(&gpu, &[0, u64::MAX, 5], 3, &Method::ALL);
    assert_selections(&gpu, &[7, 0], 1, &Method::ALL);
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn many_keys_are_selected() {
    for (number, scores) in [Scores::Bits(32), Scores::Bits(12), Scores::Skewed].into_iter().enumerate() {
        let gpu = open(number as u64);
        let methods = [Method::RadixSelect, Method::BucketSelect, Method::Bitonic];
        assert_selections(&gpu, &scores.keys(50_000, number as u32), 10, &methods);
    }
    let gpu = open(9);
    // A tree of three levels.
    assert_selections(&gpu, &Scores::Bits(16).keys(270_000, 6), 40, &[Method::Tree]);
    assert_selections(&gpu, &Scores::Bits(20).keys(20_000, 7), 100, &Method::ALL);
    let methods = [Method::RadixSelect, Method::BucketSelect, Method::Bitonic];
    assert_selections(&gpu, &Scores::Bits(9).keys(40_000, 8), MOST_KEPT, &methods);
}

/// Checks the method that `auto` chooses on both sides of every threshold, with ties.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn every_choice_gives_the_same_answer() {
    let gpu = open(11);
    for (count, ks) in [(4096, [1, 2000]), (4097, [16, 17]), (16_384, [17, MOST_KEPT]), (16_385, [16, 17])] {
        for k in ks {
            let method = match selection::auto(count, k as u32) {
                Choice::Cpu => None,
                Choice::Gpu(method) => Some(method),
            };
            for scores in [Scores::Equal(7), Scores::Bits(3)] {
                assert_selections(&gpu, &scores.keys(count, 12), k, method.as_slice());
            }
        }
    }
    let chosen = selection::auto(16_385, MOST_KEPT as u32);
    assert_eq!(chosen, Choice::Gpu(Method::RadixSort));
    assert_selections(&gpu, &Scores::Bits(3).keys(16_385, 13), MOST_KEPT, &[Method::RadixSort]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    #[cfg_attr(not(simulator), ignore = "needs the simulator")]
    fn every_selection_is_the_start_of_the_sorted_keys(
        scores in prop_oneof![
            any::<u32>().prop_map(Scores::Equal), (0u32..=32).prop_map(Scores::Bits), Just(Scores::Skewed),
        ],
        count in prop_oneof![1u32..3000, 3000u32..9000],
        k in prop_oneof![1usize..20, 20usize..200],
        seed: u64,
    ) {
        assert_selections(&open(seed), &scores.keys(count, seed as u32), k, &Method::ALL);
    }
}

#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn batches_follow_the_load_of_their_queries() {
    let loads = [700, 300, 5000, 10, 10];
    let threshold = batched_intersection::Threshold { multiprocessors: 2, threads: 256, blocks: 2 };
    assert_eq!(batched_intersection::batches(&loads, threshold.documents()), [0..3, 3..5]);
}
