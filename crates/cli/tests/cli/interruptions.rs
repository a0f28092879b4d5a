//! Builds killed at any moment: the old or the new index is there, whole, and the next build tidies up.

use crate::program::{Place, verified};
use crate::texts::{Numbers, documents};
use std::time::{Duration, Instant};

const KILLS: u32 = 50;

#[test]
fn a_build_killed_at_any_of_fifty_moments_leaves_the_old_or_the_new_index() {
    let place = Place::new();
    place.write("in.jsonl", documents(4_000, 60, 50_000, 9));
    let line = "index --input in.jsonl --index i --quiet --memory 32MiB";
    let timed = || {
        let start = Instant::now();
        place.run(line).succeeded();
        start.elapsed()
    };
    let build_time = timed().min(timed());
    let mut numbers = Numbers::new(2024);
    let (mut old, mut generation) = (0, 2);
    for kill in 0..KILLS {
        // Spread over the whole build and a little more, each somewhere in its share.
        let share = (f64::from(kill) + numbers.share()) / f64::from(KILLS);
        let mut child = place.command(line).spawn().unwrap();
        std::thread::sleep(build_time.mul_f64(share * 1.1));
        child.kill().unwrap();
        child.wait().unwrap();
        let (documents, found) = verified(&place.path("i"));
        assert_eq!(documents, 4_000);
        assert!(found == generation || found == generation + 1, "generation {found} after {generation}");
        old += u32::from(found == generation);
        generation = found;
    }
    assert!(old >= KILLS / 4, "only {old} of {KILLS} kills came before the build was over: {build_time:?}");
    place.run(line).succeeded();
    let names = [format!("manifest-{:08}", generation + 1), format!("segment-{:08}", generation + 1)];
    assert_eq!(place.names("i"), ["lock", &names[0], &names[1]], "the next build has removed all that was left");
}

#[test]
fn a_log_that_is_killed_leaves_no_half_run() {
    let place = Place::new();
    place.write("in.jsonl", documents(4_000, 60, 500, 9));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    place.write("queries", "bake ti lo mu ra\n".repeat(20_000));
    let mut child = place.command("search --index i --queries queries --run run -k 100 --quiet").spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let size = || std::fs::metadata(place.path("run.partial")).map_or(0, |metadata| metadata.len());
    while size() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path("run").exists(), "the run was killed before its end");
    assert!(place.path("run.partial").exists());
    place.write("queries", "bake\n");
    place.run("search --index i --queries queries --run run -k 1 --quiet").succeeded();
    assert!(place.path("run").exists() && !place.path("run.partial").exists());
}
