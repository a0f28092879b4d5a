//! Flips a bit of every byte of a small index and tries every truncation: each gives an error that names file and
//! section.

mod support;

use lanner_index::build::BuildOptions;
use lanner_index::codec::{BLOCK, CodecName, Codecs, qmx};
use lanner_index::format::IndexError;
use lanner_index::format::dense::{DENSE_MARK, DenseLayout, EXCEPTIONS_AT, MARK_AT};
use lanner_index::format::list::LONG_HEADER_BYTES;
use lanner_index::format::manifest::{Impacts, Manifest};
use lanner_index::format::segment::{CHECKSUM, Entry, Header, Section, chunk_checksum};
use lanner_index::open::{Column, Index, List, ListContext, Verify};
use lanner_index::{DocId, TermId};
use std::fs;
use std::ops::Range;
use std::path::Path;
use support::{Row, build_index, documents, options};

/// Reads everything through the calls that queries use; errors are fine, panics are not.
fn use_all(index: &Index) {
    let (mut documents, mut weights) = ([0; BLOCK], [0; BLOCK]);
    for term in 0..index.segment().header().terms.min(300) {
        let Ok(list) = index.list(TermId(term)) else {
            continue;
        };
        for block in 0..list.blocks().min(50) {
            list.decode_documents(block, &mut documents);
            for column in [Column::Frequency, Column::Impact] {
                list.decode_values(column, block, &mut weights);
            }
            list.block_bytes(block);
            list.saturation_bound(block..block + 1);
            list.impact_bound(block);
            list.find_block(block, documents[0]);
        }
        for window in 0..list.windows().min(10) {
            list.first_block(window);
            list.window_saturation_bound(window);
            list.window_impact_bound(window);
        }
        if let Some(dense) = list.dense() {
            for document in 0..200 {
                let rank = dense.find(document).unwrap_or(document);
                let _ = dense.value(Column::Frequency, rank);
            }
        }
        if let Ok(Some(ordered)) = index.impact_ordered(TermId(term)) {
            for segment in ordered.segments() {
                qmx::decode(segment.documents, 0, &mut vec![0; segment.postings as usize]);
            }
        }
        list.largest(index.norms(), index.length_codes());
        list.largest_impacts();
    }
    for word in ["w0", "w5", "title", "nothing"] {
        let _ = index.lookup(word).map(|term| term.map(|term| index.list(term).map(|list| list.postings())));
    }
    let words = ["w0", "w5", "title", "nothing"].map(|word| index.segment().find_term(word.as_bytes()));
    for (_, span) in words.into_iter().filter_map(|found| found.ok()?) {
        let _ = index.segment().layout_at(span);
    }
    for document in (0..index.documents().min(400)).step_by(13) {
        let _ = index.ids([DocId(document), DocId(0), DocId(u32::MAX)].into_iter());
        let _ = (index.id(DocId(document)), index.stored(DocId(document)), index.length(DocId(document)));
        index.segment().rank(document);
    }
    let _ = index.find("doc-7");
}

/// The error of opening, reading or verifying the index in a folder.
fn error_of(folder: &Path) -> Option<IndexError> {
    match Index::open_with(folder, Verify::Off) {
        Err(error) => Some(error),
        Ok(index) => {
            use_all(&index);
            index.verify().err()
        }
    }
}

fn names_file_and_section(error: &IndexError, file: &str) -> bool {
    match error {
        IndexError::Damaged { path, section, .. } => path.ends_with(file) && !section.is_empty(),
        _ => false,
    }
}

/// Builds an index whose long lists are all dense, or all in blocks.
fn small_index(folder: &Path, dense: bool) {
    let ranks = folder.join("ranks.tsv");
    fs::write(&ranks, "doc-1\t0.5\ndoc-0\t2\n").unwrap();
    let options = BuildOptions { impacts: true, impact_ordered: true, dense, ranks: Some(ranks), ..options() };
    build_index(&folder.join("index"), documents(170, 12), &options).unwrap();
    let index = Index::open(folder.join("index")).unwrap();
    let list = index.list(index.lookup("w0").unwrap().unwrap()).unwrap();
    assert_eq!((list.postings() as usize >= BLOCK, list.dense().is_some()), (true, dense));
}

#[test]
fn every_flipped_byte_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path(), true);
    let index = folder.path().join("index");
    assert!(error_of(&index).is_none());
    for file in ["manifest-00000001", "segment-00000001"] {
        let bytes = 0..fs::read(index.join(file)).unwrap().len();
        flip(&index, file, bytes);
    }
    assert!(error_of(&index).is_none());
}

#[test]
fn every_flipped_byte_of_lists_in_blocks_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path(), false);
    let (index, file) = (folder.path().join("index"), "segment-00000001");
    let bytes = fs::read(index.join(file)).unwrap();
    let header = Header::decode(&index, &bytes, bytes.len() as u64).unwrap();
    let entry = header.entry(Section::LongLists).unwrap();
    flip(&index, file, entry.offset as usize..(entry.offset + entry.length) as usize);
}

/// Flips a bit of each byte of a range in turn, checks the error, and restores the file.
fn flip(index: &Path, file: &str, range: Range<usize>) {
    let whole = fs::read(index.join(file)).unwrap();
    for at in range {
        let mut bytes = whole.clone();
        // Another bit in each byte, so that all eight are tried.
        bytes[at] ^= 1 << (at % 8);
        fs::write(index.join(file), &bytes).unwrap();
        let error = error_of(index);
        let named = error.as_ref().is_some_and(|error| names_file_and_section(error, file));
        assert!(named, "{file}, byte {at}: {error:?}");
    }
    fs::write(index.join(file), &whole).unwrap();
}

#[test]
fn every_truncation_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path(), true);
    let index = folder.path().join("index");
    for file in ["manifest-00000001", "segment-00000001"] {
        let whole = fs::read(index.join(file)).unwrap();
        for length in 0..whole.len() {
            fs::write(index.join(file), &whole[..length]).unwrap();
            let error = error_of(&index);
            let named = error.as_ref().is_some_and(|error| names_file_and_section(error, file));
            assert!(named, "{file}, {length} bytes: {error:?}");
        }
        fs::write(index.join(file), &whole).unwrap();
    }
}

#[test]
fn a_segment_of_another_index_is_refused() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    build_index(one.path(), documents(50, 20), &options()).unwrap();
    build_index(other.path(), documents(51, 20), &options()).unwrap();
    fs::copy(other.path().join("segment-00000001"), one.path().join("segment-00000001")).unwrap();
    assert!(names_file_and_section(&error_of(one.path()).unwrap(), "segment-00000001"));
}

/// Corrects the checksums of chunks, and returns their own.
fn mend_chunks(bytes: &mut [u8], table: &Entry) -> u32 {
    let (start, end) = (table.offset as usize, (table.offset + table.length) as usize);
    for chunk in 0..(end - start) / 4 {
        let checksum = chunk_checksum(bytes, start, chunk).to_le_bytes();
        bytes[start + 4 * chunk..][..4].copy_from_slice(&checksum);
    }
    crc32fast::hash(&bytes[start..end])
}

/// Builds an index, damages its long lists, corrects all checksums, and returns the error of verification.
fn planted(documents: Vec<Row>, options: &BuildOptions, plant: impl FnOnce(&mut [u8])) -> Option<IndexError> {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents, options).unwrap();
    let (path, manifest_path) = (folder.path().join("segment-00000001"), folder.path().join("manifest-00000001"));
    let mut bytes = fs::read(&path).unwrap();
    let mut header = Header::decode(&path, &bytes, bytes.len() as u64).unwrap();
    let entry = header.table.iter_mut().find(|entry| entry.tag == Section::LongLists as u32).unwrap();
    let (start, end) = (entry.offset as usize, (entry.offset + entry.length) as usize);
    plant(&mut bytes[start..end]);
    entry.checksum = crc32fast::hash(&bytes[start..end]);
    let table = header.table.iter_mut().find(|entry| entry.tag == Section::Checksums as u32).unwrap();
    table.checksum = mend_chunks(&mut bytes, table);
    let encoded = header.encode();
    bytes[..encoded.len()].copy_from_slice(&encoded);
    fs::write(&path, &bytes).unwrap();
    let mut manifest = Manifest::decode(&manifest_path, &fs::read(&manifest_path).unwrap()).unwrap();
    manifest.segments[0].checksum = u32::from_le_bytes(encoded[CHECKSUM].try_into().unwrap());
    fs::write(&manifest_path, manifest.encode()).unwrap();
    error_of(folder.path())
}

/// A k-th weight seeds the threshold, so one that is too large would lose hits. Here all checksums are correct.
#[test]
fn a_kth_weight_that_is_not_the_kth_fails_verification() {
    for dense in [true, false] {
        let error = planted(documents(300, 12), &BuildOptions { dense, ..options() }, |lists| {
            // In the header of a long list the largest saturation comes before the tenth largest.
            assert_ne!(lists[8..12], lists[12..16], "the tenth is not the largest");
            lists.copy_within(8..12, 12);
        });
        assert!(matches!(error, Some(IndexError::Damaged { section: "long-lists", .. })), "{error:?}");
    }
}

/// An upload to a device takes a block up to the start of the next one, even if that one has no bytes.
#[test]
fn a_block_that_begins_before_the_other_ends_fails_verification() {
    // The documents of the second of three blocks are consecutive and contain the word once: it packs into no bytes.
    let times = |number: usize| if number / BLOCK == 1 { 1 } else { 1 + number % 2 };
    let row = |number: usize| (number.to_string(), String::new(), "w0 ".repeat(times(number)));
    let rows = (0..3 * BLOCK).map(row).collect::<Vec<Row>>();
    let options = BuildOptions { dense: false, impacts: false, ..options() };
    let offsets = LONG_HEADER_BYTES + 3 * size_of::<u32>();
    for second in [1, 0, 2] {
        let error = planted(rows.clone(), &options, |lists| {
            assert_eq!(lists[offsets..][..12], [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
            lists[offsets + 4] = second;
        });
        assert_eq!(error.is_none(), second == 1, "{error:?}");
    }
}

/// One long list with every document; frequencies are 1 and 2, and now and then 40.
fn one_dense_list() -> Vec<Row> {
    let times = |number: u32| if number % 200 == 9 { 40 } else { 1 + number % 2 };
    let row = |number: u32| (number.to_string(), String::new(), "w0 ".repeat(times(number) as usize));
    (0..33_000).map(row).collect()
}

#[test]
fn what_is_wrong_in_a_dense_list_fails_verification() {
    type Plant = fn(&mut [u8], &DenseLayout);
    let plants: [(&str, Plant); 9] = [
        ("nothing", |_, _| ()),
        ("rank of a chunk", |list, layout| list[layout.chunk_rank() + 2] ^= 1),
        ("rank of a window", |list, layout| list[layout.window_rank() + 4] ^= 1),
        ("bound of a chunk", |list, layout| list[layout.chunk_saturation() + 1] -= 1),
        ("bound of a window", |list, layout| list[layout.window_saturation() + 1] -= 1),
        ("impact bound of a chunk", |list, layout| list[layout.chunk_impact() + 1] -= 1),
        ("exceptions out of order", |list, layout| list[layout.exception_rank()] = 255),
        ("a document after the last", |list, layout| list[layout.words() + 33_000 / 8] |= 1),
        ("other bits of a frequency", |list, _| list[MARK_AT] = 4),
    ];
    let options = BuildOptions { impacts: true, ..options() };
    for (name, plant) in plants {
        let error = planted(one_dense_list(), &options, |list| {
            let number = |at: usize| u32::from_le_bytes(list[at..at + 4].try_into().unwrap()) as usize;
            let (documents, exceptions) = (33_000, number(EXCEPTIONS_AT));
            let bits = number(MARK_AT) - DENSE_MARK as usize;
            assert_eq!((number(0), exceptions, bits), (documents, 165, 2));
            let postings = documents;
            let layout = DenseLayout { postings, documents, exceptions, frequency_bits: bits, has_impacts: true };
            plant(list, &layout);
        });
        match &error {
            None => assert_eq!(name, "nothing"),
            Some(error) => {
                assert!(matches!(error, IndexError::Damaged { section: "long-lists", .. }), "{name}: {error}");
            }
        }
        assert_eq!(error.is_none(), name == "nothing", "{name}");
    }
}

/// Reads that do not verify the whole index see what was written, or fail.
#[test]
fn every_flipped_byte_is_found_when_it_is_read_first() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path(), true);
    let (index, file) = (folder.path().join("index"), "segment-00000001");
    let whole = fs::read(index.join(file)).unwrap();
    let sound = read_all(&Index::open(&index).unwrap());
    assert!(sound.iter().all(Option::is_some));
    let header = Header::decode(&index, &whole, whole.len() as u64).unwrap();
    let mut silent_without = 0;
    for entry in &header.table {
        for at in (entry.offset..entry.offset + entry.length).step_by(13) {
            let mut bytes = whole.clone();
            bytes[at as usize] ^= 1 << (at % 8);
            fs::write(index.join(file), &bytes).unwrap();
            let changed = |verify| {
                let Ok(index) = Index::open_with(&index, verify) else {
                    return 0;
                };
                let read = read_all(&index);
                read.iter().zip(&sound).filter(|(read, sound)| read.is_some() && read != sound).count()
            };
            assert_eq!(changed(Verify::Lazy), 0, "section {}, byte {at}", entry.tag);
            assert!(Index::open_with(&index, Verify::Full).is_err());
            silent_without += changed(Verify::Off);
        }
    }
    assert!(silent_without > 100, "{silent_without}");
}

/// What each call of a reader returns: `None` for an error.
fn read_all(index: &Index) -> Vec<Option<String>> {
    let segment = index.segment();
    let mut read = Vec::new();
    let (mut documents, mut values) = ([0; BLOCK], [0; BLOCK]);
    for word in ["w0", "w1", "w5", "w40", "title", "nothing"] {
        let list = index.lookup(word).and_then(|term| term.map(|term| index.list(term)).transpose());
        read.push(list.ok().map(|list| {
            let mut text = String::new();
            for (list, block) in list.iter().flat_map(|list| (0..list.blocks()).map(move |block| (list, block))) {
                let count = list.decode_documents(block, &mut documents);
                list.decode_values(Column::Frequency, block, &mut values);
                text += &format!("{:?} {:?} ", &documents[..count], &values[..count]);
            }
            text
        }));
        let ordered = index.lookup(word).and_then(|term| match term {
            Some(term) => index.impact_ordered(term),
            None => Ok(None),
        });
        read.push(ordered.ok().map(|ordered| {
            let segments = ordered.iter().flat_map(|ordered| ordered.segments());
            segments.map(|segment| format!("{} {:?} ", segment.impact, segment.documents)).collect()
        }));
    }
    for document in (0..index.documents()).step_by(11).map(DocId) {
        read.push(index.id(document).ok());
        read.push(index.ids([document].into_iter()).ok().map(|ids| ids.iter().collect()));
        read.push(index.stored(document).ok().map(|fields| format!("{fields:?}")));
        let lengths = segment.check_section(Section::Lengths).and(segment.check_section(Section::LengthCodes));
        read.push(
            lengths.ok().map(|()| format!("{} {}", index.length(document), index.length_codes()[document.0 as usize])),
        );
        read.push(segment.check_section(Section::Ranks).ok().map(|()| format!("{:?}", segment.rank(document.0))));
    }
    read.push(index.find("doc-7").ok().map(|found| format!("{found:?}")));
    read
}

/// Changes the manifest of a small index, with a right checksum; returns the errors of opening and of verifying.
fn forged(change: impl FnOnce(&mut Manifest)) -> [Option<String>; 2] {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(50, 20), &BuildOptions { impacts: true, ..options() }).unwrap();
    let path = folder.path().join("manifest-00000001");
    let mut manifest = Manifest::decode(&path, &fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.encode()).unwrap();
    match Index::open(folder.path()) {
        Err(error) => [Some(error.to_string()), None],
        Ok(index) => [None, index.verify().err().map(|error| error.to_string())],
    }
}

#[test]
fn a_manifest_that_does_not_belong_to_its_segment_is_found() {
    assert_eq!(forged(|_| ()), [None, None]);
    let opening = |change: fn(&mut Manifest)| forged(change)[0].clone().expect("it does not open");
    for change in [|it: &mut Manifest| it.bm25.k1 = -1.0, |it: &mut Manifest| it.bm25.b = 1.5] {
        assert!(opening(change).contains("k1 is not from 0 to 1000, or b not from 0 to 1"));
    }
    let no_scale = opening(|it| it.impacts = it.impacts.map(|impacts| Impacts { scale: 0.0, ..impacts }));
    assert!(no_scale.contains("the scale of impacts is not above 0"));
    let verifying = |change: fn(&mut Manifest)| forged(change)[1].clone().expect("it opens, and is not sound");
    for change in [|it: &mut Manifest| it.statistics.documents += 1, |it: &mut Manifest| it.statistics.tokens -= 1] {
        assert!(verifying(change).contains("its statistics are not the 50 documents"));
    }
    assert!(verifying(|it| it.bm25.k1 = 1.2).contains("its k1 and b are not those that the segment was built with"));
}

#[test]
fn another_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(5, 20), &options()).unwrap();
    let path = folder.path().join("manifest-00000001");
    let text = fs::read_to_string(&path).unwrap();
    let (_, body) = text.split_once('\n').unwrap();
    for (version, advice) in [(0u32, "rebuild it"), (9, "use a newer lanner, or rebuild it")] {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&version.to_le_bytes());
        hasher.update(body.as_bytes());
        fs::write(&path, format!("lanner-manifest {version} {:08x}\n{body}", hasher.finalize())).unwrap();
        let error = Index::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains(&format!("index format {version}, this version reads format 1; {advice}")), "{error}");
    }
}

#[test]
fn a_folder_without_an_index_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("nowhere")] {
        let error = Index::open(&path).err().unwrap();
        assert!(error.to_string().contains("no index here; build one"), "{error}");
    }
}

#[test]
fn a_short_list_without_postings_is_no_list() {
    for codec in CodecName::ALL {
        let codecs = Codecs { documents: codec, weights: codec };
        let context =
            ListContext { codecs, has_frequencies: true, has_impacts: true, has_dense: false, documents: 1000 };
        assert!(List::short(&context, &[0; 16]).is_none(), "{codec}");
    }
}
