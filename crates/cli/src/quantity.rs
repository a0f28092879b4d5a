//! Sizes, counts and times as people write and read them.

use std::time::Duration;

const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

/// Bytes from `256MiB`, `1.5GB` or a plain number; upper and lower case are the same.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is not a size; write one such as 256MiB, 1GiB, 500MB or a number of bytes");
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS.into_iter().find(|(name, _)| lower.ends_with(name));
    let (number, factor) = match unit {
        Some((name, factor)) => (lower[..lower.len() - name.len()].trim_end(), factor),
        None => (lower.as_str(), 1),
    };
    let is_decimal = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| is_decimal).ok_or_else(wrong)?;
    let bytes = number * factor as f64;
    if bytes >= usize::MAX as f64 {
        return Err(wrong());
    }
    Ok(bytes as usize)
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with its noun: `1 document`, `2 documents`.
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    const NAMES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return counted(bytes, "byte");
    }
    let (mut value, mut name) = (bytes as f64 / 1024.0, 0);
    // What would print as 1024.0 belongs to the next unit.
    while value >= 1023.95 && name + 1 < NAMES.len() {
        value /= 1024.0;
        name += 1;
    }
    format!("{value:.1} {}", NAMES[name])
}

/// `87 µs`, `1.25 ms`, `3.4 s`, `2 min 5 s`.
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

/// `5 s`, `2 min 5 s`: for estimates, which have no decimals.
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
        for text in ["", "MiB", "12XiB", "-1", "1e9", "inf", "1.2.3GB", "99999999999TiB"] {
            assert!(parse_bytes(text).unwrap_err().contains("256MiB"), "{text}");
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
        let sizes = [1, 1023, 1024, 1_048_575, 1 << 20, 5 << 40].map(bytes);
        assert_eq!(sizes, ["1 byte", "1,023 bytes", "1.0 KiB", "1.0 MiB", "1.0 MiB", "5.0 TiB"]);
        let times = [87, 1_250, 999_400, 3_400_000, 125_000_000].map(|us| duration(Duration::from_micros(us)));
        assert_eq!(times, ["87 µs", "1.25 ms", "999.40 ms", "3.4 s", "2 min 5 s"]);
    }
}
