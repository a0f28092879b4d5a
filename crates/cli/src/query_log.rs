//! A whole log of queries, answered on several threads or as one batch, and written as a TREC run or as JSON.

use crate::failure::Failure;
use crate::hits::{Answered, Presenter, answer};
use crate::progress::Meter;
use crate::quantity::{count, duration};
use crate::query_options::QueryOptions;
use crate::terminal::tell;
use crate::whole_file::{Output, stdout};
use lanner::SearchError;
use lanner::eval::{RunHit, RunWriter, Topic, TopicFormat, Topics};
use lanner::{Ids, Query, Searcher};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// What to answer and where to write it.
pub struct QueryLog<'a> {
    /// The index, and how answers are written as JSON.
    pub presenter: Presenter<'a>,
    /// How queries are answered.
    pub options: &'a QueryOptions,
    /// The file of queries, or `-`.
    pub queries: &'a Path,
    /// Its format, if the user named one.
    pub format: Option<TopicFormat>,
    /// The run to write, or `-`.
    pub run: Option<&'a Path>,
    /// The run's name.
    pub tag: &'a str,
    /// Whether to write JSON to standard output.
    pub json: bool,
    /// Threads.
    pub threads: usize,
    /// Whether the executor gets all queries at once.
    pub is_batch: bool,
    /// Whether to show no progress.
    pub quiet: bool,
}

/// The answer to a query of the log: its place, the query, and the hits with their ids.
struct Finished {
    place: usize,
    result: Result<(Query, Answered, Ids), Failure>,
}

/// Where answers go, in the order of the log.
struct Sinks<'a> {
    run: Option<RunWriter<Output>>,
    json: Option<BufWriter<StdoutLock<'static>>>,
    presenter: &'a Presenter<'a>,
    times: Vec<Duration>,
    hits: u64,
}

impl QueryLog<'_> {
    /// Answers all queries.
    pub fn answer(&self) -> Result<(), Failure> {
        let is_stdout = self.run == Some(Path::new("-"));
        if self.run.is_none() && !self.json {
            return Err(Failure::new("--queries needs --run OUT for a TREC run, or --json for lines of JSON"));
        }
        if is_stdout && self.json {
            return Err(Failure::new("the run and the JSON cannot both go to standard output; give --run a file"));
        }
        let topics = self.topics()?;
        let unit = self.presenter.model.score(1);
        let run = match self.run {
            Some(path) => Some(RunWriter::new(Output::create(path)?, self.tag, unit)?),
            None => None,
        };
        let json = self.json.then(stdout);
        let mut sinks = Sinks { run, json, presenter: &self.presenter, times: Vec::new(), hits: 0 };
        let start = Instant::now();
        match self.is_batch {
            true => self.answer_batch(&topics, &mut sinks)?,
            false => self.answer_topics(&topics, &mut sinks)?,
        }
        let (times, hits) = sinks.finish()?;
        let summary = match self.is_batch {
            true => batch_summary(topics.len(), hits, start.elapsed()),
            false => summary(times, hits, start.elapsed(), self.threads),
        };
        match (is_stdout || self.json, self.quiet) {
            (_, true) => {}
            (true, false) => tell(&summary),
            (false, false) => writeln!(io::stdout(), "{summary}")?,
        }
        Ok(())
    }

    fn topics(&self) -> Result<Vec<Topic>, Failure> {
        let topics = match self.queries == Path::new("-") {
            true => Topics::read(Path::new("stdin"), io::stdin().lock(), self.format)?,
            false => Topics::open(self.queries, self.format)?,
        };
        Ok(topics.topics)
    }

    /// Answers all topics together: each has its answer when the last one has.
    fn answer_batch(&self, topics: &[Topic], sinks: &mut Sinks<'_>) -> Result<(), Failure> {
        let searcher: &Searcher = self.presenter.searcher;
        let queries = topics.iter().map(|topic| self.options.query(&topic.text)).collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let answers = searcher.search_batch(&queries, self.threads).map_err(|error| match error {
            SearchError::Query { number, error } => named(&topics[number - 1], error.into()),
            error => error.into(),
        })?;
        let time = start.elapsed();
        for ((topic, query), answer) in topics.iter().zip(&queries).zip(answers) {
            let ids = searcher.ids(&answer.hits)?;
            sinks.write(&topic.id, query, &Answered { answer, time }, &ids)?;
        }
        Ok(())
    }

    fn answer_topics(&self, topics: &[Topic], sinks: &mut Sinks<'_>) -> Result<(), Failure> {
        let meter = Meter::new(self.quiet);
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(topics.len()) {
                let (sender, next, is_over) = (sender.clone(), &next, &is_over);
                scope.spawn(move || self.work(topics, next, is_over, &sender));
            }
            drop(sender);
            // Answers that came before those of earlier queries.
            let mut waiting = BTreeMap::new();
            let mut written = 0;
            for Finished { place, result } in receiver {
                waiting.insert(place, result);
                while let Some(result) = waiting.remove(&written) {
                    let topic: &Topic = &topics[written];
                    let taken = result
                        .map_err(|failure| named(topic, failure))
                        .and_then(|(query, answered, ids)| sinks.write(&topic.id, &query, &answered, &ids));
                    if taken.is_err() {
                        is_over.store(true, Ordering::Relaxed);
                        return taken;
                    }
                    written += 1;
                    meter.answered(written as u64, topics.len() as u64);
                }
            }
            Ok(())
        })
    }

    fn work(&self, topics: &[Topic], next: &AtomicUsize, is_over: &AtomicBool, sender: &Sender<Finished>) {
        while !is_over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(topic) = topics.get(place) else {
                return;
            };
            let result = self.answer_topic(topic);
            if sender.send(Finished { place, result }).is_err() {
                return;
            }
        }
    }

    fn answer_topic(&self, topic: &Topic) -> Result<(Query, Answered, Ids), Failure> {
        let searcher: &Searcher = self.presenter.searcher;
        let query = self.options.query(&topic.text)?;
        let answered = answer(searcher, &query)?;
        let ids = searcher.ids(&answered.answer.hits)?;
        Ok((query, answered, ids))
    }
}

/// A failure with the query it is about.
fn named(topic: &Topic, failure: Failure) -> Failure {
    match failure {
        Failure::Message(message) => Failure::new(format!("query {}: {message}", topic.id)),
        Failure::ClosedPipe => Failure::ClosedPipe,
    }
}

impl Sinks<'_> {
    fn write(&mut self, id: &str, query: &Query, answered: &Answered, ids: &Ids) -> Result<(), Failure> {
        if let Some(run) = &mut self.run {
            let hits = answered.answer.hits.iter().zip(ids.iter());
            run.write_query(id, hits.map(|(hit, document)| RunHit { document, units: hit.units }))?;
        }
        if let Some(json) = &mut self.json {
            self.presenter.write_log_line(id, query, answered, ids, json)?;
        }
        self.times.push(answered.time);
        self.hits += ids.len() as u64;
        Ok(())
    }

    /// Makes the output whole and returns the times and the number of hits.
    fn finish(self) -> Result<(Vec<Duration>, u64), Failure> {
        if let Some(run) = self.run {
            run.finish()?.finish()?;
        }
        if let Some(mut json) = self.json {
            json.flush()?;
        }
        Ok((self.times, self.hits))
    }
}

fn summary(mut times: Vec<Duration>, hits: u64, wall: Duration, threads: usize) -> String {
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / times.len().max(1) as u32;
    let [p50, p95, p99] = [50, 95, 99].map(|percent| duration(percentile(&times, percent)));
    format!(
        "{} queries, {} hits in {} on {} ({}/s)\ntime a query: mean {}, p50 {p50}, p95 {p95}, p99 {p99}",
        count(times.len() as u64),
        count(hits),
        duration(wall),
        crate::quantity::counted(threads as u64, "thread"),
        rate(times.len(), wall),
        duration(mean),
    )
}

/// No query of a batch has a time of its own.
fn batch_summary(queries: usize, hits: u64, wall: Duration) -> String {
    let (time, rate) = (duration(wall), rate(queries, wall));
    format!("{} queries, {} hits in {time} as one batch ({rate}/s)", count(queries as u64), count(hits))
}

fn rate(queries: usize, wall: Duration) -> String {
    count((queries as f64 / wall.as_secs_f64().max(1e-9)) as u64)
}

/// The least of the sorted times that so many percent do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let found = [1, 50, 95, 99, 100].map(|percent| percentile(&times, percent).as_millis());
        assert_eq!(found, [2, 100, 190, 198, 200]);
        assert_eq!(percentile(&times[..1], 99).as_millis(), 1);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
