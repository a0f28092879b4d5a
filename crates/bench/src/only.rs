//! The option `--only`, which restricts a run to parts of a suite.

use crate::error::{BenchError, Result};
use std::collections::BTreeMap;

/// The keys of `--only`.
const KEYS: [&str; 13] = [
    "collection",
    "engine",
    "log",
    "answer",
    "part",
    "policy",
    "lists",
    "score",
    "mode",
    "k",
    "paper",
    "entry",
    "side",
];

/// Which parts of a suite to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// The values to keep for each key; a key that is not here keeps all values.
    named: BTreeMap<String, Vec<String>>,
    /// Maximal number of queries of each log.
    pub queries: Option<usize>,
}

impl Only {
    /// Parses filters such as `engine=lanner,pisa`.
    pub fn parse(filters: &[String], queries: Option<usize>) -> Result<Only> {
        let mut only = Only { queries, ..Only::default() };
        for filter in filters {
            let Some((key, values)) = filter.split_once('=').filter(|(key, _)| KEYS.contains(key)) else {
                let keys = KEYS.join(", ");
                let what = format!("--only {filter}: write KEY=VALUE,VALUE with one of the keys {keys}");
                return Err(BenchError::Usage(what));
            };
            only.named.entry(key.to_owned()).or_default().extend(values.split(',').map(str::to_owned));
        }
        Ok(only)
    }

    /// Whether a value of a key is kept.
    pub fn keeps(&self, key: &str, value: impl ToString) -> bool {
        self.named.get(key).is_none_or(|values| values.contains(&value.to_string()))
    }

    /// Returns how many queries of a log are wanted.
    pub fn sample(&self, of_suite: usize) -> usize {
        self.queries.map_or(of_suite, |most| most.min(of_suite))
    }

    /// Returns the options as they are written on the command line, with a space before each.
    pub fn to_arguments(&self) -> String {
        let named = self.named.iter().map(|(key, values)| format!(" --only {key}={}", values.join(",")));
        let queries = self.queries.map(|most| format!(" --queries {most}"));
        named.chain(queries).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_named_keep_all_values() {
        let filters = ["engine=lanner,pisa", "k=10"].map(str::to_owned);
        let only = Only::parse(&filters, Some(50)).unwrap();
        assert!(only.keeps("engine", "pisa") && !only.keeps("engine", "tantivy") && only.keeps("log", "tb05"));
        assert!(only.keeps("k", 10) && !only.keeps("k", 100));
        assert_eq!((only.sample(1000), only.sample(20)), (50, 20));
        assert_eq!(only.to_arguments(), " --only engine=lanner,pisa --only k=10 --queries 50");
    }

    #[test]
    fn an_unknown_key_is_named_in_the_error() {
        let error = Only::parse(&["colour=red".to_owned()], None).unwrap_err().to_string();
        assert!(error.contains("colour=red") && error.contains("collection, engine"), "{error}");
    }
}
