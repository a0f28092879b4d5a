//! The program `lanner`: parses the command line, runs one command, and prints an error as one line.

mod advice;
mod analyzer_options;
mod answer_json;
mod build_info;
mod columns;
mod commands;
mod configuration;
mod demo_text;
mod ending;
mod executor_options;
mod failure;
mod gpu_report;
mod hits;
mod list_sizes;
mod machine;
mod memory;
mod progress;
mod prompt;
mod prompt_commands;
mod quantity;
mod query_log;
mod query_notes;
mod query_options;
mod run_comparison;
mod run_file;
mod shown;
#[cfg(unix)]
mod signals;
mod terminal;
mod timeline;
#[cfg(unix)]
mod truncation;
mod whole_file;

use build_info::BuildInfo;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::{calibrate, completions, demo, doctor, eval, explain, export, index, man, search, stats, verify};
use configuration::{Configuration, concerns};
use failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A search engine for text: builds an index of a collection and answers queries exactly
#[derive(Parser)]
#[command(name = "lanner", version, arg_required_else_help = true)]
struct CommandLine {
    /// A file with defaults of options [default: lanner.toml in $LANNER_CONFIG or the user's configuration folder]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
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
    Doctor(doctor::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
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
    let result = parse(std::env::args_os().collect()).and_then(run);
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

/// Reads the command line, over the defaults that the user has configured. A line that cannot be ends the program.
fn parse(arguments: Vec<OsString>) -> Result<CommandLine, Failure> {
    let program = CommandLine::command().long_version(BuildInfo::of_program().long());
    let given = program.clone().ignore_errors(true).try_get_matches_from(&arguments).ok();
    let configured = match given.as_ref().and_then(|given| Some((given, given.subcommand_name()?))) {
        Some((given, name)) if concerns(name) => {
            let named = given.try_get_one::<PathBuf>("config").ok().flatten();
            let configured = Configuration::read(named.map(PathBuf::as_path))
                .and_then(|configuration| configuration.apply(program.clone(), given));
            // The doctor reports what is wrong with the configuration.
            if name == "doctor" { configured.unwrap_or(program) } else { configured? }
        }
        _ => program,
    };
    let matches = configured.try_get_matches_from(arguments);
    matches.and_then(|matches| CommandLine::from_arg_matches(&matches)).or_else(|error| {
        // Help that cannot be written is an error, as any other output.
        terminal::print_usage(&error)?;
        std::process::exit(error.exit_code())
    })
}

fn run(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        Command::Index(arguments) => index::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, line.config.as_deref()),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, CommandLine::command()),
        Command::Man(arguments) => man::run(&arguments, CommandLine::command()),
    }
}
