//! One page of all results.

use crate::error::BenchError;
use crate::machine::Provenance;
use crate::result::{Processor, SuiteResult};
use crate::table::bytes;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Reads every result of a folder, refusing those that do not say where they come from, and writes `report.md` there.
pub fn write(folder: &Path) -> Result<PathBuf, BenchError> {
    let mut results = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(BenchError::io(folder))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    for path in &paths {
        results.push(SuiteResult::read(path)?);
    }
    if results.is_empty() {
        let what = "it holds no results; make some with 'lanner-bench run SUITE'".to_owned();
        return Err(BenchError::Result { path: folder.to_owned(), what });
    }
    let path = folder.join("report.md");
    std::fs::write(&path, page(&results)).map_err(BenchError::io(&path))?;
    Ok(path)
}

fn page(results: &[SuiteResult]) -> String {
    let mut page =
        String::from("# Measurements\n\nWritten by `lanner-bench report` from the results in this folder.\n");
    for result in results {
        section(result, &mut page).expect("a string takes everything");
    }
    page
}

fn section(result: &SuiteResult, page: &mut String) -> std::fmt::Result {
    writeln!(page, "\n## {}\n", result.title)?;
    writeln!(page, "{}\n", origin(&result.provenance))?;
    if result.ran_on == Processor::Simulator {
        writeln!(page, "Simulated: the times mean nothing.\n")?;
    }
    for note in &result.notes {
        writeln!(page, "{note}\n")?;
    }
    if !result.targets.is_empty() {
        writeln!(page, "{}", result.target_table().to_markdown())?;
    }
    for (name, title) in &result.plots {
        writeln!(page, "![{title}]({name}.svg)\n")?;
    }
    for table in &result.tables {
        writeln!(page, "{}", table.to_markdown())?;
    }
    write!(page, "Every number: [{0}.json]({0}.json).", result.suite)?;
    if !result.plots.is_empty() {
        let links: Vec<String> = result.plots.iter().map(|(name, _)| format!("[{name}.png]({name}.png)")).collect();
        write!(page, " Plots as pixels: {}.", links.join(", "))?;
    }
    writeln!(page)
}

/// Where a result comes from, in a paragraph.
fn origin(provenance: &Provenance) -> String {
    let device = &provenance.device;
    let gpu = device
        .gpu
        .as_ref()
        .map_or(String::new(), |gpu| format!(", {gpu} (driver {})", device.driver.as_deref().unwrap_or("unknown")));
    let versions: Vec<String> = provenance.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let changes = if provenance.uncommitted_changes { " with uncommitted changes" } else { "" };
    format!(
        "`{}` at commit `{}`{changes}, {}, on {} ({} cores, {} of memory{gpu}; {}); load {:.1} before, {:.1} after; {}.",
        provenance.command,
        provenance.commit,
        provenance.date,
        device.cpu,
        device.cores,
        bytes(device.memory_bytes),
        device.system,
        provenance.load[0],
        provenance.load[1],
        versions.join("; "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn the_page_shows_every_result_with_its_origin() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = example();
        result.plots.push(("example-build".to_owned(), "Building".to_owned()));
        result.write(folder.path()).unwrap();
        let page = std::fs::read_to_string(write(folder.path()).unwrap()).unwrap();
        for part in ["## An example", "`lanner-bench run example` at commit `0123abc`", "| time | 0.500 | 1.00 | yes |"]
        {
            assert!(page.contains(part), "{page}");
        }
        assert!(page.contains("![Building](example-build.svg)") && page.contains("[example.json](example.json)"));
    }

    #[test]
    fn a_result_without_a_commit_keeps_the_whole_page_from_being_written() {
        let folder = tempfile::tempdir().unwrap();
        example().write(folder.path()).unwrap();
        let mut other = example();
        other.suite = "other".to_owned();
        other.provenance.commit = crate::machine::UNKNOWN.to_owned();
        other.write(folder.path()).unwrap();
        let error = write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("other.json") && error.contains("does not say its commit"), "{error}");
        assert!(!folder.path().join("report.md").exists());
    }

    #[test]
    fn a_folder_without_results_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path()).unwrap_err().to_string().contains("holds no results"));
    }
}
