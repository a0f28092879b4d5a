//! Files of a folder that are not read, counted by kind so that nothing is dropped silently.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::error::CorpusError;
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
    /// A symbolic link to what is read already, or a file that was read through a link.
    RepeatedLink,
    /// A device, a pipe or a socket.
    SpecialFile,
    /// A folder that holds an index.
    Index,
    /// A file that cannot be read, or not to its end.
    UnreadableFile,
    /// A folder whose files cannot be listed.
    UnreadableFolder,
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
            Reason::RepeatedLink => ["link to what is read already", "links to what is read already"],
            Reason::SpecialFile => ["special file", "special files"],
            Reason::Index => ["index folder", "index folders"],
            Reason::UnreadableFile => ["unreadable file", "unreadable files"],
            Reason::UnreadableFolder => ["unreadable folder", "unreadable folders"],
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

/// The most files and folders that cannot be read and are named one by one.
const NAMED: usize = 20;

/// Counts what is left out.
#[derive(Debug, Default)]
pub(super) struct LeftOutCounts {
    counts: BTreeMap<(Reason, Option<String>), u64>,
    /// What is wrong with the first files and folders that cannot be read.
    unreadable: Vec<String>,
}

impl LeftOutCounts {
    pub(super) fn add(&mut self, reason: Reason, path: &Path) {
        let extension = if reason.has_extension() { extension(path) } else { None };
        *self.counts.entry((reason, extension)).or_default() += 1;
    }

    /// Counts and names what cannot be read; `error` names the path.
    pub(super) fn add_unreadable(&mut self, reason: Reason, error: &CorpusError) {
        *self.counts.entry((reason, None)).or_default() += 1;
        if self.unreadable.len() < NAMED {
            self.unreadable.push(error.to_string());
        }
    }

    pub(super) fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    pub(super) fn rows(&self) -> Vec<LeftOut> {
        let rows = self.counts.iter();
        rows.map(|((reason, extension), &count)| LeftOut { reason: *reason, extension: extension.clone(), count })
            .collect()
    }
}
