//! The program as users run it: the built binary, in folders of its own.

mod about;
mod analyzers;
mod bad_input;
mod calibration;
mod collections;
mod commands;
mod configuration;
mod endings;
mod evaluation;
mod full_disk;
mod golden;
mod hits;
mod hostile;
mod hostile_text;
mod identical_files;
mod interruptions;
mod logs;
mod nothing_lost;
mod program;
#[cfg(unix)]
mod prompt;
mod query_syntax;
mod texts;
mod tour;
