//! The answer to a plan: the hits, the work done and where each step ran.

use super::score::ScoreModel;
use lanner_index::DocId;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// The answer to a query. Executors answer with [`Scored`] documents; `Engine` makes hits of them.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<H = Hit> {
    /// The best k documents, best first.
    pub hits: Vec<H>,
    /// Whether the answer is exact. It is unless the query had a budget that was too small, or its deadline passed.
    pub exact: bool,
    /// The share of the documents that was searched: 1 unless a deadline passed.
    pub coverage: f32,
    /// The work done.
    pub work: Work,
    /// Which steps ran where, and for how long.
    pub trace: Trace,
}

/// A document that answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The document. Its number belongs to this build of the index; [`Searcher::ids`](crate::Searcher::ids) gives the
    /// external id.
    pub document: DocId,
    /// The score as the integer that was computed and that decides the ranking; 65,536 units make 1.0, and units of
    /// impacts are whole.
    pub units: u32,
    /// The same score as a number.
    pub score: f32,
}

/// A hit as executors return it, without its score as a number: that is two thirds of the bytes, which shows in batches
/// with a large k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scored {
    /// The document.
    pub document: DocId,
    /// Its score in units.
    pub units: u32,
}

impl Hit {
    /// Makes hits of scored documents, with the scores of a model.
    pub(crate) fn maker(model: ScoreModel) -> impl Fn(Scored) -> Hit {
        let unit = model.unit();
        move |Scored { document, units }| Hit { document, units, score: units as f32 * unit }
    }
}

impl From<Hit> for Scored {
    fn from(Hit { document, units, .. }: Hit) -> Scored {
        Scored { document, units }
    }
}

impl Answer<Scored> {
    /// The answer with other hits.
    pub fn map<H>(self, hit: impl Fn(Scored) -> H) -> Answer<H> {
        let Answer { hits, exact, coverage, work, trace } = self;
        Answer { hits: hits.into_iter().map(hit).collect(), exact, coverage, work, trace }
    }

    /// The answer with the scores of a model.
    pub fn into_hits(self, model: ScoreModel) -> Answer {
        self.map(Hit::maker(model))
    }
}

impl<H> Default for Answer<H> {
    /// An exact answer without hits.
    fn default() -> Answer<H> {
        Answer { hits: Vec::new(), exact: true, coverage: 1.0, work: Work::default(), trace: Trace::default() }
    }
}

/// Work done for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Postings whose documents were decoded.
    pub postings_decoded: u64,
    /// Blocks whose documents were decoded.
    pub blocks_decoded: u64,
    /// Blocks of the lists, within the plan's documents, that were never decoded.
    pub blocks_skipped: u64,
    /// Documents whose whole score was computed.
    pub documents_scored: u64,
    /// Bytes sent to a device.
    pub bytes_uploaded: u64,
    /// Bytes of lists that a GPU was predicted to read in host memory, because they were not resident.
    pub bytes_from_host: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.postings_decoded += other.postings_decoded;
        self.blocks_decoded += other.blocks_decoded;
        self.blocks_skipped += other.blocks_skipped;
        self.documents_scored += other.documents_scored;
        self.bytes_uploaded += other.bytes_uploaded;
        self.bytes_from_host += other.bytes_from_host;
    }
}

/// The steps that led to an answer, in order. Between the end of a step and the start of the next, the query waited.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// When the engine got the query; `None` if it was asked for a plan.
    pub arrived: Option<Instant>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step of a trace.
#[derive(Clone, Debug)]
pub struct Step {
    /// What ran.
    pub name: &'static str,
    /// Where.
    pub place: Place,
    /// When it began. Of the launches of a batch only the durations are known, and that the last one ended when the
    /// batch was answered.
    pub started: Instant,
    /// For how long.
    pub duration: Duration,
}

impl Trace {
    /// The steps with the time from the arrival of the query to the start of each.
    pub fn timeline(&self) -> impl Iterator<Item = (Duration, &Step)> {
        let arrived = self.arrived.or_else(|| self.steps.first().map(|step| step.started));
        self.steps.iter().map(move |step| (arrived.map_or(Duration::ZERO, |at| step.started.duration_since(at)), step))
    }

    /// The time from the arrival of the query to the end of the last step.
    pub fn total(&self) -> Duration {
        self.timeline().map(|(start, step)| start + step.duration).max().unwrap_or_default()
    }
}

impl Serialize for Trace {
    /// Times are in microseconds; `start` counts from the arrival of the query.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct StepLine {
            name: &'static str,
            place: Place,
            start: f64,
            microseconds: f64,
        }
        let microseconds = |time: Duration| time.as_nanos() as f64 / 1000.0;
        serializer.collect_seq(self.timeline().map(|(start, step)| StepLine {
            name: step.name,
            place: step.place,
            start: microseconds(start),
            microseconds: microseconds(step.duration),
        }))
    }
}

/// Where a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The CPU.
    Cpu,
    /// The GPU.
    Gpu,
    /// The simulator, which runs kernels of the GPU on the CPU.
    Simulator,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Cpu => "cpu",
            Place::Gpu => "gpu",
            Place::Simulator => "simulator",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_as_json_with_times_in_microseconds() {
        let arrived = Instant::now();
        let (started, duration) = (arrived + Duration::from_micros(2), Duration::from_nanos(1500));
        let step = Step { name: "maxscore", place: Place::Cpu, started, duration };
        let hits = vec![Scored { document: DocId(3), units: 98_304 }];
        let trace = Trace { arrived: Some(arrived), steps: vec![step] };
        assert_eq!(trace.total(), Duration::from_nanos(3500));
        let answer = Answer { hits, trace, ..Answer::default() };
        let json = serde_json::to_string(&answer.into_hits(ScoreModel::Bm25)).unwrap();
        let expected = "{\"hits\":[{\"document\":3,\"units\":98304,\"score\":1.5}],\"exact\":true,\"coverage\":1.0,\
                        \"work\":{\"postings_decoded\":0,\
                        \"blocks_decoded\":0,\"blocks_skipped\":0,\"documents_scored\":0,\"bytes_uploaded\":0,\"bytes_from_host\":0},\
                        \"trace\":[{\"name\":\"maxscore\",\"place\":\"cpu\",\"start\":2.0,\"microseconds\":1.5}]}";
        assert_eq!(json, expected);
        let impact = Answer { hits: vec![Scored { document: DocId(3), units: 7 }], ..Answer::default() };
        assert_eq!(impact.into_hits(ScoreModel::Impact).hits, [Hit { document: DocId(3), units: 7, score: 7.0 }]);
    }
}
