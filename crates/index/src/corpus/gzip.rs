//! The members of a gzip file, and the zeros with which some programs fill the rest of a block.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Decompresses the members of a gzip file one after the other; zeros after a member are skipped, as `gzip` does.
pub(super) struct GzipMembers<R> {
    /// `None` only while the next member begins.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(input: R) -> GzipMembers<R> {
        GzipMembers { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let length = member.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            let mut input = self.member.take().expect("a member was read").into_inner();
            if skip_zeros(&mut input)? {
                self.member = Some(GzDecoder::new(input));
            }
        }
        Ok(0)
    }
}

/// Skips zeros, and returns whether anything follows them.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros < bytes.len() {
            input.consume(zeros);
            return Ok(true);
        }
        if zeros == 0 {
            return Ok(false);
        }
        input.consume(zeros);
    }
}
