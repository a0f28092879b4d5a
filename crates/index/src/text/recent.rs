//! A cache from recent words to their terms: text repeats its words, and a lookup costs a fraction of stemming.

/// A direct-mapped table from words of up to 16 bytes to their terms: a word replaces the one in its bucket.
///
/// Most terms are a prefix of their word with at most one letter appended (`cats`, `cat`; `happy`, `happi`; `hoping`,
/// `hope`). Only such terms are cached, so a bucket holds no text.
#[derive(Clone, Debug, Default)]
pub struct RecentTerms {
    /// Empty until more than `MADE_WITHOUT_TABLE` terms were made.
    buckets: Vec<Bucket>,
    /// Terms made so far, rather than found in the table.
    made: usize,
    /// The current term, unless it is a prefix of its word.
    term: String,
}

/// A cached word. If nothing is kept and there is no letter, the word gives no term.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    key: Key,
    /// Length of the prefix of the word that the term keeps.
    kept: u8,
    /// The letter appended to it, or 0 for none.
    letter: u8,
}

/// All bytes of a word, in a form that is fast to make and to compare. No word has the default key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Key {
    first: u64,
    last: u64,
    length: u8,
}

/// With 24 bytes per bucket the table fits in the L2 cache.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 13;

/// Terms made before the table is allocated: a query ends before it would pay off.
const MADE_WITHOUT_TABLE: usize = 256;

impl RecentTerms {
    /// The term of `word`, from the table or from `make`, which turns the word into its term in place and returns
    /// whether there is one. `make` must be the same function until [`forget`](Self::forget).
    #[inline]
    pub fn term<'term>(
        &'term mut self,
        word: &'term str,
        make: impl FnOnce(&mut String) -> bool,
    ) -> Option<&'term str> {
        let Some(key) = Key::of(word.as_bytes()) else {
            return self.make(word, make);
        };
        match self.buckets.get(key.bucket()) {
            Some(bucket) if bucket.key == key => {
                let kept = &word[..usize::from(bucket.kept)];
                if bucket.letter == 0 {
                    return (!kept.is_empty()).then_some(kept);
                }
                self.term.clear();
                self.term.push_str(kept);
                self.term.push(char::from(bucket.letter));
                Some(&self.term)
            }
            _ => {
                let is_term = self.make(word, make).is_some();
                self.made += 1;
                if self.made > MADE_WITHOUT_TABLE {
                    self.remember(key, word, is_term);
                }
                is_term.then_some(&self.term)
            }
        }
    }

    /// Empties the table, before `make` becomes another function.
    pub fn forget(&mut self) {
        self.buckets.clear();
    }

    fn make(&mut self, word: &str, make: impl FnOnce(&mut String) -> bool) -> Option<&str> {
        self.term.clear();
        self.term.push_str(word);
        make(&mut self.term).then_some(&self.term)
    }

    /// Caches the term that was just made from `word`, if a bucket can hold it.
    fn remember(&mut self, key: Key, word: &str, is_term: bool) {
        let word = word.as_bytes();
        let (kept, letter) = match self.term.as_bytes() {
            _ if !is_term => (0, 0),
            term if word.starts_with(term) => (term.len(), 0),
            [start @ .., letter @ 1..=0x7F] if word.starts_with(start) => (start.len(), *letter),
            _ => return,
        };
        self.buckets.resize(BUCKETS, Bucket::default());
        self.buckets[key.bucket()] = Bucket {
            key,
            // At most 16, the longest word.
            kept: kept as u8,
            letter,
        };
    }
}

impl Key {
    /// `None` for the empty word and for words of more than 16 bytes.
    #[inline]
    fn of(word: &[u8]) -> Option<Key> {
        let (first, last) = match (word, word.first_chunk::<8>(), word.last_chunk::<8>()) {
            (_, Some(first), Some(last)) if word.len() <= 16 => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            (_, Some(_), _) | ([], ..) => return None,
            _ => match (word.first_chunk::<4>(), word.last_chunk::<4>()) {
                (Some(first), Some(last)) => (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()),
                // One to three bytes: first, middle and last are all of them.
                _ => (u64::from(word[0]) | u64::from(word[word.len() / 2]) << 8, word[word.len() - 1].into()),
            },
        };
        Some(Key { first, last, length: word.len() as u8 })
    }

    /// Fibonacci hashing: the high bits of a product with the golden ratio.
    #[inline]
    fn bucket(&self) -> usize {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (self.first ^ self.last.rotate_left(29) ^ u64::from(self.length) << 59).wrapping_mul(GOLDEN);
        ((mixed ^ mixed >> 29).wrapping_mul(GOLDEN) >> (u64::BITS - BUCKET_BITS)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::porter;
    use proptest::prelude::*;

    /// Drops words with a `q` and stems the others.
    fn make(term: &mut String) -> bool {
        porter::stem(term);
        !term.contains('q') && !term.is_empty()
    }

    fn with_table() -> RecentTerms {
        RecentTerms { made: MADE_WITHOUT_TABLE, ..RecentTerms::default() }
    }

    fn term_of(word: &str) -> Option<String> {
        let mut term = word.to_owned();
        make(&mut term).then_some(term)
    }

    #[test]
    fn words_of_one_bucket_take_turns() {
        let bucket = |word: &str| Key::of(word.as_bytes()).unwrap().bucket();
        let words: Vec<String> = (0..=BUCKETS).map(|number| format!("{number}ties")).collect();
        let mut first_with = std::collections::HashMap::new();
        let (one, other) =
            words.iter().find_map(|word| first_with.insert(bucket(word), word).map(|before| (before, word))).unwrap();
        let mut recent = with_table();
        for word in [one, other, other, one] {
            assert_eq!(recent.term(word, make), term_of(word).as_deref());
        }
    }

    #[test]
    fn a_short_text_needs_no_table() {
        let mut recent = RecentTerms::default();
        for _ in 0..MADE_WITHOUT_TABLE {
            recent.term("hoping", make);
        }
        assert_eq!(recent.buckets.len(), 0);
        recent.term("hoping", make);
        assert_eq!(recent.buckets.len(), BUCKETS);
    }

    #[test]
    fn a_word_is_made_once_until_it_is_forgotten() {
        let mut recent = with_table();
        let mut made = 0;
        let mut ask = |recent: &mut RecentTerms| {
            let term = recent.term("hoping", |term| {
                made += 1;
                make(term)
            });
            assert_eq!(term, Some("hope"));
            made
        };
        assert_eq!([ask(&mut recent), ask(&mut recent)], [1, 1]);
        recent.forget();
        assert_eq!(ask(&mut recent), 2);
    }

    proptest! {
        #[test]
        fn remembered_terms_are_the_terms(
            words in proptest::collection::vec(
                "[a-eq]{1,3}|[a-z]{0,14}(ies|ied|ing|y|ational|biliti|e|s)|\\PC{0,6}(ed|s|y)", 1..40
            )
        ) {
            let mut recent = with_table();
            for word in words.iter().chain(words.iter().rev()) {
                let expected = term_of(word);
                prop_assert_eq!(recent.term(word, make), expected.as_deref());
            }
        }

        #[test]
        fn different_words_have_different_keys(one in "[ab]{0,18}", other in "[ab]{0,18}") {
            if let (Some(one_key), Some(other_key)) = (Key::of(one.as_bytes()), Key::of(other.as_bytes())) {
                prop_assert_eq!(one_key == other_key, one == other);
            }
        }
    }
}
