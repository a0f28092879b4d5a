//! What to do about an error of a build, in terms of the options of the command.

use crate::failure::Failure;
use lanner::build::BuildError;
use lanner::corpus::CorpusError;

/// Turns an error of a build into a failure with advice.
pub fn advised(error: BuildError) -> Failure {
    let advice = match &error {
        BuildError::Empty { skipped: 0, .. } => "check --input, or give --allow-empty if you want an empty index",
        BuildError::Empty { .. } => "check --format and --id-field",
        BuildError::TooManySkipped { .. } => {
            "correct the input, check --format and --id-field, or allow more with --max-skipped"
        }
        BuildError::Corpus(CorpusError::UnclearFormat { .. }) => "name it with --format jsonl|tsv|trec|beir|text|ciff",
        BuildError::Corpus(CorpusError::RecordTooLong { .. }) => "name the format with --format",
        BuildError::Malformed(_) => "correct it, or leave out --strict to skip such records",
        BuildError::Duplicate { .. } => "correct it, or leave out --strict to keep the first",
        _ => return error.into(),
    };
    Failure::new(format!("{error}; {advice}"))
}
