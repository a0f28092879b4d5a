//! Reading CIFF: every number is checked before it is used.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use prost::Message;

use super::{
    CiffError, DocRecordMessage, Document, Header, HeaderMessage, Kind, List, PostingMessage, PostingsListMessage,
    VERSION, invalid,
};
use crate::corpus::decompress::decompressed;

/// The length of the longest header or document record, in bytes.
const SMALL_MESSAGE_BYTES: u64 = 1 << 24;

/// The most bytes that a posting can take, with a margin for wasteful encoders.
const POSTING_BYTES: u64 = 32;

/// How much of a message is read at a time, so that a false length does not allocate memory.
const PIECE_BYTES: u64 = 1 << 20;

/// Reads a CIFF file message by message.
pub struct CiffReader<R> {
    input: BufReader<R>,
    header: Header,
    lists_read: u32,
    documents_read: u32,
    /// The bytes of the current message.
    message: Vec<u8>,
}

impl CiffReader<Box<dyn Read + Send>> {
    /// Opens a file, plain, gzip or zstd, and reads its header.
    pub fn open(path: &Path) -> Result<Self, CiffError> {
        let file = File::open(path).and_then(|file| decompressed(file, &Arc::default()));
        let (_, reader) = file.map_err(|source| CiffError::Open { path: path.display().to_string(), source })?;
        CiffReader::new(reader)
    }
}

impl<R: Read> CiffReader<R> {
    /// Reads the header.
    pub fn new(input: R) -> Result<CiffReader<R>, CiffError> {
        let mut reader = CiffReader {
            input: BufReader::with_capacity(1 << 16, input),
            header: Header::default(),
            lists_read: 0,
            documents_read: 0,
            message: Vec::new(),
        };
        reader.read_message(Kind::Header, 1, SMALL_MESSAGE_BYTES)?;
        let message: HeaderMessage = decode(&reader.message, Kind::Header, 1)?;
        reader.header = Header::try_from(message).map_err(|what| invalid(Kind::Header, 1, what))?;
        Ok(reader)
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the next postings list; `None` after the last one that the header announces.
    pub fn next_list(&mut self) -> Result<Option<List>, CiffError> {
        if self.lists_read == self.header.lists {
            return Ok(None);
        }
        let number = self.lists_read + 1;
        let documents = self.header.documents;
        let limit = SMALL_MESSAGE_BYTES + POSTING_BYTES * u64::from(documents);
        self.read_message(Kind::PostingsList, number, limit)?;
        let message: PostingsListMessage = decode(&self.message, Kind::PostingsList, number)?;
        self.lists_read = number;
        checked_list(message, documents).map(Some).map_err(|what| invalid(Kind::PostingsList, number, what))
    }

    /// Reads the next document; `None` after the last one. Lists that were not read are checked and skipped.
    pub fn next_document(&mut self) -> Result<Option<Document>, CiffError> {
        while self.next_list()?.is_some() {}
        if self.documents_read == self.header.documents {
            return self.expect_end().map(|()| None);
        }
        let number = self.documents_read + 1;
        self.read_message(Kind::DocRecord, number, SMALL_MESSAGE_BYTES)?;
        let message: DocRecordMessage = decode(&self.message, Kind::DocRecord, number)?;
        let expected = self.documents_read;
        self.documents_read = number;
        checked_document(message, expected).map(Some).map_err(|what| invalid(Kind::DocRecord, number, what))
    }

    /// Returns the capacity of the message buffer.
    #[cfg(test)]
    pub(super) fn message_capacity(&self) -> usize {
        self.message.capacity()
    }

    fn expect_end(&mut self) -> Result<(), CiffError> {
        let number = self.documents_read;
        match self.read_byte() {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                let what = "data follows the last document that the header announces";
                Err(invalid(Kind::DocRecord, number, what.to_owned()))
            }
            Err(source) => Err(CiffError::Read { kind: Kind::DocRecord, number, source }),
        }
    }

    /// Reads a length and that many bytes into `self.message`.
    fn read_message(&mut self, kind: Kind, number: u32, limit: u64) -> Result<(), CiffError> {
        let failed = |source| CiffError::Read { kind, number, source };
        let length = self.read_length().map_err(failed)?;
        let length = length.ok_or(CiffError::Truncated { kind, number })?;
        if length > limit {
            let what =
                format!("a length of {length} bytes, more than the {limit} that it can have; is this a CIFF file?");
            return Err(invalid(kind, number, what));
        }
        self.message.clear();
        let mut missing = length;
        while missing > 0 {
            let piece = missing.min(PIECE_BYTES);
            let mut input = self.input.by_ref().take(piece);
            let read = input.read_to_end(&mut self.message).map_err(failed)? as u64;
            if read < piece {
                return Err(CiffError::Truncated { kind, number });
            }
            missing -= read;
        }
        Ok(())
    }

    /// Reads a varint; `None` if the file ends before or within it. An overlong varint is `u64::MAX`, above every
    /// limit.
    fn read_length(&mut self) -> io::Result<Option<u64>> {
        let mut length = 0u64;
        for shift in (0..63).step_by(7) {
            let Some(byte) = self.read_byte()? else {
                return Ok(None);
            };
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(length));
            }
        }
        Ok(Some(u64::MAX))
    }

    fn read_byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        loop {
            match self.input.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(byte[0])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn decode<M: Message + Default>(bytes: &[u8], kind: Kind, number: u32) -> Result<M, CiffError> {
    M::decode(bytes).map_err(|source| CiffError::Malformed { kind, number, source })
}

impl TryFrom<HeaderMessage> for Header {
    type Error = String;

    fn try_from(message: HeaderMessage) -> Result<Header, String> {
        let version = message.version;
        if version != VERSION {
            return Err(format!("version {version}, this program reads {VERSION}"));
        }
        let count = |name: &str, value: i32| u32::try_from(value).map_err(|_| format!("{name} is {value}"));
        let tokens = message.total_terms_in_collection;
        Ok(Header {
            lists: count("num_postings_lists", message.num_postings_lists)?,
            documents: count("num_docs", message.num_docs)?,
            total_lists: count("total_postings_lists", message.total_postings_lists)?,
            total_documents: count("total_docs", message.total_docs)?,
            total_tokens: u64::try_from(tokens).map_err(|_| format!("total_terms_in_collection is {tokens}"))?,
            average_length: message.average_doclength,
            description: message.description,
        })
    }
}

fn checked_list(message: PostingsListMessage, documents: u32) -> Result<List, String> {
    let PostingsListMessage { term, df, postings, .. } = message;
    if df != postings.len() as i64 {
        return Err(format!("term \"{term}\" has df {df} and {} postings", postings.len()));
    }
    // The previous document; -1 allows the first to be 0.
    let mut last = -1i64;
    let check = |(position, posting): (usize, PostingMessage)| {
        let PostingMessage { docid, tf } = posting;
        let document = i64::from(docid) + if position == 0 { 0 } else { last };
        if document <= last {
            return Err(format!(
                "term \"{term}\": document {document} follows {last} in posting {position}; gaps must be at least 1"
            ));
        }
        if document >= i64::from(documents) {
            return Err(format!(
                "term \"{term}\": document {document} in posting {position}, but the file has {documents}; \
                 are the numbers gaps?"
            ));
        }
        last = document;
        // In range: 0 <= document < documents, which is a u32.
        match u32::try_from(tf) {
            Ok(frequency @ 1..) => Ok((document as u32, frequency)),
            _ => Err(format!("term \"{term}\": frequency {tf} in posting {position}")),
        }
    };
    let postings = postings.into_iter().enumerate().map(check).collect::<Result<_, _>>()?;
    Ok(List { term, postings })
}

fn checked_document(message: DocRecordMessage, expected: u32) -> Result<Document, String> {
    let DocRecordMessage { docid, collection_docid: id, doclength } = message;
    if i64::from(docid) != i64::from(expected) {
        return Err(format!("document number {docid} where {expected} is expected; records must be in order"));
    }
    match u32::try_from(doclength) {
        Ok(length) => Ok(Document { id, length }),
        Err(_) => Err(format!("document \"{id}\" has length {doclength}")),
    }
}
