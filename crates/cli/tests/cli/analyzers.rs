//! Analyzers that options describe: stored in the index, used by queries, shown in snippets.

use crate::program::Place;

/// Texts in several languages, as JSON lines.
const TEXTS: &str = concat!(
    r#"{"id":"cafe","text":"Das Café am Fluß hat schöne Häuser vor sich."}"#,
    "\n",
    r#"{"id":"haus","text":"Ein Haus und noch ein Haus, dazu die Kirche."}"#,
    "\n",
    r#"{"id":"zh","text":"我是中国人。"}"#,
    "\n",
    r#"{"id":"ja","text":"東京タワーへ行く"}"#,
    "\n",
);

/// A place with the texts, and an index of them that these options describe.
fn indexed(options: &str) -> Place {
    let place = Place::new();
    place.write("texts.jsonl", TEXTS);
    place.write("stop.txt", "# German\nUND ein | a comment\ndie\n");
    place.run(&format!("index --input texts.jsonl --index index {options}")).succeeded();
    place
}

/// The ids of the hits of a query, in order, and what is marked in their snippets.
#[track_caller]
fn hits(place: &Place, query: &str) -> Vec<(String, Vec<String>)> {
    let mut command = place.command("search --index index --json");
    let answer = crate::program::Outcome::of(command.arg(query).output().unwrap()).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let marked = |snippet: &serde_json::Value| {
        let ranges = snippet["matches"].as_array().unwrap().iter();
        let bound = |range: &serde_json::Value, name: &str| range[name].as_u64().unwrap() as usize;
        ranges.map(|range| text(&snippet["text"])[bound(range, "start")..bound(range, "end")].to_owned()).collect()
    };
    let hits = answer["hits"].as_array().unwrap().iter();
    hits.map(|hit| (text(&hit["id"]), marked(&hit["snippet"]))).collect()
}

fn hit(id: &str, marked: &[&str]) -> (String, Vec<String>) {
    (id.to_owned(), marked.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn folded_accents_match_in_texts_and_queries() {
    let place = indexed("--fold");
    assert_eq!(hits(&place, "cafe fluss"), [hit("cafe", &["Café", "Fluß"])]);
    assert_eq!(hits(&place, "CAFÉ"), [hit("cafe", &["Café"])]);
    assert_eq!(hits(&indexed(""), "cafe"), []);
}

#[test]
fn the_stemmer_of_a_language_matches_its_forms() {
    let place = indexed("--stem snowball:german");
    assert_eq!(hits(&place, "hauses"), [hit("haus", &["Haus", "Haus"]), hit("cafe", &["Häuser"])]);
    let stats = place.run("stats --index index").succeeded();
    assert!(stats.contains("words+lowercase+snowball:german\n"), "{stats}");
    let stats = indexed("--stem none").run("stats --index index").succeeded();
    assert!(stats.contains("words+possessive+lowercase+stop\n"), "{stats}");
}

#[test]
fn the_words_of_a_stop_file_are_stored_in_the_index() {
    let place = indexed("--analyzer simple --stop stop.txt");
    std::fs::remove_file(place.path("stop.txt")).unwrap();
    assert_eq!(hits(&place, "und die Kirche"), [hit("haus", &["Kirche"])]);
    assert_eq!(hits(&place, "und ein"), []);
    let stats = place.run("stats --index index").succeeded();
    assert!(stats.contains("words+lowercase+stop:own\nstop words      3\n"), "{stats}");
    let manifest = &place.run("stats --index index --json").json()["manifest"];
    assert_eq!(manifest["stop_words"], serde_json::json!(["die", "ein", "und"]));
}

#[test]
fn without_stop_words_all_words_are_found() {
    assert_eq!(hits(&indexed("--analyzer english"), "am"), [hit("cafe", &["am"])]);
    let place = indexed("--analyzer words+lowercase+stop --stop none");
    assert!(place.run("stats --index index").succeeded().contains("words+lowercase\n"));
}

#[test]
fn pairs_of_characters_find_words_and_not_their_characters_elsewhere() {
    let place = indexed("--cjk-bigram");
    assert_eq!(hits(&place, "中国人"), [hit("zh", &["中国人"])]);
    assert_eq!(hits(&place, "国中"), []);
    assert_eq!(hits(&place, "タワー"), [hit("ja", &["タワー"])]);
}

#[test]
fn what_cannot_be_an_analyzer_is_refused_in_one_line() {
    let place = Place::new();
    place.write("texts.jsonl", TEXTS);
    place.write("empty.txt", "# nothing\n");
    let index = |options: &str| place.run(&format!("index --input texts.jsonl --index index {options}"));
    assert!(index("--stem snowball:klingon").usage_error().contains("no language \"klingon\"; choose one of arabic, "));
    assert!(index("--stem lovins").usage_error().contains("choose none, porter or snowball:LANGUAGE"));
    assert_eq!(
        index("--stop empty.txt").error(),
        "empty.txt: holds no stop words; to keep all words, give --stop none"
    );
    assert!(index("--stop missing.txt").error().starts_with("missing.txt: cannot be opened: "));
    let misplaced = "analyzer 'whitespace': 'cjk-bigram' pairs the characters of 'words' and must follow it directly";
    assert_eq!(index("--analyzer whitespace --cjk-bigram").error(), misplaced);
    assert!(!place.path("index").exists());
}
