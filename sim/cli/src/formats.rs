//! The table formats named by an option.

use leasehold_engine::format::{Format, LeaseFormat as _};
use std::fmt;
use std::str::FromStr;

/// One format, or all formats, by turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Formats(pub(super) Vec<Format>);

impl Default for Formats {
    fn default() -> Self {
        Self(vec![Format::default()])
    }
}

impl FromStr for Formats {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Format::ALL.to_vec()));
        }
        match text.parse() {
            Ok(format) => Ok(Self(vec![format])),
            Err(error) => Err(format!("{error}; all of them by turns: all")),
        }
    }
}

impl fmt::Display for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0[..] {
            [format] => write!(f, "{format}"),
            _ => f.write_str("all"),
        }
    }
}

/// A format of workers without member rows: these workers know each other by their leases alone.
pub(super) fn counted(text: &str) -> Result<Format, String> {
    let format: Format = text.parse()?;
    match format.membership() {
        None => Ok(format),
        Some(_) => Err(format!(
            "expected a format whose workers know each other by their leases, found {format}, whose workers have tables of members"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_understood_by_its_name() {
        for format in Format::ALL {
            let formats = format.to_string().parse::<Formats>();
            assert_eq!(formats, Ok(Formats(vec![format])));
        }
        assert_eq!("all".parse(), Ok(Formats(Format::ALL.to_vec())));
        assert!("klc".parse::<Formats>().unwrap_err().contains("kcl-rb"));
        assert_eq!(counted("kcl"), Ok(Format::Kcl));
        assert!(counted("kinsumer").unwrap_err().contains("kinsumer"));
    }
}
