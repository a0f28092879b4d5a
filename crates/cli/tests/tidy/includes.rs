//! A `.cu` file includes the files whose names it uses, and no others.

use crate::files::{TextFile, assert_none, text_files};
use std::collections::HashSet;

/// Offers CUDA itself, which `__device__` stands for here.
const CUDA: &str = "crates/gpu/cuda/kernel.h";

/// The lines without comments, strings and includes.
fn code(file: &TextFile) -> impl Iterator<Item = String> {
    let lines = file.text.lines().filter(|line| !line.starts_with("#include"));
    lines.map(|line| line.split("//").next().unwrap_or_default().split('"').step_by(2).collect())
}

/// The words of a line, each with the characters before and after it.
fn words(line: &str) -> impl Iterator<Item = (char, &str, char)> {
    let is_outside = |character: char| !character.is_alphanumeric() && character != '_';
    let mut before = ' ';
    line.split_inclusive(is_outside).map(move |piece| {
        let after = piece.chars().next_back().filter(|&last| is_outside(last)).unwrap_or(' ');
        (std::mem::replace(&mut before, after), piece.trim_end_matches(after), after)
    })
}

fn is_capital(word: &str) -> bool {
    word.starts_with(|character: char| character.is_ascii_uppercase())
}

/// Types, constants, macros, namespaces and functions that a file defines, and the members of its own structs.
fn defined(file: &TextFile, is_own: bool) -> HashSet<String> {
    let mut names: HashSet<String> = (file.path == CUDA).then(|| "__device__".to_owned()).into_iter().collect();
    for line in code(file).filter(|line| is_own || !line.starts_with(' ')) {
        let keywords = ["struct ", "enum ", "constexpr ", "using ", "#define ", "namespace "];
        if let Some((keyword, after)) = keywords.iter().find_map(|&word| Some((word, line.split_once(word)?.1))) {
            let most = if keyword == "enum " { usize::MAX } else { 1 };
            let names_after =
                words(after).map(|word| word.1).filter(|word| is_capital(word) || keyword == "namespace ");
            names.extend(names_after.take(most).map(str::to_owned));
        } else if line.contains("__device__ ") {
            names.extend(words(&line).find(|word| word.2 == '(').map(|word| word.1.to_owned()));
        }
    }
    // A macro that ends in its file is not offered.
    names.retain(|name| !file.text.contains(&format!("#undef {name}\n")));
    names
}

/// Capitalized words, namespaces, and functions that are called; not members.
fn used(file: &TextFile) -> HashSet<String> {
    let is_name = |&(before, word, after): &(char, &str, char)| {
        !".>:".contains(before) && (is_capital(word) || word == "__device__" || "(<:".contains(after))
    };
    code(file).flat_map(|line| words(&line).filter(is_name).map(|word| word.1.to_owned()).collect::<Vec<_>>()).collect()
}

#[test]
fn a_file_of_kernels_includes_what_it_uses_and_nothing_else() {
    let mut files = text_files();
    files.retain(|file| file.path.ends_with(".cu") || file.path.ends_with(".h"));
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".cu")) {
        let names = used(file);
        let includes = file.text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
        let includes: Vec<String> = includes.map(|name| format!("/{name}")).collect();
        let is_included = |other: &&TextFile| includes.iter().any(|name| other.path.ends_with(name));
        let (included, others): (Vec<_>, Vec<_>) = files.iter().partition(is_included);
        let offered = included.iter().map(|other| defined(other, false));
        // A file without code of its own puts a module together.
        let unused =
            included.iter().zip(offered.clone()).filter(|(_, offered)| !names.is_empty() && names.is_disjoint(offered));
        findings.extend(unused.map(|(other, _)| format!("{} uses nothing of {}", file.path, other.path)));
        let known: HashSet<String> = offered.flatten().chain(defined(file, true)).collect();
        for other in others {
            let missing =
                defined(other, false).into_iter().filter(|name| names.contains(name) && !known.contains(name));
            findings.extend(missing.map(|name| format!("{} uses {name} of {}", file.path, other.path)));
        }
    }
    assert_none(&findings);
}
