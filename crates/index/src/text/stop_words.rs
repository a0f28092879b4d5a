//! A list of stop words of the user.

/// Stop words in the form in which they meet the words of a text, sorted, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopWords(Vec<String>);

impl StopWords {
    /// Reads a list: words separated by white space or line ends. A line that starts with `#` is a comment, and so is
    /// everything from `|` on, as in the lists of Snowball. `None` if no word is left.
    pub fn parse(text: &str) -> Option<StopWords> {
        let lines = text.trim_start_matches('\u{FEFF}').lines().filter(|line| !line.trim_start().starts_with('#'));
        let without_comments = lines.map(|line| line.split('|').next().unwrap_or_default());
        StopWords::new(without_comments.flat_map(str::split_whitespace).map(str::to_owned).collect())
    }

    /// A list of these words; `None` if there are none.
    pub fn new(mut words: Vec<String>) -> Option<StopWords> {
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words.dedup();
        (!words.is_empty()).then_some(StopWords(words))
    }

    /// The words, sorted.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// Whether `term` is one of them.
    pub fn contains(&self, term: &str) -> bool {
        self.0.binary_search_by(|word| word.as_str().cmp(term)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_lucene_and_of_snowball_are_read() {
        let list =
            StopWords::parse("\u{FEFF}# comment\nund der\r\n\n  die | the, fem.\n| only a comment\nder\n").unwrap();
        assert_eq!(list.words(), ["der", "die", "und"]);
        assert!(list.contains("und") && !list.contains("the") && !list.contains("un"));
    }

    #[test]
    fn a_list_without_words_is_none() {
        assert_eq!(StopWords::parse(" \n# nothing\n|\n"), None);
        assert_eq!(StopWords::new(vec![String::new()]), None);
    }
}
