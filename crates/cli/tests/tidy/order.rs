//! Modules are ordered: each knows only those before it. The docs of `lib.rs` state the order.

use crate::files::{assert_none, root, text_files};
use std::fs;

/// The crates whose modules are ordered.
const ORDERED: [&str; 4] = ["crates/index", "crates/gpu", "crates/engine", "crates/bench"];

/// The modules that the docs of a `lib.rs` list after "Modules in order".
fn order_of(library: &str) -> Vec<&str> {
    let (_, stated) = library.split_once("Modules in order").expect("a paragraph on the order of modules");
    let docs = stated.lines().take_while(|line| !line.starts_with("pub mod") && !line.starts_with("mod"));
    let names = docs.flat_map(|line| line.split('`').skip(1).step_by(2));
    names.filter(|name| *name != "tidy").collect()
}

#[test]
fn a_module_knows_only_those_before_it() {
    let files = text_files();
    let mut findings = Vec::new();
    for folder in ORDERED {
        let sources = format!("{folder}/src/");
        let library = files.iter().find(|file| file.path == format!("{sources}lib.rs")).expect("lib.rs");
        let order = order_of(&library.text);
        for file in files.iter().filter(|file| file.is_rust() && !file.path.ends_with("tests.rs")) {
            let module = file.path.strip_prefix(&sources).and_then(|inside| inside.split(['/', '.']).next());
            let Some(place) = order.iter().position(|name| Some(*name) == module) else {
                continue;
            };
            for (number, line) in file.code() {
                for later in order[place + 1..].iter().filter(|later| names_module(line, later)) {
                    findings.push(format!("{}:{number}: {} must not know {later}", file.path, order[place]));
                }
            }
        }
    }
    assert_none(&findings);
}

/// Whether a line has `crate::MODULE`, not just a longer name that starts so.
fn names_module(line: &str, module: &str) -> bool {
    let wanted = format!("crate::{module}");
    line.match_indices(&wanted).any(|(at, _)| {
        let after = line[at + wanted.len()..].chars().next();
        !after.is_some_and(|character| character.is_alphanumeric() || character == '_')
    })
}

#[test]
fn every_module_of_an_ordered_crate_has_a_place_in_the_order() {
    for folder in ORDERED {
        let library = fs::read_to_string(root().join(folder).join("src/lib.rs")).expect("lib.rs");
        let declared: Vec<&str> = library
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ").or(line.strip_prefix("mod "))?.strip_suffix(';'))
            .collect();
        assert!(declared.len() > 1, "{folder}/src/lib.rs declares no modules");
        assert_eq!(order_of(&library), declared, "{folder}/src/lib.rs: order in the docs, and of the declarations");
    }
}
