//! Measurements of Lanner: suites against its peers, scaled collections, and the report of all results.
//!
//! A suite is one TOML file and one experiment; running it writes one JSON result that says on which machine, from
//! which commit and by which command it came about, with plots beside it.
//!
//! Modules in order; each knows only those before it: [`error`], [`statistics`], [`machine`], [`table`], [`result`],
//! [`plot`], [`suite`], [`only`], [`cache`], [`query_log`], [`scale`], [`collection`], [`engines`], [`peers`],
//! [`child`], [`agreement`], [`experiments`], [`run`], [`reproduce`], [`report`].

pub mod error;

pub mod statistics;

pub mod machine;

pub mod table;

pub mod result;

pub mod plot;

pub mod suite;

pub mod only;

pub mod cache;

pub mod query_log;

pub mod scale;

pub mod collection;

pub mod engines;

pub mod peers;

pub mod child;

pub mod agreement;

pub mod experiments;

pub mod run;

pub mod reproduce;

pub mod report;

pub use error::BenchError;
