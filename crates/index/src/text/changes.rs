//! Changes of an analyzer: another stemmer, other stop words, accents and pairs of characters.

use super::chain::{Chain, Filter, SNOWBALL, Splitter, apply};
use super::snowball::Language;
use super::stop_words::StopWords;
use super::{Analyzer, AnalyzerError};
use std::sync::Arc;

/// What to change of an analyzer; the default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnalyzerChanges {
    /// The stemmer. It takes the place of the one that the analyzer has, or comes last.
    pub stemmer: Option<Stemmer>,
    /// The stop words. They take the place of those that the analyzer has, or come before the stemmer.
    pub stop_words: Option<Stop>,
    /// Fold accents, after lower-casing.
    pub fold: bool,
    /// Index Chinese, Japanese and Korean as pairs of characters.
    pub cjk_bigram: bool,
}

/// A stemmer, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stemmer {
    /// Words are not stemmed.
    None,
    /// The original stemmer by Porter.
    Porter,
    /// Snowball's stemmer of a language.
    Snowball(Language),
}

/// Stop words, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All words are kept.
    None,
    /// Lucene's 33 English stop words.
    English,
    /// These words, which pass through the steps before `stop` first, as the words of a text do.
    Own(StopWords),
}

impl std::str::FromStr for Stemmer {
    type Err = String;

    /// Parses `none`, `porter` or `snowball:LANGUAGE`.
    fn from_str(name: &str) -> Result<Stemmer, String> {
        match (name, name.strip_prefix(SNOWBALL)) {
            ("none", _) => Ok(Stemmer::None),
            ("porter", _) => Ok(Stemmer::Porter),
            (_, Some(language)) => Language::of(language)
                .map(Stemmer::Snowball)
                .ok_or_else(|| format!("Snowball has no language {language:?}; choose one of {}", Language::names())),
            _ => Err(format!(
                "unknown stemmer {name:?}; choose none, porter or snowball:LANGUAGE, as in snowball:german"
            )),
        }
    }
}

impl Analyzer {
    /// Returns this analyzer with changes. Its name is then its chain.
    ///
    /// ```
    /// use lanner_index::text::{Analyzer, AnalyzerChanges, Stop, StopWords};
    ///
    /// let changes = AnalyzerChanges {
    ///     stemmer: Some("snowball:german".parse()?),
    ///     stop_words: StopWords::parse("der die das").map(Stop::Own),
    ///     ..AnalyzerChanges::default()
    /// };
    /// let analyzer = Analyzer::parse("simple")?.with(&changes)?;
    /// assert_eq!(analyzer.terms("Die alten Häuser"), ["alt", "haus"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with(&self, changes: &AnalyzerChanges) -> Result<Analyzer, AnalyzerError> {
        if *changes == AnalyzerChanges::default() {
            return Ok(self.clone());
        }
        let mut splitter = self.chain.splitter;
        if changes.cjk_bigram {
            if splitter == Splitter::WhiteSpace {
                return Err(AnalyzerError::MisplacedBigram { name: self.name().to_owned() });
            }
            splitter = Splitter::CjkBigrams;
        }
        let mut filters = self.chain.filters().to_vec();
        if changes.fold && !filters.contains(&Filter::Fold) {
            filters.insert(place_of_fold(&filters), Filter::Fold);
        }
        if let Some(stop) = &changes.stop_words {
            replace_stop(&mut filters, stop);
        }
        if let Some(stemmer) = changes.stemmer {
            let place = remove(&mut filters, Filter::is_stemmer).unwrap_or(filters.len());
            let filter = match stemmer {
                Stemmer::None => None,
                Stemmer::Porter => Some(Filter::Porter),
                Stemmer::Snowball(language) => Some(Filter::Snowball(language)),
            };
            filters.splice(place..place, filter);
        }
        let chain = Chain::new(splitter, filters);
        Ok(Analyzer { name: chain.to_string().into(), chain: Arc::new(chain) })
    }
}

/// After `lowercase`; without it, before everything that looks at letters.
fn place_of_fold(filters: &[Filter]) -> usize {
    match filters.iter().position(|filter| *filter == Filter::Lowercase) {
        Some(lowercase) => lowercase + 1,
        None => usize::from(filters.first() == Some(&Filter::Possessive)),
    }
}

fn replace_stop(filters: &mut Vec<Filter>, stop: &Stop) {
    let place = remove(filters, Filter::is_stop)
        .or_else(|| filters.iter().position(Filter::is_stemmer))
        .unwrap_or(filters.len());
    let filter = match stop {
        Stop::None => None,
        Stop::English => Some(Filter::Stop),
        Stop::Own(words) => {
            let passed = words.words().iter().filter_map(|word| {
                let mut word = word.clone();
                apply(&filters[..place], &mut word).then_some(word)
            });
            StopWords::new(passed.collect()).map(Arc::new).map(Filter::StopOwn)
        }
    };
    filters.splice(place..place, filter);
}

/// Removes the filters of a kind and returns where the first one was.
fn remove(filters: &mut Vec<Filter>, is: fn(&Filter) -> bool) -> Option<usize> {
    let place = filters.iter().position(is);
    filters.retain(|filter| !is(filter));
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(analyzer: &str, changes: AnalyzerChanges) -> String {
        Analyzer::parse(analyzer).unwrap().with(&changes).unwrap().chain()
    }

    fn stemmer(name: &str) -> AnalyzerChanges {
        AnalyzerChanges { stemmer: Some(name.parse().unwrap()), ..AnalyzerChanges::default() }
    }

    #[test]
    fn a_stemmer_takes_the_place_of_the_other_or_comes_last() {
        assert_eq!(changed("english", stemmer("snowball:german")), "words+possessive+lowercase+stop+snowball:german");
        assert_eq!(changed("english", stemmer("none")), "words+possessive+lowercase+stop");
        assert_eq!(changed("simple", stemmer("porter")), "words+lowercase+porter");
        assert_eq!(changed("words+porter+lowercase", stemmer("snowball:dutch")), "words+snowball:dutch+lowercase");
    }

    #[test]
    fn stop_words_take_the_place_of_the_others_or_stand_before_the_stemmer() {
        let stop = |stop| AnalyzerChanges { stop_words: Some(stop), ..AnalyzerChanges::default() };
        assert_eq!(changed("english", stop(Stop::None)), "words+possessive+lowercase+porter");
        assert_eq!(changed("words+lowercase+porter", stop(Stop::English)), "words+lowercase+stop+porter");
        let own = StopWords::parse("und").unwrap();
        assert_eq!(changed("english", stop(Stop::Own(own.clone()))), "words+possessive+lowercase+stop:own+porter");
        assert_eq!(changed("simple", stop(Stop::Own(own))), "words+lowercase+stop:own");
    }

    #[test]
    fn accents_are_folded_after_lower_casing() {
        let fold = AnalyzerChanges { fold: true, ..AnalyzerChanges::default() };
        assert_eq!(changed("english", fold.clone()), "words+possessive+lowercase+fold+stop+porter");
        assert_eq!(changed("words+possessive+porter", fold.clone()), "words+possessive+fold+porter");
        assert_eq!(changed("whitespace", fold.clone()), "whitespace+fold");
        assert_eq!(changed("words+porter+fold", fold), "words+porter+fold");
    }

    #[test]
    fn words_of_a_list_pass_through_the_steps_before_it() {
        let own = Stop::Own(StopWords::parse("\u{DC}ber UND Dog's").unwrap());
        let changes = AnalyzerChanges { stop_words: Some(own), fold: true, ..AnalyzerChanges::default() };
        let analyzer = Analyzer::parse("english").unwrap().with(&changes).unwrap();
        assert_eq!(analyzer.stop_words(), ["dog", "uber", "und"]);
        assert_eq!(analyzer.terms("\u{FC}ber und uber DOG the"), ["the"]);
    }

    #[test]
    fn pairs_of_characters_need_words() {
        let pairs = AnalyzerChanges { cjk_bigram: true, ..AnalyzerChanges::default() };
        assert_eq!(changed("simple", pairs.clone()), "words+cjk-bigram+lowercase");
        assert!(Analyzer::parse("whitespace").unwrap().with(&pairs).is_err());
    }

    #[test]
    fn no_change_keeps_the_name_and_a_change_names_the_chain() {
        let english = Analyzer::parse("english").unwrap();
        assert_eq!(english.with(&AnalyzerChanges::default()).unwrap().name(), "english");
        let changed = english.with(&stemmer("none")).unwrap();
        assert_eq!(changed.name(), changed.chain());
    }

    #[test]
    fn an_unknown_stemmer_is_refused_with_what_there_is() {
        assert!("snowball:klingon".parse::<Stemmer>().unwrap_err().contains("arabic, "));
        assert!("snowball".parse::<Stemmer>().unwrap_err().contains("snowball:LANGUAGE"));
    }
}
