//! The TREC run that `lanner search --run` writes.

use crate::failure::Failure;
use crate::hits::Answered;
use crate::whole_file::Output;
use lanner::ScoreModel;
use lanner::answer::Ids;
use lanner::eval::{RunHit, RunWriter};
use std::path::Path;

/// A run in progress, which appears under its name when it is finished.
pub struct RunFile(RunWriter<Output>);

impl RunFile {
    /// Creates a run, on standard output for `-`; `tag` is its name in the last column.
    pub fn create(path: &Path, tag: &str, model: ScoreModel) -> Result<RunFile, Failure> {
        Ok(RunFile(RunWriter::new(Output::create(path)?, tag, model.score(1))?))
    }

    /// Writes the hits of a query; ranks start after the offset.
    pub fn write(&mut self, query: &str, answered: &Answered, ids: &Ids) -> Result<(), Failure> {
        let hits = answered.answer.hits.iter().zip(ids.iter());
        let hits = hits.map(|(hit, document)| RunHit { document, units: hit.units });
        Ok(self.0.write_query_after(query, answered.offset, hits)?)
    }

    /// Makes the run visible.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish()?.finish()
    }
}
