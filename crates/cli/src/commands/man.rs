//! `lanner man`: writes manual pages in roff.

use crate::failure::Failure;
use crate::whole_file::{Output, stdout};
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Print the manual page of the program or of a command, or write all of them to a folder
#[derive(clap::Args)]
pub struct Arguments {
    /// Write all pages to this folder: lanner.1, lanner-search.1 and so on; created if it does not exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
    /// The command, for its page instead of that of the program
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, mut program: Command) -> Result<(), Failure> {
    program.build();
    match &arguments.out {
        Some(folder) => write_all(&program, folder),
        None => print(&program, arguments.command.as_deref()),
    }
}

fn print(program: &Command, name: Option<&str>) -> Result<(), Failure> {
    let command = match name {
        Some(name) => program
            .find_subcommand(name)
            .ok_or_else(|| Failure::new(format!("there is no command {name:?}; 'lanner help' lists the commands")))?,
        None => program,
    };
    let mut out = stdout();
    page(command).render(&mut out)?;
    Ok(out.flush()?)
}

fn write_all(program: &Command, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        Failure::new(format!("{}: cannot be created: {error}; choose another folder", folder.display()))
    })?;
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    for command in commands.chain([program]) {
        let page = page(command);
        let mut output = Output::create(&folder.join(page.get_filename()))?;
        page.render(&mut output)?;
        output.finish()?;
    }
    Ok(())
}

/// A page whose name starts with that of the program.
fn page(command: &Command) -> Man {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    Man::new(command.clone().name(name)).manual("Lanner")
}
