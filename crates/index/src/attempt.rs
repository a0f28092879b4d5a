//! Allocations that may fail: a program whose allocator ends it without memory must not end it for these.

use std::cell::Cell;

thread_local! {
    static ATTEMPTS: Cell<bool> = const { Cell::new(false) };
}

/// Runs an allocation such as `try_reserve`, whose caller knows what to do without the memory.
pub fn attempt<T>(allocate: impl FnOnce() -> T) -> T {
    let outer = ATTEMPTS.replace(true);
    let result = allocate();
    ATTEMPTS.set(outer);
    result
}

/// Whether this thread is in [`attempt`], so that an allocator should return null.
pub fn is_attempt() -> bool {
    ATTEMPTS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_in_an_attempt_is_one() {
        assert!(!is_attempt());
        assert_eq!(attempt(|| [attempt(is_attempt), is_attempt()]), [true, true]);
        assert!(!is_attempt());
    }
}
