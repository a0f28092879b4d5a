//! A device that does nothing: what remains of a query's time is the engine's own.

use lanner::internals::device::kernels::{BatchArguments, WorkRow};
use lanner_gpu::device::{Address, Allocation, Command, Device, Properties, Side, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::simulator::Simulator;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Answers every query at once, without hits. It has the properties of another device, so that batches are the same.
#[derive(Debug)]
pub struct Idle {
    properties: Properties,
    /// Allocates memory, and clears the answers.
    memory: Simulator,
    /// The host's allocations: addresses and bytes.
    on_host: Mutex<Vec<(u64, usize)>>,
}

impl Idle {
    pub fn like(properties: &Properties) -> Idle {
        let properties = Properties { name: "a device that does nothing".to_owned(), ..properties.clone() };
        Idle { properties, memory: Simulator::new(1), on_host: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, usize)>> {
        self.on_host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_on_host(&self, address: Address) -> bool {
        self.lock().iter().any(|&(start, bytes)| (start..start + bytes as u64).contains(&address.0))
    }

    /// Executes a command at once.
    fn execute(&self, stream: Stream, command: Command<'_>) -> Result<(), GpuError> {
        self.memory.submit(stream, &[command])?;
        self.memory.wait(stream).map(drop)
    }
}

/// An address in the argument of a kernel.
fn address_in(argument: &[u8], offset: usize) -> Option<Address> {
    Some(Address(u64::from_ne_bytes(*argument.get(offset..)?.first_chunk()?)))
}

impl Device for Idle {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        let allocation = self.memory.allocate(side, bytes)?;
        if side == Side::Host {
            self.lock().push((allocation.address.0, bytes));
        }
        Ok(allocation)
    }

    fn free(&self, allocation: Allocation) {
        self.lock().retain(|&(start, _)| start != allocation.address.0);
        self.memory.free(allocation);
    }

    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError> {
        self.memory.register(host, bytes)
    }

    fn unregister(&self, host: NonNull<u8>) {
        self.memory.unregister(host);
    }

    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        for command in commands {
            match *command {
                // The answers of a batch.
                Command::Copy { to, bytes, .. } if self.is_on_host(to) => {
                    self.execute(stream, Command::Clear { at: to, bytes })?;
                }
                // A single query writes its answer to host memory; the count last, which the host waits for.
                Command::Launch { argument, .. } => {
                    let places = [
                        (offset_of!(BatchArguments, answer_work), size_of::<WorkRow>()),
                        (offset_of!(BatchArguments, answer_counts), 4),
                    ];
                    for (offset, bytes) in places {
                        if let Some(at) = address_in(argument, offset).filter(|&at| self.is_on_host(at)) {
                            self.execute(stream, Command::Clear { at, bytes })?;
                        }
                    }
                }
                Command::Write { .. }
                | Command::Copy { .. }
                | Command::Clear { .. }
                | Command::Load { .. }
                | Command::Mark => {}
            }
        }
        Ok(())
    }

    fn wait(&self, _: Stream) -> Result<Vec<Duration>, GpuError> {
        Ok(Vec::new())
    }

    fn is_idle(&self, _: Stream) -> Result<bool, GpuError> {
        Ok(true)
    }
}
