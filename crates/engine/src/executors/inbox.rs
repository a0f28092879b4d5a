//! The inbox of a worker: any thread puts submissions in, and the one that drives the device takes all of them out.
//!
//! The sender locks for as long as it takes to append, and wakes the worker only if it sleeps, after the lock is
//! released. A worker that runs out of work spins for [`SPIN`] before it sleeps: under load the next submission comes
//! sooner than that, and waking a thread takes longer than most queries.

use crate::device::submission::{Submission, spin_until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    /// Whether nobody will ever take what is put in.
    is_abandoned: bool,
}

impl<M> Mail<M> {
    fn new() -> Mail<M> {
        Mail { submissions: Vec::new(), messages: Vec::new(), is_asleep: false, is_closed: false, is_abandoned: false }
    }
}

impl<M> Inbox<M> {
    pub fn new() -> Inbox<M> {
        Inbox { mail: Mutex::new(Mail::new()), has_mail: AtomicBool::new(false), arrived: Condvar::new() }
    }

    /// Puts a submission in. Returns at once. If nobody takes it any more, its jobs end unanswered.
    pub fn send(&self, submission: &Arc<Submission>) {
        if !self.put(|mail| mail.submissions.push(Arc::clone(submission))) {
            submission.jobs().for_each(drop);
        }
    }

    /// Puts a message in; it is dropped if nobody takes it any more.
    pub fn tell(&self, message: M) {
        self.put(|mail| mail.messages.push(message));
    }

    /// Tells the worker to end once it has done everything that was sent.
    pub fn close(&self) {
        self.put(|mail| mail.is_closed = true);
    }

    /// Wakes the worker without mail.
    pub fn wake(&self) {
        self.put(|_| {});
    }

    /// Ends what is in the inbox and whatever will be put in: the worker's thread is gone.
    pub fn abandon(&self) {
        self.put(|mail| mail.is_abandoned = true);
        let mail = self.empty(self.lock());
        mail.submissions.iter().flat_map(Submission::jobs).for_each(drop);
    }

    /// Changes the mail, unless nobody takes it any more.
    fn put(&self, change: impl FnOnce(&mut Mail<M>)) -> bool {
        let mut mail = self.lock();
        if mail.is_abandoned {
            return false;
        }
        change(&mut mail);
        self.has_mail.store(true, Ordering::Release);
        let is_asleep = mail.is_asleep;
        drop(mail);
        if is_asleep {
            self.arrived.notify_one();
        }
        true
    }

    /// Takes what has arrived, without waiting.
    pub fn take(&self) -> Option<Mail<M>> {
        self.has_mail.load(Ordering::Acquire).then(|| self.empty(self.lock()))
    }

    /// Waits until there is mail, or the worker was woken; `false` if the inbox is closed and empty.
    pub fn wait(&self) -> bool {
        let has_mail = || self.has_mail.load(Ordering::Acquire);
        spin_until(SPIN, has_mail);
        let mut mail = self.lock();
        while !has_mail() {
            if mail.is_closed {
                return false;
            }
            mail.is_asleep = true;
            mail = self.arrived.wait(mail).unwrap_or_else(PoisonError::into_inner);
        }
        mail.is_asleep = false;
        true
    }

    fn empty(&self, mut mail: MutexGuard<'_, Mail<M>>) -> Mail<M> {
        self.has_mail.store(false, Ordering::Relaxed);
        let Mail { is_asleep, is_closed, is_abandoned, .. } = *mail;
        std::mem::replace(&mut *mail, Mail { is_asleep, is_closed, is_abandoned, ..Mail::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Mail<M>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mail that somebody else takes does not leave the worker asleep when the next mail comes.
    #[test]
    fn a_sleeping_worker_wakes_for_mail_and_ends_with_a_closed_inbox() {
        let inbox = Inbox::new();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut taken = 0;
                while inbox.wait() {
                    taken += inbox.take().map_or(0, |mail| mail.messages.len());
                }
                taken
            });
            let mut elsewhere = 0;
            for number in 0..200 {
                // Now and then long enough for the worker to sleep.
                if number % 20 == 0 {
                    std::thread::sleep(4 * SPIN);
                }
                inbox.tell(number);
                elsewhere += inbox.take().map_or(0, |mail| mail.messages.len());
            }
            inbox.close();
            assert_eq!(worker.join().unwrap() + elsewhere, 200);
        });
        inbox.abandon();
        inbox.tell(0);
        assert!(inbox.take().is_none_or(|mail| mail.messages.is_empty()), "nobody takes what is abandoned");
    }
}
