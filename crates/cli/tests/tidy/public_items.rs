//! The public interface: the items of the crate `lanner` are those of a committed list.

use crate::files::root;
use std::fs;

const LIST: &str = "crates/engine/tests/golden/public-items.txt";

/// The statements of a file outside all braces but those of `use`, without comments and attributes, and with
/// `#[doc(hidden)]` items left out.
fn statements(source: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let (mut statement, mut depth, mut is_hidden) = (String::new(), 0, false);
    for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if depth == 0 && statement.is_empty() && line.starts_with("#[") {
            is_hidden |= line == "#[doc(hidden)]";
            continue;
        }
        statement.push_str(line);
        depth += line.matches('{').count();
        depth -= line.matches('}').count();
        if depth == 0 && (line.ends_with(';') || line.ends_with('}')) {
            if !is_hidden {
                statements.push(std::mem::take(&mut statement));
            }
            (statement, is_hidden) = (String::new(), false);
        }
    }
    statements
}

/// The names that a `pub use` or a `pub mod` makes public.
fn names(statement: &str) -> Vec<String> {
    if let Some(module) = statement.strip_prefix("pub mod ") {
        return vec![module.trim_end_matches(';').to_owned()];
    }
    let Some(path) = statement.strip_prefix("pub use ") else {
        assert!(!statement.starts_with("pub "), "neither a module nor a use: {statement}");
        return Vec::new();
    };
    let path = path.trim_end_matches(';');
    let names = path.split_once('{').map_or(path, |(_, group)| group.trim_end_matches('}'));
    let name = |item: &str| item.rsplit([' ', ':']).next().unwrap_or(item).to_owned();
    names.split(',').map(str::trim).filter(|item| !item.is_empty()).map(name).collect()
}

fn public_items(source: &str) -> Vec<String> {
    let mut items: Vec<String> = statements(source).iter().flat_map(|statement| names(statement)).collect();
    items.sort();
    items
}

/// A public item is a promise to users: adding one shows in the list, which `UPDATE=1` rewrites.
#[test]
fn the_public_items_of_the_library_are_those_of_the_list() {
    let source = fs::read_to_string(root().join("crates/engine/src/lib.rs")).expect("lib.rs");
    let items = public_items(&source).join("\n") + "\n";
    let path = root().join(LIST);
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(&path, &items).expect("the list");
    }
    assert_eq!(items, fs::read_to_string(&path).unwrap_or_default(), "{LIST} differs; UPDATE=1 rewrites it");
}

#[test]
fn public_items_are_found_in_groups_and_modules_but_not_in_hidden_ones() {
    let source = "
        //! pub use comments::Ignored;
        mod private;
        pub mod open;
        pub use one::Item;
        pub use many::{
            A,
            inner::B, C as D,
        };
        use private::Unseen;
        /// Docs.
        #[doc(hidden)]
        pub mod internals {
            pub use crate::private::Hidden;
        }
        pub use last::Z;
    ";
    assert_eq!(public_items(source), ["A", "B", "D", "Item", "Z", "open"]);
}
