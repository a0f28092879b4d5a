//! Writes scaled documents as JSON lines, or feeds them to a build. Threads generate pieces, which are taken in order.

use super::generate::{Generator, Made};
use crate::error::{BenchError, Result};
use lanner_index::build::{BuildOptions, Quiet, build};
use lanner_index::corpus::{Corpus, CorpusOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Documents in a piece.
const PIECE: u64 = 2048;
/// Finished pieces that may wait in the channel of a thread.
const AHEAD: usize = 2;
/// The text is large and read once, so speed matters more than size.
const ZSTD_LEVEL: i32 = 1;

/// An iterator over pieces in order: thread t generates pieces t, t + threads, and so on.
struct Pieces<T> {
    receivers: Vec<Receiver<T>>,
    next: usize,
}

impl<T: Send + 'static> Pieces<T> {
    fn start(
        generator: &Arc<Generator>,
        threads: usize,
        make: impl Fn(&Generator, std::ops::Range<u64>) -> T + Clone + Send + 'static,
    ) -> Pieces<T> {
        let threads = threads.max(1);
        let start = |thread: usize| {
            let (sender, receiver) = sync_channel(AHEAD);
            let (generator, make) = (Arc::clone(generator), make.clone());
            std::thread::spawn(move || {
                let firsts = (thread as u64 * PIECE..generator.documents()).step_by(threads * PIECE as usize);
                for first in firsts {
                    let last = (first + PIECE).min(generator.documents());
                    // The receiver is gone because it failed; it reports the error itself.
                    if sender.send(make(&generator, first..last)).is_err() {
                        break;
                    }
                }
            });
            receiver
        };
        Pieces { receivers: (0..threads).map(start).collect(), next: 0 }
    }
}

impl<T> Iterator for Pieces<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let piece = self.receivers[self.next].recv().ok()?;
        self.next = (self.next + 1) % self.receivers.len();
        Some(piece)
    }
}

/// Returns an iterator over all documents (id, title, text), which are generated on `threads` threads.
fn documents(
    generator: &Arc<Generator>,
    threads: usize,
) -> impl Iterator<Item = (String, String, String)> + Send + 'static {
    let to_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pieces = Pieces::start(generator, threads, move |generator, numbers| {
        let mut made = Made::default();
        let document = |number| {
            generator.make(number, &mut made);
            (made.id.clone(), to_text(&made.title), to_text(&made.text))
        };
        numbers.map(document).collect::<Vec<_>>()
    });
    pieces.flatten()
}

/// Builds an index of all documents without writing them; nothing is stored.
pub fn build_index(generator: &Arc<Generator>, folder: &Path, options: &BuildOptions) -> Result<u64> {
    let nothing_stored = CorpusOptions { store: Some(Vec::new()), ..CorpusOptions::default() };
    let corpus = Corpus::from_documents(documents(generator, options.threads), nothing_stored)?;
    Ok(build(folder, corpus, options, &Quiet)?.documents)
}

/// Writes all documents as JSON lines, compressed if the name ends in `.zst`, and returns their size.
pub fn write_jsonl(generator: &Arc<Generator>, path: &Path, threads: usize) -> Result<u64> {
    let is_compressed = path.extension().is_some_and(|extension| extension == "zst");
    let mut file = std::fs::File::create(path).map_err(BenchError::io(path))?;
    let mut written = 0;
    let pieces = Pieces::start(generator, threads, move |generator, numbers| {
        let lines = json_lines(generator, numbers);
        // Concatenated frames are a valid file, so each thread compresses its own pieces.
        if is_compressed { zstd::bulk::compress(&lines, ZSTD_LEVEL) } else { Ok(lines) }
    });
    for piece in pieces {
        let piece = piece.map_err(BenchError::io(path))?;
        file.write_all(&piece).map_err(BenchError::io(path))?;
        written += piece.len() as u64;
    }
    Ok(written)
}

fn json_lines(generator: &Generator, numbers: std::ops::Range<u64>) -> Vec<u8> {
    let mut lines = Vec::with_capacity(PIECE as usize * 800);
    let mut made = Made::default();
    for number in numbers {
        generator.make(number, &mut made);
        lines.extend_from_slice(b"{\"id\":");
        serde_json::to_writer(&mut lines, &made.id).expect("writing to memory does not fail");
        // Words contain nothing that JSON would have to escape.
        lines.extend_from_slice(b",\"title\":\"");
        lines.extend_from_slice(&made.title);
        lines.extend_from_slice(b"\",\"text\":\"");
        lines.extend_from_slice(&made.text);
        lines.extend_from_slice(b"\"}\n");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::source;
    use super::*;

    fn generator() -> Arc<Generator> {
        Arc::new(Generator::new(source(900), 9000, 4))
    }

    #[test]
    fn files_are_the_same_for_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, threads| {
            let path = folder.path().join(name);
            let written = write_jsonl(&generator(), &path, threads).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes.len() as u64, written);
            bytes
        };
        let plain = write("1.jsonl", 1);
        assert!(write("3.jsonl", 3) == plain);
        let compressed = write("1.jsonl.zst", 1);
        assert!(write("2.jsonl.zst", 2) == compressed);
        assert!(zstd::stream::decode_all(&compressed[..]).unwrap() == plain);
    }

    #[test]
    fn a_file_has_the_documents_that_a_build_gets_directly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scaled.jsonl.zst");
        write_jsonl(&generator(), &path, 2).unwrap();
        let mut corpus = Corpus::open(&path, CorpusOptions::default()).unwrap();
        let mut read = Vec::new();
        while let Some(batch) = corpus.next_batch().unwrap() {
            batch.documents(&mut |record| {
                let document = record.unwrap();
                read.push((document.id.to_owned(), document.stored[0].to_owned(), document.stored[1].to_owned()));
            });
        }
        assert_eq!(read.len(), 9000);
        assert!(read.into_iter().eq(documents(&generator(), 3)));
    }
}
