//! Tests of whole collections: files on disk in, documents out.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::batch::Content;
use super::*;

mod formats;
mod trees;

/// What a visit saw, owned.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Document { line: u64, id: String, indexed: Vec<String>, stored: Vec<String> },
    Problem(Problem),
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

fn documents_of(batch: &Batch) -> Vec<Seen> {
    let mut seen = Vec::new();
    batch.documents(&mut |record| {
        seen.push(match record {
            Ok(document) => Seen::Document {
                line: document.line,
                id: document.id.to_owned(),
                indexed: owned(&document.indexed),
                stored: owned(&document.stored),
            },
            Err(problem) => Seen::Problem(problem),
        });
    });
    seen
}

fn batches(corpus: &mut Corpus) -> Vec<Batch> {
    let mut batches = Vec::new();
    while let Some(batch) = corpus.next_batch().unwrap() {
        batches.push(batch);
    }
    batches
}

fn everything(corpus: &mut Corpus) -> Vec<Seen> {
    batches(corpus).iter().flat_map(documents_of).collect()
}

fn raw(batch: &Batch) -> &[u8] {
    match &batch.content {
        Content::Bytes { bytes, .. } => bytes,
        Content::Memory { .. } => panic!("this batch comes from files"),
    }
}

/// The format in which a file is read that is the whole input.
fn format_of(corpus: &Corpus) -> Format {
    match &corpus.supply {
        Supply::Files(cutter) => cutter.open.as_ref().expect("a single file is open").schema.format,
        Supply::Memory(_) => panic!("this corpus comes from memory"),
    }
}

/// What was left out, in words.
fn left_out(corpus: &Corpus) -> Vec<String> {
    corpus.left_out().iter().map(LeftOut::to_string).collect()
}

fn ids(seen: &[Seen]) -> Vec<&str> {
    seen.iter()
        .map(|seen| match seen {
            Seen::Document { id, .. } => id.as_str(),
            Seen::Problem(_) => "(problem)",
        })
        .collect()
}

fn with_format(format: Format) -> CorpusOptions {
    CorpusOptions { format: Some(format), ..CorpusOptions::default() }
}

fn batches_of(batch_bytes: usize) -> Limits {
    Limits { batch_bytes, ..LIMITS }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A folder with files, gone at the end of the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with<const N: usize>(files: [(&str, &[u8]); N]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            folder.add(name, bytes);
        }
        folder
    }

    fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn read_file(name: &str, bytes: &[u8], options: CorpusOptions, limits: Limits) -> Vec<Seen> {
    let folder = Folder::with([(name, bytes)]);
    let mut corpus = Corpus::open_with(&folder.path().join(name), options, limits).unwrap();
    without_folder(everything(&mut corpus), &folder)
}

/// Problems with the names of files as seen from the folder.
fn without_folder(mut seen: Vec<Seen>, folder: &Folder) -> Vec<Seen> {
    for seen in &mut seen {
        if let Seen::Problem(problem) = seen {
            let path = Path::new(&problem.source);
            problem.source = path.strip_prefix(folder.path()).unwrap().to_string_lossy().into_owned();
        }
    }
    seen
}

fn document(line: u64, id: &str, texts: &[&str]) -> Seen {
    let stored = match texts {
        [text] => vec![String::new(), text.to_string()],
        _ => owned(texts),
    };
    Seen::Document { line, id: id.to_owned(), indexed: owned(texts), stored }
}

fn problem(source: &str, line: u64, what: &str) -> Seen {
    Seen::Problem(Problem { source: source.to_owned(), line, what: what.to_owned() })
}

#[test]
fn json_lines_are_documents_and_a_bad_line_stops_nothing() {
    let text = b"\xef\xbb\xbf{\"id\":1,\"title\":\"T\",\"text\":\"a\"}\r\n\r\n{\"id\":2,\"text\":\"b\"}\n\
        {broken\n{\"id\":\"3\xff\"}\n{\"id\":4,\"title\":\"\",\"text\":\"\"}";
    assert_eq!(
        read_file("c.jsonl", text, CorpusOptions::default(), LIMITS),
        [
            document(1, "1", &["T", "a"]),
            document(3, "2", &["b"]),
            problem("c.jsonl", 4, "key must be a string (column 2)"),
            problem("c.jsonl", 5, "invalid UTF-8 at byte 8 of the record; convert the file to UTF-8"),
            document(6, "4", &["", ""]),
        ]
    );
}

#[test]
fn a_document_without_any_field_is_kept() {
    let seen = read_file("c.jsonl", b"{\"id\":\"1\"}", CorpusOptions::default(), LIMITS);
    let empty =
        Seen::Document { line: 1, id: "1".to_owned(), indexed: Vec::new(), stored: vec![String::new(), String::new()] };
    assert_eq!(seen, [empty]);
}

#[test]
fn tab_separated_lines_are_documents() {
    let text = b"1\ttext one\r\n2\ttitle\ttext\ttwo\nthree\n\t4\n5\t\n";
    assert_eq!(
        read_file("c.tsv", text, CorpusOptions::default(), LIMITS),
        [
            document(1, "1", &["text one"]),
            document(2, "2", &["title", "text\ttwo"]),
            problem("c.tsv", 3, "no tab; expected id<TAB>text"),
            problem("c.tsv", 4, "the first column, the id, is empty"),
            document(5, "5", &[""]),
        ]
    );
}

#[test]
fn trec_documents_and_what_lies_between_them() {
    let text = b"<?xml?>\n<ALL><DOC>\n<DOCNO>A</DOCNO><TITLE>t</TITLE>\nx\n</DOC>\nstray\n\
        <DOC>\n<doc><docno>B</docno>y\n</doc> </DOC>\n<DOC>\n<DOCNO>C</DOCNO>\n\xe9</DOC>\n<DOC>z";
    assert_eq!(
        read_file("c.trec", text, CorpusOptions::default(), LIMITS),
        [
            document(2, "A", &["t", "x"]),
            problem("c.trec", 6, "text outside of <DOC> … </DOC>"),
            problem("c.trec", 7, "<DOC> without </DOC>; is the file complete?"),
            document(8, "B", &["", "y"]),
            problem("c.trec", 9, "</DOC> without <DOC>"),
            problem("c.trec", 12, "invalid UTF-8 at byte 18 of the record; convert the file to UTF-8"),
            problem("c.trec", 13, "<DOC> without </DOC>; is the file complete?"),
        ]
    );
}

#[test]
fn a_folder_of_texts_is_read_in_the_order_of_path_bytes() {
    let folder = Folder::with([
        ("b.txt", b"\nB title\nbody"),
        ("a/z.md", b"Z"),
        ("a-b", b"AB"),
        ("a/.hidden", b"no"),
        (".git/config", b"no"),
        ("binary", &[b"one\ntwo\0".as_slice(), &[0; 300_000]].concat()),
        ("latin", b"caf\xe9"),
        ("packed.gz", &gzip(b"packed")),
        ("torn.gz", &gzip(b"torn")[..12]),
        ("empty", b""),
    ]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("b.txt"), folder.path().join("link")).unwrap();
    let mut corpus = Corpus::open(folder.path(), with_format(Format::Text)).unwrap();
    let seen = without_folder(everything(&mut corpus), &folder);
    assert_eq!(
        seen,
        [
            document(1, "a-b", &["AB", "AB"]),
            document(1, "a/z.md", &["Z", "Z"]),
            document(1, "b.txt", &["B title", "\nB title\nbody"]),
            document(1, "empty", &["", ""]),
            problem("latin", 1, "invalid UTF-8 at byte 3 of the record; convert the file to UTF-8"),
            document(1, "packed.gz", &["packed", "packed"]),
            problem("torn.gz", 1, "the gzip data ends too early, at byte 12; get a complete copy of the file"),
        ]
    );
    assert_eq!(Some(corpus.bytes_read()), corpus.bytes_total());
    let mut expected = vec!["1 binary file", "1 hidden file", "1 hidden folder"];
    expected.extend(cfg!(unix).then_some("1 symbolic link"));
    assert_eq!(left_out(&corpus), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_text_cannot_be_an_id() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with([]);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(folder.path().join(name), "text").unwrap();
    let mut corpus = Corpus::open(folder.path(), with_format(Format::Text)).unwrap();
    let seen = everything(&mut corpus);
    let [Seen::Problem(problem)] = seen.as_slice() else {
        panic!("{seen:?}");
    };
    assert!(problem.what.starts_with("the path is not valid UTF-8"));
}

#[test]
fn small_texts_share_a_batch_and_a_batch_of_files_is_limited() {
    let folder = Folder::with([]);
    for number in 0..10 {
        folder.add(&format!("{number}"), b"0123456789");
    }
    let sizes = |limits| {
        let options = with_format(Format::Text);
        let mut corpus = Corpus::open_with(folder.path(), options, limits).unwrap();
        let batches = batches(&mut corpus);
        batches.iter().map(|batch| documents_of(batch).len()).collect::<Vec<_>>()
    };
    assert_eq!(sizes(LIMITS), [10]);
    assert_eq!(sizes(batches_of(31)), [4, 4, 2]);
    let few_files = Limits { batch_files: 3, ..LIMITS };
    assert_eq!(sizes(few_files), [3, 3, 3, 1]);
}

#[test]
fn a_folder_of_json_lines_is_every_such_file_with_its_own_line_numbers() {
    let folder = Folder::with([
        ("b.jsonl.zst", &zstd(b"{\"id\":3}\n{\"id\":4}")),
        ("a.jsonl", b"{\"id\":1}\n{\"id\":2}"),
        ("c/d.NDJSON.gz", &gzip(b"\nbad\n{\"id\":5}\n")),
        ("notes.txt", b"not read"),
    ]);
    for limits in [LIMITS, batches_of(1), batches_of(12)] {
        let options = with_format(Format::Jsonl);
        let mut corpus = Corpus::open_with(folder.path(), options, limits).unwrap();
        let seen = without_folder(everything(&mut corpus), &folder);
        assert_eq!(ids(&seen), ["1", "2", "3", "4", "(problem)", "5"]);
        assert_eq!(seen[4], problem("c/d.NDJSON.gz", 2, "expected value (column 1)"));
        let on_disk: u64 = ["a.jsonl", "b.jsonl.zst", "c/d.NDJSON.gz"]
            .map(|name| fs::metadata(folder.path().join(name)).unwrap().len())
            .iter()
            .sum();
        assert_eq!(corpus.bytes_total(), Some(on_disk));
        assert_eq!(corpus.bytes_read(), on_disk);
    }
}

#[test]
fn a_beir_folder_is_its_corpus_file() {
    let line = b"{\"_id\":\"d1\",\"title\":\"T\",\"text\":\"x\",\"metadata\":{}}\n";
    for (name, bytes) in
        [("corpus.jsonl", line.to_vec()), ("corpus.jsonl.gz", gzip(line)), ("corpus.jsonl.zst", zstd(line))]
    {
        let folder = Folder::with([(name, &bytes), ("queries.jsonl", b"{\"_id\":\"q\"}")]);
        for options in [CorpusOptions::default(), with_format(Format::Beir)] {
            let mut corpus = Corpus::open(folder.path(), options).unwrap();
            assert_eq!(corpus.bytes_total(), Some(bytes.len() as u64));
            assert_eq!(left_out(&corpus), ["1 file beside the corpus (.jsonl)"]);
            assert_eq!(everything(&mut corpus), [document(1, "d1", &["T", "x"])], "{name}");
        }
    }
}

#[test]
fn the_format_is_found_from_names_and_content() {
    let pretty = b"{\n  \"id\": 1\n}\n";
    let bulk = b"{\"index\":{\"_id\":\"1\"}}\n{\"text\":\"a\"}\n";
    let cases: [(&str, &[u8], Option<Format>); 31] = [
        ("a.jsonl", b"{\"id\":1}", Some(Format::Jsonl)),
        ("a.jsonl", b"{\"_id\":1}", Some(Format::Beir)),
        ("a.jsonl", b"{\"_id\":1,\"id\":2}", Some(Format::Jsonl)),
        ("a.json", b"{\"id\":1}\n{\"id\":2}", Some(Format::Jsonl)),
        ("a.json", b"{\"x\":1}\n\n{\"x\":2}", Some(Format::Jsonl)),
        ("a.json", pretty, Some(Format::Json)),
        ("a.jsonl", pretty, Some(Format::Json)),
        ("a.json", b"[{\"id\":1}]", Some(Format::Json)),
        ("a.jsonl", b" [\n{\"x\":1}]", Some(Format::Json)),
        ("a.json", b"{\"id\":1}{\"id\":2}", Some(Format::Json)),
        ("a.json", b"{\"editor\":1}", Some(Format::Jsonl)),
        ("a.json", b"[1]", None),
        ("a.jsonl", b"{broken\n{\"id\":1}\n", Some(Format::Jsonl)),
        ("a.jsonl", b"{\"id\":\"cut\n{\"id\":1}\n", Some(Format::Jsonl)),
        ("a.json", bulk, Some(Format::Bulk)),
        ("a.ndjson", bulk, Some(Format::Bulk)),
        ("requests", bulk, Some(Format::Bulk)),
        ("a.csv", b"anything", Some(Format::Csv)),
        ("export", b"ID;Text\n1;a\n", Some(Format::Csv)),
        ("export", b"name,age\nx,1\n", None),
        ("a.tsv.gz", b"1\tx", Some(Format::Tsv)),
        ("a.SGML", b"", Some(Format::Trec)),
        ("ft911_1", b"\n <DOC>\n", Some(Format::Trec)),
        ("a.txt", b"<doc >", Some(Format::Trec)),
        ("a.txt", b"a\tb", Some(Format::Text)),
        ("a.md", b"# A", Some(Format::Text)),
        ("records", b" \n{\"id\":1}\n", Some(Format::Jsonl)),
        ("table", b"1\ttext\n", Some(Format::Tsv)),
        ("words", b"just words\n1\t2", None),
        ("binary", b"\0\t\0", None),
        ("empty", b"", None),
    ];
    for (name, bytes, expected) in cases {
        let folder = Folder::with([(name, bytes)]);
        let found = Corpus::open(&folder.path().join(name), CorpusOptions::default());
        if name == "a.csv" {
            assert!(matches!(found, Err(CorpusError::NoIdColumn { .. })));
            continue;
        }
        match (found, expected) {
            (Ok(corpus), Some(format)) => assert_eq!(format_of(&corpus), format, "{name}"),
            (Err(error), None) => assert!(matches!(error, CorpusError::UnclearFormat { .. }), "{name}: {error}"),
            (Ok(corpus), None) => panic!("{name} was taken for {}", format_of(&corpus)),
            (Err(error), Some(_)) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn a_folder_may_mix_formats_and_each_file_is_read_in_its_own() {
    let long_line = format!("{{\"id\":\"long\",\"text\":\"{}\"}}\n", "word ".repeat(20_000));
    let folder = Folder::with([
        ("README.md", b"about"),
        ("a.csv", b"id,text\n\"1,5\",x\n"),
        ("a.tsv", b"tsv\tx\n"),
        ("b.bulk.json", b"{\"create\":{\"_id\":\"bulk\"}}\n{}\n"),
        ("b.jsonl", b"{\"id\":\"jsonl\"}\nbad\n"),
        ("beir.jsonl", b"{\"_id\":\"beir\"}\n"),
        ("c.trec.gz", &gzip(b"<DOC><DOCNO>trec</DOCNO></DOC>")),
        ("long.json", long_line.as_bytes()),
        ("main.rs", b"{\n\tx\n}"),
        ("package.json", b"{\n  \"name\": \"one object\"\n}\n"),
        ("people.csv", b"name,age\nx,1\n"),
        ("pretty.json", b"[\n  {\n    \"id\": \"pretty 1\"\n  },\n  {\n    \"id\": \"pretty 2\"\n  }\n]\n"),
        ("part-00000", b"{\"id\":\"part\"}\n"),
        ("settings.json", b"{\"editor\": 1}"),
        ("torn.gz", &gzip(b"torn")[..12]),
        ("x.bin", b"\0"),
    ]);
    for limits in [LIMITS, batches_of(1), batches_of(12)] {
        let mut corpus = Corpus::open_with(folder.path(), CorpusOptions::default(), limits).unwrap();
        let seen = without_folder(everything(&mut corpus), &folder);
        let expected = [
            "README.md",
            "1,5",
            "tsv",
            "bulk",
            "jsonl",
            "(problem)",
            "beir",
            "trec",
            "long",
            "main.rs",
            "package.json",
            "part",
            "people.csv",
            "pretty 1",
            "pretty 2",
            "settings.json",
            "(problem)",
        ];
        assert_eq!(ids(&seen), expected);
        assert_eq!(left_out(&corpus), ["1 binary file (.bin)"]);
        assert_eq!(Some(corpus.bytes_read()), corpus.bytes_total());
    }
}

#[test]
fn files_that_cannot_have_the_named_fields_are_left_out_unless_their_format_is_named() {
    let torn = gzip(b"torn");
    let folder = Folder::with([("a.jsonl", b"{\"id\":1,\"body\":\"x\"}"), ("b.md", b"#"), ("c.txt.gz", &torn[..12])]);
    let options = CorpusOptions { fields: Some(vec!["body".to_owned()]), ..CorpusOptions::default() };
    let mut corpus = Corpus::open(folder.path(), options.clone()).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["1"]);
    assert_eq!(left_out(&corpus), ["1 file without the named fields (.md)", "1 file without the named fields (.txt)"]);
    let named = CorpusOptions { format: Some(Format::Text), ..options };
    assert!(matches!(Corpus::open(folder.path(), named), Err(CorpusError::UnknownField { .. })));
}

#[test]
fn a_folder_without_files_to_read_is_refused_with_what_is_expected() {
    let complaint = |folder: &Folder, format| {
        let options = CorpusOptions { format, ..CorpusOptions::default() };
        let message = Corpus::open(folder.path(), options).err().unwrap().to_string();
        message.split_once(": ").unwrap().1.to_owned()
    };
    let nothing = "no files to read in this folder";
    let queries = Folder::with([("queries.jsonl", b"{\"_id\":1}")]);
    let beir = format!("{nothing}; expected corpus.jsonl, plain or with .gz or .zst");
    assert_eq!(complaint(&queries, Some(Format::Beir)), beir);
    let tsv = format!("{nothing}; expected tsv files, with names that end in .tsv, plain or with .gz or .zst");
    assert_eq!(complaint(&queries, Some(Format::Tsv)), tsv);
    let hidden = Folder::with([(".hidden", b"x")]);
    assert_eq!(complaint(&hidden, None), format!("{nothing}; hidden files and links are not read"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", hidden.path().join("link")).unwrap();
        let options = CorpusOptions { follow_links: true, ..CorpusOptions::default() };
        let message = Corpus::open(hidden.path(), options).err().unwrap().to_string();
        assert!(message.contains("; ") && message.contains("link: cannot be opened: "), "{message}");
    }
}

#[test]
fn an_index_is_never_part_of_a_collection() {
    let folder = Folder::with([
        ("a.txt", b"a"),
        ("idx/lock", b""),
        ("idx/manifest-00000001", b"lanner-manifest"),
        ("idx/segment-00000001", b"postings"),
        ("unfinished/lock", b""),
        ("unfinished/building/run-1", b"postings"),
    ]);
    let mut corpus = Corpus::open(folder.path(), CorpusOptions::default()).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["a.txt"]);
    assert_eq!(left_out(&corpus), ["2 index folders"]);
    let error = Corpus::open(&folder.path().join("idx"), CorpusOptions::default()).err().unwrap();
    assert!(matches!(error, CorpusError::IsIndex { .. }), "{error}");
}

#[test]
fn a_trec_folder_is_what_is_named_or_looks_like_it() {
    let folder = Folder::with([
        ("b", b"<DOC><DOCNO>2</DOCNO></DOC>"),
        ("a.trec.gz", &gzip(b"<DOC><DOCNO>1</DOCNO></DOC>")),
        ("readme", b"about <DOC>"),
    ]);
    let mut corpus = Corpus::open(folder.path(), with_format(Format::Trec)).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["1", "2"]);
    assert_eq!(left_out(&corpus), ["1 file of another format"]);
}

#[test]
fn an_input_that_does_not_exist_is_named() {
    let missing = Corpus::open(Path::new("no/such/file"), CorpusOptions::default());
    let message = missing.err().unwrap().to_string();
    assert!(message.starts_with("no/such/file: cannot be opened"));
}

#[test]
fn a_truncated_file_names_the_byte_where_it_ends() {
    let text = "{\"id\":\"1\",\"text\":\"words\"}\n".repeat(10_000);
    for (name, bytes) in [("a.jsonl.gz", gzip(text.as_bytes())), ("a.jsonl.zst", zstd(text.as_bytes()))] {
        let length = bytes.len() - 3;
        let folder = Folder::with([(name, &bytes[..length])]);
        let path = folder.path().join(name);
        let message = Corpus::open(&path, with_format(Format::Jsonl))
            .and_then(|mut corpus| {
                while corpus.next_batch()?.is_some() {}
                Ok(())
            })
            .unwrap_err()
            .to_string();
        let place = format!("data ends too early, at byte {length};");
        assert!(message.starts_with(&path.display().to_string()));
        assert!(message.contains(&place), "{message}");
    }
}

#[test]
fn a_long_record_makes_a_long_batch_up_to_a_limit() {
    let text = format!("{{\"id\":1,\"text\":\"{}\"}}\n{{\"id\":2}}\n", "long ".repeat(1_000_000));
    let folder = Folder::with([("a.jsonl", text.as_bytes())]);
    let path = folder.path().join("a.jsonl");
    let mut corpus = Corpus::open(&path, CorpusOptions::default()).unwrap();
    let cut = batches(&mut corpus);
    assert_eq!(cut.len(), 2);
    assert_eq!(raw(&cut[0]).len(), text.len() - "{\"id\":2}\n".len());
    let limits = Limits { record_bytes: 2_000_000, ..LIMITS };
    let mut corpus = Corpus::open_with(&path, CorpusOptions::default(), limits).unwrap();
    let message = corpus.next_batch().unwrap_err().to_string();
    assert!(message.ends_with("a.jsonl:1: a record of more than 2000000 bytes; the file is probably not jsonl"));
}

#[test]
fn documents_from_memory_are_cut_like_files() {
    let text = "x".repeat(400_000);
    let documents: Vec<_> = ["1", "2", " ", "4"].map(|id| (id.to_owned(), "title".to_owned(), text.clone())).to_vec();
    let mut corpus = Corpus::from_documents(documents, CorpusOptions::default()).unwrap();
    let cut = batches(&mut corpus);
    assert_eq!(cut.len(), 2);
    assert_eq!(ids(&documents_of(&cut[0])), ["1", "2", "(problem)"]);
    assert_eq!(documents_of(&cut[0])[2], problem("memory", 3, "the id is empty"));
    assert_eq!(documents_of(&cut[1]), [document(4, "4", &["title", &text])]);
}

#[test]
fn weights_reach_the_document() {
    let options = CorpusOptions { vector_field: Some("vector".to_owned()), ..CorpusOptions::default() };
    let line = b"{\"id\":1,\"vector\":{\"a\":1.5,\"b\":2}}\n{\"id\":2,\"vector\":{}}\n";
    let folder = Folder::with([("v.jsonl", line)]);
    let mut corpus = Corpus::open(&folder.path().join("v.jsonl"), options).unwrap();
    let mut seen = Vec::new();
    for batch in batches(&mut corpus) {
        batch.documents(&mut |record| {
            let document = record.unwrap();
            let weights = document.vector.iter();
            let weights: Vec<_> = weights.map(|(term, weight)| (term.to_string(), *weight)).collect();
            seen.push((document.id.to_owned(), weights));
        });
    }
    assert_eq!(seen, [("1".to_owned(), vec![("a".to_owned(), 1.5), ("b".to_owned(), 2.0)]), ("2".to_owned(), vec![]),]);
}

/// Bytes that look like records often enough to reach deep into every parser.
fn almost_records() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "\\",
            "\\u00e9",
            "\\ud800",
            "\"id\":",
            "\"text\":",
            "\"a\"",
            "1",
            "-",
            "1e999",
            "null",
            "true",
            "\n",
            "\r\n",
            "\t",
            " ",
            "<DOC>",
            "</DOC>",
            "<DOCNO>",
            "</DOCNO>",
            "<TITLE>",
            "</TITLE>",
            "<",
            "</",
            ">",
            "<!--",
            "-->",
            "&",
            "&lt;",
            "&#",
            "&#x41;",
            ";",
            "é",
            "😀",
            "\u{feff}",
            "\0",
            "{\"id\":\"1\",\"text\":\"x\"}\n",
            "<DOC><DOCNO>1</DOCNO>x</DOC>\n",
            "1\tx\n",
            "1,\"x\ny\"\n",
            "{\"index\":{\"_id\":\"1\"}}\n",
            "{\"delete\":{}}\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
        Just(b"\x1f\x8b\x08".to_vec()),
        Just(b"\x28\xb5\x2f\xfd".to_vec()),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batches_put_together_are_the_input(
        lengths in prop::collection::vec(0usize..400, 0..60),
        ends_with_line_feed: bool,
        batch_bytes in 1usize..600,
    ) {
        let mut text: Vec<u8> = lengths
            .iter()
            .flat_map(|length| [vec![b'x'; *length], vec![b'\n']].concat())
            .collect();
        if !ends_with_line_feed {
            text.pop();
        }
        let folder = Folder::with([("a.tsv", &text)]);
        let path = folder.path().join("a.tsv");
        let mut corpus =
            Corpus::open_with(&path, CorpusOptions::default(), batches_of(batch_bytes)).unwrap();
        let cut = batches(&mut corpus);
        let together: Vec<u8> = cut.iter().flat_map(|batch| raw(batch).to_vec()).collect();
        prop_assert_eq!(&together, &text);
        for batch in cut.iter().rev().skip(1) {
            let bytes = raw(batch);
            prop_assert!(bytes.len() >= batch_bytes);
            prop_assert_eq!(bytes.last(), Some(&b'\n'));
            // No earlier border would have been large enough.
            let earlier = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n');
            prop_assert!(earlier.is_none_or(|at| at + 1 < batch_bytes));
        }
    }

    #[test]
    fn plain_gzip_and_zstd_give_the_same_batches(bytes in almost_records(), batch_bytes in 1usize..80) {
        let plain = [b"x".as_slice(), &bytes].concat();
        for format in [Format::Jsonl, Format::Trec] {
            let folder = Folder::with([("plain", &plain), ("gzip", &gzip(&plain)), ("zstd", &zstd(&plain))]);
            let cut = |name: &str| {
                let path = folder.path().join(name);
                let mut corpus =
                    Corpus::open_with(&path, with_format(format), batches_of(batch_bytes)).unwrap();
                batches(&mut corpus).iter().map(|batch| raw(batch).to_vec()).collect::<Vec<_>>()
            };
            prop_assert_eq!(cut("plain"), cut("gzip"));
            prop_assert_eq!(cut("plain"), cut("zstd"));
        }
    }

    #[test]
    fn any_bytes_give_documents_or_problems_and_line_formats_do_not_depend_on_the_cut(
        bytes in almost_records(),
        batch_bytes in 1usize..80,
    ) {
        for format in Format::ALL {
            // Without a header there are no records.
            let header = if format == Format::Csv { "id,text\n" } else { "" };
            let folder = Folder::with([("corpus.jsonl", &[header.as_bytes(), &bytes].concat())]);
            let read = |limits| {
                let path = folder.path().join("corpus.jsonl");
                let mut corpus = Corpus::open_with(&path, with_format(format), limits)?;
                let mut seen = Vec::new();
                while let Some(batch) = corpus.next_batch()? {
                    seen.extend(documents_of(&batch));
                }
                Ok::<_, CorpusError>(seen)
            };
            match (read(LIMITS), read(batches_of(batch_bytes))) {
                (Ok(whole), Ok(cut)) => prop_assert_eq!(whole, cut, "{}", format),
                // Bytes that begin like compressed data fail either way.
                (whole, cut) => prop_assert!(whole.is_err() && cut.is_err()),
            }
        }
    }
}
