//! From the input a user names to a format and the files to read, in order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::CorpusOptions;
use super::error::CorpusError;
use super::format::Format;
use super::stream::Stream;

/// A file below the input.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// The path below the input, its components joined by `/` on every platform.
    pub(super) relative: Vec<u8>,
    pub(super) size: u64,
}

pub(super) enum Input {
    /// One file or pipe; it is open already, because a pipe can be opened only once.
    Stream {
        stream: Box<Stream>,
        relative: Vec<u8>,
    },
    Files(Vec<FoundFile>),
}

pub(super) struct Found {
    pub(super) format: Format,
    pub(super) input: Input,
    pub(super) bytes_total: Option<u64>,
}

/// How much of a file is looked at to tell its format.
const PEEK_BYTES: usize = 1 << 16;

/// The name of a file in messages.
pub(super) fn name_of(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Finds the files of `input` and their format.
pub(super) fn find(input: &Path, options: &CorpusOptions, bytes_read: &Arc<AtomicU64>) -> Result<Found, CorpusError> {
    if input == Path::new("-") {
        let stream = Stream::new("stdin".into(), io::stdin(), bytes_read)?;
        return single(stream, Path::new("stdin"), None, options);
    }
    let metadata = fs::metadata(input).map_err(|error| cannot_open(input, error))?;
    if metadata.is_dir() {
        return folder(input, options);
    }
    let stream = Stream::open(input, bytes_read)?;
    let size = metadata.is_file().then_some(metadata.len());
    single(stream, input, size, options)
}

fn cannot_open(path: &Path, source: io::Error) -> CorpusError {
    CorpusError::Open { path: path.display().to_string(), source }
}

fn single(mut stream: Stream, path: &Path, size: Option<u64>, options: &CorpusOptions) -> Result<Found, CorpusError> {
    let format = match options.format {
        Some(format) => format,
        None => format_of_file(path, stream.peek(PEEK_BYTES)?, options)
            .ok_or_else(|| CorpusError::UnclearFormat { path: stream.source().to_string() })?,
    };
    let relative = path.file_name().unwrap_or(path.as_os_str());
    Ok(Found {
        format,
        input: Input::Stream { stream: Box::new(stream), relative: relative.as_encoded_bytes().to_vec() },
        bytes_total: size,
    })
}

fn folder(input: &Path, options: &CorpusOptions) -> Result<Found, CorpusError> {
    if matches!(options.format, None | Some(Format::Beir))
        && let Some(corpus) = corpus_file(input)
    {
        let format = match options.format {
            Some(format) => format,
            None => json_format(&beginning(&corpus.path)?, options),
        };
        return Ok(Found { format, bytes_total: Some(corpus.size), input: Input::Files(vec![corpus]) });
    }
    let mut files = walk(input)?;
    let format = match options.format {
        Some(format) => format,
        None => format_of_folder(input, &files)?,
    };
    keep_format(format, &mut files)?;
    if files.is_empty() {
        return Err(CorpusError::NoFiles { path: input.display().to_string(), format, expected: expected(format) });
    }
    let bytes_total = files.iter().map(|file| file.size).sum();
    Ok(Found { format, input: Input::Files(files), bytes_total: Some(bytes_total) })
}

fn expected(format: Format) -> String {
    match format {
        Format::Beir => "expected corpus.jsonl, plain or with .gz or .zst".to_owned(),
        Format::Text => "hidden files and links are not read".to_owned(),
        _ => format!("expected names that end in .{}, plain or with .gz or .zst", format.extensions().join(", .")),
    }
}

/// The collection of a folder laid out as BEIR's are, which holds queries and judgements beside it.
fn corpus_file(folder: &Path) -> Option<FoundFile> {
    let names = ["corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.zst"];
    names.into_iter().find_map(|name| {
        let path = folder.join(name);
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some(FoundFile { path, relative: name.as_bytes().to_vec(), size: metadata.len() })
    })
}

/// Every file below `input` in the order of path bytes, without hidden files and folders; links are not followed.
fn walk(input: &Path) -> Result<Vec<FoundFile>, CorpusError> {
    let mut files = Vec::new();
    let mut folders = vec![(input.to_path_buf(), Vec::new())];
    while let Some((folder, relative_folder)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| cannot_open(&folder, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot_open(&folder, error))?;
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| cannot_open(&path, error))?;
            let mut relative: Vec<u8> = relative_folder.clone();
            relative.extend_from_slice(name.as_encoded_bytes());
            if kind.is_dir() {
                relative.push(b'/');
                folders.push((path, relative));
            } else if kind.is_file() {
                let metadata = entry.metadata();
                let size = metadata.map_err(|error| cannot_open(&path, error))?.len();
                files.push(FoundFile { path, relative, size });
            }
        }
    }
    files.sort_unstable_by(|left, right| left.relative.cmp(&right.relative));
    Ok(files)
}

/// Drops the files of a folder that are not of `format`.
fn keep_format(format: Format, files: &mut Vec<FoundFile>) -> Result<(), CorpusError> {
    match format {
        Format::Text => {}
        // Trees of TREC files are named freely, so the content of other names decides.
        Format::Trec => {
            let mut kept = Vec::with_capacity(files.len());
            for file in files.drain(..) {
                if has_extension(&file.path, format) || starts_like_trec(&beginning(&file.path)?) {
                    kept.push(file);
                }
            }
            *files = kept;
        }
        // Without its corpus file such a folder holds queries at most.
        Format::Beir => files.clear(),
        Format::Jsonl | Format::Tsv => files.retain(|file| has_extension(&file.path, format)),
    }
    Ok(())
}

fn format_of_folder(folder: &Path, files: &[FoundFile]) -> Result<Format, CorpusError> {
    let formats: Vec<Format> = [Format::Jsonl, Format::Tsv, Format::Trec]
        .into_iter()
        .filter(|format| files.iter().any(|file| has_extension(&file.path, *format)))
        .collect();
    match (formats.as_slice(), files.first()) {
        ([format], _) => Ok(*format),
        ([], Some(file)) if starts_like_trec(&beginning(&file.path)?) => Ok(Format::Trec),
        ([], _) => Ok(Format::Text),
        _ => Err(CorpusError::SeveralFormats {
            path: folder.display().to_string(),
            found: formats.iter().map(Format::to_string).collect::<Vec<_>>().join(" and "),
        }),
    }
}

fn format_of_file(path: &Path, beginning: &[u8], options: &CorpusOptions) -> Option<Format> {
    if has_extension(path, Format::Jsonl) {
        return Some(json_format(beginning, options));
    }
    if let Some(format) = [Format::Tsv, Format::Trec].into_iter().find(|format| has_extension(path, *format)) {
        return Some(format);
    }
    if starts_like_trec(beginning) {
        return Some(Format::Trec);
    }
    let first_line = first_line(beginning);
    if first_line.starts_with(b"{") {
        return Some(json_format(beginning, options));
    }
    if has_extension(path, Format::Text) {
        return Some(Format::Text);
    }
    let is_table = first_line.contains(&b'\t') && !first_line.contains(&0);
    is_table.then_some(Format::Tsv)
}

/// The first line that is not blank.
fn first_line(beginning: &[u8]) -> &[u8] {
    let beginning = beginning.trim_ascii_start();
    let end = memchr::memchr(b'\n', beginning).unwrap_or(beginning.len());
    &beginning[..end]
}

/// BEIR's lines have `_id` where others have the field that the options name.
fn json_format(beginning: &[u8], options: &CorpusOptions) -> Format {
    let line = first_line(beginning);
    let has = |name: &str| {
        let quoted = format!("\"{name}\"");
        memchr::memmem::find(line, quoted.as_bytes()).is_some()
    };
    if has("_id") && !has(&options.id_field) { Format::Beir } else { Format::Jsonl }
}

fn starts_like_trec(beginning: &[u8]) -> bool {
    let beginning = beginning.trim_ascii_start();
    beginning.get(..4).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<DOC"))
        && beginning.get(4).is_some_and(|byte| *byte == b'>' || byte.is_ascii_whitespace())
}

/// The first bytes of a file, decompressed, without counting them as read.
fn beginning(path: &Path) -> Result<Vec<u8>, CorpusError> {
    let mut stream = Stream::open(path, &Arc::default())?;
    Ok(stream.peek(PEEK_BYTES)?.to_vec())
}

fn has_extension(path: &Path, format: Format) -> bool {
    let compressed = ["gz", "zst", "zstd"];
    let extension_of = |path: &Path| {
        let extension = path.extension()?.to_str()?;
        Some(extension.to_ascii_lowercase())
    };
    let extension = match extension_of(path) {
        Some(extension) if compressed.contains(&extension.as_str()) => {
            path.file_stem().map(Path::new).and_then(extension_of)
        }
        extension => extension,
    };
    extension.is_some_and(|extension| format.extensions().contains(&extension.as_str()))
}
