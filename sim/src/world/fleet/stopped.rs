//! Calls of the application that a worker stops: because the worker lets go of the shard, or because the call takes too
//! long.

use super::Fleet;
use super::handler::Stage;
use super::handling::failed;
use crate::names::shard_of;
use crate::oracles::Fact;
use crate::world::context::Context;
use leasehold_engine::ids::{FencingToken, LeaseKey};
use leasehold_engine::input::{Cause, Outcome, Why};

/// A message to a call. A call listens once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Told {
    /// Continue.
    #[default]
    Nothing,
    /// The worker lets go of the shard, or the shard may be another worker's.
    Aborted,
    /// The call has taken too long, and has failed.
    TimedOut,
}

impl Told {
    pub(super) fn hear(&mut self, told: Self) {
        if *self == Self::Nothing {
            *self = told;
        }
    }

    /// The outcome of a call that heard the message.
    pub(super) fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Nothing => None,
            Self::Aborted => Some(Outcome::Unknown(Cause::Cancelled)),
            Self::TimedOut => Some(failed(Why::HandlerFailed, "the call took too long")),
        }
    }
}

impl Fleet {
    /// A worker stops the running call of a shard.
    pub(super) fn stop_call(
        &mut self, cx: &mut Context, w: usize, lease: &LeaseKey, token: FencingToken, told: Told,
    ) {
        let Some(shard) = shard_of(lease) else { return };
        let (now, life) = (cx.now(), self.workers[w].life);
        let abort_us = cx.plan().faults.application.abort_us;
        let by = token.0;
        cx.fact(match told {
            Told::TimedOut => Fact::TimedOut { life, shard, token: by },
            _ => Fact::Aborted { life, shard, token: by },
        });
        let known = self.workers[w].adapter.consumers.get_mut(&shard);
        let Some(consumer) = known.filter(|known| known.token == token) else {
            return;
        };
        match &mut consumer.stage {
            Stage::Opening { told: heard, .. } => heard.hear(told),
            Stage::Flushing(flushing) => flushing.told.hear(told),
            Stage::Idle => {}
            Stage::SettingAside(aside) => aside.told.hear(told),
            Stage::Handling(handling) => {
                if handling.deaf {
                    return;
                }
                handling.told.hear(told);
                if handling.deaf_until > now {
                    return;
                }
                handling.report_at = 0;
                handling.ends = handling.ends.min(now + abort_us);
                consumer.run += 1;
                let (run, ends) = (consumer.run, handling.ends);
                self.plan_handler(cx, w, shard, run, ends);
            }
        }
    }
}
