//! The prompt, typed at through a pseudo-terminal.

use crate::program::{Place, birds};
use nix::pty::{OpenptyResult, Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use unicode_width::UnicodeWidthStr;

/// The program in a terminal of 60 columns.
struct Terminal {
    master: File,
    child: Child,
    /// What it has printed and nobody has asked for.
    unread: String,
}

/// An empty prompt, with the cursor behind it.
const PROMPT: &str = "> \r\x1b[2C";

impl Terminal {
    fn start(place: &Place, line: &str) -> Terminal {
        let size = Winsize { ws_row: 40, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        let mut command = place.command(line);
        let side = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side());
        command.env("XDG_STATE_HOME", place.path("state")).env("TERM", "xterm").env_remove("NO_COLOR");
        let child = command.spawn().unwrap();
        Terminal { master: File::from(master), child, unread: String::new() }
    }

    /// Reads until the program has printed a text; returns what it printed before.
    fn read_until(&mut self, text: &str) -> String {
        while !self.unread.contains(text) {
            let read = self.read();
            assert!(read > 0, "{text:?} was not printed, but {:?}", self.unread);
        }
        let end = self.unread.find(text).unwrap() + text.len();
        self.unread.drain(..end).collect()
    }

    /// Reads more; returns how many bytes, none after the end of the program.
    fn read(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let read = self.master.read(&mut bytes).unwrap_or(0);
        self.unread.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read
    }

    /// Types keys at the prompt; returns what is printed up to the next prompt.
    fn ask(&mut self, keys: &str) -> String {
        self.master.write_all(keys.as_bytes()).unwrap();
        self.read_until(PROMPT)
    }

    /// Types a line; what is printed must have a text.
    #[track_caller]
    fn expect(&mut self, line: &str, expected: &str) {
        let printed = self.ask(&format!("{line}\r"));
        assert!(printed.contains(expected), "{line}: {printed:?}");
    }

    /// Types the last keys; returns what is printed up to the end of the program.
    fn leave(mut self, keys: &str) -> String {
        self.master.write_all(keys.as_bytes()).unwrap();
        while self.read() > 0 {}
        assert!(self.child.wait().unwrap().success());
        self.unread
    }
}

#[test]
fn a_prompt_answers_queries_and_obeys_commands() {
    let place = birds();
    let mut terminal = Terminal::start(&place, "search --index birds");
    let welcome = terminal.read_until(PROMPT);
    assert!(welcome.starts_with("5 documents; type a query, :help for commands, or :quit to leave\r\n"), "{welcome:?}");
    terminal.expect(":more", "error: there is no query yet; type one first");
    terminal.expect("owls -hunt", "note: -hunt is read as the term hunt");
    terminal.expect("owls -hunt", "4 hits in ");
    terminal.expect(":k 1", "");
    terminal.expect("hunting country", "1 hit in ");
    terminal.expect(":more", "1 hit after the first 1 in ");
    terminal.expect(":more", "   3. ");
    terminal.expect(":mode and", "");
    terminal.expect(":explain owl", "stage 1: AND by conjunction");
    terminal.expect(":explain owl", "score of document 4 by bm25, length ");
    terminal.expect(":score impact", "error: the index has no impacts");
    terminal.expect(":fields title", "");
    terminal.expect("barn", "title");
    terminal.expect(":settings", ":k 1\r\n:mode and\r\n:score bm25\r\n:fields title\r\n:trace off\r\n:json off\r\n");
    terminal.expect(":json on", "");
    terminal.expect("barn", "\"fields\":{\"title\":\"Barn owl\"}");
    terminal.expect(":help", ":quit            leave");
    terminal.expect("owl^nan", "error: \"nan\" is no weight of \"owl\"");
    terminal.expect(":dance", "error: there is no command :dance; :help shows the commands");
    terminal.leave(":quit\r");
    let history = std::fs::read_to_string(place.path("state/lanner/history")).unwrap();
    assert_eq!(history.matches("\nowls -hunt\n").count(), 1, "{history}");
    assert!(history.contains("\n:mode and\n"), "{history}");
    let mode = std::fs::metadata(place.path("state/lanner/history")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "only the user can read it");
}

#[test]
fn lines_can_be_edited_and_come_back_from_the_history() {
    let place = birds();
    let mut terminal = Terminal::start(&place, "search --index birds -k 1");
    terminal.read_until(PROMPT);
    // One to the left, and delete the character before the cursor.
    terminal.expect("owlxs\x1b[D\x7f", "1 hit in ");
    terminal.expect(" heron", "1 hit in ");
    terminal.leave("\x04");
    let history = std::fs::read_to_string(place.path("state/lanner/history")).unwrap();
    assert!(history.ends_with("\nowls\n"), "a line that begins with a space is not kept: {history}");
    let mut terminal = Terminal::start(&place, "search --index birds -k 1 --json");
    terminal.read_until(PROMPT);
    terminal.expect("\x1b[A", "{\"query\":\"owls\",");
    // Control-C drops the line.
    assert!(!terminal.ask("kite\x03").contains("\"query\""));
    terminal.leave("\x04");
}

#[test]
fn hits_fit_in_the_terminal_and_titles_are_highlighted() {
    let place = birds();
    let text = Terminal::start(&place, "search --index birds falcons country").leave("");
    assert!(text.contains("\x1b[1mLanner\x1b[0m \x1b[1;33mfalcon\x1b[0m"), "{text:?}");
    let mut is_wrapped = false;
    for line in text.lines() {
        let plain: String =
            line.split('\x1b').map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect();
        let plain = if line.contains('\x1b') { plain } else { line.to_owned() };
        assert!(plain.width() <= 60, "{plain:?}");
        is_wrapped |= plain.contains("flushes the");
    }
    assert!(is_wrapped, "{text:?}");
}

#[test]
fn there_is_no_prompt_and_no_history_where_standard_input_is_no_terminal() {
    let place = birds();
    let mut command = place.command("search --index birds");
    let output = command.env("XDG_STATE_HOME", place.path("state")).output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    assert!(!place.path("state").exists());
}
