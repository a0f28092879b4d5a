//! A value for each document of each query: the form of judgements and of runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A map from query and document to a value; queries keep the order in which they were inserted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ByQuery<T> {
    // positions[query]: the position of the query in `queries`.
    positions: HashMap<String, usize>,
    queries: Vec<(String, HashMap<String, T>)>,
}

impl<T: Copy> ByQuery<T> {
    pub(super) fn new() -> Self {
        ByQuery { positions: HashMap::new(), queries: Vec::new() }
    }

    /// Inserts a value unless there is one already, which is returned and kept.
    pub(super) fn insert(&mut self, query: &str, document: &str, value: T) -> Option<T> {
        let position = match self.positions.get(query) {
            Some(&position) => position,
            None => {
                let position = self.queries.len();
                self.positions.insert(query.to_owned(), position);
                self.queries.push((query.to_owned(), HashMap::new()));
                position
            }
        };
        match self.queries[position].1.entry(document.to_owned()) {
            Entry::Occupied(present) => Some(*present.get()),
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                None
            }
        }
    }

    pub(super) fn get(&self, query: &str) -> Option<&HashMap<String, T>> {
        let position = *self.positions.get(query)?;
        Some(&self.queries[position].1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &HashMap<String, T>)> {
        self.queries.iter().map(|(query, documents)| (query.as_str(), documents))
    }

    /// Returns the number of queries.
    pub(super) fn len(&self) -> usize {
        self.queries.len()
    }
}
