//! Results of the driver's calls as errors.

use crate::device::Side;
use crate::error::GpuError;
use cudarc::driver::sys::{self, CUresult};

/// The request to the driver, which an error names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request<'a> {
    Memory(Side, usize),
    /// A kernel or module.
    Start(&'a str),
    Other(&'static str),
}

/// The error for a result.
pub(super) fn refusal(result: CUresult, request: Request<'_>, reason: String) -> GpuError {
    match (result, request) {
        (result, _) if is_lost(result) => GpuError::Lost { reason },
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Memory(Side::Device, bytes)) => {
            GpuError::OutOfMemory { asked: bytes as u64, reason }
        }
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Memory(Side::Host, bytes)) => {
            GpuError::OutOfMemory { asked: bytes as u64, reason: format!("{reason}, in pinned host memory") }
        }
        // The driver does not say how much it wanted for itself.
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Start(name)) => {
            GpuError::OutOfMemory { asked: 0, reason: format!("{reason}, starting {name}") }
        }
        (CUresult::CUDA_ERROR_OUT_OF_MEMORY, Request::Other(at)) => {
            GpuError::OutOfMemory { asked: 0, reason: format!("{reason}, at {at}") }
        }
        (_, Request::Start(name)) => GpuError::Launch { name: name.to_owned(), reason },
        (_, Request::Memory(..)) => GpuError::Failed { at: "allocating memory", reason },
        (_, Request::Other(at)) => GpuError::Failed { at, reason },
    }
}

/// Whether it is a fault of a kernel or of the device, which ends every context of the process.
pub(super) fn is_fault(result: CUresult) -> bool {
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

/// Whether the context is of no more use.
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
    fn an_error_names_what_was_asked_for() {
        use sys::cudaError_enum::*;
        let reason = || "why".to_owned();
        let memory = Request::Memory(Side::Device, 7);
        let start = Request::Start("trial_sum");
        let other = Request::Other("a copy");
        let lost = GpuError::Lost { reason: reason() };
        for (result, request, expected) in [
            (CUDA_ERROR_OUT_OF_MEMORY, memory, GpuError::OutOfMemory { asked: 7, reason: reason() }),
            (CUDA_ERROR_INVALID_VALUE, memory, GpuError::Failed { at: "allocating memory", reason: reason() }),
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
