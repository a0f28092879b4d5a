//! Why a command ended early.

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

/// Any error becomes its message, unless a closed pipe is behind it.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            if current.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Failure::ClosedPipe;
            }
            cause = current.source();
        }
        Failure::Message(error.to_string())
    }
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
