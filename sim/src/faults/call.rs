//! What happens to one request on its way, and to its answer.

use super::{Setting, rate};
use crate::draws::{Draws, Roll};
use serde::Serialize;

/// Probabilities are in one of a thousand calls.
#[derive(Clone, Debug, Serialize)]
pub struct CallFaults {
    /// An ordinary answer takes from half to twice of this.
    pub latency_us: u64,
    /// Slow ones.
    pub slow: u32,
    /// How slow.
    pub slow_us: u64,
    /// Never arrives.
    pub lost_request: u32,
    /// Is executed, and nobody learns of it.
    pub lost_answer: u32,
    /// Arrives after the client gave up.
    pub late: u32,
    /// How much after.
    pub late_us: u64,
    /// Turned away.
    pub throttled: u32,
    /// Answered with a 5xx, executed or not.
    pub server_error: u32,
    /// Executed twice.
    pub twice: u32,
    /// No connection: certainly not executed.
    pub not_sent: u32,
    /// An answer nobody can read.
    pub garbled: u32,
    /// Every so long, the weather may change; 0: it never does.
    pub weather_us: u64,
}

/// Where a request gets to, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nowhere.
    Never,
    /// The service executes it at this time.
    Once(u64),
    /// The service executes it at both times.
    Twice(u64, u64),
}

/// What the worker is told, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// The service's answer to the first or the second execution.
    Answer {
        /// When.
        at: u64,
        /// Whether the second execution's.
        second: bool,
    },
    /// Certainly not executed, by throttling.
    Throttled(u64),
    /// Certainly not executed, for want of a connection.
    NotSent(u64),
    /// A 5xx.
    ServerError(u64),
    /// The connection broke.
    Broken(u64),
    /// An answer that cannot be read.
    Garbled(u64),
    /// Nothing, until it gives up.
    Silence,
}

/// The whole way of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The request.
    pub reach: Reach,
    /// The answer.
    pub landing: Landing,
    /// The family that did it, for the marks.
    pub fault: Option<&'static str>,
}

impl CallFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let most = if draws.below("call-storm", 0, 4) == 0 {
            300
        } else {
            40
        };
        Self {
            latency_us: draws.magnitude("latency", 0, 500, 20_000),
            slow: rate(draws, "slow", most),
            slow_us: draws.magnitude("slow", 2, 10_000, setting.lease_us),
            lost_request: rate(draws, "lost-request", most),
            lost_answer: rate(draws, "lost-answer", most),
            late: rate(draws, "late", most),
            late_us: draws.magnitude("late", 2, 10_000, setting.lease_us.saturating_mul(4)),
            throttled: rate(draws, "throttled", most),
            server_error: rate(draws, "server-error", most),
            twice: rate(draws, "twice", most),
            not_sent: rate(draws, "not-sent", most),
            garbled: rate(draws, "garbled", most / 4),
            weather_us: if draws.coin("weather", 0) {
                draws.magnitude("weather", 1, 500_000, 60_000_000)
            } else {
                0
            },
        }
    }

    /// Answers that take their ordinary time, and nothing else.
    pub fn none() -> Self {
        Self {
            latency_us: 2_000,
            slow: 0,
            slow_us: 0,
            lost_request: 0,
            lost_answer: 0,
            late: 0,
            late_us: 0,
            throttled: 0,
            server_error: 0,
            twice: 0,
            not_sent: 0,
            garbled: 0,
            weather_us: 0,
        }
    }

    /// Whether this family rests at `now`: one window of four is quiet.
    pub fn rests(&self, draws: Draws, now: u64) -> bool {
        self.weather_us != 0 && draws.below("weather-window", now / self.weather_us, 4) == 0
    }

    /// An ordinary way: there and back.
    pub fn plain(&self, roll: &mut Roll, now: u64) -> Fate {
        let there = now + self.one_way(roll);
        let back = there + self.one_way(roll);
        Fate {
            reach: Reach::Once(there),
            landing: Landing::Answer {
                at: back,
                second: false,
            },
            fault: None,
        }
    }

    /// The fate of a call made at `now`, which its caller gives up at `give_up`. Reads cannot be executed late.
    pub fn fate(&self, roll: &mut Roll, now: u64, give_up: u64) -> Fate {
        let plain = self.plain(roll, now);
        let (Reach::Once(there), Landing::Answer { at: back, .. }) = (plain.reach, plain.landing) else {
            return plain;
        };
        let broken = roll.below(2) == 0;
        let executed = roll.below(2) == 0;
        let extra = roll.magnitude(1_000, self.slow_us);
        let late = roll.magnitude(1_000, self.late_us);
        let fate = |fault, reach, landing| Fate {
            reach,
            landing,
            fault: Some(fault),
        };
        let silence = |at| {
            if broken {
                Landing::Broken(at)
            } else {
                Landing::Silence
            }
        };
        if roll.happens(self.lost_request) {
            fate("lost-request", Reach::Never, silence(back))
        } else if roll.happens(self.lost_answer) {
            fate("lost-answer", Reach::Once(there), silence(back))
        } else if roll.happens(self.late) {
            fate("late", Reach::Once(give_up.max(there) + late), silence(back))
        } else if roll.happens(self.throttled) {
            fate("throttled", Reach::Never, Landing::Throttled(back))
        } else if roll.happens(self.server_error) {
            let reach = if executed {
                Reach::Once(there)
            } else {
                Reach::Never
            };
            fate("server-error", reach, Landing::ServerError(back))
        } else if roll.happens(self.twice) {
            let again = there + extra;
            let landing = Landing::Answer {
                at: if executed { again.max(back) } else { back },
                second: executed,
            };
            fate("twice", Reach::Twice(there, again), landing)
        } else if roll.happens(self.not_sent) {
            fate("not-sent", Reach::Never, Landing::NotSent(there))
        } else if roll.happens(self.garbled) {
            fate("garbled", Reach::Once(there), Landing::Garbled(back))
        } else if roll.happens(self.slow) {
            // The request may be slow, or the answer, or a part of each.
            let there = there + if broken { extra } else { 0 };
            let back = (back + extra).max(there);
            fate(
                "slow",
                Reach::Once(there),
                Landing::Answer {
                    at: back,
                    second: false,
                },
            )
        } else {
            plain
        }
    }

    fn one_way(&self, roll: &mut Roll) -> u64 {
        roll.between(self.latency_us / 4, self.latency_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storm() -> CallFaults {
        let p = 100;
        CallFaults {
            slow: p,
            slow_us: 50_000,
            lost_request: p,
            lost_answer: p,
            late: p,
            late_us: 50_000,
            throttled: p,
            server_error: p,
            twice: p,
            not_sent: p,
            garbled: p,
            ..CallFaults::none()
        }
    }

    #[test]
    fn every_fate_occurs_and_no_answer_comes_before_its_execution() {
        let draws = Draws::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..2_000 {
            let fate = storm().fate(&mut draws.roll("t", n), 1_000, 9_000);
            seen.insert(fate.fault.unwrap_or("none"));
            if let Landing::Answer { at, second } = fate.landing {
                let executed = match fate.reach {
                    Reach::Once(at) => at,
                    Reach::Twice(first, again) => {
                        if second {
                            again
                        } else {
                            first
                        }
                    }
                    Reach::Never => panic!("an answer to a request that never arrived"),
                };
                assert!(executed >= 1_000 && at >= executed, "{fate:?}");
            }
        }
        assert_eq!(seen.len(), 10, "{seen:?}");
    }

    #[test]
    fn a_late_request_lands_after_the_caller_gave_up() {
        let faults = CallFaults {
            late: 1_000,
            late_us: 10_000,
            ..CallFaults::none()
        };
        for n in 0..100 {
            let fate = faults.fate(&mut Draws::new(2).roll("t", n), 0, 700_000);
            assert!(matches!(fate.reach, Reach::Once(at) if at > 700_000), "{fate:?}");
            assert!(!matches!(fate.landing, Landing::Answer { .. }), "{fate:?}");
        }
    }
}
