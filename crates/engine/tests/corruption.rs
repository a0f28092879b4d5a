//! Queries over damaged lists give an answer or an error, never a panic; and the right answer if verification finds no
//! damage.

use lanner::GpuOptions;
use lanner::{Algorithm, Hit, Index, Mode, Policy, Query, ScoreModel, Searcher};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::codec::{CodecName, Codecs};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::manifest::Manifest;
use lanner_index::format::segment::{CHECKSUM, CHUNK_BYTES, Header, Section, chunk_checksum};
use lanner_index::open::Verify;
use lanner_index::text::Analyzer;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

const MANIFEST: &str = "manifest-00000001";
const SEGMENT: &str = "segment-00000001";

/// The text of a document of the collection.
fn text_of(number: u32) -> String {
    let mut text = "all ".repeat(1 + number as usize % 3);
    for (word, every, times) in [("half", 2, 1), ("most", 1, 2), ("rare", 20, 1)] {
        if number.is_multiple_of(every) && number % 7 != 3 {
            text += &format!("{word} ").repeat(times + number as usize % 50 / 47 * 30);
        }
    }
    text
}

/// Lists of all and of some documents, long and short, with frequencies of more than four bits. With a codec all lists
/// are in blocks; without one, long lists are dense.
fn build_small(folder: &Path, codec: Option<CodecName>) {
    let text = |number: u32| (number.to_string(), String::new(), text_of(number));
    let options = CorpusOptions { store: Some(Vec::new()), ..CorpusOptions::default() };
    let corpus = Corpus::from_documents((0..310).map(text).collect::<Vec<_>>(), options).unwrap();
    let analyzer = Analyzer::parse("whitespace").unwrap();
    let codecs = codec.map_or_else(Codecs::default, |codec| Codecs { documents: codec, weights: codec });
    let (dense, threads, impacts, impact_ordered) = (codec.is_none(), 1, true, true);
    let options = BuildOptions { analyzer, threads, impacts, impact_ordered, dense, codecs, ..BuildOptions::default() };
    build(folder, corpus, &options, &Quiet).unwrap();
}

const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::Exhaustive,
    Algorithm::Auto,
    Algorithm::Scatter,
    Algorithm::Conjunction,
    Algorithm::Maxscore,
    Algorithm::BlockMaxMaxscore,
    Algorithm::ScoreAtATime,
];

/// The hits of the algorithms in every mode and score model, grouped by query: those of a group must be equal.
fn search_all(searcher: &Searcher, algorithms: &[Algorithm]) -> Vec<Vec<Vec<Hit>>> {
    let mut all = Vec::new();
    for text in ["all half most", "rare all", "half"] {
        for mode in [Mode::And, Mode::Or, Mode::AndOr] {
            for score in [ScoreModel::Bm25, ScoreModel::Impact] {
                let query = Query::new(text).mode(mode).score(score).k(12);
                let answers = algorithms.iter().map(|&algorithm| searcher.search(&query.clone().algorithm(algorithm)));
                all.push(answers.flatten().map(|answer| answer.hits).collect());
            }
        }
    }
    all
}

/// Corrects the checksums after a change to a section.
fn mend(folder: &Path, segment: &mut [u8], section: Section) {
    let path = folder.join(SEGMENT);
    let mut header = Header::decode(&path, segment, segment.len() as u64).unwrap();
    let start = header.entry(Section::Checksums).unwrap().offset as usize;
    for chunk in 0..start.div_ceil(CHUNK_BYTES) {
        let checksum = chunk_checksum(segment, start, chunk).to_le_bytes();
        segment[start + 4 * chunk..][..4].copy_from_slice(&checksum);
    }
    for entry in
        header.table.iter_mut().filter(|entry| [section as u32, Section::Checksums as u32].contains(&entry.tag))
    {
        entry.checksum = crc32fast::hash(&segment[entry.offset as usize..(entry.offset + entry.length) as usize]);
    }
    let encoded = header.encode();
    segment[..encoded.len()].copy_from_slice(&encoded);
    let manifest_path = folder.join(MANIFEST);
    let mut manifest = Manifest::decode(&manifest_path, &fs::read(&manifest_path).unwrap()).unwrap();
    manifest.segments[0].checksum = u32::from_le_bytes(encoded[CHECKSUM].try_into().unwrap());
    fs::write(&manifest_path, manifest.encode()).unwrap();
}

fn check_section(section: Section, codec: Option<CodecName>) {
    check_each(section, codec, 1, &|index| search_all(&Searcher::new(index), &ALGORITHMS));
}

/// Searches an index in several ways, grouped by query: the hits of a group must be equal.
type Search<'a> = &'a dyn Fn(Arc<Index>) -> Vec<Vec<Vec<Hit>>>;

/// Damages every `step`th byte of a section in turn, and searches.
fn check_each(section: Section, codec: Option<CodecName>, step: usize, search: Search<'_>) {
    let folder = tempfile::tempdir().unwrap();
    build_small(folder.path(), codec);
    let path = folder.path().join(SEGMENT);
    let whole = fs::read(&path).unwrap();
    let header = Header::decode(&path, &whole, whole.len() as u64).unwrap();
    let entry = header.entry(section).unwrap();
    let mut verified = 0;
    for at in (entry.offset as usize..(entry.offset + entry.length) as usize).step_by(step) {
        let mut bytes = whole.clone();
        bytes[at] ^= if at % 9 == 8 { 0xFF } else { 1 << (at % 9) };
        mend(folder.path(), &mut bytes, section);
        // A reader may have the old file mapped, so a new file replaces it.
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        let Ok(index) = Index::open(folder.path()) else {
            continue;
        };
        let is_sound = index.verify().is_ok();
        for answers in search(Arc::new(index)) {
            let same = answers.iter().all(|hits| *hits == answers[0]);
            assert!(same || !is_sound, "{section:?}, byte {at}: verified, and algorithms differ");
        }
        verified += u32::from(is_sound);
    }
    println!("{section:?}: {} bytes, {verified} changes left it sound", entry.length);
}

#[test]
fn searching_damaged_dense_lists_does_not_panic() {
    check_section(Section::LongLists, None);
}

#[test]
fn searching_damaged_lists_in_blocks_does_not_panic() {
    check_section(Section::LongLists, Some(CodecName::Bitpack));
}

#[test]
fn searching_damaged_short_lists_does_not_panic() {
    check_section(Section::ShortLists, None);
}

#[test]
fn searching_damaged_impact_ordered_lists_does_not_panic() {
    check_section(Section::ImpactLists, None);
}

/// Searches on a device, which must not fail.
fn search_all_on(index: Arc<Index>, options: GpuOptions, algorithms: &[Algorithm]) -> Vec<Vec<Vec<Hit>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let report = Box::new(move |line: &str| told.lock().unwrap().push(line.to_owned()));
    let hits = search_all(&Searcher::new(index).gpu(options.report(report)).policy(Policy::Gpu), algorithms);
    assert_eq!(*lines.lock().unwrap(), [""; 0]);
    hits
}

/// Steps on a device stay within their buffers too, which the step `sanitize` of ./check shows.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn searching_damaged_lists_step_by_step_on_a_device_does_not_fail() {
    const STEPS: [Algorithm; 6] = [
        Algorithm::Exhaustive,
        Algorithm::TermAtATime,
        Algorithm::MergePath,
        Algorithm::SkipSearch,
        Algorithm::ParallelMergeFind,
        Algorithm::Accumulators,
    ];
    let search = |index: Arc<Index>| search_all_on(index, GpuOptions::simulator().unwrap(), &STEPS);
    let bitpack = Some(CodecName::Bitpack);
    for (section, codec, step) in
        [(Section::LongLists, bitpack, 29), (Section::LongLists, None, 37), (Section::ShortLists, bitpack, 5)]
    {
        check_each(section, codec, step, &search);
    }
}

/// The same with only the blocks uploaded that a search hits.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn uploading_damaged_lists_block_by_block_does_not_fail() {
    let search = |index: Arc<Index>| {
        let options = GpuOptions::simulator().unwrap().upload_lists();
        search_all_on(index, options, &[Algorithm::Exhaustive, Algorithm::SkipSearch])
    };
    for (codec, step) in [(CodecName::Bitpack, 19), (CodecName::Pfor, 23)] {
        check_each(Section::LongLists, Some(codec), step, &search);
    }
}

/// The answers of a searcher with ids and stored fields; `None` for an error.
fn answers(searcher: &Searcher, texts: &[&str]) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for text in texts {
        for (mode, score) in [
            (Mode::Or, ScoreModel::Bm25),
            (Mode::And, ScoreModel::Bm25),
            (Mode::Or, ScoreModel::RankBm25 { alpha: 0.3 }),
        ] {
            let query = Query::new(*text).mode(mode).score(score).k(12);
            all.push(searcher.search(&query).ok().and_then(|answer| {
                let ids = searcher.ids(&answer.hits).ok()?;
                let stored = answer.hits.iter().map(|hit| searcher.index().stored(hit.document).ok());
                let stored = stored.collect::<Option<Vec<_>>>()?;
                Some(format!("{:?} {:?} {stored:?}", answer.hits, ids.iter().collect::<Vec<_>>()))
            }));
        }
    }
    all
}

/// Where a section says something of a document, in the sections in which that is easily found.
fn place_of(segment: &[u8], header: &Header, section: Section, document: u32) -> Option<usize> {
    match section {
        Section::LengthCodes => Some(document as usize),
        // The exponent.
        Section::Ranks => Some(4 * document as usize + 3),
        Section::Ids => {
            let row = header.entry(Section::IdGroups)?.offset as usize + 8 * (document as usize / 8);
            let group = u64::from_le_bytes(segment[row..row + 8].try_into().ok()?) as usize;
            // After the length of the prefix that the eight ids share.
            Some(group + 1)
        }
        _ => None,
    }
}

/// Flips bits of some sections, spread over each and of the hits of the first text: answers are right, or there are none. Without checks some are wrong, in
/// each of the sections `decisive`, which have chunks in which nothing else lies.
fn flip_bits(
    sections: &[Section],
    decisive: &[Section],
    flips: u64,
    texts: &[&str],
    searcher: &dyn Fn(Index) -> Searcher,
) {
    let folder = tempfile::tempdir().unwrap();
    let documents = 60_000;
    let ranks = folder.path().join("ranks");
    fs::write(&ranks, (0..documents).map(|number| format!("{number}\t{}\n", number % 997)).collect::<String>())
        .unwrap();
    let text = |number: u32| (number.to_string(), format!("Title {number}"), text_of(number));
    let corpus =
        Corpus::from_documents((0..documents).map(text).collect::<Vec<_>>(), CorpusOptions::default()).unwrap();
    let analyzer = Analyzer::parse("whitespace").unwrap();
    let options = BuildOptions { analyzer, threads: 1, dense: false, ranks: Some(ranks), ..BuildOptions::default() };
    let at = folder.path().join("index");
    build(&at, corpus, &options, &Quiet).unwrap();
    let path = at.join(SEGMENT);
    let whole = fs::read(&path).unwrap();
    let header = Header::decode(&path, &whole, whole.len() as u64).unwrap();
    let sound = answers(&searcher(Index::open(&at).unwrap()), texts);
    assert!(sound.iter().all(Option::is_some));
    let query = Query::new(texts[0]).score(ScoreModel::RankBm25 { alpha: 0.3 }).k(12);
    let hits = Searcher::open(&at).unwrap().search(&query).unwrap().hits;
    for &section in sections {
        let entry = header.entry(section).unwrap();
        let start = entry.offset as usize;
        let spread = (0..flips).map(|flip| start + (entry.length * (2 * flip + 1) / (2 * flips)) as usize);
        let of_hits = hits.iter().filter_map(|hit| Some(start + place_of(&whole, &header, section, hit.document.0)?));
        let mut silent_without = 0;
        for byte in spread.chain(of_hits) {
            let mut bytes = whole.clone();
            bytes[byte] ^= 4;
            // A reader may have the old file mapped, so a new file replaces it.
            fs::remove_file(&path).unwrap();
            fs::write(&path, &bytes).unwrap();
            let wrong = |verify| {
                let answers = Index::open_with(&at, verify).map(|index| answers(&searcher(index), texts));
                let answers = answers.unwrap_or_default();
                answers.iter().zip(&sound).filter(|(answer, sound)| answer.is_some() && answer != sound).count()
            };
            assert_eq!(wrong(Verify::Lazy), 0, "{section:?}, byte {byte}");
            silent_without += wrong(Verify::Off);
        }
        assert!(silent_without > 0 || !decisive.contains(&section), "{section:?}");
    }
}

const DECISIVE: [Section; 4] = [Section::LongLists, Section::LengthCodes, Section::Ranks, Section::Ids];

#[test]
fn no_flipped_bit_changes_an_answer() {
    let others = [Section::Terms, Section::Lexicon, Section::IdGroups, Section::StoredBlocks, Section::Stored];
    let sections = [&DECISIVE[..], &others, &[Section::ShortLists, Section::Checksums]].concat();
    let texts = ["all half most", "rare all", "half", "17 all"];
    flip_bits(&sections, &DECISIVE, 40, &texts, &|index| Searcher::new(Arc::new(index)));
}

/// A plan has checked its lists before kernels read them.
#[test]
#[cfg_attr(not(simulator), ignore = "needs the simulator")]
fn no_flipped_bit_changes_an_answer_of_a_device() {
    let on_device = |index| Searcher::new(Arc::new(index)).gpu(GpuOptions::simulator().unwrap()).policy(Policy::Gpu);
    flip_bits(&DECISIVE, &DECISIVE, 40, &["all half", "rare"], &on_device);
}
