//! A set of documents, one bit each, for filters.

use lanner_index::DocId;

/// A set of documents, as a filter of a query: only documents in the set can be hits.
///
/// Document numbers belong to one build of an index; [`Searcher::filter`](crate::Searcher::filter) makes a set from
/// external ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSet {
    /// `words[i]`: documents `64 i` to `64 i + 63`, the least significant bit first.
    words: Vec<u64>,
}

impl DocumentSet {
    /// Adds a document.
    pub fn insert(&mut self, document: DocId) {
        let word = document.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (document.0 % 64);
    }

    /// Whether the document is in the set.
    #[inline]
    pub fn contains(&self, document: DocId) -> bool {
        self.words.get(document.0 as usize / 64).is_some_and(|word| word >> (document.0 % 64) & 1 == 1)
    }

    /// The words of the set: 64 documents each, the least significant bit first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Documents in the set.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl FromIterator<DocId> for DocumentSet {
    fn from_iter<I: IntoIterator<Item = DocId>>(documents: I) -> Self {
        let mut set = DocumentSet::default();
        documents.into_iter().for_each(|document| set.insert(document));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_inserted_and_nothing_else() {
        let inserted = [0, 1, 63, 64, 1000, 99_999].map(DocId);
        let set: DocumentSet = inserted.into_iter().collect();
        let held: Vec<DocId> = (0..200_000).map(DocId).filter(|&document| set.contains(document)).collect();
        assert_eq!(held, inserted);
        assert_eq!(set.count(), 6);
        assert!(!set.contains(DocId(u32::MAX)));
    }
}
