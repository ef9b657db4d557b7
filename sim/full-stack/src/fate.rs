//! The fate of one request. A fate is a function of the seed, the client, the operation and a count; so no fate depends
//! on the outcome of another.

use crate::plan::Weather;
use leasehold_sim::draws::{Draws, Roll};

/// The fate of a request. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The family of the fault; `fair` without a fault.
    pub family: &'static str,
    /// The time from the request's sending to its execution; absent: never executed.
    pub lands: Option<u64>,
    /// What the client sees.
    pub seen: Seen,
}

/// The client's view of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The answer, this long after the execution.
    Answer(u64),
    /// An error of the service that hides the request's fate: this long after the sending.
    Error(u64, u16, &'static str),
    /// A broken connection, this long after the sending.
    Reset(u64),
    /// No answer for the client's whole read timeout.
    ReadTimeout(u64),
    /// A refused connection.
    Refused(u64),
    /// Nothing.
    Nothing,
}

/// The families of faults.
pub const FAMILIES: [&str; 10] = [
    "lost-request",
    "lost-answer",
    "silence",
    "read-timeout",
    "slow",
    "throttled",
    "server-error",
    "refused",
    "late",
    "cut",
];

/// Draws fates.
#[derive(Clone, Copy, Debug)]
pub struct Fates {
    draws: Draws,
    weather: Weather,
}

/// A client's connection when it sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spell {
    /// Nothing bad happens.
    Fair,
    /// As the weather is.
    Faulty,
    /// The client is cut off.
    Cut,
}

impl Fates {
    /// The fates of a world.
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self { draws: Draws::new(seed), weather }
    }

    /// The fate of a client's `n`-th request.
    pub fn of(self, client: &str, operation: &str, n: u64, spell: Spell) -> Fate {
        let mut roll = self.draws.roll(&format!("fate {client} {operation}"), n);
        let there = roll.between(200, 12_000);
        let back = roll.between(200, 12_000);
        let fair = Fate { family: "fair", lands: Some(there), seen: Seen::Answer(back) };
        match spell {
            Spell::Fair => fair,
            Spell::Cut => cut_off(&mut roll, there),
            Spell::Faulty => self.struck(&mut roll, operation, there, back).unwrap_or(fair),
        }
    }

    fn struck(self, roll: &mut Roll, operation: &str, there: u64, back: u64) -> Option<Fate> {
        let weather = self.weather;
        let families = [
            ("lost-request", weather.lost_request),
            ("lost-answer", weather.lost_answer),
            ("silence", weather.silence),
            ("read-timeout", weather.read_timeout),
            ("slow", weather.slow),
            ("throttled", weather.throttled),
            ("server-error", weather.server_error),
            ("refused", weather.refused),
            ("late", weather.late),
        ];
        let mut left = roll.below(1000);
        let executed = roll.below(2) == 0;
        let long = roll.magnitude(20_000, 6_000_000);
        for (family, often) in families {
            let often = u64::from(often);
            if left >= often {
                left -= often;
                continue;
            }
            let landed = executed.then_some(there);
            let (lands, seen) = match family {
                "lost-request" => (None, Seen::Reset(there + back)),
                "lost-answer" => (Some(there), Seen::Reset(there + back)),
                "silence" => (landed, Seen::Nothing),
                "read-timeout" => (landed, Seen::ReadTimeout(long)),
                "slow" if executed => (Some(long), Seen::Answer(back)),
                "slow" => (Some(there), Seen::Answer(long)),
                "throttled" => (None, Seen::Error(there + back, 400, throttle_of(operation, executed))),
                "server-error" if long.is_multiple_of(3) => {
                    (landed, Seen::Error(there + back, 503, "ServiceUnavailable"))
                }
                "server-error" => (landed, Seen::Error(there + back, 500, "InternalServerError")),
                "refused" => (None, Seen::Refused(there)),
                _ => (Some(there + long), Seen::Reset(there)),
            };
            return Some(Fate { family, lands, seen });
        }
        None
    }
}

/// The connections of a cut-off client are refused, broken or silent; requests sent before the cut may have gone
/// through.
fn cut_off(roll: &mut Roll, there: u64) -> Fate {
    let (lands, seen) = match roll.below(4) {
        0 => (None, Seen::Refused(there)),
        1 => (None, Seen::Nothing),
        2 => (Some(there), Seen::Reset(there)),
        _ => (None, Seen::Reset(there)),
    };
    Fate { family: "cut", lands, seen }
}

fn throttle_of(operation: &str, other: bool) -> &'static str {
    match operation {
        "DescribeTable" | "CreateTable" if other => "ThrottlingException",
        "ListShards" | "DescribeStreamSummary" => "LimitExceededException",
        _ => "ProvisionedThroughputExceededException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn stormy() -> Weather {
        Weather {
            lost_request: 50,
            lost_answer: 50,
            silence: 50,
            read_timeout: 50,
            slow: 50,
            throttled: 50,
            server_error: 50,
            refused: 50,
            late: 50,
        }
    }

    #[test]
    fn every_family_strikes_and_fair_weather_is_fair() {
        let fates = Fates::new(1, stormy());
        let families: BTreeSet<_> =
            (0..2_000).map(|n| fates.of("w", "GetItem", n, Spell::Faulty).family).collect();
        for family in FAMILIES {
            assert!(families.contains(family) != (family == "cut"), "{family}");
        }
        assert!((0..2_000).all(|n| fates.of("w", "GetItem", n, Spell::Fair).family == "fair"));
        let answered = |n| matches!(fates.of("w", "GetItem", n, Spell::Cut).seen, Seen::Answer(_));
        assert!(!(0..2_000).any(answered));
    }

    #[test]
    fn a_throttled_request_is_never_executed_a_lost_answers_always() {
        let fates = Fates::new(2, stormy());
        for n in 0..2_000 {
            let fate = fates.of("w", "UpdateItem", n, Spell::Faulty);
            match fate.family {
                "throttled" | "lost-request" | "refused" => assert_eq!(fate.lands, None),
                "lost-answer" | "late" | "slow" | "fair" => assert!(fate.lands.is_some()),
                _ => {}
            }
        }
    }
}
