//! Sorts records by number on disk: each record goes to the bucket of its number, and one bucket at a time is sorted in
//! memory. All files are read and written sequentially.

use crate::build::BuildError;
use crate::build::write::Spool;
use crate::format::varint;
use std::path::Path;

/// The most buckets; each has a write buffer.
const MAX_BUCKETS: u64 = 32;

/// Collects records in any order.
pub struct Buckets {
    buckets: Vec<Spool>,
    /// The number of consecutive record numbers in a bucket.
    bucket_numbers: u32,
    head: Vec<u8>,
}

impl Buckets {
    /// Creates up to `buckets` buckets in a folder for the records `0..count`.
    pub fn create(folder: &Path, name: &str, count: u32, buckets: u64) -> Result<Buckets, BuildError> {
        let bucket_numbers = count.div_ceil(buckets.clamp(1, MAX_BUCKETS) as u32).max(1);
        let bucket = |number| Spool::create(folder.join(format!("{name}-{number}")));
        let buckets = (0..count.div_ceil(bucket_numbers)).map(bucket).collect::<Result<_, _>>()?;
        Ok(Buckets { buckets, bucket_numbers, head: Vec::new() })
    }

    /// Adds the record with a number.
    pub fn push(&mut self, number: u32, record: &[u8]) -> Result<(), BuildError> {
        self.head.clear();
        varint::write(u64::from(number), &mut self.head);
        varint::write(record.len() as u64, &mut self.head);
        let bucket = &mut self.buckets[(number / self.bucket_numbers) as usize];
        bucket.write(&self.head)?;
        bucket.write(record)
    }

    /// The records, sorted by number.
    pub fn records(self) -> Records {
        Records { buckets: self.buckets.into_iter(), bytes: Vec::new(), spans: Vec::new().into_iter() }
    }
}

/// Iterates over records, sorted by number.
pub struct Records {
    buckets: std::vec::IntoIter<Spool>,
    /// The records of the current bucket.
    bytes: Vec<u8>,
    /// The number, start and end of each record still to come.
    spans: std::vec::IntoIter<(u32, usize, usize)>,
}

impl Records {
    /// The next record.
    pub fn next(&mut self) -> Result<Option<&[u8]>, BuildError> {
        while self.spans.as_slice().is_empty() {
            let Some(bucket) = self.buckets.next() else {
                return Ok(None);
            };
            self.bytes = bucket.into_bytes()?;
            self.spans = spans(&self.bytes).ok_or(BuildError::DamagedFile)?.into_iter();
        }
        Ok(self.spans.next().map(|(_, start, end)| &self.bytes[start..end]))
    }
}

/// The number, start and end of each record of a bucket, sorted by number; `None` if the bytes are malformed.
fn spans(bytes: &[u8]) -> Option<Vec<(u32, usize, usize)>> {
    let (mut rest, mut spans) = (bytes, Vec::new());
    while !rest.is_empty() {
        let number = varint::read_u32(&mut rest)?;
        let length = varint::read(&mut rest)? as usize;
        let start = bytes.len() - rest.len();
        varint::take(&mut rest, length)?;
        spans.push((number, start, start + length));
    }
    spans.sort_unstable();
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn records_come_back_in_the_order_of_their_numbers(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..200),
            buckets in 0u64..50,
            seed in any::<u64>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let count = records.len() as u32;
            let mut buckets = Buckets::create(folder.path(), "test", count, buckets).unwrap();
            let mut numbers: Vec<u32> = (0..count).collect();
            numbers.sort_by_key(|&number| (u64::from(number) + 1).wrapping_mul(seed | 1));
            for number in numbers {
                buckets.push(number, &records[number as usize]).unwrap();
            }
            let mut found = Vec::new();
            let mut sorted = buckets.records();
            while let Some(record) = sorted.next().unwrap() {
                found.push(record.to_vec());
            }
            prop_assert_eq!(found, records);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "buckets are removed");
        }
    }
}
