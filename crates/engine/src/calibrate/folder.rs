//! Where costs are kept between processes: a file for each device and index, in the user's configuration folder.

use crate::query::cost::{Costs, CostsError, FORMAT};
use crate::query::planner::PlanError;
use lanner_index::format::IndexError;
use lanner_index::open::Index;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names the folder instead of the user's configuration folder.
const VARIABLE: &str = "LANNER_CONFIG";

/// The longest part of a device's name in that of a file.
const LONGEST_NAME: usize = 60;
/// The name that stands for no device.
const CPU: &str = "cpu";

/// Why calibration failed, or its result cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The CPU answered what the GPU should have.
    #[error(
        "the GPU did not answer {plans} plans, so their times mean nothing; see its warnings, or calibrate the CPU"
    )]
    NotOnGpu {
        /// The plans that were measured together.
        plans: usize,
    },
    /// The GPU gave another answer than the CPU.
    #[error("the GPU and the CPU gave different answers to one query; please report this, and use the CPU")]
    Disagreement,
    /// The system starts no more threads.
    #[error("a thread that measures cannot be started: {0}; allow more threads (ulimit -u)")]
    Threads(#[from] io::Error),
    /// There is no configuration folder.
    #[error("no folder for costs is known; set {VARIABLE} to one")]
    NoFolder,
    /// A file or folder cannot be read or written.
    #[error("{}: {source}; make it accessible, or set {VARIABLE} to another folder", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of costs is damaged or of another version.
    #[error("{}: {source}", path.display())]
    Costs {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: CostsError,
    },
}

/// The configuration folder of this user: `$LANNER_CONFIG`, or else `lanner` in the configuration folder of the operating
/// system. `None` if the environment names neither.
pub fn configuration_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME");
    let system = || {
        if cfg!(windows) {
            variable("APPDATA")
        } else if cfg!(target_os = "macos") {
            home().map(|home| home.join("Library").join("Application Support"))
        } else {
            // A relative path in this variable is invalid, the specification says.
            let named = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
            named.or_else(|| home().map(|home| home.join(".config")))
        }
    };
    variable(VARIABLE).or_else(|| Some(system()?.join("lanner")))
}

/// The folder of costs.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// A file of costs.
#[derive(Serialize, Deserialize)]
struct Stored {
    device: String,
    index: String,
    documents: u32,
    costs: serde_json::Value,
}

impl Folder {
    /// A folder that the caller chose.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into() }
    }

    /// The folder of this user: `costs` in the [configuration folder](configuration_folder).
    pub fn of_user() -> Result<Folder, CalibrationError> {
        Ok(Folder::new(configuration_folder().ok_or(CalibrationError::NoFolder)?.join("costs")))
    }

    /// The file for an index on a device; the name `cpu` stands for no device.
    pub fn file(&self, index: &Index, device: &str) -> PathBuf {
        let name =
            |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
        let name: String = device.chars().take(LONGEST_NAME).map(name).collect();
        self.path.join(format!("{name}-{}.json", fingerprint(index, device)))
    }

    /// Reads the costs of an index on a device; `None` if it was not calibrated.
    pub fn load(&self, index: &Index, device: &str) -> Result<Option<Costs>, CalibrationError> {
        let path = self.file(index, device);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CalibrationError::Io { path, source }),
        };
        let damaged = |source: CostsError| CalibrationError::Costs { path: path.clone(), source };
        let stored: Stored = serde_json::from_str(&text).map_err(|error| damaged(error.into()))?;
        let is_it = stored.device == device && stored.index == fingerprint(index, device);
        match is_it {
            true => Costs::from_json(&stored.costs.to_string()).map(Some).map_err(damaged),
            false => Ok(None),
        }
    }

    /// Reads the costs of an index that were calibrated last on any GPU, before it is known which one will be opened;
    /// of the CPU, if there are none. `None` if the index was not calibrated.
    pub fn load_latest(&self, index: &Index) -> Result<Option<Costs>, CalibrationError> {
        let of_index = self.files().filter(|(_, stored)| stored.index == fingerprint(index, &stored.device));
        let latest = of_index.map(|(time, stored)| (stored.device != CPU, time, stored.device)).max();
        match latest {
            Some((_, _, device)) => self.load(index, &device),
            None => Ok(None),
        }
    }

    /// The devices with costs, of one index or of any; the name `cpu` stands for no device.
    pub fn devices(&self, index: Option<&Index>) -> BTreeSet<String> {
        let is_of = |stored: &Stored| index.is_none_or(|index| stored.index == fingerprint(index, &stored.device));
        self.files().filter(|(_, stored)| is_of(stored)).map(|(_, stored)| stored.device).collect()
    }

    /// The files of costs that can be read, with the time of their last change.
    fn files(&self) -> impl Iterator<Item = (SystemTime, Stored)> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let stored = serde_json::from_str(&std::fs::read_to_string(entry.path()).ok()?).ok()?;
            Some((entry.metadata().ok()?.modified().unwrap_or(SystemTime::UNIX_EPOCH), stored))
        })
    }

    /// Writes the costs of an index on a device, and returns the file. A process that reads meanwhile gets the old
    /// costs or the new ones.
    pub fn save(&self, index: &Index, device: &str, costs: &Costs) -> Result<PathBuf, CalibrationError> {
        let path = self.file(index, device);
        let costs = serde_json::from_str(&costs.to_json()).expect("costs are JSON");
        let (device, documents) = (device.to_owned(), index.documents());
        let stored = Stored { index: fingerprint(index, &device), device, documents, costs };
        let text = serde_json::to_string(&stored).expect("a file of costs has only text keys");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CalibrationError::Io { path, source }
        };
        std::fs::create_dir_all(&self.path).map_err(failed(&self.path))?;
        // Two processes write two files.
        let partial = path.with_extension(format!("{}.partial", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file = std::fs::File::create(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)
        };
        let written = write();
        if written.is_err() {
            _ = std::fs::remove_file(&partial);
        }
        written.map_err(failed(&path))?;
        Ok(path)
    }
}

/// A hash (FNV-1a) of what the times of plans depend on: the size of the index, its codecs, its statistics, the device,
/// and the format of costs.
fn fingerprint(index: &Index, device: &str) -> String {
    let header = index.segment().header();
    let statistics = index.statistics().fingerprint(&index.manifest().bm25);
    let numbers = [u64::from(header.documents), header.terms, header.postings, header.fingerprint, statistics];
    let codecs = format!("{}/{}/{}", header.codecs.documents, header.codecs.weights, header.has_dense);
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    let bytes = bytes.chain(codecs.bytes()).chain(device.bytes()).chain(FORMAT.to_le_bytes());
    let hash: u64 =
        bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::tests::index_of;
    use crate::query::cost::Route;
    use crate::query::plan::Operation;

    #[test]
    fn the_latest_costs_of_a_gpu_come_before_those_of_the_cpu() {
        let (place, index) = index_of(50);
        let folder = Folder::new(place.path().join("costs"));
        assert!(folder.load_latest(&index).unwrap().is_none());
        folder.save(&index, CPU, &Costs::default()).unwrap();
        assert!(folder.load_latest(&index).unwrap().is_some());
        let (_other_place, other) = index_of(51);
        assert!(folder.load_latest(&other).unwrap().is_none(), "costs belong to one index");
        std::fs::write(folder.file(&index, "NVIDIA H200"), "{}").unwrap();
        assert!(folder.load_latest(&index).unwrap().is_some(), "a damaged file is passed over");
    }

    #[test]
    fn costs_are_found_again_for_the_same_device_and_index_only() {
        let (place, index) = index_of(50);
        let folder = Folder::new(place.path().join("new/costs"));
        assert!(folder.load(&index, "NVIDIA H200, driver 580").unwrap().is_none());
        let costs = Costs::default();
        let file = folder.save(&index, "NVIDIA H200, driver 580", &costs).unwrap();
        assert!(file.file_name().unwrap().to_str().unwrap().starts_with("nvidia-h200--driver-580-"), "{file:?}");
        let loaded = folder.load(&index, "NVIDIA H200, driver 580").unwrap().unwrap();
        let model = |costs: &Costs| costs.model(Route::GpuHost, Operation::Or).clone();
        assert_eq!(model(&loaded), model(&costs));
        assert!(folder.load(&index, "cpu").unwrap().is_none());
        let (_other_place, other) = index_of(51);
        assert!(folder.load(&other, "NVIDIA H200, driver 580").unwrap().is_none());
        let names = std::fs::read_dir(place.path().join("new/costs")).unwrap().count();
        assert_eq!(names, 1, "no partial file is left");
    }

    #[test]
    fn a_bad_file_is_an_error_that_names_it_and_says_what_to_do() {
        let (place, index) = index_of(50);
        let folder = Folder::new(place.path().join("costs"));
        let file = folder.save(&index, "cpu", &Costs::default()).unwrap();
        let good = std::fs::read_to_string(&file).unwrap();
        for bad in [
            String::new(),
            "{}".to_owned(),
            good.replace("\"format\":1", "\"format\":9"),
            good[..good.len() / 2].to_owned(),
        ] {
            std::fs::write(&file, bad).unwrap();
            let error = folder.load(&index, "cpu").unwrap_err().to_string();
            assert!(error.contains(".json: ") && error.ends_with("calibrate again"), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        let error = folder.save(&index, "cpu", &Costs::default()).unwrap_err().to_string();
        assert!(error.contains("LANNER_CONFIG"), "{error}");
    }
}
