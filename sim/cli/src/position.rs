//! Where reading starts, as people say it on the command line.

use leasehold_engine::config::InitialPosition;
use leasehold_engine::time::Wall;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A word, or a time as of RFC 3339.
pub(super) fn parse_position(text: &str) -> Result<InitialPosition, String> {
    match text {
        "trim-horizon" => Ok(InitialPosition::TrimHorizon),
        "latest" => Ok(InitialPosition::Latest),
        moment => parse_moment(moment)
            .map(InitialPosition::AtTimestamp)
            .map_err(|error| error.replacen("expected ", "expected `trim-horizon`, `latest` or ", 1)),
    }
}

/// A time as of RFC 3339.
pub(super) fn parse_moment(text: &str) -> Result<Wall, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .ok()
        .and_then(|moment| moment.checked_to_offset(UtcOffset::UTC))
        // With an offset, the UTC year of the first and last representable hours is out of range.
        .filter(|moment| (0..=9999).contains(&moment.year()))
        .and_then(|moment| i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).ok())
        .map(Wall)
        .ok_or_else(|| "expected a time such as 2025-01-31T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_words_or_times() {
        assert_eq!(parse_position("latest"), Ok(InitialPosition::Latest));
        assert_eq!(parse_position("trim-horizon"), Ok(InitialPosition::TrimHorizon));
        for text in ["2025-01-31T12:00:00Z", "2025-01-31T12:00:00.000Z", "2025-01-31T14:00:00+02:00"] {
            assert_eq!(
                parse_position(text),
                Ok(InitialPosition::AtTimestamp(Wall(1_738_324_800_000))),
                "{text}"
            );
        }
        for text in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert!(parse_position(text).is_err(), "{text}");
        }
        assert!(parse_position("yesterday").unwrap_err().contains("2025-01-31"));
    }
}
