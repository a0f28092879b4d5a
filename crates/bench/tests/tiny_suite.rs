//! The program from end to end: the tiny suite, the report of its result, and a scaled collection.

use std::path::Path;
use std::process::{Command, Output};

fn lanner_bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanner-bench")).args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_tiny_suite_checks_measures_and_writes_its_result() {
    // A folder within the project, so that the result knows its commit where there is one.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = lanner_bench(folder.path(), &["run", "tiny", "--out", "results"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "Building the index",
        "Opening the index",
        "made-up: time of a query",
        "lanner gives the oracle's hits",
        "made-up: our times divided by the peers'",
        "made-up, long: time of a query",
        "made-up: bytes of the lists",
        "lanner-smallest-bisected",
        "scaled, long: time of a query",
        "made-up: queries a second of batches",
        "documents: bits a posting",
        "weights: decoded numbers a nanosecond",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let results = folder.path().join("results");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(results.join("tiny.json")).unwrap()).unwrap();
    assert_eq!(json["provenance"]["command"], "lanner-bench run tiny");
    assert!(json["measurements"].as_array().unwrap().len() > 20);
    assert_eq!(json["targets"][0]["is_met"], true);
    let whole = json.to_string();
    assert!(!whole.contains(&*folder.path().to_string_lossy()), "a path of this machine is in the result");
    for plot in ["tiny-build", "tiny-query-made-up", "tiny-made-up-long", "tiny-documents-bits", "tiny-weights-speed"] {
        assert!(results.join(format!("{plot}.png")).metadata().unwrap().len() > 1000);
        assert!(results.join(format!("{plot}.svg")).metadata().unwrap().len() > 1000);
    }

    let report = lanner_bench(folder.path(), &["report", "--out", "results"]);
    if json["provenance"]["commit"] == "unknown" {
        assert!(text(&report.stderr).contains("does not say its commit"));
    } else {
        assert!(report.status.success(), "{}", text(&report.stderr));
        assert!(std::fs::read_to_string(results.join("report.md")).unwrap().contains("tiny-build.svg"));
    }
}

/// Made-up documents as a file.
fn write_documents(path: &Path, count: usize) {
    let lines: String = lanner_bench::collection::synthetic_documents(count)
        .into_iter()
        .map(|(id, title, text)| format!("{}\n", serde_json::json!({ "id": id, "title": title, "text": text })))
        .collect();
    std::fs::write(path, lines).unwrap();
}

#[test]
fn a_papers_tables_are_made_without_git_by_one_call() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(&folder.path().join("documents.jsonl"), 1500);
    std::fs::write(folder.path().join("queries.txt"), lanner_bench::collection::synthetic_queries(40).join("\n"))
        .unwrap();
    let files = ["--input", "documents.jsonl", "--queries", "queries.txt", "--cache", "cache", "--out", "results"];
    let counts = ["--count", "10", "--threads", "2", "--runs", "1", "--label", "made-up"];
    let output = Command::new(env!("CARGO_BIN_EXE_lanner-bench"))
        .args(["reproduce", "saat"].iter().chain(&files).chain(&counts))
        .current_dir(folder.path())
        .env("LANNER_COMMIT", "0123abc-dirty")
        .env("PATH", "")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr).matches("building the index").count(), 1, "{}", text(&output.stderr));
    for part in ["saat/table1: milliseconds a query", "37 % there", "clauses of Algorithm 2", "saat/figure2: seconds"] {
        assert!(text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
    for name in ["saat-table1", "saat-table2", "saat-table3", "saat-figure2"] {
        let result = folder.path().join(format!("results/{name}-made-up.json"));
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
        assert_eq!(
            (&json["provenance"]["commit"], &json["provenance"]["uncommitted_changes"]),
            (&"0123abc".into(), &true.into())
        );
        assert!(json["provenance"]["command"].as_str().unwrap().contains("--input documents.jsonl"));
    }
    assert!(folder.path().join("results/saat-figure2-made-up-speedup.png").is_file());
    let report = lanner_bench(folder.path(), &["report", "--out", "results"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_collection_is_scaled_to_a_file_and_to_an_index() {
    let folder = tempfile::tempdir().unwrap();
    write_documents(&folder.path().join("source.jsonl"), 300);
    let scale = ["scale", "--input", "source.jsonl", "--documents", "1000"];
    let to_file = lanner_bench(folder.path(), &[&scale[..], &["--out", "scaled.jsonl.zst"]].concat());
    assert!(to_file.status.success(), "{}", text(&to_file.stderr));
    let to_index = lanner_bench(folder.path(), &[&scale[..], &["--index", "index", "--threads", "3"]].concat());
    assert!(to_index.status.success(), "{}", text(&to_index.stderr));
    assert_eq!(text(&to_file.stdout), text(&to_index.stdout), "both ways give the same collection");
    assert!(text(&to_file.stdout).contains("bits a posting"));
    let index = lanner_index::open::Index::open(folder.path().join("index")).unwrap();
    assert_eq!(index.documents(), 1000);
}

#[test]
fn mistakes_get_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["run", "nonsense"][..], "give one of codecs, foundation, memory, peers-cpu, tiny"),
        (&["run", "foundation", "--data", "nowhere"], "set LANNER_DATA or give --data"),
        (&["run", "tiny", "--only", "colour=red"], "one of the keys collection, engine"),
        (&["reproduce", "nonsense"], "there are griffin/table1"),
        (&["report", "--out", "nowhere"], "nowhere"),
    ] {
        let output = lanner_bench(folder.path(), arguments);
        let message = text(&output.stderr);
        assert!(!output.status.success());
        assert!(message.lines().count() <= 2 && message.contains(expected), "{message}");
    }
}
