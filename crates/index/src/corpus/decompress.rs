//! A file as decompressed bytes, with the position in the file for progress and errors.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{CorpusError, Damage};
use super::files::name_of;
use super::gzip::GzipMembers;
use super::lines;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One or more gzip members, and zeros after them.
    Gzip,
    /// One or more zstd frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Compression::None => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

impl Compression {
    fn of(beginning: &[u8]) -> Compression {
        match beginning {
            // RFC 1952: two magic bytes, then the only compression method defined.
            [0x1f, 0x8b, 0x08, ..] => Compression::Gzip,
            // RFC 8878: a frame, or a skippable frame, which parallel compressors write first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// Counts the bytes that the layer above has consumed.
struct Counted<R> {
    inner: R,
    bytes_used: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.bytes_used.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.bytes_used.fetch_add(length as u64, Ordering::Relaxed);
        self.inner.consume(length);
    }
}

/// The size of the read buffer, and how much a reader asks for at a time where the length is unknown.
pub(super) const BUFFER_BYTES: usize = 1 << 16;

/// The largest window of a zstd frame (`zstd --long=31`), in bits.
const ZSTD_WINDOW_BITS: u32 = 31;

/// Detects the compression of `input` and returns a decompressing reader, which adds the bytes that it consumes
/// from `input` to `bytes_used`.
pub(super) fn decompressed(
    input: impl Read + Send + 'static,
    bytes_used: &Arc<AtomicU64>,
) -> io::Result<(Compression, Box<dyn Read + Send>)> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let mut beginning = Vec::with_capacity(4);
    input.by_ref().take(4).read_to_end(&mut beginning)?;
    let compression = Compression::of(&beginning);
    let counted = Counted { inner: Cursor::new(beginning).chain(input), bytes_used: Arc::clone(bytes_used) };
    let reader: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(counted),
        Compression::Gzip => Box::new(GzipMembers::new(counted)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(counted)?;
            decoder.window_log_max(ZSTD_WINDOW_BITS)?;
            Box::new(decoder)
        }
    };
    Ok((compression, reader))
}

/// The decompressed bytes of one file, without its byte order mark.
pub(super) struct Decompressed {
    source: Arc<str>,
    compression: Compression,
    reader: Box<dyn Read + Send>,
    /// Bytes that were read from `reader` and not returned yet.
    ahead: Vec<u8>,
    /// What went wrong after them.
    failure: Option<CorpusError>,
    bytes_used: Arc<AtomicU64>,
    /// The value of `bytes_used` when this file was opened.
    bytes_used_before: u64,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Decompressed {
    pub(super) fn open(path: &Path, bytes_used: &Arc<AtomicU64>) -> Result<Decompressed, CorpusError> {
        let name = name_of(path);
        let file = File::open(path).map_err(|source| CorpusError::Open { path: name.to_string(), source })?;
        Decompressed::new(name, file, bytes_used)
    }

    pub(super) fn new(
        source: Arc<str>,
        input: impl Read + Send + 'static,
        bytes_used: &Arc<AtomicU64>,
    ) -> Result<Decompressed, CorpusError> {
        let bytes_used_before = bytes_used.load(Ordering::Relaxed);
        let (compression, reader) = decompressed(input, bytes_used)
            .map_err(|error| CorpusError::Open { path: source.to_string(), source: error })?;
        let mut opened = Decompressed {
            source,
            compression,
            reader,
            ahead: Vec::new(),
            failure: None,
            bytes_used: Arc::clone(bytes_used),
            bytes_used_before,
        };
        if opened.peek(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            opened.ahead.clear();
        }
        Ok(opened)
    }

    pub(super) fn source(&self) -> Arc<str> {
        Arc::clone(&self.source)
    }

    /// Returns the next `length` bytes, fewer at the end or before damage, without consuming them; an error only if
    /// there are none before the damage.
    pub(super) fn peek(&mut self, length: usize) -> Result<&[u8], CorpusError> {
        if self.ahead.len() < length && self.failure.is_none() {
            let mut ahead = std::mem::take(&mut self.ahead);
            match self.read_directly(&mut ahead, length) {
                Err(error) if ahead.is_empty() => return Err(error),
                read => self.failure = read.err(),
            }
            self.ahead = ahead;
        }
        Ok(&self.ahead[..length.min(self.ahead.len())])
    }

    /// Returns what went wrong after the bytes that [`Decompressed::peek`] returned.
    pub(super) fn take_failure(&mut self) -> Option<CorpusError> {
        self.failure.take()
    }

    /// Appends the next `length` bytes to `bytes`, fewer only at the end, and returns their number.
    pub(super) fn read_into(&mut self, bytes: &mut Vec<u8>, length: usize) -> Result<usize, CorpusError> {
        let start = bytes.len();
        let from_ahead = length.min(self.ahead.len());
        bytes.extend(self.ahead.drain(..from_ahead));
        if from_ahead < length {
            if let Some(error) = self.take_failure() {
                return Err(error);
            }
            self.read_directly(bytes, start + length)?;
        }
        Ok(bytes.len() - start)
    }

    /// Takes back the last bytes that [`Decompressed::read_into`] returned.
    pub(super) fn give_back(&mut self, mut tail: Vec<u8>) {
        tail.append(&mut self.ahead);
        self.ahead = tail;
    }

    /// Reads until `bytes` holds `target_length` bytes or the file ends.
    fn read_directly(&mut self, bytes: &mut Vec<u8>, target_length: usize) -> Result<(), CorpusError> {
        let wanted = (target_length - bytes.len()) as u64;
        match self.reader.by_ref().take(wanted).read_to_end(bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: io::Error) -> CorpusError {
        let path = self.source.to_string();
        let position = self.bytes_used.load(Ordering::Relaxed) - self.bytes_used_before;
        // Decoders pass errors of the operating system on unchanged; their own errors have no error number.
        if self.compression == Compression::None || error.raw_os_error().is_some() {
            return CorpusError::Read { path, position, source: error };
        }
        CorpusError::Damaged { path, damage: Damage { compression: self.compression, position, error } }
    }
}

/// A whole file of text without NUL bytes: queries, judgements, runs or ranks.
pub struct Text {
    source: Arc<str>,
    bytes: Vec<u8>,
}

impl Text {
    /// Opens a file, plain, gzip or zstd. A file with a NUL byte is an error; a byte order mark is skipped.
    pub fn open(path: &Path) -> Result<Text, CorpusError> {
        Text::of(Decompressed::open(path, &Arc::default())?)
    }

    /// Reads from `input` as [`Text::open`] does; `path` names it in errors.
    pub fn read(path: &Path, mut input: impl Read) -> Result<Text, CorpusError> {
        let mut bytes = Vec::new();
        let failed = |source| CorpusError::Open { path: path.display().to_string(), source };
        input.read_to_end(&mut bytes).map_err(failed)?;
        Text::of(Decompressed::new(name_of(path), Cursor::new(bytes), &Arc::default())?)
    }

    fn of(mut file: Decompressed) -> Result<Text, CorpusError> {
        let mut bytes = Vec::new();
        while file.read_into(&mut bytes, BUFFER_BYTES)? == BUFFER_BYTES {}
        match memchr::memchr(0, &bytes) {
            Some(position) => Err(CorpusError::Binary { path: file.source.to_string(), position }),
            None => Ok(Text { source: file.source, bytes }),
        }
    }

    /// The text of a file of ids, which must be exact: invalid UTF-8 is an error.
    pub fn strict(self) -> Result<String, CorpusError> {
        String::from_utf8(self.bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            CorpusError::InvalidUtf8 { path: self.source.to_string(), line: 1 + lines::count(valid) }
        })
    }

    /// The text with U+FFFD in place of invalid UTF-8, and the number of lines that had some.
    pub fn lossy(self) -> (String, usize) {
        let lines = self.bytes.split(|&byte| byte == b'\n');
        let invalid = lines.filter(|line| str::from_utf8(line).is_err()).count();
        (String::from_utf8_lossy(&self.bytes).into_owned(), invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    fn read_all(bytes: Vec<u8>) -> Result<Vec<u8>, CorpusError> {
        let mut file = Decompressed::new("memory".into(), Cursor::new(bytes), &Arc::default())?;
        let mut read = Vec::new();
        while file.read_into(&mut read, 7)? == 7 {}
        Ok(read)
    }

    /// Gives one byte at a time, as a slow pipe may.
    struct Drip(Cursor<Vec<u8>>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn several_members_and_frames_are_read_as_one() {
        let (first, second) = (b"first half, ".as_slice(), b"second half".as_slice());
        let whole = [first, second].concat();
        assert_eq!(read_all([gzip(first), gzip(second)].concat()).unwrap(), whole);
        assert_eq!(read_all([zstd_frame(first), zstd_frame(second)].concat()).unwrap(), whole);
        assert_eq!(read_all(whole.clone()).unwrap(), whole);
    }

    #[test]
    fn zeros_after_a_gzip_member_are_skipped_and_anything_else_is_damage() {
        let zeros = |count| vec![0; count];
        // More zeros than a buffer holds, and a member after them.
        for padding in [1, 512, 200_000] {
            assert_eq!(read_all([gzip(b"text"), zeros(padding)].concat()).unwrap(), b"text");
            let two = [gzip(b"one, "), zeros(padding), gzip(b"two"), zeros(3)].concat();
            assert_eq!(read_all(two).unwrap(), b"one, two");
        }
        let error = read_all([gzip(b"text"), zeros(9), b"garbage and more".to_vec()].concat()).unwrap_err();
        assert!(matches!(error, CorpusError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_text_is_decompressed_and_anything_else_is_refused_with_its_position() {
        let text = |bytes: &[u8]| {
            Text::read(Path::new("log"), bytes).and_then(Text::strict).map_err(|error| error.to_string())
        };
        for packed in [b"\xef\xbb\xbfone\ntwo\n".to_vec(), gzip(b"one\ntwo\n"), zstd_frame(b"one\ntwo\n")] {
            assert_eq!(text(&packed).unwrap(), "one\ntwo\n");
        }
        let invalid = "log:2: not valid UTF-8; convert the file to UTF-8";
        assert_eq!(text(&gzip(b"one\ntw\xf6\n")).unwrap_err(), invalid);
        let binary = "log: a NUL at byte 5: a binary file where text is expected; check that it is the right file";
        assert_eq!(text(&zstd_frame(b"one\nt\0")).unwrap_err(), binary);
        assert!(text(&gzip(b"one\n")[..12]).unwrap_err().starts_with("log: the gzip data ends too early"));
    }

    #[test]
    fn a_skippable_frame_may_come_first() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let bytes = [skippable.as_slice(), &zstd_frame(b"text")].concat();
        assert_eq!(read_all(bytes).unwrap(), b"text");
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once_and_only_at_the_start() {
        let text = b"\xef\xbb\xbf\xef\xbb\xbfa\xef\xbb\xbf";
        assert_eq!(read_all(text.to_vec()).unwrap(), &text[3..]);
        assert_eq!(read_all(gzip(text)).unwrap(), &text[3..]);
        assert_eq!(read_all(b"\xef\xbb".to_vec()).unwrap(), b"\xef\xbb");
    }

    #[test]
    fn the_compression_is_found_when_bytes_come_one_by_one() {
        for bytes in [gzip(b"dripping"), zstd_frame(b"dripping")] {
            let mut file = Decompressed::new("pipe".into(), Drip(Cursor::new(bytes.clone())), &Arc::default()).unwrap();
            let mut read = Vec::new();
            assert_eq!(file.read_into(&mut read, 100).unwrap(), 8);
            assert_eq!(read, b"dripping");
        }
    }

    #[test]
    fn every_truncation_of_compressed_data_names_the_file_and_the_byte() {
        let text: Vec<u8> = (0..3000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for whole in [gzip(&text), zstd_frame(&text)] {
            for length in [5, 20, 100, whole.len() / 2, whole.len() - 1] {
                let error = read_all(whole[..length].to_vec()).unwrap_err().to_string();
                assert!(error.starts_with("memory: the "), "{error}");
                assert!(error.contains(&format!("ends too early, at byte {length};")), "{error}");
            }
        }
    }

    #[test]
    fn a_flipped_byte_is_damage() {
        let mut bytes = gzip(b"some text that is long enough to be compressed, compressed");
        let last = bytes.len() - 6;
        bytes[last] ^= 1;
        let error = read_all(bytes).unwrap_err();
        assert!(matches!(error, CorpusError::Damaged { .. }), "{error}");
    }

    #[test]
    fn bytes_used_end_at_the_size_of_the_file() {
        for bytes in [gzip(b"abc"), zstd_frame(b"abc"), b"abc".to_vec(), Vec::new()] {
            let bytes_used = Arc::default();
            let mut file = Decompressed::new("memory".into(), Cursor::new(bytes.clone()), &bytes_used).unwrap();
            file.read_into(&mut Vec::new(), 100).unwrap();
            assert_eq!(bytes_used.load(Ordering::Relaxed), bytes.len() as u64);
        }
    }
}
