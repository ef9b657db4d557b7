//! Times at which a service throttles nearly all requests, or fails nearly all writes.

use super::{Setting, each};
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// A service of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The lease table.
    Table,
    /// The stream.
    Stream,
}

/// A time of throttling. A storm hits the requests of all workers alike, unlike single throttled requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storm {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// The service that throttles.
    pub service: Service,
    /// The throttled share, in a thousand requests.
    pub throttled: u32,
}

/// A time at which the lease table answers writes with a 5xx, and executes no such write. Reads are answered well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failing {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// The failed share, in a thousand writes.
    pub failed: u32,
}

/// All storms of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormFaults {
    /// In the order of their beginning.
    pub storms: Vec<Storm>,
    /// In the order of their beginning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<Failing>,
}

impl StormFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut storms = each(draws, "throttle-storm", 5, |roll| {
            let from = roll.below(setting.length_us);
            let length = roll.magnitude(setting.lease_us / 8, setting.lease_us.saturating_mul(3));
            Storm {
                from,
                until: from + length,
                service: if roll.below(3) == 0 { Service::Stream } else { Service::Table },
                throttled: roll.between(600, 1_000) as u32,
            }
        });
        storms.sort_by_key(|storm| storm.from);
        let mut failing = Vec::new();
        if draws.below("failing-writes", 0, 8) == 0 {
            failing = each(draws, "failing-writes", 3, |roll| {
                let from = roll.below(setting.length_us);
                let length = roll.magnitude(setting.lease_us, setting.lease_us.saturating_mul(8));
                Failing { from, until: from + length, failed: roll.between(900, 1_000) as u32 }
            });
            failing.sort_by_key(|failing| failing.from);
        }
        Self { storms, failing }
    }

    /// The number of failed writes of leases in a thousand at `now`.
    pub fn fails(&self, now: u64) -> u32 {
        let now = self.failing.iter().filter(|failing| (failing.from..failing.until).contains(&now));
        now.map(|failing| failing.failed).max().unwrap_or(0)
    }

    /// The number of throttled requests to a service in a thousand at `now`.
    pub fn rate(&self, service: Service, now: u64) -> u32 {
        self.storms
            .iter()
            .filter(|storm| storm.service == service && (storm.from..storm.until).contains(&now))
            .map(|storm| storm.throttled)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_storm_of_a_service_counts_while_it_lasts() {
        let storm = |from, until, service, throttled| Storm { from, until, service, throttled };
        let faults = StormFaults {
            storms: vec![
                storm(10, 20, Service::Table, 700),
                storm(15, 30, Service::Table, 900),
                storm(10, 40, Service::Stream, 1_000),
            ],
            failing: vec![Failing { from: 20, until: 30, failed: 800 }],
        };
        assert_eq!([19, 20, 29, 30].map(|now| faults.fails(now)), [0, 800, 800, 0]);
        let table = [9, 10, 15, 29, 30].map(|now| faults.rate(Service::Table, now));
        assert_eq!(table, [0, 700, 900, 900, 0]);
        assert_eq!(faults.rate(Service::Stream, 30), 1_000);
    }
}
