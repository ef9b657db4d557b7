//! Records that no handler can process, and their storage by the application.

use super::Fleet;
use super::handler::{Stage, op_key, refusal};
use super::handling::failed;
use super::kept::tell_done;
use super::stopped::Told;
use super::unpacking::Given;
use crate::names::shard_of;
use crate::oracles::{Fact, ShardNo};
use crate::world::context::Context;
use crate::world::heap::WorkerEvent;
use crate::world::request::Request;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::{Outcome, Reply, Why};
use leasehold_engine::position::Position;

/// A record in the middle of its setting aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettingAside {
    op: OpId,
    batch: OpId,
    at: Position,
    fails: bool,
    pub(super) told: Told,
}

/// The record to set aside, and its batch.
pub(super) struct Aside {
    pub(super) lease: LeaseKey,
    pub(super) token: FencingToken,
    pub(super) batch: OpId,
    pub(super) at: Position,
}

/// The first of these records that no handler can process. After the faults, the cause of the failures is corrected.
pub(super) fn first_poisoned(cx: &Context, shard: ShardNo, given: &Given) -> Option<u64> {
    let per_mille = u64::from(cx.plan().faults.application.poison);
    if per_mille == 0 || cx.is_healed() {
        return None;
    }
    let draws = cx.draws();
    let key = |record: u64| u64::from(shard) << 32 ^ record;
    given.parts().find(|record| draws.below("poison", key(*record), 1_000) < per_mille)
}

impl Fleet {
    /// The application receives a request to set a record aside. Returns the answer, if immediate.
    pub(super) fn set_aside(
        &mut self, cx: &mut Context, w: usize, op: OpId, aside: Aside,
    ) -> Option<Outcome> {
        let Aside { lease, token, batch, at } = aside;
        let known = shard_of(&lease).map(|shard| (shard, cx.names().parts().at(shard, at)));
        let Some((shard, Some(record))) = known else {
            return Some(refusal());
        };
        let life = self.workers[w].life;
        let adapter = &mut self.workers[w].adapter;
        let known = adapter.batch(shard, batch.n);
        let consumer = adapter.consumers.get_mut(&shard).filter(|known| known.token == token)?;
        let Some((_, last)) = known.filter(|(first, last)| (*first..=*last).contains(&record)) else {
            consumer.unfinished.forget();
            let token = token.0;
            cx.fact(Fact::GivenBack { life, shard, token });
            return Some(refusal());
        };
        cx.fact(Fact::SetAsideBegun { life, shard, token: token.0, record });
        let fails = !cx.is_healed() && cx.draws().below("set-aside-fails", op_key(op), 3) == 0;
        let delay = cx.draws().magnitude("set-aside-time", op_key(op), 100, 200_000);
        consumer.run += 1;
        consumer.unfinished.given(batch, last);
        consumer.stage = Stage::SettingAside(SettingAside { op, batch, at, fails, told: Told::Nothing });
        let run = consumer.run;
        self.plan_handler(cx, w, shard, run, cx.now() + delay);
        None
    }

    /// A record's setting aside has succeeded or failed.
    pub(super) fn end_set_aside(&mut self, cx: &mut Context, w: usize, shard: ShardNo, aside: SettingAside) {
        let worker = &mut self.workers[w];
        let life = worker.life;
        let (Some(consumer), Some(record)) =
            (worker.adapter.consumers.get_mut(&shard), cx.names().parts().at(shard, aside.at))
        else {
            return;
        };
        let token = consumer.token;
        let outcome = if let Some(outcome) = aside.told.outcome() {
            outcome
        } else if aside.fails {
            failed(Why::HandlerFailed, "the dead-letter queue is full")
        } else {
            cx.mark("record-set-aside");
            cx.fact(Fact::SetAside { life, shard, token: token.0, record });
            if consumer.unfinished.holds(aside.batch) {
                let reached = consumer.unfinished.processed(aside.batch, record);
                tell_done(cx, life, shard, token, (record, record, reached));
            }
            Outcome::Applied(Reply::ProcessedThrough(aside.at))
        };
        cx.fact(Fact::SetAsideEnded { life, shard, token: token.0 });
        let op = aside.op;
        cx.request(Request::Done { w, op, outcome });
    }

    /// A worker reports a shard stopped by a record: the application resumes the shard some time later.
    pub(super) fn resume_later(&self, cx: &mut Context, w: usize, shard: ShardNo) {
        let lease_us = cx.plan().config.lease_duration().0;
        let key = u64::from(shard) << 32 ^ cx.now();
        let later = cx.draws().magnitude("shard-stopped", key, 10_000, lease_us.saturating_mul(2));
        self.plan(cx, w, cx.now() + later, WorkerEvent::PauseEnds { shard });
    }
}
