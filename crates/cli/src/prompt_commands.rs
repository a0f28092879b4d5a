//! The commands of the prompt: lines that begin with a colon.

use crate::failure::Failure;
use lanner::{Mode, ScoreModel};

/// A line that somebody typed at the prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Nothing.
    Blank,
    /// A query.
    Query(String),
    /// `:help`.
    Help,
    /// `:quit`.
    Quit,
    /// `:more`: the next hits of the last query.
    More,
    /// `:settings`.
    Settings,
    /// `:explain`, with the id of a document if there is one.
    Explain(Option<String>),
    /// A setting and its new value.
    Set(Setting),
}

/// A setting with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `:k N`.
    K(u32),
    /// `:mode MODE`.
    Mode(Mode),
    /// `:score MODEL`.
    Score(ScoreModel),
    /// `:fields NAMES`; `None` for the title and a passage.
    Fields(Option<String>),
    /// `:trace on|off`.
    Trace(bool),
    /// `:json on|off`.
    Json(bool),
}

/// What `:help` prints.
pub const HELP: &str = "\
words            search for them; word^2.5 gives a word a weight
:more            the next hits of the last query
:explain [ID]    the plan of the last query, and why the document ID has its score
:k N             the number of hits
:mode MODE       or, and, and-or
:score MODEL     bm25, impact, rank-bm25, rank-bm25:ALPHA
:fields NAMES    the stored fields to show, none, or summary (title and a passage)
:trace on|off    the steps of each query
:json on|off     answers as JSON
:settings        the settings as they are
:help            this help
:quit            leave, as Ctrl-D does
A line that begins with a space is a query in any case, and is not kept in the history.
";

impl Line {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Line, Failure> {
        let Some(command) = line.strip_prefix(':') else {
            return Ok(match line.trim() {
                "" => Line::Blank,
                query => Line::Query(query.to_owned()),
            });
        };
        let (name, value) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let value = value.trim();
        let plain = |line: Line| match value {
            "" => Ok(line),
            _ => Err(Failure::new(format!(":{name} takes no value"))),
        };
        match name {
            "help" | "h" | "?" => plain(Line::Help),
            "quit" | "q" | "exit" => plain(Line::Quit),
            "more" | "m" => plain(Line::More),
            "settings" => plain(Line::Settings),
            "explain" => Ok(Line::Explain(Some(value.to_owned()).filter(|id| !id.is_empty()))),
            _ => Ok(Line::Set(Setting::parse(name, value)?)),
        }
    }
}

impl Setting {
    fn parse(name: &str, value: &str) -> Result<Setting, Failure> {
        Ok(match name {
            "k" => {
                let number = value.parse().ok().filter(|&k| k > 0);
                Setting::K(number.ok_or_else(|| Failure::new(format!(":k needs a number from 1 to {}", u32::MAX)))?)
            }
            "mode" => Setting::Mode(value.parse()?),
            "score" => Setting::Score(value.parse()?),
            "fields" => match value {
                "" => return Err(Failure::new(":fields needs names of stored fields, none, or summary")),
                "summary" => Setting::Fields(None),
                names => Setting::Fields(Some(names.to_owned())),
            },
            "trace" => Setting::Trace(switch(name, value)?),
            "json" => Setting::Json(switch(name, value)?),
            _ => return Err(Failure::new(format!("there is no command :{name}; :help shows the commands"))),
        })
    }
}

fn switch(name: &str, value: &str) -> Result<bool, Failure> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Failure::new(format!(":{name} is on or off"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_queries_or_commands() {
        let good = [
            ("", Line::Blank),
            ("  ", Line::Blank),
            ("owls  hunting ", Line::Query("owls  hunting".to_owned())),
            (" :quit", Line::Query(":quit".to_owned())),
            (":quit", Line::Quit),
            (":q ", Line::Quit),
            (":help", Line::Help),
            (":more", Line::More),
            (":settings", Line::Settings),
            (":explain", Line::Explain(None)),
            (":explain  a b ", Line::Explain(Some("a b".to_owned()))),
            (":k 20", Line::Set(Setting::K(20))),
            (":mode\tand", Line::Set(Setting::Mode(Mode::And))),
            (":score impact", Line::Set(Setting::Score(ScoreModel::Impact))),
            (":fields title, text", Line::Set(Setting::Fields(Some("title, text".to_owned())))),
            (":fields summary", Line::Set(Setting::Fields(None))),
            (":trace on", Line::Set(Setting::Trace(true))),
            (":json off", Line::Set(Setting::Json(false))),
        ];
        for (text, expected) in good {
            assert_eq!(Line::parse(text).unwrap(), expected, "{text}");
        }
        let bad = [
            (":k", ":k needs a number from 1 to 4294967295"),
            (":k 0", ":k needs a number from 1 to 4294967295"),
            (":k -1", ":k needs a number from 1 to 4294967295"),
            (":mode xor", "unknown mode \"xor\"; give one of and, or, and-or"),
            (":trace", ":trace is on or off"),
            (":quit now", ":quit takes no value"),
            (":fields", ":fields needs names of stored fields, none, or summary"),
            (":dance", "there is no command :dance; :help shows the commands"),
            (":", "there is no command :; :help shows the commands"),
        ];
        for (text, expected) in bad {
            let Err(Failure::Message(message)) = Line::parse(text) else { panic!("{text}") };
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn every_command_of_the_help_is_known() {
        let names: Vec<&str> = HELP.lines().filter_map(|line| line.strip_prefix(':')?.split(' ').next()).collect();
        assert_eq!(names.len(), 11);
        for name in names {
            let message = match Line::parse(&format!(":{name}")) {
                Err(Failure::Message(message)) => message,
                _ => String::new(),
            };
            assert!(!message.contains("no command"), "{message}");
        }
    }
}
