//! Modules and their kernels: loaded when they are first launched or on command, and kept.

// SAFETY of the calls of the driver: as in `cuda.rs`.
#![allow(unsafe_code)]

use super::{Cuda, Request, lock};
use crate::error::GpuError;
use crate::kernel::{Kernel, Module};
use cudarc::driver::sys;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

/// Bytes of shared memory that a thread block may have without opting in.
const SHARED_BY_DEFAULT: usize = 48 << 10;
/// Capacity of the log of the driver's compiler.
const LOG_BYTES: usize = 8 << 10;

/// Loaded modules and kernels, by name.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    modules: HashMap<&'static str, sys::CUmodule>,
    functions: HashMap<(&'static str, &'static str), Function>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    handle: sys::CUfunction,
    /// Bytes of shared memory that its thread blocks may have.
    shared: usize,
}

impl Cuda {
    /// Finds a kernel, and allows its thread blocks `shared` bytes of shared memory.
    pub(super) fn function(&self, kernel: &Kernel, shared: usize) -> Result<sys::CUfunction, GpuError> {
        if shared > self.properties.shared {
            let reason = format!("it needs {shared} bytes of shared memory, the device has {}", self.properties.shared);
            return Err(GpuError::Launch { name: kernel.name.to_owned(), reason });
        }
        let Loaded { modules, functions } = &mut *lock(&self.loaded);
        let request = Request::Start(kernel.name);
        let function = match functions.entry((kernel.module.name, kernel.name)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(entry) => {
                let module = match modules.entry(kernel.module.name) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(entry) => *entry.insert(self.load(kernel.module)?),
                };
                let name = text_of(kernel.name, kernel.name)?;
                let mut handle = null_mut();
                self.check(unsafe { sys::cuModuleGetFunction(&mut handle, module, name.as_ptr()) }, request)?;
                entry.insert(Function { handle, shared: SHARED_BY_DEFAULT })
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
        // SAFETY: the text ends with a zero byte; the log has the length that the second value states.
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
}

/// A text that ends with a zero byte, as the driver wants it.
fn text_of(text: &str, name: &str) -> Result<CString, GpuError> {
    CString::new(text).map_err(|error| GpuError::Launch { name: name.to_owned(), reason: error.to_string() })
}
