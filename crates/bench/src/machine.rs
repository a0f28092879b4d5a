//! On which machine, from which commit and when: what makes a number worth keeping.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a commit reads where nothing tells it; the report refuses it.
pub const UNKNOWN: &str = "unknown";

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The machine.
    pub device: Device,
    /// The commit of the project, or [`UNKNOWN`].
    pub commit: String,
    /// Whether sources differ from that commit.
    pub uncommitted_changes: bool,
    /// The command that makes the result again.
    pub command: String,
    /// When, in universal time.
    pub date: String,
    /// Versions of what was measured and of the compiler.
    pub versions: BTreeMap<String, String>,
    /// Processes that were ready to run, one-minute average, before and after.
    pub load: [f64; 2],
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The processor's name.
    pub cpu: String,
    /// How many processors the operating system offers.
    pub cores: usize,
    /// Memory.
    pub memory_bytes: u64,
    /// The operating system.
    pub system: String,
    /// The graphics processor that took part, if one did.
    pub gpu: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
}

impl Provenance {
    /// What is known before a measurement; [`Provenance::finish`] adds what is known after it.
    pub fn start(command: String) -> Provenance {
        let (commit, uncommitted_changes) = commit(std::env::var("LANNER_COMMIT").ok());
        let versions = [
            ("lanner", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("tantivy", Some(tantivy::version_string().trim_start_matches("tantivy v").to_owned())),
            ("rustc", program(&["rustc", "--version"])),
        ];
        let known = versions.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?)));
        Provenance {
            device: Device::this(),
            commit,
            uncommitted_changes,
            command,
            date: format_date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
            versions: known.collect(),
            load: [load(); 2],
        }
    }

    /// Notes the load at the end.
    pub fn finish(&mut self) {
        self.load[1] = load();
    }

    /// What is missing for a result that may be shown.
    pub fn missing(&self) -> Option<&'static str> {
        let is_absent = |text: &str| text.is_empty() || text == UNKNOWN;
        if is_absent(&self.device.cpu) {
            Some("device")
        } else if is_absent(&self.commit) {
            Some("commit")
        } else if is_absent(&self.command) {
            Some("command")
        } else {
            None
        }
    }
}

impl Device {
    /// The machine this runs on.
    pub fn this() -> Device {
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
        Device {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| UNKNOWN.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kibibytes * 1024,
            system: name.map_or(kernel.clone(), |name| format!("{name}, {kernel}")),
            gpu: None,
            driver: None,
        }
    }

    /// Notes the graphics processor that took part, by the name of it that ends in its driver.
    pub fn add_gpu(&mut self, name: &str) {
        let (gpu, driver) = name.split_once(", with a driver for ").map_or((name, None), |(gpu, of)| (gpu, Some(of)));
        self.gpu = Some(gpu.to_owned());
        self.driver = driver.map(str::to_owned);
    }
}

/// Processor time and memory that this process has used; zero where the operating system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in user mode, over all threads.
    pub user_s: f64,
    /// Processor time in the kernel.
    pub system_s: f64,
    /// The most memory it ever held at once.
    pub peak_bytes: u64,
}

impl Usage {
    /// What this process has used so far.
    pub fn now() -> Usage {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The program's name, in parentheses, may hold spaces; user and system time are fields 14 and 15 of the line.
        let after_name: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |field: usize| after_name.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Usage { user_s: ticks(11) / 100.0, system_s: ticks(12) / 100.0, peak_bytes: peak.unwrap_or(0) * 1024 }
    }
}

/// The commit, and whether sources differ from it: as said by the variable `LANNER_COMMIT`, else by `git` here, else by
/// the variable when the program was built. What is said may end in `-dirty`, as `git describe` has it.
fn commit(said: Option<String>) -> (String, bool) {
    let read = |text: String| match text.strip_suffix("-dirty") {
        Some(commit) => (commit.to_owned(), true),
        None => (text, false),
    };
    let of_git = || {
        let commit = program(&["git", "rev-parse", "HEAD"])?;
        // Results are written by measuring itself: they do not count as changes.
        let changes = ["git", "--no-optional-locks", "status", "--porcelain", "-uno", "--", ":/", ":!/docs/benchmarks"];
        Some((commit, program(&changes).is_some_and(|text| !text.is_empty())))
    };
    let of_build = || option_env!("LANNER_COMMIT").map(|text| read(text.to_owned()));
    said.map(read).or_else(of_git).or_else(of_build).unwrap_or_else(|| (UNKNOWN.to_owned(), false))
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// What a program prints, if it is there and succeeds.
fn program(line: &[&str]) -> Option<String> {
    let output = Command::new(line[0]).args(&line[1..]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Seconds since 1970 as a date and a time of the day, in universal time.
fn format_date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years of this calendar begin in March, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(format_date(0), "1970-01-01 00:00 UTC");
        assert_eq!(format_date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(format_date(1_767_225_599), "2025-12-31 23:59 UTC");
    }

    #[test]
    fn a_result_without_a_commit_or_command_is_incomplete() {
        let mut provenance = Provenance::start("lanner-bench run tiny".to_owned());
        provenance.device.cpu = "some processor".to_owned();
        provenance.commit = "0123abc".to_owned();
        assert_eq!(provenance.missing(), None);
        provenance.command.clear();
        assert_eq!(provenance.missing(), Some("command"));
        provenance.commit = UNKNOWN.to_owned();
        assert_eq!(provenance.missing(), Some("commit"));
    }

    #[test]
    fn a_commit_can_be_said_where_there_is_no_git() {
        assert_eq!(commit(Some("0123abc".to_owned())), ("0123abc".to_owned(), false));
        assert_eq!(commit(Some("0123abc-dirty".to_owned())), ("0123abc".to_owned(), true));
    }

    #[test]
    fn a_graphics_processor_is_noted_beside_its_driver() {
        let mut device = Device::this();
        device.add_gpu("NVIDIA H200, with a driver for CUDA 13.0");
        assert_eq!((device.gpu.as_deref(), device.driver.as_deref()), (Some("NVIDIA H200"), Some("CUDA 13.0")));
        device.add_gpu("simulator");
        assert_eq!((device.gpu.as_deref(), device.driver), (Some("simulator"), None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_memory() {
        assert!(Usage::now().peak_bytes > 0);
    }
}
