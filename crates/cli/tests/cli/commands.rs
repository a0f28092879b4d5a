//! Every command once, as the manual would show it.

use crate::golden::assert_golden;
use crate::program::{Outcome, Place, birds, verified};
use crate::texts::{BIRDS, documents};
use lanner_index::format::segment::Section;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

#[test]
fn index_prints_a_summary() {
    let place = Place::new();
    place.write("birds.jsonl", BIRDS);
    let outcome = place.run("index --input birds.jsonl --index birds --threads 1");
    assert_eq!(outcome.stderr, "", "a short build shows no progress where there is no terminal");
    assert_golden("index", &outcome.succeeded());
    assert_eq!(place.run("index --input birds.jsonl --index birds --quiet").succeeded(), "");
    assert_eq!(place.names("birds"), ["lock", "manifest-00000002", "segment-00000002"]);
}

#[test]
fn index_prints_json() {
    let place = Place::new();
    place.write("birds.jsonl", BIRDS);
    let report = place.run("index --input birds.jsonl --index birds --json").json();
    assert_eq!((report["documents"].as_u64(), report["malformed"].as_u64()), (Some(5), Some(0)));
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
}

#[test]
fn every_option_of_index_reaches_the_index() {
    let place = Place::new();
    place.write("in.jsonl", "{\"key\":\"a\",\"head\":\"x\",\"body\":\"The y z\"}\n{\"key\":\"b\",\"body\":\"y\"}\n");
    place.write("ranks", "a\t3\nb\t1\n");
    let options = "--id-field key --fields body,head --store head --analyzer words+lowercase --k1 1.5 --b 0.5 \
                   --codec documents=raw,weights=bitpack --weights tf,impact --rank ranks --memory 64MiB \
                   --order bisection";
    place.run(&format!("index --input in.jsonl --index i --quiet {options}")).succeeded();
    let stats = place.run("stats --index i --json").json();
    let manifest = &stats["manifest"];
    assert_eq!(manifest["fields"], serde_json::json!(["body", "head"]));
    assert_eq!(manifest["stored"], serde_json::json!(["head"]));
    assert_eq!(manifest["chain"], "words+lowercase");
    assert_eq!(manifest["order"], "bisection");
    assert_eq!(manifest["bm25"], serde_json::json!({"k1": 1.5, "b": 0.5}));
    assert_eq!(stats["codecs"], serde_json::json!({"documents": "raw", "weights": "bitpack"}));
    assert_eq!((&stats["frequencies"], &stats["impacts"]), (&true.into(), &true.into()));
    let ids = |line: &str| -> Vec<String> {
        let hits = place.run(line).json()["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("search --index i --json the"), ["a"]);
    assert_eq!(ids("search --index i --json --score impact y"), ["b", "a"]);
    assert_eq!(ids("search --index i --json --score rank-bm25 --alpha 0.9 y"), ["a", "b"]);
    place.run("index --input in.jsonl --index i --quiet --id-field key --fields body --store none").succeeded();
    let manifest = &place.run("stats --index i --json").json()["manifest"];
    assert_eq!((&manifest["stored"], &manifest["order"]), (&serde_json::json!([]), &"given".into()));
}

#[test]
fn collections_come_in_every_format_also_from_a_pipe() {
    let place = Place::new();
    place.write("in.tsv", "a\tTitle\tone two\nb\tOther\ttwo\n");
    place.write(
        "in.trec",
        "<DOC>\n<DOCNO>a</DOCNO>\n<TEXT>one two</TEXT>\n</DOC>\n<DOC>\n<DOCNO>b</DOCNO>\ntwo\n</DOC>\n",
    );
    place.write(
        "beir/corpus.jsonl",
        "{\"_id\":\"a\",\"title\":\"\",\"text\":\"one two\"}\n{\"_id\":\"b\",\"text\":\"two\"}\n",
    );
    place.write("text/a", "one two");
    place.write("text/b", "two");
    let vectors = "{\"id\":\"a\",\"vector\":{\"one\":1.5,\"two\":2}}\n{\"id\":\"b\",\"vector\":{\"two\":9}}\n";
    place.write("vectors.jsonl", vectors);
    let inputs = ["in.tsv", "in.trec", "in.trec --format trec", "beir --format beir", "beir", "text --format text"];
    let vectors = ["vectors.jsonl --vector-field vector --fields title"];
    for input in inputs.into_iter().chain(vectors) {
        let report = place.run(&format!("index --input {input} --index i --json")).json();
        assert_eq!(report["documents"], 2, "{input}");
        let answer = place.run("search --index i --mode and --json two one").json();
        assert_eq!(answer["hits"][0]["id"], "a", "{input}");
        assert_eq!(answer["hits"].as_array().unwrap().len(), 1, "{input}");
    }
    let outcome = place.run_with("index --input - --format tsv --index piped --json", b"a\tone\nb\ttwo\nc\tthree\n");
    assert_eq!(outcome.json()["documents"], 3);
}

#[test]
fn search_prints_hits_in_every_mode() {
    let place = birds();
    let mut text = String::new();
    for options in ["--mode or", "--mode and", "--mode and-or -k 2", "--trace --algorithm exhaustive -k 1"] {
        text += &format!("$ search {options} hunting open country\n");
        text += &place.run(&format!("search --index birds {options} hunting open country")).succeeded();
    }
    text += "$ search zebra\n";
    text += &place.run("search --index birds zebra").succeeded();
    assert_golden("search", &text);
}

#[test]
fn search_prints_json_with_exact_scores() {
    let answer = birds().run("search --index birds --json --trace --k 3 falcons^2 hunt").json();
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 3);
    assert_eq!((&hits[0]["id"], &hits[0]["rank"]), (&"lanner".into(), &1.into()));
    for hit in hits {
        assert_eq!(hit["score"].as_f64().unwrap() * 65536.0, hit["units"].as_f64().unwrap());
    }
    assert_eq!(hits[0]["title"], "Lanner falcon");
    let snippet = &hits[0]["snippet"];
    let range = |key| snippet["matches"][0][key].as_u64().unwrap() as usize;
    assert_eq!(&snippet["text"].as_str().unwrap()[range("start")..range("end")], "falcons");
    assert_eq!((&answer["exact"], &answer["mode"]), (&true.into(), &"or".into()));
    assert!(answer["work"]["documents_scored"].as_u64().unwrap() >= 3);
    assert_eq!(answer["trace"][0]["name"], "plan");
}

#[test]
fn a_budget_makes_an_answer_approximate_and_the_answer_says_so() {
    let place = birds();
    place.run("index --input birds.jsonl --index i --weights tf,impact --impact-ordered --quiet").succeeded();
    let search = "search --index i --score impact --algorithm score-at-a-time";
    let whole = place.run(&format!("{search} --json falcons hunt")).json();
    let other = place.run("search --index i --score impact --json falcons hunt").json();
    assert_eq!((&whole["hits"], whole["exact"].as_bool()), (&other["hits"], Some(true)));
    assert_eq!(place.run(&format!("{search} --budget 1 --json falcons hunt")).json()["exact"], false);
    let text = place.run(&format!("{search} --budget 1 falcons hunt")).succeeded();
    assert!(text.contains("approximate: the budget was spent"), "{text}");
}

#[test]
fn search_answers_the_lines_of_standard_input() {
    let place = birds();
    let input = b"falcon pairs\n\nheron\n:quit\nowl\n";
    let outcome = place.run_with("search --index birds --json -k 1", input);
    let answers: Vec<serde_json::Value> =
        outcome.succeeded().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first: Vec<Option<&str>> = answers.iter().map(|answer| answer["hits"][0]["id"].as_str()).collect();
    assert_eq!(first, [Some("lanner"), None, Some("heron")], "a blank line is a query without words");
    let text = place.run_with("search --index birds -k 1", input).succeeded();
    assert_eq!(text.matches("1 hit in ").count(), 2, "{text}");
}

#[test]
fn explain_prints_the_plan_and_the_score_of_a_document() {
    let place = birds();
    let mut text = place.run("explain --index birds hunting^2 falcons zebra").succeeded();
    text += "$ explain --mode and-or --doc lanner\n";
    text += &place.run("explain --index birds --mode and-or --doc lanner hunting^2 falcons").succeeded();
    assert_golden("explain", &text);
    let json = place.run("explain --index birds --json --doc lanner hunting falcons").json();
    let search = place.run("search --index birds --json hunting falcons").json();
    assert_eq!(json["explanation"]["score"], search["hits"][0]["units"]);
    assert_eq!(json["plan"]["stages"][0]["algorithm"], "scatter");
    let error = place.run("explain --index birds --doc dodo falcons").error();
    assert_eq!(error, "no document has the id \"dodo\"; ids are those of the collection");
}

#[test]
fn stats_shows_what_an_index_holds() {
    let place = Place::new();
    place.write("in.jsonl", documents(400, 60, 3000, 7));
    place.run("index --input in.jsonl --index i --weights tf,impact --quiet").succeeded();
    assert_golden("stats", &place.run("stats --index i").succeeded());
    let stats = place.run("stats --index i --json").json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let sum =
        |what: &str| ["short", "sparse", "dense"].map(|kind| number(&stats["lists"][kind][what])).iter().sum::<u64>();
    assert_eq!((sum("lists"), sum("postings")), (number(&stats["terms"]), number(&stats["postings"])));
    for (section, kinds) in [("short-lists", &["short"][..]), ("long-lists", &["sparse", "dense"])] {
        let sections = stats["sections"].as_array().unwrap();
        let size = sections.iter().find(|entry| entry["name"] == section).unwrap();
        let parts = |kind: &&str| stats["lists"][kind]["bytes"].as_object().unwrap().values().map(number).sum::<u64>();
        assert_eq!(kinds.iter().map(parts).sum::<u64>(), number(&size["bytes"]), "{section}");
    }
    let rows = stats["lists"]["lengths"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| number(&row["lists"])).sum::<u64>(), number(&stats["terms"]));
}

#[test]
fn verify_names_the_first_broken_section() {
    let place = birds();
    assert_golden("verify", &place.run("verify --index birds").succeeded());
    let path = place.path("birds/segment-00000001");
    let sound = std::fs::read(&path).unwrap();
    let header = lanner::Index::open(place.path("birds")).unwrap().segment().header().clone();
    for section in Section::ALL {
        let Some(entry) = header.entry(section).filter(|entry| entry.length > 0) else {
            continue;
        };
        let mut bytes = sound.clone();
        bytes[entry.offset as usize] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = place.run("verify --index birds").error();
        let expected = format!("section '{}' is damaged: its checksum does not match", section.name());
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_search_finds_a_flipped_bit_unless_it_is_told_not_to_look() {
    let place = birds();
    let search = |options: &str| place.run(&format!("search --index birds --json {options} falcons"));
    let hits = |options: &str| search(options).json()["hits"].to_string();
    for how in ["lazy", "full", "off"] {
        assert_eq!(hits(&format!("--verify {how}")), hits(""), "{how}");
    }
    let sound = hits("");
    let index = lanner::Index::open(place.path("birds")).unwrap();
    let ids = index.segment().section_range(Section::Ids);
    let mut bytes = index.segment().file().to_vec();
    let at = bytes[ids.clone()].windows(6).position(|id| id == b"lanner").unwrap();
    bytes[ids.start + at] ^= 4;
    // The program may not read a file that is being written.
    std::fs::remove_file(place.path("birds/segment-00000001")).unwrap();
    std::fs::write(place.path("birds/segment-00000001"), bytes).unwrap();
    for how in ["", "--verify lazy", "--verify full"] {
        let error = search(how).error();
        assert!(error.contains("is damaged: ") && error.contains("checksum"), "{how}: {error}");
        assert!(error.contains("; restore the file from a copy or rebuild the index"), "{how}: {error}");
    }
    assert_ne!(hits("--verify off"), sound);
    let error = search("--verify often").usage_error();
    assert!(error.contains("unknown choice \"often\"; choose lazy, full or off"), "{error}");
}

#[test]
fn a_ciff_round_trip_keeps_documents_frequencies_and_lengths() {
    let place = birds();
    place.run("export --format ciff --index birds --output birds.ciff --quiet").succeeded();
    place.run("index --input birds.ciff --index again --quiet").succeeded();
    place.run("export --index again --output again.ciff").succeeded();
    assert_eq!(std::fs::read(place.path("birds.ciff")).unwrap(), std::fs::read(place.path("again.ciff")).unwrap());
    let units = |index: &str| {
        let answer = place.run(&format!("search --index {index} --json hunting falcons")).json();
        let hits = answer["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| (hit["id"].to_string(), hit["units"].as_u64())).collect::<Vec<_>>()
    };
    assert_eq!(units("birds"), units("again"));
    let piped = place.shell("\"$LANNER\" export --index birds --output - --quiet | cmp - birds.ciff");
    assert_eq!(piped.succeeded(), "");
    assert_eq!(place.names(".").iter().filter(|name| name.contains("partial")).count(), 0);
    let error = place.run("index --input birds.ciff --index again --fields title").error();
    assert_eq!(error, "a CIFF file holds postings and no fields; leave out --fields");
}

#[test]
fn eval_prints_a_table() {
    let place = Place::new();
    place.write("qrels", "1 0 a 1\n1 0 b 0\n2 0 c 2\n3 0 d 1\n");
    place.write("run", "1 Q0 b 1 2.5 x\n1 Q0 a 2 1.5 x\n2 Q0 c 1 3 x\n9 Q0 c 1 3 x\n");
    let outcome = place.run("eval --qrels qrels --run run");
    let warnings = "warning: judged queries without hits in the run: 1 of 3; they count as 0\n\
                    warning: queries of the run without judgements: 1; they are left out\n";
    assert_eq!(outcome.stderr, warnings);
    let mut text = outcome.succeeded();
    text += &place.run("eval --qrels qrels --run run --per-query --measures RR@10,nDCG@10").succeeded();
    assert_golden("eval", &text);
    let json = place.run("eval --qrels qrels --run run --json --measures RR@10").json();
    assert_eq!((&json["mean"]["RR@10"], &json["per_query"]["1"]["RR@10"]), (&0.5.into(), &0.5.into()));
}

#[test]
fn demo_indexes_the_crates_of_a_registry_and_answers_in_every_mode() {
    let place = Place::new();
    place.write("home/registry/src/a/json-1.0.0/README.md", "# A JSON crate\n\nParses a JSON string, or a file.\n");
    place.write("home/registry/src/a/json-1.0.0/src/lib.rs", "//! Parse JSON.\nfn parse(string: &str) {}\n");
    place.write("home/registry/src/a/map-2.1.0/README.md", "# Memory maps\n\nA memory mapped file.\n");
    place.write("home/registry/src/a/map-2.1.0/LICENSE.md", "# Parse json string\n");
    let output = place.command("demo").env("CARGO_HOME", place.path("home")).output().unwrap();
    let text = Outcome::of(output).succeeded();
    let text = text.replace(crate::program::PROGRAM, "lanner");
    assert_golden("demo", &text);
    assert_eq!(verified(&place.path("demo-index")).0, 3);
}

#[test]
fn demo_falls_back_to_the_documents_of_the_project() {
    let place = Place::new();
    let output = place.command("demo --quiet").env("CARGO_HOME", place.path("none")).output().unwrap();
    let text = Outcome::of(output).succeeded();
    assert!(text.starts_with("Indexing the project's own sources and documents: "), "{text}");
    assert!(verified(&place.path("demo-index")).0 > 10);
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let place = Place::new();
    place.write("in.jsonl", documents(2000, 40, 300, 3));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    for line in ["search --index i -k 2000 --json bake", "search --index i -k 2000 bake", "export --index i --output -"]
    {
        let mut command = place.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let outcome = Outcome::of(child.wait_with_output().unwrap());
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn an_index_truncated_under_a_running_search_ends_it_with_one_line() {
    let place = Place::new();
    place.write("in.jsonl", documents(3000, 40, 300, 3));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    let mut command = place.command("search --index i -k 1 --json");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    input.write_all(b"bake\n").unwrap();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("\"hits\":[{"), "{line}");
    let segment = std::fs::File::options().write(true).open(place.path("i/segment-00000001")).unwrap();
    segment.set_len(4096).unwrap();
    // The pipe may be closed already when the second line is written.
    let _ = input.write_all(b"bake ti lo mu\n");
    drop(input);
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(outcome.status, Some(74), "{outcome:?}");
    let expected = "error: a file of the index was truncated while it was being read; \
                    restore it from a copy or rebuild the index with 'lanner index', then start again\n";
    assert_eq!(outcome.stderr, expected);
}
