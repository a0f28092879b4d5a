//! Folders with links, hidden files, and files that cannot be read.

use super::*;

#[test]
fn a_file_of_a_folder_that_cannot_be_read_is_named_and_the_others_are_read() {
    let folder = Folder::with([("a.jsonl", b"{\"id\":1}"), ("b.jsonl", b"{\"id\":2}"), ("c.jsonl", b"{\"id\":3}")]);
    let mut corpus = Corpus::open(folder.path(), CorpusOptions::default()).unwrap();
    let gone = folder.path().join("b.jsonl");
    fs::remove_file(&gone).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["1", "3"]);
    assert_eq!(left_out(&corpus), ["1 unreadable file"]);
    let [error] = corpus.unreadable() else { panic!("{:?}", corpus.unreadable()) };
    assert!(error.starts_with(&format!("{}: cannot be opened: ", gone.display())), "{error}");
    assert_eq!(Some(corpus.bytes_read()), corpus.bytes_total());
}

#[test]
fn the_records_before_damage_in_a_file_of_a_folder_are_kept() {
    let line = "{\"id\":\"1\",\"text\":\"words\"}\n";
    let lines = gzip(line.repeat(10_000).as_bytes());
    let documents = gzip("<DOC><DOCNO>1</DOCNO>x</DOC>\n".repeat(10_000).as_bytes());
    let objects = gzip(format!("[{}", "{\n\"id\":\"1\"},".repeat(10_000)).as_bytes());
    let folder = Folder::with([
        ("a.jsonl.gz", &lines[..lines.len() / 2]),
        ("b.trec.gz", &documents[..documents.len() / 2]),
        ("c.json.gz", &objects[..objects.len() / 2]),
        ("d.jsonl", line.as_bytes()),
    ]);
    for limits in [LIMITS, batches_of(1000)] {
        let mut corpus = Corpus::open_with(folder.path(), CorpusOptions::default(), limits).unwrap();
        let seen = without_folder(everything(&mut corpus), &folder);
        assert!(!ids(&seen).contains(&"(problem)"));
        assert!(seen.len() > 3000, "{}", seen.len());
        assert_eq!(left_out(&corpus), ["3 unreadable files"]);
        assert_eq!(corpus.unreadable().len(), 3);
        assert!(corpus.unreadable()[0].contains("a.jsonl.gz: the gzip data ends too early"));
    }
}

#[test]
fn hidden_files_and_folders_are_read_on_demand() {
    let folder = Folder::with([(".a/b.txt", b"x"), (".c.txt", b"x"), ("d.txt", b"x")]);
    let options = CorpusOptions { hidden: true, ..CorpusOptions::default() };
    let mut corpus = Corpus::open(folder.path(), options).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), [".a/b.txt", ".c.txt", "d.txt"]);
    assert_eq!(left_out(&corpus), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn links_are_followed_on_demand_and_every_file_is_read_once() {
    use std::os::unix::fs::symlink;
    let outside = Folder::with([("x.txt", b"x"), ("deep/y.txt", b"y")]);
    let folder = Folder::with([("a/1.txt", b"1"), ("b/2.txt", b"2")]);
    let link = |target: &Path, name: &str| symlink(target, folder.path().join(name)).unwrap();
    link(folder.path(), "a/up");
    link(Path::new("../b/2.txt"), "a/same");
    link(outside.path(), "out");
    link(&outside.path().join("deep"), "out again");
    link(Path::new("loop"), "loop");
    link(Path::new("nowhere"), "nowhere");
    symlink(folder.path().join("a"), outside.path().join("deep/back")).unwrap();
    let options = CorpusOptions { follow_links: true, ..CorpusOptions::default() };
    let mut corpus = Corpus::open(folder.path(), options).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["a/1.txt", "b/2.txt", "out/deep/y.txt", "out/x.txt"]);
    assert_eq!(left_out(&corpus), ["4 links to what is read already", "2 unreadable files"]);
    let named: Vec<bool> = ["loop", "nowhere"]
        .iter()
        .zip(corpus.unreadable())
        .map(|(name, error)| error.contains(&format!("{name}: cannot be opened: ")))
        .collect();
    assert_eq!(named, [true, true]);
    let mut corpus = Corpus::open(folder.path(), CorpusOptions::default()).unwrap();
    assert_eq!(ids(&everything(&mut corpus)), ["a/1.txt", "b/2.txt"]);
    assert_eq!(left_out(&corpus), ["6 symbolic links"]);
}

#[cfg(unix)]
#[test]
fn links_that_lead_to_each_other_in_many_ways_cost_no_more_than_the_files() {
    let folder = Folder::with([("0/last.txt", b"x")]);
    for number in 1..40 {
        let own = folder.path().join(number.to_string());
        fs::create_dir(&own).unwrap();
        for name in ["left", "right"] {
            std::os::unix::fs::symlink(format!("../{}", number - 1), own.join(name)).unwrap();
        }
    }
    // Only the top is below the input; each folder below it is reached in 2^n ways.
    let options = CorpusOptions { follow_links: true, ..CorpusOptions::default() };
    let mut corpus = Corpus::open(&folder.path().join("39"), options).unwrap();
    assert_eq!(everything(&mut corpus).len(), 1);
    assert_eq!(left_out(&corpus), ["39 links to what is read already"]);
}
