//! Sizes, shares, counts and times as people write and read them.

use bytesize::ByteSize;
use indicatif::HumanCount;
use std::time::Duration;

/// Parses a number of bytes such as `256MiB`, `1.5GB` or `4096`.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let size: Result<ByteSize, _> = text.trim().parse();
    // The parser rounds what is too large down to the largest number.
    let size = size.ok().map(|size| size.as_u64()).filter(|bytes| *bytes < u64::MAX);
    let bytes = size.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("{text:?} is not a size; write one such as 256MiB, 1GiB, 500MB or a number of bytes"))
}

/// Parses a share such as `0.1` or `10%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let share = number.parse().ok().map(|number: f64| number / whole).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is not a share; write a share such as 0.1 or 10%"))
}

/// Formats a count as `1,234,567`.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Formats a count with its noun: `1 document`, `2 documents`.
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// Formats a number of bytes as `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Formats a time as `87 µs`, `1.25 ms`, `3.4 s` or `2 min 5 s`.
// Of the crates for this, indicatif rounds to whole seconds or minutes, and humantime prints every unit down to ns.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.000_999_5 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.999_5 {
        format!("{:.2} ms", seconds * 1e3)
    } else if seconds < 59.95 {
        format!("{seconds:.1} s")
    } else {
        self::seconds(seconds.round() as u64)
    }
}

/// Formats an estimate, which has no decimals: `5 s`, `2 min 5 s`.
pub fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        let cases = [("256MiB", 256 << 20), ("1gib", 1 << 30), ("500MB", 500_000_000), ("1.5 KiB", 1536), ("77", 77)];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MiB", "12XiB", "-1", "inf", "1.2.3GB", "16EiB", "99999999999999999999EiB"] {
            assert!(parse_bytes(text).is_err_and(|error| error.contains("256MiB")), "{text}");
        }
    }

    #[test]
    fn shares_are_fractions_or_percentages() {
        for (text, expected) in [("0.1", 0.1), ("10%", 0.1), ("12.5 %", 0.125), ("0", 0.0), ("100%", 1.0), ("1", 1.0)] {
            assert_eq!(parse_share(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "-0.1", "1.1", "101%", "NaN", "tenth"] {
            assert!(parse_share(text).is_err_and(|error| error.contains("0.1 or 10%")), "{text}");
        }
    }

    #[test]
    fn counts_have_separators() {
        let counts = [0, 999, 1000, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "hit"), counted(1000, "hit")], ["1 hit", "1,000 hits"]);
    }

    #[test]
    fn bytes_and_times_have_fitting_units() {
        assert_eq!([1, 1023, 1024, 1 << 20, 5 << 40].map(bytes), ["1 B", "1023 B", "1.0 KiB", "1.0 MiB", "5.0 TiB"]);
        let times = [87, 1_250, 999_400, 3_400_000, 125_000_000].map(|us| duration(Duration::from_micros(us)));
        assert_eq!(times, ["87 µs", "1.25 ms", "999.40 ms", "3.4 s", "2 min 5 s"]);
    }
}
