//! Any bytes as a CIFF file: an error, or lists and documents that survive writing and reading again.
#![no_main]

use lanner_fuzz::write_seeds;
use lanner_index::corpus::ciff::{CiffError, CiffReader, CiffWriter, Document, Header, List};
use libfuzzer_sys::fuzz_target;

fn seeds() -> Vec<Vec<u8>> {
    let list = |term: &str, postings: &[(u32, u32)]| List { term: term.to_owned(), postings: postings.to_vec() };
    let document = |number: u32| Document { id: format!("d{number}"), length: number };
    let many: Vec<(u32, u32)> = (0..200).map(|number| (number, number % 3 + 1)).collect();
    let collections = [
        (vec![], vec![]),
        (vec![list("a", &[(0, 1)])], vec![document(0)]),
        (vec![list("a", &[(0, 2), (2, 1)]), list("b", &[(1, 300)])], (0..3).map(document).collect()),
        (vec![list("long", &many)], (0..200).map(document).collect()),
    ];
    collections.iter().map(|(lists, documents)| write(lists, documents).expect("a sound collection")).collect()
}

fn write(lists: &[List], documents: &[Document]) -> Result<Vec<u8>, CiffError> {
    let (list_count, document_count) = (lists.len() as u32, documents.len() as u32);
    let header = Header {
        lists: list_count,
        documents: document_count,
        total_lists: list_count,
        total_documents: document_count,
        total_tokens: documents.iter().map(|document| u64::from(document.length)).sum(),
        average_length: 1.0,
        description: "seed".to_owned(),
    };
    let mut writer = CiffWriter::new(Vec::new(), &header)?;
    for list in lists {
        writer.write_list(&list.term, &list.postings)?;
    }
    for document in documents {
        writer.write_document(&document.id, document.length)?;
    }
    writer.finish()
}

fn read(bytes: &[u8]) -> Result<(Vec<List>, Vec<Document>), CiffError> {
    let mut reader = CiffReader::new(bytes)?;
    let (mut lists, mut documents) = (Vec::new(), Vec::new());
    while let Some(list) = reader.next_list()? {
        lists.push(list);
    }
    while let Some(document) = reader.next_document()? {
        documents.push(document);
    }
    Ok((lists, documents))
}

fuzz_target!(init: write_seeds(seeds()), |data: &[u8]| {
    if let Ok((lists, documents)) = read(data)
        && let Ok(again) = write(&lists, &documents)
    {
        assert_eq!(read(&again).expect("what was written"), (lists, documents));
    }
});
