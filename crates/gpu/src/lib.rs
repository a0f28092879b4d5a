//! Devices for Lanner: memory, streams and kernel launches. It knows no index, no query and no algorithm.
//!
//! Modules in order; each knows only those before it (the `tidy` test keeps it so): [`error`], [`kernel`], [`device`]
//! (the trait that all of them share), [`memory`] (a device with a budget), [`faulty`] (one that fails on command),
//! [`simulator`] (one that runs kernels on the CPU), [`cuda`] (NVIDIA's driver), [`trial`] (kernels that exercise a
//! device).

pub mod error;

pub mod kernel;

pub mod device;

pub mod memory;

pub mod faulty;

pub mod simulator;

pub mod cuda;

pub mod trial;
