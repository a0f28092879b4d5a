//! Reports an index file that is truncated while it is mapped: reading beyond its end raises SIGBUS.
#![allow(unsafe_code)]

use std::ptr;

/// The exit status: `EX_IOERR` of sysexits.h.
const STATUS: libc::c_int = 74;

const MESSAGE: &str = "error: a file of the index was truncated while it was being read; \
                       restore it from a copy or rebuild the index with 'lanner index', then start again\n";

/// Installs a handler that ends the process with one line and status 74 on a read beyond the end of a mapped file.
pub fn report_truncated_files() {
    // SAFETY: `action` is a plain structure for which all zeros is a valid value; its handler has the signature that
    // SA_SIGINFO asks for and calls only functions that POSIX lists as safe in a signal handler. `main` calls this
    // once, before there are other threads. Without success the signal keeps its default action.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = report as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

extern "C" fn report(_signal: libc::c_int, _information: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: `write` and `_exit` are safe in a signal handler, and the message is a constant of the length given.
    // `_exit` never returns, so the read that raised the signal is not tried again.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(STATUS);
    }
}
