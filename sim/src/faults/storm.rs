//! Times at which a service throttles nearly all requests.

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

/// All storms of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormFaults {
    /// In the order of their beginning.
    pub storms: Vec<Storm>,
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
        Self { storms }
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
        };
        let table = [9, 10, 15, 29, 30].map(|now| faults.rate(Service::Table, now));
        assert_eq!(table, [0, 700, 900, 900, 0]);
        assert_eq!(faults.rate(Service::Stream, 30), 1_000);
    }
}
