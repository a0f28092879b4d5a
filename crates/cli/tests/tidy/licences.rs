//! Every dependency has a licence that deny.toml allows, and comes from crates.io.
//!
//! `cargo deny` would check the same and more, but takes minutes to install; this test reads its configuration, so that
//! the list of licences stands once and everybody checks it.

use crate::files::{assert_none, root};
use std::fs;
use std::process::Command;

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed_licences();
    let metadata = metadata();
    let resolved = metadata["resolve"]["nodes"].as_array().expect("resolved packages");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(resolved.len() > 50, "only {} packages are resolved", resolved.len());
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| resolved.iter().any(|node| node["id"] == package["id"])) {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none"));
        if !is_allowed(licence, &allowed) {
            findings.push(format!("{name}: {licence}"));
        }
        let source = package["source"].as_str();
        if source.is_some_and(|source| !source.starts_with("registry+https://github.com/rust-lang/crates.io-index")) {
            findings.push(format!("{name}: not from crates.io"));
        }
    }
    assert_none(&findings);
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed: Vec<String> = ["MIT", "Zlib"].map(str::to_owned).into();
    for good in ["MIT", "Unlicense OR MIT", "Unlicense/MIT", "(GPL-3.0 OR MIT) AND Zlib", "A AND B OR MIT"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none", "MIT WITH some-exception", "A OR B AND MIT", "(MIT"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

/// The list `allow` of deny.toml.
fn allowed_licences() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let list = text.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list of licences").0;
    let allowed: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(!allowed.is_empty(), "deny.toml allows no licence");
    allowed
}

/// What cargo knows of the packages that are built on this platform.
fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let version = Command::new("rustc").arg("-vV").output().expect("rustc");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the platform");
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let output = Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the output of cargo metadata")
}

/// Whether a licence expression can be met with allowed licences alone. `/` is the old way to write OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    either(&mut rest, allowed) == Some(true) && rest.is_empty()
}

fn either(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = both(words, allowed)?;
    while let ["OR", after @ ..] = words {
        *words = after;
        is_met |= both(words, allowed)?;
    }
    Some(is_met)
}

fn both(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    let mut is_met = single(words, allowed)?;
    while let ["AND", after @ ..] = words {
        *words = after;
        is_met &= single(words, allowed)?;
    }
    Some(is_met)
}

fn single(words: &mut &[&str], allowed: &[String]) -> Option<bool> {
    match words {
        ["(", after @ ..] => {
            *words = after;
            let is_met = either(words, allowed)?;
            let [")", after @ ..] = words else {
                return None;
            };
            *words = after;
            Some(is_met)
        }
        [name, "WITH", exception, after @ ..] => {
            *words = after;
            let joined = format!("{name} WITH {exception}");
            Some(allowed.contains(&joined))
        }
        [name, after @ ..] => {
            *words = after;
            Some(allowed.iter().any(|known| known == name))
        }
        [] => None,
    }
}
