//! NVIDIA's driver: a context of our own, its streams, and the kernels that it has loaded.
//!
//! The library is looked for when the program runs, so one binary serves machines with a driver and without.

// SAFETY of the calls of the driver: `Cuda::open` has found its library, and a version that has every function named
// here. Handles are those that the driver gave for this context, which lives until `Cuda` is dropped. What the driver
// writes to are locals of the right type. Addresses in commands are those that `allocate` gave, which callers keep until
// they have waited: any other place the driver would take for memory of the host. A block says more where it rests on
// more.
#![allow(unsafe_code)]

mod graph;

use crate::device::{Address, Command, Device, Limits, Piece, STREAMS, Shape, Side, Stream};
use crate::error::GpuError;
use crate::kernel::{Kernel, Module};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUresult};
use graph::Graphs;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The CUDA that the committed PTX is made for, as drivers count versions, and the first driver that has it.
const NEEDED_CUDA: (i32, &str) = (13_000, "13.0");
const NEEDED_DRIVER: &str = "580";
/// The compute capability that the committed PTX is made for.
const NEEDED_CAPABILITY: (i32, i32) = (8, 0);
/// Bytes of shared memory that a block may have without asking.
const SHARED_UNASKED: usize = 48 << 10;
/// Room for what the driver's compiler says about a module.
const LOG_BYTES: usize = 8 << 10;

/// A device of NVIDIA's, with a context of its own.
///
/// A fault of a kernel, such as an illegal access, ends every context of the process, and the driver (580 was tried)
/// makes no other one there, whatever was dropped before. `open` then answers [`GpuError::Lost`]; other processes go on.
#[derive(Debug)]
pub struct Cuda {
    limits: Limits,
    /// Before the context, which outlives the graphs in them.
    streams: [Queue; STREAMS],
    context: Context,
    loaded: Mutex<Loaded>,
    /// Why the device was lost: what every call answers from then on.
    lost: OnceLock<GpuError>,
}

// SAFETY: all that keeps `Cuda` from being sent and shared are handles; the driver takes them from any thread at any
// time, as long as the context is current there, which `enter` sees to.
unsafe impl Send for Cuda {}
// SAFETY: as above.
unsafe impl Sync for Cuda {}

/// A context, with all that was made in it: streams, events, modules, memory.
#[derive(Debug)]
struct Context(sys::CUcontext);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is ours alone, and nothing of it is used after its owner.
        let _ = unsafe { sys::cuCtxDestroy_v2(self.0) };
    }
}

/// A stream, the times that were noted in it, and what it can start together.
#[derive(Debug)]
struct Queue {
    stream: sys::CUstream,
    marks: Mutex<Marks>,
    graphs: Mutex<Graphs>,
}

/// The events of a stream, which serve again after each wait.
#[derive(Debug, Default)]
struct Marks {
    events: Vec<sys::CUevent>,
    /// So many of them were recorded since the last wait.
    recorded: usize,
}

/// What was loaded, by the names of module and kernel.
#[derive(Debug, Default)]
struct Loaded {
    modules: HashMap<&'static str, sys::CUmodule>,
    functions: HashMap<(&'static str, &'static str), Function>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    handle: sys::CUfunction,
    /// Bytes of shared memory that its blocks may have.
    shared: usize,
}

/// What the driver is asked for, by which its refusal is named.
#[derive(Clone, Copy, Debug)]
enum Request<'a> {
    Memory(Side, usize),
    /// A kernel or module.
    Start(&'a str),
    Other(&'static str),
}

impl Cuda {
    /// Opens a device by its number, counted from 0.
    pub fn open(ordinal: usize) -> Result<Cuda, GpuError> {
        // SAFETY: this only looks for the library, whose own start code is NVIDIA's. Without it cudarc panics.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuError::NoDriver { reason: "libcuda.so is not there".to_owned(), needed: NEEDED_DRIVER });
        }
        let version = driver_version()?;
        let mut device = 0;
        unsafe {
            opened(sys::cuInit(0))?;
            opened(sys::cuDeviceGet(&mut device, i32::try_from(ordinal).unwrap_or(i32::MAX)))?;
        }
        let limits = limits_of(device, &version)?;
        let mut context = null_mut();
        opened(unsafe { sys::cuCtxCreate_v4(&mut context, null_mut(), 0, device) })?;
        let context = Context(context);
        let mut streams = [null_mut(); STREAMS];
        for stream in &mut streams {
            opened(unsafe { sys::cuStreamCreate(stream, sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32) })?;
        }
        // To create a context puts it on top of those of this thread, where nobody would take it away.
        opened(unsafe { sys::cuCtxPopCurrent_v2(&mut null_mut()) })?;
        let streams = streams.map(|stream| Queue { stream, marks: Mutex::default(), graphs: Mutex::default() });
        Ok(Cuda { limits, context, streams, loaded: Mutex::default(), lost: OnceLock::new() })
    }

    /// Prepares the calling thread, which may be any.
    fn enter(&self) -> Result<(), GpuError> {
        match self.lost.get() {
            Some(lost) => Err(lost.clone()),
            None => self.check(unsafe { sys::cuCtxSetCurrent(self.context.0) }, Request::Other("taking the context")),
        }
    }

    /// What a call of the driver says; a loss is remembered.
    fn check(&self, result: CUresult, request: Request<'_>) -> Result<(), GpuError> {
        if result == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        match refusal(result, request, explain(result)) {
            lost @ GpuError::Lost { .. } => Err(self.lost.get_or_init(|| lost).clone()),
            error => Err(error),
        }
    }

    fn queue(&self, stream: Stream) -> Result<&Queue, GpuError> {
        let reason = || format!("there are {STREAMS} streams, and none has the number {}", stream.0);
        self.streams.get(stream.0).ok_or_else(|| GpuError::Failed { at: "finding a stream", reason: reason() })
    }

    fn pin(&self, bytes: usize) -> Result<(NonNull<u8>, Address), GpuError> {
        let request = Request::Memory(Side::Host, bytes);
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        let (mut given, mut address) = (null_mut(), 0);
        self.check(unsafe { sys::cuMemHostAlloc(&mut given, bytes, flags) }, request)?;
        let Some(host) = NonNull::new(given.cast::<u8>()) else {
            return Err(GpuError::OutOfMemory { asked: bytes as u64, reason: "the driver gave no place".to_owned() });
        };
        // SAFETY: the driver has just given so many bytes there.
        unsafe { host.write_bytes(0, bytes) };
        let found = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, given, 0) };
        if let Err(error) = self.check(found, request) {
            // SAFETY: nobody else knows of it.
            let _ = unsafe { sys::cuMemFreeHost(given) };
            return Err(error);
        }
        Ok((host, Address(address)))
    }

    /// Puts one command into a stream.
    fn start(&self, queue: &Queue, command: &Command<'_>) -> Result<(), GpuError> {
        match *command {
            Command::Write { from: &[], .. } | Command::Copy { bytes: 0, .. } | Command::Clear { bytes: 0, .. } => {
                Ok(())
            }
            Command::Write { from, to } => self.write(queue, from, to),
            Command::Copy { from, to, bytes } => {
                let result = unsafe { sys::cuMemcpyAsync(to.0, from.0, bytes, queue.stream) };
                self.check(result, Request::Other("a copy"))
            }
            Command::Clear { at, bytes } => {
                let result = unsafe { sys::cuMemsetD8Async(at.0, 0, bytes, queue.stream) };
                self.check(result, Request::Other("clearing memory"))
            }
            Command::Launch { kernel, shape, argument } => self.launch(queue, kernel, shape, argument),
            Command::Mark => self.mark(queue),
        }
    }

    /// Copies by a batch of one: of a batch can be demanded that it has read its source when the call returns. A plain
    /// asynchronous copy reads pinned memory later, and of other memory NVIDIA promises nothing.
    fn write(&self, queue: &Queue, from: &[u8], to: Address) -> Result<(), GpuError> {
        let nowhere = sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID, id: 0 };
        let mut attributes = sys::CUmemcpyAttributes {
            srcAccessOrder: sys::CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
            srcLocHint: nowhere,
            dstLocHint: nowhere,
            flags: 0,
        };
        let (mut to, mut source, mut bytes, mut first) = (to.0, from.as_ptr() as u64, from.len(), 0);
        // SAFETY: each array has one element, and `from` is read during the call.
        let result = unsafe {
            sys::cuMemcpyBatchAsync_v2(
                &mut to,
                &mut source,
                &mut bytes,
                1,
                &mut attributes,
                &mut first,
                1,
                queue.stream,
            )
        };
        self.check(result, Request::Other("a copy to it"))
    }

    fn launch(&self, queue: &Queue, kernel: &Kernel, shape: Shape, argument: &[u8]) -> Result<(), GpuError> {
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
        // SAFETY: the driver copies the argument during the call and writes to none of it; its type is the kernel's, as
        // `kernels!` declares.
        let result = unsafe {
            let extra = extra.as_mut_ptr();
            sys::cuLaunchKernel(handle, grid, 1, 1, block, 1, 1, shared, queue.stream, null_mut(), extra)
        };
        self.check(result, Request::Start(kernel.name))
    }

    /// Finds a kernel, and lets its blocks have so much shared memory.
    fn function(&self, kernel: &Kernel, shared: usize) -> Result<sys::CUfunction, GpuError> {
        if shared > self.limits.shared {
            let reason =
                format!("a block of it needs {shared} bytes of shared memory, and may have {}", self.limits.shared);
            return Err(GpuError::Launch { name: kernel.name.to_owned(), reason });
        }
        let Loaded { modules, functions } = &mut *lock(&self.loaded);
        let request = Request::Start(kernel.name);
        let function = match functions.entry((kernel.module.name, kernel.name)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let module = match modules.entry(kernel.module.name) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(place) => *place.insert(self.load(kernel.module)?),
                };
                let name = text_of(kernel.name, kernel.name)?;
                let mut handle = null_mut();
                self.check(unsafe { sys::cuModuleGetFunction(&mut handle, module, name.as_ptr()) }, request)?;
                place.insert(Function { handle, shared: SHARED_UNASKED })
            }
        };
        if shared > function.shared {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let result = unsafe { sys::cuFuncSetAttribute(function.handle, attribute, shared as i32) };
            self.check(result, request)?;
            function.shared = shared;
        }
        Ok(function.handle)
    }

    fn load(&self, module: &Module) -> Result<sys::CUmodule, GpuError> {
        let ptx = text_of(module.ptx, module.name)?;
        let mut log = vec![0; LOG_BYTES];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as _];
        let mut handle = null_mut();
        // SAFETY: the text ends with a zero; the log has the length that the second value states.
        let result = unsafe {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            sys::cuModuleLoadDataEx(&mut handle, ptx.as_ptr().cast(), 2, options, values)
        };
        self.check(result, Request::Start(module.name)).map(|()| handle).map_err(|error| match error {
            GpuError::Launch { name, reason } => {
                let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
                GpuError::Launch { name, reason: [reason.as_str(), log.trim()].join(": ") }
            }
            other => other,
        })
    }

    fn mark(&self, queue: &Queue) -> Result<(), GpuError> {
        let request = Request::Other("noting the time");
        let mut marks = lock(&queue.marks);
        let event = match marks.events.get(marks.recorded) {
            Some(event) => *event,
            None => {
                let mut event = null_mut();
                self.check(unsafe { sys::cuEventCreate(&mut event, 0) }, request)?;
                marks.events.push(event);
                event
            }
        };
        self.check(unsafe { sys::cuEventRecord(event, queue.stream) }, request)?;
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

impl Device for Cuda {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, side: Side, bytes: usize) -> Result<Piece, GpuError> {
        self.enter()?;
        // The driver gives no memory of no bytes.
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
        Ok(Piece { address, host, bytes, side })
    }

    fn free(&self, piece: Piece) {
        // What a lost device holds goes with its context.
        if self.enter().is_ok() {
            // SAFETY: `allocate` gave the piece, and its owner gives it back once.
            let _ = unsafe {
                match piece.host {
                    Some(host) => sys::cuMemFreeHost(host.as_ptr().cast()),
                    None => sys::cuMemFree_v2(piece.address.0),
                }
            };
        }
    }

    fn submit(&self, stream: Stream, commands: &[Command<'_>]) -> Result<(), GpuError> {
        self.enter()?;
        let queue = self.queue(stream)?;
        if commands.len() > 1 && self.start_together(queue, commands)? {
            return Ok(());
        }
        commands.iter().try_for_each(|command| self.start(queue, command))
    }

    fn wait(&self, stream: Stream) -> Result<Vec<Duration>, GpuError> {
        self.enter()?;
        let queue = self.queue(stream)?;
        // Held all the while, so that there is no mark whose time has not come.
        let mut marks = lock(&queue.marks);
        let done = self.check(unsafe { sys::cuStreamSynchronize(queue.stream) }, Request::Other("waiting"));
        let recorded = std::mem::take(&mut marks.recorded);
        done?;
        marks.events[..recorded].windows(2).map(|pair| self.between(pair[0], pair[1])).collect()
    }

    fn is_idle(&self, stream: Stream) -> Result<bool, GpuError> {
        self.enter()?;
        match unsafe { sys::cuStreamQuery(self.queue(stream)?.stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => self.check(result, Request::Other("asking")).map(|()| true),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text as the driver takes it.
fn text_of(text: &str, name: &str) -> Result<CString, GpuError> {
    CString::new(text).map_err(|error| GpuError::Launch { name: name.to_owned(), reason: error.to_string() })
}

/// The version of CUDA that the driver supports, if it is new enough.
fn driver_version() -> Result<String, GpuError> {
    let mut version = 0;
    opened(unsafe { sys::cuDriverGetVersion(&mut version) })?;
    let (needed, needed_name) = NEEDED_CUDA;
    let found = format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < needed { Err(GpuError::OldDriver { found, needed: needed_name }) } else { Ok(found) }
}

fn limits_of(device: sys::CUdevice, version: &str) -> Result<Limits, GpuError> {
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
    Ok(Limits {
        name: format!("{name}, with a driver for CUDA {version}"),
        memory: memory as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        shared: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        is_simulated: false,
    })
}

/// What a call of the driver says on the way to an open device.
fn opened(result: CUresult) -> Result<(), GpuError> {
    use sys::cudaError_enum::*;
    match result {
        CUDA_SUCCESS => Ok(()),
        CUDA_ERROR_STUB_LIBRARY | CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            Err(GpuError::NoDriver { reason: explain(result), needed: NEEDED_DRIVER })
        }
        _ if is_fault(result) => {
            let reason =
                format!("{}; after that no GPU opens in this process, start the program anew", explain(result));
            Err(GpuError::Lost { reason })
        }
        _ => Err(GpuError::NoDevice { reason: explain(result) }),
    }
}

/// A result by the driver's name for it and the driver's sentence on it.
fn explain(result: CUresult) -> String {
    let text = |find: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = null();
        // SAFETY: it is null, or a text of the driver's own that stays.
        unsafe {
            let _ = find(result, &mut text);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        }
    };
    format!("{}: {}", text(sys::cuGetErrorName), text(sys::cuGetErrorString))
}

/// The error that a refusal is.
fn refusal(result: CUresult, request: Request<'_>, reason: String) -> GpuError {
    match (result, request) {
        (result, _) if is_lost(result) => GpuError::Lost { reason },
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Memory(Side::Device, bytes)) => {
            GpuError::OutOfMemory { asked: bytes as u64, reason }
        }
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Memory(Side::Host, bytes)) => {
            GpuError::OutOfMemory { asked: bytes as u64, reason: format!("{reason}, in pinned memory of the host") }
        }
        // Of what the driver takes for itself it does not say how much.
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Start(name)) => {
            GpuError::OutOfMemory { asked: 0, reason: format!("{reason}, at starting {name}") }
        }
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Other(at)) => {
            GpuError::OutOfMemory { asked: 0, reason: format!("{reason}, at {at}") }
        }
        (_, Request::Start(name)) => GpuError::Launch { name: name.to_owned(), reason },
        (_, Request::Memory(..)) => GpuError::Failed { at: "taking memory", reason },
        (_, Request::Other(at)) => GpuError::Failed { at, reason },
    }
}

/// Whether a kernel, or the device itself, did what ends every context of the process.
fn is_fault(result: CUresult) -> bool {
    use sys::cudaError_enum::*;
    matches!(
        result,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
    )
}

/// Whether nothing works in a context any more after such a result.
fn is_lost(result: CUresult) -> bool {
    use sys::cudaError_enum::*;
    is_fault(result)
        || matches!(
            result,
            CUDA_ERROR_INVALID_CONTEXT
                | CUDA_ERROR_CONTEXT_IS_DESTROYED
                | CUDA_ERROR_NOT_INITIALIZED
                | CUDA_ERROR_DEINITIALIZED
                | CUDA_ERROR_DEVICE_UNAVAILABLE
                | CUDA_ERROR_EXTERNAL_DEVICE
                | CUDA_ERROR_KEY_ROTATION
                | CUDA_ERROR_SYSTEM_NOT_READY
                | CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
                | CUDA_ERROR_MPS_RPC_FAILURE
                | CUDA_ERROR_MPS_CLIENT_TERMINATED
                | CUDA_ERROR_UNKNOWN
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_open_says_what_to_do() {
        let is_required = std::env::var("LANNER_REQUIRE_GPU").is_ok_and(|value| value == "1");
        let error = match Cuda::open(0) {
            Ok(cuda) => return assert!(!cuda.limits().is_simulated && cuda.limits().memory > 0),
            Err(error) => error,
        };
        assert!(!is_required, "LANNER_REQUIRE_GPU is set, and {error}");
        assert!(
            matches!(error, GpuError::NoDriver { .. } | GpuError::OldDriver { .. } | GpuError::NoDevice { .. }),
            "{error:?}"
        );
        assert!(error.to_string().ends_with("or search with '--executor cpu'"), "{error}");
    }

    #[test]
    fn a_refusal_is_named_by_what_was_asked_for() {
        use sys::cudaError_enum::*;
        let reason = || "why".to_owned();
        let memory = Request::Memory(Side::Device, 7);
        let start = Request::Start("trial_sum");
        let other = Request::Other("a copy");
        let lost = GpuError::Lost { reason: reason() };
        for (result, request, expected) in [
            (CUDA_ERROR_OUT_OF_MEMORY, memory, GpuError::OutOfMemory { asked: 7, reason: reason() }),
            (CUDA_ERROR_INVALID_VALUE, memory, GpuError::Failed { at: "taking memory", reason: reason() }),
            (CUDA_ERROR_ILLEGAL_ADDRESS, memory, lost.clone()),
            (CUDA_ERROR_INVALID_PTX, start, GpuError::Launch { name: "trial_sum".to_owned(), reason: reason() }),
            (CUDA_ERROR_LAUNCH_FAILED, start, lost.clone()),
            (CUDA_ERROR_INVALID_VALUE, other, GpuError::Failed { at: "a copy", reason: reason() }),
            (CUDA_ERROR_ECC_UNCORRECTABLE, other, lost),
        ] {
            assert_eq!(refusal(result, request, reason()), expected, "{result:?} {request:?}");
        }
    }
}
