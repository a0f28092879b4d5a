//! Why a command ended early.

use lanner_index::build::BuildError;
use lanner_index::format::IndexError;
use lanner_index::open::ExportError;
use std::error::Error;
use std::io;

/// What ends a command.
#[derive(Debug)]
pub enum Failure {
    /// Something that the user should read, in one line.
    Message(String),
    /// Nobody reads the output any more, as in `lanner search … | head -1`: nothing to say, nothing went wrong.
    ClosedPipe,
}

impl Failure {
    /// A failure with a message of its own.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::Message(message.into())
    }
}

/// Any error becomes its message, with the options to use if there are some, unless a closed pipe is behind it.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            if current.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Failure::ClosedPipe;
            }
            cause = current.source();
        }
        Failure::Message(match advice(&error) {
            Some(options) => format!("{error} ({options})"),
            None => error.to_string(),
        })
    }
}

/// The options of the program that do what an error of the library asks for.
fn advice(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(IndexError::Missing { path }) = error.downcast_ref() {
        return Some(format!("lanner index --input PATH --index {}", path.display()));
    }
    let options = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(BuildError::Malformed(_) | BuildError::Duplicate { .. }), _) => "leave out --strict",
        (Some(BuildError::OrderMemory { .. }), _) => "--order given",
        (_, Some(ExportError::NoFrequencies)) => "--weights tf or --weights tf,impact",
        _ => return None,
    };
    Some(options.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner_index::corpus::ciff::CiffError;

    #[test]
    fn a_closed_pipe_is_recognized_behind_other_errors() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Failure::from(closed()), Failure::ClosedPipe));
        assert!(matches!(Failure::from(CiffError::Write(closed())), Failure::ClosedPipe));
        let full = CiffError::Write(io::ErrorKind::StorageFull.into());
        assert!(matches!(Failure::from(full), Failure::Message(message) if message.contains("writing CIFF failed")));
    }
}
