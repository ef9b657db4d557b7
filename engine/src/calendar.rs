//! Times as texts, spelled exactly as in other programs: those programs compare times as text.
//!
//! All are in UTC, of the Gregorian calendar, and count nanoseconds since 1970, unless they say otherwise.

use std::fmt;

const SECOND: u64 = 1_000_000_000;

/// As Go spells `time.RFC3339Nano`: as many digits of the fraction as needed, and `Z`.
pub(crate) fn spell_go(nanoseconds: u64) -> String {
    let mut text = spell(nanoseconds / SECOND, 'T');
    let fraction = nanoseconds % SECOND;
    if fraction > 0 {
        let digits = format!(".{fraction:09}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// The time of such a text; absent if Go would spell the time differently, or if the time is before 1970.
pub(crate) fn read_go(text: &str) -> Option<u64> {
    let (whole, fraction) = match text.strip_suffix('Z')?.split_once('.') {
        Some((whole, fraction)) if (1..=9).contains(&fraction.len()) => {
            let digits: u64 = fraction.parse().ok()?;
            (whole, digits.checked_mul(10u64.pow(9 - fraction.len() as u32))?)
        }
        Some(_) => return None,
        None => (text.strip_suffix('Z')?, 0),
    };
    let nanoseconds = read(whole)? * SECOND + fraction;
    (spell_go(nanoseconds) == text).then_some(nanoseconds)
}

/// As Ruby spells `Time#to_s`: whole seconds, and `UTC`. A part of a second counts as a whole second.
pub(crate) fn spell_ruby(nanoseconds: u64) -> String {
    format!("{} UTC", spell(nanoseconds.div_ceil(SECOND), ' '))
}

/// The time of such a text; absent if Ruby would spell the time differently, or if the time is before 1970.
pub(crate) fn read_ruby(text: &str) -> Option<u64> {
    let nanoseconds = read(text.strip_suffix(" UTC")?)? * SECOND;
    (spell_ruby(nanoseconds) == text).then_some(nanoseconds)
}

/// As Go spells `time.RFC1123Z` in UTC: for people, who do not look at parts of a second.
pub(crate) fn spell_rfc1123(nanoseconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = nanoseconds / SECOND;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} +0000",
        DAYS[(days % 7) as usize],
        MONTHS[(month as usize).wrapping_sub(1) % 12],
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

fn spell(seconds: u64, between: char) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}")
}

/// As RFC 3339 spells a time in UTC: as many digits of the fraction as needed, and `Z`. A year before 0 has a sign, and
/// a year after 9999 has more than four digits; RFC 3339 knows neither.
pub(crate) fn write_rfc3339(f: &mut fmt::Formatter<'_>, millis: i64) -> fmt::Result {
    const DAY: i64 = 86_400_000;
    let (year, month, day) = civil(millis.div_euclid(DAY));
    let of_day = millis.rem_euclid(DAY) as u64;
    let (second, milli) = (of_day / 1_000, of_day % 1_000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
    if milli == 0 {
        f.write_str("Z")
    } else if milli % 100 == 0 {
        write!(f, ".{}Z", milli / 100)
    } else if milli % 10 == 0 {
        write!(f, ".{:02}Z", milli / 10)
    } else {
        write!(f, ".{milli:03}Z")
    }
}

/// Seconds since 1970 of a date and a time of day, with any separator between date and time.
fn read(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    if !(1970..=2500).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    Some(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, counted in eras of 400 years that begin in March.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day, counted from 1970-01-01, also before 1970: any day within the range of a millisecond count.
fn civil(days: i64) -> (i64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097) as u64);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year as i64 + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_spelled_as_go_spells_them() {
        for (nanoseconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_709_575_626_123_456_789, "2024-03-04T18:07:06.123456789Z"),
            (1_709_575_626_500_000_000, "2024-03-04T18:07:06.5Z"),
            (1_709_575_626_000_000_000, "2024-03-04T18:07:06Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (4_107_542_399_000_000_000, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(spell_go(nanoseconds), text);
            assert_eq!(read_go(text), Some(nanoseconds), "{text}");
        }
    }

    #[test]
    fn times_are_spelled_as_ruby_spells_them() {
        assert_eq!(spell_ruby(1_620_022_301_000_000_000), "2021-05-03 06:11:41 UTC");
        assert_eq!(spell_ruby(1_620_022_300_000_000_001), "2021-05-03 06:11:41 UTC");
        assert_eq!(read_ruby("2021-05-03 06:11:41 UTC"), Some(1_620_022_301_000_000_000));
        for text in ["", "2021-05-03T06:11:41Z", "2021-05-03 06:11:41 +0000", "2021-02-29 06:11:41 UTC"] {
            assert_eq!(read_ruby(text), None, "{text:?}");
        }
    }

    #[test]
    fn times_for_people_are_spelled_as_go_spells_them() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (1_700_526_840, "Tue, 21 Nov 2023 00:34:00 +0000"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 +0000"),
            (4_133_980_799, "Fri, 31 Dec 2100 23:59:59 +0000"),
        ] {
            assert_eq!(spell_rfc1123(seconds * SECOND + 999_999_999), text);
        }
    }

    #[test]
    fn a_spelling_unknown_to_go_is_no_time() {
        for text in [
            "",
            "Z",
            "0001-01-01T00:00:00Z",
            "2024-03-04T18:07:06+00:00",
            "2024-03-04T18:07:06z",
            "2024-03-04T18:07:06.500Z",
            "2024-03-04T18:07:06.Z",
            "2024-03-04 18:07:06Z",
            "2024-02-30T00:00:00Z",
            "2024-03-04T24:00:00Z",
            "2024-3-4T18:07:06Z",
            "2024-03-04T18:07:06.1234567891Z",
            "２０２４-03-04T18:07:06Z",
        ] {
            assert_eq!(read_go(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_time_is_read_back(nanoseconds in 0u64..16_000_000_000_000_000_000) {
            prop_assert_eq!(read_go(&spell_go(nanoseconds)), Some(nanoseconds));
            let seconds = nanoseconds / SECOND * SECOND;
            prop_assert_eq!(read_ruby(&spell_ruby(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = (read_go(&text), read_ruby(&text));
        }
    }
}
