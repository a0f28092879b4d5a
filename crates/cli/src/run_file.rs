//! The TREC run that `lanner search --run` writes.

use crate::failure::Failure;
use crate::whole_file::Output;
use lanner::answer::Ids;
use lanner::eval::{RunHit, RunWriter};
use lanner::{Hit, ScoreModel};
use std::path::Path;

/// A run in progress, which appears under its name when it is finished.
pub struct RunFile(RunWriter<Output>);

impl RunFile {
    /// Creates a run, on standard output for `-`; `tag` is its name in the last column.
    pub fn create(path: &Path, tag: &str, model: ScoreModel) -> Result<RunFile, Failure> {
        Ok(RunFile(RunWriter::new(Output::create(path)?, tag, model.score(1))?))
    }

    /// Writes the hits of a query.
    pub fn write(&mut self, query: &str, hits: &[Hit], ids: &Ids) -> Result<(), Failure> {
        let hits = hits.iter().zip(ids.iter());
        Ok(self.0.write_query(query, hits.map(|(hit, document)| RunHit { document, units: hit.units }))?)
    }

    /// Makes the run visible.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.finish()?.finish()
    }
}
