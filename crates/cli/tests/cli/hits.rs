//! What is printed of hits: which of them, which parts, and in how many columns.

use crate::golden::assert_golden;
use crate::program::{Place, birds};
use crate::texts::documents;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

fn hits(answer: &Value) -> Vec<Value> {
    answer["hits"].as_array().unwrap().clone()
}

#[test]
fn an_offset_gives_the_tail_of_a_larger_k() {
    let place = Place::new();
    place.write("in.jsonl", documents(300, 20, 500, 3));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    place.write("log.tsv", "1\tba ke ti\n2\tlo\n3\tnothing\n");
    for options in ["", "--mode and", "--mode and-or", "--score bm25 --algorithm maxscore"] {
        let search = |more: &str| place.run(&format!("search --index i {options} {more} ba ke"));
        let all = hits(&search("--json -k 30").json());
        for (offset, k) in [(0, 30), (7, 5), (12, 18), (25, 5)] {
            let page = search(&format!("--json --offset {offset} -k {k}")).json();
            let expected = &all[offset.min(all.len())..(offset + k).min(all.len())];
            assert_eq!(hits(&page), expected, "{options} {offset} {k}");
            assert_eq!(page["k"], k);
            assert_eq!(page.get("offset").and_then(Value::as_u64).unwrap_or(0), offset as u64);
        }
    }
    let rows = |options: &str| -> Vec<Vec<String>> {
        let run = place.run(&format!("search --index i --queries log.tsv --run - {options}")).succeeded();
        run.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    };
    let all: Vec<_> = rows("-k 9").into_iter().filter(|row| row[3].parse::<usize>().unwrap() > 4).collect();
    let page = rows("-k 5 --offset 4");
    let named = |rows: &[Vec<String>]| -> Vec<(String, String, String)> {
        rows.iter().map(|row| (row[0].clone(), row[2].clone(), row[3].clone())).collect()
    };
    assert_eq!((named(&page), page.len()), (named(&all), 10));
    let single = place.run("search --index i --run - --offset 3 -k 1 ke").succeeded();
    assert_eq!(single.split(' ').nth(3), Some("4"), "{single}");
    let text = place.run("search --index i --offset 4 -k 1 ba ke").succeeded();
    assert!(text.starts_with("   5. ") && text.contains("1 hit after the first 4 in "), "{text}");
    let none = place.run("search --index i --offset 4294967295 -k 4294967295 ba").succeeded();
    assert!(none.starts_with("no hits after the first 4,294,967,295 in "), "{none}");
    place.run("search --index i --offset -1 ba").usage_error();
}

#[test]
fn fields_are_printed_whole_instead_of_title_and_snippet() {
    let place = birds();
    let text = place.run("search --index birds --fields title,text -k 1 hearing").succeeded();
    let expected =
        "      title\n      Barn owl\n      text\n      Barn owls hunt by hearing, at night, over open country.\n";
    assert!(text.contains(expected), "{text}");
    let hit = &place.run("search --index birds --fields text,title --json hearing").json()["hits"][0];
    let fields = r#"{"text":"Barn owls hunt by hearing, at night, over open country.","title":"Barn owl"}"#;
    assert_eq!(hit["fields"], serde_json::from_str::<Value>(fields).unwrap());
    assert!(hit.get("title").is_none() && hit.get("snippet").is_none());
    let bare = place.run("search --index birds --fields none hearing").succeeded();
    assert_eq!(bare.lines().count(), 2, "{bare}");
    let error = place.run("search --index birds --fields title,body hearing").error();
    assert_eq!(error, "the index does not store the field \"body\", it stores only title, text");
    place.run("index --input birds.jsonl --index bare --store none --quiet").succeeded();
    let error = place.run("search --index bare --fields title hearing").error();
    assert!(error.ends_with("it stores no field; 'lanner index --store' says what it stores"), "{error}");
}

#[test]
fn a_log_has_titles_snippets_and_fields_if_asked_for() {
    let place = birds();
    place.write("log.tsv", "7\towls hunting\n");
    let log =
        |options: &str| hits(&place.run(&format!("search --index birds --queries log.tsv --json {options}")).json());
    let single =
        |options: &str| hits(&place.run(&format!("search --index birds --json {options} owls hunting")).json());
    assert_eq!(log("--snippets"), single(""));
    assert_eq!(log("--fields title"), single("--fields title"));
    assert_eq!(log(""), single("--fields none"));
    place.run("search --index birds --snippets owls").usage_error();
    let error = place.run("search --index birds --queries log.tsv --run run --fields title").error();
    assert_eq!(error, "a run has no fields; leave out --fields, or give --json");
}

/// Documents with wide characters, marks that combine, joined emoji, and words longer than a line.
const WIDE: &str = concat!(
    r#"{"id":"猎隼","title":"猎隼是一种鸟,它在开阔的乡村成对狩猎,而且飞得很快很快很快很快很快很快很快很快很快","#,
    r#""text":"Falcons 猎隼是一种鸟,它在开阔的乡村成对狩猎,而且飞得很快很快很快很快。 Two words follow the ideographs."}"#,
    "\n",
    "{\"id\":\"a-very-long-id-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on\",",
    "\"title\":\"Cafe\u{301} fa\u{302}lcon ",
    "👩\u{200d}🔬\",\"text\":\"A ",
    "cafe\u{301} of re\u{301}sume\u{301}s: pneumonoultramicroscopicsilicovolcanoconiosispneumonoultramicroscopicsilicovolcanoconiosis falcons ",
    "👩\u{200d}🔬👩\u{200d}🔬👩\u{200d}🔬 and more of the same text, on and on, until the line is full and another one has to begin.\"}\n",
);

#[test]
fn lines_fit_in_the_columns_of_the_terminal() {
    let place = Place::new();
    place.write("in.jsonl", WIDE);
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    let mut golden = String::new();
    for (set, columns) in
        [("20", 20), ("41", 41), ("80", 80), ("300", 300), ("1", 20), ("100000", 300), ("", 102), ("x", 102)]
    {
        let search = |options: &str| {
            let mut command = place.command(&format!("search --index i {options} falcons"));
            String::from_utf8(command.env("COLUMNS", set).output().unwrap().stdout).unwrap()
        };
        for text in [search(""), search("--offset 1"), search("--fields title,text")] {
            for line in text.lines() {
                assert!(line.width() <= columns, "{columns}: {line:?} takes {}", line.width());
            }
        }
        if matches!(set, "20" | "41" | "80" | "300") {
            golden += &format!("$ COLUMNS={set}\n{}", search(""));
        }
    }
    assert_golden("columns", &golden);
}
