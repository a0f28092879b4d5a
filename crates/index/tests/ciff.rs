//! The toy index that the CIFF project publishes is read, and written back to the same bytes. It is part of the data
//! that `LANNER_DATA` names.

#[path = "../../engine/tests/requirements/mod.rs"]
mod requirements;

use lanner_index::corpus::ciff::{CiffReader, CiffWriter, Document, List};
use requirements::{data_folder, needs_data, test};
use std::process::ExitCode;

fn main() -> ExitCode {
    requirements::run([needs_data(test(the_toy_index_of_the_format_is_read_and_written_back))])
}

fn the_toy_index_of_the_format_is_read_and_written_back() {
    let path = data_folder().join("ciff/toy-complete-20200309.ciff");
    let mut reader = CiffReader::open(&path).unwrap();
    let header = reader.header().clone();
    assert_eq!((header.lists, header.documents, header.total_tokens), (9, 3, 16));
    let mut writer = CiffWriter::new(Vec::new(), &header).unwrap();
    let mut lists = Vec::new();
    while let Some(list) = reader.next_list().unwrap() {
        writer.write_list(&list.term, &list.postings).unwrap();
        lists.push(list);
    }
    let list = |term: &str, postings: &[(u32, u32)]| List { term: term.to_owned(), postings: postings.to_vec() };
    assert_eq!(
        lists[4..8],
        [
            list("enough", &[(2, 1)]),
            list("head", &[(0, 1), (1, 1), (2, 1)]),
            list("simpl", &[(1, 1), (2, 1)]),
            list("text", &[(0, 1), (1, 1), (2, 3)]),
        ]
    );
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document().unwrap() {
        writer.write_document(&document.id, document.length).unwrap();
        documents.push(document);
    }
    let document = |(id, length): (&str, u32)| Document { id: id.to_owned(), length };
    assert_eq!(documents, [("WSJ_1", 6), ("TREC_DOC_1", 4), ("DOC222", 6)].map(document));
    assert_eq!(writer.finish().unwrap(), std::fs::read(&path).unwrap());
    let mut opened = CiffReader::open(&path).unwrap();
    assert_eq!(opened.next_document().unwrap(), Some(document(("WSJ_1", 6))), "lists may be skipped");
}
