//! When queries arrive: at random moments of a rate that may change, or as a file says.

use crate::error::{BenchError, Result};
use crate::scale::random::Random;
use std::path::Path;

/// A time during which queries arrive at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Queries per second.
    pub rate: f64,
    pub seconds: f64,
}

/// Draws the arrivals of a Poisson process, in nanoseconds from the start: gaps between queries are exponential. The
/// last phase goes on until `fewest` queries have arrived. The same seed gives the same arrivals.
pub fn poisson(phases: &[Phase], fewest: usize, seed: u64) -> Vec<u64> {
    let (mut random, mut arrivals) = (Random::new(seed, 0), Vec::new());
    let mut end = 0.0;
    for (number, phase) in phases.iter().enumerate() {
        let is_last = number + 1 == phases.len();
        // The process has no memory: at a new rate, it starts anew.
        let mut at = end;
        end += phase.seconds;
        loop {
            // At most 1 - 2^-53, so that the logarithm is finite.
            let uniform = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
            at -= (1.0 - uniform).ln() / phase.rate;
            if at >= end && !(is_last && arrivals.len() < fewest) {
                break;
            }
            arrivals.push((at * 1e9) as u64);
        }
    }
    arrivals
}

/// Reads arrivals from lines `SECONDS<TAB>QUERY` in the order of time; `speed` 2 makes them arrive twice as fast.
/// Returns the times in nanoseconds from the first, and the queries.
pub fn replay(path: &Path, speed: f64) -> Result<(Vec<u64>, Vec<String>)> {
    let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
    let wrong = |line: usize, what: &str| BenchError::File {
        path: path.to_owned(),
        what: format!("line {line}: {what}; write the time in seconds, a tab and the query, in the order of time"),
    };
    let (mut seconds, mut queries) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let (time, query) = line.split_once('\t').ok_or_else(|| wrong(number, "no tab"))?;
        let time: f64 = time.trim().parse().map_err(|_| wrong(number, "no time"))?;
        if !time.is_finite() || seconds.last().is_some_and(|&last| time < last) {
            return Err(wrong(number, "its time is before that of the line before, or is no number"));
        }
        seconds.push(time);
        queries.push(query.to_owned());
    }
    let Some(&first) = seconds.first() else {
        return Err(wrong(1, "no queries"));
    };
    let arrivals = seconds.into_iter().map(|time| ((time - first) / speed * 1e9) as u64).collect();
    Ok((arrivals, queries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_their_rate_and_exponential_gaps() {
        let arrivals = poisson(&[Phase { rate: 10_000.0, seconds: 10.0 }], 0, 7);
        assert!((99_000..101_000).contains(&arrivals.len()), "{}", arrivals.len());
        assert!(arrivals.is_sorted() && arrivals[arrivals.len() - 1] < 10_000_000_000);
        // The share of exponential gaps above their mean is 1/e.
        let long = arrivals.windows(2).filter(|pair| pair[1] - pair[0] > 100_000).count();
        let share = long as f64 / arrivals.len() as f64;
        assert!((share - (-1f64).exp()).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let phases = [Phase { rate: 500.0, seconds: 1.0 }];
        assert_eq!(poisson(&phases, 0, 1), poisson(&phases, 0, 1));
        assert_ne!(poisson(&phases, 0, 1), poisson(&phases, 0, 2));
    }

    #[test]
    fn a_phase_changes_the_rate() {
        let phases = [(100.0, 2.0), (9000.0, 1.0), (100.0, 2.0)].map(|(rate, seconds)| Phase { rate, seconds });
        let arrivals = poisson(&phases, 0, 3);
        let within = |from: u64, to: u64| arrivals.iter().filter(|&&at| (from..to).contains(&(at / 1_000_000))).count();
        let counts = [within(0, 2000), within(2000, 3000), within(3000, 5000)];
        assert!((150..250).contains(&counts[0]) && (150..250).contains(&counts[2]), "{counts:?}");
        assert!((8700..9300).contains(&counts[1]), "{counts:?}");
    }

    #[test]
    fn a_run_lasts_until_enough_queries_have_arrived() {
        let arrivals = poisson(&[Phase { rate: 10.0, seconds: 0.01 }], 50, 1);
        assert_eq!(arrivals.len(), 50);
    }

    #[test]
    fn a_file_is_replayed_at_a_speed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arrivals.tsv");
        std::fs::write(&path, "10.5\tred falcon\n11\theron\n\n11.25\twater\n").unwrap();
        let (arrivals, queries) = replay(&path, 2.0).unwrap();
        assert_eq!(arrivals, [0, 250_000_000, 375_000_000]);
        assert_eq!(queries, ["red falcon", "heron", "water"]);
        for (text, expected) in
            [("1 falcon\n", "line 1: no tab"), ("2\ta\n1\tb\n", "line 2: its time"), ("", "queries")]
        {
            std::fs::write(&path, text).unwrap();
            let error = replay(&path, 1.0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
