//! Workers' reports: notices, and owned leases. Oracles receive changes of owned leases, so an input without a change
//! costs little.

use super::Fleet;
use crate::names;
use crate::oracles::{Fact, LifeNo, ShardNo};
use crate::streams;
use crate::world::context::Context;
use crate::world::request::Request;
use leasehold_engine::Held;
use leasehold_engine::ids::{LeaseIx, LeaseKey};
use leasehold_engine::notice::{Notice, RuntimeNews, StreamNews};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::time::Mono;

/// The last report of one life.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    life: LifeNo,
    /// By the engine's numbers of its leases.
    claims: Vec<Option<Claim>>,
    /// Memory for leases with possible changes.
    touched: Vec<LeaseIx>,
}

#[derive(Clone, Debug)]
struct Claim {
    lease: LeaseKey,
    /// None for a lease without a shard of ours.
    shard: Option<ShardNo>,
    counter: u64,
    checkpoint: Checkpoint,
    valid_until: Mono,
    open: bool,
}

impl Claim {
    fn new(held: &Held<'_>) -> Self {
        Self {
            lease: held.lease.clone(),
            shard: names::shard_of(held.lease),
            counter: held.counter,
            checkpoint: held.checkpoint,
            valid_until: held.valid_until,
            open: held.open,
        }
    }

    /// Whether the claim repeats the engine's present view of the lease.
    fn repeats(&self, held: &Held<'_>) -> bool {
        self.lease == *held.lease
            && self.counter == held.counter
            && self.valid_until == held.valid_until
            && self.open == held.open
            && self.checkpoint == held.checkpoint
    }
}

impl Fleet {
    /// Each healthy worker's last report of owned leases: the life and the shard.
    pub(in crate::world) fn said(&self) -> impl Iterator<Item = (LifeNo, ShardNo)> {
        let both = self.workers.iter().zip(&self.said);
        // A worker that knows it must stop, or stands still, reports no leases.
        let well = both.filter(|(worker, said)| {
            worker.lives() && worker.paused.is_none() && worker.fatal.is_none() && worker.life == said.life
        });
        well.flat_map(|(_, said)| {
            let shards = said.claims.iter().flatten().filter_map(|claim| claim.shard);
            shards.map(|shard| (said.life, shard))
        })
    }

    /// Passes a worker's notice on.
    pub(in crate::world) fn told(&mut self, cx: &mut Context, w: usize, notice: &Notice) {
        cx.told(w, notice);
        if let Some(shard) = notice.lease().and_then(names::shard_of) {
            let life = self.workers[w].life;
            match notice {
                Notice::Moving { .. } => cx.fact(Fact::Moving { life, shard }),
                Notice::Stalled { .. } => cx.fact(Fact::Stalled { life, shard }),
                Notice::Spoiled { .. } => cx.request(Request::MendRow { shard }),
                Notice::Yields { .. } => cx.fact(Fact::Yields { life, shard }),
                Notice::ShardStopped { position, .. } => {
                    let record = cx.names().parts().at(shard, *position).unwrap_or(0);
                    cx.fact(Fact::ShardStopped { life, shard, record });
                    self.resume_later(cx, w, shard);
                }
                _ => {}
            }
        }
        if let Notice::Stream(news) = notice {
            self.told_of_stream(cx, w, news);
        }
        if let Notice::Runtime(RuntimeNews::LetsGo { .. }) = notice {
            let life = self.workers[w].life;
            cx.fact(Fact::LetsGo { life });
        }
        if let Notice::Fatal(fatal) = notice {
            self.workers[w].fatal = Some(fatal.to_string());
            let life = self.workers[w].life;
            cx.fact(Fact::GivesUp { life });
        }
        if crate::report::is_worth_a_line(notice) {
            cx.line(|| format!("w{w}: {notice}"));
        }
    }

    /// A worker of several streams reports news of a stream.
    fn told_of_stream(&self, cx: &mut Context, w: usize, news: &StreamNews) {
        let life = self.workers[w].life;
        let number = |id: &str| streams::place_of(id).map(|(stream, _)| stream);
        let fact = match news {
            StreamNews::Added { stream } => number(stream).map(|stream| Fact::StreamBack { life, stream }),
            StreamNews::Removed { stream } => number(stream).map(|stream| {
                let lost = false;
                Fact::StreamLeft { life, stream, lost }
            }),
            StreamNews::Lost { stream, .. } => number(stream).map(|stream| {
                let lost = true;
                Fact::StreamLeft { life, stream, lost }
            }),
            _ => None,
        };
        if let Some(fact) = fact {
            cx.fact(fact);
        }
    }

    /// Compares the worker's owned leases with its last report, for the oracles.
    pub(super) fn compare_view(&mut self, cx: &mut Context, w: usize) {
        let worker = &mut self.workers[w];
        let (Some(engine), life) = (&mut worker.engine, worker.life) else {
            return;
        };
        if self.said.len() <= w {
            self.said.resize_with(w + 1, Said::default);
        }
        let said = &mut self.said[w];
        if said.life != life {
            said.claims.clear();
            said.life = life;
        }
        let mut touched = std::mem::take(&mut said.touched);
        engine.touched(&mut touched);
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|&lease| {
            let at = lease.index();
            if said.claims.len() <= at {
                said.claims.resize_with(at + 1, || None);
            }
            let held = engine.held_in(lease);
            let before = &mut said.claims[at];
            if let (Some(claim), Some(held)) = (&before, &held)
                && claim.repeats(held)
            {
                return false;
            }
            let other = |claim: &Claim| held.as_ref().is_none_or(|held| claim.lease != *held.lease);
            if let Some(shard) = before.take_if(|claim| other(claim)).and_then(|claim| claim.shard) {
                cx.observe(&Fact::HoldsNoMore { life, shard });
            }
            *before = held.as_ref().map(Claim::new);
            before.is_some()
        });
        for claim in touched.drain(..).filter_map(|lease| said.claims[lease.index()].as_ref()) {
            let Some(shard) = claim.shard else { continue };
            let fact = Fact::Holds {
                life,
                shard,
                counter: claim.counter,
                checkpoint: cx.names().mark(claim.shard, claim.checkpoint),
                open: claim.open,
                until: worker.clock.when(claim.valid_until),
            };
            cx.observe(&fact);
        }
        said.touched = touched;
        // The engine names its touched leases; now and then, all owned leases are compared.
        #[cfg(debug_assertions)]
        if self.transcript.count().is_multiple_of(61) {
            let claims = || said.claims.iter().flatten();
            assert!(
                engine.held().count() == claims().count()
                    && engine.held().all(|held| claims().any(|claim| claim.repeats(&held))),
                "a lease is held otherwise than before, and was not touched"
            );
        }
        cx.observe(&Fact::Said { life });
    }
}
