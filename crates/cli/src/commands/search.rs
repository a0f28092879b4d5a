//! `lanner search`: answers one query, a query log, or lines from standard input.

use crate::columns;
use crate::executor_options::ExecutorOptions;
use crate::failure::Failure;
use crate::hits::{Presenter, answer};
use crate::prompt;
use crate::quantity::counted;
use crate::query_log::QueryLog;
use crate::query_options::QueryOptions;
use crate::run_file::RunFile;
use crate::shown::Shown;
use crate::terminal::{Style, note, tell};
use crate::whole_file::stdout;
use lanner::eval::TopicFormat;
use lanner::{Engine, Index, Searcher, Verify};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Answer a query, a query log, or, without either, each line of standard input; in a terminal, as a prompt
#[derive(clap::Args)]
pub struct Arguments {
    /// The index folder
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    options: QueryOptions,
    #[command(flatten)]
    executor: ExecutorOptions,
    /// Print JSON, one line per answer, with exact scores
    #[arg(long)]
    json: bool,
    /// The stored fields to show of each hit, separated by commas, or `none`, instead of the title and a passage of the text; whole,
    /// in JSON as `fields`
    #[arg(long, value_name = "NAMES")]
    fields: Option<String>,
    /// Add titles and snippets to the JSON of a query log, which takes longer than answering it
    #[arg(long, requires_all = ["queries", "json"], conflicts_with = "fields")]
    snippets: bool,
    /// Show the steps of each query, where they ran, and the work done
    #[arg(long)]
    trace: bool,
    /// Answer all queries of a file (`-` for standard input), plain, gzip or zstd: TREC topics, `qid<TAB>text`, JSON
    /// lines, or one query per line
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    queries: Option<PathBuf>,
    /// The format of the queries: tsv, colon, lines, trec, trec-description or jsonl [default: detected by the content]
    #[arg(long, value_name = "FORMAT", requires = "queries", conflicts_with = "query")]
    query_format: Option<TopicFormat>,
    /// Write a TREC run (`-` for standard output); a query given as an argument has the id 1
    #[arg(long, value_name = "OUT")]
    run: Option<PathBuf>,
    /// The tag of the run, in its last column
    #[arg(long, default_value = "lanner", requires = "run")]
    tag: String,
    /// The number of threads that answer the queries of a file [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// When the bytes of the index are checked: `lazy` (each chunk of 16 KiB when it is first read), `full` (all of them
    /// before the first query) or `off` (never; damage may then change answers)
    #[arg(long, value_name = "WHEN", default_value = "lazy", value_parser = str::parse::<Verify>)]
    verify: Verify,
    /// Show no progress, and no summary of a query log
    #[arg(long)]
    quiet: bool,
    /// The words of the query; word^2.5 gives a word a weight; only ratios of weights count
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or(cores, usize::from);
    if arguments.json && arguments.is_run_on_stdout() {
        return Err(Failure::new("the run and the JSON cannot both go to standard output; give --run a file"));
    }
    let index = Index::open_with(&arguments.index, arguments.verify)?;
    let searcher = Searcher::with_engine(arguments.executor.apply(Engine::new(Arc::new(index)), threads)?);
    // The plan of an empty query has the score model, and fails on options that are wrong for every query.
    let model = searcher.plan(&arguments.options.query("")?)?.score;
    let style = Style::of_stdout();
    let (columns, shown) = (columns::of_stdout(), arguments.shown(searcher.index())?);
    let presenter =
        Presenter { searcher: &searcher, model, style, columns, shown, trace: arguments.trace, json: arguments.json };
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
            quiet: arguments.quiet,
        }
        .answer();
    }
    if arguments.query.is_empty() {
        if arguments.run.is_some() {
            let advice = "--run needs a query or --queries; for queries from standard input give --queries -";
            return Err(Failure::new(advice));
        }
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            let documents = counted(u64::from(searcher.index().documents()), "document");
            tell(&format!("{documents}; type a query, :help for commands, or :quit to leave"));
            return prompt::run(presenter, arguments.options.clone());
        }
        return answer_lines(arguments, &presenter);
    }
    answer_one(arguments, &presenter, &arguments.query.join(" "))
}

impl Arguments {
    /// What to show of each hit; by default nothing in a log, since it would be read for each hit of each query.
    fn shown(&self, index: &Index) -> Result<Shown, Failure> {
        match &self.fields {
            Some(_) if self.queries.is_some() && !self.json => {
                Err(Failure::new("a run has no fields; leave out --fields, or give --json"))
            }
            Some(list) => Shown::fields(list, index),
            None if self.queries.is_some() && !self.snippets => Ok(Shown::Nothing),
            None => Ok(Shown::Summary),
        }
    }

    fn is_run_on_stdout(&self) -> bool {
        self.run.as_deref() == Some(Path::new("-"))
    }
}

fn answer_one(arguments: &Arguments, presenter: &Presenter<'_>, text: &str) -> Result<(), Failure> {
    let query = arguments.options.query(text)?;
    let answered = answer(presenter.searcher, &query, arguments.options.offset as usize)?;
    if let Some(path) = &arguments.run {
        let mut run = RunFile::create(path, &arguments.tag, presenter.model)?;
        run.write("1", &answered, &presenter.searcher.ids(&answered.answer.hits)?)?;
        run.finish()?;
    }
    if arguments.is_run_on_stdout() {
        answered.notes.iter().for_each(|line| note(line));
        return Ok(());
    }
    let mut out = stdout();
    presenter.write(&query, &answered, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Answers each line until the end of the input or `:quit`. A line that fails gets an error instead of an answer, and
/// the command fails at the end.
fn answer_lines(arguments: &Arguments, presenter: &Presenter<'_>) -> Result<(), Failure> {
    let (mut lines, mut line) = (io::stdin().lock(), Vec::new());
    let (mut asked, mut failed) = (0, 0);
    loop {
        line.clear();
        let unreadable = |error| {
            Failure::new(format!("standard input cannot be read: {error}; give a query, or a file with --queries"))
        };
        if lines.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim() {
            // In JSON a blank line is a query without words, so that there is an answer for each line.
            "" if !arguments.json => {}
            ":quit" | ":q" => break,
            text => {
                asked += 1;
                failed += u64::from(!answer_line(arguments, presenter, text, str::from_utf8(&line).is_ok())?);
            }
        }
    }
    Failure::of_queries(failed, asked)
}

/// Answers a line, or reports why it cannot be answered; returns whether it was answered.
fn answer_line(arguments: &Arguments, presenter: &Presenter<'_>, text: &str, is_utf8: bool) -> Result<bool, Failure> {
    if !is_utf8 {
        tell("warning: a query is not valid UTF-8; its invalid bytes were replaced by U+FFFD");
    }
    match answer_one(arguments, presenter, text) {
        Ok(()) => Ok(true),
        Err(Failure::ClosedPipe) => Err(Failure::ClosedPipe),
        Err(Failure::Message(message)) => {
            match arguments.json {
                true => presenter.write_error(None, text, &message, &mut io::stdout())?,
                false => tell(&format!("error: {message}")),
            }
            Ok(false)
        }
    }
}
