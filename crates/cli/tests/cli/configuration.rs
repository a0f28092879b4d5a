//! Defaults from a file and from the environment, and who wins.

use crate::program::{Outcome, Place, birds};

/// The number of hits for a word that five documents have, as `k` limits it.
fn hits(place: &Place, line: &str, variables: &[(&str, &str)]) -> usize {
    let mut command = place.command(line);
    command.envs(variables.iter().copied());
    let answer = Outcome::of(command.output().unwrap()).json();
    answer["hits"].as_array().unwrap().len()
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let place = birds();
    let search = "search --index birds --json hunt country";
    assert_eq!(hits(&place, search, &[]), 4);
    place.write("configuration/lanner.toml", "k = 3\n");
    assert_eq!(hits(&place, search, &[]), 3);
    assert_eq!(hits(&place, search, &[("LANNER_K", "2")]), 2);
    assert_eq!(hits(&place, search, &[("LANNER_K", "")]), 3, "an empty variable counts as unset");
    assert_eq!(hits(&place, &format!("{search} -k 1"), &[("LANNER_K", "2")]), 1);
    place.write("other.toml", "k = 1\n");
    assert_eq!(hits(&place, &format!("{search} --config other.toml"), &[]), 1);
    assert_eq!(hits(&place, &format!("--config other.toml {search}"), &[]), 1);
}

#[test]
fn the_file_lies_in_the_configuration_folder_of_the_user() {
    let place = birds();
    place.write("home/.config/lanner/lanner.toml", "k = 3\n");
    place.write("xdg/lanner/lanner.toml", "k = 2\n");
    let search = |variables: &[(&str, &str)]| {
        let mut command = place.command("search --index birds --json hunt country");
        command.env_remove("LANNER_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", place.path("home"));
        for (name, path) in variables {
            command.env(name, place.path(path));
        }
        Outcome::of(command.output().unwrap()).json()["hits"].as_array().unwrap().len()
    };
    if cfg!(target_os = "linux") {
        assert_eq!(search(&[]), 3);
        assert_eq!(search(&[("XDG_CONFIG_HOME", "xdg")]), 2);
    }
    place.write("own/lanner.toml", "k = 1\n");
    assert_eq!(search(&[("XDG_CONFIG_HOME", "xdg"), ("LANNER_CONFIG", "own")]), 1);
}

#[test]
fn every_kind_of_option_can_have_a_default() {
    let place = birds();
    let text = "index = \"birds\"\nmode = \"and\"\nexecutor = [\"cpu\"]\npolicy = \"auto\"\nthreads = 1\nquiet = true\n\
                analyzer = \"simple\"\nmemory = \"64MiB\"\nb = 0.5\n";
    place.write("configuration/lanner.toml", text);
    let answer = place.run("search --json hunt country").json();
    assert_eq!((&answer["mode"], answer["hits"].as_array().unwrap().len()), (&"and".into(), 3));
    assert_eq!(place.run("index --input birds.jsonl --index other").succeeded(), "", "quiet");
    let manifest = &place.run("stats --index other --json").json()["manifest"];
    assert_eq!((&manifest["bm25"]["b"], &manifest["chain"]), (&0.5.into(), &"words+lowercase".into()), "{manifest}");
    assert_eq!(place.run("stats --json").json()["documents"], 5, "options of a search do not disturb other commands");
    let error = place.run("index --input birds.jsonl").usage_error();
    assert!(error.contains("--index <DIR>"), "what a build replaces is always named: {error}");
}

#[test]
fn defaults_for_a_gpu_do_not_disturb_a_search_on_the_cpu() {
    let place = birds();
    place.write("configuration/lanner.toml", "gpu-memory = \"1GiB\"\npolicy = \"gpu\"\nexecutor = \"gpu\"\n");
    assert_eq!(hits(&place, "search --index birds --json --executor cpu hunt", &[]), 4);
}

#[test]
fn what_is_wrong_with_the_configuration_is_named_with_its_place() {
    let place = birds();
    let path = place.write("configuration/lanner.toml", "k = 3\n\nthread = 4\n");
    let error = place.run("search --index birds hunt").error();
    let start = format!("{}:3: unknown key \"thread\"; the keys are index, threads, quiet, ", path.display());
    assert!(error.starts_with(&start), "{error}");
    place.write("configuration/lanner.toml", "mode = \"sideways\"\n");
    let error = place.run("search --index birds hunt").error();
    assert!(
        error.starts_with(&format!("{}:1: invalid value 'sideways' for '--mode <MODE>'", path.display())),
        "{error}"
    );
    assert_eq!(place.run("search --index birds --mode or hunt").error(), error, "also if a flag wins");
    place.run("verify --index birds").succeeded();
    place.write("configuration/lanner.toml", "");
    let output = place.command("search --index birds hunt").env("LANNER_K", "many").output().unwrap();
    let error = Outcome::of(output).error();
    assert!(error.starts_with("LANNER_K: invalid value 'many' for '--k <N>'"), "{error}");
    let error = place.run("search --config none.toml --index birds hunt").error();
    assert_eq!(error, "none.toml: No such file or directory (os error 2); name a file that can be read with --config");
}
