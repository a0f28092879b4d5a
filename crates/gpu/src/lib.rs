//! Devices for Lanner: memory, streams and kernel launches. It knows no index, no query and no algorithm.
//!
//! Modules in order: [`error`], [`kernel`], [`device`] (the trait that all of them share), [`memory`] (a device with a budget),
//! [`faulty`] (one that fails on command), [`simulator`] (one that runs kernels on the processor), [`cuda`] (NVIDIA's
//! driver), [`trial`] (kernels that try a device out).

pub mod cuda;
pub mod device;
pub mod error;
pub mod faulty;
pub mod kernel;
pub mod memory;
pub mod simulator;
pub mod trial;
