//! A peer in its own process. Requests and replies are lines of JSON, as described in `peers/protocol.py`.

use crate::error::{BenchError, Result};
use lanner::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running peer.
pub struct Peer {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    about: About,
}

/// What a peer reports once its index is open.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct About {
    pub version: String,
    pub list_bytes: u64,
    /// Bytes of the score bounds, which are stored outside of the lists.
    #[serde(default)]
    pub bound_bytes: u64,
    /// The algorithms of each mode; empty for a mode that is not supported.
    pub algorithms: BTreeMap<String, Vec<String>>,
}

/// Queries for a peer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Request<'a> {
    pub mode: Mode,
    pub k: usize,
    /// Whether times include looking up external ids, if the peer can do without.
    pub ids: bool,
    /// One of the peer's algorithms for the mode.
    pub algorithm: &'a str,
    /// The terms of each query.
    pub queries: &'a [&'a [String]],
}

/// A request and what to return for it.
#[derive(Serialize)]
struct Envelope<'a> {
    what: &'a str,
    #[serde(flatten)]
    request: Request<'a>,
}

/// The times of queries.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Times {
    /// Microseconds of each query.
    pub us: Vec<f64>,
    /// Number of hits of each query.
    pub rows: Vec<usize>,
}

/// The share of Python in the times of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Overhead {
    /// Microseconds of a query without terms.
    pub empty_us: f64,
    /// Microseconds to pass one hit to Python.
    pub row_us: f64,
}

#[derive(Deserialize)]
struct Answers {
    answers: Vec<Vec<(String, f64)>>,
}

#[derive(Deserialize)]
struct Failure {
    error: String,
}

impl Peer {
    /// Starts a driver, and waits until its index is open.
    pub fn start(name: &str, mut command: Command) -> Result<Peer> {
        let failed = |message: String| BenchError::Peer { peer: name.to_owned(), message };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("the process has no input or output".to_owned()));
        };
        let (requests, replies) = (Some(requests), BufReader::new(replies));
        let mut peer = Peer { name: name.to_owned(), child, requests, replies, about: About::default() };
        peer.about = peer.reply()?;
        Ok(peer)
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    /// The algorithms for a mode.
    pub fn algorithms(&self, mode: Mode) -> &[String] {
        self.about.algorithms.get(&mode.to_string()).map_or(&[], Vec::as_slice)
    }

    /// Runs every query once and returns the times.
    pub fn times(&mut self, request: &Request<'_>) -> Result<Times> {
        let times: Times = self.ask(&Envelope { what: "times", request: *request })?;
        if times.us.len() == request.queries.len() && times.rows.len() == request.queries.len() {
            Ok(times)
        } else {
            Err(self.failed(format!("{} times for {} queries", times.us.len(), request.queries.len())))
        }
    }

    /// Returns the external ids and scores of the hits of each query, best first.
    pub fn answers(&mut self, request: &Request<'_>) -> Result<Vec<Vec<(String, f64)>>> {
        Ok(self.ask::<Answers>(&Envelope { what: "answers", request: *request })?.answers)
    }

    /// Measures what to subtract from the times.
    pub fn overhead(&mut self, k: usize) -> Result<Overhead> {
        self.ask(&serde_json::json!({ "what": "overhead", "k": k }))
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<T> {
        let mut line = serde_json::to_string(request).expect("a request is plain data");
        line.push('\n');
        let requests = self.requests.as_mut().expect("the input is open until the peer is dropped");
        let written = requests.write_all(line.as_bytes());
        written.map_err(|error| self.failed(error.to_string()))?;
        self.reply()
    }

    fn reply<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        let read = self.replies.read_line(&mut line).map_err(|error| self.failed(error.to_string()))?;
        if read == 0 {
            return Err(self.failed("the process ended without a reply".to_owned()));
        }
        if let Ok(Failure { error }) = serde_json::from_str(&line) {
            return Err(self.failed(error));
        }
        serde_json::from_str(&line).map_err(|error| self.failed(format!("not a reply: {error}")))
    }

    fn failed(&self, message: String) -> BenchError {
        BenchError::Peer { peer: self.name.clone(), message }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process exits when its input is closed; its status does not matter.
        self.requests = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that prints these lines, one at the start and one for each request.
    fn fake(lines: &[&str]) -> Result<Peer> {
        let [first, others @ ..] = lines else { unreachable!("there is at least one line") };
        let others = others.iter().map(|line| format!("read request && echo '{line}'"));
        let script = [vec![format!("echo '{first}'")], others.collect()].concat().join("\n");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        Peer::start("fake", command)
    }

    const ABOUT: &str = r#"{"version": "1.0", "list_bytes": 12, "algorithms": {"or": ["wand"]}}"#;

    #[test]
    fn a_peer_describes_itself_and_answers_requests() {
        let times = r#"{"us": [1.5, 2.5], "rows": [1, 0]}"#;
        let answers = r#"{"answers": [[["d1", 2.0]], []]}"#;
        let mut peer = fake(&[ABOUT, times, answers, r#"{"empty_us": 1.0, "row_us": 0.25}"#]).unwrap();
        assert_eq!((peer.about().list_bytes, peer.algorithms(Mode::Or)), (12, &["wand".to_owned()][..]));
        assert!(peer.algorithms(Mode::And).is_empty());
        let terms = [vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]];
        let queries: Vec<&[String]> = terms.iter().map(Vec::as_slice).collect();
        let request = Request { mode: Mode::Or, k: 10, ids: true, algorithm: "wand", queries: &queries };
        assert_eq!(peer.times(&request).unwrap(), Times { us: vec![1.5, 2.5], rows: vec![1, 0] });
        assert_eq!(peer.answers(&request).unwrap(), [vec![("d1".to_owned(), 2.0)], vec![]]);
        assert_eq!(peer.overhead(10).unwrap(), Overhead { empty_us: 1.0, row_us: 0.25 });
        let ended = peer.overhead(10).unwrap_err().to_string();
        assert!(ended.starts_with("fake: "), "{ended}");
    }

    #[test]
    fn a_request_is_one_line_of_json() {
        let terms = ["a".to_owned()];
        let request = Request { mode: Mode::And, k: 3, ids: false, algorithm: "ranked_and", queries: &[&terms] };
        let line = serde_json::to_string(&Envelope { what: "times", request }).unwrap();
        assert_eq!(
            line,
            r#"{"what":"times","mode":"and","k":3,"ids":false,"algorithm":"ranked_and","queries":[["a"]]}"#
        );
    }

    #[test]
    fn a_failing_peer_gives_its_reason() {
        let error = fake(&[r#"{"error": "no such file"}"#]).err().unwrap().to_string();
        assert_eq!(error, "fake: no such file");
        let mut peer = fake(&[ABOUT, r#"{"us": [], "rows": []}"#]).unwrap();
        let terms = ["a".to_owned()];
        let request = Request { mode: Mode::Or, k: 3, ids: true, algorithm: "wand", queries: &[&terms] };
        assert_eq!(peer.times(&request).unwrap_err().to_string(), "fake: 0 times for 1 queries");
    }
}
