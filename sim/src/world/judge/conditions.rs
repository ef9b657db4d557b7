//! Conditions that must be true some time after the faults, each with a sentence. A stall is reported with its first
//! unmet condition.

use crate::faults::LossKind;
use crate::oracles::fact::{Mark, Owner};
use crate::oracles::{Property, ShardNo, uncovered};
use crate::world::context::Context;
use crate::world::fleet::{Fleet, Worker};
use crate::world::heap::What;
use crate::world::services::Services;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::format::Format;
use leasehold_engine::position::Checkpoint;

/// The state of the world, to be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) cx: &'a Context,
    pub(super) services: &'a Services,
    pub(super) fleet: &'a Fleet,
}

impl Scene<'_> {
    /// The first unmet condition, with its property.
    pub(super) fn unmet(&self) -> Option<(Property, String)> {
        self.without_core()
            .or_else(|| self.uncovered())
            .or_else(|| self.misdescribed())
            .or_else(|| self.handing_over())
            .or_else(|| self.unattended())
            .or_else(|| self.out_of_turn())
            .or_else(|| self.uneven())
            .or_else(|| self.undelivered())
    }

    /// Whether a shard is of a stream that is well in the end.
    pub(super) fn is_well(&self, shard: ShardNo) -> bool {
        let stream = self.cx.names().streams().of(shard);
        !self.cx.plan().faults.several.lasts(stream)
    }

    fn without_core(&self) -> Option<(Property, String)> {
        let runs =
            self.fleet.workers().iter().any(|worker| worker.is_core() && worker.lives()) || self.restarts();
        let why = || {
            let fatal = self
                .fleet
                .workers()
                .iter()
                .filter(|worker| worker.is_core())
                .find_map(|worker| worker.fatal());
            fatal.map_or_else(String::new, |why| format!(": {why}"))
        };
        (!runs).then(|| (Property::LeasesOwned, format!("no worker of the core runs{}", why())))
    }

    /// Whether an ended foreign program is about to start again, as its operator does for ever.
    fn restarts(&self) -> bool {
        self.cx.plan().has_others()
            && self.cx.planned().any(|what| match *what {
                What::Start { worker, generation, .. } => {
                    let w = self.fleet.worker(usize::from(worker));
                    w.is_core() && w.generation() == generation
                }
                _ => false,
            })
    }

    fn uncovered(&self) -> Option<(Property, String)> {
        let mut shards = self.services.coverage(self.cx);
        for shard in &mut shards {
            shard.open &= self.is_well(shard.shard);
        }
        uncovered(&shards).map(|shard| {
            (
                Property::HashSpaceCovered,
                format!("no lease covers shard {shard}{}", self.services.unread(shard)),
            )
        })
    }

    /// A row that still has wrong hash keys: hash keys in rows decide about holes.
    fn misdescribed(&self) -> Option<(Property, String)> {
        let (shard, wrong) = self.services.misdescribed()?;
        let sentence = format!("the row of shard {shard} still has {wrong}");
        (self.cx.plan().format == Format::Kcl && self.is_well(shard))
            .then_some((Property::HashSpaceCovered, sentence))
    }

    /// A hand-over that is neither done nor given up.
    fn handing_over(&self) -> Option<(Property, String)> {
        let mut rows = self.services.rows().iter().enumerate();
        rows.find_map(|(shard, lease)| {
            // A finished lease needs no owner.
            let row = lease.row().filter(|row| !row.checkpoint.is_end())?;
            let (old, next) = (row.handing_over.as_ref()?, &row.owner);
            if !self.is_well(shard as ShardNo) {
                return None;
            }
            if self.fleet.keeps_what_is_claimed(self.cx, old) {
                return None;
            }
            let sentence = format!("shard {shard} is still being handed over from {old} to {next:?}");
            Some((Property::HandOverCompletes, sentence))
        })
    }

    /// An unfinished lease without a worker of the core that renews it.
    fn unattended(&self) -> Option<(Property, String)> {
        if !self.cx.plan().fleet.keeps_leases() {
            return None;
        }
        let patience = 2 * self.cx.plan().config.lease_duration().0;
        for (shard, lease) in self.services.rows().iter().enumerate() {
            let Some(row) = lease.row() else { continue };
            let exists = self.services.shards().get(shard).is_some_and(|family| family.exists());
            // A row without a shard may have any owner or none.
            if row.checkpoint.is_end() || !self.is_well(shard as ShardNo) || !exists {
                continue;
            }
            let stays =
                row.handing_over.as_ref().filter(|old| self.fleet.keeps_what_is_claimed(self.cx, old));
            let owner = stays.or(row.owner.as_ref()).and_then(|owner| {
                let life = self.cx.names().owner(owner);
                self.fleet.workers().iter().position(|worker| {
                    worker.is_core() && worker.lives() && life == Owner::Life(worker.life())
                })
            });
            let Some(w) = owner else {
                let sentence = format!("shard {shard} belongs to {:?}, who is not of the core", row.owner);
                return Some((Property::LeasesOwned, sentence));
            };
            let idle = self.cx.now().saturating_sub(lease.renewed());
            if idle > patience && self.cx.plan().fleet.renews_leases() {
                let sentence = format!("w{w} has not renewed shard {shard} for {} ms", idle / 1_000);
                return Some((Property::LeasesOwned, sentence));
            }
            if !self.services.waits_for_parents(shard) && !self.fleet.worker(w).has_open(shard as ShardNo) {
                return Some((
                    Property::LeasesOwned,
                    format!(
                        "w{w} owns shard {shard} and does not process it{}",
                        self.services.unread(shard as ShardNo)
                    ),
                ));
            }
        }
        None
    }

    /// A shard whose records have not all been processed and checkpointed.
    fn undelivered(&self) -> Option<(Property, String)> {
        let shards = self.services.shards().iter().enumerate();
        for (shard, family) in
            shards.filter(|(shard, family)| family.exists() && self.is_well(*shard as ShardNo))
        {
            let records = self.services.records(self.cx, shard as ShardNo);
            let lease = self.services.rows().get(shard);
            if lease.is_none_or(|lease| !lease.existed()) {
                if self.services.is_forgotten(shard as ShardNo) {
                    continue;
                }
                // Only shards ended before the application began need no lease; coverage checks all other shards.
                if self.cx.plan().config.initial_position() == InitialPosition::TrimHorizon {
                    return Some((Property::HashSpaceCovered, format!("shard {shard} never had a lease")));
                }
                continue;
            }
            if !self.cx.oracles().is_complete(shard as ShardNo, records) {
                let done = self.cx.oracles().processed(shard as ShardNo);
                return Some((
                    Property::EveryRecordDelivered,
                    format!("shard {shard} has {records} records, and {done} were processed"),
                ));
            }
            let Some(row) = lease.and_then(|lease| lease.row()) else {
                continue;
            };
            if family.is_closed() && !row.checkpoint.is_end() {
                return Some((
                    Property::EveryRecordDelivered,
                    format!("shard {shard} is closed and processed, its lease says {}", row.checkpoint),
                ));
            }
            let seen = self.cx.names().row(row).checkpoint;
            let behind = match (seen, row.checkpoint) {
                (Mark::At(record), _) => record < self.cx.oracles().owed(shard as ShardNo),
                (_, Checkpoint::TrimHorizon) => self.cx.oracles().owed(shard as ShardNo) > 0,
                _ => false,
            };
            if behind {
                return Some((
                    Property::EveryRecordDelivered,
                    format!("the progress of shard {shard} is not durable: {}", row.checkpoint),
                ));
            }
        }
        None
    }

    /// The first worker that ignores the loss.
    pub(super) fn goes_on(&self) -> Option<(Property, String)> {
        let kind = self.services.lost()?;
        let property = match kind {
            LossKind::StreamDeleted | LossKind::TableDeleted => Property::StallsReported,
            LossKind::StreamRemade
            | LossKind::TableOfAnother
            | LossKind::RowsNameAnother
            | LossKind::StrangeCheckpoints
            | LossKind::AnotherFleet
            | LossKind::TwoFleets => Property::ForeignTablesRefused,
        };
        // A worker may never get an answer about one of its streams. The worker then never learns of the stream's loss,
        // or of leases of another stream.
        let is_table = matches!(kind, LossKind::TableDeleted);
        if !is_table && self.cx.plan().faults.several.any_is_unanswered() {
            return None;
        }
        let goes_on = |worker: &Worker| worker.is_core() && worker.lives();
        let w = self.fleet.workers().iter().position(goes_on)?;
        Some((property, format!("w{w} goes on, with {}", kind.family())))
    }
}
