//! Characters that an id may have, but not in a TREC run.

/// Whether a character separates columns or lines of TREC's runs and judgements for some program that reads them: white
/// space of any kind, and control characters.
pub fn is_separator(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}
