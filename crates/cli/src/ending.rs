//! How the program ends before its command does: one line on standard error, and nothing unfinished left behind.

use lanner_index::unfinished::remove_unfinished;
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set by the thread that ends the process.
static ENDS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has set `ENDS`.
    static ENDS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Lets one thread end the process: returns for that one, and never for any other. For a thread that was it already this
/// is false.
pub fn claim() -> bool {
    if ENDS_HERE.get() {
        return false;
    }
    while ENDS.swap(true, Ordering::AcqRel) {
        std::thread::sleep(Duration::from_secs(1));
    }
    ENDS_HERE.set(true);
    true
}

/// Ends the process because of a signal.
pub fn end_interrupted(what: &str, status: i32) -> ! {
    claim();
    let removed = if remove_unfinished() { "; what was unfinished is removed" } else { "" };
    let _ = writeln!(io::stderr(), "error: {what}{removed}");
    exit(status)
}

/// Ends the process at once: no destructors, no handlers, nothing flushed.
#[cfg(unix)]
#[allow(unsafe_code)]
pub fn exit(status: i32) -> ! {
    // SAFETY: `_exit` only ends the process, from any thread and in any state.
    unsafe { libc::_exit(status) }
}

/// Ends the process at once.
#[cfg(not(unix))]
pub fn exit(_status: i32) -> ! {
    std::process::abort()
}
