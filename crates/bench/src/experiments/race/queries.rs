//! The queries of a race: reduced to terms of the collection, and split by their numbers of terms.

use crate::error::Result;
use crate::experiments::Context;
use crate::query_log::{self, Half};
use crate::suite::{LogPart, PeersPart};
use lanner_index::open::Index;
use lanner_index::text::Analyzer;

/// The name of the class of all queries of a log.
pub const ALL: &str = "all";

/// Queries of one log, reduced to terms of the collection.
pub struct QuerySet {
    pub name: String,
    /// The terms of each query.
    pub terms: Vec<Vec<String>>,
    /// The terms of each query, joined by spaces.
    pub texts: Vec<String>,
    /// All queries, then those of each number of terms.
    pub classes: Vec<Class>,
}

/// Queries of a log with similar numbers of terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub name: String,
    /// The positions of the queries in the set.
    pub queries: Vec<usize>,
}

/// Reads the logs that `--only` keeps.
pub fn read(context: Context<'_>, part: &PeersPart, analyzer: &Analyzer, index: &Index) -> Result<Vec<QuerySet>> {
    let is_known = |term: &str| index.lookup(term).is_ok_and(|found| found.is_some());
    let read = |log: &LogPart| {
        let known = query_log::known_terms(&context.read_log(log)?, Half::Reporting, analyzer, is_known);
        let sample = context.options.only.sample(log.sample);
        let terms = match log.terms {
            Some(terms) => query_log::joined(&known, sample, terms),
            None => query_log::spread(&known, sample),
        };
        let texts = terms.iter().map(|terms| terms.join(" ")).collect();
        let counts: Vec<usize> = terms.iter().map(Vec::len).collect();
        let classes = match log.terms {
            Some(terms) => vec![Class { name: terms.to_string(), queries: (0..counts.len()).collect() }],
            None => classes(&counts, &part.splits),
        };
        Ok(QuerySet { name: log.name.clone(), terms, texts, classes })
    };
    part.logs.iter().filter(|log| context.keeps("log", &log.name)).map(read).collect()
}

/// Returns the classes that have queries; `counts` are the numbers of terms of the queries.
fn classes(counts: &[usize], splits: &[usize]) -> Vec<Class> {
    let class = |name: String, is_in: &dyn Fn(usize) -> bool| Class {
        name,
        queries: (0..counts.len()).filter(|&query| is_in(counts[query])).collect(),
    };
    let mut classes = vec![class(ALL.to_owned(), &|_| true)];
    for &split in splits {
        classes.push(class(format!("1-{split}"), &|count| count <= split));
        classes.push(class(format!("{}+", split + 1), &|count| count > split));
    }
    classes.retain(|class| !class.queries.is_empty());
    classes
}

impl QuerySet {
    /// The name of the class of all queries.
    pub fn whole(&self) -> &str {
        self.classes.first().map_or(ALL, |class| &class.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_split_by_their_numbers_of_terms() {
        let named = |classes: Vec<Class>| -> Vec<(String, Vec<usize>)> {
            classes.into_iter().map(|class| (class.name, class.queries)).collect()
        };
        let class = |name: &str, queries: &[usize]| (name.to_owned(), queries.to_vec());
        let found = named(classes(&[1, 7, 2, 3], &[2, 5]));
        let short = [class("all", &[0, 1, 2, 3]), class("1-2", &[0, 2]), class("3+", &[1, 3])];
        assert_eq!(found, [&short[..], &[class("1-5", &[0, 2, 3]), class("6+", &[1])]].concat());
        assert_eq!(named(classes(&[1], &[2])), [class("all", &[0]), class("1-2", &[0])]);
    }
}
