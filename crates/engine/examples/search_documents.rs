//! Builds an index of a few documents in a temporary folder and searches it in all three modes.

use lanner::build::{BuildOptions, Quiet, build};
use lanner::corpus::{Corpus, CorpusOptions};
use lanner::{Mode, Query, Searcher};
use std::error::Error;

const DOCUMENTS: [(&str, &str, &str); 4] = [
    ("lanner", "Lanner falcon", "Lanner falcons hunt in pairs over open country, mostly birds."),
    ("peregrine", "Peregrine falcon", "The peregrine strikes birds in the air after a steep dive."),
    ("kestrel", "Kestrel", "Kestrels hover over fields and hunt voles by sight."),
    ("heron", "Grey heron", "Herons stand in shallow water and wait for fish."),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let documents = DOCUMENTS.map(|(id, title, text)| (id.to_owned(), title.to_owned(), text.to_owned()));
    let corpus = Corpus::from_documents(documents, CorpusOptions::default())?;
    build(folder.path(), corpus, &BuildOptions::default(), &Quiet)?;

    let searcher = Searcher::open(folder.path())?;
    for mode in [Mode::And, Mode::Or, Mode::AndOr] {
        let query = Query::new("falcons hunting birds^2").mode(mode).k(3);
        println!("{} ({mode})", query.text);
        for hit in searcher.search(&query)?.hits {
            let document = searcher.document(hit.document)?;
            let snippet = searcher.snippet(&query, &document, 60)?;
            println!("  {:.4}  {}: {}", f64::from(hit.score) / 65536.0, document.id, snippet.text);
        }
    }
    print!("{}", searcher.plan(&Query::new("falcons hunting birds^2"))?);
    Ok(())
}
