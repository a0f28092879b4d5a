//! The steps of a query as a timeline, and the work done.

use crate::columns::width;
use crate::failure::Failure;
use crate::quantity::{count, counted, duration};
use lanner::Answer;
use lanner::answer::{Trace, Work};
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// The characters of a bar, in lines that are wide enough, and the fewest: with fewer, steps have no bars.
const BAR: usize = 40;
const FEWEST: usize = 8;
/// The characters before a bar, and those behind it, which say how long a step waited.
const BEFORE_BAR: usize = 41;
const BEHIND_BAR: usize = 18;
/// Waiting at least this long is said in words.
const WORTH_SAYING: Duration = Duration::from_micros(1);

/// Writes the steps with their bars, for lines of this many columns, and the work done.
pub fn write_trace(answer: &Answer, columns: usize, out: &mut impl Write) -> Result<(), Failure> {
    match columns.saturating_sub(BEFORE_BAR + BEHIND_BAR) {
        0..FEWEST => write_steps(&answer.trace, columns, out)?,
        bar => write_timeline(&answer.trace, bar.min(BAR), out)?,
    }
    let Work { postings_decoded, blocks_decoded, blocks_skipped, documents_scored, .. } = answer.work;
    let Work { bytes_uploaded, bytes_from_host, .. } = answer.work;
    if bytes_uploaded > 0 {
        write_words(&format!("uploaded {} bytes", count(bytes_uploaded)), columns, out)?;
    }
    if bytes_from_host > 0 {
        write_words(&format!("read about {} bytes of lists in host memory", count(bytes_from_host)), columns, out)?;
    }
    let mut line = format!("decoded {} in {}", counted(postings_decoded, "posting"), counted(blocks_decoded, "block"));
    let _ = write!(line, ", skipped {}", counted(blocks_skipped, "block"));
    let _ = write!(line, ", scored {}", counted(documents_scored, "document"));
    write_words(&line, columns, out)
}

/// Writes words behind two spaces, in lines of at most this many columns. A longer word has a line of its own.
fn write_words(text: &str, columns: usize, out: &mut impl Write) -> Result<(), Failure> {
    let mut line = String::from(" ");
    for word in text.split(' ') {
        if line.len() > 1 && width(&line) + 1 + width(word) > columns {
            writeln!(out, "{line}")?;
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")?;
    Ok(())
}

/// Writes the steps in words.
fn write_steps(trace: &Trace, columns: usize, out: &mut impl Write) -> Result<(), Failure> {
    let mut ended = Duration::ZERO;
    for (start, step) in trace.timeline() {
        let waited = start.saturating_sub(ended);
        let mut line = format!("{} on {}: {}", step.name, step.place, duration(step.duration));
        if waited >= WORTH_SAYING {
            let _ = write!(line, " after waiting {}", duration(waited));
        }
        write_words(&line, columns, out)?;
        ended = ended.max(start + step.duration);
    }
    Ok(())
}

/// Draws a bar for each step, from the arrival of the query to the end of its last step: `░` where it waited for the
/// step, `█` where the step ran.
fn write_timeline(trace: &Trace, bar_columns: usize, out: &mut impl Write) -> Result<(), Failure> {
    let column =
        |time: Duration| (bar_columns as f64 * time.as_secs_f64() / trace.total().as_secs_f64().max(1e-9)) as usize;
    let mut ended = Duration::ZERO;
    for (start, step) in trace.timeline() {
        let waited = start.saturating_sub(ended);
        // Every step is seen, however short it is.
        let from = column(start).min(bar_columns - 1);
        let to = column(start + step.duration).clamp(from + 1, bar_columns);
        let before = column(ended).min(from);
        let bar = format!("{}{}{}", " ".repeat(before), "░".repeat(from - before), "█".repeat(to - from));
        let place = step.place.to_string();
        write!(out, "  {:<12} on {place:<9} {:>10}  {bar:<bar_columns$}", step.name, duration(step.duration))?;
        match waited >= WORTH_SAYING {
            true => writeln!(out, "  waited {}", duration(waited))?,
            false => writeln!(out)?,
        }
        ended = ended.max(start + step.duration);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanner::answer::{Place, Step};
    use std::time::Instant;

    fn trace() -> Trace {
        let arrived = Instant::now();
        let step = |name, place, start: u64, micros: u64| Step {
            name,
            place,
            started: arrived + Duration::from_micros(start),
            duration: Duration::from_micros(micros),
        };
        let steps = vec![
            step("plan", Place::Cpu, 0, 10),
            step("conjunction", Place::Gpu, 20, 20),
            step("rest", Place::Cpu, 40, 0),
        ];
        Trace { arrived: Some(arrived), steps }
    }

    #[test]
    fn a_timeline_shows_when_steps_ran_and_when_the_query_waited() {
        let mut out = Vec::new();
        write_timeline(&trace(), BAR, &mut out).unwrap();
        let expected = [
            "  plan         on cpu            10 µs  ██████████                              ",
            "  conjunction  on gpu            20 µs            ░░░░░░░░░░████████████████████  waited 10 µs",
            "  rest         on cpu             0 µs                                         █",
        ];
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, expected, "{text}");
        let mut empty = Vec::new();
        write_timeline(&Trace::default(), BAR, &mut empty).unwrap();
        assert!(empty.is_empty());
    }

    #[test]
    fn lines_of_a_trace_fit_in_the_columns() {
        for columns in 20..=120 {
            let mut out = Vec::new();
            write_trace(&Answer { trace: trace(), ..Answer::default() }, columns, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.lines().all(|line| width(line) <= columns), "{columns}:\n{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(["conjunction on gpu", "20 µs", "10 µs"].iter().all(|part| words.contains(part)), "{text}");
            assert_eq!(text.contains('█'), columns >= BEFORE_BAR + FEWEST + BEHIND_BAR, "{columns}");
        }
        let mut out = Vec::new();
        write_steps(&trace(), 40, &mut out).unwrap();
        let expected =
            "  plan on cpu: 10 µs\n  conjunction on gpu: 20 µs after\n  waiting 10 µs\n  rest on cpu: 0 µs\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
