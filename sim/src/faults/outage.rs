//! Workers that cannot reach a service for a while.

use super::{Chance, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::scenario::span::micros;
use serde::{Deserialize, Serialize};

/// Which way is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Nothing arrives at the service.
    Requests,
    /// Everything is executed, no answer comes back.
    Answers,
}

/// One cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// From, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// Until, in µs.
    #[serde(with = "micros")]
    pub until: u64,
    /// Whose.
    pub worker: u32,
    /// Whether the lease table is out of reach.
    pub table: bool,
    /// Whether the stream is.
    pub stream: bool,
    /// Which way.
    pub direction: Direction,
    /// Whether failures are noticed at once (no connection) instead of by timeout.
    pub fast: bool,
}

/// All cuts of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutageFaults {
    /// In the order of their beginning.
    pub outages: Vec<Outage>,
    /// Cuts from the table at moments that matter: as a batch is handed over, or a lease is taken, created or ended. In one
    /// of a thousand of these.
    pub now: u32,
    /// How long such a cut lasts, in µs.
    #[serde(rename = "now_for", with = "micros")]
    pub now_us: u64,
}

impl OutageFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut faults = Self {
            outages: Vec::new(),
            now: rate(draws, "outage-now", 40),
            now_us: draws.magnitude("outage-now", 2, 10_000, setting.lease_us.saturating_mul(4)),
        };
        if !draws.coin("outage", 0) {
            return faults;
        }
        let count = draws.magnitude("outage", 1, 1, 12);
        let mut outages: Vec<Outage> = (0..count)
            .map(|n| {
                let mut roll = draws.roll("outage-each", n);
                let from = roll.below(setting.length_us);
                let length = roll.magnitude(setting.lease_us / 20, setting.lease_us.saturating_mul(4));
                let what = roll.below(4);
                Outage {
                    from,
                    until: from + length,
                    worker: roll.below(setting.workers) as u32,
                    table: what != 0,
                    stream: what < 2,
                    direction: if roll.below(3) == 0 {
                        Direction::Answers
                    } else {
                        Direction::Requests
                    },
                    fast: roll.below(2) == 0,
                }
            })
            .collect();
        outages.sort_by_key(|outage| outage.from);
        faults.outages = outages;
        faults
    }

    /// Whether chance cuts a worker off now.
    pub fn chance(&self, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.now);
        let for_us = roll.magnitude(1_000, self.now_us);
        happens.then_some(Chance::Cut { for_us })
    }
}
