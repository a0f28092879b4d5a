//! Where queries are answered makes no difference to the answers.

use crate::program::{Outcome, Place, birds};
use crate::requirements::{needs, test};
use crate::texts::documents;
use libtest_mimic::Trial;
use serde_json::{Value, json};

/// Whether the program can simulate a GPU.
fn has_simulator() -> bool {
    lanner::internals::device::decode::DECODE.kernel.simulate.is_some()
}

pub fn tests() -> impl Iterator<Item = Trial> {
    let on_simulator = [
        test(the_simulator_answers_single_queries_as_the_cpu_does),
        test(the_simulator_answers_step_by_step_where_that_is_asked_for),
        test(the_simulator_answers_a_file_of_queries_as_the_cpu_does),
        test(a_query_of_a_log_that_fails_on_the_simulator_has_an_error_in_its_place),
        test(memory_that_is_too_small_is_said_and_the_cpu_answers),
    ];
    let others = [
        test(a_query_of_a_log_that_fails_on_any_thread_has_an_error_in_its_place),
        test(the_simulator_answers_or_the_program_says_that_it_has_none),
        test(without_a_gpu_the_cpu_answers_and_one_line_says_so),
        test(options_of_a_device_that_is_not_used_and_unknown_executors_are_refused),
    ];
    on_simulator.into_iter().map(|test| needs(has_simulator(), test)).chain(others)
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

fn the_simulator_answers_single_queries_as_the_cpu_does() {
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

fn the_simulator_answers_step_by_step_where_that_is_asked_for() {
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
    assert!(error.starts_with("`merge-path` does not answer `or` queries; choose `scatter`"), "{error}");
}

fn the_simulator_answers_a_file_of_queries_as_the_cpu_does() {
    let place = place();
    let search = "search --index i --queries queries.tsv -k 1000";
    let run = place.run(&format!("{search} --run -")).succeeded();
    assert_eq!(run, place.run(&format!("{search} --run - --executor simulator")).succeeded());
    let summary = place.run(&format!("{search} --run r --executor simulator")).succeeded();
    assert!(summary.starts_with("5 queries, ") && summary.contains("GPU ready after "), "{summary}");
    assert!(summary.contains("; it answered 5 queries, the CPU 0"), "{summary}");
    let lines = |options: &str| json_lines(&place.run(&format!("{search} --json {options}")).succeeded());
    let (expected, simulated) = (lines(""), lines("--executor simulator"));
    assert_eq!(simulated.len(), 5);
    for (expected, simulated) in expected.iter().zip(&simulated) {
        assert_eq!((&simulated["id"], &simulated["hits"]), (&expected["id"], &expected["hits"]));
    }
}

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

fn memory_that_is_too_small_is_said_and_the_cpu_answers() {
    let outcome = birds().run("search --index birds --json --executor simulator --gpu-memory 1KiB falcon");
    assert!(
        outcome.stderr.starts_with("warning: the memory budget of the GPU has 1024 of 1024 bytes left"),
        "{outcome:?}"
    );
    assert_eq!(outcome.json()["hits"].as_array().unwrap().len(), 2);
}

fn options_of_a_device_that_is_not_used_and_unknown_executors_are_refused() {
    let place = birds();
    let error = place.run("search --index birds --executor cpu --gpu-memory 1GiB falcon").error();
    assert!(error.starts_with("--gpu-memory needs --executor gpu"), "{error}");
    let error = place.run("search --index birds --executor fpga falcon").usage_error();
    assert!(error.contains("[possible values: cpu, gpu, simulator]"), "{error}");
}

fn the_simulator_answers_or_the_program_says_that_it_has_none() {
    let outcome = birds().run("search --index birds --executor simulator falcon");
    if has_simulator() {
        outcome.succeeded();
    } else {
        let error = outcome.error();
        assert!(error.starts_with("this build has no simulator, since no C++ compiler was found"), "{error}");
    }
}

fn a_query_of_a_log_that_fails_on_any_thread_has_an_error_in_its_place() {
    ["--threads 1", "--threads 3"].into_iter().for_each(assert_errors_in_their_places);
}

fn a_query_of_a_log_that_fails_on_the_simulator_has_an_error_in_its_place() {
    assert_errors_in_their_places("--executor simulator");
}

/// Answers a log in which two of five queries fail.
fn assert_errors_in_their_places(executor: &str) {
    let place = birds();
    place.write("log.tsv", "q1\tfalcon pairs\nq2\tfalcon^0\nq3\theron\nq4\tx^0\nq5\tbarn owls\n");
    let search = format!("search --index birds --queries log.tsv -k 1 --quiet {executor}");
    let outcome = place.run(&format!("{search} --json"));
    let answers = json_lines(&outcome.stdout);
    let found: Vec<(&Value, &Value)> = answers.iter().map(|answer| (&answer["id"], &answer["hits"][0]["id"])).collect();
    let expected = [
        ("q1", json!("lanner")),
        ("q2", Value::Null),
        ("q3", json!("heron")),
        ("q4", Value::Null),
        ("q5", json!("owl")),
    ];
    assert_eq!(found.len(), expected.len(), "{executor}");
    for ((id, hit), (expected_id, expected_hit)) in found.iter().zip(&expected) {
        assert_eq!((*id, *hit), (&json!(expected_id), expected_hit), "{executor}");
    }
    assert_eq!(answers[1]["query"], "falcon^0", "{executor}");
    assert!(answers[3]["error"].as_str().unwrap().starts_with("the weight 0 of \"x\""), "{executor}");
    assert_eq!((outcome.stderr.as_str(), outcome.status), ("error: 2 of 5 queries failed\n", Some(1)), "{executor}");
    let outcome = place.run(&format!("{search} --run out"));
    let told: Vec<&str> = outcome.stderr.lines().collect();
    assert!(told[0].starts_with("error: query q2: the weight 0 of \"falcon\""), "{executor}: {told:?}");
    assert!(told[1].starts_with("error: query q4: the weight 0 of \"x\""), "{executor}: {told:?}");
    assert_eq!((&told[2..], outcome.status), (&["error: 2 of 5 queries failed"][..], Some(1)), "{executor}");
    let run = std::fs::read_to_string(place.path("out")).unwrap();
    let queries: Vec<&str> = run.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(queries, ["q1", "q3", "q5"], "{executor}");
}
