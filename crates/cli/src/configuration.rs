//! Defaults of options, from the file `lanner.toml` and from the environment: a flag wins over a variable, and a variable
//! over the file. They become default values of the arguments, so that commands know nothing of where a value came from.
//! docs/configuration.md has the table for users.

use crate::failure::Failure;
use clap::{ArgAction, ArgMatches, Command};
use lanner::internals::calibrate::configuration_folder;
use std::io;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of the file in the configuration folder.
const FILE: &str = "lanner.toml";

/// An option with a default that users may choose, and the commands that have it.
struct Key {
    name: &'static str,
    variable: &'static str,
    commands: &'static [&'static str],
}

const fn key(name: &'static str, variable: &'static str, commands: &'static [&'static str]) -> Key {
    Key { name, variable, commands }
}

const QUERYING: &[&str] = &["search", "explain"];
const BUILDING: &[&str] = &["index"];
const ON_EXECUTORS: &[&str] = &["search", "calibrate"];

// The folder that `lanner index` writes is always named: a default would replace an index by accident.
const KEYS: [Key; 21] = [
    key("index", "LANNER_INDEX", &["search", "explain", "stats", "verify", "export", "calibrate", "doctor"]),
    key("threads", "LANNER_THREADS", &["index", "search"]),
    key("quiet", "LANNER_QUIET", &["index", "search", "export", "demo"]),
    key("mode", "LANNER_MODE", QUERYING),
    key("k", "LANNER_K", QUERYING),
    key("score", "LANNER_SCORE", QUERYING),
    key("algorithm", "LANNER_ALGORITHM", QUERYING),
    key("verify", "LANNER_VERIFY", &["search"]),
    key("executor", "LANNER_EXECUTOR", ON_EXECUTORS),
    key("policy", "LANNER_POLICY", ON_EXECUTORS),
    key("gpu-memory", "LANNER_GPU_MEMORY", ON_EXECUTORS),
    key("gpu-host-memory", "LANNER_GPU_HOST_MEMORY", ON_EXECUTORS),
    key("memory", "LANNER_MEMORY", BUILDING),
    key("analyzer", "LANNER_ANALYZER", BUILDING),
    key("codec", "LANNER_CODEC", BUILDING),
    key("order", "LANNER_ORDER", BUILDING),
    key("weights", "LANNER_WEIGHTS", BUILDING),
    key("k1", "LANNER_K1", BUILDING),
    key("b", "LANNER_B", BUILDING),
    key("max-skipped", "LANNER_MAX_SKIPPED", BUILDING),
    key("measures", "LANNER_MEASURES", &["eval"]),
];

/// Keys that make no sense with executors that were named on the command line and are no GPU.
const OF_GPU: [&str; 3] = ["policy", "gpu-memory", "gpu-host-memory"];

/// The value of a key, and where it was found.
struct Setting {
    key: &'static Key,
    values: Vec<String>,
    /// A file with a line, or a variable.
    origin: String,
}

/// What the user has configured.
#[derive(Default)]
pub struct Configuration {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    settings: Vec<Setting>,
}

/// Whether a command reads the configuration.
pub fn concerns(command: &str) -> bool {
    KEYS.iter().any(|key| key.commands.contains(&command))
}

impl Configuration {
    /// Reads the environment, and the file that is named or else that of the configuration folder, if there is one.
    pub fn read(named: Option<&Path>) -> Result<Configuration, Failure> {
        let usual = || configuration_folder().map(|folder| folder.join(FILE));
        let mut configuration = Configuration::default();
        if let Some(path) = named.map(Path::to_owned).or_else(usual) {
            match std::fs::read(&path) {
                Ok(bytes) => {
                    configuration.settings = settings_of(&path, &bytes)?;
                    configuration.file = Some(path);
                }
                Err(error) if named.is_none() && is_absent(&error) => {}
                Err(error) => return Err(Failure::new(format!("{}: {error}; {}", path.display(), advice(named)))),
            }
        }
        for key in &KEYS {
            let Some(value) = std::env::var_os(key.variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let Some(value) = value.to_str() else {
                return Err(Failure::new(format!("{}: not valid UTF-8; set it to a text", key.variable)));
            };
            configuration.settings.retain(|setting| setting.key.name != key.name);
            configuration.settings.push(Setting {
                key,
                values: vec![value.to_owned()],
                origin: key.variable.to_owned(),
            });
        }
        Ok(configuration)
    }

    /// Makes the settings defaults of the command that `given` names.
    pub fn apply(&self, program: Command, given: &ArgMatches) -> Result<Command, Failure> {
        let Some((name, matches)) = given.subcommand() else {
            return Ok(program);
        };
        let Some(mut command) = program.find_subcommand(name).cloned() else {
            return Ok(program);
        };
        let without_gpu = names_no_gpu(matches);
        for setting in self.settings.iter().filter(|setting| setting.key.commands.contains(&name)) {
            if !(without_gpu && OF_GPU.contains(&setting.key.name)) {
                command = setting.apply(command)?;
            }
        }
        Ok(program.mut_subcommand(name, |_| command))
    }

    /// Tries every setting on a command that has it.
    pub fn check(&self, program: &Command) -> Result<(), Failure> {
        for setting in &self.settings {
            let commands = setting.key.commands.iter().filter_map(|name| program.find_subcommand(name));
            commands.take(1).try_for_each(|command| setting.apply(command.clone()).map(|_| ()))?;
        }
        Ok(())
    }
}

impl Setting {
    fn apply(&self, command: Command) -> Result<Command, Failure> {
        let id = self.key.name.replace('-', "_");
        let is_flag = |arg: &clap::Arg| arg.get_id().as_str() == id && matches!(arg.get_action(), ArgAction::SetTrue);
        if command.get_arguments().any(is_flag) {
            if !matches!(self.values[..], [ref value] if value == "true" || value == "false") {
                return Err(self.failure(&format!("{} is true or false", self.key.name)));
            }
        } else if let Some(problem) = self.problem(&command) {
            return Err(self.failure(&problem));
        }
        let values: Vec<String> = self.values.iter().flat_map(|value| value.split(',')).map(str::to_owned).collect();
        Ok(command.mut_arg(id, |arg| match arg.get_value_delimiter() {
            Some(_) => arg.required(false).default_values(values),
            None => arg.required(false).default_value(self.values.join(",")),
        }))
    }

    /// What the command says of the value, as if it had been given as a flag.
    fn problem(&self, command: &Command) -> Option<String> {
        use clap::error::ErrorKind::{InvalidValue, NoEquals, TooManyValues, ValueValidation, WrongNumberOfValues};
        let flag = if self.key.name.len() == 1 { "-" } else { "--" };
        let given = format!("{flag}{}={}", self.key.name, self.values.join(","));
        let error = command.clone().no_binary_name(true).try_get_matches_from([given]).err()?;
        let kinds = [InvalidValue, NoEquals, TooManyValues, ValueValidation, WrongNumberOfValues];
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        kinds.contains(&error.kind()).then(|| line.trim_start_matches("error: ").to_owned())
    }

    fn failure(&self, problem: &str) -> Failure {
        Failure::new(format!("{}: {problem}", self.origin))
    }
}

/// Whether executors were given, and none of them is a GPU.
fn names_no_gpu(matches: &ArgMatches) -> bool {
    let raw = matches.try_get_raw("executor").ok().flatten();
    raw.is_some_and(|names| names.into_iter().all(|name| name == "cpu"))
}

/// Whether there is no file where one is looked for. A home folder that is none, such as `/dev/null`, has no file either.
fn is_absent(error: &io::Error) -> bool {
    let is_chosen = std::env::var_os("LANNER_CONFIG").is_some_and(|folder| !folder.is_empty());
    error.kind() == io::ErrorKind::NotFound || (!is_chosen && error.kind() == io::ErrorKind::NotADirectory)
}

fn advice(named: Option<&Path>) -> &'static str {
    match named {
        Some(_) => "name a file that can be read with --config",
        None => "make it readable, or set LANNER_CONFIG to the folder of another lanner.toml",
    }
}

/// The settings of a file.
fn settings_of(path: &Path, bytes: &[u8]) -> Result<Vec<Setting>, Failure> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        Failure::new(format!("{}:{line}: not valid UTF-8; convert the file to UTF-8", path.display()))
    })?;
    let at = |offset: usize| format!("{}:{}", path.display(), 1 + text[..offset].matches('\n').count());
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        Failure::new(format!("{}: {}; see docs/configuration.md", at(offset), error.message().replace('\n', " ")))
    })?;
    let setting = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let (name, origin): (&std::borrow::Cow<'_, str>, String) = (name.get_ref(), at(name.span().start));
        let Some(key) = KEYS.iter().find(|key| key.name == *name) else {
            let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            return Err(Failure::new(format!("{origin}: unknown key {name:?}; the keys are {}", known.join(", "))));
        };
        let wrong =
            || Failure::new(format!("{origin}: {name} must be a text, a number, true, false, or a list of these"));
        let values = match value.get_ref() {
            DeValue::Array(values) if !values.is_empty() => {
                values.iter().map(|value| plain(value.get_ref())).collect::<Option<Vec<_>>>().ok_or_else(wrong)?
            }
            value => vec![plain(value).ok_or_else(wrong)?],
        };
        Ok(Setting { key, values, origin })
    };
    table.get_ref().iter().map(setting).collect()
}

/// A value as one would write it after a flag.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use clap::CommandFactory;

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Message(message) => message,
            Failure::ClosedPipe => String::new(),
        }
    }

    /// A key with its values and their origin.
    type Found = (&'static str, Vec<String>, String);

    fn settings(text: &str) -> Result<Vec<Found>, String> {
        let settings = settings_of(Path::new("lanner.toml"), text.as_bytes()).map_err(message)?;
        Ok(settings.into_iter().map(|setting| (setting.key.name, setting.values, setting.origin)).collect())
    }

    #[test]
    fn every_key_is_an_option_of_each_of_its_commands() {
        let program = CommandLine::command();
        for key in &KEYS {
            for name in key.commands {
                let command = program.find_subcommand(name).expect(name);
                let id = key.name.replace('-', "_");
                assert!(command.get_arguments().any(|arg| arg.get_id().as_str() == id), "{name} --{}", key.name);
            }
        }
    }

    #[test]
    fn the_table_of_the_documentation_has_every_key() {
        let page = include_str!("../../../docs/configuration.md");
        let rows: Vec<(String, String, String)> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| {
                let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
                (cells[1].to_owned(), cells[2].to_owned(), cells[3].to_owned())
            })
            .collect();
        let expected: Vec<(String, String, String)> =
            KEYS.iter().map(|key| (key.name.to_owned(), key.variable.to_owned(), key.commands.join(", "))).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_file_has_values_of_every_kind() {
        let text = "# mine\nk = 20\nindex = \"wiki\"\nexecutor = [\"cpu\", \"gpu\"]\nb = 0.5\nquiet = true\n";
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let mut found = settings(text).unwrap();
        found.sort_by(|one, other| one.2.cmp(&other.2));
        let expected = [
            ("k", values(&["20"]), 2),
            ("index", values(&["wiki"]), 3),
            ("executor", values(&["cpu", "gpu"]), 4),
            ("b", values(&["0.5"]), 5),
            ("quiet", values(&["true"]), 6),
        ];
        assert_eq!(found, expected.map(|(key, values, line)| (key, values, format!("lanner.toml:{line}"))));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_with_its_line() {
        let unknown = settings("k = 3\n\nthread = 4\n").unwrap_err();
        assert!(
            unknown.starts_with("lanner.toml:3: unknown key \"thread\"; the keys are index, threads, "),
            "{unknown}"
        );
        let table = settings("[search]\nk = 3\n").unwrap_err();
        assert!(table.starts_with("lanner.toml:1: unknown key \"search\""), "{table}");
        let date = settings("k = 2020-01-01\n").unwrap_err();
        assert_eq!(date, "lanner.toml:1: k must be a text, a number, true, false, or a list of these");
        let broken = settings("k = 3\nmode = \n").unwrap_err();
        assert!(broken.starts_with("lanner.toml:2: ") && broken.ends_with("; see docs/configuration.md"), "{broken}");
        let twice = settings("k = 3\nk = 4\n").unwrap_err();
        assert!(twice.starts_with("lanner.toml:2: "), "{twice}");
    }

    #[test]
    fn a_value_is_checked_as_a_flag_would_be() {
        let check = |text: &str| {
            let settings = settings_of(Path::new("c"), text.as_bytes()).unwrap();
            Configuration { file: None, settings }.check(&CommandLine::command()).map_err(message)
        };
        let good =
            "k = 5\nexecutor = \"cpu,gpu\"\nmemory = \"64MiB\"\nquiet = false\npolicy = \"cpu\"\nmeasures = \"AP\"\n";
        assert_eq!(check(good), Ok(()));
        assert!(check("k = 0\n").unwrap_err().starts_with("c:1: invalid value '0' for '--k <N>'"));
        assert!(
            check("\nmemory = \"much\"\n").unwrap_err().starts_with("c:2: invalid value 'much' for '--memory <SIZE>'")
        );
        assert!(check("executor = \"tpu\"\n").unwrap_err().starts_with("c:1: invalid value 'tpu' for '--executor"));
        assert_eq!(check("quiet = 1\n").unwrap_err(), "c:1: quiet is true or false");
    }
}
