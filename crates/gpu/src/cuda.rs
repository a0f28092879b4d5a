//! NVIDIA's driver: a CUDA context of our own, with its streams and kernels.
//!
//! The driver's library is loaded at run time, so that one binary serves machines with and without a driver.

// SAFETY of the calls of the driver: `Cuda::open` has found its library, in a version that has every function named
// here. Handles are those that the driver gave for this context, which lives until `Cuda` is dropped. The driver writes
// to locals of the right type. Addresses in commands are those that `allocate` gave, which callers keep until they have
// waited; the driver would take any other for host memory. Blocks that rely on more say so.
#![allow(unsafe_code)]

mod graph;
mod module;
mod pages;
mod registry;
mod result;

use crate::device::{Address, Allocation, Command, Device, Properties, STREAMS, Shape, Side, Stream};
use crate::error::GpuError;
use crate::kernel::Kernel;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUresult};
use graph::Graphs;
use module::Loaded;
use registry::Registry;
use result::{Request, is_fault, refusal};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The CUDA version of the committed PTX, as the driver numbers versions, and the first driver that supports it.
const NEEDED_CUDA: (i32, &str) = (13_000, "13.0");
const NEEDED_DRIVER: &str = "580";
/// The compute capability of the committed PTX.
const NEEDED_CAPABILITY: (i32, i32) = (8, 0);

/// An NVIDIA GPU, with a context of its own.
///
/// A fault of a kernel, such as an illegal access, ends every context of the process, and the driver (tried with 580)
/// creates no other one in that process, whatever is dropped first. `open` then returns [`GpuError::Lost`]; other
/// processes are not affected.
#[derive(Debug)]
pub struct Cuda {
    properties: Properties,
    /// Declared, and so dropped, before the context, which must outlive their graphs.
    streams: [StreamState; STREAMS],
    /// Shared with the registry, if it has registered host memory.
    context: Arc<Context>,
    loaded: Mutex<Loaded>,
    /// Why the device was lost: the error of every call from then on.
    lost: OnceLock<GpuError>,
}

// SAFETY: only handles keep `Cuda` from being sent and shared; the driver accepts them from any thread at any time, as
// long as the context is current there, which `make_current` ensures.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

/// A context, with everything created in it: streams, events, modules, memory.
#[derive(Debug)]
struct Context(sys::CUcontext);

// SAFETY: a handle; as for `Cuda`.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, and nothing of it is used after its owner.
        let _ = unsafe { sys::cuCtxDestroy_v2(self.0) };
    }
}

/// A stream, with the times recorded in it and its graphs.
#[derive(Debug)]
struct StreamState {
    handle: sys::CUstream,
    marks: Mutex<Marks>,
    graphs: Mutex<Graphs>,
}

/// The events of a stream, which are reused after each wait.
#[derive(Debug, Default)]
struct Marks {
    events: Vec<sys::CUevent>,
    /// How many of them were recorded since the last wait.
    recorded: usize,
}

impl Cuda {
    /// Opens a device by its ordinal, counted from 0.
    pub fn open(ordinal: usize) -> Result<Cuda, GpuError> {
        // SAFETY: this only looks for the library, whose start code is NVIDIA's. Without the library cudarc panics.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver { reason: "libcuda.so was not found".to_owned(), needed: NEEDED_DRIVER });
        }
        let version = driver_version()?;
        let mut device = 0;
        unsafe {
            opened(sys::cuInit(0))?;
            opened(sys::cuDeviceGet(&mut device, i32::try_from(ordinal).unwrap_or(i32::MAX)))?;
        }
        let properties = properties_of(device, &version)?;
        let mut context = null_mut();
        opened(unsafe { sys::cuCtxCreate_v4(&mut context, null_mut(), 0, device) })?;
        let context = Arc::new(Context(context));
        // Beside what the context takes.
        let (mut free, mut memory) = (0, 0);
        opened(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut memory) })?;
        let properties = Properties { free: free as u64, ..properties };
        let mut streams = [null_mut(); STREAMS];
        for stream in &mut streams {
            opened(unsafe { sys::cuStreamCreate(stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32) })?;
        }
        // A new context is pushed onto the stack of this thread; nobody else would pop it.
        opened(unsafe { sys::cuCtxPopCurrent_v2(&mut null_mut()) })?;
        let streams = streams.map(|handle| StreamState { handle, marks: Mutex::default(), graphs: Mutex::default() });
        Ok(Cuda { properties, context, streams, loaded: Mutex::default(), lost: OnceLock::new() })
    }

    /// Makes the context current in the calling thread.
    fn make_current(&self) -> Result<(), GpuError> {
        match self.lost.get() {
            Some(lost) => Err(lost.clone()),
            None => self
                .check(unsafe { sys::cuCtxSetCurrent(self.context.0) }, Request::Other("making the context current")),
        }
    }

    /// Turns the result of a driver call into an error; remembers a loss.
    fn check(&self, result: CUresult, request: Request<'_>) -> Result<(), GpuError> {
        if result == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        match refusal(result, request, explain(result)) {
            lost @ GpuError::Lost { .. } => Err(self.lost.get_or_init(|| lost).clone()),
            error => Err(error),
        }
    }

    fn state_of(&self, stream: Stream) -> Result<&StreamState, GpuError> {
        let reason = || format!("stream {} does not exist; there are {STREAMS}", stream.0);
        self.streams.get(stream.0).ok_or_else(|| GpuError::Failed { at: "finding a stream", reason: reason() })
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Address), GpuError> {
        let request = Request::Memory(Side::Host, bytes);
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        let (mut given, mut address) = (null_mut(), 0);
        self.check(unsafe { sys::cuMemHostAlloc(&mut given, bytes, flags) }, request)?;
        let nothing = || GpuError::OutOfMemory { asked: bytes as u64, reason: "the driver gave no address".to_owned() };
        let host = NonNull::new(given.cast::<u8>()).ok_or_else(nothing)?;
        // SAFETY: the driver has just allocated these bytes.
        unsafe { host.write_bytes(0, bytes) };
        let found = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, given, 0) };
        if let Err(error) = self.check(found, request) {
            // SAFETY: just allocated, and nobody else has the address.
            let _ = unsafe { sys::cuMemFreeHost(given) };
            return Err(error);
        }
        Ok((host, Address(address)))
    }

    /// Enqueues one command.
    fn start(&self, stream: &StreamState, command: &Command<'_>) -> Result<(), GpuError> {
        match *command {
            Command::Write { from: &[], .. } | Command::Copy { bytes: 0, .. } | Command::Clear { bytes: 0, .. } => {
                Ok(())
            }
            Command::Write { from, to } => self.write(stream, from, to),
            Command::Copy { from, to, bytes } => {
                let result = unsafe { sys::cuMemcpyAsync(to.0, from.0, bytes, stream.handle) };
                self.check(result, Request::Other("a copy"))
            }
            Command::Clear { at, bytes } => {
                let result = unsafe { sys::cuMemsetD8Async(at.0, 0, bytes, stream.handle) };
                self.check(result, Request::Other("clearing memory"))
            }
            Command::Launch { kernel, shape, argument } => self.launch(stream, kernel, shape, argument),
            Command::Load { kernel } => self.function(kernel, 0).map(drop),
            Command::Mark => self.mark(stream),
        }
    }

    /// Copies by a batch of one: a batched copy can guarantee that its source has been consumed on return. A plain
    /// asynchronous copy reads pinned memory later, and for other memory NVIDIA guarantees nothing.
    /// The driver may refuse a copy that reads during the call from memory that is registered, as by another engine with
    /// the same mapping. Then it is an ordinary copy, which is waited for. What is registered only in part is divided.
    fn write(&self, stream: &StreamState, from: &[u8], to: Address) -> Result<(), GpuError> {
        let mut result = Cuda::start_write(stream, from, to);
        if result == CUresult::CUDA_SUCCESS || is_fault(result) {
            return self.check(result, Request::Other("a copy to it"));
        }
        // SAFETY: `from` is read until the stream has been waited for.
        unsafe {
            result = sys::cuMemcpyHtoDAsync_v2(to.0, from.as_ptr().cast(), from.len(), stream.handle);
            if result == CUresult::CUDA_SUCCESS {
                result = sys::cuStreamSynchronize(stream.handle);
            }
        }
        let middle = pages::divide(from.as_ptr() as usize, from.len());
        let Some(middle) = middle.filter(|_| result != CUresult::CUDA_SUCCESS && !is_fault(result)) else {
            return self.check(result, Request::Other("a copy to it"));
        };
        let (first, second) = from.split_at(middle);
        self.write(stream, first, to)?;
        self.write(stream, second, to.plus(middle))
    }

    fn start_write(stream: &StreamState, from: &[u8], to: Address) -> CUresult {
        let nowhere = sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID, id: 0 };
        let mut attributes = sys::CUmemcpyAttributes {
            srcAccessOrder: sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
            srcLocHint: nowhere,
            dstLocHint: nowhere,
            flags: 0,
        };
        let (mut to, mut source, mut bytes, mut first) = (to.0, from.as_ptr() as u64, from.len(), 0);
        // SAFETY: each array has one element, and `from` is read during the call.
        unsafe {
            sys::cuMemcpyBatchAsync_v2(
                &mut to,
                &mut source,
                &mut bytes,
                1,
                &mut attributes,
                &mut first,
                1,
                stream.handle,
            )
        }
    }

    fn launch(&self, stream: &StreamState, kernel: &Kernel, shape: Shape, argument: &[u8]) -> Result<(), GpuError> {
        let handle = self.function(kernel, shape.shared)?;
        let (grid, block, shared) = (shape.grid, shape.block, shape.shared as u32);
        let mut bytes = argument.len();
        let mut extra: [*mut c_void; 5] = [
            sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as _,
            argument.as_ptr().cast_mut().cast(),
            sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as _,
            (&raw mut bytes).cast(),
            sys::CU_LAUNCH_PARAM_END_AS_INT as _,
        ];
        // SAFETY: the driver copies the argument during the call and does not write to it; its type is the kernel's, as
        // `kernels!` declares.
        let result = unsafe {
            let extra = extra.as_mut_ptr();
            sys::cuLaunchKernel(handle, grid, 1, 1, block, 1, 1, shared, stream.handle, null_mut(), extra)
        };
        self.check(result, Request::Start(kernel.name))
    }

    fn mark(&self, stream: &StreamState) -> Result<(), GpuError> {
        let request = Request::Other("recording the time");
        let mut marks = lock(&stream.marks);
        let event = match marks.events.get(marks.recorded) {
            Some(event) => *event,
            None => {
                let mut event = null_mut();
                self.check(unsafe { sys::cuEventCreate(&mut event, 0) }, request)?;
                marks.events.push(event);
                event
            }
        };
        self.check(unsafe { sys::cuEventRecord(event, stream.handle) }, request)?;
        marks.recorded += 1;
        Ok(())
    }

    fn between(&self, from: sys::CUevent, to: sys::CUevent) -> Result<Duration, GpuError> {
        let mut milliseconds = 0.0;
        let result = unsafe { sys::cuEventElapsedTime_v2(&mut milliseconds, from, to) };
        self.check(result, Request::Other("reading the time"))?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

/// What is registered in this process.
fn registry() -> &'static Mutex<Registry<Arc<Context>>> {
    static REGISTRY: OnceLock<Mutex<Registry<Arc<Context>>>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default)
}

impl Device for Cuda {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Allocation, GpuError> {
        self.make_current()?;
        // The driver refuses allocations of 0 bytes.
        let given = bytes.max(1);
        let (host, address) = match side {
            Side::Host => self.pin(given).map(|(host, address)| (Some(host), address))?,
            Side::Device => {
                let mut address = 0;
                let result = unsafe { sys::cuMemAlloc_v2(&mut address, given) };
                self.check(result, Request::Memory(side, bytes))?;
                (None, Address(address))
            }
        };
        Ok(Allocation { address, host, bytes })
    }

    fn free(&self, allocation: Allocation) {
        // The memory of a lost device goes with its context.
        if self.make_current().is_ok() {
            // SAFETY: `allocate` returned the allocation, and its owner frees it once.
            let _ = unsafe {
                match allocation.host {
                    Some(host) => sys::cuMemFreeHost(host.as_ptr().cast()),
                    None => sys::cuMemFree_v2(allocation.address.0),
                }
            };
        }
    }

    /// Not through `check`: whatever the driver says of this memory, the device goes on with other memory.
    fn register(&self, host: NonNull<u8>, bytes: usize) -> Result<Address, GpuError> {
        self.make_current()?;
        // Held until the driver has answered, so that nobody registers the same pages meanwhile.
        let mut registry = lock(registry());
        if let Some(address) = registry.count(host.as_ptr() as usize, bytes) {
            return Ok(address);
        }
        let refused = |result| GpuError::Failed { at: "registering host memory", reason: explain(result) };
        let flags = sys::CU_MEMHOSTREGISTER_DEVICEMAP | sys::CU_MEMHOSTREGISTER_READ_ONLY;
        let flags = flags | sys::CU_MEMHOSTREGISTER_PORTABLE;
        // SAFETY: the caller keeps the pages mapped until `unregister`; the flag says that nothing is written there.
        let result = unsafe { sys::cuMemHostRegister_v2(host.as_ptr().cast(), bytes, flags) };
        if result != CUresult::CUDA_SUCCESS {
            return Err(refused(result));
        }
        let mut address = 0;
        let found = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, host.as_ptr().cast(), 0) };
        if found != CUresult::CUDA_SUCCESS {
            // SAFETY: registered just now, and nobody has its address.
            let _ = unsafe { sys::cuMemHostUnregister(host.as_ptr().cast()) };
            return Err(refused(found));
        }
        registry.add(host.as_ptr() as usize, bytes, Address(address), Arc::clone(&self.context));
        Ok(Address(address))
    }

    fn unregister(&self, host: NonNull<u8>) {
        let mut registry = lock(registry());
        let Some(context) = registry.end(host.as_ptr() as usize) else {
            return;
        };
        // In the context that has registered it, which may be another device's that is closed. A lost device lets go of it
        // with its context.
        // SAFETY: the context lives; the last user of the memory says that nothing uses it any more.
        unsafe {
            if sys::cuCtxSetCurrent(context.0) == CUresult::CUDA_SUCCESS {
                let _ = sys::cuMemHostUnregister(host.as_ptr().cast());
            }
        }
    }

    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        self.make_current()?;
        let stream = self.state_of(stream)?;
        if commands.len() > 1 && self.start_together(stream, commands)? {
            return Ok(());
        }
        commands.iter().try_for_each(|command| self.start(stream, command))
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.make_current()?;
        let stream = self.state_of(stream)?;
        // Held during the wait, so that no event is recorded meanwhile.
        let mut marks = lock(&stream.marks);
        let done = self.check(unsafe { sys::cuStreamSynchronize(stream.handle) }, Request::Other("waiting"));
        let recorded = std::mem::take(&mut marks.recorded);
        done?;
        marks.events[..recorded].windows(2).map(|pair| self.between(pair[0], pair[1])).collect()
    }

    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.make_current()?;
        match unsafe { sys::cuStreamQuery(self.state_of(stream)?.handle) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => self.check(result, Request::Other("querying the stream")).map(|()| true),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The version of CUDA that the driver supports, if it is new enough.
fn driver_version() -> Result<String, GpuError> {
    let mut version = 0;
    opened(unsafe { sys::cuDriverGetVersion(&mut version) })?;
    let (needed, needed_name) = NEEDED_CUDA;
    let found = format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < needed { Err(GpuError::OldDriver { found, needed: needed_name }) } else { Ok(found) }
}

fn properties_of(device: sys::CUdevice, version: &str) -> Result<Properties, GpuError> {
    let mut name = [0u8; 256];
    let mut memory = 0;
    unsafe {
        opened(sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device))?;
        opened(sys::cuDeviceTotalMem_v2(&mut memory, device))?;
    }
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
    let attribute = |which| {
        let mut value = 0;
        opened(unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) }).map(|()| value)
    };
    let capability = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    if capability < NEEDED_CAPABILITY {
        let ((major, minor), (needed_major, needed_minor)) = (capability, NEEDED_CAPABILITY);
        let needed = format!("the kernels need {needed_major}.{needed_minor} or more");
        return Err(GpuError::NoDevice {
            reason: format!("{name} has compute capability {major}.{minor}, and {needed}"),
        });
    }
    Ok(Properties {
        name: format!("{name}, with a driver for CUDA {version}"),
        memory: memory as u64,
        free: memory as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        shared: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        is_simulated: false,
    })
}

/// Turns the result of a driver call into an error, while a device is opened.
fn opened(result: CUresult) -> Result<(), GpuError> {
    use sys::cudaError_enum::*;
    match result {
        CUDA_SUCCESS => Ok(()),
        CUDA_ERROR_STUB_LIBRARY | CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            Err(GpuError::NoDriver { reason: explain(result), needed: NEEDED_DRIVER })
        }
        _ if is_fault(result) => {
            let reason =
                format!("{}; no GPU can be opened in this process any more, restart the program", explain(result));
            Err(GpuError::Lost { reason })
        }
        _ => Err(GpuError::NoDevice { reason: explain(result) }),
    }
}

/// The driver's name and description of a result.
fn explain(result: CUresult) -> String {
    let text = |find: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = null();
        // SAFETY: it is null, or a static text of the driver.
        unsafe {
            let _ = find(result, &mut text);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        }
    };
    format!("{}: {}", text(sys::cuGetErrorName), text(sys::cuGetErrorString))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_open_says_what_to_do() {
        let is_required = std::env::var("LANNER_REQUIRE_GPU").is_ok_and(|value| value == "1");
        let error = match Cuda::open(0) {
            Ok(cuda) => return assert!(!cuda.properties().is_simulated && cuda.properties().memory > 0),
            Err(error) => error,
        };
        assert!(!is_required, "LANNER_REQUIRE_GPU is set, and {error}");
        assert!(
            matches!(error, GpuError::NoDriver { .. } | GpuError::OldDriver { .. } | GpuError::NoDevice { .. }),
            "{error:?}"
        );
        assert!(error.to_string().ends_with("or use the CPU"), "{error}");
    }
}
