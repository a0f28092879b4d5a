//! What is wrong with the input or the command line, one by one: a clear line, a status, nothing lost.

use crate::program::{Place, birds, verified};
use crate::texts::BIRDS;
use std::fs::File;

#[test]
fn a_missing_index_is_named_with_the_command_that_makes_one() {
    let place = Place::new();
    let expected =
        "nowhere: no index here; build one in this folder first; try 'lanner index --input PATH --index nowhere'";
    let lines = ["search --index nowhere x", "explain --index nowhere x", "stats --index nowhere"];
    for line in lines.into_iter().chain(["verify --index nowhere", "export --index nowhere --output x"]) {
        assert_eq!(place.run(line).error(), expected, "{line}");
    }
    assert!(place.names(".").is_empty(), "nothing was made");
}

#[test]
fn a_folder_with_other_files_is_not_written_to() {
    let place = birds();
    place.write("home/letter.txt", "Dear Sir");
    let error = place.run("index --input birds.jsonl --index home").error();
    assert_eq!(error, "home: the folder is not empty and holds no index; choose an empty or a new folder");
    assert_eq!(place.names("home"), ["letter.txt"]);
}

#[test]
fn a_second_writer_is_refused_while_readers_go_on() {
    let place = birds();
    let lock = File::options().append(true).open(place.path("birds/lock")).unwrap();
    lock.lock().unwrap();
    let error = place.run("index --input birds.jsonl --index birds").error();
    let expected = "birds: another process is writing this index; wait until it has finished, or choose another folder";
    assert_eq!(error, expected);
    assert!(place.run("search --index birds falcon").succeeded().contains("lanner"));
    drop(lock);
    place.run("index --input birds.jsonl --index birds").succeeded();
}

#[test]
fn malformed_lines_are_skipped_and_counted_or_stop_a_strict_build() {
    let place = birds();
    place.write(
        "bad.jsonl",
        format!("{BIRDS}{{\"id\":\"x\"\n{{\"text\":\"no id\"}}\n{{\"id\":\"last\",\"text\":\"ok\"}}\n"),
    );
    let outcome = place.run("index --input bad.jsonl --index birds --max-skipped 25%");
    assert!(
        outcome.stderr.starts_with("warning: 2 records skipped (2 malformed, 0 with an id seen before)\n"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("bad.jsonl:6: ") && outcome.stderr.contains("bad.jsonl:7: "), "{outcome:?}");
    assert!(outcome.succeeded().contains("documents   6\n"));
    let report = place.run("index --input bad.jsonl --index birds --max-skipped 25% --json").json();
    assert_eq!((report["malformed"].as_u64(), report["problems"].as_array().unwrap().len()), (Some(2), 2));
    let before = verified(&place.path("birds"));
    let error = place.run("index --input bad.jsonl --index birds --strict").error();
    assert!(error.starts_with("bad.jsonl:6: ") && error.contains("leave out --strict"), "{error}");
    assert_eq!(verified(&place.path("birds")), before, "a failed build changes nothing");
}

#[test]
fn of_documents_with_one_id_the_first_stays_or_a_strict_build_stops() {
    let place = Place::new();
    place.write("in.tsv", "a\tfirst\nb\tother\na\tsecond\n");
    let outcome = place.run("index --input in.tsv --index i --quiet --max-skipped 0.34");
    assert_eq!(outcome.stderr, "warning: 1 record skipped (0 malformed, 1 with an id seen before)\n");
    assert_eq!(place.run("search --index i --json first").json()["hits"][0]["id"], "a");
    assert_eq!(place.run("search --index i --json second").json()["hits"], serde_json::json!([]));
    let error = place.run("index --input in.tsv --index i --strict").error();
    assert!(error.contains("\"a\"") && error.contains("leave out --strict"), "{error}");
}

#[test]
fn bytes_that_are_not_utf8_make_a_line_malformed() {
    let place = Place::new();
    place.write("in.tsv", b"a\tone\nb\ttwo \xff\xfe\nc\tthree\n");
    let outcome = place.run("index --input in.tsv --index i --max-skipped 0.34");
    assert!(outcome.stderr.contains("in.tsv:2: ") && outcome.stderr.contains("UTF-8"), "{outcome:?}");
    assert_eq!(verified(&place.path("i")).0, 2);
}

#[test]
fn documents_without_words_are_documents() {
    let place = Place::new();
    place.write("in.jsonl", "{\"id\":\"a\",\"text\":\"\"}\n{\"id\":\"b\"}\n{\"id\":\"c\",\"text\":\"the ... !\"}\n");
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    assert_eq!(verified(&place.path("i")).0, 3);
    assert!(place.run("search --index i anything").succeeded().starts_with("no hits in "));
}

#[test]
fn an_empty_input_gives_an_empty_index_where_it_is_allowed() {
    let place = Place::new();
    place.write("in.jsonl", "");
    let outcome = place.run("index --input in.jsonl --index i --allow-empty");
    assert_eq!((outcome.stderr.as_str(), outcome.status), ("", Some(0)));
    assert_eq!(verified(&place.path("i")).0, 0);
    assert!(place.run("search --index i word").succeeded().starts_with("no hits in "));
    assert!(place.run("stats --index i").succeeded().contains("documents       0\n"));
    place.run("export --index i --output empty.ciff").succeeded();
}

#[test]
fn a_document_of_a_hundred_megabytes_is_indexed() {
    let place = Place::new();
    let sentence = "lanner falcons hunt in pairs over open country ";
    let text = sentence.repeat(100_000_000 / sentence.len() + 1);
    place.write("in.tsv", format!("small\tfalcon\nlarge\t{text}rare\nafter\tfalcon\n"));
    drop(text);
    let report = place.run("index --input in.tsv --index i --analyzer simple --memory 64MiB --json").json();
    assert_eq!((report["documents"].as_u64(), report["malformed"].as_u64()), (Some(3), Some(0)));
    let answer = place.run("search --index i --json --mode and falcons rare").json();
    assert_eq!(answer["hits"][0]["id"], "large");
    assert_eq!(answer["hits"][0]["snippet"]["is_cut_after"], true);
}

#[test]
fn an_input_that_cannot_be_read_is_named() {
    let place = Place::new();
    let error = place.run("index --input nothing.jsonl --index i").error();
    assert_eq!(error, "nothing.jsonl: cannot be opened: No such file or directory (os error 2)");
    place.write("unclear", "one line that could be anything\n");
    let error = place.run("index --input unclear --index i").error();
    assert_eq!(
        error,
        "unclear: cannot tell the format; name it with --format jsonl|json|tsv|csv|trec|beir|bulk|text|ciff"
    );
    place.write("cut.jsonl.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab]);
    let error = place.run("index --input cut.jsonl.gz --format jsonl --index i").error();
    assert!(error.contains("the gzip data ends too early"), "{error}");
    place.write("not.ciff", "certainly not protobuf");
    let error = place.run("index --input not.ciff --index i").error();
    assert!(error.contains("CIFF header"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_that_the_system_cannot_read_is_named_and_nothing_changes() {
    let place = birds();
    let before = verified(&place.path("birds"));
    let error = place.run("index --input /proc/self/mem --format tsv --index birds").error();
    assert_eq!(error, "/proc/self/mem: cannot be opened: Input/output error (os error 5)");
    assert_eq!(verified(&place.path("birds")), before);
}

#[test]
fn names_that_do_not_exist_are_answered_with_those_that_do() {
    let place = birds();
    let index = "index --input birds.jsonl --index i";
    let cases = [
        (format!("{index} --analyzer klingon"), "give english, simple, whitespace or pretokenized"),
        (format!("{index} --codec zip"), "the codecs are raw, bitpack, elias-fano"),
        (format!("{index} --format pdf"), "choose one of jsonl, json, tsv, csv, trec, beir, bulk, text, ciff"),
        (format!("{index} --order random"), "choose given or bisection"),
        (format!("{index} --weights tfidf"), "give tf, impact or tf,impact"),
        (format!("{index} --memory plenty"), "write one such as 256MiB"),
        ("search --index birds --mode xor x".to_owned(), "give one of and, or, and-or"),
        ("search --index birds --score tfidf x".to_owned(), "give bm25, impact, rank-bm25"),
        ("search --index birds --algorithm magic x".to_owned(), "give one of auto, exhaustive, conjunction, maxscore"),
        ("search --index birds -k 0 x".to_owned(), "0 is not in 1.."),
        ("search --index birds --queries f --query-format x --run r".to_owned(), "use tsv, colon, lines, trec"),
        ("export --index birds --format lucene --output x".to_owned(), "an index can be exported as ciff"),
        ("export --index birds --values bounds --output x".to_owned(), "export frequencies or impacts"),
    ];
    for (line, expected) in cases {
        let error = place.run(&line).usage_error();
        assert!(error.contains(expected), "{line}: {error}");
    }
    place.write("qrels", "1 0 a 1\n");
    let error = place.run("eval --qrels qrels --run qrels --measures nDCG@10,BLEU").error();
    assert!(error.starts_with("measure 'BLEU' is not known; use nDCG[@k]"), "{error}");
    assert!(!place.path("i").exists(), "nothing was made");
}

#[test]
fn options_out_of_range_and_scores_that_the_index_cannot_give_are_refused() {
    let place = birds();
    let index = "index --input birds.jsonl --index i";
    let cases = [
        (format!("{index} --k1 -1"), "k1 must be from 0 to 1000 and b from 0 to 1"),
        (format!("{index} --b 2"), "k1 must be from 0 to 1000 and b from 0 to 1"),
        (format!("{index} --memory 1MiB"), "the memory must be at least 32MiB"),
        (format!("{index} --threads 0"), "the number of threads must be from 1 to 1024"),
        ("search --index birds --score impact x".to_owned(), "the index has no impacts; score by bm25, or"),
        ("search --index birds --score rank-bm25 x".to_owned(), "the index has no static ranks; score by bm25, or"),
        ("search --index birds --score bm25 --alpha 0.5 x".to_owned(), "--alpha needs --score rank-bm25"),
        (
            "search --index birds --algorithm maxscore --mode and x".to_owned(),
            "`maxscore` does not answer `and` queries",
        ),
        ("search --index birds --budget 5 x".to_owned(), "only score-at-a-time keeps a budget"),
        ("search --index birds falcon^0".to_owned(), "the weight 0 of \"falcon\" is out of range"),
    ];
    for (line, expected) in cases {
        let error = place.run(&line).error();
        assert!(error.starts_with(expected), "{line}: {error}");
    }
}
