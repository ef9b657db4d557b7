//! One batch in the hands of the application: its drawn faults, and its outcome.

use super::handler::refusal;
use super::poison::first_poisoned;
use super::stopped::Told;
use super::unpacking::Given;
use crate::faults::Chance;
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::world::context::Context;
use leasehold_engine::ids::{FencingToken, OpId};
use leasehold_engine::input::{Cause, Outcome, Refusal, Reply, Why};
use leasehold_engine::position::Position;

#[derive(Clone, Debug)]
pub(super) struct Handling {
    pub(super) op: OpId,
    pub(super) batch: OpId,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The part, if the handler received a single part.
    pub(super) only: Option<u64>,
    /// The handler received a single record of its batch.
    pub(super) alone: bool,
    /// The numbers of its records are not in order: a place among the records says nothing of earlier records.
    pub(super) unordered: bool,
    /// The record at which the handler reports progress, if not 0.
    pub(super) report_at: u64,
    pub(super) checkpoint: bool,
    pub(super) fails: bool,
    pub(super) stale_call: bool,
    pub(super) says_again: bool,
    /// The time for which the handler keeps the batch; 0: the handler keeps no batch.
    pub(super) keeps_us: u64,
    pub(super) gives_back: bool,
    /// The handler ignores an abort and finishes.
    pub(super) deaf: bool,
    pub(super) ends: Time,
    pub(super) deaf_until: Time,
    pub(super) give_up: Time,
    pub(super) told: Told,
    /// The application's pause of the shard, in µs; 0: no pause.
    pub(super) pause_us: u64,
}

impl Handling {
    pub(super) fn new((op, batch): (OpId, OpId), given: &Given, ends: Time, give_up: Time) -> Self {
        Self {
            op,
            batch,
            first: given.first,
            last: given.last,
            only: given.only(),
            alone: given.alone,
            unordered: false,
            report_at: 0,
            checkpoint: false,
            fails: false,
            stale_call: false,
            says_again: false,
            keeps_us: 0,
            gives_back: false,
            deaf: false,
            ends,
            deaf_until: 0,
            give_up,
            told: Told::Nothing,
            pause_us: 0,
        }
    }

    /// Applies the faults to the handling of a batch; `middle` is one of its records.
    pub(super) fn hit(&mut self, cx: &Context, chances: &[Chance], middle: u64) {
        let mut partial = false;
        for &chance in chances {
            match chance {
                Chance::HandlerSlow { by_us } => self.ends = self.ends.saturating_add(by_us),
                Chance::HandlerHangs { for_us } => {
                    self.ends = self.ends.saturating_add(for_us);
                    self.deaf_until = self.ends;
                }
                Chance::HandlerWaits { for_us } => self.ends = self.ends.saturating_add(for_us),
                Chance::HandlerDeaf { for_us } => {
                    self.ends = self.ends.saturating_add(for_us);
                    self.deaf = true;
                }
                Chance::SaysAgain => self.says_again = true,
                Chance::Keeps { for_us } => self.keeps_us = for_us,
                Chance::GivesBack => self.gives_back = true,
                Chance::HandlerFails => self.fails = true,
                Chance::Partial => partial = true,
                Chance::Checkpoint => self.checkpoint = true,
                Chance::StaleCall => self.stale_call = true,
                Chance::ShardPaused { for_us } => self.pause_us = for_us,
                _ => {}
            }
        }
        debug_assert!(self.ends >= cx.now(), "a handler ends after it began");
        self.report_at = if partial || self.fails { middle } else { 0 };
        self.ends = self.ends.min(self.give_up);
    }

    /// Applies records that no handler can process.
    pub(super) fn poison(&mut self, cx: &mut Context, shard: ShardNo, given: &Given) {
        if let Some(poisoned) = first_poisoned(cx, shard, given) {
            cx.mark("poison");
            self.fails = true;
            if self.report_at >= poisoned {
                self.report_at = given.up_to(poisoned - 1);
            }
        }
    }

    /// Whether the handler has processed all given records, and at least one.
    pub(super) fn is_done(&self, outcome: &Outcome) -> bool {
        let processed = matches!(outcome, Outcome::Applied(Reply::Processed | Reply::ProcessedThrough(_)));
        processed && self.first <= self.last
    }

    /// The outcome of the handling at this moment. `at`: the position of the only given part, or of the last.
    pub(super) fn outcome(&self, cx: &mut Context, at: Option<Position>) -> Outcome {
        let timed_out = self.told == Told::TimedOut;
        if self.told == Told::Aborted {
            cx.mark("handler-aborted");
            Outcome::Unknown(Cause::Cancelled)
        } else if cx.now() >= self.give_up {
            Outcome::Unknown(Cause::Timeout)
        } else if self.only.is_some() && (self.fails || timed_out || self.alone) && at.is_none() {
            // A record trimmed meanwhile has no position any more.
            refusal()
        } else if self.fails || timed_out {
            if timed_out {
                cx.mark("handler-timed-out");
            }
            let why = match at {
                Some(at) if self.only.is_some() => Why::RecordFailed(at),
                _ => Why::HandlerFailed,
            };
            failed(why, "the handler failed")
        } else if self.keeps_us > 0 && self.first <= self.last {
            Outcome::Applied(Reply::Kept)
        } else if self.alone && self.first <= self.last {
            at.map_or_else(refusal, |at| Outcome::Applied(Reply::ProcessedThrough(at)))
        } else {
            Outcome::Applied(Reply::Processed)
        }
    }
}

/// The fact for oracles and the outcome for the engine after the opening of a shard.
pub(super) fn opened(
    (told, confirms): (Told, bool), life: LifeNo, shard: ShardNo, token: FencingToken,
) -> (Fact, Outcome) {
    let token = token.0;
    if let Some(outcome) = told.outcome() {
        return (Fact::OpenFailed { life, shard, token }, outcome);
    }
    let reply = match confirms {
        true => Reply::ConfirmsEnd,
        false => Reply::Done,
    };
    (Fact::OpenDone { life, shard, token }, Outcome::Applied(reply))
}

/// The answer of a call that fails.
pub(super) fn failed(why: Why, detail: &str) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: detail.into() })
}
