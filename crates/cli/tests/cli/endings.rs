//! Signals, and limits of the system: one line, an exit status that says which, the old index, and nothing unfinished.
#![cfg(target_os = "linux")]

use crate::program::{Outcome, Place, birds, verified};
use crate::texts::documents;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a folder with the index of the birds holds, and nothing else.
const BIRDS_INDEX: [&str; 3] = ["lock", "manifest-00000001", "segment-00000001"];

/// Waits until a condition holds, and fails after some seconds.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signalled(child: Child, signal: &str) -> Outcome {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    Outcome::of(child.wait_with_output().unwrap())
}

fn piped(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_build_that_is_interrupted_removes_its_files_and_keeps_the_old_index() {
    let place = birds();
    for (signal, status, what) in [("-INT", 130, "interrupted"), ("-TERM", 143, "terminated")] {
        let mut child = piped(place.command("index --input - --format tsv --index birds"));
        // Its input never ends.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"a\tone\n").unwrap();
        wait_until("the build has begun", || place.path("birds/building").exists());
        let outcome = signalled(child, signal);
        drop(input);
        let line = format!("error: {what}; what was unfinished is removed\n");
        assert_eq!((outcome.status, outcome.stderr), (Some(status), line));
        assert_eq!(place.names("birds"), BIRDS_INDEX);
        assert_eq!(verified(&place.path("birds")), (5, 1));
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_no_file() {
    let place = birds();
    place.write("queries", "falcons hunt over open country\n".repeat(200_000));
    let child = piped(place.command("search --index birds --queries queries --run run --quiet"));
    wait_until("the run has begun", || place.path("run.partial").exists());
    let outcome = signalled(child, "-TERM");
    let line = "error: terminated; what was unfinished is removed\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(143), line));
    assert_eq!(place.names("."), ["birds", "birds.jsonl", "queries"]);
}

#[test]
fn a_search_that_waits_for_queries_can_be_interrupted() {
    let place = birds();
    let mut child = piped(place.command("search --index birds --json"));
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"falcon\n").unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let outcome = signalled(child, "-INT");
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(130), "error: interrupted\n"));
}

#[test]
fn a_signal_that_the_parent_ignores_stays_ignored() {
    let place = birds();
    // The shell waits for the answer, so that the signal cannot come too early.
    let line = "trap '' INT; mkfifo in out; \"$LANNER\" search --index birds -k 1 --json <in >out & exec 3>in 4<out; \
                echo falcon >&3; read first <&4; kill -INT $!; echo heron >&3; read second <&4; echo \"$second\"";
    let answer = place.shell(line).json();
    assert_eq!(answer["hits"][0]["id"], "heron");
}

#[test]
fn memory_that_the_system_refuses_is_an_error() {
    let place = birds();
    // One document of 48 MB takes more than twice that.
    place.write("in.jsonl", format!("{{\"id\":\"a\",\"text\":\"{}\"}}\n", "falcon owl ".repeat(4_400_000)));
    let index = "exec \"$LANNER\" index --input in.jsonl --index birds --quiet --threads 1";
    let error = place.shell(&format!("ulimit -v 150000; {index}")).error();
    assert!(error.starts_with("out of memory: the system refused "), "{error}");
    assert!(error.ends_with("a smaller --memory, fewer --threads"), "{error}");
    assert_eq!(place.names("birds"), BIRDS_INDEX);
    assert_eq!(verified(&place.path("birds")), (5, 1));
}

#[test]
fn any_limit_of_memory_gives_an_index_or_an_error() {
    let place = birds();
    place.write("in.jsonl", documents(8_000, 60, 50_000, 9));
    for kibibytes in [40_000, 45_000, 50_000, 55_000, 60_000, 70_000, 80_000, 90_000] {
        let index = "exec \"$LANNER\" index --input in.jsonl --index birds --quiet --threads 2 --memory 64MiB";
        let before = verified(&place.path("birds"));
        let outcome = place.shell(&format!("ulimit -v {kibibytes}; {index}"));
        let after = match outcome.status {
            Some(0) => (8_000, before.1 + 1),
            // The program itself could not be loaded.
            Some(127) => before,
            _ => {
                let error = outcome.error();
                assert!(error.contains("memory") || error.contains("thread"), "{kibibytes} KiB: {error}");
                before
            }
        };
        assert_eq!(verified(&place.path("birds")), after, "{kibibytes} KiB");
        assert_eq!(place.names("birds").len(), BIRDS_INDEX.len(), "{kibibytes} KiB");
    }
}

/// Runs the program where it cannot start a single thread. The limit does not bind the superuser, who becomes somebody else.
fn without_threads(place: &Place, arguments: &str) -> Outcome {
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    let user = "test $(id -u) = 0 && user='setpriv --reuid=54321 --clear-groups'";
    place.shell(&format!(
        "cp \"$LANNER\" program; chmod -R a+rwX .; {user}; exec prlimit --nproc=1 $user ./program {arguments}"
    ))
}

#[test]
fn threads_that_cannot_be_started_are_an_error_of_a_build() {
    let place = birds();
    let error = without_threads(&place, "index --input birds.jsonl --index birds --quiet --threads 2").error();
    assert!(error.starts_with("a thread of the build cannot be started: "), "{error}");
    assert!(error.ends_with("; the option is --threads 1"), "{error}");
    assert_eq!(place.names("birds"), BIRDS_INDEX);
    assert_eq!(verified(&place.path("birds")), (5, 1));
    without_threads(&place, "index --input birds.jsonl --index birds --quiet --threads 1").succeeded();
}

#[test]
fn a_search_makes_do_with_the_threads_that_there_are() {
    let place = birds();
    place.write("queries", "falcon\nheron\nowl\n".repeat(1_000));
    let log = "search --index birds --queries queries --run - --quiet --threads 4";
    assert_eq!(without_threads(&place, log).succeeded(), place.run(log).succeeded());
    let one = "search --index birds --run - falcon";
    assert_eq!(without_threads(&place, one).succeeded(), place.run(one).succeeded());
}
