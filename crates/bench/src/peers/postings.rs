//! Writes the postings of an index as the files that PISA builds its index from; the other peers read them too.
//!
//! `inv.docs` and `inv.freqs` hold one sequence for each term, sorted by term: a length, then numbers of 32 bits. The
//! first sequence of `inv.docs` has length 1 and holds the number of documents. `inv.sizes` is one sequence of document
//! lengths; `fwd.terms` and `fwd.documents` name terms and documents, one per line. `list_lengths`, which is not a file
//! of PISA, holds the lengths of all lists, so that a reader does not have to walk through them.

use crate::error::{BenchError, Result};
use lanner_index::DocId;
use lanner_index::codec::BLOCK;
use lanner_index::open::{Column, Index};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of 32-bit numbers, or of lines.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(folder: &Path, name: &str) -> Result<Output> {
        let path = folder.join(name);
        let file = File::create(&path).map_err(BenchError::io(&path))?;
        Ok(Output { path, file: BufWriter::with_capacity(1 << 20, file) })
    }

    fn numbers(&mut self, numbers: &[u32]) -> Result<()> {
        let written = numbers.iter().try_for_each(|number| self.file.write_all(&number.to_le_bytes()));
        written.map_err(BenchError::io(&self.path))
    }

    fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.file, "{line}").map_err(BenchError::io(&self.path))
    }

    fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(BenchError::io(&self.path))
    }
}

/// Writes the postings of an index to a folder.
pub fn write_postings(index: &Index, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    write_lists(index, folder)?;
    let mut ids = Output::create(folder, "fwd.documents")?;
    let mut sizes = Output::create(folder, "inv.sizes")?;
    sizes.numbers(&[index.documents()])?;
    for document in (0..index.documents()).map(DocId) {
        ids.line(&index.id(document)?)?;
        sizes.numbers(&[index.length(document)])?;
    }
    ids.finish()?;
    sizes.finish()
}

fn write_lists(index: &Index, folder: &Path) -> Result<()> {
    let create = |name| Output::create(folder, name);
    let (mut documents, mut frequencies) = (create("inv.docs")?, create("inv.freqs")?);
    let (mut lengths, mut terms) = (create("list_lengths")?, create("fwd.terms")?);
    documents.numbers(&[1, index.documents()])?;
    let segment = index.segment();
    let mut block_buffers = ([0; BLOCK], [0; BLOCK]);
    let mut lexicon = segment.terms();
    while let Some((number, term)) = lexicon.read()? {
        let list = segment.list(number)?;
        terms.line(term)?;
        for output in [&mut lengths, &mut documents, &mut frequencies] {
            output.numbers(&[list.postings()])?;
        }
        for block in 0..list.blocks() {
            let count = list.decode_documents(block, &mut block_buffers.0);
            list.decode_values(Column::Frequency, block, &mut block_buffers.1);
            documents.numbers(&block_buffers.0[..count])?;
            frequencies.numbers(&block_buffers.1[..count])?;
        }
    }
    [documents, frequencies, lengths, terms].into_iter().try_for_each(Output::finish)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::build::{BuildOptions, Quiet, build};
    use lanner_index::corpus::{Corpus, CorpusOptions};
    use lanner_index::text::Analyzer;

    #[test]
    fn postings_are_written_list_by_list_in_the_order_of_terms() {
        let folder = tempfile::tempdir().unwrap();
        let documents = [("a", "", "falcon falcon air"), ("b", "", "falcon")];
        let documents = documents.map(|(id, title, text)| (id.to_owned(), title.to_owned(), text.to_owned()));
        let corpus = Corpus::from_documents(documents.to_vec(), CorpusOptions::default()).unwrap();
        let options = BuildOptions { analyzer: Analyzer::parse("simple").unwrap(), threads: 1, ..Default::default() };
        build(folder.path(), corpus, &options, &Quiet).unwrap();
        let index = Index::open(folder.path()).unwrap();
        let out = folder.path().join("postings");
        write_postings(&index, &out).unwrap();
        let numbers = |name: &str| {
            let bytes = std::fs::read(out.join(name)).unwrap();
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect::<Vec<u32>>()
        };
        assert_eq!(numbers("inv.docs"), [1, 2, 1, 0, 2, 0, 1]);
        assert_eq!(numbers("inv.freqs"), [1, 1, 2, 2, 1]);
        assert_eq!(numbers("inv.sizes"), [2, 3, 1]);
        assert_eq!(numbers("list_lengths"), [1, 2]);
        assert_eq!(std::fs::read_to_string(out.join("fwd.terms")).unwrap(), "air\nfalcon\n");
        assert_eq!(std::fs::read_to_string(out.join("fwd.documents")).unwrap(), "a\nb\n");
    }
}
