//! Builds give the same bytes every time, and odd input has a defined result.

mod support;

use lanner_index::build::{BuildError, BuildOptions, Quiet, build, build_from_ciff};
use lanner_index::codec::{BLOCK, CodecName, Codecs, Packed, qmx};
use lanner_index::corpus::{Corpus, CorpusOptions};
use lanner_index::format::IndexError;
use lanner_index::open::{Column, ColumnPart, Index, ListLayout, export_ciff};
use lanner_index::text::Analyzer;
use lanner_index::{DocId, TermId};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use support::{build_index, documents, options};

fn segment_file(folder: &Path) -> PathBuf {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment-")).unwrap()
}

fn postings(index: &Index, term: &str, column: Column) -> Vec<(u32, u32)> {
    let Some(term) = index.lookup(term).unwrap() else {
        return Vec::new();
    };
    let list = index.list(term).unwrap();
    let (mut documents, mut weights, mut found) = ([0; BLOCK], [0; BLOCK], Vec::new());
    for block in 0..list.blocks() {
        let count = list.decode_documents(block, &mut documents);
        assert_eq!(list.decode_values(column, block, &mut weights), count);
        for index in [0, count / 2, count.saturating_sub(1)].into_iter().filter(|&index| index < count) {
            assert_eq!(list.value_at(column, block, index), weights[index]);
        }
        // A bitmap has no blocks whose values could be read together.
        if list.dense().is_none() {
            let (indexes, mut some) = ((0..count).step_by(3), [0; BLOCK]);
            list.values_at(column, block, indexes.clone(), &mut some[..indexes.len()]);
            assert!(indexes.clone().map(|index| weights[index]).eq(some[..indexes.len()].iter().copied()));
        }
        found.extend(documents[..count].iter().copied().zip(weights));
    }
    found
}

#[test]
fn an_index_holds_exactly_the_postings_of_its_documents() {
    let folder = tempfile::tempdir().unwrap();
    let rows = documents(3000, 400);
    for documents_codec in CodecName::ALL {
        for weights in CodecName::ALL {
            let codecs = Codecs { documents: documents_codec, weights };
            let dense = codecs == Codecs::default();
            build_index(folder.path(), rows.clone(), &BuildOptions { codecs, dense, ..options() }).unwrap();
            let index = Index::open(folder.path()).unwrap();
            index.verify().unwrap();
            let mut expected: BTreeMap<&str, BTreeMap<u32, u32>> = BTreeMap::new();
            for (number, (_, title, text)) in rows.iter().enumerate() {
                for word in title.split(' ').chain(text.split(' ')) {
                    *expected.entry(word).or_default().entry(number as u32).or_default() += 1;
                }
            }
            assert_eq!(index.segment().header().terms, expected.len() as u64);
            for (word, list) in &expected {
                let list: Vec<(u32, u32)> = list.iter().map(|(&document, &frequency)| (document, frequency)).collect();
                assert_eq!(postings(&index, word, Column::Frequency), list, "{word} with {codecs:?}");
            }
            let backwards = (0..rows.len() as u32).rev().map(DocId);
            let ids = index.ids(backwards).unwrap();
            assert!(ids.iter().eq(rows.iter().rev().map(|(id, ..)| id)));
            assert!(index.ids([DocId(0), DocId(rows.len() as u32)].into_iter()).is_err(), "no such document");
            for (number, (id, title, text)) in rows.iter().enumerate().step_by(37) {
                let document = DocId(number as u32);
                assert_eq!(index.id(document).unwrap(), *id);
                assert_eq!(index.find(id).unwrap(), Some(document));
                assert_eq!(index.length(document) as usize, 2 + text.split(' ').count());
                let stored = index.stored(document).unwrap();
                assert_eq!(stored, [("title", title.clone()), ("text", text.clone())]);
            }
        }
    }
}

#[test]
fn files_are_the_same_bytes_for_any_threads_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Too much text for the smallest memory.
    let rows: Vec<_> = documents(90_000, 90_000);
    let asked = BuildOptions { impacts: true, impact_ordered: true, ..options() };
    let mut first: Option<Vec<u8>> = None;
    for (threads, memory_bytes) in [(1, 1 << 30), (1, 32 << 20), (2, 1 << 30), (3, 32 << 20)] {
        let report =
            build_index(folder.path(), rows.clone(), &BuildOptions { threads, memory_bytes, ..asked.clone() }).unwrap();
        assert_eq!(report.runs > 0, memory_bytes == 32 << 20, "{threads} threads: {} runs", report.runs);
        let bytes = fs::read(segment_file(folder.path())).unwrap();
        let first = first.get_or_insert_with(|| bytes.clone());
        assert!(*first == bytes, "{threads} threads, {memory_bytes} bytes");
    }
    Index::open(folder.path()).unwrap().verify().unwrap();
}

#[test]
fn impacts_are_scaled_weights_from_1_to_255_and_the_largest_is_255() {
    let folder = tempfile::tempdir().unwrap();
    let rows = documents(2000, 300);
    build_index(folder.path(), rows, &BuildOptions { impacts: true, ..options() }).unwrap();
    let index = Index::open(folder.path()).unwrap();
    index.verify().unwrap();
    let mut largest = 0;
    for term in 0..index.segment().header().terms {
        let list = index.list(TermId(term)).unwrap();
        let (mut impacts, mut kept) = ([0; BLOCK], Vec::new());
        for block in 0..list.blocks() {
            let count = list.decode_values(Column::Impact, block, &mut impacts);
            kept.extend_from_slice(&impacts[..count]);
        }
        kept.sort_unstable_by(|a, b| b.cmp(a));
        assert!(kept.iter().all(|impact| (1..=255).contains(impact)));
        let kth = |k: usize| kept.get(k - 1).copied().unwrap_or(0);
        assert_eq!(list.largest_impacts(), (kth(1), [kth(10), kth(100), kth(1000)]));
        largest = largest.max(kept[0]);
    }
    assert_eq!(largest, 255);
}

#[test]
fn impact_ordered_lists_hold_the_postings_by_falling_impact() {
    let folder = tempfile::tempdir().unwrap();
    let options = BuildOptions { impacts: true, impact_ordered: true, ..options() };
    build_index(folder.path(), documents(3000, 400), &options).unwrap();
    let index = Index::open(folder.path()).unwrap();
    index.verify().unwrap();
    let (mut long, mut short) = (0, 0);
    for number in 0..400 {
        let term = format!("w{number}");
        let Some(id) = index.lookup(&term).unwrap() else {
            continue;
        };
        let Some(list) = index.impact_ordered(id).unwrap() else {
            assert!((index.list(id).unwrap().postings() as usize) < BLOCK, "{term}");
            short += 1;
            continue;
        };
        let mut expected = postings(&index, &term, Column::Impact);
        expected.sort_by_key(|&(document, impact)| (std::cmp::Reverse(impact), document));
        let mut found = Vec::new();
        for segment in list.segments() {
            let mut documents = vec![0; segment.postings as usize];
            qmx::decode(segment.documents, 0, &mut documents);
            found.extend(documents.into_iter().map(|document| (document, segment.impact)));
        }
        assert_eq!(found, expected, "{term}");
        assert_eq!(list.postings() as usize, expected.len());
        long += 1;
    }
    assert!(long > 50 && short > 50, "{long} long lists, {short} short ones");
}

#[test]
fn the_layout_of_a_list_says_where_its_columns_lie() {
    let folder = tempfile::tempdir().unwrap();
    let codecs = Codecs { documents: CodecName::Pfor, weights: CodecName::Pfor };
    let options = BuildOptions { impacts: true, dense: false, codecs, ..options() };
    build_index(folder.path(), documents(3000, 400), &options).unwrap();
    let index = Index::open(folder.path()).unwrap();
    let (mut short, mut long) = (0, 0);
    for word in (0..400).map(|number| format!("w{number}")).chain((0..9).map(|number| number.to_string())) {
        let [Some((_, span))] = index.find_terms([word.as_bytes()]).unwrap()[..] else {
            continue;
        };
        let (list, bytes) = (index.list_at(span).unwrap(), index.segment().bytes_at(span).unwrap());
        match index.segment().layout_at(span).unwrap() {
            ListLayout::Short { first, documents, frequencies, impacts } => {
                let count = list.postings() as usize;
                let expected = postings(&index, &word, Column::Frequency);
                let mut found = vec![first; count];
                if let Some(ColumnPart { byte, start }) = documents {
                    let packed = Packed::alone(byte, &bytes[start..]);
                    codecs.documents.codec().decode_documents(packed, first + 1, &mut found[1..]);
                }
                assert!(found.iter().eq(expected.iter().map(|(document, _)| document)), "{word}");
                for (column, part) in [(Column::Frequency, frequencies), (Column::Impact, impacts)] {
                    let mut found = vec![1; count];
                    if let Some(ColumnPart { byte, start }) = part {
                        codecs.weights.codec().decode_values(Packed::alone(byte, &bytes[start..]), &mut found);
                    }
                    let expected = postings(&index, &word, column);
                    assert!(found.iter().eq(expected.iter().map(|(_, weight)| weight)), "{word}, {column:?}");
                }
                short += 1;
            }
            ListLayout::Long { shared, .. } => {
                assert_eq!(shared.each_ref().map(|part| part.len()), list.shared_bytes(), "{word}");
                assert_eq!(
                    (shared[0].end, shared[1].end, shared[2].end),
                    (shared[1].start, shared[2].start, bytes.len())
                );
                long += 1;
            }
            ListLayout::Dense { .. } => panic!("{word}: the index has no bitmaps"),
        }
    }
    assert!(short > 50 && long > 50, "{short} short lists, {long} long ones");
}

#[test]
fn impact_ordered_lists_need_impacts() {
    let folder = tempfile::tempdir().unwrap();
    let error = build_index(folder.path(), documents(3, 5), &BuildOptions { impact_ordered: true, ..options() });
    assert!(error.unwrap_err().to_string().contains("need impacts"));
}

#[test]
fn kth_saturations_are_those_of_the_postings() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(9000, 50), &options()).unwrap();
    let index = Index::open(folder.path()).unwrap();
    for word in ["w0", "w7", "w49", "title", "17"] {
        let list = index.list(index.lookup(word).unwrap().unwrap()).unwrap();
        let code = |document: u32| index.length_codes()[document as usize];
        let mut saturations: Vec<f32> = postings(&index, word, Column::Frequency)
            .into_iter()
            .map(|(document, frequency)| lanner_index::weight::saturation(frequency, index.norms().of(code(document))))
            .collect();
        saturations.sort_unstable_by(|a, b| b.total_cmp(a));
        let kth = |k: usize| saturations.get(k - 1).copied().unwrap_or(0.0);
        let largest = list.largest(index.norms(), index.length_codes());
        assert_eq!((largest.saturation, largest.kth), (kth(1), [kth(10), kth(100), kth(1000)]), "{word}");
    }
}

#[test]
fn a_repeated_id_keeps_the_first_document_or_stops_a_strict_build() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = documents(1000, 100);
    rows[500].0 = "doc-3".to_owned();
    rows[501].0 = "doc-3".to_owned();
    rows[999].0 = "doc-998".to_owned();
    let report = build_index(folder.path(), rows.clone(), &options()).unwrap();
    assert_eq!((report.documents, report.duplicates), (997, 3));
    assert!(report.problems[0].contains("\"doc-3\""), "{:?}", report.problems);
    let index = Index::open(folder.path()).unwrap();
    index.verify().unwrap();
    let kept: Vec<_> = [&rows[..500], &rows[502..999]].concat();
    for (number, (id, title, text)) in kept.iter().enumerate() {
        let document = DocId(number as u32);
        assert_eq!(index.id(document).unwrap(), *id);
        assert_eq!(index.stored(document).unwrap(), [("title", title.clone()), ("text", text.clone())]);
    }
    // The index is that of the kept documents alone.
    let other = tempfile::tempdir().unwrap();
    build_index(other.path(), kept, &options()).unwrap();
    let other = Index::open(other.path()).unwrap();
    for word in ["w0", "w17", "title"] {
        assert_eq!(postings(&index, word, Column::Frequency), postings(&other, word, Column::Frequency), "{word}");
    }
    let error = build_index(folder.path(), rows, &BuildOptions { strict: true, ..options() }).unwrap_err();
    assert!(matches!(error, BuildError::Duplicate { document: 501, .. }), "{error}");
    assert_eq!(Index::open(folder.path()).unwrap().documents(), 997, "the old index is untouched");
}

#[test]
fn a_build_without_documents_or_with_too_many_skipped_records_keeps_the_old_index() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(10, 5), &options()).unwrap();
    let rebuild = |bad: std::ops::Range<usize>, options: &BuildOptions| {
        let mut rows = documents(20, 5);
        rows[bad].iter_mut().for_each(|row| row.0.clear());
        let result = build_index(folder.path(), rows, options).map(|report| (report.documents, report.skipped()));
        let index = Index::open(folder.path()).unwrap();
        index.verify().unwrap();
        (result.map_err(|error| error.to_string()), index.documents())
    };
    let error = "3 of 20 records skipped, more than 10%, the first at memory:1: the id is empty".to_owned();
    assert_eq!(rebuild(0..3, &options()), (Err(error), 10));
    let error = "no usable document: 20 records skipped, the first at memory:1: the id is empty".to_owned();
    assert_eq!(rebuild(0..20, &BuildOptions { max_skipped: 1.0, ..options() }), (Err(error), 10));
    assert_eq!(rebuild(0..2, &options()), (Ok((18, 2)), 18));
    assert_eq!(rebuild(0..3, &BuildOptions { max_skipped: 0.15, ..options() }), (Ok((17, 3)), 17));
    let error = build_index(folder.path(), Vec::new(), &options()).unwrap_err();
    assert!(matches!(error, BuildError::Empty { skipped: 0, .. }), "{error}");
    let error = rebuild(0..20, &BuildOptions { allow_empty: true, ..options() });
    assert_eq!(error.1, 17, "an empty index is allowed, skipped records are not");
    let both = BuildOptions { allow_empty: true, max_skipped: 1.0, ..options() };
    assert_eq!(rebuild(0..20, &both), (Ok((0, 20)), 0));
    for max_skipped in [-0.1, 1.1, f64::NAN] {
        let error = build_index(folder.path(), documents(3, 5), &BuildOptions { max_skipped, ..options() });
        assert!(matches!(error, Err(BuildError::Options(_))), "{max_skipped}");
    }
}

#[test]
fn repeated_ids_count_as_skipped_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = documents(20, 5);
    rows[7..10].iter_mut().for_each(|row| row.0 = "doc-3".to_owned());
    let error = build_index(folder.path(), rows, &options()).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "3 of 20 records skipped, more than 10%, the first at document 8: an earlier document has the id"
        ),
        "{error}"
    );
}

#[test]
fn empty_documents_are_indexed_and_an_empty_collection_where_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let report = build_index(folder.path(), Vec::new(), &BuildOptions { allow_empty: true, ..options() }).unwrap();
    assert_eq!((report.documents, report.terms), (0, 0));
    Index::open(folder.path()).unwrap().verify().unwrap();
    let empty = |id: &str| (id.to_owned(), String::new(), String::new());
    build_index(folder.path(), vec![empty("a"), ("b".into(), "one".into(), "word".into()), empty("c")], &options())
        .unwrap();
    let index = Index::open(folder.path()).unwrap();
    index.verify().unwrap();
    assert_eq!([0, 1, 2].map(|document| index.length(DocId(document))), [0, 2, 0]);
    assert_eq!(index.statistics().tokens, 2);
}

#[test]
fn learned_weights_become_impacts() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("vectors.jsonl");
    let build_vectors = |text: &str| {
        fs::write(&input, text).unwrap();
        let corpus_options = CorpusOptions { vector_field: Some("vector".into()), ..Default::default() };
        let corpus = Corpus::open(&input, corpus_options).unwrap();
        let analyzer = Analyzer::parse("pretokenized").unwrap();
        let options = BuildOptions { analyzer, impacts: true, ..options() };
        build(&folder.path().join("index"), corpus, &options, &Quiet).unwrap();
        Index::open(folder.path().join("index")).unwrap()
    };
    let index = build_vectors(
        "{\"id\":\"a\",\"vector\":{\"x\":7,\"y\":255}}\n{\"id\":\"b\",\"vector\":{\"x\":1}}\n\
                               {\"id\":\"c\",\"text\":\"x x\",\"vector\":{}}\n",
    );
    assert_eq!(postings(&index, "x", Column::Impact), [(0, 7), (1, 1)], "integer weights are kept");
    assert_eq!([0, 1, 2].map(|document| index.length(DocId(document))), [262, 1, 0], "text beside a vector is ignored");
    assert_eq!(postings(&index, "y", Column::Impact), [(0, 255)]);
    assert_eq!(postings(&index, "y", Column::Frequency), [(0, 255)]);
    let index =
        build_vectors("{\"id\":\"a\",\"vector\":{\"x\":0.5,\"y\":2.0}}\n{\"id\":\"b\",\"vector\":{\"x\":0.001}}\n");
    assert_eq!(postings(&index, "x", Column::Impact), [(0, 64), (1, 1)], "127.5 · 0.5 rounds half to even");
    assert_eq!(postings(&index, "y", Column::Impact), [(0, 255)]);
}

#[test]
fn the_longest_length_is_kept_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("vectors.jsonl");
    let weights: Vec<String> = (0..300).map(|term| format!("\"t{term}\":16777216")).collect();
    fs::write(&input, format!("{{\"id\":\"a\",\"vector\":{{{}}}}}\n", weights.join(","))).unwrap();
    let corpus_options = CorpusOptions { vector_field: Some("vector".into()), ..Default::default() };
    let corpus = Corpus::open(&input, corpus_options).unwrap();
    build(&folder.path().join("index"), corpus, &options(), &Quiet).unwrap();
    let index = Index::open(folder.path().join("index")).unwrap();
    index.verify().unwrap();
    assert_eq!(index.length(DocId(0)), u32::MAX - 1);
}

#[test]
fn ranks_are_read_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = folder.path().join("ranks.tsv");
    fs::write(&ranks, "doc-1\t0.5\ndoc-0\t2\nsomewhere-else\t1\n").unwrap();
    let index = folder.path().join("index");
    let report = build_index(&index, documents(3, 5), &BuildOptions { ranks: Some(ranks), ..options() }).unwrap();
    assert_eq!(report.unranked, 1);
    let index = Index::open(&index).unwrap();
    index.verify().unwrap();
    assert_eq!([0, 1, 2].map(|document| index.segment().rank(document)), [Some(1.0), Some(0.25), Some(0.0)]);
}

#[test]
fn ciff_keeps_documents_frequencies_and_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    build_index(&first, documents(1500, 300), &options()).unwrap();
    let index = Index::open(&first).unwrap();
    let mut ciff = Vec::new();
    export_ciff(&index, Column::Frequency, &mut ciff).unwrap();
    let file = folder.path().join("index.ciff");
    fs::write(&file, &ciff).unwrap();
    build_from_ciff(&second, &file, &options(), &Quiet).unwrap();
    let copy = Index::open(&second).unwrap();
    copy.verify().unwrap();
    assert_eq!(copy.statistics(), index.statistics());
    for document in 0..1500 {
        assert_eq!(copy.id(DocId(document)).unwrap(), index.id(DocId(document)).unwrap());
        assert_eq!(copy.length(DocId(document)), index.length(DocId(document)));
    }
    let mut again = Vec::new();
    export_ciff(&copy, Column::Frequency, &mut again).unwrap();
    assert!(ciff == again, "the round trip changes nothing");
}

#[test]
fn ciff_carries_impacts_in_the_place_of_frequencies_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let both = BuildOptions { impacts: true, ..options() };
    build_index(&first, documents(1500, 300), &both).unwrap();
    let index = Index::open(&first).unwrap();
    let file = folder.path().join("impacts.ciff");
    export_ciff(&index, Column::Impact, fs::File::create(&file).unwrap()).unwrap();
    build_from_ciff(&second, &file, &options(), &Quiet).unwrap();
    let copy = Index::open(&second).unwrap();
    for word in 0..300 {
        let term = format!("w{word}");
        assert_eq!(postings(&copy, &term, Column::Frequency), postings(&index, &term, Column::Impact), "{term}");
    }
    let error = export_ciff(&copy, Column::Impact, Vec::new()).unwrap_err().to_string();
    assert!(error.starts_with("the index has no impacts"), "{error}");
}

#[test]
fn a_second_writer_is_refused_and_a_foreign_folder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    fs::create_dir(&path).unwrap();
    let lock = fs::File::create(path.join("lock")).unwrap();
    lock.lock().unwrap();
    let error = build_index(&path, documents(3, 5), &options()).unwrap_err();
    assert!(matches!(error, BuildError::Index(IndexError::Locked { .. })), "{error}");
    drop(lock);
    build_index(&path, documents(3, 5), &options()).unwrap();
    for name in ["thesis.txt", "segment-customers.csv", "building", "manifest-000000001", "segment-1"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), "precious").unwrap();
        let error = build_index(folder.path(), documents(3, 5), &options()).unwrap_err();
        assert!(matches!(error, BuildError::Index(IndexError::Foreign { .. })), "{name}: {error}");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"precious");
        // Beside an index it is left alone too, unless it has the name of the folder that a dead writer leaves.
        if name != "building" {
            fs::write(path.join(name), "precious").unwrap();
            build_index(&path, documents(4, 5), &options()).unwrap();
            assert_eq!(fs::read(path.join(name)).unwrap(), b"precious");
            assert_eq!(Index::open(&path).unwrap().documents(), 4);
        }
    }
}

#[test]
fn a_reader_keeps_its_generation_while_the_index_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(100, 20), &options()).unwrap();
    let old = Index::open(folder.path()).unwrap();
    let before = postings(&old, "w3", Column::Frequency);
    build_index(folder.path(), documents(200, 20), &options()).unwrap();
    assert_eq!(postings(&old, "w3", Column::Frequency), before);
    assert_eq!((old.documents(), old.id(DocId(99)).unwrap()), (100, "doc-99".to_owned()));
    let new = Index::open(folder.path()).unwrap();
    assert_eq!((new.documents(), new.manifest().generation), (200, 2));
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "manifest-00000002", "segment-00000002"], "nothing old is left");
}

#[test]
fn what_a_dead_writer_left_is_swept_away() {
    let folder = tempfile::tempdir().unwrap();
    build_index(folder.path(), documents(100, 20), &options()).unwrap();
    fs::create_dir(folder.path().join("building")).unwrap();
    fs::write(folder.path().join("building/run-0"), "half").unwrap();
    fs::write(folder.path().join("segment-00000002"), "renamed, but no manifest came to name it").unwrap();
    assert_eq!(Index::open(folder.path()).unwrap().documents(), 100);
    build_index(folder.path(), documents(50, 20), &options()).unwrap();
    assert_eq!(Index::open(folder.path()).unwrap().documents(), 50);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_list_at_the_cut_is_dense_and_one_below_is_not() {
    for (documents, is_dense) in [(128, true), (3583, true), (3584, true), (3585, false)] {
        let text = |number: u32| if number < 128 { "common word" } else { "common" };
        let rows = (0..documents).map(|number| (number.to_string(), String::new(), text(number).to_owned()));
        let folder = tempfile::tempdir().unwrap();
        build_index(folder.path(), rows.collect(), &options()).unwrap();
        let index = Index::open(folder.path()).unwrap();
        let list = |word: &str| index.list(index.lookup(word).unwrap().unwrap()).unwrap();
        assert_eq!((list("word").postings(), list("word").dense().is_some()), (128, is_dense), "{documents}");
        assert_eq!(list("common").dense().unwrap().chunks(), documents.div_ceil(64) as usize);
        index.verify().unwrap();
    }
}
