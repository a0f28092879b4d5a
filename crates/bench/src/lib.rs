//! Benchmarks of Lanner: suites against other engines, loads on an engine for seconds or for hours (`load`, `soak`),
//! figures of papers, scaled collections, and a report of all results.
//!
//! A suite is a TOML file that describes what to measure. Running it writes one JSON result with the machine, the
//! commit and the command that produced it, and plots.
//!
//! Modules in order; each knows only those before it: [`error`], [`statistics`], [`machine`], [`table`], [`result`],
//! [`plot`], [`suite`], [`only`], [`cache`], [`query_log`], [`scale`], [`collection`], [`engines`], [`peers`],
//! [`child`], [`agreement`], [`load`], [`experiments`], [`run`], [`load_command`], [`reproduce`], [`report`],
//! [`soak`], [`command`].
#![allow(rustdoc::private_intra_doc_links)]

mod error;

mod statistics;

mod machine;

mod table;

mod result;

mod plot;

mod suite;

mod only;

mod cache;

mod query_log;

mod scale;

mod collection;

mod engines;

mod peers;

mod child;

mod agreement;

mod load;

mod experiments;

mod run;

mod load_command;

mod reproduce;

mod report;

mod soak;

mod command;

pub use collection::{synthetic_queries, write_synthetic};
pub use command::main;
