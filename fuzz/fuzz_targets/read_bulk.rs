//! Any bytes as the actions and sources of a bulk file, which are not cut from each other.
#![no_main]

use lanner_fuzz::{read_collection, write_files};
use lanner_index::corpus::Format;
use libfuzzer_sys::fuzz_target;

const SEEDS: &[&[u8]] = &[
    b"{\"index\":{\"_id\":\"a\"}}\n{\"text\":\"x\"}\n{\"create\":{}}\n{\"id\":1}\n",
    b"{\"delete\":{\"_id\":1}}\n{\"update\":{\"_id\":1}}\n{\"doc\":{}}\n\n{\"text\":1}\n{\"index\":{}}",
];

fuzz_target!(init: write_files(SEEDS), |data: &[u8]| {
    read_collection(Some(Format::Bulk), data);
});
