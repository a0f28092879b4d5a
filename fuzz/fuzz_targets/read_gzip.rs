//! Any bytes as the content of gzip members with zeros between them, and any bytes as a compressed file.
#![no_main]

use lanner_fuzz::{read_collection, write_seeds};
use lanner_index::corpus::{Corpus, CorpusOptions, Format};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

/// A member with a stored block, which needs no compressor, but for its checksum.
fn member(content: &[u8]) -> Vec<u8> {
    let length = content.len() as u16;
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let block = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    let trailer = [crc32fast::hash(content).to_le_bytes(), u32::from(length).to_le_bytes()].concat();
    [&header[..], &block, content, &trailer].concat()
}

/// The documents of a file of lines, each one by its id.
fn ids(file: Vec<u8>) -> Vec<String> {
    let options = CorpusOptions { format: Some(Format::Tsv), ..CorpusOptions::default() };
    let mut corpus = Corpus::read(Path::new("file"), Cursor::new(file), options).expect("a sound file");
    let mut ids = Vec::new();
    while let Some(batch) = corpus.next_batch().expect("a sound file") {
        batch
            .documents(&mut |record| ids.push(record.map_or_else(|problem| problem.what, |found| found.id.to_owned())));
    }
    ids
}

fuzz_target!(init: write_seeds([member(b"a\tx\n"), [member(b"a\tx\n"), vec![0; 9], member(b"b\ty\n")].concat()]), |data: &[u8]| {
    // Any bytes, compressed or not, of which one batch is small.
    read_collection(None, &[&[9], data].concat());
    let content = &data[..data.len().min(60_000)];
    let (first, second) = content.split_at(content.len() / 2);
    // What begins like compressed data, or with a mark of the byte order, is read otherwise if it is plain.
    let plain = [b"x", content].concat();
    let packed = [member(&[b"x", first].concat()), vec![0; data.len() % 700], member(second), vec![0; 3]].concat();
    assert_eq!(ids(packed), ids(plain));
});
