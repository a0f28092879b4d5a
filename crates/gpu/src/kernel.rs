//! Kernels by name, with the struct that each takes.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;

/// A kernel by name, for every device that can run it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name in the PTX and in traces.
    pub name: &'static str,
    /// The module that it belongs to.
    pub module: &'static Module,
    /// Runs it on the processor; `None` in a build without the simulator.
    pub simulate: Option<Simulate>,
}

/// Kernels that are loaded together.
#[derive(Debug)]
pub struct Module {
    /// Its name in messages.
    pub name: &'static str,
    /// Its kernels for any driver that is new enough.
    pub ptx: &'static str,
}

/// Runs a kernel in the simulator and returns what went wrong, or an empty string.
///
/// It takes the blocks, the threads of a block, the bytes of shared memory, the argument, a seed, and how many blocks
/// are alive at once.
pub type Simulate = unsafe extern "C" fn(u32, u32, usize, *const c_void, u64, u32) -> *const c_char;

/// A kernel that takes an `A`.
#[derive(Clone, Copy, Debug)]
pub struct TypedKernel<A> {
    /// The kernel.
    pub kernel: Kernel,
    argument: PhantomData<fn(A)>,
}

impl<A> TypedKernel<A> {
    /// A kernel whose argument is known; [`kernels`] calls it.
    pub const fn new(kernel: Kernel) -> TypedKernel<A> {
        TypedKernel { kernel, argument: PhantomData }
    }
}

/// The argument of a kernel, a struct that host and device lay out alike.
///
/// # Safety
/// It is `#[repr(C)]` and has no padding; [`kernels`] checks its size.
#[allow(unsafe_code)]
pub unsafe trait Argument: Copy {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: a value without padding is so many initialized bytes.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// Declares the kernels of a module, the structs that they take, and the sizes of these as the `.cu` files state them.
#[macro_export]
macro_rules! kernels {
    (
        $module:path;
        $([$arguments:ty: $bytes:literal bytes])*
        $($(#[$docs:meta])* $name:ident = $function:ident: $argument:ty;)*
    ) => {
        $(
            const _: () = assert!(size_of::<$arguments>() == $bytes, "another size than in the .cu file");
            // SAFETY: `#[repr(C)]`, and its fields fill the size.
            #[allow(unsafe_code)]
            unsafe impl $crate::kernel::Argument for $arguments {}
        )*
        $(
            $(#[$docs])*
            pub static $name: $crate::kernel::TypedKernel<$argument> = {
                #[cfg(simulator)]
                #[allow(unsafe_code)]
                unsafe extern "C" {
                    #[link_name = concat!("simulate_", stringify!($function))]
                    fn $function(
                        grid: u32,
                        block: u32,
                        shared: usize,
                        argument: *const std::ffi::c_void,
                        seed: u64,
                        live: u32,
                    ) -> *const std::ffi::c_char;
                }
                #[cfg(simulator)]
                let simulate: Option<$crate::kernel::Simulate> = Some($function);
                #[cfg(not(simulator))]
                let simulate: Option<$crate::kernel::Simulate> = None;
                $crate::kernel::TypedKernel::new($crate::kernel::Kernel {
                    name: stringify!($function),
                    module: &$module,
                    simulate,
                })
            };
        )*
    };
}
pub use kernels;
