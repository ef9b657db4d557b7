//! The application's kept batches of a shard: the application acknowledges them later in any order, gives them back, or
//! flushes them on request.

use super::Fleet;
use super::handler::{Stage, op_key};
use super::handling::failed;
use super::stopped::Told;
use crate::names::shard_of;
use crate::oracles::{Fact, LifeNo, ShardNo};
use crate::world::context::Context;
use crate::world::heap::WorkerEvent;
use crate::world::request::Request;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId};
use leasehold_engine::input::{Call, Outcome, Reply, Why};
use leasehold_engine::output::FlushReason;
use std::collections::VecDeque;

/// The batches of one shard that the application was given and has not finished, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfinished {
    pieces: VecDeque<Piece>,
    /// All records up to this record are processed, to the end of a batch.
    reached: u64,
}

#[derive(Clone, Debug)]
struct Piece {
    batch: OpId,
    last: u64,
    /// Processed up to this record; 0: no record.
    done: u64,
    kept: bool,
    gives_back: bool,
}

impl Unfinished {
    /// The application is given a batch, maybe once more: its earlier reports of the batch count.
    pub(super) fn given(&mut self, batch: OpId, last: u64) {
        let counts = |piece: &Piece| piece.kept || piece.batch == batch || piece.done >= piece.last;
        self.pieces.retain(counts);
        if self.pieces.iter().any(|piece| piece.batch == batch) {
            return;
        }
        self.pieces.push_back(Piece { batch, last, done: 0, kept: false, gives_back: false });
    }

    /// No report counts any more: all records after the first gap come again.
    pub(super) fn forget(&mut self) {
        self.pieces.clear();
    }

    /// Whether the batch counts: no batch before it was given back meanwhile.
    fn keep(&mut self, batch: OpId, gives_back: bool) -> bool {
        let Some(piece) = self.pieces.iter_mut().find(|piece| piece.batch == batch) else {
            return false;
        };
        (piece.kept, piece.gives_back) = (true, gives_back);
        true
    }

    /// Whether a batch counts: the batch is not wholly processed, and no batch before it was given back.
    pub(super) fn holds(&self, batch: OpId) -> bool {
        self.pieces.iter().any(|piece| piece.batch == batch)
    }

    /// Whether all records up to this record are processed.
    pub(super) fn is_over(&self, last: u64) -> bool {
        self.reached >= last
    }

    /// Notes the progress in a batch. Returns the new end of gapless progress, if further than before.
    pub(super) fn processed(&mut self, batch: OpId, through: u64) -> Option<u64> {
        let piece = self.pieces.iter_mut().find(|piece| piece.batch == batch)?;
        piece.done = piece.done.max(through);
        let mut reached = None;
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.done >= piece.last) {
            reached = Some(piece.last);
            self.reached = self.reached.max(piece.last);
        }
        let begun = self.pieces.front().map_or(0, |piece| piece.done);
        reached.max((begun > 0).then_some(begun))
    }

    fn kept(&self) -> impl DoubleEndedIterator<Item = (OpId, u64)> + '_ {
        let kept = self.pieces.iter().filter(|piece| piece.kept);
        kept.map(|piece| (piece.batch, piece.last))
    }

    fn find(&self, batch: OpId) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.kept && piece.batch == batch)
    }
}

/// A flush of kept batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flushing {
    op: OpId,
    why: FlushReason,
    how: Flush,
    pub(super) told: Told,
}

/// The outcome of a flush.
#[derive(Clone, Copy, Debug)]
enum Flush {
    Acknowledges,
    /// The flush returns, and the kept batches are acknowledged at their ordinary times.
    ActsLater,
    Fails,
}

impl Fleet {
    /// The application keeps a batch for this time.
    pub(super) fn keep(
        &mut self, cx: &mut Context, w: usize, shard: ShardNo, (batch, first, last): (OpId, u64, u64),
        (for_us, gives_back): (u64, bool),
    ) {
        let worker = &mut self.workers[w];
        if let Some(consumer) = worker.adapter.consumers.get_mut(&shard) {
            if consumer.unfinished.keep(batch, gives_back) {
                cx.fact(Fact::Kept { life: worker.life, shard, token: consumer.token.0, first, last });
            }
            self.plan(cx, w, cx.now() + for_us, WorkerEvent::Kept { shard, batch: batch.n });
        }
    }

    /// The time of a kept batch has come: the application has processed the batch, or gives the batch back.
    pub(in crate::world) fn finish_kept(&mut self, cx: &mut Context, w: usize, shard: ShardNo, batch: u64) {
        let batch = OpId { life: self.incarnation(cx, w), n: batch };
        let worker = &mut self.workers[w];
        let life = worker.life;
        let Some(consumer) = worker.adapter.consumers.get_mut(&shard) else {
            return;
        };
        let token = consumer.token;
        let piece = consumer.unfinished.find(batch).cloned();
        let lease = cx.names_mut().shard(shard).to_lease();
        if let Some(piece) = piece.as_ref().filter(|piece| piece.gives_back) {
            // A batch with every record acknowledged does not come again.
            if piece.done < piece.last {
                consumer.unfinished.forget();
                consumer.gave_back = Some(cx.now());
                let token = token.0;
                cx.fact(Fact::GivenBack { life, shard, token });
            }
            let detail = "the batch was given back".to_owned();
            let calls = vec![Call::GivenBack { lease, token, batch, detail }];
            return cx.request(Request::Calls { w, life, calls });
        }
        // The call goes out even for a batch acknowledged before or due again: the call then has no effect.
        let last = piece.map_or(0, |piece| piece.last);
        if let Some(through) = consumer.unfinished.processed(batch, last) {
            tell_processed(cx, life, shard, token, through);
        }
        let calls = vec![Call::Acknowledged { lease, token, batch }];
        cx.request(Request::Calls { w, life, calls });
    }

    /// The application receives a request to flush.
    pub(super) fn flush(
        &mut self, cx: &mut Context, w: usize, (op, why): (OpId, FlushReason), lease: &LeaseKey,
        token: FencingToken,
    ) {
        let consumers = &mut self.workers[w].adapter.consumers;
        let shard = shard_of(lease)
            .filter(|shard| consumers.get(shard).is_some_and(|consumer| consumer.token == token));
        let Some(shard) = shard else {
            return self.note(cx, w, op);
        };
        let how = match cx.draws().below("flush", op_key(op), 6) {
            _ if cx.is_healed() => Flush::Acknowledges,
            0 => Flush::ActsLater,
            1 => Flush::Fails,
            _ => Flush::Acknowledges,
        };
        cx.fact(Fact::FlushBegun { life: self.workers[w].life, shard, token: token.0 });
        let delay = cx.draws().magnitude("flush-time", op_key(op), 100, 200_000);
        let consumers = &mut self.workers[w].adapter.consumers;
        let Some(consumer) = consumers.get_mut(&shard) else {
            return;
        };
        consumer.run += 1;
        consumer.stage = Stage::Flushing(Flushing { op, why, how, told: Told::Nothing });
        let run = consumer.run;
        self.plan_handler(cx, w, shard, run, cx.now() + delay);
    }

    /// A flush ends.
    pub(super) fn end_flush(&mut self, cx: &mut Context, w: usize, shard: ShardNo, flushing: Flushing) {
        let Flushing { op, why, how, told } = flushing;
        let worker = &mut self.workers[w];
        let life = worker.life;
        let Some(consumer) = worker.adapter.consumers.get_mut(&shard) else {
            return;
        };
        let token = consumer.token;
        let acts = || match how {
            Flush::ActsLater => Outcome::Applied(Reply::Done),
            Flush::Fails => failed(Why::HandlerFailed, "the flush failed"),
            Flush::Acknowledges => {
                let kept: Vec<(OpId, u64)> = consumer.unfinished.kept().rev().collect();
                let lease = cx.names_mut().shard(shard).to_lease();
                let mut calls = Vec::new();
                for (batch, last) in kept {
                    if let Some(through) = consumer.unfinished.processed(batch, last) {
                        tell_processed(cx, life, shard, token, through);
                    }
                    let lease = lease.clone();
                    calls.push(Call::Acknowledged { lease, token, batch });
                }
                cx.request(Request::Calls { w, life, calls });
                Outcome::Applied(Reply::Done)
            }
        };
        let outcome = told.outcome().unwrap_or_else(acts);
        let token = token.0;
        if why == FlushReason::ShardEnd && matches!(outcome, Outcome::Applied(_)) {
            cx.fact(Fact::EndPermitted { life, shard, token });
        }
        cx.fact(Fact::FlushEnded { life, shard, token });
        cx.request(Request::Done { w, op, outcome });
    }
}

/// Tells the oracles the end of gapless progress in a shard.
pub(super) fn tell_processed(
    cx: &mut Context, life: LifeNo, shard: ShardNo, token: FencingToken, through: u64,
) {
    cx.fact(Fact::Processed { life, shard, token: token.0, through });
}

/// Tells the oracles the processed records of a batch, first and last, and the end of gapless progress in the shard.
pub(super) fn tell_done(
    cx: &mut Context, life: LifeNo, shard: ShardNo, token: FencingToken,
    (first, last, reached): (u64, u64, Option<u64>),
) {
    if let Some(reached) = reached {
        tell_processed(cx, life, shard, token, reached);
    }
    if reached < Some(last) {
        // An earlier batch is not finished, so this batch counts as kept.
        let token = token.0;
        cx.fact(Fact::Kept { life, shard, token, first, last });
    }
}
