//! A function over many items on several threads, each taking the next few items when it is free.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Takings of each thread, at least: so many that all end at about the same time.
const TAKINGS: usize = 64;

/// A number on a cache line of its own: threads that change it do not disturb what lies beside it.
#[repr(align(128))]
struct Apart(AtomicUsize);

/// Maps the items, in order, on up to `threads` threads. `make` gives each thread what it keeps from item to item.
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
    let step = (items.len() / (threads * TAKINGS)).clamp(1, 16);
    let next = Apart(AtomicUsize::new(0));
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
    let mut place = |results: Vec<(usize, R)>| results.into_iter().for_each(|(i, result)| all[i] = Some(result));
    // This thread works too: one less to start.
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        place(work());
        for worker in workers {
            match worker.join() {
                Ok(results) => place(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_their_items_for_any_number_of_threads() {
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
