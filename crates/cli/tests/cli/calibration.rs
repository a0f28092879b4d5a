//! `lanner calibrate`: what it prints, and where it stores costs.

use crate::program::{Outcome, Place, birds};
use lanner::Index;
use lanner::internals::calibrate::Folder;
use std::fs;

fn stored(place: &Place) -> Vec<String> {
    place.names("configuration/costs")
}

#[test]
fn calibrate_prints_a_table_and_stores_costs_that_can_be_read() {
    let place = birds();
    let printed = place.run("calibrate --index birds --seconds 1").succeeded();
    let words: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[..3], [vec!["device", "cpu"], vec![], vec!["route", "operation", "samples", "leaves", "error"]]);
    assert_eq!([&words[3][..2], &words[4][..2]], [["cpu", "and"], ["cpu", "or"]]);
    let [file] = &stored(&place)[..] else { panic!("one file: {:?}", stored(&place)) };
    assert!(words[6][2].ends_with(file.as_str()) && file.starts_with("cpu-"), "{printed}");
    let folder = Folder::new(place.path("configuration/costs"));
    let index = Index::open(place.path("birds")).unwrap();
    assert!(folder.load(&index, "cpu").unwrap().is_some());
}

#[test]
fn calibrate_prints_json_with_the_errors_for_queries_of_a_file() {
    let place = birds();
    place.write("queries.txt", "falcon\nfalcon water\n");
    let report = place.run("calibrate --index birds --seconds 1 --queries queries.txt --json").json();
    assert_eq!(report["device"], "cpu");
    let routes: Vec<_> = report["fits"].as_array().unwrap().iter().map(|fit| &fit["operation"]).collect();
    assert_eq!(routes, ["and", "or"]);
    assert!(report["fits"].as_array().unwrap().iter().all(|fit| fit["samples"].as_u64() > Some(0)));
    let queries = report["queries"].as_array().unwrap();
    assert!(queries.iter().all(|row| row["error"].is_number() && row["learning"].is_number()), "{report}");
    assert!(fs::exists(report["file"].as_str().unwrap()).unwrap());
}

#[test]
fn calibrating_again_replaces_the_costs_and_another_index_has_its_own() {
    let place = birds();
    place.run("calibrate --index birds --seconds 1").succeeded();
    place.run("calibrate --index birds --seconds 1").succeeded();
    assert_eq!(stored(&place).len(), 1);
    place.write("one.jsonl", "{\"id\":\"a\",\"text\":\"one falcon\"}\n");
    place.run("index --input one.jsonl --index one --quiet").succeeded();
    place.run("calibrate --index one --seconds 1").succeeded();
    assert_eq!(stored(&place).len(), 2);
}

#[test]
fn what_cannot_be_calibrated_is_an_error_that_says_what_to_do() {
    let place = birds();
    let error = |line: &str| place.run(line).error();
    assert!(error("calibrate --index birds --seconds 0").contains("give more --seconds"));
    assert!(error("calibrate --index nowhere").contains("lanner index"));
    assert!(error("calibrate --index birds --executor cpu --gpu-memory 1GiB").contains("--executor gpu"));
    place.write("configuration/costs", "a file where a folder should be");
    assert!(error("calibrate --index birds --seconds 1").contains("LANNER_CONFIG"));
    let mut command = place.command("calibrate --index birds --seconds 1");
    for variable in ["LANNER_CONFIG", "XDG_CONFIG_HOME", "HOME", "APPDATA"] {
        command.env_remove(variable);
    }
    assert!(Outcome::of(command.output().unwrap()).error().contains("set LANNER_CONFIG"));
}
