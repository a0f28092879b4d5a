//! The report: one Markdown page of all results.

use crate::error::{BenchError, Result};
use crate::machine::{Machine, Provenance};
use crate::result::{RanOn, SuiteResult};
use crate::table::bytes;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Reads the results in a folder and in its subfolders, one for each machine, and writes `report.md` to the folder. A
/// result without provenance, or of the simulator, is an error.
pub fn write(folder: &Path) -> Result<PathBuf> {
    let mut results = Vec::new();
    let (here, folders): (Vec<PathBuf>, Vec<PathBuf>) = entries(folder)?.into_iter().partition(|path| !path.is_dir());
    for path in here {
        results.extend(read(&path, "")?);
    }
    for folder in folders {
        let prefix = format!("{}/", folder.file_name().unwrap_or_default().to_string_lossy());
        for path in entries(&folder)? {
            results.extend(read(&path, &prefix)?);
        }
    }
    if results.is_empty() {
        let what = "the folder has no results; create some with 'lanner-bench run SUITE'".to_owned();
        return Err(BenchError::File { path: folder.to_owned(), what });
    }
    let path = folder.join("report.md");
    std::fs::write(&path, page(folder, &results)).map_err(BenchError::io(&path))?;
    Ok(path)
}

/// Returns the paths in a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(BenchError::io(folder))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a result and returns it with the prefix of links to its files; `None` if the file is not JSON.
fn read(path: &Path, prefix: &str) -> Result<Option<(String, SuiteResult)>> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(None);
    }
    let result = SuiteResult::read(path)?;
    if result.ran_on == RanOn::Simulator {
        let what =
            "it comes from the simulator, whose times are meaningless; run the suite on a GPU, or remove the file";
        return Err(BenchError::File { path: path.to_owned(), what: what.to_owned() });
    }
    Ok(Some((prefix.to_owned(), result)))
}

fn page(folder: &Path, results: &[(String, SuiteResult)]) -> String {
    let mut page =
        String::from("# Measurements\n\nWritten by `lanner-bench report` from the results in this folder.\n");
    for (prefix, result) in results {
        section(folder, prefix, result, &mut page).expect("writing to a string does not fail");
    }
    page
}

fn section(folder: &Path, prefix: &str, result: &SuiteResult, page: &mut String) -> std::fmt::Result {
    writeln!(page, "\n## {}\n", result.title)?;
    writeln!(page, "{}\n", origin(&result.provenance))?;
    for note in &result.notes {
        writeln!(page, "{note}\n")?;
    }
    if !result.targets.is_empty() {
        writeln!(page, "{}", result.target_table().to_markdown())?;
    }
    for (name, title) in &result.plots {
        // Of some results only the pixels were brought from the machine that made them.
        let exists = |ending: &str| folder.join(format!("{prefix}{name}.{ending}")).exists();
        let ending = if exists("png") && !exists("svg") { "png" } else { "svg" };
        writeln!(page, "![{title}]({prefix}{name}.{ending})\n")?;
    }
    for table in &result.tables {
        writeln!(page, "{}", table.to_markdown())?;
    }
    write!(page, "Every number: [{0}.json]({prefix}{0}.json).", result.suite)?;
    if !result.plots.is_empty() {
        let links: Vec<String> =
            result.plots.iter().map(|(name, _)| format!("[{name}.png]({prefix}{name}.png)")).collect();
        write!(page, " Plots as pixels: {}.", links.join(", "))?;
    }
    writeln!(page)
}

/// Formats the provenance of a result as a paragraph.
fn origin(provenance: &Provenance) -> String {
    let Provenance { device, commit, command, date, load: [before, after], .. } = provenance;
    let Machine { cpu, cores, system, .. } = device;
    let driver = device.driver.as_deref().unwrap_or("unknown");
    let gpu = device.gpu.as_ref().map_or(String::new(), |gpu| format!(", {gpu} (driver {driver})"));
    let versions: Vec<String> = provenance.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let changes = if provenance.uncommitted_changes { " with uncommitted changes" } else { "" };
    let (memory, versions) = (bytes(device.memory_bytes), versions.join("; "));
    format!(
        "`{command}` at commit `{commit}`{changes}, {date}, on {cpu} ({cores} cores, {memory} of memory{gpu}; \
         {system}); load {before:.1} before, {after:.1} after; {versions}."
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
    fn results_of_another_machine_are_linked_in_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("h200");
        std::fs::create_dir(&inner).unwrap();
        let mut result = example();
        result.ran_on = RanOn::Gpu;
        result.provenance.device.add_gpu("NVIDIA H200, with a driver for CUDA 13.0");
        result.plots.push(("example-batches".to_owned(), "Batches".to_owned()));
        result.write(&inner).unwrap();
        let page = std::fs::read_to_string(write(folder.path()).unwrap()).unwrap();
        assert!(page.contains("[example.json](h200/example.json)") && page.contains("(h200/example-batches.svg)"));
        assert!(page.contains("NVIDIA H200 (driver CUDA 13.0)"), "{page}");
    }

    #[test]
    fn a_simulated_result_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = example();
        result.ran_on = RanOn::Simulator;
        result.write(folder.path()).unwrap();
        let error = write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("example.json") && error.contains("from the simulator"), "{error}");
    }

    #[test]
    fn a_result_without_a_commit_is_an_error_and_no_page_is_written() {
        let folder = tempfile::tempdir().unwrap();
        example().write(folder.path()).unwrap();
        let mut other = example();
        other.suite = "other".to_owned();
        other.provenance.commit = crate::machine::UNKNOWN.to_owned();
        other.write(folder.path()).unwrap();
        let error = write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("other.json") && error.contains("its commit is unknown"), "{error}");
        assert!(!folder.path().join("report.md").exists());
    }

    #[test]
    fn a_folder_without_results_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path()).unwrap_err().to_string().contains("has no results"));
    }
}
