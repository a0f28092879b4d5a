//! A query log, answered on several threads or as one batch, and written as a TREC run or as JSON.

use crate::failure::Failure;
use crate::hits::{Answered, Presenter, answer};
use crate::progress::Meter;
use crate::quantity::{count, counted, duration};
use crate::query_options::QueryOptions;
use crate::run_file::RunFile;
use crate::terminal::tell;
use crate::whole_file::stdout;
use lanner::SearchError;
use lanner::eval::{Topic, TopicFormat, Topics};
use lanner::internals::percentile;
use lanner::{Answer, Ids, Query, Searcher};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// The queries to answer and where to write the answers.
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
    /// The tag of the run.
    pub tag: &'a str,
    /// Whether to write JSON to standard output.
    pub json: bool,
    /// The number of threads.
    pub threads: usize,
    /// Whether the executor gets all queries at once.
    pub is_batch: bool,
    /// Whether to show no progress.
    pub quiet: bool,
}

/// A query with its answer and the ids of its hits, or why it was not answered.
type Outcome = Result<(Query, Answered, Ids), Failure>;

/// Where answers go, in the order of the log.
struct Sinks<'a> {
    run: Option<RunFile>,
    json: Option<BufWriter<StdoutLock<'static>>>,
    presenter: &'a Presenter<'a>,
    /// The times of the queries that were answered.
    times: Vec<Duration>,
    hits: u64,
    failed: u64,
}

impl QueryLog<'_> {
    /// Answers all queries. A query that fails gets an error instead of an answer, and the command fails at the end.
    pub fn answer(&self) -> Result<(), Failure> {
        if self.run.is_none() && !self.json {
            return Err(Failure::new("--queries needs --run OUT for a TREC run, or --json for lines of JSON"));
        }
        let topics = self.topics()?;
        let run = self.run.map(|path| RunFile::create(path, self.tag, self.presenter.model)).transpose()?;
        let json = self.json.then(stdout);
        let mut sinks = Sinks { run, json, presenter: &self.presenter, times: Vec::new(), hits: 0, failed: 0 };
        let start = Instant::now();
        match self.is_batch {
            true => self.answer_batch(&topics, &mut sinks)?,
            false => self.answer_topics(&topics, &mut sinks)?,
        }
        let wall = start.elapsed();
        sinks.flush()?;
        let Sinks { times, hits, failed, .. } = sinks;
        let summary = match self.is_batch {
            true => batch_summary(times.len(), hits, wall),
            false => summary(times, hits, wall, self.threads),
        };
        match (self.run == Some(Path::new("-")) || self.json, self.quiet) {
            (_, true) => {}
            (true, false) => tell(&summary),
            (false, false) => writeln!(io::stdout(), "{summary}")?,
        }
        Failure::of_queries(failed, topics.len() as u64)
    }

    fn topics(&self) -> Result<Vec<Topic>, Failure> {
        let topics = match self.queries == Path::new("-") {
            true => Topics::read(Path::new("stdin"), io::stdin().lock(), self.format)?,
            false => Topics::open(self.queries, self.format)?,
        };
        if topics.invalid_lines > 0 {
            let lines = counted(topics.invalid_lines as u64, "line");
            tell(&format!("warning: {lines} of the queries not valid UTF-8; invalid bytes were replaced by U+FFFD"));
        }
        Ok(topics.topics)
    }

    /// Answers all topics together; no answer is available before the batch is complete.
    fn answer_batch(&self, topics: &[Topic], sinks: &mut Sinks<'_>) -> Result<(), Failure> {
        let searcher: &Searcher = self.presenter.searcher;
        let queries = topics.iter().map(|topic| self.options.query(&topic.text)).collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        let answers = self.search_batch(&queries)?;
        let time = start.elapsed();
        for ((topic, query), answer) in topics.iter().zip(queries).zip(answers) {
            let outcome = answer.and_then(|answer| {
                let ids = searcher.ids(&answer.hits)?;
                Ok((query, Answered { answer, time }, ids))
            });
            sinks.write(topic, outcome)?;
        }
        Ok(())
    }

    /// Answers queries as one batch, without those that cannot be planned.
    fn search_batch(&self, queries: &[Query]) -> Result<Vec<Result<Answer, Failure>>, Failure> {
        let searcher: &Searcher = self.presenter.searcher;
        match searcher.search_batch(queries, self.threads) {
            Ok(answers) => return Ok(answers.into_iter().map(Ok).collect()),
            // The batch is planned again below to find all queries like this one.
            Err(SearchError::Query { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let plans: Vec<_> = queries.iter().map(|query| searcher.plan(query)).collect();
        let good: Vec<Query> =
            queries.iter().zip(&plans).filter(|(_, plan)| plan.is_ok()).map(|(query, _)| query.clone()).collect();
        let mut answers = searcher.search_batch(&good, self.threads)?.into_iter();
        let answer_of = |plan: Result<_, _>| match plan {
            Ok(_) => Ok(answers.next().expect("a batch has an answer for each query")),
            Err(error) => Err(Failure::from(error)),
        };
        Ok(plans.into_iter().map(answer_of).collect())
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
            // Outcomes that arrived before those of earlier queries.
            let mut waiting = BTreeMap::new();
            let mut written = 0;
            for (position, outcome) in receiver {
                waiting.insert(position, outcome);
                while let Some(outcome) = waiting.remove(&written) {
                    sinks.write(&topics[written], outcome).inspect_err(|_| is_over.store(true, Ordering::Relaxed))?;
                    written += 1;
                    meter.answered(written as u64, topics.len() as u64);
                }
            }
            Ok(())
        })
    }

    /// Answers topics until none is left, and sends each outcome with its position in the log.
    fn work(&self, topics: &[Topic], next: &AtomicUsize, is_over: &AtomicBool, sender: &Sender<(usize, Outcome)>) {
        while !is_over.load(Ordering::Relaxed) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(topic) = topics.get(position) else {
                return;
            };
            if sender.send((position, self.answer_topic(topic))).is_err() {
                return;
            }
        }
    }

    fn answer_topic(&self, topic: &Topic) -> Outcome {
        let searcher: &Searcher = self.presenter.searcher;
        let query = self.options.query(&topic.text)?;
        let answered = answer(searcher, &query)?;
        let ids = searcher.ids(&answered.answer.hits)?;
        Ok((query, answered, ids))
    }
}

impl Sinks<'_> {
    /// Writes the answer to a query, or its error: as an object in the JSON, as a line on standard error for the run.
    fn write(&mut self, topic: &Topic, outcome: Outcome) -> Result<(), Failure> {
        let (query, answered, ids) = match outcome {
            Ok(answered) => answered,
            Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
            Err(Failure::Message(message)) => {
                self.failed += 1;
                if self.run.is_some() {
                    tell(&format!("error: query {}: {message}", topic.id));
                }
                return match &mut self.json {
                    Some(json) => self.presenter.write_error(Some(&topic.id), &topic.text, &message, json),
                    None => Ok(()),
                };
            }
        };
        if let Some(run) = &mut self.run {
            run.write(&topic.id, &answered.answer.hits, &ids)?;
        }
        if let Some(json) = &mut self.json {
            self.presenter.write_log_line(&topic.id, &query, &answered, &ids, json)?;
        }
        self.times.push(answered.time);
        self.hits += ids.len() as u64;
        Ok(())
    }

    /// Makes the output visible.
    fn flush(&mut self) -> Result<(), Failure> {
        if let Some(run) = self.run.take() {
            run.finish()?;
        }
        if let Some(json) = &mut self.json {
            json.flush()?;
        }
        Ok(())
    }
}

fn summary(mut times: Vec<Duration>, hits: u64, wall: Duration, threads: usize) -> String {
    times.sort_unstable();
    let mean = times.iter().sum::<Duration>() / times.len().max(1) as u32;
    let [p50, p95, p99] = [500, 950, 990].map(|per_mille| duration(percentile(&times, per_mille).unwrap_or_default()));
    format!(
        "{} queries, {} hits in {} on {} ({}/s)\ntime per query: mean {}, p50 {p50}, p95 {p95}, p99 {p99}",
        count(times.len() as u64),
        count(hits),
        duration(wall),
        counted(threads as u64, "thread"),
        rate(times.len(), wall),
        duration(mean),
    )
}

/// A batch has one time, not one for each query.
fn batch_summary(queries: usize, hits: u64, wall: Duration) -> String {
    let (time, rate) = (duration(wall), rate(queries, wall));
    format!("{} queries, {} hits in {time} as one batch ({rate}/s)", count(queries as u64), count(hits))
}

fn rate(queries: usize, wall: Duration) -> String {
    count((queries as f64 / wall.as_secs_f64().max(1e-9)) as u64)
}
