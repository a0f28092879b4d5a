//! The program `lanner`: parses the command line, runs one command, and prints an error as one line.

mod advice;
mod commands;
mod demo_text;
mod ending;
mod executor_options;
mod failure;
mod gpu_report;
mod hits;
mod list_sizes;
mod memory;
mod progress;
mod quantity;
mod query_log;
mod query_options;
mod run_file;
#[cfg(unix)]
mod signals;
mod terminal;
#[cfg(unix)]
mod truncation;
mod whole_file;

use clap::{Parser, Subcommand};
use commands::{calibrate, demo, eval, explain, export, index, search, stats, verify};
use failure::Failure;
use std::process::ExitCode;

/// A search engine for text: builds an index of a collection and answers queries exactly
#[derive(Parser)]
#[command(name = "lanner", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Index(index::Arguments),
    Search(search::Arguments),
    Explain(explain::Arguments),
    Eval(eval::Arguments),
    Stats(stats::Arguments),
    Verify(verify::Arguments),
    Export(export::Arguments),
    Calibrate(calibrate::Arguments),
    Demo(demo::Arguments),
}

#[global_allocator]
static ALLOCATOR: memory::Reporting = memory::Reporting;

fn main() -> ExitCode {
    memory::reserve();
    #[cfg(unix)]
    {
        truncation::report_truncated_files();
        signals::end_on_signals();
    }
    let line = CommandLine::parse();
    let result = match line.command {
        Command::Index(arguments) => index::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    };
    // From here on a signal does not change how the program ends.
    ending::claim();
    match result {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            terminal::tell(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}
