//! Faults of shards without a checkpoint: a fleet begins with an empty table, changes its owners before any record is
//! processed, and uses clocks that were wrong from the beginning.
//!
//! A stop of the whole fleet is an interruption of every worker, a wrong clock is a step at the beginning, and an early
//! reshard is a reshard. So these faults lie in the lists of their own families. Silences alone belong to this family.

use super::{Faults, Interruption, InterruptionKind, Reshard, ReshardKind, Setting, WallStep};
use crate::draws::Draws;
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// A time without puts by producers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// The beginning, in µs.
    #[serde(with = "micros")]
    pub from: u64,
    /// The end, in µs; the end of the faults, if earlier.
    #[serde(with = "micros")]
    pub until: u64,
}

/// All silences and kinds of rows of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartFaults {
    /// In the order of their beginning.
    pub silences: Vec<Silence>,
    /// Workers create rows without moments, like workers of another library.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bare_rows: bool,
}

impl StartFaults {
    /// Whether producers put nothing now.
    pub fn is_silent(&self, now: u64) -> bool {
        self.silences.iter().any(|silence| silence.from <= now && now < silence.until)
    }
}

/// Adds the family to the drawn faults, in half of the worlds.
pub(super) fn add(faults: &mut Faults, draws: Draws, setting: Setting) {
    if !draws.coin("start", 0) || setting.length_us < 4 {
        return;
    }
    let lease = setting.lease_us.max(2);
    // No record arrives at first, so no checkpoint is stored. The fleet is away when the first records come.
    let until = draws.magnitude("start", 1, 2, (setting.length_us / 2).max(3));
    faults.start.silences.push(Silence { from: 0, until });
    let mut roll = draws.roll("start", 2);
    for n in 0..1 + roll.below(3) {
        let near = until.saturating_sub(roll.below(lease.saturating_mul(2)));
        let at = if n == 0 { near } else { roll.below(setting.length_us) };
        let kills = roll.below(2) == 0;
        let away = roll.magnitude(10_000, lease.saturating_mul(4));
        for worker in 0..setting.workers as u32 {
            let kind = match kills {
                true => InterruptionKind::Crash { down_us: away, loops: 0 },
                false => InterruptionKind::Replace { gap_us: away },
            };
            faults.process.interruptions.push(Interruption { at, worker, kind });
        }
    }
    faults.process.interruptions.sort_by_key(|interruption| interruption.at);
    faults.start.bare_rows = roll.below(4) == 0;
    if roll.below(2) == 0 {
        let steps = (0..setting.workers as u32).map(|worker| {
            // A clock may be ahead by less than the world's length. True time then overtakes the moment told by the
            // clock, and the moment lies in the past.
            let by = match roll.below(2) {
                0 => roll.magnitude(200, (setting.length_us / 1_000).max(201)),
                _ => roll.magnitude(1, 7_200_000),
            } as i64;
            WallStep { at: 0, worker, by_ms: if roll.below(2) == 0 { by } else { -by }, freeze: false }
        });
        faults.clock.steps.extend(steps);
        faults.clock.steps.sort_by_key(|step| step.at);
    }
    if roll.below(2) == 0 {
        let kind = if roll.below(2) == 0 { ReshardKind::Split } else { ReshardKind::Merge };
        // Before the table is filled, or a while after.
        let within = [300_000, 5_000_000][roll.below(2) as usize];
        let at = roll.below(setting.length_us.min(within));
        let pick = roll.below(1 << 31) as u32;
        faults.stream.reshards.push(Reshard { at, kind, pick });
        faults.stream.reshards.sort_by_key(|reshard| reshard.at);
    }
}
