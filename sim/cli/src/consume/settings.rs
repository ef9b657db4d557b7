//! The settings of a worker and their sources: flags come before the environment, the environment before the file, and
//! the file before the defaults.
//!
//! Pure: callers pass the content of the environment and of the file.

use super::names::{NAMES, Name, known};
use crate::exit::Failure;
use crate::position::parse_position;
use leasehold::format::{Format, LeaseFormat};
use leasehold::{Config, MembersConfig, Misplaced};
use leasehold_engine::time::Span;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Flag(String),
    Environment(String),
    File(String),
    /// The value follows from another option.
    Follows(&'static str),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => f.write_str(flag),
            Source::Environment(name) => write!(f, "environment: {name}"),
            Source::File(path) => write!(f, "file: {path}"),
            Source::Follows(name) => write!(f, "follows from {name}"),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A value as a text, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) text: String,
    pub(super) source: Source,
}

/// Values by name.
pub(super) type Values = BTreeMap<&'static str, Given>;

/// All settings of a worker.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) format: Format,
    pub(super) worker_id: Option<String>,
    pub(super) misplaced: Misplaced,
    sources: BTreeMap<&'static str, Source>,
}

/// The values of the environment. A variable near a known name is refused; variables of other names belong to other
/// programs.
pub(super) fn of_environment(variables: impl Iterator<Item = (String, String)>) -> Result<Values, Failure> {
    let mut values = Values::new();
    for (variable, text) in variables {
        if !variable.starts_with("LEASEHOLD_") {
            continue;
        }
        let Some(name) = NAMES.iter().find(|name| name.variable() == variable) else {
            match super::names::nearest(&variable, NAMES.iter().map(|name| name.variable())) {
                Some(meant) => {
                    return Err(Failure::unusable(format!(
                        "expected environment variables of known names, found {variable}; write {meant}, or remove it"
                    )));
                }
                None => continue,
            }
        };
        let source = Source::Environment(variable);
        values.insert(name.name(), Given { text, source });
    }
    Ok(values)
}

/// The values of a file in TOML.
pub(super) fn of_file(path: &str, text: &str) -> Result<Values, Failure> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        Failure::unusable(format!(
            "{path}: expected TOML, such as `lease_duration = \"20 s\"`, found: {}",
            error.to_string().trim_end().replace('\n', " ")
        ))
    })?;
    let mut values = Values::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(group) => {
                for (inner, value) in group {
                    take(&mut values, path, &format!("{name}.{inner}"), value)?;
                }
            }
            value => take(&mut values, path, &name, value)?,
        }
    }
    Ok(values)
}

fn take(values: &mut Values, path: &str, name: &str, value: toml::Value) -> Result<(), Failure> {
    let known = known(name).map_err(|sentence| Failure::unusable(format!("{path}: {sentence}")))?;
    let text = match value {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(value) => value.to_string(),
        other => {
            return Err(Failure::unusable(format!(
                "{path}: option `{name}`: expected a text, a whole number, true or false, found {} `{other}`; write times as texts, \
                 such as \"20 s\"",
                other.type_str()
            )));
        }
    };
    let source = Source::File(path.to_owned());
    values.insert(known.name(), Given { text, source });
    Ok(())
}

impl Settings {
    /// Resolves flags, environment and file.
    pub(super) fn resolve(flags: Values, environment: Values, file: Values) -> Result<Self, Failure> {
        let mut values = file;
        values.extend(environment);
        values.extend(flags);
        let format = match values.get("format") {
            Some(given) => given.text.parse::<Format>().map_err(|error| bad("format", given, &error))?,
            None => Format::default(),
        };
        let mut settings = Self {
            config: Config::default().with_policies(format.policies()),
            format,
            worker_id: values.get("worker_id").map(|given| given.text.clone()),
            misplaced: values.get("misplaced_aggregates").map_or(Ok(Misplaced::default()), misplaced)?,
            sources: BTreeMap::new(),
        };
        settings.know_members(&values)?;
        for (name, given) in &values {
            settings.set(name, given)?;
            settings.sources.insert(name, given.source.clone());
        }
        for name in ["application", "stream"] {
            let several = name == "stream" && values.contains_key("streams");
            if !values.contains_key(name) && !several {
                let known = Name::of(name);
                return Err(Failure::unusable(format!(
                    "expected the name of the {name}, found none; give {}, set {}, or write `{name} = \"…\"` into the file of --config",
                    known.flag(),
                    known.variable()
                )));
            }
        }
        let checked = settings.config.check_given_worker_id(settings.worker_id.as_deref());
        checked.and_then(|()| settings.config.check()).map_err(|error| {
            let name = match error.option() {
                "table" => "application",
                name => name,
            };
            let source = settings.source(name);
            Failure::unusable(format!(
                "{} ({source}); correct it, or leave it out for the default",
                error.to_string().replacen("`table`", "`application`", 1)
            ))
        })?;
        Ok(settings)
    }

    /// In a format with members, intervals follow from the check interval.
    fn know_members(&mut self, values: &Values) -> Result<(), Failure> {
        let (check, lead) = ("members.check_interval", "members.lead_interval");
        if self.format.membership().is_none() {
            return match [check, lead].into_iter().find_map(|name| values.get_key_value(name)) {
                None => Ok(()),
                Some((name, given)) => Err(Failure::unusable(format!(
                    "option `{name}` ({}): expected it with format kinsumer only, found {}, which has no members; leave it out",
                    given.source, self.format
                ))),
            };
        }
        if let Some(given) = values.get(check) {
            self.set(check, given)?;
            let every = self.config.members().check_interval();
            let members = MembersConfig::default().with_check_interval(every).with_lead_interval(every);
            self.config = std::mem::take(&mut self.config).with_members(members);
            self.sources.insert(lead, Source::Follows(check));
        }
        // Renewals and scans are at least as frequent as checks.
        let config = std::mem::take(&mut self.config);
        let members = config.members().clone();
        let (every, renew, scan) =
            (members.check_interval(), config.renew_interval(), config.scan_interval());
        self.config = config
            .with_lease_duration(members.expiry())
            .with_renew_interval(renew.min(every))
            .with_scan_interval(scan.min(every));
        self.sources.insert("lease_duration", Source::Follows(check));
        for (name, shorter) in [("renew_interval", every < renew), ("scan_interval", every < scan)] {
            if shorter {
                self.sources.insert(name, Source::Follows(check));
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, given: &Given) -> Result<(), Failure> {
        let config = std::mem::take(&mut self.config);
        let text = given.text.as_str();
        self.config = match name {
            "format" | "worker_id" | "misplaced_aggregates" => config,
            "application" => config.with_table(text),
            "initial_position" => {
                let position = parse_position(text).map_err(|error| bad(name, given, &error))?;
                config.with_initial_position(position)
            }
            _ => config.with_option(name, text).map_err(|error| {
                Failure::unusable(format!(
                    "{error} ({}); correct it, or leave it out for the default",
                    given.source
                ))
            })?,
        };
        Ok(())
    }

    fn source(&self, name: &str) -> &Source {
        self.sources.get(name).unwrap_or(&Source::Default)
    }

    /// All values in TOML with their sources: a file for --config.
    pub(super) fn printed(&self) -> String {
        let mut lines: Vec<(String, &Source)> = Vec::new();
        let mut group = "";
        for name in NAMES.iter() {
            let full = name.name();
            let Some(value) = self.value(full) else { continue };
            let short = match full.split_once('.') {
                Some((of, short)) => {
                    if self.format.membership().is_none() && of == "members" {
                        continue;
                    }
                    if of != group {
                        group = of;
                        lines.push((format!("[{of}]"), &Source::Default));
                    }
                    short
                }
                None => full,
            };
            lines.push((format!("{short} = {value}"), self.source(full)));
        }
        let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (line, source) in lines {
            let _ = if line.starts_with('[') {
                write!(text, "\n{line}\n")
            } else {
                writeln!(text, "{line:width$}  # {source}")
            };
        }
        text.trim_end().to_owned()
    }

    /// A value in TOML's spelling.
    fn value(&self, name: &str) -> Option<String> {
        let text = match name {
            "application" => self.config.table().to_owned(),
            "format" => self.format.to_string(),
            "worker_id" => self.worker_id.clone()?,
            "misplaced_aggregates" => self.misplaced.to_string(),
            _ => self.config.option(name)?,
        };
        // A number in TOML's own spelling, `true` and `false` stand without quotes. All other values are texts: a table
        // may be named `007`.
        let number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
        let alone = number || matches!(text.as_str(), "true" | "false");
        Some(if alone && !matches!(name, "application" | "stream" | "worker_id") {
            text
        } else {
            toml::Value::String(text).to_string()
        })
    }
}

/// The treatment of parts of other shards. The command has no place for dead letters.
fn misplaced(given: &Given) -> Result<Misplaced, Failure> {
    let name = "misplaced_aggregates";
    match given.text.parse::<Misplaced>() {
        Ok(Misplaced::DeadLetter) => Err(bad(
            name,
            given,
            "expected drop, drop-whole or keep, since this command has no dead-letter sink",
        )),
        Ok(misplaced) => Ok(misplaced),
        Err(_) => Err(bad(name, given, "expected drop, drop-whole or keep")),
    }
}

fn bad(name: &str, given: &Given, expected: &str) -> Failure {
    let found = if expected.contains("found") { String::new() } else { format!(", found {:?}", given.text) };
    Failure::unusable(format!(
        "option `{name}`: {expected}{found} ({}); correct it, or leave it out for the default",
        given.source
    ))
}

/// A number of seconds in the spelling of options.
pub(super) fn seconds(number: u64) -> String {
    Config::default().with_stall_after(Span::from_secs(number)).option("stall_after").unwrap_or_default()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
