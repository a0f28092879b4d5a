//! TREC topics in the SGML of 1992 to 2005, where most elements have no closing tag.
//!
//! A topic lies between `<top>` and `</top>` (or the next `<top>`, or the end of the file); an
//! element extends to the next tag. Labels such as `Number:` before its text are dropped.

use super::topics::{Problem, Topic};

/// An element of a topic and the label that may precede its text.
#[derive(Clone, Copy)]
pub(super) struct Element {
    tag: &'static str,
    label: &'static str,
}

const NUMBER: Element = Element { tag: "<num>", label: "Number:" };

pub(super) const TITLE: Element = Element { tag: "<title>", label: "Topic:" };

pub(super) const DESCRIPTION: Element = Element { tag: "<desc>", label: "Description:" };

const TOPIC: &str = "<top>";

/// Whether `text` has a topic.
pub(super) fn occurs_in(text: &str) -> bool {
    find(text, TOPIC).is_some()
}

/// Parses the topics of `text`, each with the line of its `<top>`; the element `query` is the text of the query.
pub(super) fn parse(text: &str, query: Element) -> Result<Vec<(usize, Topic)>, Problem> {
    let mut topics = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(start) = find(rest, TOPIC) {
        let (before, from_topic) = rest.split_at(start);
        line += newlines(before);
        let body = &from_topic[TOPIC.len()..];
        let end = [find(body, TOPIC), find(body, "</top>")];
        let end = end.into_iter().flatten().min().unwrap_or(body.len());
        let number = element(&body[..end], NUMBER).ok_or_else(|| (line, String::from("a <top> without <num>")))?;
        let words =
            element(&body[..end], query).ok_or_else(|| (line, format!("topic {number} has no {}", query.tag)))?;
        topics.push((line, Topic::new(&number, &words)));
        line += newlines(&from_topic[..TOPIC.len() + end]);
        rest = &body[end..];
    }
    Ok(topics)
}

/// Returns the text of an element on one line, without its label.
fn element(body: &str, element: Element) -> Option<String> {
    let start = find(body, element.tag)? + element.tag.len();
    let text = &body[start..];
    let text = text[..next_tag(text)].trim();
    let text = match text.get(..element.label.len()) {
        Some(label) if label.eq_ignore_ascii_case(element.label) => &text[label.len()..],
        _ => text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    Some(words.join(" "))
}

/// Returns the position of the next tag, or the end. A `<` that is not followed by a letter or `/` is text.
fn next_tag(text: &str) -> usize {
    let bytes = text.as_bytes();
    let opens_tag = |pair: &[u8]| pair[0] == b'<' && (pair[1].is_ascii_alphabetic() || pair[1] == b'/');
    bytes.windows(2).position(opens_tag).unwrap_or(text.len())
}

/// Returns the position of the first `tag`, ignoring case.
fn find(text: &str, tag: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(tag.len());
    windows.position(|window| window.eq_ignore_ascii_case(tag.as_bytes()))
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Result<Vec<(usize, Topic)>, Problem> {
        parse(text, TITLE)
    }

    #[test]
    fn a_title_goes_on_to_the_next_tag() {
        let text = "<top>\n\n<num> Number: 301 \n<title> International\n  Organized Crime \n\n<desc> Description: \nx\n\n</top>\n\n<TOP>\n<NUM>Number: 302</NUM>\n<TITLE>Topic: a < b\n</TOP>";
        assert_eq!(
            titles(text).unwrap(),
            [(1, Topic::new("301", "International Organized Crime")), (12, Topic::new("302", "a < b")),]
        );
    }

    #[test]
    fn a_topic_that_is_not_closed_ends_where_the_next_begins() {
        let text = "<top><num>1<title>one\n<top><num>2<title>";
        assert_eq!(titles(text).unwrap(), [(1, Topic::new("1", "one")), (2, Topic::new("2", ""))]);
    }

    #[test]
    fn a_topic_without_number_or_title_is_named_by_its_line() {
        assert_eq!(titles("x\n<top> <title> a </top>").unwrap_err(), (2, String::from("a <top> without <num>")));
        assert_eq!(titles("<top><num> Number: 7 </top>").unwrap_err(), (1, String::from("topic 7 has no <title>")));
    }

    #[test]
    fn a_label_is_not_cut_inside_a_character() {
        assert_eq!(titles("<top><num>1<title>Topicé x</top>").unwrap(), [(1, Topic::new("1", "Topicé x"))]);
    }
}
