//! Parts of a suite: what to leave out of it when only some of it is wanted.

use crate::error::BenchError;
use std::collections::BTreeMap;

/// What parts can be named by.
const KEYS: [&str; 10] = ["collection", "engine", "log", "part", "score", "mode", "k", "paper", "entry", "side"];

/// Which parts of a suite to run; all, unless something is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    named: BTreeMap<String, Vec<String>>,
    /// The most queries of each log.
    pub queries: Option<usize>,
}

impl Only {
    /// Everything, with at most so many queries of each log.
    pub fn most_queries(queries: usize) -> Only {
        Only { queries: Some(queries), ..Only::default() }
    }

    /// Reads filters such as `engine=lanner,pisa`.
    pub fn parse(filters: &[String], queries: Option<usize>) -> Result<Only, BenchError> {
        let mut only = Only { queries, ..Only::default() };
        for filter in filters {
            match filter.split_once('=').filter(|(key, _)| KEYS.contains(key)) {
                Some((key, values)) => {
                    only.named.entry(key.to_owned()).or_default().extend(values.split(',').map(str::to_owned));
                }
                None => {
                    let keys = KEYS.join(", ");
                    let what = format!("--only {filter}: write KEY=VALUE,VALUE with one of the keys {keys}");
                    return Err(BenchError::Usage(what));
                }
            }
        }
        Ok(only)
    }

    /// Whether a part is wanted.
    pub fn keeps(&self, key: &str, value: impl ToString) -> bool {
        self.named.get(key).is_none_or(|values| values.contains(&value.to_string()))
    }

    /// How many queries of a log are wanted.
    pub fn sample(&self, of_suite: usize) -> usize {
        self.queries.map_or(of_suite, |most| most.min(of_suite))
    }

    /// The options that say this on the command line, with a space before each.
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
    fn what_is_not_named_is_kept() {
        let filters = ["engine=lanner,pisa", "k=10"].map(str::to_owned);
        let only = Only::parse(&filters, Some(50)).unwrap();
        assert!(only.keeps("engine", "pisa") && !only.keeps("engine", "tantivy") && only.keeps("log", "tb05"));
        assert!(only.keeps("k", 10) && !only.keeps("k", 100));
        assert_eq!((only.sample(1000), only.sample(20)), (50, 20));
        assert_eq!(only.to_arguments(), " --only engine=lanner,pisa --only k=10 --queries 50");
    }

    #[test]
    fn a_key_that_is_none_is_named() {
        let error = Only::parse(&["colour=red".to_owned()], None).unwrap_err().to_string();
        assert!(error.contains("colour=red") && error.contains("collection, engine"), "{error}");
    }
}
