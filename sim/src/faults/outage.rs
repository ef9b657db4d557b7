//! Workers that cannot reach a service for a while.

use super::{Chance, Setting, churns, each, rate};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// The direction of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// No request arrives at the service.
    Requests,
    /// The service executes every request, and no answer comes back.
    Answers,
}

/// One cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// The worker that is cut off.
    pub worker: u32,
    /// Whether the worker cannot reach the lease table.
    pub table: bool,
    /// Whether the worker cannot reach the stream.
    pub stream: bool,
    /// The direction of the cut.
    pub direction: Direction,
    /// Whether the worker notices failures at once (no connection) instead of by timeout.
    pub fast: bool,
}

/// All cuts of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutageFaults {
    /// In the order of their beginning.
    pub outages: Vec<Outage>,
    /// Cuts from the table at critical moments: at the start of a batch, or when a lease is taken, created or ended. In
    /// one of a thousand of these moments.
    pub now: u32,
    /// The length of a cut at a critical moment, in µs.
    #[serde(rename = "now_for", with = "micros")]
    pub now_us: u64,
}

impl OutageFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let (mut now, mut now_us) = (
            rate(draws, "outage-now", 40),
            draws.magnitude("outage-now", 2, 10_000, setting.lease_us.saturating_mul(4)),
        );
        if churns(draws) {
            now = draws.between("outage-now", 3, 20, 200) as u32;
            now_us = setting.lease_us.saturating_mul(draws.between("outage-now", 4, 4, 40));
        }
        let mut outages = each(draws, "outage", 12, |roll| {
            let from = roll.below(setting.length_us);
            let length = roll.magnitude(setting.lease_us / 20, setting.lease_us.saturating_mul(4));
            let what = roll.below(4);
            Outage {
                from,
                until: from + length,
                worker: roll.below(setting.workers) as u32,
                table: what != 0,
                stream: what < 2,
                direction: if roll.below(3) == 0 { Direction::Answers } else { Direction::Requests },
                fast: roll.below(2) == 0,
            }
        });
        if setting.workers > 1 && draws.coin("swizzle", 0) {
            outages.extend(swizzle(draws, setting));
        }
        outages.sort_by_key(|outage| outage.from);
        Self { outages, now, now_us }
    }

    /// Whether a worker is cut off now.
    pub fn chance(&self, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.now);
        let for_us = roll.magnitude(1_000, self.now_us);
        happens.then_some(Chance::Cut { for_us })
    }
}

/// Some workers are cut off one after another, and come back one by one in a different order.
fn swizzle(draws: Draws, setting: Setting) -> Vec<Outage> {
    let mut roll = draws.roll("swizzle", 1);
    let most = setting.workers.min(8);
    let count = roll.between(2, most) as usize;
    let mut order = |of: Vec<u32>| {
        let mut keyed: Vec<(u64, u32)> = of.into_iter().map(|worker| (roll.bits(), worker)).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, worker)| worker).collect::<Vec<_>>()
    };
    let mut leaving = order((0..setting.workers as u32).collect());
    leaving.truncate(count);
    let returning = order(leaving.clone());
    let from = roll.below(setting.length_us);
    let lease = setting.lease_us;
    let apart = roll.magnitude(lease / 20, lease);
    let all_gone = from + apart * count as u64 + roll.magnitude(lease / 20, lease * 2);
    let what = roll.below(4);
    let fast = roll.below(2) == 0;
    let place = |worker: &u32| returning.iter().position(|back| back == worker).unwrap_or(0) as u64;
    (0..)
        .zip(&leaving)
        .map(|(n, worker)| Outage {
            from: from + apart * n,
            until: all_gone + apart * place(worker),
            worker: *worker,
            table: what != 0,
            stream: what < 2,
            direction: Direction::Requests,
            fast,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_swizzle_cuts_off_one_by_one_and_ends_in_another_order() {
        let setting = Setting {
            workers: 6,
            streams: 1,
            shards: 1,
            length_us: 60_000_000,
            lease_us: 4_000_000,
            table_timeout_us: 400_000,
            rate_ppm: 0,
        };
        let mut reordered = 0;
        for seed in 0..50 {
            let outages = swizzle(Draws::new(seed), setting);
            let workers: BTreeSet<u32> = outages.iter().map(|outage| outage.worker).collect();
            assert!(workers.len() == outages.len() && outages.len() >= 2, "{outages:?}");
            assert!(outages.is_sorted_by(|one, next| one.from < next.from));
            let last = outages.iter().map(|outage| outage.from).max();
            assert!(outages.iter().all(|outage| Some(outage.until) > last), "{outages:?}");
            let ends: BTreeSet<u64> = outages.iter().map(|outage| outage.until).collect();
            assert_eq!(ends.len(), outages.len());
            reordered += u32::from(!outages.is_sorted_by_key(|outage| outage.until));
        }
        assert!(reordered > 20, "only {reordered} of 50 came back in another order");
    }
}
