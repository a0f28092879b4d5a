//! The names of the files in an index folder, by which such a folder is recognized.

use super::manifest::Manifest;

/// The file that a writer locks.
pub const LOCK: &str = "lock";
/// The subfolder of a build in progress.
pub const BUILDING: &str = "building";

const SEGMENT: &str = "segment-";

/// Returns the file name of the segment of a generation.
pub fn segment_name(generation: u64) -> String {
    format!("{SEGMENT}{generation:08}")
}

/// Whether a file name is one that [`segment_name`] returns.
pub fn is_segment(name: &str) -> bool {
    let generation = name.strip_prefix(SEGMENT).and_then(|digits| digits.parse().ok());
    generation.is_some_and(|generation| segment_name(generation) == name)
}

/// Whether a folder with these entries is an index, or the leftover of a writer that died before its first commit.
///
/// A writer creates the lock before anything else, so an unfinished index has a lock and no foreign files.
pub fn is_index<S: AsRef<str>>(names: &[S]) -> bool {
    let names = || names.iter().map(AsRef::as_ref);
    let is_ours = |name: &str| name == LOCK || name == BUILDING || is_segment(name);
    names().any(|name| Manifest::generation_of(name).is_some())
        || (names().any(|name| name == LOCK) && names().all(is_ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_recognized_finished_or_not_and_other_folders_are_not_taken_for_one() {
        assert!(is_index(&["lock", "manifest-00000002", "segment-00000002", "notes.txt"]));
        assert!(is_index(&["lock", "building", "segment-00000001"]));
        assert!(!is_index(&["lock", "notes.txt"]));
        assert!(!is_index(&["building", "segment-00000001"]));
        assert!(!is_index(&["manifest-2"]));
        assert!(!is_index::<&str>(&[]));
    }
}
