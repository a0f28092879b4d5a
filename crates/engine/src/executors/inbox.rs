//! The inbox of a worker: any thread puts submissions in, the worker's thread takes all of them out.
//!
//! The sender locks for as long as it takes to append, and wakes the worker only if it sleeps, after the lock is
//! released. A worker that runs out of work spins for [`SPIN`] before it sleeps: under load the next submission comes
//! sooner than that, and waking a thread takes longer than most queries.

use crate::device::submission::Submission;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a worker without work spins before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// Submissions on their way to a worker, and other messages to it.
#[derive(Debug)]
pub struct Inbox<M> {
    mail: Mutex<Mail<M>>,
    /// Whether there is mail, to be read without the lock.
    has_mail: AtomicBool,
    arrived: Condvar,
}

/// What has arrived.
#[derive(Debug)]
pub struct Mail<M> {
    pub submissions: Vec<Arc<Submission>>,
    pub messages: Vec<M>,
    /// Whether the worker sleeps and must be woken.
    is_asleep: bool,
    is_closed: bool,
}

impl<M> Mail<M> {
    fn new() -> Mail<M> {
        Mail { submissions: Vec::new(), messages: Vec::new(), is_asleep: false, is_closed: false }
    }
}

impl<M> Inbox<M> {
    pub fn new() -> Inbox<M> {
        Inbox { mail: Mutex::new(Mail::new()), has_mail: AtomicBool::new(false), arrived: Condvar::new() }
    }

    /// Puts a submission in. Returns at once.
    pub fn send(&self, submission: Arc<Submission>) {
        self.put(|mail| mail.submissions.push(submission));
    }

    /// Puts a message in.
    pub fn tell(&self, message: M) {
        self.put(|mail| mail.messages.push(message));
    }

    /// Tells the worker to end once it has done everything that was sent.
    pub fn close(&self) {
        self.put(|mail| mail.is_closed = true);
    }

    fn put(&self, change: impl FnOnce(&mut Mail<M>)) {
        let mut mail = self.lock();
        change(&mut mail);
        self.has_mail.store(true, Ordering::Release);
        let is_asleep = mail.is_asleep;
        drop(mail);
        if is_asleep {
            self.arrived.notify_one();
        }
    }

    /// Takes what has arrived, without waiting.
    pub fn take(&self) -> Option<Mail<M>> {
        self.has_mail.load(Ordering::Acquire).then(|| self.empty(self.lock()))
    }

    /// Waits for mail and takes it; `None` if the inbox is closed and empty.
    pub fn wait(&self) -> Option<Mail<M>> {
        let start = Instant::now();
        while !self.has_mail.load(Ordering::Acquire) && start.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        let mut mail = self.lock();
        while mail.submissions.is_empty() && mail.messages.is_empty() {
            if mail.is_closed {
                return None;
            }
            mail.is_asleep = true;
            mail = self.arrived.wait(mail).unwrap_or_else(PoisonError::into_inner);
        }
        mail.is_asleep = false;
        Some(self.empty(mail))
    }

    fn empty(&self, mut mail: MutexGuard<'_, Mail<M>>) -> Mail<M> {
        self.has_mail.store(false, Ordering::Relaxed);
        let is_closed = mail.is_closed;
        std::mem::replace(&mut *mail, Mail { is_closed, ..Mail::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Mail<M>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
