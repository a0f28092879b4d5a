//! The same input gives the same bytes for any number of threads and any memory.

use crate::program::Place;
use crate::texts::documents;

#[test]
fn files_are_identical_for_any_threads_and_memory() {
    check("given");
}

#[test]
fn bisected_files_are_identical_for_any_threads_and_memory() {
    check("bisection");
}

fn check(order: &str) {
    let place = Place::new();
    place.write("in.jsonl", documents(40_000, 70, 400_000, 5));
    let build = |index: &str, options: &str| {
        let line = format!(
            "index --input in.jsonl --index {index} --store title --weights tf,impact --order {order} --json {options}"
        );
        let report = place.run(&line).json();
        let segment = std::fs::read(place.path(&format!("{index}/segment-00000001"))).unwrap();
        let manifest = std::fs::read(place.path(&format!("{index}/manifest-00000001"))).unwrap();
        (report["runs"].as_u64().unwrap(), segment, manifest)
    };
    let (runs, segment, manifest) = build("one", "--threads 1 --memory 1GiB");
    assert_eq!(runs, 0);
    for (index, options) in [("two", "--threads 2 --memory 32MiB"), ("three", "--threads 3 --memory 1GiB")] {
        let (runs, other_segment, other_manifest) = build(index, options);
        assert_eq!(runs > 0, options.contains("32MiB"), "{options}: {runs} runs");
        // Not assert_eq, which would print megabytes.
        assert!(segment == other_segment && manifest == other_manifest, "{options}");
    }
}
