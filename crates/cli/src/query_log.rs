//! A query log, answered as a stream, and written as a TREC run or as JSON.

use crate::answer_json::{AnsweredQuery, details};
use crate::failure::Failure;
use crate::hits::{Answered, Presenter};
use crate::progress::Meter;
use crate::quantity::{bytes, count, counted, duration};
use crate::query_options::QueryOptions;
use crate::run_file::RunFile;
use crate::shown::Details;
use crate::terminal::tell;
use crate::whole_file::stdout;
use lanner::Query;
use lanner::answer::Ids;
use lanner::eval::{Topic, TopicFormat, Topics};
use lanner::internals::percentile;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    /// Whether to show no progress.
    pub quiet: bool,
}

/// A query with its answer, and the ids and details of its hits, or why it was not answered.
type Outcome = Result<(Query, Answered, Ids, Vec<Details>), Failure>;

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
        self.answer_topics(&topics, &mut sinks)?;
        let wall = start.elapsed();
        sinks.flush()?;
        let Sinks { times, hits, failed, .. } = sinks;
        let summary = summary(times, hits, wall, self.threads) + &self.on_gpu();
        match (self.run == Some(Path::new("-")) || self.json, self.quiet) {
            (_, true) => {}
            (true, false) => summary.lines().for_each(tell),
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

    /// Answers the topics as a stream, and writes the answers in their order.
    fn answer_topics(&self, topics: &[Topic], sinks: &mut Sinks<'_>) -> Result<(), Failure> {
        let (meter, engine) = (Meter::new(self.quiet), self.presenter.searcher.engine());
        let queries = topics.iter().map(|topic| self.options.query(&topic.text)).collect::<Result<Vec<_>, _>>()?;
        let (index, shown, offset) =
            (Arc::clone(engine.index()), self.presenter.shown.clone(), self.options.offset as usize);
        let outcomes = engine.stream_map(queries, move |query, answer| -> Outcome {
            let answer = answer?;
            let time = answer.trace.total();
            let answered = Answered::new(answer, offset, time);
            let ids = index.ids(answered.answer.hits.iter().map(|hit| hit.document))?;
            let details = details(&index, &query, &answered, &shown)?;
            Ok((query, answered, ids, details))
        });
        for ((topic, outcome), written) in topics.iter().zip(outcomes).zip(1..) {
            sinks.write(topic, outcome)?;
            meter.answered(written, topics.len() as u64);
        }
        Ok(())
    }

    /// What the GPU did, if it did anything.
    fn on_gpu(&self) -> String {
        let engine = self.presenter.searcher.engine();
        let Some(ready) = engine.counters().and_then(|counters| counters.opened_after()) else {
            return String::new();
        };
        let by_gpu = engine.counters().map_or(0, |counters| counters.answered.load(Ordering::Relaxed));
        let (gpu, cpu) = (count(by_gpu), count(engine.answered_by_cpu()));
        let line = format!("\nGPU ready after {}; it answered {gpu} queries, the CPU {cpu}", duration(ready));
        line + &self.of_lists(by_gpu)
    }

    /// How much of what was read lay in device memory, if not all of it.
    fn of_lists(&self, answered: u64) -> String {
        let report = self.presenter.searcher.engine().residency();
        let Some(report) = report.filter(|report| answered > 0 && report.cache.hits + report.cache.misses > 0) else {
            return String::new();
        };
        let (hits, host) = (100.0 * report.cache.hit_rate(), report.cache.bytes_across_bus / answered as f64);
        let [resident, all] = [report.resident_bytes, report.list_bytes].map(bytes);
        format!(
            "\n{resident} of {all} of lists on the GPU; {hits:.1}% of the pieces that were read were there, about {} a \
             query came from host memory; {} pieces evicted",
            bytes(host as u64),
            count(report.cache.evictions)
        )
    }
}

impl Sinks<'_> {
    /// Writes the answer to a query, or its error: as an object in the JSON, as a line on standard error for the run.
    fn write(&mut self, topic: &Topic, outcome: Outcome) -> Result<(), Failure> {
        let (query, answered, ids, details) = match outcome {
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
            run.write(&topic.id, &answered, &ids)?;
        }
        if let Some(json) = &mut self.json {
            let (id, details) = (Some(topic.id.as_str()), &details[..]);
            self.presenter
                .write_json_of(AnsweredQuery { id, query: &query, answered: &answered, ids: &ids, details }, json)?;
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

fn rate(queries: usize, wall: Duration) -> String {
    count((queries as f64 / wall.as_secs_f64().max(1e-9)) as u64)
}
