//! The fate of a request and of its answer.

use super::family::family;
use super::{Chance, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

family! {
    /// Probabilities are in one of a thousand calls.
    pub struct CallFaults by |draws, setting| {
        let most = if draws.below("call-storm", 0, 4) == 0 { 300 } else { 40 };
    };

    /// An ordinary answer takes between half and twice this time, in µs.
    latency_us as "latency": u64 = 2_000, draws.magnitude("latency", 0, 500, 20_000);
    /// Slow calls.
    slow: u32, rate(draws, "slow", most);
    /// The delay of a slow call, in µs.
    slow_us as "slow_by": u64, draws.magnitude("slow", 2, 10_000, setting.lease_us);
    /// The request never arrives.
    lost_request: u32, rate(draws, "lost-request", most);
    /// The service executes the request, and the answer is lost.
    lost_answer: u32, rate(draws, "lost-answer", most);
    /// The request arrives after the client gave up.
    late: u32, rate(draws, "late", most);
    /// The time between the client's giving up and the arrival, in µs.
    late_us as "late_by": u64, draws.magnitude("late", 2, 10_000, setting.lease_us.saturating_mul(4));
    /// The service throttles the request.
    throttled: u32, rate(draws, "throttled", most);
    /// The answer is a 5xx, whether the request was executed or not.
    server_error: u32, rate(draws, "server-error", most);
    /// The service executes the request twice.
    twice: u32, rate(draws, "twice", most);
    /// No connection: certainly not executed.
    not_sent: u32, rate(draws, "not-sent", most);
    /// An unreadable answer.
    garbled: u32, rate(draws, "garbled", most / 4);
    /// The period of changes of the weather, in µs; 0: the weather never changes.
    weather_us as "weather": u64,
        if draws.coin("weather", 0) { draws.magnitude("weather", 1, 500_000, 60_000_000) } else { 0 };
}

impl CallFaults {
    /// Whether this family rests at `now`: one window of four is quiet.
    pub fn rests(&self, draws: Draws, now: u64) -> bool {
        self.weather_us != 0 && draws.below("weather-window", now / self.weather_us, 4) == 0
    }

    /// The ordinary arrival times of a request made at `now`, and of its answer.
    pub fn plain(&self, roll: &mut Roll, now: u64) -> (u64, u64) {
        let mut one_way = || roll.between(self.latency_us / 4, self.latency_us);
        let there = now + one_way();
        (there, there + one_way())
    }

    /// The fault drawn for a call, if any.
    pub fn chance(&self, roll: &mut Roll) -> Option<Chance> {
        let broken = roll.below(2) == 0;
        let executed = roll.below(2) == 0;
        let extra = roll.magnitude(1_000, self.slow_us);
        let by_us = roll.magnitude(1_000, self.late_us);
        let families = [
            (self.lost_request, Chance::LostRequest { broken }),
            (self.lost_answer, Chance::LostAnswer { broken }),
            (self.late, Chance::Late { by_us, broken }),
            (self.throttled, Chance::Throttled),
            (self.server_error, Chance::ServerError { executed }),
            (self.twice, Chance::Twice { after_us: extra, second: executed }),
            (self.not_sent, Chance::NotSent),
            (self.garbled, Chance::Garbled),
            // Either the request or the answer is slow.
            (
                self.slow,
                Chance::Slow {
                    request_us: if broken { extra } else { 0 },
                    answer_us: if broken { 0 } else { extra },
                },
            ),
        ];
        families.into_iter().find_map(|(per_mille, chance)| roll.happens(per_mille).then_some(chance))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fate, Landing, Reach};
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
            ..CallFaults::default()
        }
    }

    fn fate(faults: &CallFaults, roll: &mut Roll, now: u64, give_up: u64) -> (&'static str, Fate) {
        let (there, back) = faults.plain(roll, now);
        let chance = faults.chance(roll);
        let fate = chance.and_then(|chance| Fate::by(chance, there, back, give_up));
        (chance.map_or("none", Chance::family), fate.unwrap_or_else(|| Fate::plain(there, back)))
    }

    #[test]
    fn every_fate_occurs_and_no_answer_comes_before_its_execution() {
        let draws = Draws::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..2_000 {
            let (family, fate) = fate(&storm(), &mut draws.roll("t", n), 1_000, 9_000);
            seen.insert(family);
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
        let faults = CallFaults { late: 1_000, late_us: 10_000, ..CallFaults::default() };
        for n in 0..100 {
            let (_, fate) = fate(&faults, &mut Draws::new(2).roll("t", n), 0, 700_000);
            assert!(matches!(fate.reach, Reach::Once(at) if at > 700_000), "{fate:?}");
            assert!(!matches!(fate.landing, Landing::Answer { .. }), "{fate:?}");
        }
    }
}
