//! Devices for Lanner: memory, streams and kernel launches.
//!
//! This crate knows bytes and addresses, streams, kernels by name with their PTX, and the errors of a device. It knows
//! no index, no query and no algorithm, and depends on no other crate of the project: the crates with kernels hand them
//! in as [`kernel::Kernel`] values, with arguments as bytes. The folder `cuda` has the headers and scripts that
//! compile the kernels of all crates; only its script `ptx` names their sources.
//!
//! Modules in order; each knows only those before it (the `tidy` test keeps it so): [`error`], [`kernel`](mod@kernel),
//! [`device`] (the trait that all of them share), [`memory`] (a device with a budget), [`faulty`] (one that fails on
//! command), [`simulator`] (one that runs kernels on the CPU), [`cuda`] (NVIDIA's driver).

pub mod error;

pub mod kernel;

pub mod device;

pub mod memory;

pub mod faulty;

pub mod simulator;

pub mod cuda;
