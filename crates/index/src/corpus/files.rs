//! Finds the files of an input, in order, and detects the format of each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::de::IgnoredAny;

use super::CorpusOptions;
use super::decompress::Decompressed;
use super::error::CorpusError;
use super::format::Format;
use super::left_out::{LeftOutCounts, Reason};
use crate::format::folder::is_index;

/// A file below the input.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// The path below the input, its components joined by `/` on every platform.
    pub(super) relative: Vec<u8>,
    pub(super) size: u64,
}

pub(super) enum Input {
    /// One file or pipe, already open because a pipe can be opened only once.
    Single { file: Box<Decompressed>, relative: Vec<u8>, format: Format },
    /// The files of a folder, whose formats are found when they are opened.
    Folder(Vec<FoundFile>),
}

pub(super) struct Found {
    pub(super) input: Input,
    pub(super) bytes_total: Option<u64>,
    pub(super) left_out: LeftOutCounts,
}

/// How much of a file is examined to detect its format.
const PEEK_BYTES: usize = 1 << 16;

/// Returns the name of a file in messages.
pub(super) fn name_of(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Finds the files of `input`.
pub(super) fn find(input: &Path, options: &CorpusOptions, bytes_read: &Arc<AtomicU64>) -> Result<Found, CorpusError> {
    if input == Path::new("-") {
        let file = Decompressed::new("stdin".into(), io::stdin(), bytes_read)?;
        return single(file, Path::new("stdin"), None, options);
    }
    let metadata = fs::metadata(input).map_err(|error| cannot_open(input, error))?;
    if metadata.is_dir() {
        return folder(input, options);
    }
    let file = Decompressed::open(input, bytes_read)?;
    let size = metadata.is_file().then_some(metadata.len());
    single(file, input, size, options)
}

fn cannot_open(path: &Path, source: io::Error) -> CorpusError {
    CorpusError::Open { path: path.display().to_string(), source }
}

fn single(
    mut file: Decompressed,
    path: &Path,
    bytes_total: Option<u64>,
    options: &CorpusOptions,
) -> Result<Found, CorpusError> {
    let format = match options.format {
        Some(format) => format,
        None => format_of_single(path, file.peek(PEEK_BYTES)?, options)
            .ok_or_else(|| CorpusError::UnclearFormat { path: file.source().to_string() })?,
    };
    let relative = path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes().to_vec();
    let input = Input::Single { file: Box::new(file), relative, format };
    Ok(Found { input, bytes_total, left_out: LeftOutCounts::default() })
}

fn folder(input: &Path, options: &CorpusOptions) -> Result<Found, CorpusError> {
    let (mut files, mut left_out) = walk(input)?;
    let is_corpus = |file: &FoundFile| CORPUS_NAMES.contains(&file.relative.as_slice());
    let is_beir = matches!(options.format, None | Some(Format::Beir)) && files.iter().any(is_corpus);
    files.retain(|file| {
        let reason = match options.format {
            _ if is_beir => (!is_corpus(file)).then_some(Reason::BesideCorpus),
            Some(format) => (!may_have_format(&file.path, format)).then_some(Reason::OtherFormat),
            None => None,
        };
        if let Some(reason) = reason {
            left_out.add(reason, &file.path);
        }
        reason.is_none()
    });
    if files.is_empty() {
        return Err(CorpusError::NoFiles { path: input.display().to_string(), expected: expected(options.format) });
    }
    let bytes_total = files.iter().map(|file| file.size).sum();
    Ok(Found { input: Input::Folder(files), bytes_total: Some(bytes_total), left_out })
}

fn expected(format: Option<Format>) -> String {
    let compressed = "plain or with .gz or .zst";
    match format {
        None | Some(Format::Text | Format::Trec) => "hidden files and links are not read".to_owned(),
        Some(Format::Beir) => format!("expected corpus.jsonl, {compressed}"),
        Some(format) => {
            format!(
                "expected {format} files, with names that end in .{}, {compressed}",
                format.extensions().join(", .")
            )
        }
    }
}

/// The collection of a folder in the layout of BEIR, which holds queries and judgements beside it.
const CORPUS_NAMES: [&[u8]; 3] = [b"corpus.jsonl", b"corpus.jsonl.gz", b"corpus.jsonl.zst"];

/// Returns every file below `input`, sorted by the bytes of its path.
///
/// Hidden files and folders, links, special files and folders that hold an index are left out.
fn walk(input: &Path) -> Result<(Vec<FoundFile>, LeftOutCounts), CorpusError> {
    let (mut files, mut left_out) = (Vec::new(), LeftOutCounts::default());
    let mut folders = vec![(input.to_path_buf(), Vec::new())];
    while let Some((folder, relative_folder)) = folders.pop() {
        let refused = |error| cannot_open(&folder, error);
        let entries: Vec<fs::DirEntry> = fs::read_dir(&folder).and_then(Iterator::collect).map_err(refused)?;
        let names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        if is_index(&names) {
            if folder == input {
                return Err(CorpusError::IsIndex { path: input.display().to_string() });
            }
            left_out.add(Reason::Index, &folder);
            continue;
        }
        for entry in entries {
            let path = entry.path();
            let metadata = entry.metadata().map_err(|error| cannot_open(&path, error))?;
            let mut relative: Vec<u8> = relative_folder.clone();
            relative.extend_from_slice(entry.file_name().as_encoded_bytes());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match metadata.file_type() {
                kind if kind.is_dir() && is_hidden => left_out.add(Reason::HiddenFolder, &path),
                _ if is_hidden => left_out.add(Reason::HiddenFile, &path),
                kind if kind.is_dir() => {
                    relative.push(b'/');
                    folders.push((path, relative));
                }
                kind if kind.is_file() => files.push(FoundFile { path, relative, size: metadata.len() }),
                kind if kind.is_symlink() => left_out.add(Reason::Link, &path),
                _ => left_out.add(Reason::SpecialFile, &path),
            }
        }
    }
    files.sort_unstable_by(|left, right| left.relative.cmp(&right.relative));
    Ok((files, left_out))
}

/// Whether a file of a folder can be of the format that the user named, as far as its name tells.
fn may_have_format(path: &Path, format: Format) -> bool {
    match format {
        // Files of TREC collections have any names, so the content of other names decides later.
        Format::Text | Format::Trec => true,
        // Without its corpus file such a folder holds at most queries and judgements.
        Format::Beir => false,
        Format::Jsonl | Format::Tsv => has_extension(path, format),
    }
}

/// Returns the format of a file of a folder, or why it is left out.
///
/// The name decides where its extension belongs to one format; the content decides for the others.
pub(super) fn format_in_folder(
    path: &Path,
    file: &mut Decompressed,
    options: &CorpusOptions,
) -> Result<Result<Format, Reason>, CorpusError> {
    let given = options.format.filter(|format| *format != Format::Trec || has_extension(path, *format));
    if let Some(format) = given.or_else(|| format_of_name(path).filter(|format| *format != Format::Jsonl)) {
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

/// Whether a damaged file is one document that can be skipped instead of the end of the build.
pub(super) fn is_one_document(path: &Path, options: &CorpusOptions) -> bool {
    options.format.unwrap_or_else(|| format_of_name(path).unwrap_or(Format::Text)) == Format::Text
}

/// Returns the format that belongs to the extension, whatever the content.
fn format_of_name(path: &Path) -> Option<Format> {
    match extension(path).as_deref() {
        Some("jsonl" | "ndjson") => Some(Format::Jsonl),
        // Many .json files are one object over several lines.
        Some("json") => None,
        _ => [Format::Tsv, Format::Trec].into_iter().find(|format| has_extension(path, *format)),
    }
}

/// Returns the format that the content shows without doubt, for a name that allows it.
fn format_of_content(path: &Path, beginning: &[u8], options: &CorpusOptions) -> Option<Format> {
    match extension(path).as_deref() {
        Some("jsonl" | "ndjson") => Some(json_format(beginning, options)),
        _ if starts_like_trec(beginning) => Some(Format::Trec),
        Some("json") | None if is_json_lines(beginning, options) => Some(json_format(beginning, options)),
        _ => None,
    }
}

/// Returns the format of a file that is the whole input; `None` if it is unclear, since a wrong guess would build a
/// wrong index.
fn format_of_single(path: &Path, beginning: &[u8], options: &CorpusOptions) -> Option<Format> {
    let by_name = format_of_name(path).filter(|format| *format != Format::Jsonl);
    if let Some(format) = by_name.or_else(|| format_of_content(path, beginning, options)) {
        return Some(format);
    }
    let first_line = first_line(beginning);
    match extension(path).as_deref() {
        Some("json") => None,
        _ if first_line.starts_with(b"{") => Some(json_format(beginning, options)),
        _ if has_extension(path, Format::Text) => Some(Format::Text),
        _ => (first_line.contains(&b'\t') && !is_binary(beginning)).then_some(Format::Tsv),
    }
}

/// Returns the first line that is not blank.
fn first_line(beginning: &[u8]) -> &[u8] {
    let beginning = beginning.trim_ascii_start();
    let end = memchr::memchr(b'\n', beginning).unwrap_or(beginning.len());
    &beginning[..end]
}

/// Whether a line of JSON has a field of this name, or a string of this text.
fn has_name(line: &[u8], name: &str) -> bool {
    memchr::memmem::find(line, format!("\"{name}\"").as_bytes()).is_some()
}

/// Tells BEIR's lines, which have `_id`, from those with the id field of the options.
fn json_format(beginning: &[u8], options: &CorpusOptions) -> Format {
    let line = first_line(beginning);
    if has_name(line, "_id") && !has_name(line, &options.id_field) { Format::Beir } else { Format::Jsonl }
}

/// Whether the first line is a whole JSON object that has an id or is followed by another object.
///
/// A `package.json` or a settings file is not.
fn is_json_lines(beginning: &[u8], options: &CorpusOptions) -> bool {
    let line = first_line(beginning);
    let rest = &beginning.trim_ascii_start()[line.len()..];
    let has_id = has_name(line, &options.id_field) || has_name(line, "_id");
    // A first line longer than what is examined cannot be parsed.
    let is_whole = serde_json::from_slice::<IgnoredAny>(line).is_ok()
        || (has_id && beginning.len() == PEEK_BYTES && rest.is_empty());
    line.starts_with(b"{") && is_whole && (has_id || rest.trim_ascii_start().starts_with(b"{"))
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

/// Returns the extension of a name in lower case, without that of a compression.
pub(super) fn extension(path: &Path) -> Option<String> {
    let lower = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    match lower(path) {
        Some(extension) if ["gz", "zst", "zstd"].contains(&extension.as_str()) => {
            path.file_stem().map(Path::new).and_then(lower)
        }
        extension => extension,
    }
}

fn has_extension(path: &Path, format: Format) -> bool {
    extension(path).is_some_and(|extension| format.extensions().contains(&extension.as_str()))
}
