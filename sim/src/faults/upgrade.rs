//! Rolling upgrades: one worker after the other is replaced by one that is configured otherwise.

use super::Setting;
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// One worker's turn: it is told to stop, and every process of it that starts from then on is configured anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// When, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// Whose.
    pub worker: u32,
    /// Until its replacement is started, after it has stopped, in µs.
    #[serde(rename = "gap", with = "micros")]
    pub gap_us: u64,
}

/// The upgrade of a world, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpgradeFaults {
    /// In the order of time. Who is not in it is never upgraded.
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

    /// Whether the processes of a worker that start at `now` are upgraded.
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
