//! Parallel work with results in order: workers pull items from one source and pass results to one sink.
//!
//! There are no threads just for reading or writing: a worker that needs an item pulls it itself, and the worker whose
//! result is next in order passes it, and those that waited for it, to the sink. With one thread, no thread is spawned;
//! with several, the calling thread is one of them, and one that cannot be started is an error.
//!
//! No crate is used because builds must be deterministic within a memory budget: results arrive in the order of the
//! items, few of them wait, and an error or a panic of any worker stops all of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;

/// A number of workers, each with its own state.
pub struct Pipeline<Make, Work> {
    /// Number of workers, at least 1.
    pub threads: usize,
    /// Makes the state of a worker.
    pub make: Make,
    /// Turns an item into a result.
    pub work: Work,
}

/// The system did not start a thread, and why.
#[derive(Debug)]
pub struct NoThread(pub io::Error);

/// Results that wait for an earlier one.
struct Queue<Result, Error> {
    /// The number of the next result for the sink.
    next: u64,
    waiting: BTreeMap<u64, Result>,
    failure: Option<Error>,
    /// A worker has panicked: its result will never arrive, so no worker may wait for it.
    is_broken: bool,
}

/// Tells the other workers when this one panics.
struct Alarm<'a, R, E> {
    queue: &'a Mutex<Queue<R, E>>,
    changed: &'a Condvar,
}

impl<R, E> Drop for Alarm<'_, R, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.queue).is_broken = true;
            self.changed.notify_all();
        }
    }
}

impl<Make, Work> Pipeline<Make, Work> {
    /// Runs until the source is empty or something fails. The sink gets the results in the order of the items.
    pub fn run<State, Item, Product, Error>(
        &self,
        mut source: impl FnMut() -> Result<Option<Item>, Error> + Send,
        mut sink: impl FnMut(Product) -> Result<(), Error> + Send,
    ) -> Result<(), Error>
    where
        Make: Fn() -> State + Sync,
        Work: Fn(&mut State, Item) -> Result<Product, Error> + Sync,
        Item: Send,
        Product: Send,
        Error: Send + From<NoThread>,
    {
        if self.threads <= 1 {
            let mut state = (self.make)();
            while let Some(item) = source()? {
                sink((self.work)(&mut state, item)?)?;
            }
            return Ok(());
        }
        let source = Mutex::new((0u64, source));
        let queue = Mutex::new(Queue { next: 0, waiting: BTreeMap::new(), failure: None, is_broken: false });
        let sink = Mutex::new(&mut sink);
        let changed = Condvar::new();
        let work = || {
            let _alarm = Alarm { queue: &queue, changed: &changed };
            let mut state = (self.make)();
            while self.wait_while_full(lock(&queue), &changed) {
                let pulled = {
                    let mut source = lock(&source);
                    if lock(&queue).failure.is_some() {
                        break;
                    }
                    let number = source.0;
                    source.0 += 1;
                    (source.1)().map(|item| item.map(|item| (number, item)))
                };
                let result = match pulled {
                    Ok(None) => break,
                    Ok(Some((number, item))) => (self.work)(&mut state, item).map(|product| (number, product)),
                    Err(error) => Err(error),
                };
                deliver(result, &queue, &sink, &changed);
            }
        };
        std::thread::scope(|scope| {
            // Nothing is pulled before all threads are there: a source may block, and then none would see the failure.
            let gate = lock(&source);
            for _ in 1..self.threads {
                if let Err(error) = Builder::new().spawn_scoped(scope, work) {
                    lock(&queue).failure.get_or_insert(NoThread(error).into());
                    changed.notify_all();
                    return;
                }
            }
            drop(gate);
            work();
        });
        let queue = queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        queue.failure.map_or(Ok(()), Err)
    }

    /// Waits while too many results are queued behind a missing one. Returns false once something has failed or
    /// panicked.
    fn wait_while_full<R, E>(&self, mut queue: MutexGuard<'_, Queue<R, E>>, changed: &Condvar) -> bool {
        while queue.failure.is_none() && !queue.is_broken && queue.waiting.len() > self.threads {
            queue = changed.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        queue.failure.is_none() && !queue.is_broken
    }
}

/// Queues a result and passes all results that are next in order to the sink.
fn deliver<R, E, S: FnMut(R) -> Result<(), E>>(
    result: Result<(u64, R), E>,
    queue: &Mutex<Queue<R, E>>,
    sink: &Mutex<&mut S>,
    changed: &Condvar,
) {
    let mut result = match result {
        Ok((number, product)) => {
            lock(queue).waiting.insert(number, product);
            Ok(())
        }
        Err(error) => Err(error),
    };
    // The lock of the sink is held throughout, so that results leave in order; other workers can lock `queue`
    // meanwhile.
    let mut sink = lock(sink);
    while result.is_ok() {
        let mut waiting = lock(queue);
        let next = waiting.next;
        let Some(product) = waiting.waiting.remove(&next).filter(|_| waiting.failure.is_none()) else {
            break;
        };
        waiting.next += 1;
        drop(waiting);
        result = sink(product);
    }
    if let Err(error) = result {
        lock(queue).failure.get_or_insert(error);
    }
    changed.notify_all();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl From<NoThread> for String {
        fn from(NoThread(error): NoThread) -> String {
            error.to_string()
        }
    }

    fn squares(threads: usize, fail_at: Option<u64>) -> (Result<(), String>, Vec<u64>) {
        let mut seen = Vec::new();
        let mut numbers = 0..500u64;
        let pipeline = Pipeline {
            threads,
            make: || (),
            work: |(): &mut (), number: u64| {
                // Make every seventh item slow, so that later ones must wait for it.
                if number.is_multiple_of(7) {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                if Some(number) == fail_at { Err(format!("item {number}")) } else { Ok(number * number) }
            },
        };
        let result = pipeline.run(
            || Ok(numbers.next()),
            |square| {
                seen.push(square);
                Ok(())
            },
        );
        (result, seen)
    }

    #[test]
    fn results_come_in_order_for_any_number_of_threads() {
        let expected: Vec<u64> = (0..500).map(|n| n * n).collect();
        for threads in [1, 2, 5] {
            let (result, seen) = squares(threads, None);
            assert_eq!((result, &seen), (Ok(()), &expected), "{threads} threads");
        }
    }

    #[test]
    fn a_failure_ends_the_work_and_nothing_after_it_reaches_the_sink() {
        for threads in [1, 2, 5] {
            let (result, seen) = squares(threads, Some(40));
            assert_eq!(result, Err("item 40".to_owned()));
            let expected: Vec<u64> = (0..40).map(|n| n * n).collect();
            assert!(expected.starts_with(&seen), "{threads} threads: {seen:?}");
        }
    }

    #[test]
    fn a_panic_of_one_worker_is_not_waited_for() {
        let result = std::panic::catch_unwind(|| {
            let mut numbers = 0..100u64;
            let pipeline = Pipeline {
                threads: 3,
                make: || (),
                work: |(): &mut (), number: u64| {
                    assert!(number != 5, "planted");
                    Ok::<u64, String>(number)
                },
            };
            pipeline.run(|| Ok(numbers.next()), |_| Ok(()))
        });
        assert!(result.is_err(), "the panic reaches the caller");
    }

    #[test]
    fn a_failing_sink_ends_the_work() {
        for threads in [1, 3] {
            let mut numbers = 0..1000u64;
            let pipeline = Pipeline { threads, make: || (), work: |(): &mut (), n: u64| Ok(n) };
            let result = pipeline.run(|| Ok(numbers.next()), |n| if n == 9 { Err("full".to_owned()) } else { Ok(()) });
            assert_eq!(result, Err("full".to_owned()));
        }
    }
}
