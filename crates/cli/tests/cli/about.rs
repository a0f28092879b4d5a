//! What the program says of itself and of the machine: versions, completions, manual pages, the doctor.

use crate::program::{Outcome, Place, birds};

const COMMANDS: [&str; 12] = [
    "index",
    "search",
    "explain",
    "eval",
    "stats",
    "verify",
    "export",
    "calibrate",
    "doctor",
    "demo",
    "completions",
    "man",
];

#[test]
fn the_version_says_how_the_program_was_built() {
    let place = Place::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(place.run("-V").succeeded(), format!("lanner {version}\n"));
    let text = place.run("--version").succeeded();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("lanner {version}"));
    let names: Vec<&str> = lines[1..].iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["commit", "profile", "target", "features"]);
    assert!(lines[3].contains(std::env::consts::ARCH), "{text}");
}

#[test]
fn every_shell_gets_completions() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&format!("completions {shell}")).succeeded();
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
        assert!(script.contains("gpu-host-memory"), "{shell}");
    }
    let error = place.run("completions basic").usage_error();
    assert!(error.contains("bash, elvish, fish, powershell, zsh"), "{error}");
}

#[test]
fn bash_loads_its_completions_and_completes_a_command() {
    let place = Place::new();
    place.write("completions", place.run("completions bash").succeeded());
    let line = "command -v bash >/dev/null || { echo verify; exit; }; bash -c '. ./completions; COMP_WORDS=(lanner ver); \
                COMP_CWORD=1; _lanner lanner ver lanner; echo \"${COMPREPLY[@]}\"'";
    assert_eq!(place.shell(line).succeeded(), "verify\n");
}

#[test]
fn there_is_a_manual_page_for_the_program_and_each_command() {
    let place = Place::new();
    assert_eq!(place.run("man --out pages").succeeded(), "");
    let mut expected: Vec<String> = COMMANDS.iter().map(|command| format!("lanner-{command}.1")).collect();
    expected.push("lanner.1".to_owned());
    expected.sort();
    assert_eq!(place.names("pages"), expected);
    let page = |name: &str| std::fs::read_to_string(place.path(&format!("pages/{name}"))).unwrap();
    assert_eq!(place.run("man").succeeded(), page("lanner.1"));
    assert_eq!(place.run("man search").succeeded(), page("lanner-search.1"));
    assert!(page("lanner-search.1").contains(".TH lanner-search 1"), "{}", page("lanner-search.1"));
    assert!(page("lanner-search.1").contains("gpu\\-memory"));
    assert_eq!(place.run("man serve").error(), "there is no command \"serve\"; 'lanner help' lists the commands");
}

#[test]
fn the_doctor_shows_the_machine_and_never_fails() {
    let place = birds();
    let text = place.run("doctor --index birds").succeeded();
    for row in ["lanner", "cpu", "driver", "gpu", "calibration", "index", "queries on", "builds on"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{row:<14}"))), "{row}: {text}");
    }
    assert!(text.contains("index         5 documents, "), "{text}");
    assert!(text.lines().count() <= 24, "one screen: {text}");
    let report = place.run("doctor --index birds --json").json();
    assert_eq!(report["index"]["documents"], 5);
    assert!(report["cpu"]["cores"].as_u64().unwrap() > 0);
    assert_eq!(report["calibrated"], serde_json::json!([]));
    place.write("configuration/costs/any.json", r#"{"device":"cpu","index":"0","documents":1,"costs":{}}"#);
    assert_eq!(place.run("doctor --json").json()["calibrated"], serde_json::json!(["cpu"]));
    assert_eq!(
        place.run("doctor --index birds --json").json()["calibrated"],
        serde_json::json!([]),
        "not for this index"
    );
}

#[test]
fn the_doctor_reports_what_would_be_errors_elsewhere() {
    let place = birds();
    let path = place.write("configuration/lanner.toml", "memory = \"much\"\n");
    let text = place.run("doctor --index none").succeeded();
    assert!(
        text.contains("configuration cannot be used\n") && text.contains("index         cannot be opened\n"),
        "{text}"
    );
    let line = format!("- {}:1: invalid value 'much' for '--memory <SIZE>'", path.display());
    assert!(text.contains(&line), "{text}");
    let mut command = place.command("doctor");
    let outcome = Outcome::of(command.env_clear().output().unwrap());
    assert!(outcome.succeeded().contains("configuration no file\n"));
}
