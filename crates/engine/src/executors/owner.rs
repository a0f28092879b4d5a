//! What the thread of a device does: takes what has arrived, opens the device and indexes on it, and drives it.
//!
//! A device that fails is closed, its jobs end unanswered, and it is opened again later; who answers them then is not
//! decided here. A panic of the thread's code counts as a failure of the device. An index that does not fit beside those
//! that the device has already is refused, and costs the others nothing.

use super::counters::Counters;
use super::gpu_options::GpuOptions;
use super::inbox::Mail;
use super::open_device::OpenDevice;
use super::threads::panic_text;
use crate::device::served::Served;
use crate::device::session::{Progress, Refusals};
use crate::device::submission::{Job, Submission, Unanswered};
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The longest pause before a device that failed is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pause that no process outlives.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// How often the batches in flight are polled without effect before other threads get a turn.
const POLLS_PER_YIELD: u32 = 256;

/// Asks for the device to be opened now, with an index.
pub struct Connect {
    pub served: Arc<Served>,
    /// Gets the result. Without it, the same holds as for a job: the device is not opened during the pause after a
    /// failure, and a failure is reported.
    pub reply: Option<Sender<Result<(), GpuError>>>,
}

/// Waits until the lists of an index are loaded.
struct Waiting {
    served: Arc<Served>,
    reply: Sender<Result<(), GpuError>>,
}

/// A device with everything that is done on it, by its thread or by a caller in its place: one at a time.
pub struct Owner {
    counters: Arc<Counters>,
    options: GpuOptions,
    /// `None` before the device is opened, and after it failed.
    device: Option<OpenDevice>,
    /// When it may be opened again after a failure, and how long to wait if that fails.
    again: Option<Instant>,
    pause: Duration,
    /// Jobs that the device has not taken yet.
    pub arrived: Vec<Job>,
    /// Who waits until the lists of an index are loaded.
    connecting: Vec<Waiting>,
    /// How many turns in a row have made no progress.
    idle_turns: u32,
}

impl Owner {
    pub fn new(options: GpuOptions, counters: Arc<Counters>) -> Owner {
        let pause = options.pause;
        let (arrived, connecting) = (Vec::new(), Vec::new());
        Owner { counters, options, device: None, again: None, pause, arrived, connecting, idle_turns: 0 }
    }

    /// Takes what has arrived, and takes a step with the device. No panic passes on.
    pub fn turn(&mut self, mail: Option<Mail<Connect>>) {
        let start = Instant::now();
        // What a panic leaves behind is not used again: it is closed.
        match catch_unwind(AssertUnwindSafe(|| self.step(mail))) {
            Ok(true) => {
                self.idle_turns = 0;
                self.counters.busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            Ok(false) => self.idle_turns += 1,
            Err(panic) => {
                self.close(&GpuError::Failed { at: "the thread of a device", reason: panic_text(&*panic) });
            }
        }
        // Other threads may need this core to make the work that is waited for.
        if self.idle_turns >= POLLS_PER_YIELD {
            self.idle_turns = 0;
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }

    /// Takes what has arrived, and takes a step with the device. Returns whether that made progress.
    fn step(&mut self, mail: Option<Mail<Connect>>) -> bool {
        let has_mail = mail.is_some();
        if let Some(Mail { submissions, messages, .. }) = mail {
            Submission::prefetch(&submissions);
            self.arrived.extend(submissions.iter().flat_map(Submission::jobs));
            for Connect { served, reply } in messages {
                if reply.is_none() && self.is_pausing() {
                    continue;
                }
                let connected = self.connect(&served).map(drop);
                if let Err(error) = &connected
                    && (reply.is_none() || self.device.is_some())
                {
                    self.fail(&served, error);
                }
                match (reply, connected) {
                    (Some(reply), Ok(())) => self.connecting.push(Waiting { served, reply }),
                    (Some(reply), failed) => _ = reply.send(failed),
                    (None, _) => {}
                }
            }
            self.forget_unwanted();
        }
        let has_advanced = self.advance();
        self.reply_when_loaded();
        has_advanced || has_mail
    }

    /// Tells those who wait for an index that its lists are loaded. If the device fails before, they are told that, too.
    fn reply_when_loaded(&mut self) {
        let mut waiting = std::mem::take(&mut self.connecting);
        waiting.retain(|Waiting { served, reply }| match self.session_of(served) {
            Some((device, number)) if !device.is_loaded(number) => true,
            Some(_) => {
                _ = reply.send(Ok(()));
                false
            }
            None => {
                let reason = "it failed while lists were loaded".to_owned();
                _ = reply.send(Err(GpuError::Failed { at: "opening a device", reason }));
                false
            }
        });
        self.connecting = waiting;
    }

    pub fn is_idle(&self) -> bool {
        self.arrived.is_empty() && self.connecting.is_empty() && self.device.as_ref().is_none_or(OpenDevice::is_idle)
    }

    /// Frees what the device holds for indexes over which no more queries come.
    pub fn forget_unwanted(&mut self) {
        self.device.iter_mut().for_each(OpenDevice::forget_unwanted);
    }

    pub fn device_name(&self) -> Option<String> {
        self.device.as_ref().map(|device| device.name().to_owned())
    }

    /// Whether the device failed and is not to be used for a while.
    fn is_pausing(&self) -> bool {
        self.device.is_none() && self.again.is_some_and(|again| Instant::now() < again)
    }

    /// The session of an index, if it is open.
    fn session_of(&mut self, served: &Arc<Served>) -> Option<(&mut OpenDevice, usize)> {
        let device = self.device.as_mut()?;
        let number = device.session_of(served)?;
        Some((device, number))
    }

    /// The number of the session of an index, after opening the device and the session if need be.
    fn connect(&mut self, served: &Arc<Served>) -> Result<usize, GpuError> {
        if let Some((_, number)) = self.session_of(served) {
            return Ok(number);
        }
        let start = Instant::now();
        let number = match &mut self.device {
            Some(device) => device.open_session(served, self.options.usage)?,
            None => {
                let opened = (self.options.open)()?;
                let free = opened.properties().free;
                let gpu = Gpu::new(opened, self.options.memory.unwrap_or(free).min(free));
                let mut device = OpenDevice::new(gpu, self.options.usage);
                let number = device.open_session(served, self.options.usage)?;
                self.counters.opened.fetch_add(1, Ordering::Relaxed);
                self.device = Some(device);
                number
            }
        };
        self.counters.opening.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        served.is_refused.store(false, Ordering::Relaxed);
        served.is_open.store(true, Ordering::Release);
        Ok(number)
    }

    /// Gives the device what has arrived, and takes a step with it. Returns whether a batch was started or answered.
    fn advance(&mut self) -> bool {
        if self.is_idle() {
            return false;
        }
        if self.is_pausing() {
            self.arrived.clear();
            return true;
        }
        self.give_arrived();
        let Some(device) = &mut self.device else {
            return true;
        };
        let progress = match device.advance() {
            Ok(progress) => progress,
            Err(error) => {
                self.close(&error);
                return true;
            }
        };
        if let Some(error) = device.take_shortage() {
            (self.options.report)(&format!("{error}; the GPU keeps less of the lists in its memory"));
        }
        for Refusals { jobs, why, .. } in device.take_refusals() {
            if let Some(why) = why {
                (self.options.report)(&format!("{why}; the CPU answers such queries, the GPU all others"));
            }
            jobs.into_iter().for_each(|(job, why)| job.end(Err(why)));
        }
        if progress == Progress::Answered {
            self.pause = self.options.pause;
        }
        progress != Progress::None
    }

    /// Gives what has arrived to the sessions of its indexes.
    fn give_arrived(&mut self) {
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut jobs = arrived.drain(..);
        while let Some(job) = jobs.next() {
            if let Some((device, number)) = self.session_of(job.served()) {
                device.take(number, job);
                continue;
            }
            if job.served().is_refused.load(Ordering::Relaxed) {
                job.end(Err(Unanswered::TooLarge));
                continue;
            }
            match self.connect(job.served()) {
                Ok(number) => self.device.as_mut().expect("it was opened").take(number, job),
                Err(error) => {
                    let served = Arc::clone(job.served());
                    // Jobs end after the failure is reported.
                    self.arrived.push(job);
                    self.arrived.extend(jobs.by_ref());
                    self.fail(&served, &error);
                    if self.device.is_none() {
                        return;
                    }
                    // The index is refused now, the others are not.
                    drop(jobs);
                    return self.give_arrived();
                }
            }
        }
        drop(jobs);
        // Its memory is used again.
        self.arrived = arrived;
    }

    /// What follows if an index cannot be opened. If only its memory is missing, the device goes on with the others.
    fn fail(&mut self, served: &Served, error: &GpuError) {
        match &self.device {
            Some(device) if error.is_out_of_memory() && device.has_others(served) => {
                served.is_refused.store(true, Ordering::Relaxed);
                let line = format!("{error}; the CPU answers queries over an index, the GPU those over the others");
                _ = catch_unwind(AssertUnwindSafe(|| (self.options.report)(&line)));
            }
            _ => self.close(error),
        }
    }

    /// Closes a device that failed, which ends its jobs unanswered, reports the failure, and does not use the device
    /// for a while. Neither the report nor the device may end this thread by a panic.
    fn close(&mut self, error: &GpuError) {
        let pause = self.pause;
        self.device.iter().for_each(OpenDevice::say_closed);
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
        let line = format!("{error}; the CPU answers, and later queries may try the GPU again after {pause:?}");
        _ = catch_unwind(AssertUnwindSafe(|| (self.options.report)(&line)));
        // A pause beyond what a clock can count has no end; `None` would mean that there is none.
        self.again = Some(Instant::now().checked_add(pause).unwrap_or_else(|| Instant::now() + FOREVER));
        self.pause = pause.saturating_mul(2).min(LONGEST_PAUSE.max(pause));
        let (device, arrived) = (self.device.take(), std::mem::take(&mut self.arrived));
        _ = catch_unwind(AssertUnwindSafe(|| drop(device)));
        drop(arrived);
    }
}
