//! Remembers what became of recent words: text repeats its words, and looking one up costs a fraction of stemming it.

/// A direct-mapped table from words of at most 16 bytes to their terms: a word that meets another in its slot replaces it.
///
/// A term is mostly the start of its word with at most one letter more (`cats`, `cat`; `happy`, `happi`; `hoping`,
/// `hope`). Only such terms are remembered, so a slot holds no text.
#[derive(Clone, Debug, Default)]
pub struct RecentTerms {
    /// Empty until `made` says that a table pays.
    slots: Vec<Slot>,
    /// How many terms have been made rather than remembered.
    made: usize,
    /// The term in work, if it is not just the start of its word.
    term: String,
}

/// With nothing kept and no letter, the word gives no term.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: Key,
    /// How many bytes of the word the term keeps.
    kept: u8,
    /// The letter that follows them, or 0 for none.
    letter: u8,
}

/// All bytes of a word, in a form that is quick to make and to compare. The default is no word's key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Key {
    first: u64,
    last: u64,
    length: u8,
}

/// At 24 bytes a slot they stay in a second-level cache.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 13;

/// So many terms are made before the table is: a query is done before it would pay.
const MADE_WITHOUT_TABLE: usize = 256;

impl RecentTerms {
    /// The term of `word`, remembered or made: `make` turns the word into its term in place and says whether there is
    /// one. It must do the same each time, until [`forget`](Self::forget).
    #[inline]
    pub fn term<'term>(
        &'term mut self,
        word: &'term str,
        make: impl FnOnce(&mut String) -> bool,
    ) -> Option<&'term str> {
        let Some(key) = Key::of(word.as_bytes()) else {
            return self.make(word, make);
        };
        match self.slots.get(key.slot()) {
            Some(slot) if slot.key == key => {
                let kept = &word[..usize::from(slot.kept)];
                if slot.letter == 0 {
                    return (!kept.is_empty()).then_some(kept);
                }
                self.term.clear();
                self.term.push_str(kept);
                self.term.push(char::from(slot.letter));
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

    /// Empties the table, for words that are to give other terms.
    pub fn forget(&mut self) {
        self.slots.clear();
    }

    fn make(&mut self, word: &str, make: impl FnOnce(&mut String) -> bool) -> Option<&str> {
        self.term.clear();
        self.term.push_str(word);
        make(&mut self.term).then_some(&self.term)
    }

    /// Puts `word` with the term just made into its slot, if the term has the form that a slot can hold.
    fn remember(&mut self, key: Key, word: &str, is_term: bool) {
        let word = word.as_bytes();
        let (kept, letter) = match self.term.as_bytes() {
            _ if !is_term => (0, 0),
            term if word.starts_with(term) => (term.len(), 0),
            [start @ .., letter @ 1..=0x7F] if word.starts_with(start) => (start.len(), *letter),
            _ => return,
        };
        self.slots.resize(SLOTS, Slot::default());
        self.slots[key.slot()] = Slot {
            key,
            // Within 16, as the word is.
            kept: kept as u8,
            letter,
        };
    }
}

impl Key {
    /// None for the empty word and for words of more than 16 bytes.
    #[inline]
    fn of(word: &[u8]) -> Option<Key> {
        let (first, last) = match (word, word.first_chunk::<8>(), word.last_chunk::<8>()) {
            (_, Some(first), Some(last)) if word.len() <= 16 => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            (_, Some(_), _) | ([], ..) => return None,
            _ => match (word.first_chunk::<4>(), word.last_chunk::<4>()) {
                (Some(first), Some(last)) => (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()),
                // One to three bytes: the first, the middle and the last are all there is.
                _ => (u64::from(word[0]) | u64::from(word[word.len() / 2]) << 8, word[word.len() - 1].into()),
            },
        };
        Some(Key { first, last, length: word.len() as u8 })
    }

    /// The high bits of a product with the golden ratio, as in Fibonacci hashing.
    #[inline]
    fn slot(&self) -> usize {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (self.first ^ self.last.rotate_left(29) ^ u64::from(self.length) << 59).wrapping_mul(GOLDEN);
        ((mixed ^ mixed >> 29).wrapping_mul(GOLDEN) >> (u64::BITS - SLOT_BITS)) as usize
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
    fn words_of_one_slot_take_turns() {
        let slot = |word: &str| Key::of(word.as_bytes()).unwrap().slot();
        let words: Vec<String> = (0..=SLOTS).map(|number| format!("{number}ties")).collect();
        let mut first_with = std::collections::HashMap::new();
        let (one, other) =
            words.iter().find_map(|word| first_with.insert(slot(word), word).map(|before| (before, word))).unwrap();
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
        assert_eq!(recent.slots.len(), 0);
        recent.term("hoping", make);
        assert_eq!(recent.slots.len(), SLOTS);
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
            words in proptest::collection::vec("[a-eq]{1,3}|[a-z]{0,14}(ies|ied|ing|y|ational|biliti|e|s)|\\PC{0,6}(ed|s|y)", 1..40)
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
