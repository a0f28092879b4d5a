//! The commands, one file for each.

pub mod calibrate;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod eval;
pub mod explain;
pub mod export;
pub mod index;
pub mod man;
pub mod search;
pub mod stats;
pub mod verify;
