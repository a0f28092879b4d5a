//! What to do about an error of the library, in terms of the options of the program.

use lanner::error::{GpuError, PlanError};
use lanner::{BuildError, IndexError, SearchError};
use lanner_index::corpus::CorpusError;
use lanner_index::open::ExportError;
use std::error::Error;

/// Advice to append to the message of an error, if there is some.
pub fn advice(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref() {
        return of_index(error);
    }
    let advice = if let Some(error) = error.downcast_ref() {
        return of_build(error);
    } else if let Some(error) = error.downcast_ref() {
        of_corpus(error)?
    } else if let Some(SearchError::Plan(error) | SearchError::Query { error, .. }) = error.downcast_ref() {
        of_plan(error)?
    } else if let Some(error) = error.downcast_ref() {
        of_plan(error)?
    } else if let Some(error) = error.downcast_ref() {
        of_gpu(error)?
    } else if let Some(ExportError::NoFrequencies) = error.downcast_ref() {
        "build it with --weights tf or --weights tf,impact"
    } else {
        return None;
    };
    Some(advice.to_owned())
}

fn of_index(error: &IndexError) -> Option<String> {
    match error {
        IndexError::Missing { path } => Some(format!("try 'lanner index --input PATH --index {}'", path.display())),
        IndexError::Version { .. } | IndexError::Damaged { .. } => Some("the command is 'lanner index'".to_owned()),
        _ => None,
    }
}

fn of_build(error: &BuildError) -> Option<String> {
    let advice = match error {
        BuildError::Index(error) => return of_index(error),
        BuildError::Corpus(error) => of_corpus(error)?,
        BuildError::Empty { skipped: 0, .. } => "check --input, or give --allow-empty if you want an empty index",
        BuildError::Empty { .. } => "check --format and --id-field",
        BuildError::TooManySkipped { .. } => {
            "correct the input, check --format and --id-field, or allow more with --max-skipped"
        }
        BuildError::Malformed(_) => "correct it, or leave out --strict to skip such records",
        BuildError::SeparatedId(_) => "rename it, or leave out --strict: runs then hold such ids percent-coded",
        BuildError::Unreadable(_) => "correct it, or leave out --strict to leave out what cannot be read",
        BuildError::Duplicate { .. } => "correct it, or leave out --strict to keep the first",
        BuildError::Threads(_) => "the option is --threads 1",
        BuildError::Memory(_) => "the options are --memory and --threads",
        BuildError::OrderMemory { .. } => "the option is --order given",
        _ => return None,
    };
    Some(advice.to_owned())
}

fn of_corpus(error: &CorpusError) -> Option<&'static str> {
    match error {
        CorpusError::UnclearFormat { .. } => Some("name it with --format jsonl|json|tsv|csv|trec|beir|bulk|text|ciff"),
        CorpusError::NoFiles { .. } => Some("the options are --format, --hidden and --follow-links"),
        CorpusError::NoIdColumn { .. } => Some("name the column with --id-field"),
        CorpusError::RecordTooLong { .. } => Some("name the format with --format"),
        _ => None,
    }
}

fn of_plan(error: &PlanError) -> Option<&'static str> {
    match error {
        PlanError::NoFrequencies(_) => Some("the options are --score impact, and lanner index --weights tf"),
        PlanError::NoImpacts => Some("the options are --score bm25, and lanner index --weights tf,impact"),
        PlanError::NoRanks => Some("the options are --score bm25, and lanner index --rank FILE"),
        PlanError::NoImpactOrder => {
            Some("the options are --algorithm, and lanner index --weights tf,impact --impact-ordered")
        }
        _ => None,
    }
}

fn of_gpu(error: &GpuError) -> Option<&'static str> {
    match error {
        GpuError::NoDriver { .. } | GpuError::OldDriver { .. } | GpuError::NoDevice { .. } => {
            Some("the option is --executor cpu")
        }
        GpuError::OutOfMemory { .. } | GpuError::OverBudget { .. } => Some("the option is --gpu-memory"),
        _ => None,
    }
}
