//! Options as texts: for configuration files, environments and command lines.

use super::{
    AssignBy, Config, FailureAction, FleetConfig, InitialPosition, MembersConfig, ReadMode, ReaderConfig,
    Streams,
};
use crate::policy::Policies;
use crate::stream_id::StreamId;
use crate::time::Span;
use std::fmt;

/// A text that sets no option: the option, the expected and the found value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOption {
    name: String,
    expected: String,
    found: String,
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option `{}`: expected {}, found {}", self.name, self.expected, self.found)
    }
}

impl std::error::Error for BadOption {}

/// A value that people write as a text.
pub(super) trait Value {
    /// Takes the value of a text, or says what was expected.
    fn set(&mut self, text: &str) -> Result<(), &'static str>;

    /// The text of the value.
    fn text(&self) -> String;
}

impl Value for u32 {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = number(text, u64::from(u32::MAX)).ok_or("a whole number from 0 to 4294967295")? as u32;
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for u64 {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = number(text, u64::MAX).ok_or("a whole number from 0 to 2^64 - 1")?;
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = text.parse().map_err(|_| "true or false")?;
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        text.clone_into(self);
        Ok(())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl Value for Span {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self =
            span(text).ok_or("a time with its unit (us, ms, s, min or h), such as \"20 s\" or \"250 ms\"")?;
        Ok(())
    }

    fn text(&self) -> String {
        let (unit, name) = if self.0 >= 1_000_000 || self.0 == 0 { (1_000_000, "s") } else { (1_000, "ms") };
        let (whole, part) = (self.0 / unit, self.0 % unit);
        if part == 0 {
            return format!("{whole} {name}");
        }
        let digits = if unit == 1_000 { 3 } else { 6 };
        let part = format!("{part:0digits$}");
        format!("{whole}.{} {name}", part.trim_end_matches('0'))
    }
}

/// Options with a few values: each value and its name.
macro_rules! named_values {
    ($($Type:ident, $expected:literal: $($Value:ident = $name:literal),+;)+) => {$(
        impl Value for $Type {
            fn set(&mut self, text: &str) -> Result<(), &'static str> {
                *self = match text {
                    $($name => $Type::$Value,)+
                    _ => return Err($expected),
                };
                Ok(())
            }

            fn text(&self) -> String {
                match self {
                    $($Type::$Value => $name.to_owned(),)+
                }
            }
        }
    )+};
}

named_values! {
    FailureAction, "stop or set-aside": Stop = "stop", SetAside = "set-aside";
    AssignBy, "load or number": Load = "load", Number = "number";
    ReadMode, "polling, fan-out or auto": Polling = "polling", FanOut = "fan-out", Auto = "auto";
}

impl Value for InitialPosition {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text {
            "trim-horizon" => InitialPosition::TrimHorizon,
            "latest" => InitialPosition::Latest,
            _ => return Err("trim-horizon or latest; a time is set with `with_initial_position`"),
        };
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Streams {
    fn set(&mut self, text: &str) -> Result<(), &'static str> {
        let ids: Result<Vec<StreamId>, _> = text.split(',').map(|id| id.trim().parse()).collect();
        *self = ids
            .map_err(
                |_| "identifiers `<account>:<stream>:<creation time in seconds>` with commas between them",
            )?
            .into();
        Ok(())
    }

    fn text(&self) -> String {
        let ids: Vec<&str> = self.as_slice().iter().map(|source| source.id.as_str()).collect();
        ids.join(",")
    }
}

/// Groups of options and derived options; none of them is a value.
macro_rules! no_value {
    ($($Type:ident: $expected:literal),+) => {$(
        impl Value for $Type {
            fn set(&mut self, _: &str) -> Result<(), &'static str> {
                Err($expected)
            }

            fn text(&self) -> String {
                String::new()
            }
        }
    )+};
}

no_value! {
    ReaderConfig: "the name of an option of this group, such as `reader.max_records`",
    MembersConfig: "the name of an option of this group, such as `members.check_interval`",
    FleetConfig: "the name of an option of this group, such as `fleet.assign_by`",
    Policies: "no text: policies follow from the format of the lease table"
}

fn number(text: &str, most: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse::<u64>().ok())??;
    (number <= most).then_some(number)
}

/// A number with its unit. No more digits than microseconds have; too long a time is refused.
fn span(text: &str) -> Option<Span> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit: u64 = match text[at..].trim_start_matches(' ') {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    let (whole, part) = match text[..at].split_once('.') {
        Some((whole, part)) => (whole, part),
        None => (&text[..at], "0"),
    };
    let scale = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = number(part, u64::MAX)?.checked_mul(unit)?;
    if part % scale != 0 {
        return None;
    }
    let whole = number(whole, u64::MAX)?.checked_mul(unit)?;
    Some(Span(whole.checked_add(part / scale)?))
}

impl Config {
    /// Sets the option of this name, as [`Config::options`] spells the name, from a text written by a person: `20 s`,
    /// `250 ms`, `8`, `true`. For configuration that comes from files, the environment or a command line.
    /// [`Config::check`] says whether the values work, alone and together.
    ///
    /// ```
    /// # use leasehold_engine::config::Config;
    /// let config = Config::default().with_option("lease_duration", "20 s").unwrap();
    /// assert_eq!(config.option("lease_duration").as_deref(), Some("20 s"));
    ///
    /// let error = config.with_option("lease_duration", "20").unwrap_err();
    /// assert!(error.to_string().contains("expected a time with its unit"));
    /// ```
    ///
    /// # Errors
    /// If no option has this name, or if the text is no value of the option's type: with the expected and the found
    /// value. The option `policies` cannot be set in this way; the format decides this option. A time for
    /// `initial_position` cannot be set in this way either.
    pub fn with_option(mut self, name: &str, text: &str) -> Result<Self, BadOption> {
        let bad = |expected: String, found: String| BadOption { name: name.to_owned(), expected, found };
        let value = match name.split_once('.') {
            Some(("reader", name)) => self.reader.value(name),
            Some(("members", name)) => self.members.value(name),
            Some(("fleet", name)) => self.fleet.value(name),
            Some(_) => None,
            None => self.value(name),
        };
        match value {
            Some(value) => {
                value.set(text).map_err(|expected| bad(expected.to_owned(), format!("{text:?}")))?
            }
            None => {
                return Err(bad("the name of an option".to_owned(), "no option of that name".to_owned()));
            }
        }
        Ok(self)
    }

    /// The value of the option of this name, as a text for [`Config::with_option`]. Absent: no option has this name, or
    /// the option has no text.
    pub fn option(&self, name: &str) -> Option<String> {
        let mut copy = self.clone();
        let text = match name.split_once('.') {
            Some(("reader", name)) => copy.reader.value(name)?.text(),
            Some(("members", name)) => copy.members.value(name)?.text(),
            Some(("fleet", name)) => copy.fleet.value(name)?.text(),
            Some(_) => return None,
            None => copy.value(name)?.text(),
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_default_is_its_own_text() {
        let config = Config::default();
        for option in Config::options() {
            let expected = match option.name {
                "table"
                | "stream"
                | "streams"
                | "policies"
                | "worker_metrics_table"
                | "coordinator_table"
                | "reader.consumer" => None,
                _ => Some(option.default.to_owned()),
            };
            assert_eq!(config.option(option.name), expected, "{}", option.name);
            if let Some(text) = expected {
                let same = config.clone().with_option(option.name, &text);
                assert_eq!(same.as_ref(), Ok(&config), "{}", option.name);
            }
        }
    }

    #[test]
    fn a_text_that_is_no_value_is_refused_with_the_expectation() {
        for (name, text, part) in [
            ("lease_duration", "20", "a time with its unit"),
            ("lease_duration", "s", "a time with its unit"),
            ("lease_duration", "0.1 us", "a time with its unit"),
            ("lease_duration", "99999999999999999999 s", "a time with its unit"),
            ("max_leases", "-1", "a whole number"),
            ("max_leases", "4294967296", "a whole number"),
            ("steal_cooldown", "yes", "true or false"),
            ("reader", "x", "`reader.max_records`"),
            ("policies", "kcl", "follow from the format"),
            ("streams", "orders", "creation time in seconds"),
            ("lease_duraton", "20 s", "no option of that name"),
            ("writer.max_records", "1", "no option of that name"),
        ] {
            let error = Config::default().with_option(name, text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, micros) in [
            ("0 s", 0),
            ("7us", 7),
            ("1.5 ms", 1_500),
            ("20.05 s", 20_050_000),
            ("2min", 120_000_000),
            ("24 h", 86_400_000_000),
        ] {
            assert_eq!(span(text), Some(Span(micros)), "{text}");
        }
        for text in ["", "s", ".5 s", "5. s", "1.2.3 s", "5 S", "5 s ", "-5 s", "5 m"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn times_come_back_from_their_texts(micros in 0u64..=86_400_000_000) {
            let span = Span(micros);
            let mut back = Span(7);
            prop_assert_eq!(back.set(&span.text()), Ok(()));
            prop_assert_eq!(back, span, "{}", span.text());
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}", n in 0usize..40) {
            let option = Config::options().nth(n).map_or("none", |option| option.name);
            let _ = Config::default().with_option(option, &text);
            let _ = Config::default().with_option(&text, &text);
        }
    }
}
