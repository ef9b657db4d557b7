//! Machines that are suspended: a snapshot of a virtual machine, the lid of a laptop, a frozen container.
//!
//! A suspended worker stands still for longer than a lease lasts, so that another worker takes its leases. Its
//! monotonic clock counts that time or stands. Its wall clock is set right at the wake-up, a while later, or never. One
//! world in two.

use super::{Setting, each};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// One suspension of one worker's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspension {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The worker on the machine.
    pub worker: u32,
    /// The length of the suspension, in µs.
    #[serde(rename = "for", with = "micros")]
    pub us: u64,
    /// The monotonic clock during the suspension.
    #[serde(default)]
    pub clock: Meanwhile,
    /// The wall clock after the suspension.
    #[serde(default)]
    pub wall: WallAfter,
}

/// The monotonic clock of a suspended machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meanwhile {
    /// The clock stands.
    #[default]
    Stands,
    /// The clock counts the time.
    Counts,
}

/// The wall clock of a machine after a suspension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WallAfter {
    /// The right time.
    #[default]
    Right,
    /// The time of the suspension, until the clock is set right.
    Late {
        /// The time between the wake-up and the correction, in µs.
        #[serde(rename = "by", with = "micros")]
        us: u64,
    },
    /// The time of the suspension, for good.
    Wrong,
}

/// All suspensions of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SuspensionFaults {
    /// In the order of time.
    pub suspensions: Vec<Suspension>,
}

impl SuspensionFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        let mut suspensions = each(draws, "suspended", 4, |roll| Suspension {
            at: roll.below(setting.length_us),
            worker: roll.below(setting.workers) as u32,
            us: roll.between(setting.lease_us, setting.lease_us.saturating_mul(4)),
            clock: match roll.below(4) {
                0 => Meanwhile::Counts,
                _ => Meanwhile::Stands,
            },
            wall: wall_after(roll, setting.lease_us),
        });
        suspensions.sort_by_key(|suspension| suspension.at);
        Self { suspensions }
    }
}

fn wall_after(roll: &mut Roll, lease_us: u64) -> WallAfter {
    match roll.below(4) {
        0 => WallAfter::Wrong,
        1 => WallAfter::Late { us: roll.magnitude(10_000, lease_us) },
        _ => WallAfter::Right,
    }
}
