//! The chain of steps of an analyzer: its spelling, and what the steps do to a word.

use super::snowball::Language;
use super::stop_words::StopWords;
use super::words::{self, LONGEST_TERM_BYTES, Word};
use super::{AnalyzerError, cjk, english, fold, porter};
use std::fmt;
use std::sync::Arc;

/// A splitter, then filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub splitter: Splitter,
    filters: Vec<Filter>,
    /// The filters that remain for an ASCII word if its text was lower-cased before splitting; `None` if the chain does
    /// not allow that.
    filters_of_folded: Option<Vec<Filter>>,
}

/// What cuts text into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitter {
    Words,
    /// Words, with Chinese, Japanese and Korean in pairs of characters.
    CjkBigrams,
    WhiteSpace,
}

/// What changes or drops a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    Possessive,
    Lowercase,
    Fold,
    Stop,
    StopOwn(Arc<StopWords>),
    Porter,
    Snowball(Language),
}

const SPLITTERS: [(&str, Splitter); 2] = [("words", Splitter::Words), ("whitespace", Splitter::WhiteSpace)];

/// The step that makes `words` cut into pairs.
const CJK_BIGRAM: &str = "cjk-bigram";

/// The stop words that are stored with the chain.
const STOP_OWN: &str = "stop:own";

const FILTERS: [(&str, Filter); 5] = [
    ("possessive", Filter::Possessive),
    ("lowercase", Filter::Lowercase),
    ("fold", Filter::Fold),
    ("stop", Filter::Stop),
    ("porter", Filter::Porter),
];

/// The stemmer of a language, before its name.
pub const SNOWBALL: &str = "snowball:";

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::StopOwn(_) => formatter.write_str(STOP_OWN),
            Filter::Snowball(language) => write!(formatter, "{SNOWBALL}{language}"),
            _ => {
                FILTERS.iter().filter(|(_, filter)| filter == self).try_for_each(|(name, _)| formatter.write_str(name))
            }
        }
    }
}

impl Filter {
    pub fn is_stemmer(&self) -> bool {
        matches!(self, Filter::Porter | Filter::Snowball(_))
    }

    pub fn is_stop(&self) -> bool {
        matches!(self, Filter::Stop | Filter::StopOwn(_))
    }

    /// The filter of a name; `own` are the stop words stored with the chain.
    fn parse(step: &str, own: Option<&Arc<StopWords>>) -> Option<Filter> {
        if let Some(language) = step.strip_prefix(SNOWBALL) {
            return Language::of(language).map(Filter::Snowball);
        }
        if step == STOP_OWN {
            return own.cloned().map(Filter::StopOwn);
        }
        FILTERS.iter().find(|(name, _)| *name == step).map(|(_, filter)| filter.clone())
    }
}

impl fmt::Display for Chain {
    /// The steps joined by `+`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.splitter {
            Splitter::Words => "words",
            Splitter::CjkBigrams => "words+cjk-bigram",
            Splitter::WhiteSpace => "whitespace",
        })?;
        self.filters.iter().try_for_each(|filter| write!(formatter, "+{filter}"))
    }
}

impl Chain {
    pub fn new(splitter: Splitter, filters: Vec<Filter>) -> Chain {
        let filters_of_folded = filters_of_folded(&filters);
        Chain { splitter, filters, filters_of_folded }
    }

    /// Parses steps joined by `+`; `own` are the stop words stored with the chain.
    pub fn parse(spelled_out: &str, own: Option<StopWords>) -> Result<Chain, AnalyzerError> {
        let own = own.map(Arc::new);
        let name = || spelled_out.to_owned();
        let mut steps = spelled_out.split('+');
        let first = steps.next().unwrap_or_default();
        let is_filter = |step: &str| step == CJK_BIGRAM || Filter::parse(step, own.as_ref()).is_some();
        let mut splitter = match SPLITTERS.iter().find(|(name, _)| *name == first) {
            Some((_, splitter)) => *splitter,
            None if is_filter(first) => return Err(AnalyzerError::Splitter { name: name() }),
            None => return Err(AnalyzerError::Unknown { name: name(), step: first.to_owned() }),
        };
        let mut filters: Vec<Filter> = Vec::new();
        for (position, step) in steps.enumerate() {
            if SPLITTERS.iter().any(|(name, _)| *name == step) {
                return Err(AnalyzerError::Splitter { name: name() });
            }
            if step == CJK_BIGRAM {
                if position > 0 || splitter != Splitter::Words {
                    return Err(AnalyzerError::MisplacedBigram { name: name() });
                }
                splitter = Splitter::CjkBigrams;
                continue;
            }
            let Some(filter) = Filter::parse(step, own.as_ref()) else {
                return Err(AnalyzerError::Unknown { name: name(), step: step.to_owned() });
            };
            if filters.contains(&filter) {
                return Err(AnalyzerError::Repeated { name: name(), step: step.to_owned() });
            }
            if filter.is_stemmer() && filters.iter().any(Filter::is_stemmer) {
                return Err(AnalyzerError::SecondStemmer { name: name() });
            }
            filters.push(filter);
        }
        Ok(Chain::new(splitter, filters))
    }

    /// All filters, in order.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Whether text may be lower-cased, in ASCII, before it is split.
    #[inline]
    pub fn folds(&self) -> bool {
        self.filters_of_folded.is_some()
    }

    /// The filters that remain for a word of text that was lower-cased if the chain allows that.
    #[inline]
    pub fn filters_for(&self, word: &Word) -> &[Filter] {
        match &self.filters_of_folded {
            Some(filters) if word.is_ascii => filters,
            _ => &self.filters,
        }
    }

    #[inline]
    pub fn split(&self, text: &str, sink: &mut impl FnMut(Word)) {
        match self.splitter {
            Splitter::Words => words::split_words(text, sink),
            Splitter::CjkBigrams => cjk::split_words(text, sink),
            Splitter::WhiteSpace => words::split_white_space(text, sink),
        }
    }
}

/// The filters that remain if text is lower-cased before it is split, many bytes at a time. That is possible if only
/// the splitter and the possessive filter, which ignore case, precede `lowercase`, or `fold`, which changes no ASCII.
fn filters_of_folded(filters: &[Filter]) -> Option<Vec<Filter>> {
    let lowercase = filters.iter().position(|filter| *filter == Filter::Lowercase)?;
    let ignores_case = |filter: &Filter| matches!(filter, Filter::Possessive | Filter::Fold);
    let is_left = |filter: &&Filter| !matches!(filter, Filter::Lowercase | Filter::Fold);
    filters[..lowercase].iter().all(ignores_case).then(|| filters.iter().filter(is_left).cloned().collect())
}

/// Applies `filters` to `term` and returns whether a term is left.
pub fn apply(filters: &[Filter], term: &mut String) -> bool {
    for filter in filters {
        match filter {
            Filter::Possessive => term.truncate(english::strip_possessive(term).len()),
            Filter::Lowercase => lowercase(term),
            Filter::Fold => {
                fold::fold(term);
                cut(term);
            }
            Filter::Stop if english::is_stop_word(term) => return false,
            Filter::Stop => {}
            Filter::StopOwn(words) if words.contains(term) => return false,
            Filter::StopOwn(_) => {}
            Filter::Porter => porter::stem(term),
            Filter::Snowball(language) => {
                language.stem(term);
                cut(term);
            }
        }
    }
    !term.is_empty()
}

/// Cuts a term that has become too long.
fn cut(term: &mut String) {
    term.truncate(term.floor_char_boundary(LONGEST_TERM_BYTES));
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
