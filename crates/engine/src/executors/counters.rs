//! What a GPU has done and how busy it is, as other threads see it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a GPU has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Plans that the device answered.
    pub answered: AtomicU64,
    /// Plans that the CPU answered because the device does not support them.
    pub unsupported: AtomicU64,
    /// Plans that the CPU answered because the device failed or had too little memory.
    pub fallen_back: AtomicU64,
    /// How often the device failed.
    pub failures: AtomicU64,
    /// How often the device was opened.
    pub opened: AtomicU64,
    /// How long it took to open the device, or an index on it, the last time, in nanoseconds; lists come later.
    pub(super) opening: AtomicU64,
    /// How long a thread was busy with taking jobs, starting batches and delivering answers, in nanoseconds: not with
    /// waiting for the device.
    pub(super) busy: AtomicU64,
}

impl Counters {
    /// How long it took to open the device, or an index on it, the last time; `None` if it was never open.
    pub fn opened_after(&self) -> Option<Duration> {
        let time = self.opening.load(Ordering::Relaxed);
        (time > 0).then(|| Duration::from_nanos(time))
    }

    /// How long the thread that drives the device was busy, without waiting for the device.
    pub fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy.load(Ordering::Relaxed))
    }
}

/// How busy a GPU is.
#[derive(Clone, Copy, Debug)]
pub struct GpuLoad {
    /// Whether it is open and has the index: opening takes longer than most queries.
    pub is_open: bool,
    /// Whether lists of the plan are uploaded: neither are they resident, nor can kernels read them in host memory.
    pub uploads_lists: bool,
    /// The predicted time of everything that it has been given and has not answered.
    pub waiting: Duration,
    /// How many plans these are.
    pub waiting_jobs: usize,
    /// How much longer than predicted it took lately to answer what waited.
    pub excess: Duration,
}
