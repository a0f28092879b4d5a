//! Tests of CIFF against bytes written by hand, and round trips; `tests/ciff.rs` reads the format's own toy index.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// Two terms, two documents, encoded by hand from the protobuf definition.
const BY_HAND: &[u8] = b"\
    \x17\x08\x01\x10\x02\x18\x02\x20\x02\x28\x02\x30\x05\x39\x00\x00\x00\x00\x00\x00\x04\x40\x42\x00\
    \x11\x0a\x01a\x10\x02\x18\x03\x22\x02\x10\x01\x22\x04\x08\x01\x10\x02\
    \x0b\x0a\x01b\x10\x01\x18\x02\x22\x02\x10\x02\
    \x06\x12\x02d0\x18\x03\
    \x08\x08\x01\x12\x02d1\x18\x02";

type Everything = (Header, Vec<List>, Vec<Document>);

fn read(bytes: &[u8]) -> Result<Everything, CiffError> {
    let mut reader = CiffReader::new(bytes)?;
    let mut lists = Vec::new();
    while let Some(list) = reader.next_list()? {
        lists.push(list);
    }
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document()? {
        documents.push(document);
    }
    Ok((reader.header().clone(), lists, documents))
}

fn write((header, lists, documents): &Everything) -> Result<Vec<u8>, CiffError> {
    let mut writer = CiffWriter::new(Vec::new(), header)?;
    for list in lists {
        writer.write_list(&list.term, &list.postings)?;
    }
    for document in documents {
        writer.write_document(&document.id, document.length)?;
    }
    writer.finish()
}

fn list(term: &str, postings: &[(u32, u32)]) -> List {
    List { term: term.to_owned(), postings: postings.to_vec() }
}

fn document(id: &str, length: u32) -> Document {
    Document { id: id.to_owned(), length }
}

fn header(lists: u32, documents: u32) -> Header {
    Header {
        lists,
        documents,
        total_lists: lists,
        total_documents: documents,
        total_tokens: 5,
        average_length: 2.5,
        description: String::new(),
    }
}

fn by_hand() -> Everything {
    (header(2, 2), vec![list("a", &[(0, 1), (1, 2)]), list("b", &[(0, 2)])], vec![document("d0", 3), document("d1", 2)])
}

/// A file with one list, from messages that need not be valid.
fn file_with(header: HeaderMessage, list: PostingsListMessage) -> Vec<u8> {
    let mut bytes = header.encode_length_delimited_to_vec();
    bytes.extend(list.encode_length_delimited_to_vec());
    bytes
}

fn valid_header() -> HeaderMessage {
    HeaderMessage { version: VERSION, num_postings_lists: 1, num_docs: 10, ..HeaderMessage::default() }
}

fn list_message(df: i64, postings: &[(i32, i32)]) -> PostingsListMessage {
    let postings = postings.iter();
    PostingsListMessage {
        term: "t".to_owned(),
        df,
        cf: 0,
        postings: postings.map(|&(docid, tf)| PostingMessage { docid, tf }).collect(),
    }
}

fn complaint(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

#[test]
fn bytes_written_by_hand_are_read() {
    assert_eq!(read(BY_HAND).unwrap(), by_hand());
}

#[test]
fn what_is_written_are_the_bytes_of_the_definition() {
    // An empty description is left out: protobuf does not write default values.
    let mut expected = BY_HAND.to_vec();
    expected[0] -= 2;
    expected.drain(22..24);
    assert_eq!(write(&by_hand()).unwrap(), expected);
}

#[test]
fn a_compressed_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.ciff.zst");
    std::fs::write(&path, zstd::encode_all(BY_HAND, 1).unwrap()).unwrap();
    let mut reader = CiffReader::open(&path).unwrap();
    assert_eq!(reader.next_list().unwrap(), Some(list("a", &[(0, 1), (1, 2)])));
}

#[test]
fn every_truncation_names_the_message_that_is_cut() {
    for length in 0..BY_HAND.len() {
        let error = read(&BY_HAND[..length]).unwrap_err();
        let expected = match length {
            0..24 => (Kind::Header, 1),
            24..42 => (Kind::PostingsList, 1),
            42..54 => (Kind::PostingsList, 2),
            54..61 => (Kind::DocRecord, 1),
            _ => (Kind::DocRecord, 2),
        };
        let CiffError::Truncated { kind, number } = error else {
            panic!("{length}: {error}");
        };
        assert_eq!((kind, number), expected, "{length}");
    }
}

#[test]
fn data_after_the_last_document_is_refused() {
    let message = complaint(&[BY_HAND, b"\n"].concat());
    assert_eq!(message, "CIFF document record 2: data follows the last document that the header announces");
}

#[test]
fn a_header_of_another_version_or_with_negative_counts_is_refused() {
    let refused = |header: HeaderMessage| complaint(&header.encode_length_delimited_to_vec());
    let message = refused(HeaderMessage { version: 2, ..valid_header() });
    assert_eq!(message, "CIFF header 1: version 2, this program reads 1");
    let message = refused(HeaderMessage { num_docs: -1, ..valid_header() });
    assert_eq!(message, "CIFF header 1: num_docs is -1");
    let message = refused(HeaderMessage { total_terms_in_collection: -7, ..valid_header() });
    assert_eq!(message, "CIFF header 1: total_terms_in_collection is -7");
}

#[test]
fn postings_that_break_a_rule_are_refused() {
    let refused = |df, postings: &[(i32, i32)]| complaint(&file_with(valid_header(), list_message(df, postings)));
    type Case = (i64, &'static [(i32, i32)], &'static str);
    let cases: [Case; 8] = [
        (2, &[(0, 1)], "has df 2 and 1 postings"),
        (1, &[(0, 0)], "frequency 0 in posting 0"),
        (1, &[(0, -1)], "frequency -1 in posting 0"),
        (2, &[(3, 1), (0, 1)], "document 3 follows 3 in posting 1"),
        (2, &[(3, 1), (-2, 1)], "document 1 follows 3 in posting 1"),
        (1, &[(-1, 1)], "document -1 follows -1 in posting 0"),
        (1, &[(10, 1)], "document 10 in posting 0, but the file has 10"),
        (2, &[(9, 1), (i32::MAX, 1)], "document 2147483656 in posting 1"),
    ];
    for (df, postings, expected) in cases {
        let message = refused(df, postings);
        assert!(message.starts_with("CIFF postings list 1: term \"t\""), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_list_can_be_empty() {
    let mut bytes = file_with(valid_header(), list_message(0, &[]));
    bytes[6] = 0; // num_docs
    let (_, lists, documents) = read(&bytes).unwrap();
    assert_eq!((lists, documents), (vec![list("t", &[])], vec![]));
}

#[test]
fn documents_out_of_order_or_with_a_negative_length_are_refused() {
    let refused = |docid, doclength| {
        let header = HeaderMessage { num_postings_lists: 0, ..valid_header() };
        let record = DocRecordMessage { docid, collection_docid: "d".to_owned(), doclength };
        let mut bytes = header.encode_length_delimited_to_vec();
        bytes.extend(record.encode_length_delimited_to_vec());
        complaint(&bytes)
    };
    assert_eq!(
        refused(1, 0),
        "CIFF document record 1: document number 1 where 0 is expected; records must be in order"
    );
    assert_eq!(refused(0, -1), "CIFF document record 1: document \"d\" has length -1");
}

#[test]
fn a_hostile_length_is_refused_or_found_missing_without_its_memory() {
    // Over the limit of a header.
    let message = complaint(b"\xff\xff\xff\xff\xff\xff\xff\x7f");
    assert!(message.starts_with("CIFF header 1: a length of"), "{message}");
    // A varint without end.
    let message = complaint(&[0xff; 20]);
    assert!(message.starts_with("CIFF header 1: a length of"), "{message}");
    // Within the limit of a list because the header claims that number of documents.
    let header = HeaderMessage { num_docs: i32::MAX, ..valid_header() };
    let mut bytes = header.encode_length_delimited_to_vec();
    bytes.extend(b"\xff\xff\xff\xff\x7f\x0a");
    let mut reader = CiffReader::new(Cursor::new(bytes)).unwrap();
    let error = reader.next_list().unwrap_err();
    assert!(matches!(error, CiffError::Truncated { .. }), "{error}");
    assert!(reader.message_capacity() < 1 << 22);
}

#[test]
fn the_writer_refuses_what_the_format_cannot_hold() {
    let writer = || CiffWriter::new(Vec::new(), &header(1, 5)).unwrap();
    let cases: [&[(u32, u32)]; 5] = [&[(1, 1), (1, 1)], &[(2, 1), (1, 1)], &[(5, 1)], &[(0, 0)], &[(0, 1 << 31)]];
    for postings in cases {
        let error = writer().write_list("t", postings).unwrap_err();
        assert!(matches!(error, CiffError::Invalid { .. }), "{error}");
    }
    let too_many = Header { documents: 1 << 31, ..header(0, 0) };
    assert!(CiffWriter::new(Vec::new(), &too_many).is_err());
}

#[test]
fn the_writer_keeps_to_what_the_header_announced() {
    let writer = || CiffWriter::new(Vec::new(), &header(1, 1)).unwrap();
    let message = writer().write_document("d", 1).unwrap_err().to_string();
    assert_eq!(message, "CIFF document record 1: only 0 of 1 lists are written");
    let message = writer().finish().unwrap_err().to_string();
    assert_eq!(message, "CIFF postings list 1: missing, the header announced 1");
    let mut full = writer();
    full.write_list("t", &[(0, 1)]).unwrap();
    assert!(full.write_list("u", &[(0, 1)]).is_err());
    full.write_document("d", 1).unwrap();
    assert!(full.write_document("e", 1).is_err());
}

fn any_index() -> impl Strategy<Value = Everything> {
    (1u32..200).prop_flat_map(|documents| {
        let frequency = prop_oneof![1u32..10, Just(i32::MAX as u32)];
        let postings = prop::collection::btree_map(0..documents, frequency, 0..documents as usize);
        let lists = prop::collection::vec((".{0,8}", postings), 0..8);
        let ids = prop::collection::vec((".{0,8}", 0u32..1 << 31), documents as usize);
        (lists, ids).prop_map(move |(lists, ids)| {
            let lists: Vec<List> = lists
                .into_iter()
                .map(|(term, postings)| List { term, postings: postings.into_iter().collect() })
                .collect();
            let documents_of_ids = ids.into_iter().map(|(id, length)| Document { id, length });
            (header(lists.len() as u32, documents), lists, documents_of_ids.collect())
        })
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(everything in any_index()) {
        let bytes = write(&everything).unwrap();
        prop_assert_eq!(read(&bytes).unwrap(), everything);
    }

    #[test]
    fn changed_bytes_are_read_or_refused_without_panic(
        everything in any_index(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = write(&everything).unwrap();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok((header, lists, _)) = read(&bytes) {
            for list in lists {
                let ordered = list.postings.is_sorted_by(|left, right| left.0 < right.0);
                prop_assert!(ordered);
                let valid = |&(document, frequency): &(u32, u32)| document < header.documents && frequency > 0;
                prop_assert!(list.postings.iter().all(valid));
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // A valid file of random bytes is as good as impossible: the version must be there.
        prop_assert!(read(&bytes).is_err() || bytes.starts_with(&[2, 8, 1]));
    }
}
