//! Analyzers turn text into terms, for documents and queries alike.

mod chain;
mod changes;
mod cjk;
mod english;
mod fold;
mod fold_table;
mod porter;
mod recent;
mod snowball;
mod stop_words;
mod unicode;
mod words;

pub use changes::{AnalyzerChanges, Stemmer, Stop};
pub use snowball::Language;
pub use stop_words::StopWords;
pub use words::{LONGEST_TERM_BYTES, LONGEST_TERM_CHARS};

use chain::{Chain, Filter, apply};
use recent::RecentTerms;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use words::Word;

/// A chain of steps that turns text into terms. It is stored in the index, so that queries go through the same steps as
/// the documents did.
///
/// A word has at most [`LONGEST_TERM_CHARS`] characters; longer ones are cut into several. A term is never empty and has at
/// most [`LONGEST_TERM_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analyzer {
    name: Arc<str>,
    chain: Arc<Chain>,
}

/// Buffers reused between texts, so that analysis allocates nothing per term.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// A piece of text in ASCII lower case.
    folded: String,
    recent: RecentTerms,
    /// The chain whose terms are in `recent`.
    chain: Option<Arc<Chain>>,
}

/// Why the name of an analyzer cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalyzerError {
    /// An unknown name, or an unknown step of a chain.
    #[error("analyzer '{name}': '{step}' is unknown; {KNOWN}")]
    Unknown {
        /// The name or chain as given.
        name: String,
        /// The unknown part of it.
        step: String,
    },
    /// The chain does not start with a step that splits text, or has a second one.
    #[error("analyzer '{name}': the first step, and no other, must be 'words' or 'whitespace'; {KNOWN}")]
    Splitter {
        /// The chain as given.
        name: String,
    },
    /// Pairs of characters that are not made directly of words.
    #[error("analyzer '{name}': 'cjk-bigram' pairs the characters of 'words' and must follow it directly")]
    MisplacedBigram {
        /// The chain as given.
        name: String,
    },
    /// A step that occurs twice in the chain.
    #[error("analyzer '{name}': '{step}' occurs twice; give each step once")]
    Repeated {
        /// The chain as given.
        name: String,
        /// The repeated step.
        step: String,
    },
    /// Two stemmers.
    #[error("analyzer '{name}': a chain has one stemmer at most; leave out one of the two")]
    SecondStemmer {
        /// The chain as given.
        name: String,
    },
}

const KNOWN: &str = "give english, simple, whitespace or pretokenized, or a chain such as words+lowercase+stop+porter: \
                     words, words+cjk-bigram or whitespace, then any of possessive, lowercase, fold, stop, and porter or \
                     snowball:LANGUAGE";

const NAMED_CHAINS: [(&str, &str); 4] = [
    ("english", "words+possessive+lowercase+stop+porter"),
    ("simple", "words+lowercase"),
    ("whitespace", "whitespace"),
    // Documents come as weighted vectors, so only queries are split.
    ("pretokenized", "whitespace"),
];

impl std::str::FromStr for Analyzer {
    type Err = AnalyzerError;

    fn from_str(name: &str) -> Result<Analyzer, AnalyzerError> {
        Analyzer::parse(name)
    }
}

impl Analyzer {
    /// Parses a known name (`english`, `simple`, `whitespace`, `pretokenized`) or a chain of steps such as
    /// `words+lowercase+stop+porter`.
    pub fn parse(name: &str) -> Result<Analyzer, AnalyzerError> {
        let spelled_out = NAMED_CHAINS.iter().find(|(known, _)| *known == name).map_or(name, |(_, chain)| *chain);
        Ok(Analyzer { name: name.into(), chain: Arc::new(Chain::parse(spelled_out, None)?) })
    }

    /// The analyzer that was stored as its [`chain`](Self::chain) and its own [`stop_words`](Self::stop_words).
    pub fn stored(chain: &str, stop_words: &[String]) -> Result<Analyzer, AnalyzerError> {
        let own = StopWords::new(stop_words.to_vec());
        Ok(Analyzer { name: chain.into(), chain: Arc::new(Chain::parse(chain, own)?) })
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The steps joined by `+`; parsing them gives an analyzer with the same terms.
    pub fn chain(&self) -> String {
        self.chain.to_string()
    }

    /// The words of its step `stop:own`, sorted; none if it has no such step.
    pub fn stop_words(&self) -> &[String] {
        let own = self.chain.filters().iter().find_map(|filter| match filter {
            Filter::StopOwn(words) => Some(words.words()),
            _ => None,
        });
        own.unwrap_or_default()
    }

    /// Calls `sink` with each term of `text` in order. Terms are made in `scratch`, without allocation.
    pub fn analyze(&self, text: &str, scratch: &mut Scratch, sink: &mut (impl FnMut(&str) + ?Sized)) {
        self.each_term(text, scratch, &|_, _| {}, &mut |term, _| sink(term));
    }

    /// Calls `sink` with each term of `text` in order, and with the bytes of the text that it was made of.
    pub fn analyze_in_place(&self, text: &str, scratch: &mut Scratch, sink: &mut impl FnMut(&str, Range<usize>)) {
        // The address of the piece that is being split, and where it starts in the text.
        let current = Cell::new((0, 0));
        let begin = |piece: &str, start| current.set((piece.as_ptr().addr(), start));
        self.each_term(text, scratch, &begin, &mut |term, word| {
            let (piece, start) = current.get();
            let start = start + word.as_ptr().addr() - piece;
            sink(term, start..start + word.len());
        });
    }

    /// Calls `begin` as [`split_folded`](Self::split_folded) does, and `sink` with each term and the word that it was made
    /// of, a slice of the piece.
    #[inline]
    fn each_term(
        &self,
        text: &str,
        scratch: &mut Scratch,
        begin: &impl Fn(&str, usize),
        sink: &mut impl FnMut(&str, &str),
    ) {
        scratch.turn_to(&self.chain);
        let Scratch { folded, recent, .. } = scratch;
        self.split_folded(text, folded, begin, &mut |word| {
            let filters = self.chain.filters_for(&word);
            if filters.is_empty() {
                sink(word.text, word.text);
            } else if let Some(term) = recent.term(word.text, |term| apply(filters, term)) {
                sink(term, word.text);
            }
        });
    }

    /// Calls `sink` with each word of `text`; ASCII letters are in lower case already if the chain allows that. Text is
    /// split piece by piece; `begin` is called with each and its start.
    #[inline]
    fn split_folded(&self, text: &str, folded: &mut String, begin: &impl Fn(&str, usize), sink: &mut impl FnMut(Word)) {
        if !self.chain.folds() {
            begin(text, 0);
            return self.chain.split(text, sink);
        }
        let mut start = 0;
        while start < text.len() {
            let rest = &text[start..];
            folded.clear();
            folded.push_str(&rest[..piece_length(rest, PIECE_BYTES)]);
            folded.make_ascii_lowercase();
            begin(folded, start);
            self.chain.split(folded, sink);
            start += folded.len();
        }
        folded.clear();
        folded.shrink_to(LARGEST_KEPT_BYTES);
    }

    /// The terms of `text`, collected.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.analyze(text, &mut Scratch::default(), &mut |term| terms.push(term.to_owned()));
        terms
    }
}

impl Scratch {
    /// Prepares for a chain: forgets cached terms if they came from another one.
    fn turn_to(&mut self, chain: &Arc<Chain>) {
        if !self.chain.as_ref().is_some_and(|known| Arc::ptr_eq(known, chain)) {
            self.recent.forget();
            self.chain = Some(Arc::clone(chain));
        }
    }
}

/// Text is lower-cased in pieces of about this size, which fit in the L1 cache.
const PIECE_BYTES: usize = 8 << 10;

/// A buffer that grew for a text without white space is shrunk to this.
const LARGEST_KEPT_BYTES: usize = 1 << 20;

/// The length of the first piece of `text`: at most `limit` bytes, more only if there is no white space to cut at.
fn piece_length(text: &str, limit: usize) -> usize {
    let bytes = text.as_bytes();
    if bytes.len() <= limit {
        return bytes.len();
    }
    let (within, beyond) = bytes.split_at(limit);
    match within.iter().rposition(u8::is_ascii_whitespace) {
        Some(last) => last + 1,
        None => beyond.iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |first| limit + first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(analyzer: &str, text: &str) -> Vec<String> {
        Analyzer::parse(analyzer).unwrap().terms(text)
    }

    #[test]
    fn english_stems_what_is_left_after_stop_words_and_possessives() {
        assert_eq!(
            terms("english", "The dogs' and the Cat's TAIL: it's not U.S.A.'s \u{201C}relational\u{201D} database"),
            ["dog", "cat", "tail", "u.s.a", "s", "relat", "databas"]
        );
    }

    #[test]
    fn simple_keeps_every_word_in_lower_case() {
        assert_eq!(terms("simple", "The Cat's \u{C9}lan"), ["the", "cat's", "\u{E9}lan"]);
    }

    #[test]
    fn whitespace_and_pretokenized_keep_tokens_as_they_are() {
        for name in ["whitespace", "pretokenized"] {
            assert_eq!(terms(name, " The ##ing\tcaf\u{E9}, "), ["The", "##ing", "caf\u{E9},"]);
        }
    }

    #[test]
    fn lower_case_is_by_character_as_in_java() {
        assert_eq!(terms("simple", "\u{130}STANBUL I\u{131}"), ["istanbul", "i\u{131}"]);
        assert_eq!(terms("simple", "\u{39F}\u{394}\u{39F}\u{3A3}"), ["\u{3BF}\u{3B4}\u{3BF}\u{3C3}"]);
        assert_eq!(terms("simple", "STRA\u{DF}E GRO\u{1E9E} \u{C4}RGER"), ["stra\u{DF}e", "gro\u{DF}", "\u{E4}rger"]);
        assert_eq!(terms("simple", "\u{10400}\u{23A}"), ["\u{10428}\u{2C65}"]);
    }

    #[test]
    fn steps_run_in_the_order_of_the_chain() {
        assert_eq!(terms("words+stop+lowercase", "The the THE"), ["the", "the"]);
        assert_eq!(terms("words+porter+lowercase", "CATS cats"), ["cats", "cat"]);
        assert_eq!(terms("words+porter+stop", "ands ass"), ["ass"]);
        assert_eq!(terms("whitespace+lowercase+possessive", "Dog's 's"), ["dog"]);
    }

    #[test]
    fn a_known_name_is_kept_beside_its_chain() {
        let analyzer = Analyzer::parse("english").unwrap();
        assert_eq!(analyzer.name(), "english");
        assert_eq!(analyzer.chain(), "words+possessive+lowercase+stop+porter");
        assert_eq!(Analyzer::parse("pretokenized").unwrap().chain(), "whitespace");
    }

    #[test]
    fn errors_name_the_wrong_part_and_list_what_there_is() {
        let message = |name: &str| Analyzer::parse(name).unwrap_err().to_string();
        for name in ["", "French", "words+", "words+stemmer", "English", "words+snowball:klingon", "words+stop:own"] {
            let message = message(name);
            assert!(message.contains("is unknown") && message.contains(KNOWN), "{message}");
        }
        for name in ["lowercase", "words+whitespace", "lowercase+words"] {
            let message = message(name);
            assert!(message.contains("first step") && message.contains(KNOWN), "{message}");
        }
        assert!(message("words+stop+stop").contains("'stop' occurs twice"));
        assert!(message("words+porter+snowball:english").contains("one stemmer"));
        for name in ["whitespace+cjk-bigram", "words+lowercase+cjk-bigram", "words+cjk-bigram+cjk-bigram"] {
            assert!(message(name).contains("must follow"), "{name}");
        }
    }

    #[test]
    fn a_stored_analyzer_has_the_terms_of_the_first_one() {
        let own = Stop::Own(StopWords::parse("die und").unwrap());
        let changes = AnalyzerChanges { stop_words: Some(own), fold: true, ..AnalyzerChanges::default() };
        let analyzer = Analyzer::parse("words+cjk-bigram+lowercase+snowball:german").unwrap().with(&changes).unwrap();
        assert_eq!(analyzer.chain(), "words+cjk-bigram+lowercase+fold+stop:own+snowball:german");
        let stored = Analyzer::stored(&analyzer.chain(), analyzer.stop_words()).unwrap();
        assert_eq!(stored, analyzer);
        assert_eq!(
            stored.terms("Die H\u{E4}user und \u{4E2D}\u{56FD}\u{4EBA}"),
            ["haus", "\u{4E2D}\u{56FD}", "\u{56FD}\u{4EBA}"]
        );
        assert!(Analyzer::stored("words+stop:own", &[]).is_err());
    }

    #[test]
    fn terms_come_with_their_place_in_the_text() {
        let text = "The \u{C9}lan, d\u{E9}j\u{E0}-vu \u{4E2D}\u{56FD}\u{4EBA} CATS";
        let places = |chain: &str| {
            let mut places = Vec::new();
            let analyzer = Analyzer::parse(chain).unwrap();
            analyzer.analyze_in_place(text, &mut Scratch::default(), &mut |term, at| {
                places.push(format!("{term}={}", &text[at]));
            });
            places
        };
        assert_eq!(
            places("words+lowercase+fold+stop+porter")[..4],
            ["elan=\u{C9}lan", "deja=d\u{E9}j\u{E0}", "vu=vu", "\u{4E2D}=\u{4E2D}"]
        );
        assert_eq!(
            places("words+cjk-bigram+lowercase")[4..],
            ["\u{4E2D}\u{56FD}=\u{4E2D}\u{56FD}", "\u{56FD}\u{4EBA}=\u{56FD}\u{4EBA}", "cats=CATS"]
        );
    }

    #[test]
    fn one_scratch_serves_several_analyzers_in_turn() {
        let mut scratch = Scratch::default();
        for (name, expected) in [("english", "cat"), ("words+stop", "cats"), ("english", "cat")] {
            let analyzer = Analyzer::parse(name).unwrap();
            for _ in 0..1000 {
                analyzer.analyze("a cats", &mut scratch, &mut |term| assert_eq!(term, expected));
            }
        }
    }

    #[test]
    fn an_analyzer_can_be_shared_between_threads() {
        fn shared<T: Send + Sync + 'static>(_: &T) {}
        shared(&Analyzer::parse("english").unwrap());
    }

    #[test]
    fn a_huge_text_without_white_space_leaves_no_huge_scratch() {
        let mut scratch = Scratch::default();
        let mut count = 0;
        let analyzer = Analyzer::parse("simple").unwrap();
        analyzer.analyze(&"Ab-".repeat(1_000_000), &mut scratch, &mut |_| count += 1);
        assert_eq!(count, 1_000_000);
        assert!(scratch.folded.capacity() <= LARGEST_KEPT_BYTES);
    }

    fn any_chain() -> impl Strategy<Value = String> {
        let filters = ["possessive", "lowercase", "fold", "stop"];
        let filters = proptest::sample::subsequence(filters.to_vec(), 0..=4).prop_shuffle();
        let stemmer = proptest::option::of("porter|snowball:(german|french|greek)");
        let filters = (filters, stemmer, any::<prop::sample::Index>()).prop_map(|(filters, stemmer, place)| {
            let mut filters: Vec<String> = filters.into_iter().map(str::to_owned).collect();
            let place = place.index(filters.len() + 1);
            filters.splice(place..place, stemmer);
            filters
        });
        ("words|words\\+cjk-bigram|whitespace", filters)
            .prop_map(|(splitter, filters)| std::iter::once(splitter).chain(filters).collect::<Vec<_>>().join("+"))
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "([a-zA-Z'\u{2019}.,_0-9\u{C9}\u{130}\u{3A3}\u{301}\u{4E2D}\u{1F44D}\u{200D}]{0,12}[ \n-]){0,30}",
            ("\\PC{1,3}", 1..2000_usize).prop_map(|(piece, times)| piece.repeat(times)),
        ]
    }

    /// Each step over all words before the next step, without lower-casing ahead.
    fn terms_step_by_step(analyzer: &Analyzer, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        analyzer.chain.split(text, &mut |word| terms.push(word.text.to_owned()));
        for filter in analyzer.chain.filters() {
            terms.retain_mut(|term| apply(std::slice::from_ref(filter), term));
        }
        terms
    }

    proptest! {
        #[test]
        fn terms_are_never_empty_and_never_over_the_limit(chain in any_chain(), text in any_text()) {
            for term in Analyzer::parse(&chain).unwrap().terms(&text) {
                prop_assert!(!term.is_empty() && term.len() <= LONGEST_TERM_BYTES, "{term:?}");
            }
        }

        #[test]
        fn terms_are_those_of_the_steps_one_after_another(chain in any_chain(), text in any_text()) {
            let analyzer = Analyzer::parse(&chain).unwrap();
            prop_assert_eq!(analyzer.terms(&text), terms_step_by_step(&analyzer, &text));
        }

        #[test]
        fn a_chain_parses_to_itself(chain in any_chain()) {
            let analyzer = Analyzer::parse(&chain).unwrap();
            prop_assert_eq!(analyzer.chain(), chain.as_str());
            prop_assert_eq!(analyzer.name(), chain.as_str());
            prop_assert_eq!(Analyzer::parse(&analyzer.chain()).unwrap(), analyzer);
        }

        #[test]
        fn cutting_text_into_pieces_at_white_space_keeps_its_words(text in any_text(), limit in 1..40_usize) {
            let mut rest = text.as_str();
            let mut words = Vec::new();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(piece_length(rest, limit));
                words::split_words(piece, &mut |word| words.push(word.text.to_owned()));
                rest = after;
            }
            prop_assert_eq!(words, terms("words", &text));
        }
    }
}
