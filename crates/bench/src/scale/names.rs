//! New names for rare words, so that the vocabulary grows as Heaps' law says.
//!
//! The law, words = K · tokens^β, is fitted to the source; c copies then need `words · c^β` different words. In each
//! copy every rare word takes a new name with the probability that makes up for the growth; otherwise it takes the name
//! it had in an earlier copy chosen at random. That is Simon's process (1955), which gives the names, like real words,
//! frequencies with a power law.

use super::random::mix;
use super::source::Source;
use crate::statistics::fit_power_law;

/// A word is rare that occurs in fewer documents than one of so many, or in at most two.
const RARE_SHARE: u32 = 5_000;
/// Longer words keep their name.
const LONGEST_BYTES: usize = 60;

/// Which rare word has which name in which copy.
#[derive(Clone, Debug)]
pub struct Names {
    seed: u64,
    exponent: f64,
    is_rare: Vec<bool>,
    /// `renamed[copy]`: the share, of 2^32, of rare words that take a new name.
    renamed: Vec<u64>,
}

impl Names {
    /// Names for so many copies of a source.
    pub fn new(source: &Source, copies: usize, seed: u64) -> Names {
        // The beginning of a collection is about few topics: the law shows later.
        let growth = source.growth();
        let (exponent, _) = fit_power_law(&growth[growth.len() / 4..]);
        let exponent = exponent.clamp(0.0, 1.0);
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

    /// The exponent of Heaps' law in the source.
    pub fn exponent(&self) -> f64 {
        self.exponent
    }

    /// The copy in which the name of a word in a copy was new; 0 is the word itself.
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
            // The name it had in an earlier copy.
            at = (((bits & 0xffff_ffff) * u64::from(at)) >> 32) as u32;
        }
        0
    }
}

/// Appends what makes a new name of a word: a letter and the copy in letters.
pub fn push_suffix(origin: u32, out: &mut Vec<u8>) {
    out.push(b'x');
    let mut rest = origin;
    while rest > 0 {
        out.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
}

/// Whether letters after the word make one longer word of it: not so after ideographs.
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
