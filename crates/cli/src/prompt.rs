//! The prompt: somebody types queries and commands in a terminal, with editing and a history.

use crate::columns;
use crate::commands::explain;
use crate::failure::Failure;
use crate::hits::{Presenter, answer};
use crate::prompt_commands::{HELP, Line, Setting};
use crate::query_options::QueryOptions;
use crate::shown::Shown;
use crate::terminal::{printable, tell};
use crate::whole_file::stdout;
use rustyline::config::{Builder, Config};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use std::fs::DirBuilder;
use std::io::Write;
use std::path::PathBuf;

/// The lines that the history keeps.
const HISTORY: usize = 1000;

/// The state of a prompt.
pub struct Prompt<'a> {
    presenter: Presenter<'a>,
    options: QueryOptions,
    last: Option<LastQuery>,
}

/// The last query, and the offset of the hits that follow those shown.
struct LastQuery {
    text: String,
    next: u32,
}

/// Answers what somebody types until `:quit` or the end of the input. A line that fails gets an error, and the prompt
/// goes on.
pub fn run(presenter: Presenter<'_>, options: QueryOptions) -> Result<(), Failure> {
    let mut prompt = Prompt { presenter, options, last: None };
    let mut editor = rustyline::Editor::<(), FileHistory>::with_config(configuration()?)?;
    let history = history_file();
    if let Some(file) = &history {
        // Before the first prompt there is none.
        let _ = editor.load_history(file);
    }
    loop {
        let line = match editor.readline("> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let is_new = editor.add_history_entry(&line)?;
        if let Some(file) = history.as_ref().filter(|_| is_new) {
            // A prompt without a history still answers.
            let _ = editor.append_history(file);
        }
        match prompt.answer(&line, &mut stdout()) {
            Ok(true) => {}
            Ok(false) | Err(Failure::ClosedPipe) => return Ok(()),
            Err(Failure::Message(message)) => tell(&format!("error: {message}")),
        }
    }
}

/// Lines that begin with a space are not kept, nor is one that equals the line before it.
fn configuration() -> Result<Config, Failure> {
    let builder = Builder::new().max_history_size(HISTORY)?.history_ignore_dups(true)?;
    Ok(builder.history_ignore_space(true).build())
}

/// `lanner/history` in the user's folder of states (XDG Base Directory Specification), which only the user can read.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let states = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    let folder = states.join("lanner");
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&folder).ok()?;
    Some(folder.join("history"))
}

impl Prompt<'_> {
    /// Answers a line; returns whether there may be more.
    fn answer(&mut self, line: &str, out: &mut impl Write) -> Result<bool, Failure> {
        match Line::parse(line)? {
            Line::Blank => {}
            Line::Quit => return Ok(false),
            Line::Help => write!(out, "{HELP}")?,
            Line::Query(text) => self.search(&text, self.options.offset, out)?,
            Line::More => {
                let LastQuery { text, next } = self.last.take().ok_or_else(no_query)?;
                self.search(&text, next, out)?;
            }
            Line::Explain(id) => {
                let last = self.last.as_ref().ok_or_else(no_query)?;
                let query = self.options.query(&last.text)?;
                explain::write_text(self.presenter.searcher, &query, id.as_deref(), out)?;
            }
            Line::Settings => self.write_settings(out)?,
            Line::Set(setting) => self.set(setting)?,
        }
        out.flush()?;
        Ok(true)
    }

    fn search(&mut self, text: &str, offset: u32, out: &mut impl Write) -> Result<(), Failure> {
        let query = QueryOptions { offset, ..self.options.clone() }.query(text)?;
        // The next hits start where these end.
        self.last = Some(LastQuery { text: text.to_owned(), next: offset.saturating_add(self.options.k) });
        let answered = answer(self.presenter.searcher, &query, offset as usize)?;
        // The window may have another size by now.
        self.presenter.columns = columns::of_stdout();
        self.presenter.write(&query, &answered, out)
    }

    /// Changes a setting, unless no query could be answered with its value.
    fn set(&mut self, setting: Setting) -> Result<(), Failure> {
        match setting {
            Setting::Trace(is_on) => self.presenter.trace = is_on,
            Setting::Json(is_on) => self.presenter.json = is_on,
            Setting::Fields(None) => self.presenter.shown = Shown::Summary,
            Setting::Fields(Some(names)) => {
                self.presenter.shown = Shown::fields(&names, self.presenter.searcher.index())?;
            }
            Setting::K(k) => self.change(QueryOptions { k, ..self.options.clone() })?,
            Setting::Mode(mode) => self.change(QueryOptions { mode, ..self.options.clone() })?,
            Setting::Score(model) => {
                self.change(QueryOptions { score: Some(model), alpha: None, ..self.options.clone() })?;
            }
        }
        Ok(())
    }

    fn change(&mut self, options: QueryOptions) -> Result<(), Failure> {
        self.presenter.model = self.presenter.searcher.plan(&options.query("")?)?.score;
        self.options = options;
        Ok(())
    }

    fn write_settings(&self, out: &mut impl Write) -> Result<(), Failure> {
        let switch = |is_on| if is_on { "on" } else { "off" };
        let fields = match &self.presenter.shown {
            Shown::Nothing => "none".to_owned(),
            Shown::Summary => "summary".to_owned(),
            Shown::Fields(names) => names.join(","),
        };
        writeln!(out, ":k {}", self.options.k)?;
        writeln!(out, ":mode {}", self.options.mode)?;
        writeln!(out, ":score {}", self.presenter.model)?;
        writeln!(out, ":fields {}", printable(&fields))?;
        writeln!(out, ":trace {}", switch(self.presenter.trace))?;
        writeln!(out, ":json {}", switch(self.presenter.json))?;
        Ok(())
    }
}

fn no_query() -> Failure {
    Failure::new("there is no query yet; type one first")
}
