//! Where `rewind` leads.

use crate::position::parse_position;
use leasehold::InitialPosition;
use leasehold::admin::To;

/// A word, a time as of RFC 3339, or a sequence number.
pub(super) fn parse_to(text: &str) -> Result<To, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(To::Number).map_err(|error| format!("{error}"));
    }
    match parse_position(text) {
        Ok(InitialPosition::TrimHorizon) => Ok(To::TrimHorizon),
        Ok(InitialPosition::Latest) => Ok(To::Latest),
        Ok(InitialPosition::AtTimestamp(time)) => Ok(To::Time(time)),
        Err(error) => Err(format!("{error}, or a sequence number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Wall;

    #[test]
    fn places_are_words_times_or_numbers() {
        assert_eq!(parse_to("latest"), Ok(To::Latest));
        assert_eq!(parse_to("trim-horizon"), Ok(To::TrimHorizon));
        assert_eq!(parse_to("4959"), Ok(To::Number(4959.into())));
        assert_eq!(parse_to("2025-01-31T12:00:00Z"), Ok(To::Time(Wall(1_738_324_800_000))));
        for bad in ["", "yesterday", "-1", &"9".repeat(59)] {
            let told = parse_to(bad).unwrap_err();
            assert!(told.contains("sequence number"), "{told}");
        }
    }
}
