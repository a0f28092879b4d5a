//! Formats whose records lie across lines, and the names that fields have in collections of others.

use super::*;

/// The documents of a file, read whole and in batches of a few bytes, which must agree.
#[track_caller]
fn read(name: &str, bytes: &[u8], options: CorpusOptions) -> Vec<Seen> {
    let whole = read_file(name, bytes, options.clone(), LIMITS);
    for batch_bytes in [1, 7, 40] {
        assert_eq!(read_file(name, bytes, options.clone(), batches_of(batch_bytes)), whole, "{batch_bytes}");
    }
    whole
}

fn usual() -> CorpusOptions {
    CorpusOptions::default()
}

#[test]
fn json_objects_are_documents_in_arrays_and_on_any_lines() {
    let array =
        b"[\n  {\n    \"id\": \"a\",\n    \"text\": \"one } \\\" [\"\n  }, {\"id\": \"b\", \"text\": \"two\"}\n]\n";
    assert_eq!(read("c.json", array, usual()), [document(2, "a", &["one } \" ["]), document(5, "b", &["two"])]);
    let stream = b"{\"id\":1,\"text\":\"x\"}{\"id\":2,\n\"text\":\"y\"}\n\n{\n\"id\":3,\"text\":\"z\"}";
    assert_eq!(
        read("c.json", stream, usual()),
        [document(1, "1", &["x"]), document(1, "2", &["y"]), document(4, "3", &["z"])]
    );
    assert_eq!(read("c.json", b"[]", with_format(Format::Json)), []);
}

#[test]
fn what_is_wrong_in_a_stream_of_json_is_named_with_its_line() {
    let text = b"[{\"id\":\"1\",\"text\":\"a\"},\n7, \"x\",\n{\"id\":\"2\",\n\"text\" 5},\n{\"id\":\"3\",\"text\":\"b\"},\n{\"id\":";
    assert_eq!(
        read("c.json", text, usual()),
        [
            document(1, "1", &["a"]),
            problem("c.json", 2, "expected a JSON object"),
            problem("c.json", 4, "expected `:` (column 8)"),
            document(5, "3", &["b"]),
            problem(
                "c.json",
                6,
                "EOF while parsing a value (column 6); the object has no end, and nothing after it is read"
            ),
        ]
    );
    assert_eq!(
        read("c.json", b"[\n{\"id\":\"1\",\"text\":\"a\"},\n", usual()),
        [document(2, "1", &["a"]), problem("c.json", 3, "an array without its end; is the file complete?")]
    );
}

#[test]
fn an_array_of_any_length_is_read_in_batches() {
    let object = "{\n  \"id\": \"1\",\n  \"text\": \"some words\"\n},\n";
    let text = format!("[{}{{\"id\":2}}]", object.repeat(100_000));
    let folder = Folder::with([("c.json", text.as_bytes())]);
    let mut corpus = Corpus::open(&folder.path().join("c.json"), usual()).unwrap();
    let cut = batches(&mut corpus);
    assert_eq!(cut.len(), text.len().div_ceil(1 << 20));
    assert!(cut.iter().all(|batch| raw(batch).len() < (1 << 20) + object.len()));
    assert_eq!(cut.iter().map(|batch| documents_of(batch).len()).sum::<usize>(), 100_001);
}

#[test]
fn csv_records_are_documents_and_the_header_names_their_fields() {
    let text =
        b"Title,ID,x,text\r\n\"Two, one\",a,0,\"line 1\nline \"\"2\"\"\"\r\n\r\n,b,1,plain\nshort,c\n,,1,no id\n\
        t,d,1,\"open";
    let body = "line 1\nline \"2\"";
    assert_eq!(
        read("c.csv", text, usual()),
        [
            document(2, "a", &["Two, one", body]),
            document(5, "b", &["", "plain"]),
            problem("c.csv", 6, "2 columns, but the header has 4; are quotes missing?"),
            problem("c.csv", 7, "the column of the id is empty"),
            problem("c.csv", 8, "a quote that is not closed, and nothing after it is read; is the file complete?"),
        ]
    );
    let named = CorpusOptions {
        id_field: Some("key".to_owned()),
        fields: Some(vec!["body".to_owned()]),
        store: Some(Vec::new()),
        ..usual()
    };
    let seen = read("c.csv", b"id;body;key\n1;\"a;b\";k\n", named);
    let expected = Seen::Document { line: 2, id: "k".to_owned(), indexed: vec!["a;b".to_owned()], stored: vec![] };
    assert_eq!(seen, [expected]);
}

#[test]
fn a_csv_file_without_an_id_column_is_refused_with_its_columns() {
    let folder = Folder::with([("a.csv", b"name,age\nx,1\n"), ("open.csv", b"id,\"text\n"), ("empty.csv", b"")]);
    let message = |name: &str| {
        let opened = Corpus::open(&folder.path().join(name), usual());
        opened.err().map(|error| error.to_string().rsplit_once('/').unwrap().1.to_owned())
    };
    let expected = "a.csv:1: field \"id\" is missing, and _id, docno, docid as well; fields seen: name, age";
    assert_eq!(message("a.csv").unwrap(), expected);
    assert!(message("open.csv").unwrap().starts_with("open.csv: no header;"));
    assert_eq!(message("empty.csv"), None, "an empty file has no documents");
}

#[test]
fn bulk_actions_and_sources_are_documents() {
    let text = br#"{"index":{"_index":"a","_id":"1"}}
{"title":"T","text":"one"}
{ "create" : { "_id" : 2 } }
{"id":"own","text":"two"}
{"delete":{"_id":"1"}}
{"update":{"_id":"1"}}
{"doc":{"text":"changed"}}
{"index":{}}
{"docno":"own","text":"three"}

{"text":"no action"}
{"index":{}}
{"text":"no id"}
{"index":{"_id":"4"}}
{"text":"four"
{"index":{"_id":"5"}}"#;
    let unfit = "only index and create make documents, and an index is built from them; leave the action out";
    assert_eq!(
        read("c.ndjson", text, usual()),
        [
            document(2, "1", &["T", "one"]),
            document(4, "2", &["two"]),
            problem("c.ndjson", 5, unfit),
            problem("c.ndjson", 6, unfit),
            document(9, "own", &["three"]),
            problem("c.ndjson", 11, "no action; expected {\"index\":{\"_id\":\"…\"}}, then the document"),
            problem("c.ndjson", 13, "field \"id\" is missing, and _id, docno, docid as well; fields seen: text"),
            problem("c.ndjson", 15, "EOF while parsing an object (column 14)"),
            problem("c.ndjson", 16, "an action without the line of its document; is the file complete?"),
        ]
    );
    let named = CorpusOptions { id_field: Some("key".to_owned()), ..usual() };
    let text = b"{\"index\":{\"_id\":\"1\"}}\n{\"key\":\"k\",\"text\":\"x\"}\n";
    assert_eq!(ids(&read("c.json", text, named)), ["k"], "a named field wins");
}

#[test]
fn fields_are_known_by_the_names_of_other_collections() {
    let text = b"{\"id\":\"1\",\"contents\":\"pyserini\"}\n{\"docno\":\"2\",\"body\":\"b\",\"title\":\"t\"}\n\
        {\"_id\":\"3\",\"docid\":\"x\",\"text\":\"t\",\"body\":{\"html\":1}}\n{\"docid\":4,\"text\":\"\",\"body\":\"b\"}\n";
    assert_eq!(
        read("c.jsonl", text, usual()),
        [
            document(1, "1", &["pyserini"]),
            document(2, "2", &["t", "b"]),
            document(3, "3", &["t"]),
            document(4, "4", &["b"]),
        ]
    );
    let fields = CorpusOptions { fields: Some(vec!["text".to_owned()]), store: Some(Vec::new()), ..usual() };
    let bare = |id: &str| Seen::Document { line: 1, id: id.to_owned(), indexed: Vec::new(), stored: Vec::new() };
    assert_eq!(read("c.jsonl", b"{\"id\":\"1\",\"contents\":\"x\"}", fields), [bare("1")], "named fields win");
    let id = CorpusOptions { id_field: Some("id".to_owned()), ..usual() };
    let what = "field \"id\" is missing; fields seen: _id";
    assert_eq!(read("c.jsonl", b"{\"_id\":\"1\"}", id), [problem("c.jsonl", 1, what)]);
}

#[test]
fn a_document_without_indexed_fields_says_which_it_has() {
    let other = |name: &str, bytes: &[u8], options: CorpusOptions| {
        let folder = Folder::with([(name, bytes)]);
        let mut corpus = Corpus::open(&folder.path().join(name), options).unwrap();
        let mut other = Vec::new();
        for batch in batches(&mut corpus) {
            batch.documents(&mut |record| other.push(record.unwrap().other_fields.join(" ")));
        }
        other
    };
    let lines = b"{\"id\":1,\"doc\":{\"text\":\"x\"},\"tags\":[\"a\"],\"url\":\"u\"}\n{\"id\":2,\"text\":\"\"}\n";
    assert_eq!(other("c.jsonl", lines, usual()), ["id doc (object) tags (array) url", ""]);
    assert_eq!(other("c.csv", b"id,url\n1,u\n", usual()), ["id url"]);
    let vectors = CorpusOptions { vector_field: Some("v".to_owned()), ..usual() };
    assert_eq!(other("c.jsonl", b"{\"id\":1,\"v\":{\"a\":1}}", vectors), [""]);
}
