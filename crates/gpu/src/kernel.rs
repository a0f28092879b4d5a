//! Kernels by name, and the structs and constants that they share with the host.
//!
//! A kernel belongs to a [`Module`], its PTX, and takes one struct. [`shared!`](crate::shared) defines such structs
//! once, in Rust, and generates the C++ header that the `.cu` files include: the build fails where the two differ.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;

/// A kernel by name, for every device that can run it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name in the PTX and in traces.
    pub name: &'static str,
    /// The module that it belongs to.
    pub module: &'static Module,
    /// Runs it on the CPU; `None` in a build without the simulator.
    pub simulate: Option<Simulate>,
}

/// Kernels that are loaded together, when the first of them is launched.
#[derive(Debug)]
pub struct Module {
    /// Its name in messages.
    pub name: &'static str,
    /// Its PTX, which the driver compiles for the device.
    pub ptx: &'static str,
}

/// Runs a kernel in the simulator and returns an error message, or an empty string.
///
/// Takes the thread blocks, the threads of each, the bytes of shared memory, the argument, a seed, and how many thread
/// blocks run concurrently.
pub type Simulate = unsafe extern "C" fn(u32, u32, usize, *const c_void, u64, u32) -> *const c_char;

/// A kernel that takes an `A`.
#[derive(Clone, Copy, Debug)]
pub struct TypedKernel<A> {
    /// The kernel.
    pub kernel: Kernel,
    argument: PhantomData<fn(A)>,
}

impl<A> TypedKernel<A> {
    /// A kernel whose argument is known; [`kernel!`](macro@crate::kernel) calls it.
    pub const fn new(kernel: Kernel) -> TypedKernel<A> {
        TypedKernel { kernel, argument: PhantomData }
    }
}

/// A struct that the host and kernels lay out alike.
///
/// # Safety
/// It is `#[repr(C)]` and has no padding; [`shared!`](crate::shared) proves both.
#[allow(unsafe_code)]
pub unsafe trait Argument: Copy {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: every byte of a value without padding is initialized.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

/// Declares kernels of a module as statics, each with the struct that it takes.
#[macro_export]
macro_rules! kernels {
    ($module:path; $($(#[$docs:meta])* $name:ident = $function:literal: $argument:ty;)*) => {$(
        $(#[$docs])*
        pub static $name: $crate::kernel::TypedKernel<$argument> = $crate::kernel!($module, $function);
    )*};
}

/// A kernel of a module, by the pieces of its name.
#[macro_export]
macro_rules! kernel {
    ($module:path, $($name:literal),+) => {{
        #[cfg(simulator)]
        #[allow(unsafe_code)]
        unsafe extern "C" {
            #[link_name = concat!("simulate_", $($name),+)]
            fn simulated(
                grid: u32,
                block: u32,
                shared: usize,
                argument: *const std::ffi::c_void,
                seed: u64,
                live: u32,
            ) -> *const std::ffi::c_char;
        }
        #[cfg(simulator)]
        let simulate: Option<$crate::kernel::Simulate> = Some(simulated);
        #[cfg(not(simulator))]
        let simulate: Option<$crate::kernel::Simulate> = None;
        let name = concat!($($name),+);
        $crate::kernel::TypedKernel::new($crate::kernel::Kernel { name, module: &$module, simulate })
    }};
}

/// Defines structs, enums and constants that host and kernels share, and the C++ header with the same definitions.
///
/// The header is a committed file, given by its path from the crate's root; the build fails where its text is not what
/// this macro makes. `UPDATE=1 cargo test -p CRATE --lib header` regenerates it. Outside of the library, the path is
/// followed by the target: `mod header = "tests/rows.h" of "--test rows";`.
///
/// Fields are `u32`, `u64`, `f32`, arrays of them, and structs and enums defined by this macro; an
/// [`Address`](crate::device::Address) states what it points to: `bytes: Address to "const uint8_t"`. Padding is an
/// error, so that every byte of a struct is initialized, and both compilers place every field alike. The values of
/// constants are expressions that mean the same in Rust and in C++.
#[macro_export]
macro_rules! shared {
    (
        mod $test:ident = $path:literal $(of $target:literal)?
        $(, includes $include:literal)* $(, in $namespace:ident)?;
        $($items:tt)*
    ) => {
        $crate::shared! {
            @items [mod $test = $path $(of $target)? $(, in $namespace)?]
            [
                $("#include \"", $include, "\"\n",)* "#include <cstdint>\n",
                $("\nnamespace ", stringify!($namespace), " {\n",)?
            ]
            $($items)*
        }
    };
    (
        @items $header:tt [$($text:tt)*]
        $(#[doc = $doc:literal])* const $name:ident: $type:ident = $value:expr;
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        pub const $name: $type = $value;
        $crate::shared! {
            @items $header
            [
                $($text)* "\n", $("//", $doc, "\n",)*
                "constexpr ", $crate::shared!(@type $type), " ", stringify!($name), " = ", stringify!($value), ";\n",
            ]
            $($rest)*
        }
    };
    (
        @items $header:tt [$($text:tt)*]
        $(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])? enum $name:ident {
            $($(#[doc = $value_doc:literal])* $value:ident = $number:literal,)*
        }
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug $($(, $derive)*)?)]
        pub enum $name {
            $($(#[doc = $value_doc])* $value = $number,)*
        }
        $crate::shared! {
            @items $header
            [
                $($text)* "\n", $("//", $doc, "\n",)* "enum class ", stringify!($name), " : unsigned {\n",
                $($("    //", $value_doc, "\n",)* "    ", stringify!($value), " = ", $number, ",\n",)* "};\n",
            ]
            $($rest)*
        }
    };
    (
        @items $header:tt [$($text:tt)*]
        $(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])? struct $name:ident {
            $($(#[doc = $field_doc:literal])* $field:ident: $type:tt $(to $pointee:literal)?,)*
        }
        $($rest:tt)*
    ) => {
        $(#[doc = $doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug $($(, $derive)*)?)]
        pub struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*, "a struct with padding");
        // SAFETY: `#[repr(C)]`, and its fields, which have no padding themselves, fill its size.
        #[allow(unsafe_code)]
        unsafe impl $crate::kernel::Argument for $name {}
        $crate::shared! {
            @items $header
            [
                $($text)* "\n", $("//", $doc, "\n",)* "struct ", stringify!($name), " {\n",
                $($("    //", $field_doc, "\n",)* "    ", $crate::shared!(@field $field $type $($pointee)?), ";\n",)*
                "};\n",
            ]
            $($rest)*
        }
    };
    (@items [mod $test:ident = $path:literal $(of $target:literal)? $(, in $namespace:ident)?] [$($text:tt)*]) => {
        $crate::generated! {
            mod $test = $path $(of $target)?,
            concat!(
                "// Generated by `shared!` in ", module_path!(), "; do not edit.\n",
                "// `", $crate::generated!(@command $($target)?), "` regenerates it.\n",
                "#pragma once\n", $($text)* $("\n} // namespace ", stringify!($namespace), "\n")?
            )
        }
    };
    (@field $field:ident Address $pointee:literal) => { concat!($pointee, " *", stringify!($field)) };
    (@field $field:ident [Address; $count:tt] $pointee:literal) => {
        concat!($pointee, " *", stringify!($field), "[", stringify!($count), "]")
    };
    (@field $field:ident [$type:ident; $count:tt]) => {
        concat!($crate::shared!(@type $type), " ", stringify!($field), "[", stringify!($count), "]")
    };
    (@field $field:ident $type:ident) => { concat!($crate::shared!(@type $type), " ", stringify!($field)) };
    (@type u32) => { "unsigned" };
    (@type usize) => { "unsigned" };
    (@type u64) => { "unsigned long long" };
    (@type f32) => { "float" };
    (@type $name:ident) => { stringify!($name) };
}

/// Checks at build time that a committed file, given by its path from the crate's root, has a given text, and declares
/// a module with a test that writes the file if `UPDATE` is set.
#[macro_export]
macro_rules! generated {
    (mod $test:ident = $path:literal $(of $target:literal)?, $text:expr) => {
        // A constant and a module may have one name.
        #[allow(non_upper_case_globals)]
        const $test: &str = $text;
        const _: () = assert!(
            option_env!("UPDATE").is_some()
                || $crate::kernel::is_same($test, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path))),
            concat!($path, " is out of date; ", $crate::generated!(@command $($target)?), " regenerates it")
        );

        #[cfg(test)]
        mod $test {
            #[test]
            fn the_committed_file_is_what_rust_generates() {
                let (path, text) = (concat!(env!("CARGO_MANIFEST_DIR"), "/", $path), super::$test);
                if std::env::var_os("UPDATE").is_some() {
                    std::fs::write(path, text).expect("a file that can be written");
                }
                assert_eq!(std::fs::read_to_string(path).expect("a committed file"), text);
            }
        }
    };
    (@command) => { $crate::generated!(@command "--lib") };
    (@command $target:literal) => {
        concat!("UPDATE=1 cargo test -p ", env!("CARGO_PKG_NAME"), " ", $target, " header")
    };
}

/// Whether two texts are the same, at build time.
pub const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_from_the_first_byte_to_the_last() {
        assert!(is_same("", "") && is_same("ab", "ab"));
        assert!(!is_same("ab", "ac") && !is_same("ab", "abc") && !is_same("abc", "ab") && !is_same("", "a"));
    }
}
