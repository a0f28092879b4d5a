//! Any bytes as TREC documents: tags, attributes, entities.
#![no_main]

use lanner_fuzz::{read_collection, write_files};
use lanner_index::corpus::Format;
use libfuzzer_sys::fuzz_target;

const SEEDS: &[&[u8]] = &[
    b"<DOC id=\"a>b\">\n<DOCNO> 1 </DOCNO><TITLE>caf&#233; &eacute; &#xE9;</TITLE><p x=\'>\'>a &amp; b</p></DOC>\n",
    b"<doc><docno>2</docno><!-- > --> 1 < 2 <a b=\"x></DOC> stray <DOC>",
];

fuzz_target!(init: write_files(SEEDS), |data: &[u8]| {
    read_collection(Some(Format::Trec), data);
});
