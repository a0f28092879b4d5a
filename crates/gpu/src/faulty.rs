//! A device that fails on command, for tests of losing a device.

use crate::device::{Address, Allocation, Command, Device, Properties, Side, Stream};
use crate::error::GpuError;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This call fails, later ones do not.
    Once,
    /// This call and all later ones fail, as after an illegal access; commands in flight are not executed.
    Lost,
    /// This call seems to succeed; the next wait reports that the device is lost.
    Late,
}

/// Forwards every call to another device, except the one that fails.
#[derive(Debug)]
pub struct Faulty {
    device: Arc<dyn Device>,
    fault: Fault,
    /// The call that fails, counted from 0.
    at: u64,
    calls: AtomicU64,
    is_late: AtomicBool,
    is_lost: AtomicBool,
}

impl Faulty {
    /// Fails at call `at`, counted from 0.
    pub fn new(device: Arc<dyn Device>, fault: Fault, at: u64) -> Faulty {
        let (calls, is_late, is_lost) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        Faulty { device, fault, at, calls, is_late, is_lost }
    }

    /// The calls so far that could have failed.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Whether the fault has happened.
    pub fn has_failed(&self) -> bool {
        self.calls() > self.at
    }

    fn lost() -> GpuError {
        GpuError::Lost { reason: "injected".to_owned() }
    }

    /// Counts a call; `Ok(true)` forwards it, `Ok(false)` drops it silently.
    fn count(&self, once: impl FnOnce() -> GpuError) -> Result<bool, GpuError> {
        if self.is_lost.load(Ordering::SeqCst) {
            return Err(Faulty::lost());
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) != self.at {
            return Ok(!self.is_late.load(Ordering::SeqCst));
        }
        match self.fault {
            Fault::Once => Err(once()),
            Fault::Lost => {
                self.is_lost.store(true, Ordering::SeqCst);
                Err(Faulty::lost())
            }
            Fault::Late => {
                self.is_late.store(true, Ordering::SeqCst);
                Ok(false)
            }
        }
    }

    /// Counts a call that reports the errors of a stream.
    fn count_wait(&self, at: &'static str) -> Result<(), GpuError> {
        self.count(|| GpuError::Failed { at, reason: "injected".to_owned() })?;
        if self.is_late.load(Ordering::SeqCst) {
            self.is_lost.store(true, Ordering::SeqCst);
            return Err(Faulty::lost());
        }
        Ok(())
    }
}

impl Device for Faulty {
    fn properties(&self) -> &Properties {
        self.device.properties()
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        self.count(|| GpuError::OutOfMemory { asked: bytes as u64, reason: "injected".to_owned() })?;
        self.device.allocate(side, bytes)
    }

    fn free(&self, allocation: Allocation) {
        self.device.free(allocation);
    }

    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError> {
        self.count(|| GpuError::Failed { at: "registering memory", reason: "injected".to_owned() })?;
        self.device.register(host, bytes)
    }

    fn unregister(&self, host: NonNull<u8>) {
        self.device.unregister(host);
    }

    /// Every command counts as a call. Those before one that fails are forwarded.
    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        let once = |command: &Command<'_>| match command {
            Command::Launch { kernel, .. } => {
                GpuError::Launch { name: kernel.name.to_owned(), reason: "injected".to_owned() }
            }
            _ => GpuError::Failed { at: "a copy", reason: "injected".to_owned() },
        };
        let mut passed = 0;
        let counted = commands.iter().try_for_each(|command| {
            passed += usize::from(self.count(|| once(command))?);
            Ok(())
        });
        match passed {
            0 => counted,
            _ => self.device.submit(stream, &commands[..passed]).and(counted),
        }
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.count_wait("waiting")?;
        self.device.wait(stream)
    }

    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.count_wait("asking")?;
        self.device.is_idle(stream)
    }
}
