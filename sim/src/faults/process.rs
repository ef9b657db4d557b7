//! Processes that die, stand still, come back, or are replaced in good order.

use super::family::family;
use super::{Chance, Deed, Setting, rate, size};
use crate::draws::{Draws, Roll};
use crate::span::micros;
use serde::{Deserialize, Serialize};

/// One interruption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruption {
    /// The time, in µs.
    #[serde(with = "micros")]
    pub at: u64,
    /// The worker that is interrupted.
    pub worker: u32,
    /// The kind of the interruption.
    pub kind: InterruptionKind,
}

/// The kinds of a worker's interruptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum InterruptionKind {
    /// The worker dies, and starts again under its name after this time, `loops` times in a row.
    Crash {
        /// The time until the restart, in µs.
        #[serde(rename = "down", with = "micros")]
        down_us: u64,
        /// The number of further deaths right after the start.
        #[serde(default)]
        loops: u32,
    },
    /// The worker stands still (a collector, a suspended machine): neither inputs nor the application move.
    Pause {
        /// The length of the pause, in µs.
        #[serde(rename = "for", with = "micros")]
        us: u64,
    },
    /// The worker's handlers block every thread of their runtime: the worker continues, and no handler does.
    Block {
        /// The length of the block, in µs.
        #[serde(rename = "for", with = "micros")]
        us: u64,
    },
    /// The worker receives a request to stop, and its replacement starts this long after the stop.
    Replace {
        /// In µs.
        #[serde(rename = "gap", with = "micros")]
        gap_us: u64,
    },
}

family! {
    /// All interruptions of a world.
    pub struct ProcessFaults by |draws, setting|;

    /// In the order of time.
    interruptions: Vec<Interruption> = Vec::new(), interruptions(draws, setting);
    /// After the faults, handlers of workers outside the core block every thread of their runtime for ever.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    blocked_for_ever: bool = false, !blocks(draws, setting).is_empty() && draws.coin("block-for-ever", 0);
    /// Crashes at a critical moment: while a write is under way. In one of a thousand writes.
    crash_on_write: u32, rate(draws, "crash-on-write", 20);
    /// The most crashes during writes.
    crash_on_write_most: u32, draws.magnitude("crash-on-write", 2, 1, 8) as u32;
    /// Crashes while a take is under way, or right after. In one of a thousand takes.
    #[serde(skip_serializing_if = "super::is_plain")]
    crash_on_take: u32, crash_on_take(draws);
    /// Workers with a request to stop right after a take, in one of a thousand takes.
    stop_on_take: u32, rate(draws, "stop-on-take", 400);
    /// Pauses exactly between an answer's arrival and its handling. In one of a thousand answers.
    pause_on_answer: u32, rate(draws, "pause-on-answer", 10);
    /// The length of a pause on an answer, in µs.
    pause_us as "pause": u64,
        draws.magnitude("pause-on-answer", 2, 10_000, setting.lease_us.saturating_mul(2));
}

fn interruptions(draws: Draws, setting: Setting) -> Vec<Interruption> {
    let mut interruptions = Vec::new();
    let mut add = |family: &'static str, most: u64, kind: &dyn Fn(u64, bool) -> InterruptionKind| {
        for n in 0..size(draws, family, 1, most).unwrap_or(0) {
            let mut roll = draws.roll(family, n + 3);
            let at = roll.below(setting.length_us);
            let worker = roll.below(setting.workers) as u32;
            let length = roll.magnitude(10_000, setting.lease_us.saturating_mul(3));
            interruptions.push(Interruption { at, worker, kind: kind(length, roll.below(4) == 0) });
        }
    };
    add("crash", 10, &|length, again| InterruptionKind::Crash {
        down_us: length,
        loops: if again { 5 } else { 0 },
    });
    add("pause", 20, &|us, _| InterruptionKind::Pause { us });
    add("replace", 8, &|gap_us, _| InterruptionKind::Replace { gap_us });
    interruptions.extend(blocks(draws, setting));
    interruptions.sort_by_key(|interruption| interruption.at);
    interruptions
}

/// In four of ten worlds, workers die during up to three of ten takes. All worlds with unique names have such deaths:
/// a returning worker trusts its name.
fn crash_on_take(draws: Draws) -> u32 {
    match unique_names(draws) || draws.below("crash-on-take", 0, 8) == 0 {
        true => draws.magnitude("crash-on-take", 1, 10, 300) as u32,
        false => 0,
    }
}

/// Whether the names of workers are unique: in a third of the worlds.
pub(crate) fn unique_names(draws: Draws) -> bool {
    draws.below("unique-names", 0, 3) == 0
}

/// Handlers that block every thread of their runtime, in one world of four.
fn blocks(draws: Draws, setting: Setting) -> Vec<Interruption> {
    if draws.below("block", 0, 4) > 0 {
        return Vec::new();
    }
    let block = |n| {
        let mut roll = draws.roll("block", n + 3);
        let (at, worker) = (roll.below(setting.length_us), roll.below(setting.workers) as u32);
        let us = roll.between(setting.lease_us / 4, setting.lease_us.saturating_mul(5));
        let kind = InterruptionKind::Block { us };
        Interruption { at, worker, kind }
    };
    (0..draws.magnitude("block", 1, 1, 4)).map(block).collect()
}

impl ProcessFaults {
    /// The number of times at which handlers block every thread of their runtime, and the longest block, in µs.
    pub fn blocks(&self) -> (u32, u64) {
        let spans = self.interruptions.iter().filter_map(|interruption| match interruption.kind {
            InterruptionKind::Block { us } => Some(us),
            _ => None,
        });
        let spans: Vec<u64> = spans.collect();
        (spans.len() as u32, spans.into_iter().max().unwrap_or(0))
    }

    /// Whether a worker dies while its write is under way. `way_us`: the time of the write; `lease_us`: the length of a
    /// lease; both in µs.
    pub fn chance_of_crash(&self, deed: Deed, roll: &mut Roll, way_us: u64, lease_us: u64) -> Option<Chance> {
        let happens = roll.happens(match deed {
            Deed::Take => self.crash_on_write.max(self.crash_on_take),
            _ => self.crash_on_write,
        });
        let chance = Chance::Crash {
            after_us: roll.between(0, way_us),
            down_us: roll.magnitude(10_000, lease_us * 2),
        };
        happens.then_some(chance)
    }

    /// Whether a worker receives a request to stop soon after a take. `lease_us`: the length of a lease, in µs.
    pub fn chance_of_stop(&self, roll: &mut Roll, lease_us: u64) -> Option<Chance> {
        let happens = roll.happens(self.stop_on_take);
        let chance =
            Chance::Stop { after_us: roll.below(lease_us), gap_us: roll.magnitude(10_000, lease_us * 3) };
        happens.then_some(chance)
    }

    /// Whether a worker stands still when an answer arrives.
    pub fn chance_of_pause(&self, roll: &mut Roll) -> Option<Chance> {
        let happens = roll.happens(self.pause_on_answer);
        let for_us = roll.magnitude(1_000, self.pause_us);
        happens.then_some(Chance::Pause { for_us })
    }
}
