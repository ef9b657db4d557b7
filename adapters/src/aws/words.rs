//! A service's words, made fit to be kept: limited in length, and without texts showing credentials.

use super::sent::Sent;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::time::Wall;
use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

/// So many characters of a sentence are kept.
const MOST: usize = 500;

/// Where a sentence about a wrong signature begins to repeat the request: its headers, and among them the session token.
const SECRETS: [&str; 3] = ["The Canonical String", "String-to-Sign", "x-amz-security-token"];

/// A sentence of a service.
pub(super) fn said(text: &str) -> Cow<'_, str> {
    let secret = SECRETS.iter().filter_map(|mark| text.find(mark)).min();
    let shown = secret.map_or(text, |at| text[..at].trim_end());
    let long = shown.char_indices().nth(MOST).map(|(at, _)| at);
    match (long, secret) {
        (Some(at), _) => Cow::Owned(format!("{}…", &shown[..at])),
        (None, Some(_)) => Cow::Owned(format!("{shown} (the rest repeats the request, and is left out)")),
        (None, None) => Cow::Borrowed(text),
    }
}

/// An answer that cannot be read, and why.
pub(super) fn garbled(sent: &Sent, expected: &str, found: impl fmt::Display) -> Outcome {
    sent.failed(format!("expected {expected}, found {}", said(&found.to_string())));
    Outcome::Unknown(Cause::Garbled)
}

/// How far the clock of this host is off, as far as the answer tells: what follows the service's own words. `sent`: when the request
/// was sent, by that clock. `date`: the answer's header.
pub(super) fn of_clock(sent: Option<SystemTime>, date: Option<&str>) -> String {
    let date = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
    let (Some(sent), Some(date)) = (sent, date) else {
        return "; the answer does not tell by how much the clock is off".to_owned();
    };
    let (ours, theirs) = (DateTime::from(sent).secs(), date.secs());
    let off = match ours - theirs {
        // An answer takes a while, and dates have no fractions.
        -2..=2 => {
            "the two agree now, so the clock was set right meanwhile, or something between changes requests"
                .to_owned()
        }
        ahead @ 3.. => format!("the clock is {} ahead", span(ahead.unsigned_abs())),
        behind => format!("the clock is {} behind", span(behind.unsigned_abs())),
    };
    format!(
        "; the answer is dated {}, and the clock of this host said {}: {off}",
        Wall(theirs.saturating_mul(1_000)),
        Wall(ours.saturating_mul(1_000)),
    )
}

/// A number of seconds for people.
fn span(secs: u64) -> String {
    let (hours, mins, secs) = (secs / 3_600, secs / 60 % 60, secs % 60);
    match (hours, mins) {
        (0, 0) => format!("{secs} s"),
        (0, _) => format!("{mins} min {secs} s"),
        (..48, _) => format!("{hours} h {mins} min"),
        _ => format!("{} days", hours / 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_sentence_is_cut_where_nobody_reads_on() {
        assert_eq!(said("no"), "no");
        let long = said(&"é".repeat(501)).into_owned();
        assert_eq!(long, format!("{}…", "é".repeat(500)));
        assert_eq!(said(&"é".repeat(500)), "é".repeat(500));
    }

    #[test]
    fn a_repeated_request_is_left_out() {
        let text = "The request signature we calculated does not match. \n\nThe Canonical String for this request should have been\n\
                    'POST\n/\n\nx-amz-security-token:SECRET'";
        let kept = said(text);
        assert!(kept.starts_with("The request signature we calculated does not match. ("), "{kept}");
        assert!(!kept.contains("SECRET"), "{kept}");
        assert!(!said("x-amz-security-token:SECRET").contains("SECRET"));
    }

    #[test]
    fn how_far_a_clock_is_off_follows_from_the_date_of_the_answer() {
        let at = |secs| Some(UNIX_EPOCH + Duration::from_secs(secs));
        let date = Some("Fri, 27 Nov 2026 05:00:00 GMT");
        let right = 1_795_755_600;
        assert_eq!(
            of_clock(at(right - 605), date),
            "; the answer is dated 2026-11-27T05:00:00Z, and the clock of this host said 2026-11-27T04:49:55Z: the clock is \
             10 min 5 s behind"
        );
        assert!(of_clock(at(right + 7_200), date).ends_with("the clock is 2 h 0 min ahead"));
        assert!(of_clock(at(right + 3), date).ends_with("the clock is 3 s ahead"));
        assert!(of_clock(at(right - 86_400 * 400), date).ends_with("400 days behind"));
        assert!(of_clock(at(right), date).contains("the two agree now"));
        for (sent, date) in [(None, date), (at(right), None), (at(right), Some("today"))] {
            assert!(of_clock(sent, date).contains("does not tell"));
        }
    }
}
