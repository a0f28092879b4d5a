//! Text that must be as it was, times aside; `UPDATE=1` writes it anew.

use std::path::Path;

/// Compares text with `tests/golden/NAME.txt`.
#[track_caller]
pub fn assert_golden(name: &str, text: &str) {
    let masked = masked(text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &masked).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(masked, expected, "{name}.txt differs; UPDATE=1 rewrites it");
}

/// Text with every time, and every number a second, as `#`.
pub fn masked(text: &str) -> String {
    text.split('\n').map(masked_line).collect::<Vec<_>>().join("\n")
}

fn masked_line(line: &str) -> String {
    // The bar of a timeline, and how long the query waited before it.
    let line = match line.contains(" on ") && line.contains(['█', '░']) {
        true => line.split(['█', '░']).next().unwrap_or_default().trim_end().to_owned() + " ~",
        false => line.to_owned(),
    };
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let unit = word.trim_end_matches(',');
        let is_time = ["µs", "ms", "s", "documents/s"].contains(&unit);
        if is_time && words.last().is_some_and(|number| is_number(number)) {
            words.pop();
            // Times are aligned to the right: how many spaces precede them depends on the time.
            while words.last().is_some_and(String::is_empty) {
                words.pop();
            }
            words.push("#".to_owned());
            words.push(if unit == "documents/s" { word.to_owned() } else { word.replacen(unit, "s", 1) });
        } else if word.starts_with('(') && word.ends_with("/s)") {
            words.push("(#/s)".to_owned());
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn is_number(word: &str) -> bool {
    let digits = word.replace(',', "");
    !digits.is_empty() && digits.parse::<f64>().is_ok()
}

#[test]
fn times_are_masked_and_counts_are_not() {
    let text = "3 hits in 87 µs\nplan  on cpu    1.25 ms\nscatter on gpu  12 µs    ░░██  waited 3 µs\ntime        0.3 s, 1,234 documents/s\n(77/s)\n1,000 documents";
    let expected =
        "3 hits in # s\nplan  on cpu # s\nscatter on gpu # s ~\ntime # s, # documents/s\n(#/s)\n1,000 documents";
    assert_eq!(masked(text), expected);
}
