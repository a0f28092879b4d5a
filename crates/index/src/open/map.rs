//! Files mapped into memory, and shared pieces of them.
#![allow(unsafe_code)]

use crate::format::IndexError;
use memmap2::Mmap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// A piece of a mapped file; cloning shares the mapping.
#[derive(Clone)]
pub struct Bytes {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl Bytes {
    /// Maps a whole file.
    pub fn map(path: &Path) -> Result<Bytes, IndexError> {
        let file = File::open(path).map_err(IndexError::io(path))?;
        // SAFETY: an index file never changes once it has its name (invariant 4): it is written under another name
        // and later unlinked, never cut or overwritten, and a mapping outlives the unlinking. Whoever truncates it by
        // other means gets SIGBUS at the next read; docs/format.md says so.
        let map = unsafe { Mmap::map(&file) }.map_err(IndexError::io(path))?;
        let range = 0..map.len();
        Ok(Bytes { map: Arc::new(map), range })
    }

    /// A piece that must lie inside; an empty one otherwise.
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

/// Asks the processor to have the bytes around a place at hand soon; a place beyond them is nothing's.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of a byte that is there; it reads nothing that the program could see, and every x86-64
        // processor has it.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = byte;
    }
}
