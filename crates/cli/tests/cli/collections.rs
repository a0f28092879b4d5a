//! Collections as others make them: their formats, the names of their fields, their ids and their folders.

use crate::program::{Place, birds, verified};
use serde_json::json;
use std::io::Write;

/// The ids of all hits.
fn hits(place: &Place, index: &str, query: &str) -> Vec<String> {
    let answer = place.run(&format!("search --index {index} -k 100 --json {query}")).json();
    let mut ids: Vec<String> =
        answer["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn the_names_of_other_collections_are_known_and_named_fields_win() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\":\"a\",\"contents\":\"falcon pyserini\"}\n{\"docno\":\"b\",\"title\":\"T\",\"body\":\"falcon\"}\n\
         {\"docid\":7,\"text\":\"falcon\",\"body\":\"heron\"}\n",
    );
    let outcome = place.run("index --input in.jsonl --index i --quiet");
    assert_eq!((outcome.stderr.as_str(), outcome.status), ("", Some(0)));
    assert_eq!(hits(&place, "i", "falcon"), ["7", "a", "b"]);
    assert_eq!(hits(&place, "i", "heron"), Vec::<String>::new(), "the text stands before the body");
    let answer = place.run("search --index i --json pyserini").json();
    assert_eq!(answer["hits"][0]["snippet"]["text"], "falcon pyserini", "what is indexed is shown");
    place.run("index --input in.jsonl --index i --fields body --id-field docid --max-skipped 1").succeeded();
    assert_eq!(hits(&place, "i", "heron"), ["7"]);
    let help = place.run("index --help").succeeded();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("contents or else body stands for a text that is absent or empty"), "{help}");
    assert!(help.contains("the first of id, _id, docno and docid"), "{help}");
}

#[test]
fn documents_without_indexed_fields_are_counted_and_their_fields_named() {
    let place = Place::new();
    place.write(
        "in.jsonl",
        "{\"id\":\"a\",\"abstract\":\"falcon\"}\n{\"id\":\"b\",\"doc\":{\"text\":\"x\"},\"parts\":[\"y\"]}\n\
         {\"id\":\"c\",\"text\":\"\"}\n",
    );
    let outcome = place.run("index --input in.jsonl --index i --quiet");
    let expected = "warning: 2 documents without any of the indexed fields (title, text, contents or body); fields seen: \
                    id, abstract, doc (object), parts (array); name the fields with --fields\n";
    assert_eq!((outcome.stderr.as_str(), outcome.status), (expected, Some(0)));
    let report = place.run("index --input in.jsonl --index i --json").json();
    assert_eq!(report["without_fields"], 2);
    assert_eq!(report["other_fields"], json!(["id", "abstract", "doc (object)", "parts (array)"]));
    let outcome = place.run("index --input in.jsonl --index i --fields abstract,summary --quiet");
    let expected = "warning: 2 documents without any of the indexed fields (abstract, summary); fields seen: id, doc \
                    (object), parts (array), text; name the fields with --fields\n";
    assert_eq!(outcome.stderr, expected);
    let outcome = place.run("index --input in.jsonl --index i --fields none --quiet");
    assert_eq!(outcome.stderr, "", "who indexes nothing misses nothing");
}

#[test]
fn json_csv_and_bulk_files_are_read_from_files_and_pipes() {
    let place = Place::new();
    let inputs: [(&str, &[u8], &str); 6] = [
        (
            "array.json",
            b"[\n {\"id\": \"a\", \"text\": \"falcon\"},\n {\"id\": \"b\", \"text\": \"heron\"}\n]\n",
            "json",
        ),
        ("pretty.json", b"{\n  \"id\": \"a\",\n  \"text\": \"falcon\"\n}\n{\n  \"id\": \"b\"\n}\n", "json"),
        ("table.csv", b"id,title,text\na,\"x, y\",\"one\nfalcon\"\nb,,heron\n", "csv"),
        ("semicolons.csv", b"ID;Body\na;falcon\nb;heron\n", "csv"),
        (
            "bulk.ndjson",
            b"{\"index\":{\"_id\":\"a\"}}\n{\"text\":\"falcon\"}\n{\"create\":{\"_id\":\"b\"}}\n{}\n",
            "bulk",
        ),
        ("trec", b"<DOC n=\"a>b\"><DOCNO>a</DOCNO><p x='>'>falcon caf&#233;</DOC><DOC><DOCNO>b</DOCNO></DOC>", "trec"),
    ];
    for (name, bytes, format) in inputs {
        place.write(name, bytes);
        for line in [format!("--input {name}"), format!("--input {name} --format {format}")] {
            let report = place.run(&format!("index {line} --index i --json")).json();
            assert_eq!((&report["documents"], &report["malformed"]), (&2.into(), &0.into()), "{line}");
            assert_eq!(hits(&place, "i", "falcon"), ["a"], "{line}");
        }
        let report = place.run_with("index --input - --index i --json", bytes).json();
        assert_eq!(report["documents"], 2, "{name}");
    }
    assert_eq!(hits(&place, "i", "café"), ["a"]);
}

#[test]
fn a_csv_file_without_an_id_is_refused_with_its_columns() {
    let place = Place::new();
    place.write("in.csv", "name,text\nx,falcon\n");
    let error = place.run("index --input in.csv --index i").error();
    let expected = "in.csv:1: field \"id\" is missing, and _id, docno, docid as well; fields seen: name, text; name the \
                    column with --id-field";
    assert_eq!(error, expected);
    place.run("index --input in.csv --index i --id-field name").succeeded();
    assert_eq!(hits(&place, "i", "falcon"), ["x"]);
}

#[test]
fn an_array_that_ends_too_early_is_not_taken_for_a_whole_one() {
    let place = Place::new();
    place.write("in.json", "[{\"id\":\"a\",\"text\":\"falcon\"},\n");
    let outcome = place.run("index --input in.json --index i --max-skipped 0.5");
    let expected = "  in.json:2: an array without its end; is the file complete?\n";
    assert!(outcome.stderr.ends_with(expected), "{outcome:?}");
    let error = place.run("index --input in.json --index i --strict").error();
    assert!(error.starts_with("in.json:2: an array without its end"), "{error}");
}

#[test]
fn gzip_with_zeros_at_its_end_is_read() {
    let place = Place::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"a\tfalcon\n").unwrap();
    let padded = [encoder.finish().unwrap(), vec![0; 10_000]].concat();
    place.write("in.tsv.gz", padded);
    place.run("index --input in.tsv.gz --index i").succeeded();
    assert_eq!(verified(&place.path("i")).0, 1);
}

#[test]
fn errors_of_a_ciff_file_name_it() {
    let place = birds();
    place.run("export --index birds --output birds.ciff").succeeded();
    let whole = std::fs::read(place.path("birds.ciff")).unwrap();
    place.write("cut.ciff", &whole[..whole.len() - 1]);
    place.write("other.ciff", "certainly not protobuf");
    let error = place.run("index --input cut.ciff --index i").error();
    assert_eq!(error, "cut.ciff: CIFF document record 5: the file ends too early; get a complete copy");
    let error = place.run("index --input other.ciff --index i").error();
    assert!(error.starts_with("other.ciff: CIFF header 1: "), "{error}");
    let error = place.run("index --input none.ciff --index i").error();
    assert_eq!(error, "none.ciff: cannot be opened: No such file or directory (os error 2)");
}

#[test]
fn ids_with_white_space_are_coded_in_runs_and_refused_by_a_strict_build() {
    let place = Place::new();
    let lines = "{\"id\":\"a b\",\"text\":\"falcon falcon\"}\n{\"id\":\"a%20b\",\"text\":\"falcon\"}\n\
                 {\"id\":\"100%\",\"text\":\"falcon x y z\"}\n";
    place.write("in.jsonl", lines);
    let error = place.run("index --input in.jsonl --index i --strict").error();
    let expected = "in.jsonl:1: the id \"a b\" has white space or control characters, which TREC runs and judgements \
                    cannot hold; rename it, or leave out --strict: runs then hold such ids percent-coded";
    assert_eq!(error, expected);
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    assert_eq!(hits(&place, "i", "falcon"), ["100%", "a b", "a%20b"], "JSON has the ids as they are");
    let shown = place.run("search --index i falcon").succeeded();
    assert!(shown.contains("  a b\n"), "{shown}");
    let run = place.run("search --index i --run - falcon").succeeded();
    let mut columns: Vec<&str> = run.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
    columns.sort_unstable();
    assert_eq!(columns, ["100%", "a%20b", "a%2520b"]);
    assert!(run.lines().all(|line| line.split_ascii_whitespace().count() == 6), "{run}");
    place.write("run", run);
    let judged = |qrels: &str| {
        place.write("qrels", qrels);
        place.run("eval --qrels qrels --run run --measures P@3 --json").json()["mean"]["P@3"].as_f64().unwrap()
    };
    let third = 1.0 / 3.0;
    assert_eq!(judged("query-id\tcorpus-id\tscore\n1\ta b\t1\n"), third, "ids as they are");
    assert_eq!(judged("1 0 a%2520b 1\n"), third, "ids as the run has them");
    assert_eq!(judged("1 0 a%20b 1\n1 0 100% 1\n"), 2.0 / 3.0);
    place.run("export --index i --output ids.ciff").succeeded();
    let error = place.run("index --input ids.ciff --index j --strict").error();
    assert!(error.starts_with("ids.ciff:1: the id \"a b\" has white space"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_skipped_counted_and_named() {
    let place = birds();
    place.write("in/a.txt", "falcon");
    place.write("in/z.txt", "falcon");
    std::os::unix::fs::symlink("nowhere", place.path("in/b.txt")).unwrap();
    // Folders in folders with a path of more than 4,096 bytes, which cannot be listed by its name.
    let name = "n".repeat(200);
    std::fs::create_dir(place.path("inner")).unwrap();
    for _ in 0..25 {
        std::fs::create_dir(place.path("outer")).unwrap();
        std::fs::rename(place.path("inner"), place.path("outer").join(&name)).unwrap();
        std::fs::rename(place.path("outer"), place.path("inner")).unwrap();
    }
    std::fs::rename(place.path("inner"), place.path("in/deep")).unwrap();
    let outcome = place.run("index --input in --index i --follow-links");
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("left out    1 unreadable file, 1 unreadable folder\n"), "{outcome:?}");
    assert!(outcome.stdout.contains("\nunreadable  in/b.txt: cannot be opened: No such file"), "{outcome:?}");
    let mut told = outcome.stderr.lines();
    assert_eq!(told.next(), Some("warning: 1 unreadable file and 1 unreadable folder left out"));
    let named: Vec<&str> = told.collect();
    assert_eq!(named.len(), 2, "{named:?}");
    assert!(named.iter().any(|line| line.starts_with("  in/b.txt: cannot be opened: No such file")), "{named:?}");
    assert!(named.iter().any(|line| line.contains("File name too long")), "{named:?}");
    assert_eq!(hits(&place, "i", "falcon"), ["a.txt", "z.txt"]);
    let report = place.run("index --input in --index i --follow-links --json").json();
    assert_eq!(
        report["left_out"],
        json!([{"reason": "unreadable-file", "count": 1}, {"reason": "unreadable-folder", "count": 1}])
    );
    assert_eq!(report["unreadable"].as_array().unwrap().len(), 2);
    let before = verified(&place.path("birds"));
    let error = place.run("index --input in --index birds --follow-links --strict").error();
    assert!(error.ends_with("; correct it, or leave out --strict to leave out what cannot be read"), "{error}");
    assert_eq!(verified(&place.path("birds")), before);
}

#[test]
fn a_damaged_file_of_a_folder_costs_only_what_follows_the_damage() {
    let place = Place::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all("{\"id\":\"x\",\"text\":\"heron\"}\n".repeat(2).as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    place.write("in/a.jsonl.gz", &packed[..packed.len() - 4]);
    place.write("in/b.jsonl", "{\"id\":\"b\",\"text\":\"falcon\"}\n");
    let outcome = place.run("index --input in --index i --max-skipped 1");
    assert!(
        outcome.stderr.contains("warning: 1 unreadable file left out\n  in/a.jsonl.gz: the gzip data"),
        "{outcome:?}"
    );
    assert_eq!((hits(&place, "i", "heron"), hits(&place, "i", "falcon")), (vec!["x".to_owned()], vec!["b".to_owned()]));
    let error = place.run("index --input in --index i --strict").error();
    assert!(error.starts_with("in/a.jsonl.gz: the gzip data ends too early"), "{error}");
    std::fs::remove_file(place.path("in/b.jsonl")).unwrap();
    place.write("in/a.jsonl.gz", &packed[..20]);
    let error = place.run("index --input in --index i").error();
    let expected =
        "no usable document: left out 1 unreadable file (in/a.jsonl.gz: the gzip data ends too early, at byte";
    assert!(error.starts_with(expected), "{error}");
}

#[cfg(unix)]
#[test]
fn links_and_hidden_files_are_read_on_demand_and_circles_end() {
    let place = Place::new();
    place.write("in/a.txt", "falcon");
    place.write("in/.hidden/b.txt", "falcon");
    place.write("outside/c.txt", "falcon");
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, place.path(name)).unwrap();
    link("../outside", "in/link");
    link("../in", "outside/circle");
    link("a.txt", "in/same.txt");
    let report = |options: &str| place.run(&format!("index --input in --index i --json {options}")).json();
    let without = report("");
    assert_eq!(without["documents"], 1);
    let expected = json!([{"reason": "hidden-folder", "count": 1}, {"reason": "link", "count": 2}]);
    assert_eq!(without["left_out"], expected);
    let with = report("--follow-links --hidden");
    assert_eq!(with["left_out"], json!([{"reason": "repeated-link", "count": 2}]));
    assert_eq!(hits(&place, "i", "falcon"), [".hidden/b.txt", "a.txt", "link/c.txt"]);
    assert_eq!(report("--hidden")["documents"], 2);
}
