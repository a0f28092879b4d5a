//! Work in parallel, results in order: workers pull items from one source and hand results to one sink.
//!
//! There is no thread for reading and none for writing: a worker that needs an item pulls it itself, and the worker
//! whose result is next in order hands it and those that wait behind it to the sink. One thread means no other thread.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// What one worker does with an item; `State` is the worker's own, made once.
pub struct Pipeline<Make, Work> {
    /// Number of workers, at least 1.
    pub threads: usize,
    /// Makes the state of a worker.
    pub make: Make,
    /// Turns an item into a result.
    pub work: Work,
}

struct Ordered<Result, Error> {
    next: u64,
    waiting: BTreeMap<u64, Result>,
    failure: Option<Error>,
    /// A worker has panicked: its result will never come, so nobody must wait for it.
    is_broken: bool,
}

/// Tells the other workers when this one panics.
struct Alarm<'a, R, E> {
    order: &'a Mutex<Ordered<R, E>>,
    room: &'a Condvar,
}

impl<R, E> Drop for Alarm<'_, R, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.order).is_broken = true;
            self.room.notify_all();
        }
    }
}

impl<Make, Work> Pipeline<Make, Work> {
    /// Runs until the source is empty or something fails; the sink sees the results in the order of the items.
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
        Error: Send,
    {
        if self.threads <= 1 {
            let mut state = (self.make)();
            while let Some(item) = source()? {
                sink((self.work)(&mut state, item)?)?;
            }
            return Ok(());
        }
        let source = Mutex::new((0u64, source));
        let order = Mutex::new(Ordered { next: 0, waiting: BTreeMap::new(), failure: None, is_broken: false });
        let sink = Mutex::new(&mut sink);
        let room = Condvar::new();
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    let _alarm = Alarm { order: &order, room: &room };
                    let mut state = (self.make)();
                    while self.wait_for_room(lock(&order), &room) {
                        let pulled = {
                            let mut source = lock(&source);
                            let number = source.0;
                            source.0 += 1;
                            (source.1)().map(|item| item.map(|item| (number, item)))
                        };
                        let result = match pulled {
                            Ok(None) => break,
                            Ok(Some((number, item))) => (self.work)(&mut state, item).map(|product| (number, product)),
                            Err(error) => Err(error),
                        };
                        deliver(result, &order, &sink, &room);
                    }
                });
            }
        });
        let order = order.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        order.failure.map_or(Ok(()), Err)
    }

    /// Waits while too many results wait for an earlier one; false once something has failed or panicked.
    fn wait_for_room<R, E>(&self, mut order: MutexGuard<'_, Ordered<R, E>>, room: &Condvar) -> bool {
        while order.failure.is_none() && !order.is_broken && order.waiting.len() > self.threads {
            order = room.wait(order).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        order.failure.is_none() && !order.is_broken
    }
}

/// Puts a result in its place and hands to the sink all that are next in order.
fn deliver<R, E, S: FnMut(R) -> Result<(), E>>(
    result: Result<(u64, R), E>,
    order: &Mutex<Ordered<R, E>>,
    sink: &Mutex<&mut S>,
    room: &Condvar,
) {
    let mut result = match result {
        Ok((number, product)) => {
            lock(order).waiting.insert(number, product);
            Ok(())
        }
        Err(error) => Err(error),
    };
    // The sink's lock is taken first and kept, so that results leave in order; `order` is free for others meanwhile.
    let mut sink = lock(sink);
    while result.is_ok() {
        let mut waiting = lock(order);
        let next = waiting.next;
        let Some(product) = waiting.waiting.remove(&next).filter(|_| waiting.failure.is_none()) else {
            break;
        };
        waiting.next += 1;
        drop(waiting);
        result = sink(product);
    }
    if let Err(error) = result {
        lock(order).failure.get_or_insert(error);
    }
    room.notify_all();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

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
