//! Output files that appear under their names only when they are complete.

use crate::failure::Failure;
use lanner_index::unfinished::Unfinished;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// Standard output, or a file that is written under a temporary name and renamed when it is finished.
pub enum Output {
    /// Standard output, or a device or pipe that the user named.
    Direct(Box<dyn Write>),
    /// A file that is not finished.
    Partial(PartialFile),
}

/// An unfinished file, removed when dropped. A killed process leaves `NAME.partial` behind, which the next run reuses.
pub struct PartialFile {
    writer: BufWriter<File>,
    partial: PathBuf,
    target: PathBuf,
    is_finished: bool,
    // Forgotten when the file has its name or is gone.
    _unfinished: Unfinished,
}

impl Output {
    /// Opens a path, or standard output for `-`.
    pub fn create(path: &Path) -> Result<Output, Failure> {
        if path == Path::new("-") {
            return Ok(Output::Direct(Box::new(stdout())));
        }
        let refused = |error: io::Error| Failure::new(format!("{}: cannot be written: {error}", path.display()));
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                Err(Failure::new(format!("{}: is a folder; name a file in it", path.display())))
            }
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(path).map_err(refused)?;
                Ok(Output::Direct(Box::new(BufWriter::new(file))))
            }
            // The file that a link points to is replaced, not the link.
            Ok(_) => PartialFile::create(path.canonicalize().map_err(refused)?),
            Err(_) => PartialFile::create(path.to_owned()),
        }
    }

    /// Makes the output visible.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Direct(mut writer) => Ok(writer.flush()?),
            Output::Partial(file) => file.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Direct(writer) => writer.write(bytes),
            Output::Partial(file) => file.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Direct(writer) => writer.flush(),
            Output::Partial(file) => file.writer.flush(),
        }
    }
}

impl PartialFile {
    fn create(target: PathBuf) -> Result<Output, Failure> {
        let mut partial = target.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let refused = |error: io::Error| Failure::new(format!("{}: cannot be written: {error}", partial.display()));
        let file = File::options().create(true).truncate(false).write(true).open(&partial).map_err(refused)?;
        if file.try_lock().is_err() {
            let message = format!("{}: another process is writing it; wait or name another file", target.display());
            return Err(Failure::new(message));
        }
        file.set_len(0).map_err(refused)?;
        let (writer, _unfinished) = (BufWriter::with_capacity(1 << 16, file), Unfinished::new(&partial));
        Ok(Output::Partial(PartialFile { writer, partial, target, is_finished: false, _unfinished }))
    }

    fn finish(mut self) -> Result<(), Failure> {
        let written = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        let renamed = written.and_then(|()| fs::rename(&self.partial, &self.target));
        self.is_finished = renamed.is_ok();
        renamed.map_err(|error| Failure::new(format!("{}: cannot be written: {error}", self.target.display())))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the next run overwrites the file.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Returns standard output with a buffer, to save a system call for each line.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes a value as one line of JSON.
pub fn write_json_line(value: &impl Serialize, out: &mut impl Write) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_finished_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(Output::create(&path).is_err(), "one writer at a time");
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        drop(Output::create(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "an unfinished file is removed");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_not_replaced() {
        let mut output = Output::create(Path::new("/dev/null")).unwrap();
        output.write_all(b"nothing").unwrap();
        output.finish().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
