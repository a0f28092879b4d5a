//! One value for each document of each query: the shape of judgements and of runs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A table from query and document to a value; queries keep the order in which they came.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ByQuery<T> {
    // places[query]: where the query stands in `queries`.
    places: HashMap<String, usize>,
    queries: Vec<(String, HashMap<String, T>)>,
}

impl<T: Copy> ByQuery<T> {
    pub(super) fn new() -> Self {
        ByQuery { places: HashMap::new(), queries: Vec::new() }
    }

    /// Adds a value; returns the one that was there already, which then stays.
    pub(super) fn insert(&mut self, query: &str, document: &str, value: T) -> Option<T> {
        let place = match self.places.get(query) {
            Some(&place) => place,
            None => {
                let place = self.queries.len();
                self.places.insert(query.to_owned(), place);
                self.queries.push((query.to_owned(), HashMap::new()));
                place
            }
        };
        match self.queries[place].1.entry(document.to_owned()) {
            Entry::Occupied(present) => Some(*present.get()),
            Entry::Vacant(vacant) => {
                vacant.insert(value);
                None
            }
        }
    }

    pub(super) fn get(&self, query: &str) -> Option<&HashMap<String, T>> {
        let place = *self.places.get(query)?;
        Some(&self.queries[place].1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &HashMap<String, T>)> {
        self.queries.iter().map(|(query, documents)| (query.as_str(), documents))
    }

    /// The number of queries.
    pub(super) fn len(&self) -> usize {
        self.queries.len()
    }
}
