//! SIGINT and SIGTERM end the program with one line, statuses 130 and 143, and nothing unfinished left behind. A file that
//! would become larger than the limit is an error like a full disk.
#![allow(unsafe_code)]

use crate::ending::end_interrupted;
use std::ptr;
use std::thread::Builder;

/// Starts a thread that waits for the signals: unlike a handler, it can remove files. Signals that the parent ignores
/// (`nohup`, a shell's `&`) stay ignored. To be called before there are other threads, which inherit the blocked signals.
pub fn end_on_signals() {
    // SAFETY: a set of signals is a plain structure that `sigemptyset` fills; all calls get valid pointers.
    let signals = unsafe {
        // A write beyond the limit then fails with EFBIG.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in [libc::SIGINT, libc::SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)) {
            libc::sigaddset(&mut signals, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, ptr::null_mut());
        signals
    };
    if Builder::new().name("lanner-signals".to_owned()).spawn(move || wait(signals)).is_err() {
        // The signals keep their usual actions. What they leave, the next build removes.
        // SAFETY: the set was filled above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, ptr::null_mut()) };
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`; without a new action the call only reads the old one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn wait(signals: libc::sigset_t) {
    let mut signal = 0;
    // SAFETY: the set is filled, and `signal` outlives the call.
    let failed = unsafe { libc::sigwait(&signals, &mut signal) };
    match (failed, signal) {
        (0, libc::SIGINT) => end_interrupted("interrupted", 130),
        (0, _) => end_interrupted("terminated", 143),
        // The set is empty: all signals are ignored.
        _ => {}
    }
}
