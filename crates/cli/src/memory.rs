//! Memory that the system refuses ends the program with one line and status 1, after what is unfinished was removed, unless the
//! allocation is an [`attempt`](lanner_index::attempt).
//!
//! The alternative on stable Rust is the standard library's message with an abort, which leaves the files.
#![allow(unsafe_code)]

use crate::ending;
use lanner_index::attempt::is_attempt;
use lanner_index::unfinished::remove_unfinished;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Freed when there is no other memory, for what removing files needs.
const RESERVE: Layout = Layout::new::<[u8; 1 << 20]>();
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// The longest message.
const MESSAGE: usize = 256;

/// The system's allocator, which returns null only for an attempt.
pub struct Reporting;

/// Sets memory aside for the end. It costs an address range as long as nobody writes to it.
pub fn reserve() {
    // SAFETY: the layout is not empty. Without success there is no reserve.
    RESERVED.store(unsafe { System.alloc(RESERVE) }, Ordering::Release);
}

// SAFETY: forwards to `System`.
unsafe impl GlobalAlloc for Reporting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the same.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn checked(found: *mut u8, bytes: usize) -> *mut u8 {
    if found.is_null() && !is_attempt() {
        refused(bytes);
    }
    found
}

#[cold]
fn refused(bytes: usize) -> ! {
    if ending::claim() {
        free_reserve();
        let mut message = [0; MESSAGE];
        let mut rest = &mut message[..];
        let advice = "allow it more (ulimit -v), or give it less to do at once: a smaller --memory, fewer --threads";
        let _ = writeln!(rest, "error: out of memory: the system refused {} KiB more; {advice}", bytes.div_ceil(1024));
        let length = MESSAGE - rest.len();
        let _ = io::stderr().write_all(&message[..length]);
        remove_unfinished();
    }
    ending::exit(1)
}

fn free_reserve() {
    let reserve = RESERVED.swap(ptr::null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        // SAFETY: `reserve` allocated it with this layout, and the swap makes this the only thread that has it.
        unsafe { System.dealloc(reserve, RESERVE) }
    }
}

#[cfg(test)]
mod tests {
    use lanner_index::attempt::attempt;

    #[test]
    fn an_attempt_gets_an_error_and_the_program_goes_on() {
        // More than there are addresses.
        assert!(attempt(|| Vec::<u8>::new().try_reserve_exact(1 << 60)).is_err());
    }
}
