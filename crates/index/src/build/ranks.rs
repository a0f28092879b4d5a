//! Reads static ranks from a file with an external id and a number per line, and scales them so that the largest is 1.

use super::BuildError;
use crate::corpus::Text;
use std::collections::HashMap;
use std::path::Path;

/// Reads the file, plain, gzip or zstd. Numbers must be finite and non-negative; every id may occur only once.
pub fn read(path: &Path) -> Result<HashMap<String, f32>, BuildError> {
    let mut ranks = HashMap::new();
    for (number, line) in Text::open(path)?.strict()?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let wrong =
            |what: &str| BuildError::Ranks { path: path.to_owned(), line: number as u64 + 1, what: what.to_owned() };
        let (id, rank) = parse(line).ok_or_else(|| wrong("the line is not an id and a rank"))?;
        if ranks.insert(id.to_owned(), rank).is_some() {
            return Err(wrong("the id already has a rank"));
        }
    }
    let largest = ranks.values().copied().fold(0.0, f64::max);
    let scale = if largest > 0.0 { largest } else { 1.0 };
    Ok(ranks.into_iter().map(|(id, rank)| (id, (rank / scale) as f32)).collect())
}

fn parse(line: &str) -> Option<(&str, f64)> {
    let (id, rank) = line.split_once('\t').or_else(|| line.rsplit_once(' '))?;
    let rank: f64 = rank.trim().parse().ok()?;
    (rank.is_finite() && rank >= 0.0 && !id.is_empty()).then_some((id.trim(), rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read_text(text: &str) -> Result<HashMap<String, f32>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_are_scaled_so_that_the_largest_is_one() {
        let ranks = read_text("a\t2\n\nb 0.5\nc\t4\n").unwrap();
        assert_eq!(ranks, HashMap::from([("a".into(), 0.5), ("b".into(), 0.125), ("c".into(), 1.0)]));
        assert_eq!(read_text("a\t0\n").unwrap()["a"], 0.0);
    }

    #[test]
    fn a_bad_line_is_named() {
        for text in ["a\t1\nb\n", "a\t1\nb\t-1\n", "a\t1\nb\tNaN\n", "a\t1\na\t2\n"] {
            assert!(read_text(text).unwrap_err().contains(":2: "), "{text:?}");
        }
    }
}
