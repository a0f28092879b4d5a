//! The bound on queries that an engine has accepted and not answered yet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Counts queries up to a limit.
#[derive(Clone, Debug)]
pub struct Admission {
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    limit: usize,
    accepted: AtomicUsize,
    /// Threads that wait for a permit; they sleep on `freed`.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    freed: Condvar,
}

/// Lets one query into the queue; dropping it frees the permit.
#[derive(Debug)]
pub struct Permit {
    counts: Arc<Counts>,
}

impl Admission {
    pub fn new(limit: usize) -> Admission {
        let (accepted, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counts = Counts { limit: limit.max(1), accepted, waiting, lock: Mutex::new(()), freed: Condvar::new() };
        Admission { counts: Arc::new(counts) }
    }

    pub fn limit(&self) -> usize {
        self.counts.limit
    }

    /// A permit for a query, if there is one.
    pub fn enter(&self) -> Option<Permit> {
        let limit = self.counts.limit;
        let more = |accepted: usize| (accepted < limit).then_some(accepted + 1);
        let entered = self.counts.accepted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        entered.ok().map(|_| Permit { counts: Arc::clone(&self.counts) })
    }

    /// Waits for a permit.
    pub fn wait(&self) -> Permit {
        if let Some(permit) = self.enter() {
            return permit;
        }
        let mut guard = self.counts.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.counts.waiting.fetch_add(1, Ordering::SeqCst);
        let permit = loop {
            // After `waiting` was raised: a permit that is freed from now on wakes this thread.
            if let Some(permit) = self.enter() {
                break permit;
            }
            guard = self.counts.freed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.counts.waiting.fetch_sub(1, Ordering::SeqCst);
        permit
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.counts.accepted.fetch_sub(1, Ordering::SeqCst);
        if self.counts.waiting.load(Ordering::SeqCst) > 0 {
            // The lock makes sure that a thread which has just found no permit is asleep by now.
            drop(self.counts.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.counts.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn permits_are_limited_and_freed_when_dropped() {
        let admission = Admission::new(2);
        let (first, second) = (admission.enter(), admission.enter());
        assert!(first.is_some() && second.is_some() && admission.enter().is_none());
        drop(first);
        assert!(admission.enter().is_some());
    }

    #[test]
    fn a_thread_that_waits_gets_a_permit_when_one_is_freed() {
        let admission = Admission::new(1);
        for _ in 0..50 {
            let permit = admission.wait();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| drop(admission.wait()));
                std::thread::sleep(Duration::from_micros(200));
                drop(permit);
                waiting.join().unwrap();
            });
        }
        assert!(admission.enter().is_some());
    }
}
