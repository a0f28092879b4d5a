//! The program from end to end: the tiny suites, the report, figures of papers, and scaled collections.

use lanner::internals::device::decode::DECODE;
use lanner_bench::{synthetic_queries, write_synthetic};
use lanner_index::codec::CodecName;
use lanner_index::open::Index;
use requirements::{needs, test};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

#[path = "../../engine/tests/requirements/mod.rs"]
mod requirements;

fn main() -> ExitCode {
    let has_simulator = DECODE.kernel.simulate.is_some();
    requirements::run([
        test(the_tiny_suite_checks_measures_and_writes_its_result),
        needs(has_simulator, test(the_tiny_gpu_suite_runs_on_the_simulator)),
        needs(has_simulator, test(the_tiny_load_suite_runs_on_the_simulator)),
        needs(has_simulator, test(the_tiny_lists_suite_runs_on_the_simulator)),
        test(a_load_is_put_on_an_index),
        needs(has_simulator, test(the_papers_figures_about_a_gpu_run_on_the_simulator)),
        test(tables_of_a_paper_are_made_without_git),
        test(a_collection_is_scaled_to_a_file_and_to_an_index),
        test(entries_to_reproduce_are_listed),
        test(errors_are_one_line_and_say_what_to_do),
    ])
}

fn lanner_bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanner-bench")).args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read_json(folder: &Path, name: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

fn the_tiny_suite_checks_measures_and_writes_its_result() {
    // A folder within the project, so that the commit is known if there is one.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = lanner_bench(folder.path(), &["run", "tiny", "--out", "results"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "Building the index",
        "Opening the index",
        "made-up: time of a query",
        "lanner gives the oracle's hits",
        "made-up: Lanner's times divided by those of the peers, to document numbers",
        "made-up: Lanner's times divided by those of the peers, to external ids",
        "best: tantivy",
        "Growth of the mean from made-up to scaled",
        "made-up, long: time of a query",
        "made-up: bytes of the lists",
        "lanner-smallest-bisected",
        "scaled, long: time of a query",
        "made-up: queries per second of batches",
        "documents: bits per posting",
        "weights: decoded numbers per nanosecond",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let left_out = "LEFT OUT: not-there: not-there.jsonl.zst is neither in";
    assert!(text(&output.stderr).contains(left_out), "{}", text(&output.stderr));
    let results = folder.path().join("results");
    let json = read_json(&results, "tiny");
    let rows = json["measurements"].as_array().unwrap();
    let terms = |log: &str, answer: &str| -> BTreeSet<&str> {
        let labels = rows.iter().filter(|row| row["kind"] == "race").map(|row| &row["labels"]);
        let labels = labels.filter(|labels| labels["log"] == log && labels["answer"] == answer);
        labels.filter_map(|labels| labels["terms"].as_str()).collect()
    };
    assert_eq!(terms("made-up", "documents"), BTreeSet::from(["1-4", "5+", "all"]));
    assert_eq!(terms("made-up", "ids"), BTreeSet::from(["all"]));
    assert_eq!(terms("long", "documents"), BTreeSet::from(["12"]));
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
        assert!(text(&report.stderr).contains("its commit is unknown"));
    } else {
        assert!(report.status.success(), "{}", text(&report.stderr));
        assert!(std::fs::read_to_string(results.join("report.md")).unwrap().contains("tiny-build.svg"));
    }
}

fn the_tiny_gpu_suite_runs_on_the_simulator() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = ["run", "tiny-gpu", "--device", "simulator", "--out", "results", "--cache", "cache"];
    let output = lanner_bench(folder.path(), &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the device computed all of its"), "{}", text(&output.stderr));
    for part in ["The collection and the queries", "Batches on the GPU", "The CPU", "Decoding on the device"] {
        assert!(text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
    let results = folder.path().join("results");
    let json = read_json(&results, "tiny-gpu");
    assert_eq!((&json["ran_on"], &json["provenance"]["device"]["gpu"]), (&"simulator".into(), &"simulator".into()));
    assert_eq!(json["provenance"]["command"], "lanner-bench run tiny-gpu --device simulator");
    assert_eq!(json["targets"][0]["is_met"], true);
    let rows = json["measurements"].as_array().unwrap();
    let count = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    // Two scores, three modes and two k; one and all threads; three batch sizes; OR and AND+OR with two sizes and four
    // ways; OR and AND; every codec with a GPU decoder with two outputs.
    let decoders = CodecName::ALL.into_iter().filter(|codec| codec.has_gpu_decoder()).count();
    let counts = ["throughput", "latency", "cpu", "batch", "small", "sent", "decode", "collection"].map(count);
    assert_eq!(counts, [12, 12, 24, 6, 32, 4, 2 * decoders, 1]);
    let numbers = rows.iter().flat_map(|row| row["values"].as_object().unwrap().values());
    assert!(numbers.into_iter().all(|value| value.is_number()), "a value is not a number");
    let queries = rows.iter().find(|row| row["kind"] == "queries").unwrap();
    assert!((2000.0..4000.0).contains(&queries["values"]["kept_postings"].as_f64().unwrap()), "{queries}");
    let uploaded = rows.iter().find(|row| row["kind"] == "sent").unwrap();
    assert!(uploaded["values"]["bytes_a_query"].as_f64().unwrap() > 1000.0, "{uploaded}");
    for plot in ["tiny-gpu-latency", "tiny-gpu-batches"] {
        assert!(results.join(format!("{plot}.svg")).metadata().unwrap().len() > 1000);
    }
    let report = lanner_bench(folder.path(), &["report", "--out", "results"]);
    assert!(!report.status.success());

    let part = ["--only", "part=latency", "--only", "mode=and", "--only", "score=impact", "--queries", "2"];
    let output = lanner_bench(folder.path(), &[&run[..], &part, &["--label", "part"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = read_json(&results, "tiny-gpu-part");
    let rows = json["measurements"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["labels"]["mode"] == "and" && row["kind"] == "latency").count(), 2);
    assert_eq!(rows.len(), 5, "the collection, the queries, the connection and two cells");
    let command = json["provenance"]["command"].as_str().unwrap();
    assert!(command.ends_with("--only score=impact --queries 2 --device simulator --label part"), "{command}");
}

fn the_tiny_load_suite_runs_on_the_simulator() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = ["run", "tiny-load", "--device", "simulator", "--out", "results", "--cache", "cache"];
    let output = lanner_bench(folder.path(), &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results = folder.path().join("results");
    let json = read_json(&results, "tiny-load");
    assert_eq!((&json["ran_on"], &json["targets"][0]["is_met"]), (&"simulator".into(), &true.into()));
    let rows = json["measurements"].as_array().unwrap();
    let count = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    // OR and AND: from plans and from text; resident and cached lists; two rates; four policies, lists in three places, and
    // three loads, the light one asked in two ways; four policies, resident and cached lists; two steps; two routes; five
    // kinds of overhead; three metrics of AND.
    let kinds = ["stream", "together", "open", "policy", "cold", "step", "costs", "relearning", "overhead", "metric"];
    assert_eq!(kinds.map(count), [4, 4, 4, 96, 16, 4, 4, 4, 10, 3]);
    for row in rows {
        let mut values = row["values"].as_object().unwrap().values();
        assert!(values.all(|value| value.is_number()), "a value is not a number: {row}");
    }
    for row in rows.iter().filter(|row| row["kind"] == "open" || row["kind"] == "policy") {
        let value = |name: &str| row["values"][name].as_f64().unwrap();
        assert_eq!(value("queries"), value("answered") + value("refused"), "{row}");
        assert_eq!(value("answered"), value("by_cpu") + value("by_gpu"), "{row}");
        let is_gpu = row["labels"]["policy"] == "gpu";
        assert!(!is_gpu || value("by_cpu") == 0.0, "{row}");
    }
    for plot in ["tiny-load-open", "tiny-load-step"] {
        assert!(results.join(format!("{plot}.svg")).metadata().unwrap().len() > 1000);
    }

    let part = ["--only", "part=open", "--only", "mode=and", "--senders", "2", "--label", "part"];
    let output = lanner_bench(folder.path(), &[&run[..], &part].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("costs are calibrated"), "{}", text(&output.stderr));
    let json = read_json(&results, "tiny-load-part");
    let rows = json["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 5, "the collection, the queries, the capacity and two rates: {rows:?}");
    let command = json["provenance"]["command"].as_str().unwrap();
    assert!(command.ends_with("--device simulator --senders 2 --label part"), "{command}");
    assert!(text(&output.stdout).contains("sent by 2 threads"), "{}", text(&output.stdout));
}

fn the_tiny_lists_suite_runs_on_the_simulator() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run = ["run", "tiny-lists", "--device", "simulator", "--out", "results", "--cache", "cache"];
    let output = lanner_bench(folder.path(), &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results = folder.path().join("results");
    let json = read_json(&results, "tiny-lists");
    assert_eq!((&json["ran_on"], &json["targets"][0]["is_met"]), (&"simulator".into(), &true.into()));
    let rows = json["measurements"].as_array().unwrap();
    let of_kind = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
    let kinds = ["directories", "memory", "overlap", "drift", "opening", "beyond", "replay"];
    // OR and AND: lists in six places, in one, in three, with almost no memory, and in two caches by five policies.
    assert_eq!(kinds.map(|kind| of_kind(kind).len()), [1, 12, 2, 2, 6, 2, 20]);
    for row in rows {
        let mut values = row["values"].as_object().unwrap().values();
        assert!(values.all(|value| value.is_number()), "a value is not a number: {row}");
    }
    for row in of_kind("memory") {
        let value = |name: &str| row["values"][name].as_f64().unwrap();
        let (held, lists) = (value("held_of_lists"), row["labels"]["lists"].as_str().unwrap());
        let expected = match lists {
            "resident" => 1.0..=1.0,
            "uploaded" | "host" => 0.0..=0.0,
            "directories" => 0.001..=0.028,
            percent => {
                let share = percent.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
                0.999 * share..=share
            }
        };
        assert!(expected.contains(&held), "{lists}: {held}");
        assert_eq!(value("host_bytes_a_query") > 0.0, !["resident", "uploaded"].contains(&lists), "{row}");
    }
    for row in of_kind("opening") {
        assert!(row["values"]["loaded_s"].as_f64() >= row["values"]["first_s"].as_f64(), "{row}");
    }
    // With the larger cache, no policy reads more in host memory.
    let read = |row: &serde_json::Value| row["values"]["read_kb"].as_f64().unwrap();
    let [large, small] = ["40%", "10%"].map(|lists| {
        let rows = of_kind("replay").into_iter().filter(|row| row["labels"]["lists"] == lists);
        rows.map(read).collect::<Vec<_>>()
    });
    assert!(large.iter().zip(&small).all(|(large, small)| large <= small), "{large:?}, {small:?}");
    let shared = of_kind("overlap")[0]["values"]["shared_percent"].as_f64().unwrap();
    assert!(shared < 10.0, "{shared} % of the bytes are read before and after the change");
    let collection = of_kind("collection")[0];
    assert!(collection["values"]["build_peak_bytes"].as_f64().unwrap() > 1e6, "{collection}");
    for plot in ["tiny-lists-memory", "tiny-lists-drift"] {
        assert!(results.join(format!("{plot}.svg")).metadata().unwrap().len() > 1000);
    }

    let part = ["--only", "part=memory", "--only", "mode=and", "--only", "lists=40%", "--label", "part"];
    let output = lanner_bench(folder.path(), &[&run[..], &part].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = read_json(&results, "tiny-lists-part");
    assert_eq!(
        json["measurements"].as_array().unwrap().len(),
        4,
        "the collection, the queries, directories and a cell"
    );
}

fn a_load_is_put_on_an_index() {
    let folder = tempfile::tempdir().unwrap();
    write_synthetic(&folder.path().join("documents.jsonl"), 500).unwrap();
    std::fs::write(folder.path().join("queries.txt"), synthetic_queries(40).join("\n")).unwrap();
    let arrivals = synthetic_queries(30).into_iter().enumerate().map(|(at, query)| format!("{}\t{query}\n", 7 + at));
    std::fs::write(folder.path().join("arrivals.tsv"), arrivals.collect::<String>()).unwrap();
    let scaled = ["scale", "--input", "documents.jsonl", "--documents", "2000", "--index", "index", "--no-compare"];
    assert!(lanner_bench(folder.path(), &scaled).status.success());
    let load = |arguments: &[&str]| {
        let output =
            lanner_bench(folder.path(), &[&["load", "--index", "index", "--policy", "cpu"], arguments].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        let line = |what: &str| shown.lines().find(|line| line.trim_start().starts_with(what)).map(str::to_owned);
        ["queries  ", "answered  ", "refused", "p99  "].map(|what| line(what).unwrap_or_default())
    };
    let log = ["--queries", "queries.txt", "--seconds", "0.1"];
    let [_, answered, refused, p99] = load(&[&log[..], &["--rate", "500,2000"]].concat());
    assert_eq!((answered.split_whitespace().count(), p99.split_whitespace().count()), (3, 3), "{answered} {p99}");
    assert!(refused.ends_with(" 0"), "{refused}");
    let [_, answered, ..] = load(&["--replay", "arrivals.tsv", "--speed", "1000"]);
    assert!(answered.ends_with(" 30"), "{answered}");
    assert!(!load(&[&log[..], &["--clients", "2", "--mode", "and"]].concat())[3].is_empty());
    assert!(!load(&log)[0].is_empty());
}

fn the_papers_figures_about_a_gpu_run_on_the_simulator() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let run =
        ["reproduce", "gpu", "--suite", "tiny-gpu", "--device", "simulator", "--out", "results", "--cache", "cache"];
    let output = lanner_bench(folder.path(), &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results = folder.path().join("results");
    let listed = text(&lanner_bench(folder.path(), &["reproduce", "--list"]).stdout);
    let of_gpu = listed.lines().filter(|line| line.split_whitespace().nth(1) == Some("gpu"));
    let names: Vec<String> = of_gpu.map(|line| line.split(' ').next().unwrap_or_default().replace('/', "-")).collect();
    assert_eq!(names.len(), 15);
    for name in &names {
        let json = read_json(&results, name);
        assert_eq!(json["ran_on"], "simulator", "{name}");
        assert!(json["provenance"]["command"].as_str().unwrap().contains("--device simulator"), "{name}");
        let tables = json["tables"].as_array().unwrap();
        assert!(tables.iter().all(|table| !table["rows"].as_array().unwrap().is_empty()), "{name}: {tables:?}");
        let rows = json["measurements"].as_array().unwrap();
        let numbers = rows.iter().flat_map(|row| row["values"].as_object().unwrap().values());
        assert!(numbers.into_iter().all(|value| value.is_number()), "{name}: a value is not a number");
        for plot in json["plots"].as_array().unwrap() {
            assert!(results.join(format!("{}.svg", plot[0].as_str().unwrap())).metadata().unwrap().len() > 1000);
        }
        assert!(!json["plots"].as_array().unwrap().is_empty(), "{name} has no plot");
    }
    let ratios = read_json(&results, "griffin-figure8");
    assert_eq!(ratios["tables"][0]["rows"].as_array().unwrap().len(), 7, "a group of ratios has no pairs");
    assert!(!lanner_bench(folder.path(), &["report", "--out", "results"]).status.success());

    let only = ["--only", "entry=griffin/figure7,table99", "--label", "again"];
    let output = lanner_bench(folder.path(), &[&run[..], &only].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(results.join("griffin-figure7-again.json").is_file());
    assert!(!results.join("cooperative-figure7-again.json").exists());
}

fn tables_of_a_paper_are_made_without_git() {
    let folder = tempfile::tempdir().unwrap();
    write_synthetic(&folder.path().join("documents.jsonl"), 1500).unwrap();
    std::fs::write(folder.path().join("queries.txt"), synthetic_queries(40).join("\n")).unwrap();
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
    for part in ["saat/table1: milliseconds per query", "37 % there", "clauses of Algorithm 2", "saat/figure2: seconds"]
    {
        assert!(text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
    for name in ["saat-table1", "saat-table2", "saat-table3", "saat-figure2"] {
        let json = read_json(&folder.path().join("results"), &format!("{name}-made-up"));
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

fn a_collection_is_scaled_to_a_file_and_to_an_index() {
    let folder = tempfile::tempdir().unwrap();
    write_synthetic(&folder.path().join("source.jsonl"), 300).unwrap();
    let scale = ["scale", "--input", "source.jsonl", "--documents", "1000"];
    let to_file = lanner_bench(folder.path(), &[&scale[..], &["--out", "scaled.jsonl.zst"]].concat());
    assert!(to_file.status.success(), "{}", text(&to_file.stderr));
    let to_index = lanner_bench(folder.path(), &[&scale[..], &["--index", "index", "--threads", "3"]].concat());
    assert!(to_index.status.success(), "{}", text(&to_index.stderr));
    assert_eq!(text(&to_file.stdout), text(&to_index.stdout), "a file and an index give the same collection");
    assert!(text(&to_file.stdout).contains("bits per posting"));
    let index = Index::open(folder.path().join("index")).unwrap();
    assert_eq!(index.documents(), 1000);
    let with_impacts = ["--index", "weighed", "--weights", "tf,impact", "--no-compare"];
    let weighed = lanner_bench(folder.path(), &[&scale[..], &with_impacts].concat());
    assert!(weighed.status.success(), "{}", text(&weighed.stderr));
    let index = Index::open(folder.path().join("weighed")).unwrap();
    let context = index.segment().list_context();
    assert!(context.has_frequencies && context.has_impacts);
}

fn entries_to_reproduce_are_listed() {
    let output = lanner_bench(Path::new("."), &["reproduce", "--list"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("cooperative/figure8    gpu  shares"), "{}", text(&output.stdout));
}

fn errors_are_one_line_and_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (
            &["run", "nonsense"][..],
            "give one of codecs, foundation, gpu, lists, load, memory, peers-cpu, tiny, tiny-gpu",
        ),
        (&["run", "foundation", "--data", "nowhere"], "set LANNER_DATA or give --data"),
        (&["run", "tiny", "--only", "colour=red"], "one of the keys collection, engine"),
        (&["run", "tiny-gpu", "--only", "part=nothing"], "give some of throughput, latency"),
        (&["run", "tiny-load", "--only", "part=nothing"], "give some of stream, together"),
        (&["run", "tiny-lists", "--only", "part=nothing"], "give some of memory, drift"),
        (&["run", "codecs", "--documents", "9"], "--documents needs a suite that scales"),
        (&["run", "tiny-gpu", "--senders", "4"], "--senders needs a suite with [load]; tiny-gpu has none"),
        (&["reproduce", "nonsense"], "there are griffin/table1"),
        (&["reproduce", "griffin", "--only", "entry=figure99"], "--only selects nothing of griffin/table1"),
        (&["report", "--out", "nowhere"], "nowhere"),
    ] {
        let output = lanner_bench(folder.path(), arguments);
        let message = text(&output.stderr);
        assert!(!output.status.success());
        assert!(message.lines().count() <= 2 && message.contains(expected), "{message}");
    }
}
