//! Finds the files of an input that may be read.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::CorpusOptions;
use super::decompress::Decompressed;
use super::detect::{PEEK_BYTES, format_of_single};
use super::error::CorpusError;
use super::format::Format;
use super::left_out::{LeftOutCounts, Reason};
use super::walk::{FoundFile, walk};

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

/// Returns the name of a file in messages.
pub(super) fn name_of(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Finds the files of `input`.
pub(super) fn find(input: &Path, options: &CorpusOptions, bytes_read: &Arc<AtomicU64>) -> Result<Found, CorpusError> {
    if input == Path::new("-") {
        return found_in(io::stdin(), Path::new("stdin"), options, bytes_read);
    }
    let metadata = fs::metadata(input).map_err(|error| cannot_open(input, error))?;
    if metadata.is_dir() {
        return folder(input, options);
    }
    let file = Decompressed::open(input, bytes_read)?;
    let size = metadata.is_file().then_some(metadata.len());
    single(file, input, size, options)
}

/// Takes what `input` gives for a file of this name.
pub(super) fn found_in(
    input: impl Read + Send + 'static,
    name: &Path,
    options: &CorpusOptions,
    bytes_read: &Arc<AtomicU64>,
) -> Result<Found, CorpusError> {
    let file = Decompressed::new(name_of(name), input, bytes_read)?;
    single(file, name, None, options)
}

pub(super) fn cannot_open(path: &Path, source: io::Error) -> CorpusError {
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
        None => format_of_single(path, file.peek(PEEK_BYTES)?, options).ok_or_else(|| {
            file.take_failure().unwrap_or_else(|| CorpusError::UnclearFormat { path: file.source().to_string() })
        })?,
    };
    let relative = path.file_name().unwrap_or(path.as_os_str()).as_encoded_bytes().to_vec();
    let input = Input::Single { file: Box::new(file), relative, format };
    Ok(Found { input, bytes_total, left_out: LeftOutCounts::default() })
}

fn folder(input: &Path, options: &CorpusOptions) -> Result<Found, CorpusError> {
    let (mut files, mut left_out) = walk(input, options)?;
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
        let expected = left_out.unreadable().first().cloned().unwrap_or_else(|| expected(options));
        return Err(CorpusError::NoFiles { path: input.display().to_string(), expected });
    }
    let bytes_total = files.iter().map(|file| file.size).sum();
    Ok(Found { input: Input::Folder(files), bytes_total: Some(bytes_total), left_out })
}

fn expected(options: &CorpusOptions) -> String {
    let compressed = "plain or with .gz or .zst";
    match options.format {
        None | Some(Format::Text | Format::Trec) => match (options.hidden, options.follow_links) {
            (true, true) => "it has none".to_owned(),
            (true, false) => "links are not followed".to_owned(),
            (false, true) => "hidden files are not read".to_owned(),
            (false, false) => "hidden files and links are not read".to_owned(),
        },
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

/// Whether a file of a folder can be of the format that the user named, as far as its name tells.
fn may_have_format(path: &Path, format: Format) -> bool {
    match format {
        // Files of TREC collections have any names, so the content of other names decides later.
        Format::Text | Format::Trec => true,
        // Without its corpus file such a folder holds at most queries and judgements.
        Format::Beir => false,
        _ => has_extension(path, format),
    }
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

pub(super) fn has_extension(path: &Path, format: Format) -> bool {
    extension(path).is_some_and(|extension| format.extensions().contains(&extension.as_str()))
}
