//! Input that is not what the user took it for: nothing of it is lost without a word, and no good index with it.

use crate::program::{Outcome, Place, birds, verified};
use crate::texts::BIRDS;
use serde_json::{Value, json};
use std::io::Write;

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 1).unwrap()
}

fn json_lines(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_build_without_a_usable_document_fails_and_keeps_the_old_index() {
    let place = birds();
    let before = verified(&place.path("birds"));
    let check = "; check --format and --id-field";
    let advice = "; check --input, or give --allow-empty if you want an empty index";
    let cases = [
        (
            "--input birds.jsonl --format tsv",
            "no usable document: 5 records skipped, the first at birds.jsonl:1: no tab; expected id<TAB>text",
            check,
        ),
        (
            "--input birds.jsonl --id-field key",
            "no usable document: 5 records skipped, the first at birds.jsonl:1: field \"key\" is missing; fields seen: id, title, text",
            check,
        ),
        ("--input - --format jsonl", "no usable document: the input is empty", advice),
    ];
    for (input, expected, advice) in cases {
        let error = place.run(&format!("index {input} --index birds")).error();
        assert_eq!(error, format!("{expected}{advice}"), "{input}");
        assert_eq!(verified(&place.path("birds")), before, "{input}");
    }
    place.run("index --input - --format jsonl --index empty --allow-empty").succeeded();
    place.run("export --index empty --output empty.ciff").succeeded();
    let error = place.run("index --input empty.ciff --index birds").error();
    assert_eq!(error, format!("no usable document: the input is empty{advice}"));
    assert_eq!(verified(&place.path("birds")), before);
}

#[test]
fn more_skipped_records_than_allowed_fail_the_build_and_keep_the_old_index() {
    let place = birds();
    let before = verified(&place.path("birds"));
    let lines = |good: u32, bad: &str| (0..good).map(|id| format!("{id}\tword\n")).collect::<String>() + bad;
    place.write("tenth.tsv", lines(18, "no tab\n3\trepeated\n"));
    place.write("more.tsv", lines(17, "no tab\n3\trepeated\n"));
    let report = place.run("index --input tenth.tsv --index i --json").json();
    assert_eq!((&report["documents"], &report["malformed"], &report["duplicates"]), (&18.into(), &1.into(), &1.into()));
    let error = place.run("index --input more.tsv --index birds").error();
    assert_eq!(
        error,
        "2 of 19 records skipped, more than 10%, the first at more.tsv:18: no tab; expected id<TAB>text; \
         correct the input, check --format and --id-field, or allow more with --max-skipped"
    );
    assert_eq!(verified(&place.path("birds")), before);
    place.run("index --input more.tsv --index i --max-skipped 11%").succeeded();
    place.run("index --input more.tsv --index i --max-skipped 0.11").succeeded();
    let error = place.run("index --input tenth.tsv --index i --max-skipped 0").error();
    assert!(error.starts_with("2 of 20 records skipped, more than 0%"), "{error}");
    for share in ["1.5", "-1%", "much", "NaN", "101%"] {
        let error = place.run(&format!("index --input tenth.tsv --index i --max-skipped={share}")).usage_error();
        assert!(error.contains("write a share such as 0.1 or 10%"), "{error}");
    }
}

#[test]
fn an_index_below_the_input_is_left_out_and_one_as_input_is_refused() {
    let place = Place::new();
    place.write("a.txt", "falcon");
    place.write("deep/b.txt", "heron");
    // The second build finds the index of the first, and an unfinished one besides.
    for _ in 0..2 {
        let report = place.run("index --input . --index ./deep/idx --json").json();
        assert_eq!(report["documents"], 2);
        place.write("other/lock", "");
        place.write("other/building/run-1", "half");
    }
    let report = place.run("index --input . --index deep/idx --json").json();
    assert_eq!((&report["documents"], &report["left_out"]), (&2.into(), &json!([{"reason": "index", "count": 2}])));
    let expected = "deep/idx: this folder holds an index, not documents; give the folder or file of the documents";
    assert_eq!(place.run("index --input deep/idx --index deep/idx").error(), expected);
    assert_eq!(place.run("index --input deep/idx --index new").error(), expected);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("deep/idx"), place.path("link")).unwrap();
        let error = place.run("index --input link --index deep/idx").error();
        assert_eq!(error, expected.replacen("deep/idx", "link", 1));
    }
    assert_eq!(verified(&place.path("deep/idx")).0, 2);
}

#[test]
fn the_format_is_found_for_each_file_of_a_folder_and_what_is_left_out_is_named() {
    let place = Place::new();
    place.write("docs/README.md", "falcon readme");
    place.write("docs/birds.jsonl", BIRDS);
    place
        .write("docs/birds.json", "{\"id\":\"json-1\",\"text\":\"falcon\"}\n{\"id\":\"json-2\",\"text\":\"falcon\"}\n");
    place.write("docs/package.json", "{\n  \"name\": \"falcon\"\n}\n");
    place.write("docs/table.tsv.gz", gzip("tsv-1\tfalcon\n"));
    place.write("docs/old/ft911", "<DOC>\n<DOCNO>trec-1</DOCNO>\nfalcon\n</DOC>\n");
    place.write("docs/a.png", b"\x89PNG\r\n\x1a\n\0\0");
    place.write("docs/b.PNG", b"\x89PNG\r\n\x1a\n\0\0");
    place.write("docs/late", [b"text ".repeat(50_000).as_slice(), b"\0"].concat());
    place.write("docs/paper.pdf", "%PDF-1.7\n");
    place.write("docs/.git/config", "falcon");
    place.write("docs/.hidden", "falcon");
    let outcome = place.run("index --input docs --index i");
    assert!(outcome.stdout.contains("documents   11\n"), "{outcome:?}");
    let line =
        "left out    1 binary file, 1 binary file (.pdf), 2 binary files (.png), 1 hidden file, 1 hidden folder\n";
    assert!(outcome.stdout.contains(line), "{outcome:?}");
    assert_eq!((outcome.stderr.as_str(), outcome.status), ("", Some(0)));
    let report = place.run("index --input docs --index i --json").json();
    assert_eq!(
        report["left_out"],
        json!([
            {"reason": "binary", "count": 1},
            {"reason": "binary", "extension": "pdf", "count": 1},
            {"reason": "binary", "extension": "png", "count": 2},
            {"reason": "hidden-file", "count": 1},
            {"reason": "hidden-folder", "count": 1},
        ])
    );
    let hits = place.run("search --index i -k 100 --json falcon").json();
    let mut ids: Vec<&str> = hits["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["README.md", "json-1", "json-2", "lanner", "package.json", "saker", "trec-1", "tsv-1"]);
    let report = place.run("index --input docs --index i --format tsv --json").json();
    assert_eq!(report["documents"], 1);
    let others: u64 = report["left_out"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(others, 11, "{report}");
}

#[test]
fn a_beir_folder_is_its_corpus_and_the_rest_is_counted() {
    let place = Place::new();
    place.write("beir/corpus.jsonl", "{\"_id\":\"a\",\"text\":\"falcon\"}\n");
    place.write("beir/queries.jsonl", "{\"_id\":\"q\",\"text\":\"falcon\"}\n");
    place.write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\n");
    let outcome = place.run("index --input beir --index i");
    let line = "left out    1 file beside the corpus (.jsonl), 1 file beside the corpus (.tsv)\n";
    assert!(outcome.stdout.contains("documents   1\n") && outcome.stdout.contains(line), "{outcome:?}");
}

#[test]
fn queries_judgements_runs_and_ranks_may_be_compressed() {
    let place = birds();
    place.write("queries", "q1\tfalcon\nq2\theron\n");
    let plain = place.run("search --index birds --queries queries --run -").succeeded();
    assert!(plain.contains("q2 Q0 heron 1 "), "{plain}");
    place.write("qrels", "q1 0 lanner 1\nq2 0 heron 1\n");
    place.write("run", &plain);
    place.write("ranks", "heron\t1\n");
    let measured = place.run("eval --qrels qrels --run run").succeeded();
    let ranked = |name: &str| {
        place.run(&format!("index --input birds.jsonl --index i --rank {name} --quiet")).succeeded();
        place.run("search --index i --score rank-bm25 --json heron").json()["hits"].clone()
    };
    let by_rank = ranked("ranks");
    for ending in ["gz", "zst"] {
        for name in ["queries", "qrels", "run", "ranks"] {
            let text = std::fs::read_to_string(place.path(name)).unwrap();
            place.write(&format!("{name}.{ending}"), if ending == "gz" { gzip(&text) } else { zstd(&text) });
        }
        let run = place.run(&format!("search --index birds --queries queries.{ending} --run -")).succeeded();
        assert_eq!(run, plain, "{ending}");
        let packed = std::fs::read(place.path(&format!("queries.{ending}"))).unwrap();
        assert_eq!(place.run_with("search --index birds --queries - --run -", &packed).succeeded(), plain, "{ending}");
        let eval = format!("eval --qrels qrels.{ending} --run run.{ending}");
        assert_eq!(place.run(&eval).succeeded(), measured, "{ending}");
        assert_eq!(ranked(&format!("ranks.{ending}")), by_rank, "{ending}");
    }
}

#[test]
fn binary_and_damaged_files_and_ids_in_invalid_utf8_are_refused_alike() {
    let place = birds();
    place.write("good", "1 0 lanner 1\n");
    place.write("binary", b"q1\tfalcon\nq2\tow\0l\n");
    place.write("latin", b"q1\t1\nq2\tpi\xf1ata\n");
    place.write("cut.gz", &gzip("q1\tfalcon\nq2\tlanner\n")[..20]);
    let cases = [
        ("binary", "binary: a NUL at byte 15: a binary file where text is expected; check that it is the right file"),
        ("latin", "latin:2: not valid UTF-8; convert the file to UTF-8"),
        ("cut.gz", "cut.gz: the gzip data ends too early, at byte 20; get a complete copy of the file"),
    ];
    for (name, expected) in cases {
        let lines = [
            format!("search --index birds --queries {name} --json"),
            format!("eval --qrels {name} --run good"),
            format!("eval --qrels good --run {name}"),
            format!("index --input birds.jsonl --index birds --rank {name}"),
        ];
        // Queries are text: invalid bytes in them are replaced, and counted.
        for line in lines.iter().skip(usize::from(name == "latin")) {
            assert_eq!(place.run(line).error(), expected, "{line}");
        }
    }
    let outcome = place.run("search --index birds --queries latin --json");
    assert_eq!(json_lines(&outcome).len(), 2);
    assert!(outcome.stderr.starts_with("warning: 1 line of the queries not valid UTF-8; "), "{outcome:?}");
    assert_eq!(outcome.status, Some(0));
    assert_eq!(verified(&place.path("birds")), (5, 1));
}

#[test]
fn a_single_query_writes_a_run() {
    let place = birds();
    let text = place.run("search --index birds --run out --tag mine -k 1 heron").succeeded();
    assert!(text.contains("heron") && text.contains("1 hit in "), "hits are shown as well: {text}");
    let run = std::fs::read_to_string(place.path("out")).unwrap();
    let columns: Vec<&str> = run.trim_end().split(' ').collect();
    assert_eq!((columns[..4].join(" ").as_str(), columns[5], run.lines().count()), ("1 Q0 heron 1", "mine", 1));
    assert_eq!(place.run("search --index birds --run - --tag mine -k 1 heron").succeeded(), run);
    assert_eq!(
        place.run("search --index birds --run both --tag mine -k 1 --json heron").json()["hits"][0]["id"],
        "heron"
    );
    assert_eq!(std::fs::read_to_string(place.path("both")).unwrap(), run);
    place.run("search --index birds --run out heron^0").error();
    assert_eq!(std::fs::read_to_string(place.path("out")).unwrap(), run, "a query that fails leaves the old run");
    let error = place.run("search --index birds --run - --json heron").error();
    assert!(error.starts_with("the run and the JSON cannot both go to standard output"), "{error}");
    let error = place.run("search --index birds --run out").error();
    assert_eq!(error, "--run needs a query or --queries; for queries from standard input give --queries -");
}

#[test]
fn a_line_that_fails_has_an_error_in_its_place() {
    let place = birds();
    let input = b"falcon pairs\nfalcon^0\n\xff heron\nbarn owls\n";
    let outcome = place.run_with("search --index birds --json -k 1", input);
    let answers = json_lines(&outcome);
    let found: Vec<&Value> = answers.iter().map(|answer| &answer["hits"][0]["id"]).collect();
    assert_eq!(found, [&json!("lanner"), &Value::Null, &json!("heron"), &json!("owl")]);
    assert_eq!(answers[1]["query"], "falcon^0");
    assert!(answers[1]["error"].as_str().unwrap().starts_with("the weight 0 of \"falcon\" is out of range"));
    let replaced = "warning: a query is not valid UTF-8; its invalid bytes were replaced by U+FFFD";
    let expected = format!("{replaced}\nerror: 1 of 4 queries failed\n");
    assert_eq!((outcome.stderr, outcome.status), (expected, Some(1)));
    let outcome = place.run_with("search --index birds -k 1", input);
    let told: Vec<&str> = outcome.stderr.lines().collect();
    assert!(told[0].starts_with("error: the weight 0 of \"falcon\" is out of range"), "{told:?}");
    assert_eq!(told[1..], [replaced, "error: 1 of 4 queries failed"]);
    assert_eq!((outcome.stdout.matches(" hit in ").count(), outcome.status), (3, Some(1)));
}
