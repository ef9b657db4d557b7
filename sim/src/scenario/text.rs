//! Scenarios as TOML.

use super::{Scenario, limits};
use crate::deliberate::Bug;
use crate::faults::Faults;
use crate::oracles::Property;
use crate::peers::Fleet;
use crate::span;
use crate::start::Start;
use crate::swarm::{Load, Plan, named};
use leasehold_engine::config::Config;
use leasehold_engine::format::Format;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;
use toml::{Table, Value};

/// An invalid scenario text: the expected part, the part found, and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadScenario(String);

impl fmt::Display for BadScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadScenario {}

/// The format's version. An earlier program refuses additions of a later version by name.
const VERSION: u32 = 1;

/// The greatest length of a scenario, in bytes.
const LONGEST: usize = 16 << 20;

/// The options of a configuration with lengths of time.
const SPANS: [&str; 20] = [
    "lease_duration",
    "renew_interval",
    "scan_interval",
    "quick_scan_interval",
    "hand_over_timeout",
    "table_timeout",
    "stream_timeout",
    "stream_lag",
    "retry_min",
    "retry_max",
    "checkpoint_interval",
    "cleanup_delay",
    "stream_cleanup_delay",
    "bootstrap_delay",
    "shutdown_timeout",
    "flush_timeout",
    "handler_backoff",
    "handler_timeout",
    "give_up_after",
    "stall_after",
];
/// Options left out of a configuration at 0.
const UNSAID: [&str; 2] = ["stream_cleanup_delay", "handler_timeout"];
/// Options with lengths of time within groups.
const GROUP_SPANS: [(&str, &[&str]); 2] = [
    ("reader", &["min_interval", "idle_interval"]),
    ("fleet", &["report_interval", "migration_wait", "discovery_interval"]),
];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    violates: Option<Property>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mutant: Option<String>,
    #[serde(default, with = "seed")]
    seed: u64,
    #[serde(default, skip_serializing_if = "is_kcl")]
    format: Format,
    #[serde(default, skip_serializing_if = "is_false")]
    asks: bool,
    workers: u32,
    #[serde(default)]
    fleet: Fleet,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    streams: u32,
    shards: u32,
    #[serde(with = "span::micros")]
    faults_last: u64,
    #[serde(default)]
    load: Load,
    #[serde(default)]
    config: Table,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upgraded: Option<Table>,
    #[serde(default)]
    faults: Faults,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<Start>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn is_kcl(format: &Format) -> bool {
    *format == Format::Kcl
}

impl FromStr for Scenario {
    type Err = BadScenario;

    fn from_str(text: &str) -> Result<Self, BadScenario> {
        if text.len() > LONGEST {
            return Err(BadScenario(format!(
                "expected a scenario of no more than {LONGEST} bytes, found {}",
                text.len()
            )));
        }
        let text: Text = toml::from_str(text).map_err(|error| BadScenario(in_one_line(text, &error)))?;
        if text.version != VERSION {
            return Err(BadScenario(format!(
                "`version`: expected {VERSION}, the only one there is, found {}",
                text.version
            )));
        }
        let config = read_config("config", text.config, &named(text.asks)).map_err(BadScenario)?;
        let upgraded = text
            .upgraded
            .map(|given| read_config("upgraded", given, &config).map_err(BadScenario))
            .transpose()?;
        let plan = Plan {
            seed: text.seed,
            format: Format::Kcl,
            asks: text.asks,
            workers: text.workers,
            fleet: text.fleet,
            streams: 1,
            shards: text.shards,
            fault_us: text.faults_last,
            config,
            upgraded,
            load: text.load,
            faults: text.faults,
            start: text.start.map(Arc::new),
        }
        .with_format(text.format)
        .of_streams(text.streams.max(1));
        limits::check(&plan).map_err(BadScenario)?;
        let bug = text.mutant.as_deref().map(Bug::named).transpose();
        let bug = bug.map_err(|sentence| BadScenario(format!("`mutant`: {sentence}")))?;
        Ok(Scenario { about: text.about, violates: text.violates, bug, plan })
    }
}

/// A seed: a number, or a text beyond the range of TOML's numbers.
mod seed {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seed {
        Number(u64),
        Text(String),
    }

    pub(super) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(*seed) {
            Ok(seed) => serializer.serialize_i64(seed),
            Err(_) => serializer.serialize_str(&seed.to_string()),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let bad = || D::Error::custom("expected a seed from 0 to 18446744073709551615");
        match Seed::deserialize(deserializer).map_err(|_| bad())? {
            Seed::Number(seed) => Ok(seed),
            Seed::Text(text) => text.parse().map_err(|_| bad()),
        }
    }
}

/// The parser's error, with its line.
fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        before.matches('\n').count() + 1
    });
    let message = error.message().replace('\n', ", ");
    format!("line {line}: {message}")
}

/// Changes each length of time in a configuration.
fn each_span<E>(
    config: &mut Table, mut change: impl FnMut(&str, &mut Value) -> Result<(), E>,
) -> Result<(), E> {
    let mut all = |table: &mut Table, names: &[&str]| {
        let mut names = names.iter();
        names.try_for_each(|name| table.get_mut(*name).map_or(Ok(()), |value| change(name, value)))
    };
    all(config, &SPANS)?;
    for (group, names) in GROUP_SPANS {
        if let Some(Value::Table(group)) = config.get_mut(group) {
            all(group, names)?;
        }
    }
    Ok(())
}

/// Reads the options given under a name; options left out are as in `plain`.
fn read_config(section: &str, mut given: Table, plain: &Config) -> Result<Config, String> {
    each_span(&mut given, |name, value| {
        let text = value.as_str().ok_or_else(|| {
            format!("`{section}.{name}`: expected a length of time such as \"2 s\", found {value}")
        })?;
        let us = span::read(text).map_err(|error| format!("`{section}.{name}`: {error}"))?;
        let us =
            i64::try_from(us).map_err(|_| format!("`{section}.{name}`: expected less, found {text:?}"))?;
        *value = Value::Integer(us);
        Ok::<(), String>(())
    })?;
    let mut whole = Table::try_from(plain).map_err(|error| format!("in `{section}`: {error}"))?;
    merge(&mut whole, given);
    whole
        .try_into()
        .map_err(|error: toml::de::Error| format!("in `{section}`: {}", error.message().replace('\n', ", ")))
}

fn merge(into: &mut Table, from: Table) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Table(inner)), Value::Table(given)) => merge(inner, given),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upgraded = self.plan.upgraded.as_ref();
        let upgraded = upgraded.map(|upgraded| show_config(upgraded, &self.plan.config));
        let text = Text {
            version: VERSION,
            about: self.about.clone(),
            violates: self.violates,
            mutant: self.bug.map(|bug| bug.id().to_owned()),
            seed: self.plan.seed,
            format: self.plan.format,
            asks: self.plan.asks,
            workers: self.plan.workers,
            fleet: self.plan.fleet.clone(),
            streams: self.plan.streams,
            shards: self.plan.shards,
            faults_last: self.plan.fault_us,
            load: self.plan.load.clone(),
            config: show_config(&self.plan.config, &named(self.plan.asks)).map_err(|_| fmt::Error)?,
            upgraded: upgraded.transpose().map_err(|_| fmt::Error)?,
            faults: self.plan.faults.clone(),
            start: self.plan.start.as_deref().cloned(),
        };
        let mut whole = Table::try_from(text).map_err(|_| fmt::Error)?;
        for (name, plain) in [
            ("load", Table::try_from(Load::default())),
            ("fleet", Table::try_from(Fleet::default())),
            ("faults", Table::try_from(Faults::default())),
        ] {
            if let Some(Value::Table(given)) = whole.get_mut(name) {
                prune(given, &plain.map_err(|_| fmt::Error)?);
            }
        }
        let mut page = String::new();
        section(&mut page, "", &whole)?;
        f.write_str(page.trim_start())
    }
}

/// A configuration's options that differ from `plain`.
fn show_config(config: &Config, plain: &Config) -> Result<Table, toml::ser::Error> {
    // Policies follow from the format.
    let config = config
        .clone()
        .with_policies(plain.policies())
        .with_members(plain.members().clone())
        // The streams read follow from the number of streams.
        .with_stream(plain.stream())
        .with_streams(plain.streams().to_vec());
    let mut given = Table::try_from(config)?;
    let plain = Table::try_from(plain)?;
    let is_off = |name: &&str| plain.contains_key(*name) && !given.contains_key(*name);
    let off: Vec<&str> = UNSAID.into_iter().filter(is_off).collect();
    prune(&mut given, &plain);
    each_span(&mut given, |_, value| {
        if let Some(us) = value.as_integer() {
            *value = Value::String(span::show(us.unsigned_abs()));
        }
        Ok::<(), toml::ser::Error>(())
    })?;
    given.extend(off.into_iter().map(|name| (name.to_owned(), Value::String(span::show(0)))));
    Ok(given)
}

/// Leaves out options with default values.
fn prune(given: &mut Table, plain: &Table) {
    given.retain(|name, value| match (value, plain.get(name)) {
        (Value::Table(inner), Some(Value::Table(plain))) => {
            prune(inner, plain);
            !inner.is_empty()
        }
        (value, plain) => Some(&*value) != plain,
    });
}

/// Writes values first, with a line for each value of a list; then tables.
fn section(page: &mut String, path: &str, table: &Table) -> fmt::Result {
    let is_table = |value: &Value| matches!(value, Value::Table(_));
    if table.values().any(|value| !is_table(value)) && !path.is_empty() {
        writeln!(page, "\n[{path}]")?;
    }
    for (name, value) in table.iter().filter(|(_, value)| !is_table(value)) {
        match value {
            Value::Array(list) if list.iter().any(is_table) => {
                writeln!(page, "{name} = [")?;
                for value in list {
                    writeln!(page, "  {value},")?;
                }
                writeln!(page, "]")?;
            }
            value => writeln!(page, "{name} = {value}")?,
        }
    }
    for (name, value) in table {
        if let Value::Table(inner) = value {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            section(page, &path, inner)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::time::Span;
    use proptest::prelude::*;

    fn of_seed(seed: u64) -> Scenario {
        let plan = Plan::draw(seed);
        Scenario { about: format!("the world of seed {seed}"), violates: None, bug: None, plan }
    }

    proptest! {
        #[test]
        fn every_drawn_world_is_read_as_it_is_shown(seed: u64) {
            let scenario = of_seed(seed);
            let text = scenario.to_string();
            let again = text.parse::<Scenario>().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(again, scenario);
        }

        #[test]
        fn a_scenario_cut_short_or_garbled_is_refused_with_a_sentence(
            seed in 0..1_000u64, at: prop::sample::Index, byte: u8, cut: bool
        ) {
            let mut text = of_seed(seed).to_string().into_bytes();
            let at = at.index(text.len());
            if cut { text.truncate(at) } else { text[at] = byte }
            if let Err(error) = String::from_utf8_lossy(&text).parse::<Scenario>() {
                let sentence = error.to_string();
                prop_assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence:?}");
            }
        }
    }

    #[test]
    fn an_unsaid_setting_is_as_it_should_be() {
        let text = "version = 1\nworkers = 2\nshards = 3\nfaults_last = \"10 s\"\n";
        let scenario: Scenario = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.plan.faults, Faults::default());
        assert_eq!(scenario.plan.config, named(false));
    }

    #[test]
    fn every_length_of_time_in_a_configuration_is_listed() {
        let plain = Table::try_from(Config::default()).unwrap_or_default();
        assert!(!UNSAID.iter().any(|name| plain.contains_key(*name)));
        let config = Config::default()
            .with_stream_cleanup_delay(Span::from_secs(60))
            .with_handler_timeout(Span::from_secs(60));
        let whole = Table::try_from(config).unwrap_or_default();
        assert!(UNSAID.iter().all(|name| whole.contains_key(*name)));
        let suffixes = [
            "_duration",
            "_interval",
            "_timeout",
            "_delay",
            "_backoff",
            "_after",
            "_lag",
            "retry_min",
            "retry_max",
        ];
        let is_span = |name: &&String| suffixes.iter().any(|suffix| name.ends_with(suffix));
        let mut found: Vec<&str> = whole.keys().filter(is_span).map(String::as_str).collect();
        let mut listed = SPANS.to_vec();
        found.sort_unstable();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let cases = [
            ("workers = 2", "missing field `version`"),
            ("version = 2\nworkers = 2\nshards = 1\nfaults_last = \"1 s\"", "`version`: expected 1"),
            (
                "version = 1\nworkers = 0\nshards = 1\nfaults_last = \"1 s\"",
                "`workers`: expected 1 to 100, found 0",
            ),
            (
                "version = 1\nworkers = 2\nshards = 1\nfaults_last = \"1 week\"",
                "line 4: expected a length of time",
            ),
            (
                "version = 1\nworkers = 2\nshards = 1\nfaults_last = \"1 s\"\nwrokers = 3",
                "line 5: unknown field `wrokers`",
            ),
            (
                "version = 1\nworkers = 2\nshards = 1\nfaults_last = \"1 s\"\n[config]\nlease_duration = 5",
                "`config.lease_duration`: expected a length of time such as \"2 s\", found 5",
            ),
            (
                "version = 1\nworkers = 2\nshards = 1\nfaults_last = \"1 s\"\n[faults]\nrequest_faults = [{ on = \"w9\", fault = \"throttled\" }]",
                "line 6: expected what a fault hits",
            ),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Scenario>().map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|error| error.contains(expected)), "{error:?} for {text}");
        }
    }
}
