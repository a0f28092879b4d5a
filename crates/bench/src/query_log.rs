//! Query logs, and samples of them.

use crate::error::BenchError;
use std::path::Path;

/// The texts of all queries of a log: TSV `id<TAB>text`, `id:text` with a number, or one query a line.
pub fn read(path: &Path) -> Result<Vec<String>, BenchError> {
    let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
    Ok(text.lines().map(query_of_line).filter(|query| !query.is_empty()).map(str::to_owned).collect())
}

fn query_of_line(line: &str) -> &str {
    let is_number = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let tabbed = line.split_once('\t').map(|(_, query)| query);
    let numbered = || line.split_once(':').filter(|(id, _)| is_number(id)).map(|(_, query)| query);
    tabbed.or_else(numbered).unwrap_or(line).trim()
}

/// Queries spread evenly over every second one of a log: engines are tuned on the others, and reported on these.
pub fn sample(queries: &[String], count: usize) -> Vec<String> {
    let reported: Vec<&String> = queries.iter().skip(1).step_by(2).collect();
    let count = count.min(reported.len());
    (0..count).map(|number| reported[number * reported.len() / count].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_line_gives_its_query() {
        assert_eq!(query_of_line("1048585\twhat is paula deen's brother"), "what is paula deen's brother");
        assert_eq!(query_of_line("12:falcons: a guide"), "falcons: a guide");
        assert_eq!(query_of_line("note: falcons"), "note: falcons");
        assert_eq!(query_of_line(" delta air lines "), "delta air lines");
    }

    #[test]
    fn a_sample_is_spread_over_the_half_kept_for_reporting() {
        let queries: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(sample(&queries, 5), ["1", "5", "9", "13", "17"]);
        assert_eq!(sample(&queries, 100).len(), 10);
        assert!(sample(&[], 3).is_empty());
    }
}
