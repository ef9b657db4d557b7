//! Lengths of time as people write them: `1.25 s`, `350 ms`, `70 us`, `2 h`.

use std::fmt;

/// The units, with their length in µs, from the longest.
const UNITS: [(&str, u64); 5] =
    [("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// A text without a length of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSpan(String);

impl fmt::Display for NoSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a length of time such as \"1.25 s\", \"350 ms\" or \"70 us\" (units: h, min, s, ms, us), found {:?}",
            self.0
        )
    }
}

impl std::error::Error for NoSpan {}

/// A number of µs in its shortest exact form.
pub fn show(us: u64) -> String {
    match us {
        0 => "0 s".to_owned(),
        _ if us >= 1_000_000 => decimal(us, 1_000_000, "s"),
        _ if us >= 1_000 => decimal(us, 1_000, "ms"),
        _ => format!("{us} us"),
    }
}

fn decimal(us: u64, unit: u64, name: &str) -> String {
    let (whole, rest) = (us / unit, us % unit);
    if rest == 0 {
        return format!("{whole} {name}");
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{} {name}", fraction.trim_end_matches('0'))
}

/// Reads a length of time, in µs.
///
/// # Errors
/// If the text is no length of time, is finer than 1 µs or too long for the type.
pub fn read(text: &str) -> Result<u64, NoSpan> {
    let bad = || NoSpan(text.chars().take(40).collect());
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').ok_or_else(bad)?;
    let (number, unit) = trimmed.split_at(split);
    let unit = match unit.trim() {
        "µs" => "us",
        unit => unit,
    };
    let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 12 || fraction.contains('.') {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let mut us = u128::from(whole) * u128::from(unit);
    if !fraction.is_empty() {
        let scale = 10u128.pow(fraction.len() as u32);
        let part = fraction.parse::<u128>().map_err(|_| bad())? * u128::from(unit);
        if part % scale != 0 {
            return Err(bad());
        }
        us += part / scale;
    }
    u64::try_from(us).map_err(|_| bad())
}

/// For fields in µs.
pub mod micros {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// As text.
    pub fn serialize<S: Serializer>(us: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::show(*us))
    }

    /// From text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::read(&text).map_err(D::Error::custom)
    }
}

/// For fields in ms, which may be negative.
pub mod millis {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// As text.
    pub fn serialize<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        let text = super::show(ms.unsigned_abs().saturating_mul(1_000));
        let sign = if *ms < 0 { "-" } else { "" };
        serializer.serialize_str(&format!("{sign}{text}"))
    }

    /// From text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (sign, rest) = match text.trim().strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.trim()),
        };
        let us = super::read(rest).map_err(D::Error::custom)?;
        if us % 1_000 != 0 {
            return Err(D::Error::custom(format!("expected whole milliseconds here, found {text:?}")));
        }
        Ok(sign * (us / 1_000) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_shown_scenario_is_read_again(us: u64) {
            prop_assert_eq!(read(&show(us)), Ok(us));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            let _ = read(&text);
        }
    }

    #[test]
    fn people_write_in_several_ways() {
        for (text, us) in [
            ("1.25 s", 1_250_000),
            ("350ms", 350_000),
            ("70 µs", 70),
            ("1_000 us", 1_000),
            ("1.5 min", 90_000_000),
            ("2 h", 7_200_000_000),
        ] {
            assert_eq!(read(text), Ok(us), "{text}");
        }
        for text in ["", "3", "s", "-1 s", "0.5 us", "1.2.3 s", "1 week", "99999999999999999999 s", ". s"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
