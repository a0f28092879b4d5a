//! Writing CIFF: numbers that the format cannot hold are refused.

use std::io::{self, Write};

use prost::Message;

use super::{
    CiffError, DocRecordMessage, Header, HeaderMessage, Kind, PostingMessage, PostingsListMessage, VERSION, invalid,
};

/// Writes a CIFF file: all lists, then all documents, then [`CiffWriter::finish`].
pub struct CiffWriter<W> {
    output: W,
    lists: u32,
    documents: u32,
    lists_written: u32,
    documents_written: u32,
    list: PostingsListMessage,
    /// The bytes of the current message with its length.
    message: Vec<u8>,
}

impl<W: Write> CiffWriter<W> {
    /// Writes the header. Counts above the 31 bits of the format are refused.
    pub fn new(output: W, header: &Header) -> Result<CiffWriter<W>, CiffError> {
        let count = |value: u32| {
            i32::try_from(value)
                .map_err(|_| invalid(Kind::Header, 1, format!("a count of {value}; CIFF holds up to {}", i32::MAX)))
        };
        let message = HeaderMessage {
            version: VERSION,
            num_postings_lists: count(header.lists)?,
            num_docs: count(header.documents)?,
            total_postings_lists: count(header.total_lists)?,
            total_docs: count(header.total_documents)?,
            total_terms_in_collection: i64::try_from(header.total_tokens)
                .map_err(|_| invalid(Kind::Header, 1, format!("{} tokens", header.total_tokens)))?,
            average_doclength: header.average_length,
            description: header.description.clone(),
        };
        let mut writer = CiffWriter {
            output,
            lists: header.lists,
            documents: header.documents,
            lists_written: 0,
            documents_written: 0,
            list: PostingsListMessage::default(),
            message: Vec::new(),
        };
        writer.write(&message)?;
        Ok(writer)
    }

    /// Writes the list of a term: documents strictly increasing, frequencies at least 1.
    pub fn write_list(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), CiffError> {
        let number = self.lists_written + 1;
        let refuse = |what: String| Err(invalid(Kind::PostingsList, number, what));
        if number > self.lists {
            return refuse(format!("the header announced {}", self.lists));
        }
        let mut list = std::mem::take(&mut self.list);
        list.term.clear();
        list.term.push_str(term);
        list.df = postings.len() as i64;
        list.cf = postings.iter().map(|(_, frequency)| i64::from(*frequency)).sum();
        list.postings.clear();
        let mut last = None;
        for &(document, frequency) in postings {
            let gap = match last {
                None => Some(document),
                Some(last) => document.checked_sub(last).filter(|gap| *gap > 0),
            };
            let (Some(gap), true) = (gap, document < self.documents) else {
                return refuse(format!("term \"{term}\": document {document} is out of order or range"));
            };
            let Ok(tf @ 1..) = i32::try_from(frequency) else {
                return refuse(format!("term \"{term}\": frequency {frequency}; CIFF holds 1 to {}", i32::MAX));
            };
            // Fits: a document number is less than the count in the header.
            list.postings.push(PostingMessage { docid: gap as i32, tf });
            last = Some(document);
        }
        let written = self.write(&list);
        self.list = list;
        self.lists_written = number;
        written
    }

    /// Writes the next document, after all lists.
    pub fn write_document(&mut self, id: &str, length: u32) -> Result<(), CiffError> {
        let number = self.documents_written + 1;
        let refuse = |what: String| Err(invalid(Kind::DocRecord, number, what));
        if self.lists_written < self.lists {
            return refuse(format!("only {} of {} lists are written", self.lists_written, self.lists));
        }
        if number > self.documents {
            return refuse(format!("the header announced {}", self.documents));
        }
        let Ok(doclength) = i32::try_from(length) else {
            return refuse(format!("a length of {length}; CIFF holds up to {}", i32::MAX));
        };
        // Fits: it is less than the count in the header.
        let message =
            DocRecordMessage { docid: self.documents_written as i32, collection_docid: id.to_owned(), doclength };
        self.documents_written = number;
        self.write(&message)
    }

    /// Flushes and returns the output; an error if the header announced more than was written.
    pub fn finish(mut self) -> Result<W, CiffError> {
        let incomplete = [
            (Kind::PostingsList, self.lists_written, self.lists),
            (Kind::DocRecord, self.documents_written, self.documents),
        ]
        .into_iter()
        .find(|(_, written, announced)| written < announced);
        if let Some((kind, written, announced)) = incomplete {
            let what = format!("missing, the header announced {announced}");
            return Err(invalid(kind, written + 1, what));
        }
        self.output.flush().map_err(CiffError::Write)?;
        Ok(self.output)
    }

    fn write(&mut self, message: &impl Message) -> Result<(), CiffError> {
        self.message.clear();
        self.message.reserve(message.encoded_len() + 10);
        // A vector grows as needed, so encoding cannot fail.
        message
            .encode_length_delimited(&mut self.message)
            .map_err(|error| CiffError::Write(io::Error::other(error)))?;
        self.output.write_all(&self.message).map_err(CiffError::Write)
    }
}
