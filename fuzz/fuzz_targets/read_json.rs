//! Any bytes as JSON objects on any lines, which are cut anywhere without a change of the documents.
#![no_main]

use lanner_fuzz::{read_collection, write_files};
use lanner_index::corpus::Format;
use libfuzzer_sys::fuzz_target;

const SEEDS: &[&[u8]] = &[
    b"[\n {\"id\": \"a\", \"text\": \"one } \\\" [\"},\n {\"id\": 2, \"contents\": [\"x\", \"y\"]}\n]\n",
    b"{\"_id\":\"a\"}{\"docno\":\"b\",\"body\":{\"x\":[1]}}\n7 \"x\" {\"id\":",
    b"[[{\"id\":\"\\ud83d\\ude00\"}",
];

fuzz_target!(init: write_files(SEEDS), |data: &[u8]| {
    read_collection(Some(Format::Json), data);
});
