//! Hostile inputs: every case of `tests/hostile/cases.toml`, in a folder of its own.
#![cfg(target_os = "linux")]

use crate::golden::masked;
use crate::program::{Outcome, PROGRAM, Place};
use crate::texts::BIRDS;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const CASES: &str = include_str!("../hostile/cases.toml");

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// A line of shell, and how the program answers it. The table says what the fields mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    prepare: Option<String>,
    run: String,
    exit: i32,
    #[serde(default)]
    says: String,
    #[serde(default)]
    replaces: bool,
}

/// Every file of a folder, as text; what is no file counts by its name.
fn state(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let entries = fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap())).into_iter().flatten();
    let file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file()).then(|| entry.path());
    entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), file(&entry).map(|path| fs::read(path).unwrap()))
        })
        .collect()
}

impl Case {
    /// What is wrong, if anything is.
    fn problem(&self, index: &Path) -> Option<String> {
        let place = Place::new();
        place.write("birds.jsonl", BIRDS);
        for entry in fs::read_dir(index).unwrap() {
            let entry = entry.unwrap();
            place.write(&format!("birds/{}", entry.file_name().to_string_lossy()), fs::read(entry.path()).unwrap());
        }
        let path = format!("PATH=\"{}:$PATH\"; export PATH; ", Path::new(PROGRAM).parent().unwrap().display());
        if let Some(prepare) = &self.prepare {
            place.shell(&(path.clone() + prepare)).succeeded();
        }
        let before = state(&place.path("birds"));
        let Outcome { status, stderr, .. } = lossy(place.shell_output(&(path + &self.run)));
        let stderr = stderr.replace(&place.path("").display().to_string(), "PLACE/");
        let said = match self.exit {
            // The first line says what is wrong, the others how the command is used.
            2 => stderr.lines().next().unwrap_or_default().to_owned(),
            _ => stderr.trim_end().to_owned(),
        };
        if (status, masked(&said)) != (Some(self.exit), masked(&self.says)) {
            return Some(format!("exit {status:?}, {stderr}"));
        }
        if stderr.contains("panicked") || stderr.contains("backtrace") {
            return Some("a panic".to_owned());
        }
        if (state(&place.path("birds")) == before) == self.replaces {
            return Some(format!("the index was {}replaced", if self.replaces { "not " } else { "" }));
        }
        let is_left = |name: &String| name.ends_with(".partial");
        place.names(".").into_iter().find(is_left).map(|name| format!("{name} is left"))
    }
}

fn lossy(output: Output) -> Outcome {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn every_hostile_input_gets_its_one_line_and_harms_nothing() {
    let Cases { case: cases } = toml::from_str(CASES).unwrap();
    assert!(cases.len() >= 200);
    let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "names are different");
    let place = crate::program::birds();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(problem) = case.problem(&place.path("birds")) {
                let line = format!("{}: {}\n    {problem}", case.name, case.run);
                problems.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} of {} cases:\n{}", problems.len(), cases.len(), problems.join("\n"));
}
