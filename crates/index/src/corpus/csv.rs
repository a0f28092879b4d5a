//! CSV as in RFC 4180: quotes around fields, doubled quotes and line ends inside them. The first record names columns.
//!
//! The delimiter is a comma, or a semicolon or tab if the header has one of them and no comma.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::batch::Delivery;
use super::decompress::{BUFFER_BYTES, Decompressed};
use super::error::CorpusError;
use super::json::missing_id;
use super::lines;
use super::schema::{Columns, Schema};

/// The longest header, in bytes.
const HEADER_BYTES: usize = 1 << 20;

fn reader(delimiter: u8) -> Reader {
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    // A reader skips a byte order mark before its first byte, but records lie anywhere in a file.
    reader.read_record(b"\n", &mut [0], &mut [0]);
    reader
}

/// Finds the ends of records in bytes that come piece after piece.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    reader: Reader,
    /// Where the reader writes fields, which are not used.
    scratch: Vec<u8>,
    fields: Vec<usize>,
}

impl Ends {
    pub(super) fn new(delimiter: u8) -> Ends {
        Ends { reader: reader(delimiter), scratch: vec![0; 1 << 12], fields: vec![0; 1 << 8] }
    }

    /// Reads on, and returns the position after the first record that ends; `None` if none does.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let (result, read, _, _) = self.reader.read_record(&bytes[at..], &mut self.scratch, &mut self.fields);
            at += read;
            if matches!(result, ReadRecordResult::Record) {
                return Some(at);
            }
        }
        None
    }
}

/// A record: its fields one after the other, and where each ends.
#[derive(Default)]
struct Row {
    text: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
}

/// How the reading of a record ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With a line end, or with the bytes.
    Whole,
    /// With the bytes, inside quotes.
    Open,
    /// Nothing but line ends was left.
    Nothing,
}

impl Row {
    /// Reads a record, and returns how many bytes it takes.
    fn read(&mut self, reader: &mut Reader, bytes: &[u8]) -> (End, usize) {
        let (mut read, mut written) = (0, 0);
        self.fields = 0;
        // At the end of the bytes, a line feed ends the record, unless it is inside quotes; then an empty input does.
        let mut endings = [b"\n".as_slice(), b""].into_iter();
        let mut input = bytes;
        let mut end = End::Whole;
        loop {
            self.make_space(written);
            let (result, consumed, wrote, fields) =
                reader.read_record(input, &mut self.text[written..], &mut self.ends[self.fields..]);
            input = &input[consumed..];
            read += consumed;
            written += wrote;
            self.fields += fields;
            match result {
                ReadRecordResult::Record => return (end, read.min(bytes.len())),
                ReadRecordResult::End => return (End::Nothing, bytes.len()),
                ReadRecordResult::InputEmpty => match endings.next() {
                    Some(ending) => {
                        end = if ending.is_empty() { End::Open } else { End::Whole };
                        input = ending;
                    }
                    None => return (End::Nothing, bytes.len()),
                },
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
            }
        }
    }

    fn make_space(&mut self, written: usize) {
        if written == self.text.len() {
            self.text.resize((written * 2).max(1 << 10), 0);
        }
        if self.fields == self.ends.len() {
            self.ends.resize((self.fields * 2).max(1 << 5), 0);
        }
    }

    /// Returns a field of a record that is UTF-8.
    fn field(&self, number: usize) -> Option<&str> {
        let ends = &self.ends[..self.fields];
        let end = *ends.get(number)?;
        let start = if number == 0 { 0 } else { ends[number - 1] };
        std::str::from_utf8(&self.text[start..end]).ok()
    }
}

/// Returns the names of the columns if `bytes` begin with a whole header, and its length.
pub(super) fn header(bytes: &[u8]) -> Option<(Columns, usize)> {
    let delimiter = delimiter(bytes);
    let length = Ends::new(delimiter).next(bytes).unwrap_or(bytes.len());
    let mut row = Row::default();
    let (end, _) = row.read(&mut reader(delimiter), &bytes[..length]);
    if end != End::Whole {
        return None;
    }
    let names: Option<Vec<String>> =
        (0..row.fields).map(|number| row.field(number).map(|name| name.trim().to_owned())).collect();
    Some((Columns { delimiter, names: names?, fields: Vec::new() }, length))
}

fn delimiter(bytes: &[u8]) -> u8 {
    let bytes = bytes.trim_ascii_start();
    let line = &bytes[..lines::line_end(bytes).unwrap_or(bytes.len())];
    b",;\t".iter().copied().find(|delimiter| line.contains(delimiter)).unwrap_or(b',')
}

/// Reads the header of a file; the schema becomes that of its columns. Returns the lines of the header.
pub(super) fn open(file: &mut Decompressed, schema: &mut Schema) -> Result<u64, CorpusError> {
    let beginning = file.peek(HEADER_BYTES)?;
    if beginning.is_empty() {
        // A file without documents needs no header.
        return Ok(0);
    }
    let found = header(beginning);
    let path = || file.source().to_string();
    let (mut columns, length) = found.ok_or_else(|| CorpusError::NoHeader { path: path() })?;
    columns.fields = columns.names.iter().map(|name| schema.column(name)).collect();
    if !schema.has_id(&columns.fields) {
        let what = missing_id(schema, &columns.names);
        return Err(CorpusError::NoIdColumn { path: path(), what });
    }
    schema.columns = columns;
    let mut header = Vec::with_capacity(length.min(BUFFER_BYTES));
    file.read_into(&mut header, length)?;
    Ok(lines::count(&header))
}

pub(super) fn documents(bytes: &[u8], first_line: u64, delivery: &mut Delivery<'_, '_>) {
    let schema = delivery.schema;
    let mut reader = reader(schema.columns.delimiter);
    let mut row = Row::default();
    let mut columns: Vec<Option<usize>> = vec![None; schema.names.len()];
    // Of two columns of one name, the first counts.
    for (number, field) in schema.columns.fields.iter().enumerate().rev() {
        if let Some(field) = field {
            columns[*field] = Some(number);
        }
    }
    let (mut start, mut line) = (0, first_line);
    while start < bytes.len() {
        let blank = bytes[start..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
        line += lines::count(&bytes[start..start + blank]);
        start += blank;
        let (end, length) = row.read(&mut reader, &bytes[start..]);
        if end != End::Nothing {
            let record = &bytes[start..start + length];
            one_record(record, end, line, (&row, &columns), delivery);
            line += lines::count(record);
        }
        start += length;
    }
}

fn one_record(
    record: &[u8],
    end: End,
    line: u64,
    (row, columns): (&Row, &[Option<usize>]),
    delivery: &mut Delivery<'_, '_>,
) {
    let expected = delivery.schema.columns.names.len();
    if delivery.text(record, line).is_none() {
        return;
    }
    if end == End::Open {
        delivery.problem(
            line,
            "a quote that is not closed, and nothing after it is read; is the file complete?".to_owned(),
        );
    } else if row.fields != expected {
        let what = format!("{} columns, but the header has {expected}; are quotes missing?", row.fields);
        delivery.problem(line, what);
    } else {
        let field = |field: usize| columns[field].and_then(|column| row.field(column));
        if delivery.schema.value(0, &field).unwrap_or("").trim().is_empty() {
            return delivery.problem(line, "the column of the id is empty".to_owned());
        }
        let schema = delivery.schema;
        delivery.document(line, field, &[], || schema.columns.names.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str) -> Vec<(Vec<String>, End)> {
        let (mut reader, mut row) = (reader(b','), Row::default());
        let (mut start, mut rows) = (0, Vec::new());
        while start < text.len() {
            let (end, length) = row.read(&mut reader, &text.as_bytes()[start..]);
            if end != End::Nothing {
                rows.push(((0..row.fields).map(|number| row.field(number).unwrap().to_owned()).collect(), end));
            }
            start += length;
        }
        rows
    }

    #[test]
    fn quotes_hold_delimiters_line_ends_and_doubled_quotes() {
        let row = |fields: &[&str], end| (fields.iter().map(|field| field.to_string()).collect::<Vec<_>>(), end);
        assert_eq!(
            rows("a,\"b,\"\"c\"\"\nd\"\r\n5\" pipe,\n\nlast,\"\"\n"),
            [row(&["a", "b,\"c\"\nd"], End::Whole), row(&["5\" pipe", ""], End::Whole), row(&["last", ""], End::Whole)]
        );
        assert_eq!(rows("a,b"), [row(&["a", "b"], End::Whole)]);
        assert_eq!(rows("a,\"b\nc"), [row(&["a", "b\nc\n"], End::Open)]);
    }

    #[test]
    fn a_header_names_columns_and_shows_the_delimiter() {
        let names = |text: &str| header(text.as_bytes()).map(|(columns, length)| (columns.names.join("|"), length));
        assert_eq!(names("id, text\n1,a\n"), Some(("id|text".to_owned(), 9)));
        assert_eq!(names("id;\"a;\nb\"\r\n"), Some(("id|a;\nb".to_owned(), 10)));
        assert_eq!(names("id\ttext"), Some(("id|text".to_owned(), 7)));
        assert_eq!(names("id,\"open"), None);
        assert_eq!(names(""), None);
    }

    fn quoted(field: &str) -> String {
        format!("\"{}\"", field.replace('"', "\"\""))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_cut_at_records(
            table in prop::collection::vec(prop::collection::vec("[a\",;\r\n é]{0,6}", 2), 0..8),
            piece in 1usize..20,
        ) {
            let lines: Vec<String> = table.iter().map(|row| {
                row.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\n"
            }).collect();
            let text = lines.concat();
            let read: Vec<Vec<String>> = rows(&text).into_iter().map(|(row, _)| row).collect();
            prop_assert_eq!(read, table);
            let mut ends = Ends::new(b',');
            let mut found = Vec::new();
            for (number, bytes) in text.as_bytes().chunks(piece).enumerate() {
                let mut at = 0;
                while let Some(length) = ends.next(&bytes[at..]) {
                    at += length;
                    found.push(number * piece + at);
                }
            }
            let expected: Vec<usize> = lines.iter().scan(0, |at, line| { *at += line.len(); Some(*at) }).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
