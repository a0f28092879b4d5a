//! `lanner eval`: measures, standard input, several runs.

use crate::golden::assert_golden;
use crate::program::Place;

const QRELS: &str = "1 0 a 2\n1 0 b 0\n2 0 a 1\n2 0 c 2\n3 0 d 1\n4 0 a 1\n";
const FIRST: &str =
    "1 Q0 b 1 3 x\n1 Q0 a 2 2 x\n2 Q0 c 1 3 x\n2 Q0 a 2 2 x\n4 Q0 b 1 2 x\n4 Q0 c 2 1 x\n4 Q0 a 3 0.5 x\n";
const SECOND: &str = "1 Q0 a 1 3 x\n2 Q0 a 1 3 x\n3 Q0 c 1 2 x\n3 Q0 d 2 1 x\n4 Q0 a 1 1 x\n";

fn place() -> Place {
    let place = Place::new();
    place.write("qrels", QRELS);
    place.write("first.run", FIRST);
    place.write("second.run", SECOND);
    place
}

#[test]
fn measures_with_levels_and_names_of_trec_eval_are_read() {
    let place = place();
    let json = place
        .run("eval --qrels qrels --run second.run --json --measures P(rel=2)@1,map,recip_rank,bpref,ERR@10")
        .json();
    assert_eq!(json["measures"], serde_json::json!(["P(rel=2)@1", "AP", "RR", "Bpref", "ERR@10"]));
    assert_eq!(json["mean"]["P(rel=2)@1"], 0.25);
    // Stopping with 3/16, 1/16, never, 1/16 at the first hit; with 1/16 at the second of query 3.
    assert_eq!(json["mean"]["ERR@10"], (3.0 / 16.0 + 1.0 / 16.0 + 1.0 / 32.0 + 1.0 / 16.0) / 4.0);
    assert_eq!(json["per_query"]["3"]["RR"], 0.5);
}

#[test]
fn either_file_may_come_from_standard_input_but_not_both() {
    let place = place();
    let expected = place.run("eval --qrels qrels --run first.run").succeeded();
    assert_eq!(place.run_with("eval --qrels qrels --run -", FIRST.as_bytes()).succeeded(), expected);
    assert_eq!(place.run_with("eval --qrels - --run first.run", QRELS.as_bytes()).succeeded(), expected);
    let error = place.run("eval --qrels - --run -").error();
    assert_eq!(error, "standard input can be read only once; give - for one file, and save the others");
    let error = place.run_with("eval --qrels qrels --run -", b"1 Q0 a\n").error();
    assert_eq!(error, "stdin:1: 3 columns, expected 6: query Q0 document rank score tag");
}

#[test]
fn several_runs_are_compared_with_the_first() {
    let place = place();
    let line = "eval --qrels qrels --run first.run --run second.run --run first.run --measures RR,nDCG@10";
    let outcome = place.run(line);
    assert_eq!(
        outcome.stderr,
        "warning: judged queries without hits in first.run: 1 of 4; they count as 0\n".repeat(2)
    );
    let table = outcome.succeeded() + &place.run(&format!("{line} --per-query")).succeeded();
    assert_golden("comparison", &table);
}

#[test]
fn a_comparison_as_json_has_all_values_and_the_test() {
    let place = place();
    let json = place.run("eval --qrels qrels --run first.run --run second.run --measures RR --json --per-query").json();
    assert_eq!((&json["baseline"], &json["test"]), (&"first.run".into(), &"two-sided paired t-test".into()));
    let [first, second] = [0, 1].map(|run| &json["runs"][run]);
    assert_eq!((&first["run"], &second["run"]), (&"first.run".into(), &"second.run".into()));
    assert_eq!(first["per_query"]["3"]["RR"], 0.0);
    assert_eq!(first["comparison"], serde_json::Value::Null);
    let test = &second["comparison"][0];
    assert_eq!((&test["measure"], &test["degrees_of_freedom"]), (&"RR".into(), &3.into()));
    // scipy.stats.ttest_rel([1, 1, 0.5, 1], [0.5, 1, 0, 1 / 3]) gives these (scipy 1.17.1).
    assert_eq!(format!("{:.12}", test["t"].as_f64().unwrap()), "2.886751345948");
    assert_eq!(format!("{:.12}", test["p"].as_f64().unwrap()), "0.063180074965");
}
