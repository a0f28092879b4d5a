//! The papers' tables and figures, each beside ours: one file a paper.

mod gpu_ir;
mod griffin;
mod saat;

use crate::cache::Cache;
use crate::error::BenchError;
use crate::experiments::Findings;
use crate::experiments::codecs::CodecLists;
use crate::machine::Provenance;
use crate::result::{Measurement, SuiteResult};
use crate::run::{RunOptions, write_result};
use crate::suite::Suite;

/// A table or figure of a paper.
pub struct Entry {
    /// `paper/table`.
    pub name: &'static str,
    /// What the paper shows there.
    pub title: &'static str,
    run: fn(&Reproduction<'_>) -> Result<Findings, BenchError>,
}

/// Every table and figure that can be reproduced. A paper's file gives its own entries.
pub fn entries() -> Vec<Entry> {
    [griffin::entries(), gpu_ir::entries()].into_iter().flatten().collect()
}

/// What a reproduction works with.
pub struct Reproduction<'a> {
    /// Where files are.
    pub options: &'a RunOptions,
    /// Is told what happens.
    pub say: &'a dyn Fn(&str),
}

impl Reproduction<'_> {
    /// Every codec on the lists of the suite `codecs`.
    fn codecs(&self) -> Result<Vec<Measurement>, BenchError> {
        let suite = Suite::load("codecs")?;
        let part = suite.codecs.as_ref().expect("the suite is about codecs");
        let (cache, options) = (Cache::new(&self.options.cache), self.options);
        let (data, program, say) = (&options.data, &options.program, self.say);
        Ok(CodecLists { suite: &suite, part, data, cache: &cache, program, say }.run()?.measurements)
    }
}

/// Measures what an entry needs, writes the result beside those of the suites, and returns it.
pub fn reproduce(name: &str, options: &RunOptions, say: &dyn Fn(&str)) -> Result<SuiteResult, BenchError> {
    let known = entries();
    let entry = known.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|entry| entry.name).collect();
        BenchError::Usage(format!("nothing to reproduce is called {name}; there are {}", names.join(", ")))
    })?;
    let mut provenance = Provenance::start(options.command.clone());
    let findings = (entry.run)(&Reproduction { options, say })?;
    provenance.finish();
    let about = (name.replace('/', "-"), format!("{name}: {}", entry.title));
    write_result(about, &[], &[], provenance, findings, &options.out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries().len());
        assert!(names.iter().all(|name| name.split('/').count() == 2));
    }
}
