//! The Python virtual environment of the peers, which is made once and kept.

use crate::error::{BenchError, Result};
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
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment.folder.join("python")))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"];
        run(Command::new(environment.python()).args(pip).arg(&requirements))?;
        std::fs::write(&installed, REQUIREMENTS).map_err(BenchError::io(&installed))?;
        Ok(environment)
    }

    fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// Returns the command that starts the driver of a peer on postings, with a folder for its index.
    pub fn command(&self, peer: &str, postings: &Path, index: &Path) -> Command {
        let mut command = Command::new(self.python());
        command.arg(self.folder.join(format!("{peer}_peer.py"))).arg(postings).arg(index);
        command
    }
}

fn run(command: &mut Command) -> Result<()> {
    let failed = |message: &str| BenchError::Environment { message: message.trim().to_owned() };
    let output = command.output().map_err(|error| failed(&format!("{:?}: {error}", command.get_program())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [&output.stderr[..], &output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    Err(failed(said.trim().lines().last().unwrap_or("no reason given")))
}
