//! Provenance of results: machine, commit, command, date and versions.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;
use time::OffsetDateTime;

/// Stands for a commit or CPU that could not be determined; the report refuses such results.
pub const UNKNOWN: &str = "unknown";

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    pub device: Machine,
    /// The commit of the project, or [`UNKNOWN`].
    pub commit: String,
    pub uncommitted_changes: bool,
    /// The command that reproduces the result.
    pub command: String,
    /// Date and time in UTC.
    pub date: String,
    /// Versions of the measured engines and of the compiler.
    pub versions: BTreeMap<String, String>,
    /// One-minute load average before and after.
    pub load: [f64; 2],
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// The operating system.
    pub system: String,
    /// The GPU, if the measurement used one.
    pub gpu: Option<String>,
    /// The driver of the GPU.
    pub driver: Option<String>,
}

impl Provenance {
    /// Collects what is known before a measurement; [`Provenance::finish`] completes it.
    pub fn start(command: String) -> Provenance {
        let (commit, uncommitted_changes) = commit(std::env::var("LANNER_COMMIT").ok());
        let versions = [
            ("lanner", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("tantivy", Some(tantivy::version_string().trim_start_matches("tantivy v").to_owned())),
            ("rustc", program(&["rustc", "--version"])),
        ];
        let known = versions.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?)));
        Provenance {
            device: Machine::this(),
            commit,
            uncommitted_changes,
            command,
            date: format_date(OffsetDateTime::now_utc()),
            versions: known.collect(),
            load: [load(); 2],
        }
    }

    /// Records the load after the measurement.
    pub fn finish(&mut self) {
        self.load[1] = load();
    }

    /// Returns which required field is missing, if any.
    pub fn missing(&self) -> Option<&'static str> {
        let required = [("device", &self.device.cpu), ("commit", &self.commit), ("command", &self.command)];
        let is_absent = |text: &str| text.is_empty() || text == UNKNOWN;
        required.into_iter().find(|(_, text)| is_absent(text)).map(|(field, _)| field)
    }
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Machine {
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().trim_matches('"').to_owned())
        };
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kibibytes = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
        let release = read("/etc/os-release").replace('=', ":");
        let kernel = program(&["uname", "-sr"]).unwrap_or_else(|| std::env::consts::OS.to_owned());
        let name = field(&release, "PRETTY_NAME");
        Machine {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: cores(),
            memory_bytes: kibibytes * 1024,
            system: name.map_or(kernel.clone(), |name| format!("{name}, {kernel}")),
            gpu: None,
            driver: None,
        }
    }

    /// Records the GPU. Its name ends with the driver, as `lanner-gpu` reports it.
    pub fn add_gpu(&mut self, name: &str) {
        let (gpu, driver) = name.split_once(", with a driver for ").map_or((name, None), |(gpu, of)| (gpu, Some(of)));
        self.gpu = Some(gpu.to_owned());
        self.driver = driver.map(str::to_owned);
    }
}

/// CPU time and memory of this process; zero if the operating system does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, over all threads.
    pub user_s: f64,
    /// CPU time in the kernel, over all threads.
    pub system_s: f64,
    /// Peak resident memory.
    pub peak_bytes: u64,
}

impl Usage {
    /// Reads the usage of this process so far.
    pub fn now() -> Usage {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The program's name, in parentheses, may contain spaces; user and system time are fields 14 and 15.
        let after_name: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |field: usize| after_name.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Usage { user_s: ticks(11) / 100.0, system_s: ticks(12) / 100.0, peak_bytes: peak.unwrap_or(0) * 1024 }
    }
}

/// Returns the commit and whether the sources differ from it. The environment variable `LANNER_COMMIT` wins, then `git`
/// in the current folder, then the variable at build time. Its value may end in `-dirty`, as `git describe` prints it.
fn commit(given: Option<String>) -> (String, bool) {
    let read = |text: String| match text.strip_suffix("-dirty") {
        Some(commit) => (commit.to_owned(), true),
        None => (text, false),
    };
    let of_git = || {
        let commit = program(&["git", "rev-parse", "HEAD"])?;
        // Benchmarks write results themselves, so these do not count as changes.
        let changes = ["git", "--no-optional-locks", "status", "--porcelain", "-uno", "--", ":/", ":!/docs/benchmarks"];
        Some((commit, program(&changes).is_some_and(|text| !text.is_empty())))
    };
    let of_build = || option_env!("LANNER_COMMIT").map(|text| read(text.to_owned()));
    given.map(read).or_else(of_git).or_else(of_build).unwrap_or_else(|| (UNKNOWN.to_owned(), false))
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// Returns the output of a program if it exists and succeeds.
fn program(line: &[&str]) -> Option<String> {
    let output = Command::new(line[0]).args(&line[1..]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn format_date(at: OffsetDateTime) -> String {
    let (year, month, day) = at.to_calendar_date();
    format!("{year:04}-{:02}-{day:02} {:02}:{:02} UTC", u8::from(month), at.hour(), at.minute())
}

/// Returns the number of cores that the operating system offers.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_padded_and_in_utc() {
        let date = |seconds| format_date(OffsetDateTime::from_unix_timestamp(seconds).unwrap());
        assert_eq!([date(951_782_400), date(1_767_225_599)], ["2000-02-29 00:00 UTC", "2025-12-31 23:59 UTC"]);
    }

    #[test]
    fn a_result_without_a_commit_or_command_is_incomplete() {
        let mut provenance = Provenance::start("lanner-bench run tiny".to_owned());
        provenance.device.cpu = "some CPU".to_owned();
        provenance.commit = "0123abc".to_owned();
        assert_eq!(provenance.missing(), None);
        provenance.command.clear();
        assert_eq!(provenance.missing(), Some("command"));
        provenance.commit = UNKNOWN.to_owned();
        assert_eq!(provenance.missing(), Some("commit"));
    }

    #[test]
    fn a_commit_can_be_given_without_git() {
        assert_eq!(commit(Some("0123abc".to_owned())), ("0123abc".to_owned(), false));
        assert_eq!(commit(Some("0123abc-dirty".to_owned())), ("0123abc".to_owned(), true));
    }

    #[test]
    fn a_gpu_is_recorded_with_its_driver() {
        let mut machine = Machine::this();
        machine.add_gpu("NVIDIA H200, with a driver for CUDA 13.0");
        assert_eq!((machine.gpu.as_deref(), machine.driver.as_deref()), (Some("NVIDIA H200"), Some("CUDA 13.0")));
        machine.add_gpu("simulator");
        assert_eq!((machine.gpu.as_deref(), machine.driver), (Some("simulator"), None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_memory() {
        assert!(Usage::now().peak_bytes > 0);
    }
}
