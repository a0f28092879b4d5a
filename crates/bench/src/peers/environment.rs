//! The Python virtual environment of the peers, which is made once and kept.

use crate::error::{BenchError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const REQUIREMENTS: &str = include_str!("../../peers/requirements.txt");
/// The drivers of the peers and their shared module.
const DRIVERS: [(&str, &str); 3] = [
    ("protocol.py", include_str!("../../peers/protocol.py")),
    ("pisa_peer.py", include_str!("../../peers/pisa_peer.py")),
    ("bm25s_peer.py", include_str!("../../peers/bm25s_peer.py")),
];

/// A virtual environment with pinned packages, and the drivers.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Installs the packages into a folder, unless it has the same ones already.
    pub fn prepare(folder: &Path, say: &dyn Fn(&str)) -> Result<Environment> {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let folder = std::path::absolute(folder).map_err(BenchError::io(folder))?;
        for (name, text) in DRIVERS {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(BenchError::io(&path))?;
        }
        let environment = Environment { folder };
        let installed = environment.folder.join("installed.txt");
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == REQUIREMENTS) {
            return Ok(environment);
        }
        say("installing the peers in a virtual environment");
        let requirements = environment.folder.join("requirements.txt");
        std::fs::write(&requirements, REQUIREMENTS).map_err(BenchError::io(&requirements))?;
        let failed = |message: String| BenchError::Environment { what: "the Python peers", message };
        let pip = ["install", "--no-deps", "-r"];
        let pip = [pip.map(OsStr::new).to_vec(), vec![requirements.as_os_str()]].concat();
        make_python(&environment.python_folder()).and_then(|python| python.pip(&pip)).map_err(failed)?;
        std::fs::write(&installed, REQUIREMENTS).map_err(BenchError::io(&installed))?;
        Ok(environment)
    }

    fn python_folder(&self) -> PathBuf {
        self.folder.join("python")
    }

    /// Returns the command that starts the driver of a peer on postings, with a folder for its index.
    pub fn command(&self, peer: &str, postings: &Path, index: &Path) -> Command {
        let mut command = Command::new(self.python_folder().join(PYTHON));
        command.arg(self.folder.join(format!("{peer}_peer.py"))).arg(postings).arg(index);
        command
    }
}

/// The interpreter within a virtual environment.
const PYTHON: &str = "bin/python";

/// A virtual environment of Python.
pub struct Python {
    program: PathBuf,
}

/// Makes an empty virtual environment.
pub fn make_python(folder: &Path) -> Result<Python, String> {
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    Ok(Python { program: folder.join(PYTHON) })
}

impl Python {
    /// Runs a module, such as `tarfile`.
    pub fn module(&self, arguments: &[&OsStr]) -> Result<(), String> {
        run(Command::new(&self.program).arg("-m").args(arguments)).map(drop)
    }

    /// Runs a command of pip.
    pub fn pip(&self, arguments: &[&OsStr]) -> Result<(), String> {
        let pip = ["pip", "--quiet", "--disable-pip-version-check"].map(OsStr::new);
        self.module(&[&pip[..], arguments].concat())
    }
}

/// Runs a command and returns its output; the error is the last line that it printed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok(printed.into_owned());
    }
    let said = [&String::from_utf8_lossy(&output.stderr), &printed].map(|text| text.trim().to_owned()).concat();
    Err(said.lines().last().unwrap_or("no reason given").trim().to_owned())
}
