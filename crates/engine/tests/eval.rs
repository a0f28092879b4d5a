//! Evaluation of whole files, against the values of `ir_measures` 0.4.3 (with `pytrec-eval-terrier` 0.5.11).
//!
//! The inputs under `golden/eval/` are synthetic. The values beside them are what `ir_measures.calc` gives for the
//! measures named there, in an environment with `pip install ir_measures==0.4.3 pytrec-eval-terrier==0.5.11` and no
//! other provider (with `cwl-eval` beside them, `RR@k` would come from there).

mod requirements;

use lanner::eval::{Measure, Qrels, Run, TopicFormat, Topics, evaluate};
use requirements::{needs_data, test};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    requirements::run([
        test(ties_are_settled_as_the_package_does),
        test(graded_and_negative_judgements_give_the_values_of_the_package),
        test(queries_without_hits_or_relevant_documents_give_the_values_of_the_package),
        test(scores_that_only_doubles_tell_apart_give_the_values_of_the_package),
        test(more_than_a_thousand_hits_give_the_values_of_the_package),
        needs_data(test(real_judgements_give_the_values_of_the_package)),
        needs_data(test(the_formats_of_real_query_logs_are_detected)),
    ])
}

/// The package adds in another order; published values have four digits.
const TOLERANCE: f64 = 1e-12;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/eval").join(name)
}

fn golden_values(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(golden(name)).unwrap()).unwrap()
}

/// Compares our mean, or a query's values, with the package's, measure by measure.
fn assert_close(place: &str, measures: &[Measure], ours: &[f64], expected: &Value) {
    assert_eq!(expected.as_object().unwrap().len(), measures.len());
    for (measure, value) in measures.iter().zip(ours) {
        let expected = expected[measure.to_string()].as_f64().unwrap();
        assert!((value - expected).abs() < TOLERANCE, "{place}: {measure} is {value}, the package says {expected}");
    }
}

/// The measures of a golden file, parsed from the package's names.
fn measures_of(mean: &Value) -> Vec<Measure> {
    let names = mean.as_object().unwrap().keys();
    names.map(|name| name.parse().unwrap()).collect()
}

fn assert_case(name: &str) {
    let expected = golden_values(&format!("{name}.json"));
    let qrels = Qrels::open(&golden(&format!("{name}.qrels.txt"))).unwrap();
    let run = Run::open(&golden(&format!("{name}.run.txt"))).unwrap();
    let measures = measures_of(&expected["mean"]);
    let evaluation = evaluate(&qrels, &run, &measures);
    assert_close(name, &measures, &evaluation.mean, &expected["mean"]);
    let per_query = expected["per_query"].as_object().unwrap();
    assert_eq!(evaluation.per_query.len(), per_query.len());
    for row in &evaluation.per_query {
        let place = format!("{name}, query {}", row.query);
        assert_close(&place, &measures, &row.values, &per_query[&row.query]);
    }
}

fn ties_are_settled_as_the_package_does() {
    assert_case("ties");
}

fn graded_and_negative_judgements_give_the_values_of_the_package() {
    assert_case("grades");
}

fn queries_without_hits_or_relevant_documents_give_the_values_of_the_package() {
    assert_case("sparse");
}

fn scores_that_only_doubles_tell_apart_give_the_values_of_the_package() {
    assert_case("floats");
}

fn more_than_a_thousand_hits_give_the_values_of_the_package() {
    assert_case("deep");
}

/// A run with every judged document for every query. Scores are FNV-1a hashes of the ids plus a bonus for the grade, so
/// that ties and unjudged documents are common and no measure is 0 or 1.
fn synthetic_run(qrels: &Qrels) -> Run {
    let documents: BTreeSet<&String> = qrels.iter().flat_map(|(_, judgements)| judgements.keys()).collect();
    let mut text = String::new();
    for (query, _) in qrels.iter() {
        for document in &documents {
            let bytes = [query.as_bytes(), b" ", document.as_bytes()].concat();
            let digest = bytes
                .iter()
                .fold(0x811c_9dc5_u32, |digest, &byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193));
            let grade = qrels.grade(query, document).unwrap_or(0);
            let score = i64::from(digest % 1009) + 250 * i64::from(grade);
            writeln!(text, "{query} Q0 {document} 0 {score} golden").unwrap();
        }
    }
    Run::read(Path::new("synthetic"), text.as_bytes()).unwrap()
}

fn real_judgements_give_the_values_of_the_package() {
    let data = requirements::data_folder();
    let expected = golden_values("judged.json");
    for (folder, mean) in expected.as_object().unwrap() {
        let qrels = Qrels::open(&data.join("judged").join(folder).join("qrels.txt")).unwrap();
        let measures = measures_of(mean);
        let evaluation = evaluate(&qrels, &synthetic_run(&qrels), &measures);
        assert_close(folder, &measures, &evaluation.mean, mean);
    }
}

fn the_formats_of_real_query_logs_are_detected() {
    let data = requirements::data_folder();
    for (file, format, count) in [
        ("queries/tb05_efficiency.50k.txt", TopicFormat::Lines, 50_000),
        ("queries/msmarco_dev.6980.tsv", TopicFormat::Tsv, 6_980),
        ("queries/search_benchmark_game.962.jsonl", TopicFormat::JsonLines, 962),
        ("judged/cranfield/queries.tsv", TopicFormat::Tsv, 225),
    ] {
        let topics = Topics::open(&data.join(file), None).unwrap();
        assert_eq!((topics.format, topics.topics.len()), (format, count), "{file}");
    }
    // The Million Query log has a query in Latin-1.
    let topics = Topics::open(&data.join("queries/mq07.10k.txt"), None).unwrap();
    assert_eq!(topics.invalid_lines, 1);
    assert_eq!((topics.format, topics.topics.len()), (TopicFormat::Colon, 10_000));
    assert_eq!(topics.topics[8108].text, "the history of the pi\u{fffd}ata");
}
