//! Rolling upgrades: worker after worker is replaced by a worker with another configuration.

use super::Setting;
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// One worker's turn: the worker receives a request to stop, and each later process of the worker has the new
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The worker.
    pub worker: u32,
    /// The time between the worker's stop and the start of its replacement, in µs.
    #[serde(rename = "gap", with = "micros")]
    pub gap_us: u64,
}

/// The upgrade of a world, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpgradeFaults {
    /// In the order of time. A worker without a turn is never upgraded.
    pub turns: Vec<Upgrade>,
}

impl UpgradeFaults {
    /// Whether a fleet is upgraded.
    pub(crate) fn happens(draws: Draws) -> bool {
        draws.below("upgrade", 0, 4) == 0
    }

    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut faults = Self::default();
        if !Self::happens(draws) {
            return faults;
        }
        let mut roll = draws.roll("upgrade", 1);
        let mut at = roll.below(setting.length_us);
        for worker in 0..setting.workers as u32 {
            let gap_us = roll.magnitude(10_000, setting.lease_us.saturating_mul(2));
            // Some upgrades stop halfway.
            if roll.below(5) != 0 || worker == 0 {
                faults.turns.push(Upgrade { at, worker, gap_us });
            }
            at += roll.magnitude(10_000, setting.lease_us.saturating_mul(2));
            if at >= setting.length_us {
                break;
            }
        }
        faults
    }

    /// Whether processes of a worker started at `now` are upgraded.
    pub fn reached(&self, worker: u32, now: u64) -> bool {
        self.turns.iter().any(|turn| turn.worker == worker && turn.at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_upgraded_from_its_turn_on() {
        let turn = Upgrade { at: 10, worker: 1, gap_us: 5 };
        let faults = UpgradeFaults { turns: vec![turn] };
        assert_eq!([9, 10, 99].map(|now| faults.reached(1, now)), [false, true, true]);
        assert!(!faults.reached(0, 99));
    }
}
