//! Where queries are answered makes no difference to the answers.

use crate::program::{Outcome, Place, birds};
use crate::texts::documents;
use serde_json::Value;

/// Whether the program can simulate a GPU; where it cannot, it must say so.
fn has_simulator() -> bool {
    let has_simulator = lanner::internals::device::decode::DECODE.kernel.simulate.is_some();
    if !has_simulator {
        assert!(std::env::var_os("LANNER_STRICT").is_none(), "the simulator was not compiled");
        eprintln!("skipped: the simulator was not compiled");
        let error = birds().run("search --index birds --executor simulator falcon").error();
        assert!(error.starts_with("this build has no simulator, since no C++ compiler was found"), "{error}");
    }
    has_simulator
}

fn place() -> Place {
    let place = Place::new();
    place.write("in.jsonl", documents(600, 30, 200, 7));
    place.run("index --input in.jsonl --index i --weights tf,impact --quiet").succeeded();
    place.write("queries.tsv", "q1\tke ti\nq2\tzzzz\nq3\tlo mu ra\nq4\t\nq5\tke^3 lo\n");
    place
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_simulator_answers_single_queries_as_the_cpu_does() {
    if !has_simulator() {
        return;
    }
    let place = place();
    for options in ["--mode or", "--mode and -k 3", "--mode and-or -k 300", "--score impact"] {
        let search = |executor: &str| {
            let line = format!("search --index i --json --trace {executor} {options} ke ti^2 lo");
            place.run(&line).json()
        };
        let (expected, simulated) = (search(""), search("--executor simulator --gpu-memory 1MiB"));
        assert!(!expected["hits"].as_array().unwrap().is_empty(), "{options}");
        assert_eq!((&simulated["hits"], &simulated["exact"]), (&expected["hits"], &true.into()), "{options}");
        let places = |answer: &Value| -> Vec<Value> {
            answer["trace"].as_array().unwrap().iter().map(|step| step["place"].clone()).collect()
        };
        assert_eq!(places(&simulated)[..2], ["cpu", "simulator"], "{options}: planned here, answered there");
        assert!(places(&expected).iter().all(|place| place == "cpu"), "{options}");
    }
    let text = place.run("search --index i --trace --executor simulator lo").succeeded();
    assert!(text.contains("on simulator"), "{text}");
}

#[test]
fn the_simulator_answers_step_by_step_where_that_is_asked_for() {
    if !has_simulator() {
        return;
    }
    let place = place();
    for (options, algorithm, steps) in [
        ("--mode and", "term-at-a-time", &["plan", "decode", "weigh", "intersect", "select"][..]),
        ("--mode and", "merge-path", &["plan", "decode", "weigh", "intersect", "select"]),
        ("--mode and --score impact", "parallel-merge-find", &["plan", "decode", "weigh", "intersect", "select"]),
        ("--mode or", "accumulators", &["plan", "clear", "accumulate", "gather", "select"]),
    ] {
        let search =
            |more: &str| place.run(&format!("search --index i --json --trace {options} {more} ke ti lo")).json();
        let (expected, simulated) = (search(""), search(&format!("--executor simulator --algorithm {algorithm}")));
        assert_eq!(simulated["hits"], expected["hits"], "{algorithm}");
        let names: Vec<&str> =
            simulated["trace"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, steps, "{algorithm}");
        // Without a device the CPU runs its own algorithm, and says so.
        let on_cpu = search(&format!("--algorithm {algorithm}"));
        assert_eq!(on_cpu["hits"], expected["hits"], "{algorithm}");
        let own = if algorithm == "accumulators" { "exhaustive" } else { "conjunction" };
        assert_eq!(on_cpu["trace"][1]["name"], own);
        let explained = place.run(&format!("explain --index i {options} --algorithm {algorithm} ke ti lo")).succeeded();
        assert!(explained.contains(&format!(" by {algorithm}\n")), "{explained}");
    }
    let error = place.run("search --index i --mode or --algorithm merge-path ke").error();
    assert!(error.starts_with("merge-path does not answer or queries; choose scatter"), "{error}");
}

#[test]
fn the_simulator_answers_a_file_of_queries_as_one_batch_as_the_cpu_does() {
    if !has_simulator() {
        return;
    }
    let place = place();
    let search = "search --index i --queries queries.tsv -k 1000";
    let run = place.run(&format!("{search} --run -")).succeeded();
    assert_eq!(run, place.run(&format!("{search} --run - --executor simulator")).succeeded());
    let summary = place.run(&format!("{search} --run r --executor simulator")).succeeded();
    assert!(summary.starts_with("5 queries, ") && summary.contains(" as one batch ("), "{summary}");
    let lines = |options: &str| json_lines(&place.run(&format!("{search} --json {options}")).succeeded());
    let (expected, simulated) = (lines(""), lines("--executor simulator"));
    assert_eq!(simulated.len(), 5);
    for (expected, simulated) in expected.iter().zip(&simulated) {
        assert_eq!((&simulated["id"], &simulated["hits"]), (&expected["id"], &expected["hits"]));
    }
    assert!(simulated.iter().all(|line| line["microseconds"] == simulated[0]["microseconds"]), "one batch, one time");
}

#[test]
fn without_a_gpu_the_cpu_answers_and_one_line_says_so() {
    let place = place();
    for options in ["lo mu", "--queries queries.tsv"] {
        let line = format!("search --index i --json {options} --executor");
        // Where there is a GPU, its driver does not show it.
        let output = place.command(&format!("{line} gpu")).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        let outcome = Outcome::of(output);
        let told: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert_eq!(told.len(), 1, "{outcome:?}");
        assert!(told[0].starts_with("warning: no GPU"), "{told:?}");
        assert!(told[0].contains("or use the CPU; the CPU answers"), "{told:?}");
        let expected = json_lines(&place.run(&format!("{line} cpu")).succeeded());
        let found = json_lines(&outcome.succeeded());
        assert!(found.iter().map(|answer| &answer["hits"]).eq(expected.iter().map(|answer| &answer["hits"])));
    }
}

#[test]
fn memory_that_is_too_small_is_said_and_the_cpu_answers() {
    let place = birds();
    if has_simulator() {
        let outcome = place.run("search --index birds --json --executor simulator --gpu-memory 1KiB falcon");
        assert!(
            outcome.stderr.starts_with("warning: the memory budget of the GPU has 1024 of 1024 bytes left"),
            "{outcome:?}"
        );
        assert_eq!(outcome.json()["hits"].as_array().unwrap().len(), 2);
    }
    let error = place.run("search --index birds --gpu-memory 1GiB falcon").error();
    assert!(error.starts_with("--gpu-memory needs --executor gpu"), "{error}");
    let error = place.run("search --index birds --executor fpga falcon").usage_error();
    assert!(error.contains("[possible values: cpu, gpu, simulator]"), "{error}");
}
