//! Builds an index of a few documents in a temporary folder and searches it in all three modes.

use lanner::{Document, IndexBuilder, Mode, Query, Searcher};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let bird = |id: &str, title: &str, text: &str| Document::new(id).field("title", title).field("text", text);
    let folder = tempfile::tempdir()?;
    IndexBuilder::new(&folder).documents([
        bird("lanner", "Lanner falcon", "Lanner falcons hunt in pairs over open country, mostly birds."),
        bird("peregrine", "Peregrine falcon", "The peregrine strikes birds in the air after a steep dive."),
        bird("kestrel", "Kestrel", "Kestrels hover over fields and hunt voles by sight."),
        bird("heron", "Grey heron", "Herons stand in shallow water and wait for fish."),
    ])?;

    let searcher = Searcher::open(&folder)?;
    for mode in [Mode::And, Mode::Or, Mode::AndOr] {
        let query = Query::new("falcons hunting birds^2").mode(mode).k(3);
        println!("{} ({mode})", query.text);
        for hit in searcher.search(&query)?.hits {
            let document = searcher.document(hit.document)?;
            println!("  {:.4}  {}: {}", hit.score, document.id, searcher.snippet(&query, &document, 60)?.text);
        }
    }
    print!("{}", searcher.plan(&Query::new("falcons hunting birds^2"))?);
    Ok(())
}
