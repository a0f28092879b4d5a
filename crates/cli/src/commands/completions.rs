//! `lanner completions`: writes what a shell needs to complete commands and options.

use crate::failure::Failure;
use crate::whole_file::stdout;
use clap::Command;
use clap_complete::Shell;
use std::io::Write;

/// Print the completions for a shell: bash, elvish, fish, powershell or zsh
#[derive(clap::Args)]
pub struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

/// Runs the command.
pub fn run(arguments: &Arguments, mut program: Command) -> Result<(), Failure> {
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "lanner", &mut script);
    let mut out = stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
