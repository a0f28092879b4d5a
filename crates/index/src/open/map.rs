//! Memory-mapped files and shared slices of them.
#![allow(unsafe_code)]

use crate::format::IndexError;
use memmap2::Mmap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a cache line, as most CPUs have it.
pub const CACHE_LINE: usize = 64;

/// A slice of a mapped file; clones share the mapping.
#[derive(Clone)]
pub struct Bytes {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Bytes {
    /// Maps a whole file.
    pub fn map(path: &Path) -> Result<Bytes, IndexError> {
        let file = File::open(path).map_err(IndexError::io(path))?;
        // SAFETY: an index file never changes once it has its name: the build writes it under another name and later
        // unlinks it, but never truncates or overwrites it, and a mapping survives the unlinking. If another program
        // truncates it, the next read raises SIGBUS (docs/format.md, "Changes under a running reader").
        let map = unsafe { Mmap::map(&file) }.map_err(IndexError::io(path))?;
        let range = 0..map.len();
        Ok(Bytes { map: Arc::new(map), range })
    }

    /// Where it lies in the file.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// A slice; empty if the range does not lie inside.
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        let is_inside = range.start <= range.end && range.end <= self.range.len();
        let range = if is_inside { self.range.start + range.start..self.range.start + range.end } else { 0..0 };
        Bytes { map: Arc::clone(&self.map), range }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }
}

/// Prefetches the cache line of byte `at`; does nothing beyond the end.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        prefetch_line(std::ptr::from_ref(byte));
    }
}

/// Prefetches all cache lines of some items, so that the misses overlap.
#[inline]
pub fn prefetch_all<T>(items: &[T]) {
    let start = items.as_ptr().cast::<u8>();
    (0..size_of_val(items)).step_by(CACHE_LINE).for_each(|offset| prefetch_line(start.wrapping_add(offset)));
}

#[inline]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no visible effect, whatever the address, and every x86-64 CPU has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
