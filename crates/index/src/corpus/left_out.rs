//! Files of a folder that are not read, counted by kind so that nothing is dropped silently.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::files::extension;

/// Why a file or folder below the input is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It has a NUL byte or is a PDF.
    Binary,
    /// It is not of the format that the options name.
    OtherFormat,
    /// It lies beside the `corpus.jsonl` of a BEIR folder.
    BesideCorpus,
    /// Its format does not have the fields that the options name.
    NoSuchField,
    /// Its name begins with a dot.
    HiddenFile,
    /// A folder whose name begins with a dot.
    HiddenFolder,
    /// A symbolic link, which is not followed.
    Link,
    /// A device, a pipe or a socket.
    SpecialFile,
    /// A folder that holds an index.
    Index,
}

impl Reason {
    /// The kind of file in words, for one and for several.
    fn nouns(self) -> [&'static str; 2] {
        match self {
            Reason::Binary => ["binary file", "binary files"],
            Reason::OtherFormat => ["file of another format", "files of another format"],
            Reason::BesideCorpus => ["file beside the corpus", "files beside the corpus"],
            Reason::NoSuchField => ["file without the named fields", "files without the named fields"],
            Reason::HiddenFile => ["hidden file", "hidden files"],
            Reason::HiddenFolder => ["hidden folder", "hidden folders"],
            Reason::Link => ["symbolic link", "symbolic links"],
            Reason::SpecialFile => ["special file", "special files"],
            Reason::Index => ["index folder", "index folders"],
        }
    }

    /// Whether files left out for this reason are counted by extension.
    fn has_extension(self) -> bool {
        matches!(self, Reason::Binary | Reason::OtherFormat | Reason::BesideCorpus | Reason::NoSuchField)
    }
}

/// How many files of one kind were left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// The extension of their names in lower case, where it tells the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    /// How many.
    pub count: u64,
}

/// For example `3 binary files (.png)`.
impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, several] = self.reason.nouns();
        write!(formatter, "{} {}", self.count, if self.count == 1 { one } else { several })?;
        match &self.extension {
            Some(extension) => write!(formatter, " (.{extension})"),
            None => Ok(()),
        }
    }
}

/// Counts what is left out.
#[derive(Debug, Default)]
pub(super) struct LeftOutCounts(BTreeMap<(Reason, Option<String>), u64>);

impl LeftOutCounts {
    pub(super) fn add(&mut self, reason: Reason, path: &Path) {
        let extension = if reason.has_extension() { extension(path) } else { None };
        *self.0.entry((reason, extension)).or_default() += 1;
    }

    pub(super) fn rows(&self) -> Vec<LeftOut> {
        let rows = self.0.iter();
        rows.map(|((reason, extension), &count)| LeftOut { reason: *reason, extension: extension.clone(), count })
            .collect()
    }
}
