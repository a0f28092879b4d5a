//! Maps items on several threads; each thread takes the next few items when it is free. And the text of a panic.
//!
//! Not rayon: threads keep a workspace from item to item, and one shared counter is all the scheduling that queries
//! need.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Each thread takes items at least this many times, so that all threads finish at about the same time.
const TURNS: usize = 64;

/// A counter on a cache line of its own, against false sharing.
#[repr(align(128))]
struct Padded(AtomicUsize);

/// Maps items on up to `threads` threads, or as many as the system starts; results are in the order of the items. `make` makes the state that a thread
/// keeps from item to item.
pub(crate) fn map_in_threads<T, S, R>(
    items: &[T],
    threads: usize,
    make: impl Fn() -> S + Sync,
    map: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    let threads = threads.min(items.len());
    if threads <= 1 {
        let mut state = make();
        return items.iter().map(|item| map(&mut state, item)).collect();
    }
    let step = (items.len() / (threads * TURNS)).clamp(1, 16);
    let next = Padded(AtomicUsize::new(0));
    let work = || {
        let mut state = make();
        let mut results = Vec::with_capacity(items.len() / threads + 1);
        loop {
            let start = next.0.fetch_add(step, Ordering::Relaxed);
            let Some(taken) = items.get(start..(start + step).min(items.len())) else {
                return results;
            };
            results.extend((start..).zip(taken).map(|(i, item)| (i, map(&mut state, item))));
        }
    };
    let mut all: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let mut store = |results: Vec<(usize, R)>| results.into_iter().for_each(|(i, result)| all[i] = Some(result));
    // The calling thread works too.
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, work).ok()).collect();
        store(work());
        for worker in workers {
            match worker.join() {
                Ok(results) => store(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all.into_iter().map(|result| result.expect("every item was taken by a thread")).collect()
}

/// What a thread panicked with, as text.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("a panic").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_items_for_any_number_of_threads() {
        let items: Vec<u32> = (0..1000).collect();
        let expected: Vec<u32> = items.iter().map(|item| item * 2).collect();
        for threads in [0, 1, 2, 7, 2000] {
            let double = |count: &mut u32, item: &u32| {
                *count += 1;
                item * 2
            };
            assert_eq!(map_in_threads(&items, threads, || 0, double), expected, "{threads} threads");
        }
        assert!(map_in_threads(&[], 4, || (), |(), item: &u32| *item).is_empty());
    }
}
