//! Analyzers turn text into terms, for documents and queries alike.

mod english;
mod porter;
mod recent;
mod unicode;
mod words;

pub use words::{LONGEST_TERM_BYTES, LONGEST_TERM_CHARS};

use recent::RecentTerms;
use std::sync::Arc;
use words::Word;

/// A chain of steps that turns text into terms. It is stored in the index, so that queries go through the same steps as
/// the documents did.
///
/// A term is never empty and has at most [`LONGEST_TERM_CHARS`] characters, hence [`LONGEST_TERM_BYTES`] bytes. Longer
/// words are cut into several terms.
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
    /// A step that occurs twice in the chain.
    #[error("analyzer '{name}': '{step}' occurs twice; give each step once")]
    Repeated {
        /// The chain as given.
        name: String,
        /// The repeated step.
        step: String,
    },
}

const KNOWN: &str = "give english, simple, whitespace or pretokenized, or a chain such as words+lowercase+stop+porter: \
                     words or whitespace, then any of possessive, lowercase, stop, porter";

const NAMED_CHAINS: [(&str, &str); 4] = [
    ("english", "words+possessive+lowercase+stop+porter"),
    ("simple", "words+lowercase"),
    ("whitespace", "whitespace"),
    // Documents come as weighted vectors, so only queries are split.
    ("pretokenized", "whitespace"),
];

#[derive(Debug, PartialEq, Eq)]
struct Chain {
    splitter: Splitter,
    filters: Vec<Filter>,
    /// The filters that remain for an ASCII word if its text was lower-cased before splitting; `None` if the chain does
    /// not allow that.
    filters_of_folded: Option<Vec<Filter>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Splitter {
    Words,
    WhiteSpace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    Possessive,
    Lowercase,
    Stop,
    Porter,
}

const SPLITTERS: [(&str, Splitter); 2] = [("words", Splitter::Words), ("whitespace", Splitter::WhiteSpace)];

const FILTERS: [(&str, Filter); 4] = [
    ("possessive", Filter::Possessive),
    ("lowercase", Filter::Lowercase),
    ("stop", Filter::Stop),
    ("porter", Filter::Porter),
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
        Ok(Analyzer { name: name.into(), chain: Arc::new(Chain::parse(spelled_out)?) })
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The steps joined by `+`; parsing them gives an analyzer with the same terms.
    pub fn chain(&self) -> String {
        let splitter = SPLITTERS.iter().filter(|(_, splitter)| *splitter == self.chain.splitter).map(|(name, _)| *name);
        let filters = self
            .chain
            .filters
            .iter()
            .flat_map(|step| FILTERS.iter().filter(move |(_, filter)| filter == step).map(|(name, _)| *name));
        splitter.chain(filters).collect::<Vec<_>>().join("+")
    }

    /// Calls `sink` with each term of `text` in order. Terms are made in `scratch`, without allocation.
    pub fn analyze(&self, text: &str, scratch: &mut Scratch, sink: &mut (impl FnMut(&str) + ?Sized)) {
        scratch.turn_to(&self.chain);
        let Scratch { folded, recent, .. } = scratch;
        self.split_folded(text, folded, &mut |word| {
            let filters = self.chain.filters_for(&word);
            if filters.is_empty() {
                sink(word.text);
            } else if let Some(term) = recent.term(word.text, |term| apply(filters, term)) {
                sink(term);
            }
        });
    }

    /// Calls `sink` with each word of `text`; ASCII letters are in lower case already if the chain allows that.
    #[inline]
    fn split_folded(&self, text: &str, folded: &mut String, sink: &mut impl FnMut(Word)) {
        if self.chain.filters_of_folded.is_none() {
            return self.chain.split(text, sink);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_length(rest, PIECE_BYTES));
            folded.clear();
            folded.push_str(piece);
            folded.make_ascii_lowercase();
            self.chain.split(folded, sink);
            rest = after;
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

impl Chain {
    fn parse(spelled_out: &str) -> Result<Chain, AnalyzerError> {
        let mut splitter = None;
        let mut filters = Vec::new();
        for (position, step) in spelled_out.split('+').enumerate() {
            if let Some((_, found)) = SPLITTERS.iter().find(|(name, _)| *name == step) {
                if position > 0 {
                    return Err(AnalyzerError::Splitter { name: spelled_out.to_owned() });
                }
                splitter = Some(*found);
            } else if let Some((_, filter)) = FILTERS.iter().find(|(name, _)| *name == step) {
                if filters.contains(filter) {
                    return Err(AnalyzerError::Repeated { name: spelled_out.to_owned(), step: step.to_owned() });
                }
                filters.push(*filter);
            } else {
                return Err(AnalyzerError::Unknown { name: spelled_out.to_owned(), step: step.to_owned() });
            }
        }
        let splitter = splitter.ok_or_else(|| AnalyzerError::Splitter { name: spelled_out.to_owned() })?;
        let filters_of_folded = filters_of_folded(&filters);
        Ok(Chain { splitter, filters, filters_of_folded })
    }

    /// The filters that remain for a word from `split_folded`.
    #[inline]
    fn filters_for(&self, word: &Word) -> &[Filter] {
        match &self.filters_of_folded {
            Some(filters) if word.is_ascii => filters,
            _ => &self.filters,
        }
    }

    #[inline]
    fn split(&self, text: &str, sink: &mut impl FnMut(Word)) {
        match self.splitter {
            Splitter::Words => words::split_words(text, sink),
            Splitter::WhiteSpace => words::split_white_space(text, sink),
        }
    }
}

/// The filters that remain if text is lower-cased before it is split, many bytes at a time. That is possible if only
/// the splitter and the possessive filter, which ignore case, precede `lowercase`.
fn filters_of_folded(filters: &[Filter]) -> Option<Vec<Filter>> {
    let lowercase = filters.iter().position(|filter| *filter == Filter::Lowercase)?;
    let may_be_first = filters[..lowercase].iter().all(|filter| *filter == Filter::Possessive);
    may_be_first.then(|| filters.iter().copied().filter(|filter| *filter != Filter::Lowercase).collect())
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

/// Applies `filters` to `term` and returns whether a term is left.
fn apply(filters: &[Filter], term: &mut String) -> bool {
    for filter in filters {
        match filter {
            Filter::Possessive => term.truncate(english::strip_possessive(term).len()),
            Filter::Lowercase => lowercase(term),
            Filter::Stop if english::is_stop_word(term) => return false,
            Filter::Stop => {}
            Filter::Porter => porter::stem(term),
        }
    }
    !term.is_empty()
}

/// Lower-cases character by character, as Java's `Character.toLowerCase` does: a final sigma is not special, and a
/// capital I with dot becomes a plain i.
fn lowercase(term: &mut String) {
    if term.is_ascii() {
        return term.make_ascii_lowercase();
    }
    // Append the lower-case term, then remove the original: no second buffer.
    let length = term.len();
    let mut position = 0;
    while let Some(character) = term[position..length].chars().next() {
        position += character.len_utf8();
        term.push(character.to_lowercase().next().unwrap_or(character));
    }
    term.drain(..length);
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
        for name in ["", "French", "words+", "words+stemmer", "English"] {
            let message = message(name);
            assert!(message.contains("is unknown") && message.contains(KNOWN), "{message}");
        }
        for name in ["lowercase", "words+whitespace", "lowercase+words"] {
            let message = message(name);
            assert!(message.contains("first step") && message.contains(KNOWN), "{message}");
        }
        assert!(message("words+stop+stop").contains("'stop' occurs twice"));
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
        let filters =
            proptest::sample::subsequence(vec!["possessive", "lowercase", "stop", "porter"], 0..=4).prop_shuffle();
        ("words|whitespace", filters).prop_map(|(splitter, filters)| {
            std::iter::once(splitter.as_str()).chain(filters).collect::<Vec<_>>().join("+")
        })
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
        for filter in &analyzer.chain.filters {
            terms.retain_mut(|term| apply(&[*filter], term));
        }
        terms
    }

    proptest! {
        #[test]
        fn terms_are_never_empty_and_never_over_the_limit(chain in any_chain(), text in any_text()) {
            for term in Analyzer::parse(&chain).unwrap().terms(&text) {
                prop_assert!(!term.is_empty() && term.len() <= LONGEST_TERM_BYTES, "{term:?}");
                prop_assert!(term.chars().count() <= LONGEST_TERM_CHARS, "{term:?}");
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
