//! Detects the format of a file from its name and its first bytes.

use std::path::Path;

use super::CorpusOptions;
use super::decompress::Decompressed;
use super::error::CorpusError;
use super::files::{extension, has_extension};
use super::format::Format;
use super::json_keys::{self, End, Keys};
use super::left_out::Reason;
use super::schema::ID_NAMES;
use super::{bulk, csv};

/// How much of a file is examined to detect its format.
pub(super) const PEEK_BYTES: usize = 1 << 16;

/// Returns the format of a file of a folder, or why it is left out.
///
/// The name decides where its extension belongs to one format; the content decides for the others.
pub(super) fn format_in_folder(
    path: &Path,
    file: &mut Decompressed,
    options: &CorpusOptions,
) -> Result<Result<Format, Reason>, CorpusError> {
    let given = options.format.filter(|format| *format != Format::Trec || has_extension(path, *format));
    if let Some(format) = given.or_else(|| format_of_name(path)) {
        return Ok(Ok(format));
    }
    let beginning = file.peek(PEEK_BYTES)?;
    Ok(match format_of_content(path, beginning, options) {
        Some(format) if options.format.is_none_or(|given| given == format) => Ok(format),
        _ if options.format.is_some() => Err(Reason::OtherFormat),
        _ if is_binary(beginning) => Err(Reason::Binary),
        _ => Ok(Format::Text),
    })
}

/// Whether a damaged file of a folder is one document: a malformed record, not a file of many that is left out.
pub(super) fn is_one_document(path: &Path, options: &CorpusOptions) -> bool {
    let is_json = has_extension(path, Format::Jsonl) || has_extension(path, Format::Csv);
    match options.format {
        Some(format) => format == Format::Text,
        None => !is_json && format_of_name(path).is_none(),
    }
}

/// Returns the format that belongs to the extension, whatever the content.
fn format_of_name(path: &Path) -> Option<Format> {
    [Format::Tsv, Format::Trec].into_iter().find(|format| has_extension(path, *format))
}

/// Returns the format that the content shows without doubt, for a name that allows it.
fn format_of_content(path: &Path, beginning: &[u8], options: &CorpusOptions) -> Option<Format> {
    match extension(path).as_deref() {
        Some("jsonl" | "ndjson") => Some(json(beginning, options).map_or(Format::Jsonl, |json| json.format)),
        _ if starts_like_trec(beginning) => Some(Format::Trec),
        Some("json") | None => json(beginning, options).filter(|json| json.is_certain).map(|json| json.format),
        Some("csv") => is_csv(beginning, options).then_some(Format::Csv),
        _ => None,
    }
}

/// Returns the format of a file that is the whole input; `None` if it is unclear, since a wrong guess would build a
/// wrong index.
pub(super) fn format_of_single(path: &Path, beginning: &[u8], options: &CorpusOptions) -> Option<Format> {
    if has_extension(path, Format::Csv) {
        return Some(Format::Csv);
    }
    if let Some(format) = format_of_name(path).or_else(|| format_of_content(path, beginning, options)) {
        return Some(format);
    }
    if let Some(json) = json(beginning, options) {
        return Some(json.format);
    }
    let is_table = !is_binary(beginning) && first_line(beginning).contains(&b'\t');
    match extension(path).as_deref() {
        Some("json") => None,
        _ if has_extension(path, Format::Text) => Some(Format::Text),
        _ if is_csv(beginning, options) => Some(Format::Csv),
        _ => is_table.then_some(Format::Tsv),
    }
}

/// Returns the first line that is not blank.
fn first_line(beginning: &[u8]) -> &[u8] {
    let beginning = beginning.trim_ascii_start();
    let end = memchr::memchr(b'\n', beginning).unwrap_or(beginning.len());
    &beginning[..end]
}

/// The names that the field of the id may have.
fn id_names(options: &CorpusOptions) -> Vec<&str> {
    options.id_field.as_deref().map_or_else(|| ID_NAMES.to_vec(), |name| vec![name])
}

/// A format of JSON.
struct Json {
    format: Format,
    /// Whether the objects are documents without doubt; those of a `package.json` or a settings file are not.
    is_certain: bool,
}

/// Tells the formats of JSON by the first object and what follows it.
fn json(beginning: &[u8], options: &CorpusOptions) -> Option<Json> {
    let beginning = beginning.trim_ascii_start();
    let brackets = beginning.iter().take_while(|byte| **byte == b'[' || byte.is_ascii_whitespace()).count();
    let object = &beginning[brackets..];
    if !object.starts_with(b"{") {
        return None;
    }
    let line = first_line(object);
    let keys = json_keys::top_level(object);
    let has_id = id_names(options).iter().any(|name| keys.has(name));
    if brackets > 0 {
        return Some(Json { format: Format::Json, is_certain: has_id });
    }
    if bulk::is_action(line.trim_ascii()) {
        return Some(Json { format: Format::Bulk, is_certain: true });
    }
    let (is_in_line, rest) = match keys.end {
        End::At(end) => (end <= line.len() && !continues(&line[end..]), &object[end..]),
        // A first line longer than what is examined, or text after several lines.
        End::Cut => (line.len() == object.len(), &object[object.len()..]),
        End::Malformed => return Some(Json { format: lines_format(&keys, options), is_certain: false }),
    };
    if !is_in_line {
        return Some(Json { format: Format::Json, is_certain: has_id });
    }
    let is_cut_short = keys.end == End::Cut && beginning.len() < PEEK_BYTES / 2;
    let is_certain = !is_cut_short && (has_id || rest.trim_ascii_start().starts_with(b"{"));
    Some(Json { format: lines_format(&keys, options), is_certain })
}

/// Whether another object follows on the same line.
fn continues(rest: &[u8]) -> bool {
    rest.trim_ascii_start().first().is_some_and(|byte| b",{".contains(byte))
}

/// Tells BEIR's lines, which have `_id`, from those with the id field of the options.
fn lines_format(keys: &Keys, options: &CorpusOptions) -> Format {
    let own = options.id_field.as_deref().unwrap_or("id");
    if keys.has("_id") && !keys.has(own) { Format::Beir } else { Format::Jsonl }
}

/// Whether the first line names columns, one of them the id.
fn is_csv(beginning: &[u8], options: &CorpusOptions) -> bool {
    let Some((columns, _)) = csv::header(beginning) else { return false };
    let names = id_names(options);
    columns.names.len() > 1
        && columns.names.iter().any(|column| names.iter().any(|name| column.eq_ignore_ascii_case(name)))
}

fn starts_like_trec(beginning: &[u8]) -> bool {
    let beginning = beginning.trim_ascii_start();
    beginning.get(..4).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<DOC"))
        && beginning.get(4).is_some_and(|byte| *byte == b'>' || byte.is_ascii_whitespace())
}

/// Whether a file is not text. The bytes of a PDF need not have a NUL near the beginning.
fn is_binary(beginning: &[u8]) -> bool {
    memchr::memchr(0, beginning).is_some() || beginning.starts_with(b"%PDF-")
}
