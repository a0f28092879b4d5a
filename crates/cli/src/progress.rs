//! Progress of long work: a bar in a terminal, a few plain lines elsewhere, nothing with `--quiet`.

use crate::quantity::{count, counted, seconds};
use crate::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use lanner_index::build::Progress;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The first plain line comes after this time; the time between lines doubles, so that a log has few of them.
const FIRST_LINE: Duration = Duration::from_secs(5);
const BAR: &str = "{prefix} [{bar:24}] {percent:>3}%  {wide_msg}";
const SPINNER: &str = "{prefix} {spinner} {wide_msg}";

/// Shows progress on standard error.
pub struct Meter {
    display: Display,
    state: Mutex<State>,
}

enum Display {
    Silent,
    Bar(ProgressBar),
    Lines,
}

struct State {
    phase: &'static str,
    phase_start: Instant,
    next_line: Duration,
    start: Instant,
}

/// The state of some work: `done` of `total` units.
struct Moment {
    phase: &'static str,
    done: u64,
    total: Option<u64>,
}

impl Meter {
    /// Makes a meter; a quiet one shows nothing.
    pub fn new(quiet: bool) -> Meter {
        let display = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Display::Silent,
            (false, true) => Display::Bar(ProgressBar::hidden().with_finish(ProgressFinish::AndClear)),
            (false, false) => Display::Lines,
        };
        let now = Instant::now();
        let state = State { phase: "", phase_start: now, next_line: FIRST_LINE, start: now };
        Meter { display, state: Mutex::new(state) }
    }

    /// Shows that `queries` of `total` queries are answered.
    pub fn answered(&self, queries: u64, total: u64) {
        let moment = Moment { phase: "searching", done: queries, total: Some(total) };
        let words = |seconds| format!("{} of {} queries  {}/s", count(queries), count(total), rate(queries, seconds));
        self.show(&moment, words);
    }

    fn show(&self, moment: &Moment, words: impl Fn(f64) -> String) {
        if matches!(self.display, Display::Silent) {
            return;
        }
        let mut state = self.lock();
        if state.phase != moment.phase {
            // The first phase began when the meter was made.
            state.phase_start = if state.phase.is_empty() { state.start } else { Instant::now() };
            state.phase = moment.phase;
            self.restyle(moment);
        }
        let elapsed = state.phase_start.elapsed().as_secs_f64();
        let rest = moment.seconds_left(elapsed).map_or(String::new(), |left| format!("  about {} left", seconds(left)));
        match &self.display {
            Display::Silent => {}
            Display::Bar(bar) => {
                bar.set_message(format!("{}{rest}", words(elapsed)));
                bar.set_position(moment.done);
            }
            Display::Lines if state.start.elapsed() >= state.next_line => {
                state.next_line = state.start.elapsed() * 2;
                let share = moment.percent().map_or(String::new(), |percent| format!("{percent}%  "));
                terminal::tell(&format!("{}: {share}{}{rest}", moment.phase, words(elapsed)));
            }
            Display::Lines => {}
        }
    }

    fn restyle(&self, moment: &Moment) {
        if let Display::Bar(bar) = &self.display {
            let template = if moment.total.is_some() { BAR } else { SPINNER };
            let style = ProgressStyle::with_template(template).expect("the templates are constants");
            bar.set_style(style.progress_chars("=> "));
            bar.set_length(moment.total.unwrap_or(0));
            bar.set_prefix(format!("{:>9}", moment.phase));
            // The bar is hidden until it has a style, since the default style would flash up.
            if bar.is_hidden() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moment {
    fn percent(&self) -> Option<u64> {
        let total = self.total.filter(|&total| total > 0)?;
        Some((u128::from(self.done) * 100 / u128::from(total)).min(100) as u64)
    }

    /// Extrapolates the time left; `None` as long as it is too early for that.
    fn seconds_left(&self, elapsed_seconds: f64) -> Option<u64> {
        let total = self.total.filter(|&total| self.done > 0 && total > self.done)?;
        let left = elapsed_seconds * (total - self.done) as f64 / self.done as f64;
        (elapsed_seconds >= 0.5 && left < 1e9).then_some(left.ceil() as u64)
    }
}

fn rate(done: u64, seconds: f64) -> String {
    if seconds <= 0.0 { "-".to_owned() } else { count((done as f64 / seconds) as u64) }
}

/// Shows the progress of a build.
pub struct BuildMeter {
    meter: Meter,
    bytes_total: Option<u64>,
}

impl BuildMeter {
    /// Makes a meter; `bytes_total` is the size of the input if only the caller knows it.
    pub fn new(quiet: bool, bytes_total: Option<u64>) -> BuildMeter {
        BuildMeter { meter: Meter::new(quiet), bytes_total }
    }
}

impl Progress for BuildMeter {
    fn inverted(&self, documents: u64, bytes_read: u64, bytes_total: Option<u64>) {
        let total = self.bytes_total.or(bytes_total);
        let done = bytes_read.min(total.unwrap_or(u64::MAX));
        let moment = Moment { phase: "indexing", done, total };
        let words = |seconds| format!("{}  {}/s", counted(documents, "document"), rate(documents, seconds));
        self.meter.show(&moment, words);
    }

    // The report names skipped records after the bar is gone.
    fn skipped(&self, _problem: &str) {}

    fn ordered(&self, done: u64, total: u64) {
        let moment = Moment { phase: "ordering", done, total: Some(total) };
        self.meter.show(&moment, |_| String::new());
    }

    fn merged(&self, postings: u64, total: u64) {
        let moment = Moment { phase: "merging", done: postings, total: Some(total) };
        self.meter.show(&moment, |_| counted(postings, "posting"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_from_what_is_done() {
        let moment = |done, total| Moment { phase: "", done, total };
        assert_eq!(moment(25, Some(100)).seconds_left(10.0), Some(30));
        assert_eq!(moment(25, Some(100)).seconds_left(0.1), None, "too early");
        assert_eq!(moment(25, None).seconds_left(10.0), None);
        assert_eq!(moment(0, Some(100)).seconds_left(10.0), None);
        assert_eq!(moment(100, Some(100)).seconds_left(10.0), None);
        assert_eq!(moment(1, Some(3)).percent(), Some(33));
        assert_eq!(moment(5, Some(0)).percent(), None);
    }
}
