//! A device while it is open: the sessions of the indexes that it serves, in turns, and plans that run step by step.

use super::device_memory::{Freed, Lent, OfOthers, reserve};
use crate::device::queue::can_have_hits;
use crate::device::residency::{DeviceLists, Reserve};
use crate::device::served::Served;
use crate::device::session::{Failure, Progress, Refusals, Session, Shortage, Usage};
use crate::device::submission::{Job, Unanswered};
use crate::papers::steps::{self, StepScratch};
use crate::query::answer::Answer;
use lanner_gpu::error::GpuError;
use lanner_gpu::memory::Gpu;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An open device.
pub struct OpenDevice {
    gpu: Gpu,
    /// Pieces of lists in device memory, of all indexes that do not fit as a whole.
    lists: Arc<DeviceLists>,
    /// One for each index.
    sessions: Vec<Session>,
    /// The session that is asked first for the next batch.
    next: usize,
    /// Jobs whose plans run step by step, and the buffers for them.
    stepwise: VecDeque<Job>,
    scratch: StepScratch,
    /// Whether such a job comes before the next batch.
    steps_are_next: bool,
    /// Bytes of device memory that lists leave to buffers.
    reserve: u64,
    /// What the cache gave for large buffers.
    lent: Lent,
}

impl OpenDevice {
    pub fn new(gpu: Gpu, usage: Usage) -> OpenDevice {
        let (stepwise, scratch) = (VecDeque::new(), StepScratch::default());
        let (lists, sessions, reserve) = (DeviceLists::new(&usage.holding), Vec::new(), reserve(gpu.left()));
        let (next, steps_are_next, lent) = (0, false, Lent::default());
        OpenDevice { gpu, lists, sessions, next, stepwise, scratch, steps_are_next, reserve, lent }
    }

    pub fn name(&self) -> &str {
        &self.gpu.properties().name
    }

    /// Whether there is nothing to do: no job, and nothing to load or to copy.
    pub fn is_idle(&self) -> bool {
        self.sessions.iter().all(|session| session.is_idle() && session.is_loaded()) && self.stepwise.is_empty()
    }

    /// Whether the lists of a session are loaded.
    pub fn is_loaded(&self, number: usize) -> bool {
        self.sessions[number].is_loaded()
    }

    /// The number of the session of an index, if it has one, until another is opened or forgotten.
    pub fn session_of(&self, served: &Arc<Served>) -> Option<usize> {
        self.sessions.iter().position(|session| Arc::ptr_eq(&session.served, served))
    }

    /// Whether it serves another index.
    pub fn has_others(&self, served: &Served) -> bool {
        self.sessions.iter().any(|session| !std::ptr::eq(&*session.served, served))
    }

    /// Opens the session of an index: its lists become resident if they fit beside those of the others. Its lengths have to,
    /// and batches need the reserve; pieces of lists give way for both.
    pub fn open_session(&mut self, served: &Arc<Served>, usage: Usage) -> Result<usize, GpuError> {
        self.forget_unwanted();
        let mut opened = self.try_open(served, usage);
        let lacks = |device: &OpenDevice| device.gpu.left() < device.unused_reserve() / 2;
        let shortage = match &opened {
            Ok(()) => lacks(self).then_some(0),
            Err(error) => error.shortage(),
        };
        if let Some(bytes) = shortage.filter(|_| self.lists.bytes() > 0) {
            self.sessions.iter_mut().try_for_each(Session::finish)?;
            if self.lists.give_way(&self.gpu, bytes) && opened.is_err() {
                opened = self.try_open(served, usage);
            }
        }
        self.lists.grow(&self.gpu, self.unused_reserve())?;
        opened.map(|()| self.sessions.len() - 1)
    }

    fn try_open(&mut self, served: &Arc<Served>, usage: Usage) -> Result<(), GpuError> {
        let reserve = Reserve { bytes: self.reserve, unused: self.unused_reserve() };
        let session = Session::open(self.gpu.clone(), Arc::clone(served), usage, &self.lists, reserve)?;
        self.sessions.push(session);
        Ok(())
    }

    /// What buffers have not taken yet of the reserve.
    fn unused_reserve(&self) -> u64 {
        let resident: u64 = self.sessions.iter().map(Session::resident_bytes).sum();
        let buffers = self.gpu.used().saturating_sub(resident + self.lists.bytes());
        self.reserve.saturating_sub(buffers)
    }

    /// Frees what is resident of indexes over which no more queries come. Others may fit then.
    pub fn forget_unwanted(&mut self) {
        let is_wanted = |session: &Session| session.served.is_wanted.load(Ordering::Relaxed) || !session.is_idle();
        if !self.sessions.iter().all(is_wanted) && self.stepwise.is_empty() {
            self.sessions.retain(is_wanted);
            self.next = 0;
            // What is free now is for the lists of the others. Where it cannot be had, they are read in host memory.
            _ = self.lists.grow(&self.gpu, self.unused_reserve());
        }
    }

    /// Frees all buffers, once no batch is in flight, and gives the cache its memory back.
    fn give_back(&mut self) -> Result<(), GpuError> {
        self.sessions.iter_mut().try_for_each(Session::release)?;
        (self.scratch, self.lent) = (StepScratch::default(), Lent::default());
        self.lists.grow(&self.gpu, self.unused_reserve())
    }

    /// Says that none of the indexes is on an open device any more.
    pub fn say_closed(&self) {
        for Session { served, .. } in &self.sessions {
            served.is_open.store(false, Ordering::Release);
        }
    }

    /// Takes a job for a session.
    pub fn take(&mut self, number: usize, job: Job) {
        if !self.sessions[number].can_answer(&job) {
            job.end(Err(Unanswered::Unsupported));
        } else if job.runs_in_batches() {
            self.sessions[number].push(job);
        } else if !can_have_hits(job.plan()) {
            job.end(Ok(Answer::default()));
        } else {
            self.stepwise.push_back(job);
        }
    }

    /// Takes a step with each session, in turns. Plans that run step by step take turns with batches: while one has its
    /// turn, no batch is started, and it runs as soon as none is in flight.
    pub fn advance(&mut self) -> Result<Progress, GpuError> {
        if self.lent.is_due() && self.sessions.iter().all(Session::has_free_slots) {
            self.give_back()?;
        }
        let may_start = (self.stepwise.is_empty() || !self.steps_are_next) && !self.lent.is_due();
        let mut progress = Progress::None;
        for offset in 0..self.sessions.len() {
            let number = (self.next + offset) % self.sessions.len();
            let slots = self.free_beside(number).map(|is_free| is_free && may_start);
            let OpenDevice { gpu, lists, sessions, scratch, lent, .. } = self;
            let (before, rest) = sessions.split_at_mut(number);
            let (session, after) = rest.split_first_mut().expect("a session has that number");
            let (mut others, mut freed) =
                (OfOthers { gpu, lists, sessions: [before, after], scratch, lent }, Freed::default());
            let progress_of_session = session.advance(slots, &mut |shortage| others.free(&mut freed, shortage))?;
            if freed.has_cache() {
                self.lists.grow(&self.gpu, self.unused_reserve())?;
            }
            match progress_of_session {
                Progress::None => {}
                // The others come first next time.
                Progress::Started | Progress::Loaded => {
                    self.next = (number + 1) % self.sessions.len();
                    progress = progress.max(Progress::Started);
                }
                Progress::Answered => {
                    self.lent.count();
                    progress = Progress::Answered;
                }
            }
        }
        if matches!(progress, Progress::None | Progress::Answered) {
            progress = progress.max(self.load(progress)?);
        }
        if !self.sessions.iter().all(Session::has_free_slots) {
            self.steps_are_next = true;
        } else if (self.steps_are_next || self.sessions.iter().all(Session::is_idle))
            && let Some(job) = self.stepwise.pop_front()
        {
            self.steps_are_next = false;
            let number = self.session_of(job.served()).expect("a session is not forgotten while jobs wait");
            self.answer_in_steps(number, job)?;
            return Ok(Progress::Answered);
        }
        Ok(progress)
    }

    /// Moves lists: pieces after every batch, and while the device answers or has nothing to answer, what is left to load.
    fn load(&mut self, progress: Progress) -> Result<Progress, GpuError> {
        let mut is_any = self.lists.step(&self.gpu)?;
        for session in self.sessions.iter_mut().filter(|_| progress == Progress::None) {
            is_any = is_any || session.load()?;
        }
        Ok(if is_any { Progress::Loaded } else { Progress::None })
    }

    /// The slots in which no other session has a batch in flight: sessions share the two streams of the device, and a
    /// stream reports the times of one batch.
    fn free_beside(&self, number: usize) -> [bool; 2] {
        let others = self.sessions.iter().enumerate().filter(|&(other, _)| other != number);
        let both = |one: [bool; 2], other: [bool; 2]| [one[0] && other[0], one[1] && other[1]];
        others.map(|(_, session)| session.free_slots()).fold([true; 2], both)
    }

    /// The jobs that sessions refused since the last call.
    pub fn take_refusals(&mut self) -> impl Iterator<Item = Refusals> {
        self.sessions.iter_mut().map(Session::take_refusals)
    }

    /// Why lists got less memory than their budget has, if they did, and it was not taken before.
    pub fn take_shortage(&mut self) -> Option<GpuError> {
        self.lists.take_shortage()
    }

    /// Answers a plan step by step. No batch is in flight. If memory runs out, all other memory is for this plan.
    fn answer_in_steps(&mut self, number: usize, job: Job) -> Result<(), GpuError> {
        let mut freed = Freed::default();
        let answered = loop {
            let answered = steps::answer(&self.sessions[number].context(), &mut self.scratch, job.plan());
            let Some(bytes) = answered.as_ref().err().and_then(Failure::shortage) else {
                break answered;
            };
            let shortage = Shortage { plans: 1, bytes, is_all: false };
            let OpenDevice { gpu, lists, sessions, scratch, lent, .. } = self;
            let mut others = OfOthers { gpu, lists, sessions: [sessions, &mut []], scratch, lent };
            match others.free(&mut freed, shortage) {
                Ok(true) => {}
                Ok(false) => break answered,
                Err(error) => break Err(error.into()),
            }
        };
        self.lent.count();
        match answered {
            Ok(answer) => job.end(Ok(answer)),
            Err(Failure::Gpu(error)) if !error.is_out_of_memory() => {
                self.stepwise.push_front(job);
                return Err(error);
            }
            Err(failure) => self.sessions[number].refuse(job, failure),
        }
        if freed.has_cache() {
            self.lists.grow(&self.gpu, self.unused_reserve())?;
        }
        Ok(())
    }
}
