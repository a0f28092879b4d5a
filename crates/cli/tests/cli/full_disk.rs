//! A disk that is full, played by the limit on the size of files (whose signal the program ignores): the build stops, the old
//! index stays.
#![cfg(target_os = "linux")]

use crate::program::{Place, verified};
use crate::texts::{BIRDS, documents};

#[test]
fn a_full_disk_stops_the_build_and_keeps_the_old_index() {
    let place = Place::new();
    place.write("birds.jsonl", BIRDS);
    place.run("index --input birds.jsonl --index i --quiet").succeeded();
    let before = verified(&place.path("i"));
    place.write("in.jsonl", documents(4_000, 60, 50_000, 9));
    // Blocks of 512 bytes: from the first write to the middle of the segment.
    for blocks in [0, 1, 16, 128, 512, 1024] {
        let line = format!("ulimit -f {blocks}; exec \"$LANNER\" index --input in.jsonl --index i --quiet");
        let error = place.shell(&line).error();
        assert!(error.contains("free disk space or choose another folder"), "{blocks} blocks: {error}");
        assert_eq!(verified(&place.path("i")), before, "{blocks} blocks");
        assert_eq!(place.names("i"), ["lock", "manifest-00000001", "segment-00000001"], "{blocks} blocks");
    }
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    assert_eq!(verified(&place.path("i")), (4_000, 2));
}

#[test]
fn a_full_disk_leaves_no_half_run_and_no_half_export() {
    let place = Place::new();
    place.write("in.jsonl", documents(2_000, 60, 500, 9));
    place.write("queries", "bake ti lo mu ra\n".repeat(100));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    for command in ["search --index i --queries queries -k 100 --run out --quiet", "export --index i --output out"] {
        let line = format!("ulimit -f 16; exec \"$LANNER\" {command}");
        let error = place.shell(&line).error();
        assert!(error.contains("File too large"), "{command}: {error}");
        assert_eq!(place.names("."), ["i", "in.jsonl", "queries"], "{command}");
    }
}
