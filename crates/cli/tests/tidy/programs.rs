//! The commands and flags of the programs, as `--help` or the source declares them.

use crate::files::{TextFile, text_files};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A program: its commands with their flags.
pub struct Program {
    name: &'static str,
    commands: BTreeMap<String, BTreeSet<String>>,
}

impl Program {
    /// `lanner`, by its help.
    pub fn lanner() -> Program {
        let help = help(&[]);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = listed.filter_map(|line| line.split_whitespace().next());
        let commands = names.map(|name| (name.to_owned(), flags_of(&help_of(name)))).collect();
        Program { name: "lanner", commands }
    }

    /// `lanner-bench`, by its source: this package does not build it. Every command has all flags.
    pub fn bench(files: &[TextFile]) -> Program {
        let sources = files.iter().filter(|file| file.is_rust() && file.path.starts_with("crates/bench/src/"));
        let lines: Vec<&str> = sources.flat_map(|file| file.text.lines()).collect();
        let declared = lines.iter().skip_while(|line| **line != "enum Command {").take_while(|line| **line != "}");
        let variants = declared
            .filter_map(|line| line.strip_prefix("    ")?.split(['(', ' ', ',']).next())
            .filter(|name| name.starts_with(char::is_uppercase));
        let flag = |at: usize| {
            let is_field = |line: &&str| !line.starts_with("#[") && !line.starts_with("//");
            let field = lines[at..].iter().map(|line| line.trim()).find(is_field)?;
            Some(format!("--{}", field.trim_start_matches("pub ").split(':').next()?.replace('_', "-")))
        };
        let is_flag = |at: &usize| lines[*at].trim().starts_with("#[arg(long");
        let flags: BTreeSet<String> = (0..lines.len()).filter(is_flag).filter_map(flag).collect();
        let commands = variants.map(|variant| (variant.to_lowercase(), flags.clone())).collect();
        Program { name: "lanner-bench", commands }
    }

    /// What is wrong with the arguments of a command line.
    pub fn problem(&self, arguments: &[&str]) -> Option<String> {
        let (command, rest) = arguments.split_first()?;
        let Some(flags) = self.commands.get(*command) else {
            let is_flag = *command == "--help" || *command == "--version";
            return (!is_flag).then(|| format!("{} has no command {command}", self.name));
        };
        let given =
            rest.iter().filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
        let unknown = given.into_iter().find(|flag| !flags.contains(*flag))?;
        Some(format!("{} {command} has no flag {unknown}", self.name))
    }

    pub fn has_flag(&self, flag: &str) -> bool {
        self.commands.values().any(|flags| flags.contains(flag))
    }
}

fn help(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanner"));
    let output = command.args(arguments).arg("--help").output().expect("the help of the program");
    String::from_utf8(output.stdout).expect("a help in UTF-8")
}

fn help_of(command: &str) -> String {
    match command {
        "help" => String::new(),
        _ => help(&[command]),
    }
}

fn flags_of(help: &str) -> BTreeSet<String> {
    let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let words = options.flat_map(|line| line.split([' ', ',', '=']));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn commands_and_flags_of_both_programs_are_known() {
    let (lanner, bench) = (Program::lanner(), Program::bench(&text_files()));
    assert_eq!(lanner.problem(&["search", "--mode", "and", "-k", "3", "falcon"]), None);
    assert_eq!(lanner.problem(&["verify", "--mode=and"]), Some("lanner verify has no flag --mode".to_owned()));
    assert_eq!(lanner.problem(&["serve"]), Some("lanner has no command serve".to_owned()));
    assert_eq!(bench.problem(&["run", "foundation", "--data", "DIR"]), None);
    assert_eq!(bench.problem(&["reproduce", "saat", "--count", "200"]), None);
    assert_eq!(bench.problem(&["run", "--policies"]), Some("lanner-bench run has no flag --policies".to_owned()));
    assert!(lanner.has_flag("--executor") && bench.has_flag("--list") && !lanner.has_flag("--list"));
}
