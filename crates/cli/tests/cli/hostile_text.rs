//! Text that tries to control the terminal: it is printed without control, escape and bidirectional characters
//! everywhere, and JSON keeps it as it is.

use crate::program::{Outcome, Place};

/// Colours, a title of the window, an override of the direction, an isolate, a bell, and C1's CSI.
const EVIL: &str = "x\u{1b}[31m\u{1b}]0;own\u{7}\u{202e}y\u{2066}z\u{9b}31m";

fn place() -> Place {
    let place = Place::new();
    let line = |id: &str, title: &str, text: &str| {
        serde_json::json!({"id": id, "title": title, "text": text, "b\u{202e}\u{1b}ad": "more"}).to_string() + "\n"
    };
    let evil = line(EVIL, &format!("Title {EVIL}"), &format!("falcons {EVIL} hunt"));
    place.write("in.jsonl", evil.clone() + &evil + &line("plain", "A title", "falcons"));
    let index = place.command("index --input in.jsonl --index i --max-skipped 0.5");
    let outcome = Outcome::of({ index }.args(["--store", "title,text,b\u{202e}\u{1b}ad"]).output().unwrap());
    assert!(outcome.stderr.contains("1 record skipped"), "{outcome:?}");
    assert_harmless(&outcome);
    place
}

#[track_caller]
fn assert_harmless(outcome: &Outcome) {
    let is_harmful = |c: char| {
        c != '\n' && c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    for text in [&outcome.stdout, &outcome.stderr] {
        assert!(!text.contains(is_harmful), "{text:?}");
    }
}

#[test]
fn nothing_that_is_printed_controls_the_terminal() {
    let place = place();
    let words = format!("falcons {EVIL}");
    place.write("log.tsv", format!("{EVIL}\tfalcons falcons^2000000\n"));
    place.write("qrels", format!("{EVIL} 0 plain 1\n"));
    place.write("run", format!("{EVIL} Q0 plain 1 1.5 tag\n"));
    let lines = [
        vec!["search", "--index", "i", &words],
        vec!["search", "--index", "i", "--trace", &words],
        vec!["search", "--index", EVIL, "falcons"],
        vec!["search", "--index", "i", "--mode", EVIL, "falcons"],
        vec!["search", "--index", "i", "falcons^2000000", EVIL],
        vec!["search", "--index", "i", "--queries", "log.tsv", "--run", "out"],
        vec!["search", "--index", "i", "--queries", EVIL, "--run", "out"],
        vec!["explain", "--index", "i", &words],
        vec!["explain", "--index", "i", "--doc", EVIL, &words],
        vec!["explain", "--index", "i", "--doc", "a\u{202e}\u{1b}", &words],
        vec!["stats", "--index", "i"],
        vec!["eval", "--qrels", "qrels", "--run", "run", "--per-query"],
        vec!["verify", "--index", EVIL],
        vec!["index", "--input", "in.jsonl", "--index", EVIL],
        vec!["verify", "--index", EVIL],
        vec![EVIL],
    ];
    for line in lines {
        let outcome = Outcome::of(place.command("").args(&line).output().unwrap());
        assert!(!outcome.stdout.is_empty() || !outcome.stderr.is_empty(), "{line:?}");
        assert_harmless(&outcome);
    }
    assert_harmless(&place.run_with("search --index i", words.as_bytes()));
}

#[test]
fn json_keeps_the_exact_text() {
    let place = place();
    let outcome = place.run("search --index i --json -k 1 hunt");
    assert!(!outcome.stdout.contains('\u{1b}'), "{outcome:?}");
    let hit = &outcome.json()["hits"][0];
    assert_eq!((&hit["id"], &hit["title"]), (&EVIL.into(), &format!("Title {EVIL}").into()));
    assert_eq!(hit["snippet"]["text"], format!("falcons {EVIL} hunt"));
}
