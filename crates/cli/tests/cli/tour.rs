//! The tour of the README, typed: every command is run in a folder with the files of `docs/tour`, and prints what the README
//! shows.
//!
//! The rules: a line of a code block that starts with `lanner` or `$ lanner` is a command for the shell. The lines after one
//! with `$`, up to the next command, are what it prints on both outputs, with times masked as in golden files; without `$`
//! nothing is shown, and nothing compared. Commands succeed, or say that there is no GPU where they name one.

use crate::golden::masked;
use crate::program::{Outcome, PROGRAM, Place};
use std::fs;
use std::path::Path;

/// A command, and what it prints if the README shows that.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    shown: Option<String>,
}

fn steps(section: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in section.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut is_shown = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ").unwrap_or(line);
            if command.starts_with("lanner ") {
                is_shown = line != command;
                steps.push(Step { command: command.to_owned(), shown: is_shown.then(String::new) });
            } else if let Some(Step { shown: Some(shown), .. }) = steps.last_mut().filter(|_| is_shown) {
                shown.push_str(line);
                shown.push('\n');
            }
        }
    }
    steps
}

#[test]
fn the_tour_of_the_readme_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, tour) = readme.split_once("## A tour").unwrap();
    let steps = steps(tour.split("\n## ").next().unwrap());
    assert!(steps.len() >= 18, "{steps:?}");
    assert!(steps.iter().filter(|step| step.shown.is_some()).count() >= 4, "{steps:?}");
    let place = Place::new();
    for entry in fs::read_dir(root.join("docs/tour")).unwrap() {
        let entry = entry.unwrap();
        place.write(&entry.file_name().to_string_lossy(), fs::read(entry.path()).unwrap());
    }
    let folder = Path::new(PROGRAM).parent().unwrap().display().to_string();
    for Step { command, shown } in steps {
        let Outcome { status, stdout, stderr } = place.shell(&format!("PATH=\"{folder}:$PATH\"; {command}"));
        if status != Some(0) {
            assert!(command.contains("gpu") && stderr.starts_with("error: no GPU"), "{command}: {stderr}");
        }
        if let Some(shown) = shown {
            assert_eq!(masked(&format!("{stdout}{stderr}")), masked(&shown), "{command}");
        }
    }
}

#[test]
fn commands_and_what_they_print_are_told_apart() {
    let section =
        "```text\ncargo build\nlanner a\n$ lanner b\none\n  two\nlanner c\nthree\n```\n```rust\nlanner d\n```";
    let step =
        |command: &str, shown: Option<&str>| Step { command: command.to_owned(), shown: shown.map(str::to_owned) };
    assert_eq!(
        steps(section),
        [step("lanner a", None), step("lanner b", Some("one\n  two\n")), step("lanner c", None)]
    );
}
