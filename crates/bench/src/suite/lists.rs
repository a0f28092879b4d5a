//! Where lists lie, and the section `[lists]`.

use super::LogPart;
use lanner::Mode;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// Where the lists of an index lie.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Lists {
    /// On the device.
    Resident,
    /// On the host; a batch uploads those that it needs.
    Uploaded,
    /// In host memory, where the GPU reads them.
    Host,
    /// In host memory, but for directories and bounds of chunks, which a cache on the device keeps.
    Directories,
    /// In host memory, and a cache on the device has this percentage of their bytes.
    Cached(f64),
}

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lists::Resident => f.write_str("resident"),
            Lists::Uploaded => f.write_str("uploaded"),
            Lists::Host => f.write_str("host"),
            Lists::Directories => f.write_str("directories"),
            Lists::Cached(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for Lists {
    type Err = String;

    fn from_str(text: &str) -> Result<Lists, String> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        match (text, percent) {
            ("resident", _) => Ok(Lists::Resident),
            ("uploaded", _) => Ok(Lists::Uploaded),
            ("host", _) => Ok(Lists::Host),
            ("directories", _) => Ok(Lists::Directories),
            (_, Some(percent)) if percent > 0.0 && percent < 100.0 => Ok(Lists::Cached(percent)),
            _ => Err(format!("lists {text:?}: resident, uploaded, host, directories, or a percentage such as 40%")),
        }
    }
}

impl TryFrom<String> for Lists {
    type Error = String;

    fn try_from(text: String) -> Result<Lists, String> {
        text.parse()
    }
}

/// Section `[lists]`: the GPU with lists in device memory, in host memory, or partly in each, on an index as that of
/// `[gpu]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListsPart {
    /// Queries are chosen as in `[gpu]`, with the same limit of postings in both halves of the log. The sample is that of
    /// each half.
    pub log: LogPart,
    /// See [`super::GpuPart::postings`].
    pub postings: f64,
    /// See `postings`.
    pub of_documents: u64,
    pub modes: Vec<Mode>,
    pub k: usize,
    /// Where lists lie in part `memory`. Ratios are relative to resident ones.
    pub lists: Vec<Lists>,
    /// How often the half for tuning is asked before anything is measured.
    pub warm_up: usize,
    /// The passes of a rate in part `memory` take at least this long in all; one is made in any case.
    pub seconds: f64,
    /// Number of queries that are asked one by one.
    pub single: usize,
    pub drift: DriftPart,
    pub opening: OpeningPart,
    pub beyond: BeyondPart,
}

/// Part `drift`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftPart {
    pub lists: Vec<Lists>,
    /// Number of queries of a slice, whose rate is a point of the chart.
    pub slice: usize,
    /// How often the change is measured.
    pub turns: usize,
}

/// Part `opening`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpeningPart {
    pub lists: Vec<Lists>,
    /// Processes that open the index, after one that is not counted.
    pub repetitions: usize,
    /// Different queries that are asked meanwhile.
    pub queries: usize,
    /// Queries are asked until everything is loaded, but not longer than this.
    pub longest_s: f64,
}

/// Part `beyond`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeyondPart {
    /// All device memory that may be used, as a share of the bytes of the lists.
    pub share: f64,
    pub queries: usize,
}

impl ListsPart {
    pub(super) fn is_empty(&self) -> bool {
        let ListsPart { drift, opening, beyond, .. } = self;
        let counts = [self.log.sample, self.k, self.warm_up, self.single];
        let counts_of_parts = [drift.slice, drift.turns, opening.repetitions, opening.queries, beyond.queries];
        let is_missing = [&self.lists, &drift.lists, &opening.lists].into_iter().any(Vec::is_empty);
        is_missing || self.modes.is_empty() || counts.contains(&0) || counts_of_parts.contains(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_lists_lie_is_read_as_it_is_shown() {
        for name in ["resident", "uploaded", "host", "directories", "40%", "2.5%"] {
            assert_eq!(name.parse::<Lists>().unwrap().to_string(), name);
        }
        for wrong in ["0.4", "100%", "0%", "-1%", "nowhere", "%"] {
            assert!(wrong.parse::<Lists>().is_err(), "{wrong}");
        }
    }
}
