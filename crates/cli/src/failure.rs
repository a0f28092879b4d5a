//! Why a command failed.

use crate::advice::advice;
use crate::quantity::count;
use std::any::Any;
use std::error::Error;
use std::io;

/// The reason why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// An error in one line, for the user.
    Message(String),
    /// The reader of the output has closed the pipe, as in `lanner search … | head -1`, which is not an error.
    ClosedPipe,
}

impl Failure {
    /// Makes a failure with a message.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::Message(message.into())
    }

    /// Fails if a query failed; each failure has already been reported in place of its answer.
    pub fn of_queries(failed: u64, queries: u64) -> Result<(), Failure> {
        match failed {
            0 => Ok(()),
            _ => Err(Failure::new(format!("{} of {} queries failed", count(failed), count(queries)))),
        }
    }
}

/// Turns any error into its message, with advice on the options of the program, unless its cause is a closed pipe.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            if current.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Failure::ClosedPipe;
            }
            cause = current.source();
        }
        if (&error as &dyn Any).is::<io::Error>() {
            // Errors of files come with their names.
            return Failure::new(format!("standard output cannot be written: {error}; what was written is incomplete"));
        }
        Failure::Message(match advice(&error) {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        })
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
