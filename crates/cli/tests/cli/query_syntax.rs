//! Syntax of other search engines: what somebody typed is never misread in silence, and a query log is plain text.

use crate::program::{Outcome, Place, birds};

#[test]
fn a_typed_query_is_answered_with_notes_on_how_it_was_read() {
    let place = birds();
    let cases = [
        ("\"open country\" owls", "note: \"open country\" is read as the terms open, countri: there are no phrases"),
        ("+owls", "note: +owls is read as the term owl: no single word can be required; --mode and requires all\n"),
        ("owls -hunt", "note: -hunt is read as the term hunt: no word can be excluded\n"),
        ("title:owl", "note: title:owl is read as the term title:owl: a query names no field"),
        ("owl*", "note: owl* is read as the term owl: there are no wildcards\n"),
        ("owls~1", "note: owls~1 is read as the terms owl, 1: there is no search for similar words\n"),
        (
            "owls AND kites",
            "note: AND is read as no term, since the index leaves it out: words are joined by --mode or",
        ),
        ("owls OR kites", "note: OR is read as no term"),
        ("NOT kites", "note: NOT is read as no term"),
        ("owls^much", "note: owls^much is read as the terms owl, much: a weight is a decimal number"),
        ("the and of", "note: nothing is left of the query: the index leaves out stop words, here the, and, of\n"),
        ("...", "note: the query has no words\n"),
    ];
    for (query, expected) in cases {
        for command in ["search", "explain"] {
            let outcome = place.asked(command, &[query]);
            assert_eq!(outcome.status, Some(0), "{outcome:?}");
            assert!(outcome.stderr.starts_with(expected), "{query}: {outcome:?}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
            let json = place.asked(command, &["--json", query]);
            assert_eq!(json.stderr, "");
            let notes = &json.json()["notes"];
            assert_eq!(format!("note: {}\n", notes[0].as_str().unwrap()), outcome.stderr);
        }
    }
    let line = place.run_with("search --index birds --json", b"owls -hunt\n").json();
    assert_eq!(line["notes"][0], "-hunt is read as the term hunt: no word can be excluded");
    let plain = place.run("search --index birds --json barn owls^2");
    assert_eq!(plain.stderr, "");
    assert!(plain.json().get("notes").is_none());
}

#[test]
fn a_weight_that_is_no_decimal_number_is_an_error_with_the_range() {
    let place = birds();
    for weight in ["-1", "1e-40", "infinity", "nan", "1e3"] {
        let expected =
            format!("{weight:?} is no weight of \"owls\"; give a decimal number from 0.000001 to 1000000, such as 2.5");
        let query = format!("owls^{weight}");
        assert_eq!(place.asked("search", &[&query]).error(), expected);
        assert_eq!(place.asked("explain", &[&query]).error(), expected);
    }
    for weight in ["0", "0.0000001", "1000001"] {
        let error = place.asked("search", &[&format!("owls^{weight}")]).error();
        assert_eq!(
            error,
            format!("the weight {weight} of \"owls\" is out of range; give one from 0.000001 to 1000000")
        );
    }
}

#[test]
fn a_query_log_is_plain_text() {
    let place = birds();
    place.write("log.tsv", "1\towls AND -kites \"open country\" title:owl owl* hunt~1\n2\tthe of\n3\tx^-1 owls^nan\n");
    let outcome = place.run("search --index birds --queries log.tsv --run run --json");
    assert!(!outcome.stderr.contains("note"), "{outcome:?}");
    let lines = outcome.succeeded();
    let answers: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| answer.get("notes").is_none() && answer.get("error").is_none()), "{answers:?}");
    assert_eq!(answers[2]["hits"][0]["id"], "owl");
}

impl Place {
    /// Runs a command over the birds, with a query that is the last argument and may have spaces.
    fn asked(&self, command: &str, arguments: &[&str]) -> Outcome {
        let (query, options) = arguments.split_last().unwrap();
        let mut line = self.command(&format!("{command} --index birds"));
        Outcome::of(line.args(options).args(["--", query]).output().unwrap())
    }
}
