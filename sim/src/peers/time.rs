//! Spellings of times in other programs. Written anew, so models and codecs check each other.

const SECOND: u64 = 1_000_000_000;

/// As Go spells `time.RFC3339Nano` in UTC.
pub(super) fn go(ns: u64) -> String {
    let (date, time) = (date(ns / SECOND / 86_400), clock(ns / SECOND % 86_400));
    match ns % SECOND {
        0 => format!("{date}T{time}Z"),
        fraction => {
            let digits = format!("{fraction:09}");
            format!("{date}T{time}.{}Z", digits.trim_end_matches('0'))
        }
    }
}

/// As Ruby spells a `Time` in UTC: seconds.
pub(super) fn ruby(ns: u64) -> String {
    format!("{} {} UTC", date(ns / SECOND / 86_400), clock(ns / SECOND % 86_400))
}

/// Reads a time from either spelling.
pub(super) fn parse(text: &str) -> Option<u64> {
    let number = |at: usize, digits: usize| text.get(at..at + digits)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let days = (1970..year).map(|year| 365 + leap(year)).sum::<u64>()
        + (1..month).map(|month| length(year, month)).sum::<u64>()
        + day.checked_sub(1)?;
    let seconds = days * 86_400 + number(11, 2)? * 3_600 + number(14, 2)? * 60 + number(17, 2)?;
    let digits = text.get(19..)?.strip_prefix('.').and_then(|rest| rest.strip_suffix('Z'));
    let fraction = match digits {
        Some(digits) => format!("{digits:0<9}").parse().ok()?,
        None => 0,
    };
    Some(seconds * SECOND + fraction)
}

fn clock(of_day: u64) -> String {
    format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60)
}

fn date(mut days: u64) -> String {
    let (mut year, mut month) = (1970, 1);
    while days >= 365 + leap(year) {
        days -= 365 + leap(year);
        year += 1;
    }
    while days >= length(year, month) {
        days -= length(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

fn leap(year: u64) -> u64 {
    u64::from(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)))
}

fn length(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + leap(year),
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spelled_as_these_programs_do() {
        let ns = 1_709_575_626_123_456_789;
        assert_eq!(go(ns), "2024-03-04T18:07:06.123456789Z");
        assert_eq!(go(1_709_575_626_500_000_000), "2024-03-04T18:07:06.5Z");
        assert_eq!(ruby(1_620_022_301_999_999_999), "2021-05-03 06:11:41 UTC");
        for ns in [0, ns, 1_700_000_000_000_000_000, 951_782_400_000_000_001] {
            assert_eq!(parse(&go(ns)), Some(ns));
        }
        assert_eq!(parse("2021-05-03 06:11:41 UTC"), Some(1_620_022_301_000_000_000));
        assert_eq!(parse(""), None);
    }
}
