//! The original Porter stemmer (M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980), not Porter2.
//!
//! Two rules differ from the paper, as in the author's own later program and in Lucene's `PorterStemFilter`:
//! step 2 maps `bli` to `ble` (the paper: `abli` to `able`) and also `logi` to `log`. Words of one or two letters stay.
//!
//! The rules are about lower-case ASCII letters; every other character counts as a consonant. Lucene works on UTF-16
//! units and this file on UTF-8. The three rules where that matters (the length of a word, a doubled last character, a
//! last character after a vowel) look at characters, so that the stems are the same.
//!
//! No crate is used because stems must equal Lucene's for any text, and because this stemmer works in place, without
//! allocation.

/// A suffix and its replacement.
type Rule = (&'static str, &'static str);

/// Replaces `word` by its stem, in place.
pub fn stem(word: &mut String) {
    if is_short(word) {
        return;
    }
    remove_plural(word);
    remove_past_and_gerund(word);
    turn_final_y(word);
    apply_first(word, double_suffixes(word.as_bytes()));
    apply_first(word, single_suffixes(word.as_bytes()));
    remove_last_suffix(word);
    remove_final_e(word);
    undouble_final_l(word);
}

/// Whether a word has at most two UTF-16 units.
fn is_short(word: &str) -> bool {
    match word.as_bytes() {
        // Three bytes or more can be two units only if one of the first two bytes is beyond ASCII.
        [first, second, _, ..] => (first | second) & 0x80 != 0 && word.encode_utf16().nth(2).is_none(),
        _ => true,
    }
}

/// Step 1a: `caresses` to `caress`, `ponies` to `poni`, `cats` to `cat`.
fn remove_plural(word: &mut String) {
    let cut = match word.as_bytes() {
        [.., b's', b's', b'e', b's'] | [.., b'i', b'e', b's'] => 2,
        [.., b's', b's'] => 0,
        [.., b's'] => 1,
        _ => 0,
    };
    word.truncate(word.len() - cut);
}

/// Step 1b: `agreed` to `agree`, `plastered` to `plaster`, `motoring` to `motor`.
fn remove_past_and_gerund(word: &mut String) {
    let cut = match word.as_bytes() {
        [stem @ .., b'e', b'e', b'd'] => {
            if measure(stem) > 0 {
                word.pop();
            }
            return;
        }
        [stem @ .., b'e', b'd'] if has_vowel(stem) => 2,
        [stem @ .., b'i', b'n', b'g'] if has_vowel(stem) => 3,
        _ => return,
    };
    word.truncate(word.len() - cut);
    match word.as_bytes() {
        [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => word.push('e'),
        [.., b'l', b'l'] | [.., b's', b's'] | [.., b'z', b'z'] => {}
        _ if ends_in_double_consonant(word) => {
            word.pop();
        }
        letters if measure(letters) == 1 && ends_in_short_syllable(word) => word.push('e'),
        _ => {}
    }
}

/// Step 1c: `happy` to `happi`, but `sky` stays.
fn turn_final_y(word: &mut String) {
    if let [stem @ .., b'y'] = word.as_bytes()
        && has_vowel(stem)
    {
        word.pop();
        word.push('i');
    }
}

/// Step 2, the rules that can match these last two letters: `relational` to `relate`.
fn double_suffixes(word: &[u8]) -> &'static [Rule] {
    match word {
        [.., b'a', b'l'] => &[("ational", "ate"), ("tional", "tion")],
        [.., b'c', b'i'] => &[("enci", "ence"), ("anci", "ance")],
        [.., b'e', b'r'] => &[("izer", "ize")],
        [.., b'l', b'i'] => &[("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")],
        [.., b'o', b'n'] => &[("ization", "ize"), ("ation", "ate")],
        [.., b'o', b'r'] => &[("ator", "ate")],
        [.., b's', b'm'] => &[("alism", "al")],
        [.., b's', b's'] => &[("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")],
        [.., b't', b'i'] => &[("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")],
        [.., b'g', b'i'] => &[("logi", "log")],
        _ => &[],
    }
}

/// Step 3, the rules that can match these last two letters: `electrical` to `electric`.
fn single_suffixes(word: &[u8]) -> &'static [Rule] {
    match word {
        [.., b't', b'e'] => &[("icate", "ic")],
        [.., b'v', b'e'] => &[("ative", "")],
        [.., b'z', b'e'] => &[("alize", "al")],
        [.., b't', b'i'] => &[("iciti", "ic")],
        [.., b'a', b'l'] => &[("ical", "ic")],
        [.., b'u', b'l'] => &[("ful", "")],
        [.., b's', b's'] => &[("ness", "")],
        _ => &[],
    }
}

/// Applies the first rule whose suffix ends `word`, if the stem before the suffix has a measure above 0.
fn apply_first(word: &mut String, rules: &[Rule]) {
    for (suffix, replacement) in rules {
        if let Some(stem) = word.strip_suffix(suffix) {
            let length = stem.len();
            if measure(stem.as_bytes()) > 0 {
                word.truncate(length);
                word.push_str(replacement);
            }
            return;
        }
    }
}

/// Step 4: `revival` to `reviv`, `adjustment` to `adjust`, where the stem's measure is above 1.
fn remove_last_suffix(word: &mut String) {
    let suffix = match word.as_bytes() {
        [.., b'e', b'm', b'e', b'n', b't'] => 5,
        [.., b'm', b'e', b'n', b't'] => 4,
        [.., b'a', b'n', b'c', b'e'] | [.., b'e', b'n', b'c', b'e'] => 4,
        [.., b'a', b'b', b'l', b'e'] | [.., b'i', b'b', b'l', b'e'] => 4,
        [.., b's' | b't', b'i', b'o', b'n'] => 3,
        [.., b'a', b'n', b't'] | [.., b'e', b'n', b't'] => 3,
        [.., b'a', b't', b'e'] | [.., b'i', b'v', b'e'] | [.., b'i', b'z', b'e'] => 3,
        [.., b'i', b's', b'm'] | [.., b'i', b't', b'i'] | [.., b'o', b'u', b's'] => 3,
        [.., b'a', b'l'] | [.., b'e', b'r'] | [.., b'i', b'c'] | [.., b'o', b'u'] => 2,
        _ => return,
    };
    let length = word.len() - suffix;
    if measure(&word.as_bytes()[..length]) > 1 {
        word.truncate(length);
    }
}

/// Step 5a: `probate` to `probat`, `cease` to `ceas`, but `rate` stays.
fn remove_final_e(word: &mut String) {
    if let Some(stem) = word.strip_suffix('e') {
        let measure = measure(stem.as_bytes());
        if measure > 1 || measure == 1 && !ends_in_short_syllable(stem) {
            word.pop();
        }
    }
}

/// Step 5b: `controll` to `control`, but `roll` stays.
fn undouble_final_l(word: &mut String) {
    if word.ends_with("ll") && measure(word.as_bytes()) > 1 {
        word.pop();
    }
}

/// The paper's m, the number of times a vowel is followed by a consonant; counts to 2, since no rule asks for more.
fn measure(stem: &[u8]) -> usize {
    let Some((&first, rest)) = stem.split_first() else {
        return 0;
    };
    let mut after_vowel = is_plain_vowel(first);
    let mut count = 0;
    for &letter in rest {
        let vowel = is_plain_vowel(letter) || letter == b'y' && !after_vowel;
        if after_vowel && !vowel {
            count += 1;
            if count == 2 {
                break;
            }
        }
        after_vowel = vowel;
    }
    count
}

fn has_vowel(stem: &[u8]) -> bool {
    // Without a plain vowel before it, a `y` is a vowel unless it is the first letter.
    stem.iter().any(|&letter| is_plain_vowel(letter)) || stem.iter().skip(1).any(|&letter| letter == b'y')
}

fn is_plain_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

/// A `y` is a consonant at the start of a word and after a vowel.
fn is_consonant(word: &[u8], position: usize) -> bool {
    match word[position] {
        b'y' => position == 0 || !is_consonant(word, position - 1),
        letter => !is_plain_vowel(letter),
    }
}

/// The paper's condition *d: the word ends in the same consonant twice.
fn ends_in_double_consonant(word: &str) -> bool {
    let mut backwards = word.chars().rev();
    match (backwards.next(), backwards.next()) {
        // Beyond the basic plane two equal UTF-16 units are never adjacent.
        (Some(last), Some(before)) => {
            last == before && last <= '\u{FFFF}' && is_consonant(word.as_bytes(), word.len() - 1)
        }
        _ => false,
    }
}

/// The paper's condition *o: the word ends in consonant, vowel, consonant, and the last is not w, x or y.
fn ends_in_short_syllable(word: &str) -> bool {
    let letters = word.as_bytes();
    match word.chars().next_back() {
        None | Some('w' | 'x' | 'y' | '\u{10000}'..) => false,
        Some(last) => {
            let start = letters.len() - last.len_utf8();
            start >= 2
                && is_consonant(letters, start)
                && !is_consonant(letters, start - 1)
                && is_consonant(letters, start - 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stemmed(word: &str) -> String {
        let mut word = word.to_owned();
        stem(&mut word);
        word
    }

    fn expect(pairs: &[(&str, &str)]) {
        for (word, stem) in pairs {
            assert_eq!(stemmed(word), *stem, "{word}");
        }
    }

    #[test]
    fn plurals_past_tenses_and_gerunds_lose_their_endings() {
        expect(&[
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "ti"),
            ("caress", "caress"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("tanned", "tan"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("fizzed", "fizz"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
        ]);
    }

    #[test]
    fn double_suffixes_become_single_ones_and_go_on_from_there() {
        expect(&[
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("valenci", "valenc"),
            ("hesitanci", "hesit"),
            ("digitizer", "digit"),
            ("conformabli", "conform"),
            ("radicalli", "radic"),
            ("differentli", "differ"),
            ("vileli", "vile"),
            ("analogousli", "analog"),
            ("vietnamization", "vietnam"),
            ("predication", "predic"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("decisiveness", "decis"),
            ("hopefulness", "hope"),
            ("callousness", "callous"),
            ("formaliti", "formal"),
            ("sensitiviti", "sensit"),
            ("sensibiliti", "sensibl"),
        ]);
    }

    #[test]
    fn single_suffixes_are_removed_or_shortened() {
        expect(&[
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("formalize", "formal"),
            ("electriciti", "electr"),
            ("electrical", "electr"),
            ("hopeful", "hope"),
            ("goodness", "good"),
        ]);
    }

    #[test]
    fn last_suffixes_go_when_enough_of_the_word_stays() {
        expect(&[
            ("revival", "reviv"),
            ("allowance", "allow"),
            ("inference", "infer"),
            ("airliner", "airlin"),
            ("gyroscopic", "gyroscop"),
            ("adjustable", "adjust"),
            ("defensible", "defens"),
            ("irritant", "irrit"),
            ("replacement", "replac"),
            ("adjustment", "adjust"),
            ("dependent", "depend"),
            ("adoption", "adopt"),
            ("homologou", "homolog"),
            ("communism", "commun"),
            ("activate", "activ"),
            ("angulariti", "angular"),
            ("homologous", "homolog"),
            ("effective", "effect"),
            ("bowdlerize", "bowdler"),
        ]);
    }

    #[test]
    fn a_final_e_and_a_double_l_are_tidied_up() {
        expect(&[
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("roll", "roll"),
        ]);
    }

    #[test]
    fn the_two_departures_from_the_paper_hold() {
        expect(&[("possibly", "possibl"), ("archaeology", "archaeolog"), ("psychology", "psycholog")]);
    }

    #[test]
    fn long_derivations_run_through_all_steps() {
        expect(&[
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("meetings", "meet"),
            ("university", "univers"),
            ("dying", "dy"),
            ("generously", "gener"),
        ]);
    }

    #[test]
    fn short_words_and_words_that_are_all_suffix_are_safe() {
        expect(&[
            ("", ""),
            ("a", "a"),
            ("is", "is"),
            ("as", "as"),
            ("ies", "i"),
            ("aed", "a"),
            ("eed", "eed"),
            ("oed", "o"),
            ("ion", "ion"),
            ("ing", "ing"),
            ("sses", "ss"),
            ("yyy", "yyi"),
            ("ational", "ation"),
        ]);
    }

    #[test]
    fn other_characters_count_as_consonants_and_are_never_cut_in_two() {
        expect(&[
            ("cafés", "café"),
            ("naïve", "naïv"),
            ("és", "és"),
            ("été", "été"),
            ("faéed", "faée"),
            ("baßßed", "baß"),
            ("baッッed", "baッ"),
            ("baッed", "baッe"),
            ("ba\u{1F600}\u{1F600}ed", "ba\u{1F600}\u{1F600}"),
            ("ba\u{1F600}ed", "ba\u{1F600}"),
            ("\u{1F600}s", "\u{1F600}"),
            ("1990s", "1990"),
            ("CARESSES", "CARESSES"),
        ]);
    }

    proptest! {
        #[test]
        fn any_text_is_stemmed_without_panic_and_never_grows(word in "\\PC{0,30}(s|ed|ing|y|ational|e|ll)?") {
            let stem = stemmed(&word);
            prop_assert!(stem.len() <= word.len());
            prop_assert_eq!(stem.is_empty(), word.is_empty());
        }

        #[test]
        fn vowels_and_measure_agree_with_a_letter_by_letter_reading(word in "[aeiouybcst]{0,12}") {
            let letters = word.as_bytes();
            let consonants: Vec<bool> = (0..letters.len()).map(|i| is_consonant(letters, i)).collect();
            let turns = consonants.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert_eq!(measure(letters), turns.min(2));
            prop_assert_eq!(has_vowel(letters), consonants.contains(&false));
        }
    }
}
