//! Runs the program and keeps what it said.

use crate::texts::BIRDS;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The built binary.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_lanner");

/// A folder of its own, in which the program runs, so that paths in its output are short and always the same.
pub struct Place {
    folder: TempDir,
}

/// What a run of the program has left.
#[derive(Debug)]
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(&path).unwrap().write_all(content.as_ref()).unwrap();
        path
    }

    /// The program, to be run in the folder; `line` is cut at spaces.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(line.split_ascii_whitespace());
        self.prepare(&mut command);
        command
    }

    /// A line for the shell, which finds the program as `$LANNER`.
    pub fn shell(&self, line: &str) -> Outcome {
        Outcome::of(self.shell_output(line))
    }

    /// As [`Place::shell`], with output that may not be text.
    pub fn shell_output(&self, line: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("LANNER", PROGRAM);
        self.prepare(&mut command);
        command.output().unwrap()
    }

    fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("COLUMNS");
        // Nothing is written to the configuration of the user.
        command.env("LANNER_CONFIG", self.path("configuration"));
    }

    /// Runs the program; `line` is cut at spaces.
    pub fn run(&self, line: &str) -> Outcome {
        Outcome::of(self.command(line).output().unwrap())
    }

    /// Runs the program with something on standard input.
    pub fn run_with(&self, line: &str, input: &[u8]) -> Outcome {
        let mut command = self.command(line);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Outcome::of(child.wait_with_output().unwrap())
    }

    /// Names in a folder, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Outcome {
    pub fn of(output: Output) -> Outcome {
        Outcome {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The output of a run that must have succeeded.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.stdout
    }

    /// The one value of JSON that a successful run printed.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.succeeded()).unwrap()
    }

    /// The one line on standard error of a run that must have failed, without `error: `.
    #[track_caller]
    pub fn error(self) -> String {
        assert_eq!(self.status, Some(1), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        self.stderr.strip_prefix("error: ").expect("it says that it is an error").trim_end().to_owned()
    }

    /// What was said about a command line that cannot be.
    #[track_caller]
    pub fn usage_error(self) -> String {
        assert_eq!(self.status, Some(2), "{self:?}");
        self.stderr
    }
}

/// The documents of an index that must be sound, and its generation.
#[track_caller]
pub fn verified(folder: &Path) -> (u64, u64) {
    let index = lanner::Index::open(folder).unwrap();
    (index.verify().unwrap().documents, index.manifest().generation)
}

/// A place with an index of the birds.
pub fn birds() -> Place {
    let place = Place::new();
    place.write("birds.jsonl", BIRDS);
    place.run("index --input birds.jsonl --index birds --quiet").succeeded();
    place
}
