//! `lanner search`: one query, a whole log, or line after line.

use crate::executor_options::ExecutorOptions;
use crate::failure::Failure;
use crate::hits::{Presenter, answer};
use crate::quantity::counted;
use crate::query_log::QueryLog;
use crate::query_options::QueryOptions;
use crate::terminal::{Style, tell};
use crate::whole_file::stdout;
use lanner::Searcher;
use lanner::eval::TopicFormat;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// Answer a query, a whole log of queries, or, without a query, line after line from standard input
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder of the index
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    options: QueryOptions,
    #[command(flatten)]
    executor: ExecutorOptions,
    /// As JSON, one line an answer, with exact scores
    #[arg(long)]
    json: bool,
    /// Show which step ran where, and the work done
    #[arg(long)]
    trace: bool,
    /// Answer all queries of a file (`-` for standard input): TREC topics, `qid<TAB>text`, JSON lines, or one a line
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    queries: Option<PathBuf>,
    /// How the file holds its queries: tsv, colon, lines, trec, trec-description or jsonl [default: found from content]
    #[arg(long, value_name = "FORMAT", requires = "queries")]
    query_format: Option<TopicFormat>,
    /// Write a TREC run (`-` for standard output)
    #[arg(long, value_name = "OUT", requires = "queries")]
    run: Option<PathBuf>,
    /// The name of the run in its last column
    #[arg(long, default_value = "lanner", requires = "queries")]
    tag: String,
    /// Threads for the queries of a file [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress, and no summary of a file of queries
    #[arg(long)]
    quiet: bool,
    /// The words of the query; word^2.5 weighs one
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(cores, usize::from);
    let searcher = arguments.executor.apply(Searcher::open(&arguments.index)?, threads)?;
    // A plan without words tells the score model and refuses options that no query could have.
    let model = searcher.plan(&arguments.options.query("")?)?.score;
    let style = Style::of_stdout();
    let presenter = Presenter { searcher: &searcher, model, style, trace: arguments.trace };
    if let Some(queries) = &arguments.queries {
        return QueryLog {
            presenter,
            options: &arguments.options,
            queries,
            format: arguments.query_format,
            run: arguments.run.as_deref(),
            tag: &arguments.tag,
            json: arguments.json,
            threads,
            is_batch: arguments.executor.takes_batches(),
            quiet: arguments.quiet,
        }
        .answer();
    }
    if arguments.query.is_empty() {
        return answer_lines(arguments, &presenter);
    }
    answer_one(arguments, &presenter, &arguments.query.join(" "))
}

fn answer_one(arguments: &Arguments, presenter: &Presenter<'_>, text: &str) -> Result<(), Failure> {
    let query = arguments.options.query(text)?;
    let answered = answer(presenter.searcher, &query)?;
    let mut out = stdout();
    match arguments.json {
        true => presenter.write_json(&query, &answered, &mut out)?,
        false => presenter.write_text(&query, &answered, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Answers each line until the end of the input or `:quit`; what is wrong with one does not end the others.
fn answer_lines(arguments: &Arguments, presenter: &Presenter<'_>) -> Result<(), Failure> {
    let is_talk = io::stdin().is_terminal() && io::stdout().is_terminal();
    if is_talk {
        let documents = counted(u64::from(presenter.searcher.index().documents()), "document");
        tell(&format!("{documents}; type a query, or :quit to leave"));
    }
    let mut lines = io::stdin().lock();
    loop {
        if is_talk {
            write!(io::stdout(), "> ")?;
            io::stdout().flush()?;
        }
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim() {
            "" => continue,
            ":quit" | ":q" => return Ok(()),
            text => match answer_one(arguments, presenter, text) {
                Err(Failure::Message(message)) => tell(&format!("error: {message}")),
                Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
                Ok(()) => {}
            },
        }
    }
    if is_talk {
        writeln!(io::stdout())?;
    }
    Ok(())
}
