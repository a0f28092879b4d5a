//! Variable-length integers: seven bits a byte, least significant first, the high bit set on all but the last.

use std::io::{self, Read};

/// Appends `value`.
#[inline]
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value and advances `bytes` past it; `None` if the bytes end early or the value does not fit.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    read_long(bytes)
}

fn read_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7F);
        if i == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Skips `count` values; `None` if the bytes end early. Values are not checked.
#[inline]
pub fn skip(bytes: &mut &[u8], mut count: usize) -> Option<()> {
    // The high bit is clear in the last byte of each value.
    while let Some((word, rest)) = bytes.split_first_chunk() {
        let mut ends = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        let values = ends.count_ones() as usize;
        if values < count {
            (count, *bytes) = (count - values, rest);
            continue;
        }
        for _ in 1..count {
            ends &= ends - 1;
        }
        *bytes = if count > 0 { &bytes[ends.trailing_zeros() as usize / 8 + 1..] } else { bytes };
        return Some(());
    }
    for _ in 0..count {
        let last = bytes.iter().position(|&byte| byte < 0x80)?;
        *bytes = &bytes[last + 1..];
    }
    Some(())
}

/// Reads a value from a file.
pub fn read_from(input: &mut impl Read) -> io::Result<u64> {
    let mut value = 0;
    for i in 0..10 {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7F) << (7 * i);
        if byte[0] < 0x80 {
            return Ok(value);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Reads a value that must fit in 32 bits.
#[inline]
pub fn read_u32(bytes: &mut &[u8]) -> Option<u32> {
    read(bytes).and_then(|value| u32::try_from(value).ok())
}

/// Takes the next `count` bytes and advances past them.
#[inline]
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(values: Vec<u64>) {
            let mut bytes = Vec::new();
            for &value in &values {
                write(value, &mut bytes);
                write(value >> 40, &mut bytes);
            }
            let (mut rest, mut file) = (&bytes[..], &bytes[..]);
            for value in values {
                prop_assert_eq!(read_from(&mut file).unwrap(), value);
                prop_assert_eq!(read_from(&mut file).unwrap(), value >> 40);
                prop_assert_eq!(read(&mut rest), Some(value));
                prop_assert_eq!(read(&mut rest), Some(value >> 40));
            }
            prop_assert_eq!(read(&mut rest), None);
            prop_assert!(read_from(&mut file).is_err());
        }

        #[test]
        fn what_is_skipped_is_what_would_be_read(values: Vec<u64>, shift in 0u32..60, count in 0usize..40, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| write(value >> shift, &mut bytes));
            let end = bytes.len();
            let (mut skipped, mut taken) = (&bytes[..], &bytes[..]);
            let is_read = (0..count).all(|_| read(&mut taken).is_some());
            prop_assert_eq!(skip(&mut skipped, count).is_some(), is_read);
            if is_read {
                prop_assert_eq!(skipped, taken);
            }
            // Whatever follows the values.
            bytes.extend_from_slice(&rest);
            let mut skipped = &bytes[..];
            prop_assert_eq!(skip(&mut skipped, values.len()), Some(()));
            prop_assert_eq!(skipped, &bytes[end..]);
            _ = skip(&mut &rest[..], count);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while !rest.is_empty() && read(&mut rest).is_some() {}
        }
    }

    #[test]
    fn a_value_over_64_bits_is_refused() {
        let mut bytes: &[u8] = &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert_eq!(read(&mut bytes), None);
    }
}
