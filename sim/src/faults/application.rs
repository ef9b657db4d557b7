//! The application: slow, failing, hung, and arbitrary in its checkpoints.

use super::{Chance, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// The behaviour of handlers. Probabilities are in one of a thousand batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApplicationFaults {
    /// A batch takes up to this long, in µs.
    #[serde(rename = "batch", with = "micros")]
    pub batch_us: u64,
    /// Slow batches.
    pub slow: u32,
    /// The delay of a slow batch, in µs.
    #[serde(rename = "slow_by", with = "micros")]
    pub slow_us: u64,
    /// The handler returns an error, somewhere in the batch.
    pub fails: u32,
    /// The handler hangs and ignores an abort.
    pub hangs: u32,
    /// The length of a hang, in µs.
    #[serde(rename = "hang_for", with = "micros")]
    pub hang_us: u64,
    /// The handler waits for an event that never comes, and stops on an abort.
    #[serde(skip_serializing_if = "is_zero")]
    pub waits: u32,
    /// The length of the wait, in µs.
    #[serde(rename = "wait_for", with = "micros", skip_serializing_if = "none_of_it")]
    pub wait_us: u64,
    /// The handler ignores an abort and finishes its batch, like a handler without a yield point.
    pub deaf: u32,
    /// The additional time of a deaf handler, in µs.
    #[serde(rename = "deaf_for", with = "micros")]
    pub deaf_us: u64,
    /// The handler reports progress before the end of its batch.
    pub partial: u32,
    /// The handler requests a checkpoint.
    pub checkpoint: u32,
    /// The handler reports outdated progress, or progress of a former ownership.
    pub stale_call: u32,
    /// The handler repeats an old report, twice.
    pub says_again: u32,
    /// The shard of the batch is paused.
    pub pauses: u32,
    /// The length of a pause, in µs.
    #[serde(rename = "pause_for", with = "micros")]
    pub pause_us: u64,
    /// The handler keeps the batch and acknowledges the batch later.
    pub keeps: u32,
    /// The longest time for which a handler keeps a batch, in µs.
    #[serde(rename = "keep_for", with = "micros")]
    pub keep_us: u64,
    /// The handler gives a kept batch back.
    pub gives_back: u32,
    /// Records beyond any handler's ability, in a thousand.
    pub poison: u32,
    /// The time in which a handler heeds an abort, in µs.
    #[serde(rename = "abort", with = "micros")]
    pub abort_us: u64,
}

impl ApplicationFaults {
    pub(super) fn draw(draws: Draws, setting: Setting) -> Self {
        Self {
            batch_us: draws.magnitude("handler", 0, 100, 200_000),
            slow: rate(draws, "handler-slow", 100),
            slow_us: draws.magnitude("handler-slow", 2, 10_000, setting.lease_us.saturating_mul(2)),
            fails: rate(draws, "handler-fails", 100),
            hangs: rate(draws, "handler-hangs", 20),
            hang_us: draws.magnitude("handler-hangs", 2, 100_000, setting.lease_us.saturating_mul(4)),
            waits: rate(draws, "handler-waits", 20),
            wait_us: draws.magnitude("handler-waits", 2, 100_000, setting.lease_us.saturating_mul(4)),
            deaf: rate(draws, "handler-deaf", 20),
            deaf_us: draws.magnitude("handler-deaf", 2, 100_000, setting.lease_us.saturating_mul(3)),
            partial: rate(draws, "partial-ack", 1_000),
            checkpoint: rate(draws, "explicit-checkpoint", 1_000),
            stale_call: rate(draws, "stale-call", 50),
            says_again: rate(draws, "says-again", 50),
            pauses: pauses(draws),
            pause_us: draws.magnitude("shard-paused", 2, 10_000, setting.lease_us.saturating_mul(4)),
            keeps: rate(draws, "keeps", 1_000),
            keep_us: draws.magnitude("keeps", 2, 1_000, setting.lease_us.saturating_mul(2)),
            gives_back: rate(draws, "gives-back", 100),
            poison: poison(draws),
            abort_us: draws.magnitude("abort-time", 0, 100, 50_000),
        }
    }

    /// The chances drawn for the handling of a batch.
    pub fn chances(&self, roll: &mut Roll, found: &mut Vec<Chance>) {
        let by_us = roll.magnitude(1_000, self.slow_us);
        let for_us = roll.magnitude(1_000, self.hang_us);
        // Separate draws: no other draw shifts.
        let mut apart = Roll::clone(roll);
        let deaf_us = Roll::clone(roll).magnitude(1_000, self.deaf_us);
        let keep_us = apart.magnitude(1_000, self.keep_us);
        let families = [
            (self.slow, Chance::HandlerSlow { by_us }),
            (self.hangs, Chance::HandlerHangs { for_us }),
            (self.fails, Chance::HandlerFails),
            (self.partial, Chance::Partial),
            (self.checkpoint, Chance::Checkpoint),
            (self.stale_call, Chance::StaleCall),
            (self.deaf, Chance::HandlerDeaf { for_us: deaf_us }),
            (self.says_again, Chance::SaysAgain),
        ];
        for (per_mille, chance) in families {
            if roll.happens(per_mille) {
                found.push(chance);
            }
        }
        let wait_us = Roll::clone(&apart).magnitude(1_000, self.wait_us);
        let later = [
            (self.keeps, Chance::Keeps { for_us: keep_us }),
            (self.gives_back, Chance::GivesBack),
            (self.waits, Chance::HandlerWaits { for_us: wait_us }),
        ];
        for (per_mille, chance) in later {
            if apart.happens(per_mille) {
                found.push(chance);
            }
        }
    }

    /// Whether the shard of a batch is paused. Its draws are separate: no other draw shifts.
    pub fn chance_of_pause(&self, mut apart: Roll) -> Option<Chance> {
        let for_us = apart.magnitude(1_000, self.pause_us);
        apart.happens(self.pauses).then_some(Chance::ShardPaused { for_us })
    }
}

fn is_zero(per_mille: &u32) -> bool {
    *per_mille == 0
}

fn none_of_it(us: &u64) -> bool {
    *us == 0
}

/// In one of a thousand batches, in one world of eight.
fn pauses(draws: Draws) -> u32 {
    match draws.below("shard-paused", 0, 8) {
        0 => draws.magnitude("shard-paused", 1, 5, 200) as u32,
        _ => 0,
    }
}

/// In one world of six.
fn poison(draws: Draws) -> u32 {
    match draws.below("poison", 0, 6) {
        0 => draws.magnitude("poison", 1, 1, 100) as u32,
        _ => 0,
    }
}

impl Default for ApplicationFaults {
    /// Handlers without any fault.
    fn default() -> Self {
        Self {
            batch_us: 1_000,
            slow: 0,
            slow_us: 0,
            fails: 0,
            hangs: 0,
            hang_us: 0,
            waits: 0,
            wait_us: 0,
            deaf: 0,
            deaf_us: 0,
            partial: 0,
            checkpoint: 0,
            stale_call: 0,
            says_again: 0,
            pauses: 0,
            pause_us: 0,
            keeps: 0,
            keep_us: 0,
            gives_back: 0,
            poison: 0,
            abort_us: 1_000,
        }
    }
}
