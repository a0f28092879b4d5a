//! A closed loop: a fixed number of clients, each of which asks again once it is answered. Its delays are not those
//! that independent users would see; it measures how many queries an engine can answer.

use super::answers::QuerySet;
use super::nanoseconds;
use super::open_loop::{Sent, drain, outcome, take};
use super::outcomes::{Before, Load, Record};
use super::stream_load::RunLength;
use crate::error::Result;
use lanner::Engine;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A load by clients.
#[derive(Clone, Copy)]
pub struct ClosedLoop<'a> {
    pub engine: &'a Engine,
    pub set: &'a QuerySet,
    pub length: RunLength,
}

impl ClosedLoop<'_> {
    /// `clients` threads that call [`Engine::search`].
    pub fn clients(&self, clients: usize) -> Result<Load> {
        self.run(clients, |start, next| {
            let mut records = Vec::new();
            while let Some((number, called)) = self.next(start, next) {
                let answer = self.engine.search(&self.set.queries[number % self.set.len()]);
                let outcome = outcome(&answer, nanoseconds(start) - called);
                records.push(Record { number, scheduled: called, late: 0, outcome });
            }
            records
        })
    }

    /// As many clients as there may be queries under way, on `senders` threads, through [`Engine::submit`].
    pub fn submitted(&self, senders: usize, clients: usize) -> Result<Load> {
        self.run(senders, |start, next| {
            let (mut under_way, mut records) = (VecDeque::new(), Vec::new());
            while let Some((number, called)) = self.next(start, next) {
                while under_way.len() >= (clients / senders).max(1) {
                    if !take(&mut under_way, &mut records) {
                        std::hint::spin_loop();
                        std::thread::yield_now();
                    }
                }
                let submitted = self.engine.submit(self.set.queries[number % self.set.len()].clone());
                match Sent::new(submitted, start, (number, called, 0)) {
                    Ok(sent) => under_way.push_back(sent),
                    Err(outcome) => records.push(Record { number, scheduled: called, late: 0, outcome }),
                }
            }
            drain(&mut under_way, &mut records);
            records
        })
    }

    /// The number of the next query and the time, unless the run is over. One query is asked in any case.
    fn next(&self, start: Instant, next: &AtomicUsize) -> Option<(usize, u64)> {
        let (number, at) = (next.fetch_add(1, Ordering::Relaxed), nanoseconds(start));
        (number == 0 || !self.length.is_over(number, at as f64 / 1e9)).then_some((number, at))
    }

    fn run(&self, threads: usize, ask: impl Fn(Instant, &AtomicUsize) -> Vec<Record> + Sync) -> Result<Load> {
        let before = Before::of(self.engine);
        let (start, next) = (Instant::now(), AtomicUsize::new(0));
        let records = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| ask(start, &next))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a client does not panic")).collect()
        });
        let load = before.finish(self.engine, records)?;
        load.check(self.set)?;
        Ok(load)
    }
}
