//! The TREC format: SGML documents, parsed leniently, since real collections are not valid SGML.
//!
//! A document lies between `<DOC>` and `</DOC>`; `<DOCNO>` is its id, `<TITLE>` and `<HEADLINE>` its title, and
//! everything else its text. Tag names are case-insensitive. A tag separates words, and a `>` in a quoted attribute does
//! not end it. A `<` that does not begin a tag and an unknown entity are text.

use super::batch::Delivery;
use super::entities::entity;
use super::lines;
use super::schema::{TEXT, TITLE};

pub(super) const DOCUMENT_END: &[u8] = b"</DOC>";

/// Returns the position after the first `</DOC>`.
pub(super) fn document_end(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, b"</")
        .map(|at| (at, at + DOCUMENT_END.len()))
        .find(|&(at, end)| bytes.get(at..end).is_some_and(|tag| tag.eq_ignore_ascii_case(DOCUMENT_END)))
        .map(|(_, end)| end)
}

/// Returns the positions of the first `<DOC>`, which may have attributes, and after it.
fn document_start(bytes: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr_iter(b'<', bytes).find_map(|at| {
        let tag = bytes.get(at + 1..at + 5)?;
        if !tag[..3].eq_ignore_ascii_case(b"DOC") {
            return None;
        }
        if tag[3] == b'>' {
            return Some((at, at + 5));
        }
        let end = if tag[3].is_ascii_whitespace() { tag_end(&bytes[at + 5..])? } else { return None };
        Some((at, at + 5 + end + 1))
    })
}

/// The texts of one document; their memory is reused for the next.
#[derive(Default)]
struct Record {
    id: String,
    title: String,
    text: String,
}

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let mut record = Record::default();
    let mut start = 0;
    let mut line = first_line;
    while let Some(length) = document_end(&bytes[start..]) {
        let end = start + length;
        let content = &bytes[start..end - DOCUMENT_END.len()];
        one_document(content, line, &mut record, delivery);
        line += lines::count(&bytes[start..end]);
        start = end;
    }
    let rest = &bytes[start..];
    outside(rest, line, delivery);
    if let Some((at, _)) = document_start(rest) {
        unclosed(line + lines::count(&rest[..at]), delivery);
    }
}

/// Parses the bytes before a `</DOC>`.
fn one_document(content: &[u8], first_line: u64, record: &mut Record, delivery: &mut Delivery<'_, '_>) {
    outside(content, first_line, delivery);
    let Some((at, mut start)) = document_start(content) else {
        let line = first_line + lines::count(content);
        return delivery.problem(line, "</DOC> without <DOC>".to_owned());
    };
    let mut line = first_line + lines::count(&content[..at]);
    while let Some((at, next_start)) = document_start(&content[start..]) {
        unclosed(line, delivery);
        line += lines::count(&content[start..start + at]);
        start += next_start;
    }
    let Some(text) = delivery.text(&content[start..], line) else { return };
    if let Err(what) = parse(text, record) {
        return delivery.problem(line, what);
    }
    let field = |field| match field {
        TITLE => Some(record.title.trim()),
        TEXT => Some(record.text.trim()),
        _ => Some(record.id.trim()),
    };
    delivery.document(line, field, &[], Vec::new);
}

fn unclosed(line: u64, delivery: &mut Delivery<'_, '_>) {
    let what = "<DOC> without </DOC>; is the file complete?";
    delivery.problem(line, what.to_owned());
}

/// Reports text between documents, which would be lost otherwise; tags are allowed there.
fn outside(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let before = match document_start(bytes) {
        Some((at, _)) => &bytes[..at],
        None => bytes,
    };
    let mut rest = before.trim_ascii_start();
    while rest.starts_with(b"<") {
        match memchr::memchr(b'>', rest) {
            Some(end) => rest = rest[end + 1..].trim_ascii_start(),
            None => break,
        }
    }
    if !rest.is_empty() {
        let line = first_line + lines::count(&before[..before.len() - rest.len()]);
        delivery.problem(line, "text outside of <DOC> … </DOC>".to_owned());
    }
}

/// The text of the record to which characters are appended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Id,
    Title,
    Text,
}

impl Target {
    fn of_tag(name: &str) -> Option<Target> {
        let is = |other| name.eq_ignore_ascii_case(other);
        if is("DOCNO") {
            Some(Target::Id)
        } else if is("TITLE") || is("HEADLINE") {
            Some(Target::Title)
        } else {
            None
        }
    }
}

fn parse(mut rest: &str, record: &mut Record) -> Result<(), String> {
    record.id.clear();
    record.title.clear();
    record.text.clear();
    // The tag that must be closed before characters belong to the text again.
    let mut inside: Option<(&str, Target)> = None;
    while !rest.is_empty() {
        let output = match inside.map_or(Target::Text, |(_, target)| target) {
            Target::Id => &mut record.id,
            Target::Title => &mut record.title,
            Target::Text => &mut record.text,
        };
        let special = memchr::memchr2(b'<', b'&', rest.as_bytes()).unwrap_or(rest.len());
        output.push_str(&rest[..special]);
        rest = &rest[special..];
        if let Some(tag) = Tag::at_start(rest) {
            rest = &rest[tag.length..];
            separate(output);
            inside = match inside {
                None if !tag.closes => {
                    let target = Target::of_tag(tag.name);
                    target.map(|target| (tag.name, target))
                }
                Some((name, _)) if tag.closes && tag.name.eq_ignore_ascii_case(name) => None,
                unchanged => unchanged,
            };
            if let Some((_, Target::Title)) = inside {
                separate(&mut record.title);
            }
        } else if let Some((character, length)) = entity(rest) {
            output.push(character);
            rest = &rest[length..];
        } else if !rest.is_empty() {
            // '<' and '&' are one byte long.
            output.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    match inside {
        Some((name, _)) => Err(format!("<{name}> without </{name}>")),
        None if record.id.trim().is_empty() => Err("<DOCNO> is missing or empty".to_owned()),
        None => Ok(()),
    }
}

fn separate(output: &mut String) {
    if !output.is_empty() && !output.ends_with(char::is_whitespace) {
        output.push(' ');
    }
}

struct Tag<'r> {
    /// Empty for comments and declarations.
    name: &'r str,
    closes: bool,
    length: usize,
}

impl Tag<'_> {
    fn at_start(rest: &str) -> Option<Tag<'_>> {
        let inner = rest.strip_prefix('<')?;
        if let Some(comment) = inner.strip_prefix("!--") {
            // A comment that is not closed extends to the end.
            let length = match memchr::memmem::find(comment.as_bytes(), b"-->") {
                Some(end) => "<!--".len() + end + "-->".len(),
                None => rest.len(),
            };
            return Some(Tag { name: "", closes: false, length });
        }
        let closes = inner.starts_with('/');
        let name = &inner[usize::from(closes)..];
        if !name.starts_with(|first: char| first.is_ascii_alphabetic() || "!?".contains(first)) {
            return None;
        }
        let end = tag_end(name.as_bytes())?;
        let name_end = name[..end].find(|c: char| c.is_ascii_whitespace() || c == '/');
        Some(Tag { name: &name[..name_end.unwrap_or(end)], closes, length: 1 + usize::from(closes) + end + 1 })
    }
}

/// The longest value of an attribute in which a `>` does not end the tag, so that a stray quote costs little.
const VALUE_BYTES: usize = 1 << 10;

/// Returns the position of the `>` that ends a tag, given what follows its `<`; quoted values may have one, too. A `<`
/// outside of them shows that this is not a tag.
fn tag_end(inner: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr3(b'>', b'<', b'=', &inner[at..])?;
        match inner[at] {
            b'>' => return Some(at),
            b'<' => return None,
            _ => at += 1 + value_length(&inner[at + 1..]),
        }
    }
}

/// Returns the length of the quoted value at the start, with white space before it; 0 if there is none.
fn value_length(bytes: &[u8]) -> usize {
    let space = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let Some(&quote @ (b'"' | b'\'')) = bytes.get(space) else { return 0 };
    let value = &bytes[space + 1..bytes.len().min(space + 1 + VALUE_BYTES)];
    memchr::memchr(quote, value).map_or(0, |end| space + 1 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(content: &str) -> (String, String, String) {
        let mut record = Record::default();
        parse(content, &mut record).unwrap();
        let trimmed = |text: &str| text.trim().to_owned();
        (trimmed(&record.id), trimmed(&record.title), trimmed(&record.text))
    }

    fn text(content: &str) -> String {
        parsed(&format!("<docno>1</docno>{content}")).2
    }

    #[test]
    fn id_title_and_the_rest_are_told_apart() {
        let (id, title, text) = parsed(
            "\n<DOCNO> FT-1 </DOCNO>\n<DATE>1999</DATE><HEADLINE><P>Big\nnews</P></HEADLINE>\n\
             <TEXT>\nOne<p>two\n</TEXT><TITLE lang=en>More</TITLE>",
        );
        assert_eq!(id, "FT-1");
        assert_eq!(title, "Big\nnews More");
        assert_eq!(text, "1999 \n\nOne two");
    }

    #[test]
    fn entities_are_decoded_once_and_unknown_ones_kept() {
        assert_eq!(
            text("a &amp;lt; &lt;b&gt; &quot;&apos;&nbsp;&#233;&#xE9;&eacute; &nosuch; &; & &#0; &#x110000;"),
            "a &lt; <b> \"' ééé &nosuch; &; & &#0; &#x110000;"
        );
    }

    #[test]
    fn a_sign_that_begins_no_tag_is_text() {
        assert_eq!(text("1 < 2 <= 3 <"), "1 < 2 <= 3 <");
        assert_eq!(text("x <y and <b>z</b>"), "x <y and z");
        assert_eq!(text("a<!-- <TITLE> -->b<!DOCTYPE x>c<br/>d"), "a b c d");
        assert_eq!(text("a<!-- never closed <b> c"), "a");
    }

    #[test]
    fn a_quoted_attribute_may_have_any_character() {
        assert_eq!(text("a<p title=\"x > y\">b<p x='>' y = \"<\">c<p x=1>d"), "a b c d");
        assert_eq!(document_start(b"<DOC id=\"a>b\">x"), Some((0, 14)));
        // A quote that is not closed near by is no quote.
        assert_eq!(text(&format!("a<p title=\"x>{}\"", "b".repeat(2000))), format!("a {}\"", "b".repeat(2000)));
        assert_eq!(text("a<p don't>b'>c"), "a b'>c");
    }

    #[test]
    fn an_unclosed_title_is_a_problem() {
        let error = parse("<DOCNO>1</DOCNO><TITLE>a", &mut Record::default()).unwrap_err();
        assert_eq!(error, "<TITLE> without </TITLE>");
    }

    #[test]
    fn a_document_without_number_is_a_problem() {
        for content in ["text", "<DOCNO> </DOCNO>"] {
            let error = parse(content, &mut Record::default()).unwrap_err();
            assert_eq!(error, "<DOCNO> is missing or empty");
        }
    }

    #[test]
    fn documents_begin_with_a_tag_of_exactly_that_name() {
        assert_eq!(document_start(b"<DOCNO><doc>"), Some((7, 12)));
        assert_eq!(document_start(b"<DOC id=\"1\">x"), Some((0, 12)));
        assert_eq!(document_start(b"<DOC <DOCS>"), None);
        assert_eq!(document_end(b"</DO</DOCS></doc>x"), Some(17));
    }
}
