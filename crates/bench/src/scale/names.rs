//! New names for rare words, so that the vocabulary grows by Heaps' law.
//!
//! The law, words = K · tokens^β, is fitted to the source; c copies then have `words · c^β` distinct words. In each
//! copy, every rare word takes a new name with the probability that yields this growth; otherwise it takes the name
//! that it had in a random earlier copy. This is Simon's process (1955); its names have power-law frequencies, as real
//! words do.

use super::random::mix;
use super::source::Source;
use crate::statistics::power_law_exponent;

/// A word is rare if it occurs in at most 1/5,000 of the documents, or in at most two.
const RARE_SHARE: u32 = 5_000;
/// Longer words keep their names.
const LONGEST_BYTES: usize = 60;

/// The names of rare words in each copy.
#[derive(Clone, Debug)]
pub struct Names {
    seed: u64,
    /// The exponent of Heaps' law in the source.
    pub exponent: f64,
    is_rare: Vec<bool>,
    /// `renamed[copy]`: probability, times 2^32, that a rare word takes a new name.
    renamed: Vec<u64>,
}

impl Names {
    /// Fits Heaps' law to a source and prepares names for its copies.
    pub fn new(source: &Source, copies: usize, seed: u64) -> Names {
        // The first documents of a collection cover few topics and do not follow the law.
        let growth = &source.growth;
        let exponent = power_law_exponent(&growth[growth.len() / 4..]).clamp(0.0, 1.0);
        let most = (source.documents() / RARE_SHARE).max(2);
        let is_rare: Vec<bool> =
            (0..source.words()).map(|word| source.frequency(word) <= most && takes_suffix(source.word(word))).collect();
        let rare = is_rare.iter().filter(|&&rare| rare).count().max(1) as f64;
        let words = f64::from(source.words());
        let share = |copy: usize| {
            let copy = copy as f64;
            let wanted = words * ((copy + 1.0).powf(exponent) - copy.powf(exponent));
            ((wanted / rare).min(1.0) * 4_294_967_296.0) as u64
        };
        let renamed = (0..copies).map(|copy| if copy == 0 { 0 } else { share(copy) }).collect();
        Names { seed, exponent, is_rare, renamed }
    }

    /// Returns the copy in which the name of a word in `copy` was introduced; 0 stands for the word itself.
    #[inline]
    pub fn origin(&self, word: u32, copy: u32) -> u32 {
        if !self.is_rare[word as usize] {
            return 0;
        }
        let mut at = copy;
        while at > 0 {
            let bits = mix(self.seed ^ u64::from(word) << 32, u64::from(at));
            if bits >> 32 < self.renamed[at as usize] {
                return at;
            }
            // Take the name of an earlier copy.
            at = (((bits & 0xffff_ffff) * u64::from(at)) >> 32) as u32;
        }
        0
    }
}

/// Appends the suffix of a new name: the letter x, then the number of the copy in letters.
pub fn push_suffix(origin: u32, out: &mut Vec<u8>) {
    out.push(b'x');
    let mut rest = origin;
    while rest > 0 {
        out.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
}

/// Whether a word with letters appended is still a single word, which is not the case for ideographs.
fn takes_suffix(word: &str) -> bool {
    let last = word.chars().next_back();
    last.is_some_and(|last| last < '\u{590}' && last.is_alphanumeric()) && word.len() <= LONGEST_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_copies_give_different_suffixes() {
        let suffixes: std::collections::HashSet<Vec<u8>> = (1..2000)
            .map(|origin| {
                let mut out = Vec::new();
                push_suffix(origin, &mut out);
                out
            })
            .collect();
        assert_eq!(suffixes.len(), 1999);
    }

    #[test]
    fn only_words_that_stay_one_word_take_a_suffix() {
        assert!(takes_suffix("falcon") && takes_suffix("ἀρχή") && takes_suffix("3.14"));
        assert!(!takes_suffix("東") && !takes_suffix(&"a".repeat(61)) && !takes_suffix(""));
    }
}
