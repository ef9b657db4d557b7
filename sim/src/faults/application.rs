//! The application: slow, failing, hung, and arbitrary in its checkpoints.

use super::family::family;
use super::{Chance, Setting, rate};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

family! {
    /// The behaviour of handlers. Probabilities are in one of a thousand batches.
    pub struct ApplicationFaults by |draws, setting|;

    /// A batch takes up to this long, in µs.
    batch_us as "batch": u64 = 1_000, draws.magnitude("handler", 0, 100, 200_000);
    /// Slow batches.
    slow: u32, rate(draws, "handler-slow", 100);
    /// The delay of a slow batch, in µs.
    slow_us as "slow_by": u64, draws.magnitude("handler-slow", 2, 10_000, setting.lease_us.saturating_mul(2));
    /// The handler returns an error, somewhere in the batch.
    fails: u32, rate(draws, "handler-fails", 100);
    /// The handler hangs and ignores an abort.
    hangs: u32, rate(draws, "handler-hangs", 20);
    /// The length of a hang, in µs.
    hang_us as "hang_for": u64, draws.magnitude("handler-hangs", 2, 100_000, setting.lease_us.saturating_mul(4));
    /// The handler waits for an event that never comes, and stops on an abort.
    #[serde(skip_serializing_if = "super::is_plain")]
    waits: u32, rate(draws, "handler-waits", 20);
    /// The length of the wait, in µs.
    #[serde(skip_serializing_if = "super::is_plain")]
    wait_us as "wait_for": u64, draws.magnitude("handler-waits", 2, 100_000, setting.lease_us.saturating_mul(4));
    /// The handler ignores an abort and finishes its batch, like a handler without a yield point.
    deaf: u32, rate(draws, "handler-deaf", 20);
    /// The additional time of a deaf handler, in µs.
    deaf_us as "deaf_for": u64, draws.magnitude("handler-deaf", 2, 100_000, setting.lease_us.saturating_mul(3));
    /// The handler reports progress before the end of its batch.
    partial: u32, rate(draws, "partial-ack", 1_000);
    /// The handler requests a checkpoint.
    checkpoint: u32, rate(draws, "explicit-checkpoint", 1_000);
    /// The handler reports outdated progress, or progress of a former ownership.
    stale_call: u32, rate(draws, "stale-call", 50);
    /// The handler repeats an old report, twice.
    says_again: u32, rate(draws, "says-again", 50);
    /// The shard of the batch is paused.
    pauses: u32, pauses(draws);
    /// The length of a pause, in µs.
    pause_us as "pause_for": u64, draws.magnitude("shard-paused", 2, 10_000, setting.lease_us.saturating_mul(4));
    /// The handler keeps the batch and acknowledges the batch later.
    keeps: u32, rate(draws, "keeps", 1_000);
    /// The longest time for which a handler keeps a batch, in µs.
    keep_us as "keep_for": u64, draws.magnitude("keeps", 2, 1_000, setting.lease_us.saturating_mul(2));
    /// The handler gives a kept batch back.
    gives_back: u32, rate(draws, "gives-back", 100);
    /// Records beyond any handler's ability, in a thousand.
    poison: u32, poison(draws);
    /// The time in which a handler heeds an abort, in µs.
    abort_us as "abort": u64 = 1_000, draws.magnitude("abort-time", 0, 100, 50_000);
}

impl ApplicationFaults {
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
