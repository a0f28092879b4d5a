//! What the program sees of the machine: the CPU, memory, the driver and the limits of the process. What the operating
//! system does not say is left out.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;

/// Limits that matter, by their names in the list of the Linux kernel.
const LIMITS: [(&str, &str); 5] = [
    ("Max locked memory", "locked memory"),
    ("Max open files", "open files"),
    ("Max processes", "processes and threads"),
    ("Max address space", "address space"),
    ("Max file size", "file size"),
];

/// The CPU.
#[derive(Debug, Serialize)]
pub struct Cpu {
    /// Its name.
    pub name: Option<String>,
    /// Cores that this process may use.
    pub cores: usize,
    /// The features that the engine has kernels for, and whether the CPU has them.
    pub features: BTreeMap<&'static str, bool>,
}

/// Memory in bytes.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// What can be used now.
    pub available: u64,
}

/// A limit of this process; `None` is no limit.
#[derive(Debug, Serialize)]
pub struct Limit {
    /// What is limited.
    pub name: &'static str,
    /// To how much.
    pub value: Option<u64>,
    /// Whether it is a number of bytes.
    pub is_bytes: bool,
}

impl Cpu {
    /// That of this machine.
    pub fn of_machine() -> Cpu {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Cpu { name: name.map(|(_, name)| name.trim().to_owned()), cores, features: features() }
    }

    /// The widest kernels that the CPU can run.
    pub fn kernels(&self) -> &'static str {
        let widest = ["AVX-512", "AVX2"].into_iter().find(|name| self.features.get(name) == Some(&true));
        widest.unwrap_or("portable")
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> BTreeMap<&'static str, bool> {
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2");
    BTreeMap::from([("AVX2", is_x86_feature_detected!("avx2")), ("AVX-512", avx512)])
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> BTreeMap<&'static str, bool> {
    BTreeMap::new()
}

impl Memory {
    /// That of this machine.
    pub fn of_machine() -> Option<Memory> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let kibibytes = |name: &str| {
            let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
            line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
        };
        Some(Memory { total: kibibytes("MemTotal")? << 10, available: kibibytes("MemAvailable")? << 10 })
    }
}

/// The version of NVIDIA's driver in the kernel.
pub fn driver_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    version_in(&text)
}

/// The first word of a text that is numbers between dots.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.contains('.') && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split_ascii_whitespace().find(is_version).map(str::to_owned)
}

/// The limits of this process.
pub fn limits() -> Vec<Limit> {
    limits_in(&fs::read_to_string("/proc/self/limits").unwrap_or_default())
}

fn limits_in(text: &str) -> Vec<Limit> {
    let limit = |(listed, name): (&str, &'static str)| {
        let line = text.lines().find_map(|line| line.strip_prefix(listed))?;
        let (soft, unit) = (line.split_ascii_whitespace().next()?, line.split_ascii_whitespace().next_back()?);
        Some(Limit { name, value: soft.parse().ok(), is_bytes: unit == "bytes" })
    };
    LIMITS.into_iter().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max file size             unlimited            unlimited            bytes     \n\
                    Max open files            1024                 20000                files     \n";
        let found: Vec<_> =
            limits_in(text).into_iter().map(|limit| (limit.name, limit.value, limit.is_bytes)).collect();
        assert_eq!(found, [("open files", Some(1024), false), ("file size", None, true)]);
        assert!(limits_in("").is_empty());
    }

    #[test]
    fn the_version_of_a_driver_is_found_in_its_line() {
        let line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x@y)";
        assert_eq!(version_in(line).as_deref(), Some("580.95.05"));
        assert_eq!(version_in("no version"), None);
    }
}
