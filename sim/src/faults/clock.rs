//! Clocks that run at the wrong rate, and wall clocks that jump or stand still.

use super::{Setting, each};
use crate::draws::Draws;
use crate::span::{micros, millis};
use serde::{Deserialize, Serialize};

/// A change of one worker's wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WallStep {
    /// The time of the change, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The worker with this clock.
    pub worker: u32,
    /// The size of the change, in ms.
    #[serde(rename = "by", with = "millis")]
    pub by_ms: i64,
    /// Whether the clock stands still from then on.
    #[serde(default)]
    pub freeze: bool,
}

/// All clock faults of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockFaults {
    /// Each worker's rate error in ppm; missing: none.
    pub rate_ppm: Vec<i64>,
    /// Some rate is worse than the configuration promises: two workers may then both believe in their ownership of one
    /// lease.
    pub beyond: bool,
    /// Changes of wall clocks.
    pub steps: Vec<WallStep>,
}

impl ClockFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut faults = Self::default();
        if draws.coin("clock-rate", 0) {
            faults.beyond = draws.below("clock-rate", 1, 10) == 0;
            let most =
                if faults.beyond { (setting.rate_ppm * 4).clamp(20_000, 200_000) } else { setting.rate_ppm };
            // The extremes matter most, so half of the workers are at one of the two ends.
            faults.rate_ppm = (0..setting.workers)
                .map(|worker| {
                    let mut roll = draws.roll("clock-rate-of", worker);
                    let size = if roll.below(2) == 0 { most } else { roll.below(most + 1) } as i64;
                    if roll.below(2) == 0 { size } else { -size }
                })
                .collect();
        }
        faults.steps = each(draws, "wall-step", 10, |roll| {
            let by = roll.magnitude(1, 86_400_000) as i64;
            WallStep {
                at: roll.below(setting.length_us),
                worker: roll.below(setting.workers) as u32,
                by_ms: if roll.below(2) == 0 { by } else { -by },
                freeze: roll.below(4) == 0,
            }
        });
        faults.steps.sort_by_key(|step| step.at);
        faults
    }
}
