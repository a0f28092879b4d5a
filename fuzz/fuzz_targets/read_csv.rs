//! Any bytes as CSV, which is cut at records and nowhere else.
#![no_main]

use lanner_fuzz::{read_collection, write_files};
use lanner_index::corpus::Format;
use libfuzzer_sys::fuzz_target;

const SEEDS: &[&[u8]] = &[
    b"id,title,text\r\na,\"x, y\",\"one\ntwo\"\r\n\r\nb,,\"say \"\"hi\"\"\"\n",
    b"ID;Body\n1;\"open\n2;x;y\n",
    b"\xef\xbb\xbfdocid\tcontents\n1\t5\" pipe\n",
];

fuzz_target!(init: write_files(SEEDS), |data: &[u8]| {
    read_collection(Some(Format::Csv), data);
});
