//! Whole logs of queries: runs that evaluation tools read as we mean them.

use crate::golden::assert_golden;
use crate::program::Place;
use crate::texts::documents;

fn place() -> Place {
    let place = Place::new();
    place.write("in.jsonl", documents(3000, 30, 200, 11));
    place.run("index --input in.jsonl --index i --quiet").succeeded();
    place.write("queries.tsv", "q1\tbake ti\nq2\tzzzz\nq3\tlo\nq4\t\n");
    place
}

#[test]
fn a_run_has_strictly_decreasing_scores_and_exact_hits_whatever_the_threads() {
    let place = place();
    let search = "search --index i --queries queries.tsv -k 1000";
    let summary = place.run(&format!("{search} --run run1 --threads 1 --tag mine")).succeeded();
    assert_golden("log", &summary);
    place.run(&format!("{search} --run run3 --threads 3 --tag mine --quiet")).succeeded();
    let run = std::fs::read_to_string(place.path("run1")).unwrap();
    assert_eq!(run, std::fs::read_to_string(place.path("run3")).unwrap());
    assert_eq!(run, place.run(&format!("{search} --run - --tag mine")).succeeded());
    let rows: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    let json = place.run(&format!("{search} --json")).succeeded();
    let answers: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        answers.iter().map(|answer| answer["id"].as_str().unwrap()).collect::<Vec<_>>(),
        ["q1", "q2", "q3", "q4"]
    );
    let mut ties = 0;
    for answer in &answers {
        let hits = answer["hits"].as_array().unwrap();
        let of_query: Vec<_> = rows.iter().filter(|row| answer["id"] == row[0]).collect();
        assert_eq!(of_query.len(), hits.len());
        for (i, (row, hit)) in of_query.iter().zip(hits).enumerate() {
            assert_eq!((row[1], row[5], row[3].parse()), ("Q0", "mine", Ok(i + 1)));
            assert_eq!(hit["id"], row[2]);
        }
        let scores: Vec<f32> = of_query.iter().map(|row| row[4].parse().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a > b));
        ties += hits.windows(2).filter(|pair| pair[0]["units"] == pair[1]["units"]).count();
    }
    assert!(ties > 0, "the collection has ties, or this proves nothing");
}

#[test]
fn a_log_comes_in_every_format_and_from_a_pipe() {
    let place = place();
    let topics = "<top>\n<num> Number: 7\n<title> bake ti\n</top>\n<top>\n<num> 8\n<title> lo\n</top>\n";
    let files = [("a.tsv", "7\tbake ti\n8\tlo\n"), ("b.trec", topics), ("c.colon", "7:bake ti\n8:lo\n")];
    let runs = files.map(|(name, content)| {
        place.write(name, content);
        place.run(&format!("search --index i --queries {name} --run -")).succeeded()
    });
    assert!(runs[0].starts_with("7 Q0 "));
    assert!(runs.iter().all(|run| *run == runs[0]));
    let piped = place.run_with("search --index i --queries - --run - --query-format tsv", files[0].1.as_bytes());
    assert_eq!(piped.succeeded(), runs[0]);
}

#[test]
fn a_log_that_fails_leaves_no_run_and_an_old_one_as_it_was() {
    let place = place();
    place.write("run", "old");
    place.write("bad.tsv", "q1\tbake\nq2 bake\n");
    let error = place.run("search --index i --queries bad.tsv --run run").error();
    assert!(error.starts_with("bad.tsv:2: expected 'id<TAB>text'"), "{error}");
    assert_eq!(std::fs::read(place.path("run")).unwrap(), b"old");
    assert!(place.names(".").iter().all(|name| !name.ends_with(".partial")));
    let cases = [
        ("--queries queries.tsv", "--queries needs --run OUT for a TREC run, or --json for lines of JSON"),
        ("--queries queries.tsv --json --run -", "the run and the JSON cannot both go to standard output"),
        ("--queries none.tsv --run run", "none.tsv: cannot be opened: "),
        ("--queries queries.tsv --run i", "i: is a folder; name a file in it"),
        ("--queries queries.tsv --run no/where", "no/where.partial: cannot be written: "),
    ];
    for (options, expected) in cases {
        let error = place.run(&format!("search --index i {options}")).error();
        assert!(error.starts_with(expected), "{options}: {error}");
    }
}

#[test]
fn a_run_is_written_to_a_device_without_replacing_it() {
    let place = place();
    let summary = place.run("search --index i --queries queries.tsv --run /dev/null --threads 1").succeeded();
    assert!(summary.starts_with("4 queries, "), "{summary}");
}
