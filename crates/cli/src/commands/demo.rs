//! `lanner demo`: indexes real text that is already on the machine, and answers queries over it in every mode.

use crate::columns;
use crate::commands::index::{Summary, write_summary};
use crate::demo_text::DemoText;
use crate::failure::Failure;
use crate::hits::{Answered, Presenter, answer};
use crate::progress::BuildMeter;
use crate::quantity::{bytes, count};
use crate::shown::Shown;
use crate::terminal::{Style, printable_path};
use lanner::{Mode, Query, ScoreModel, Searcher};
use lanner_index::build::{BuildOptions, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of hits shown for a query.
const HITS: usize = 3;

/// Queries that have hits in the sources and documents of Rust crates.
const QUERIES: [&str; 4] =
    ["parse json string", "memory mapped file", "unicode word boundaries", "compression ratio dictionary training^2"];

/// Index text that is already on this machine (the crates in cargo's registry) and answer queries over it
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR", default_value = "demo-index")]
    index: PathBuf,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut out = io::stdout();
    let style = Style::of_stdout();
    let start = Instant::now();
    let text = DemoText::find()?;
    let documents = format!("{} files, {}", count(text.files() as u64), bytes(text.bytes()));
    writeln!(out, "{}", style.bold(&format!("Indexing {}: {documents}", text.origin())))?;
    let meter = BuildMeter::new(arguments.quiet, Some(text.bytes()));
    let corpus = Corpus::from_documents(text.into_documents(), CorpusOptions::default())?;
    let report = build(&arguments.index, corpus, &BuildOptions::default(), &meter)?;
    drop(meter);
    write_summary(&Summary { report, seconds: start.elapsed().as_secs_f64() }, &arguments.index, &mut out)?;

    let searcher = Searcher::open(&arguments.index)?;
    let presenter = Presenter {
        searcher: &searcher,
        model: ScoreModel::Bm25,
        style,
        columns: columns::of_stdout(),
        shown: Shown::Summary,
        trace: false,
        json: false,
    };
    for text in QUERIES {
        writeln!(out, "\n{}", style.bold(&format!("\"{text}\"")))?;
        show_modes(&presenter, text, &mut out)?;
    }
    write_next_steps(&arguments.index, style, &mut out)
}

/// Answers a query by OR, by AND, and by AND+OR, whose answer is one of the other two.
fn show_modes(presenter: &Presenter<'_>, text: &str, out: &mut impl Write) -> Result<(), Failure> {
    let ask = |mode| {
        let query = Query::new(text).mode(mode).k(HITS);
        let answered = answer(presenter.searcher, &query, 0)?;
        Ok::<(Query, Answered), Failure>((query, answered))
    };
    let style = presenter.style;
    let (query, any) = ask(Mode::Or)?;
    writeln!(out, "  {} (any of the words): {}", style.bold("OR"), any.outcome())?;
    presenter.write_hits(&query, &any, out)?;
    let (query, all) = ask(Mode::And)?;
    let is_same = !all.answer.hits.is_empty() && all.answer.hits == any.answer.hits;
    let same = if is_same { ", the same" } else { "" };
    writeln!(out, "  {} (all of the words): {}{same}", style.bold("AND"), all.outcome())?;
    if !is_same {
        presenter.write_hits(&query, &all, out)?;
    }
    let (_, both) = ask(Mode::AndOr)?;
    let which = match all.answer.hits.len() {
        HITS.. => "those of AND, which has enough",
        _ => "those of OR, since AND has too few",
    };
    writeln!(out, "  {} (AND if it has enough, else OR): {}, {which}", style.bold("AND+OR"), both.outcome())?;
    Ok(())
}

fn write_next_steps(index: &Path, style: Style, out: &mut impl Write) -> Result<(), Failure> {
    let program = std::env::args().next().unwrap_or_else(|| "lanner".to_owned());
    let index = printable_path(index);
    writeln!(out, "\n{}", style.bold(&format!("The index is in {index}. Try next:")))?;
    let commands = [
        format!("search --index {index} \"borrow checker lifetime^2\""),
        format!("search --index {index}                    # asks for queries, line by line"),
        format!("search --index {index} --mode and --trace \"hash map\""),
        format!("explain --index {index} \"parse json string\""),
        format!("stats --index {index}"),
        format!("verify --index {index}"),
        "index --input YOUR.jsonl --index my-index".to_owned(),
    ];
    for command in commands {
        writeln!(out, "  {program} {command}")?;
    }
    Ok(())
}
