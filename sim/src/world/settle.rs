//! After the faults: some workers and all services are well from now on, and everything must come right within a bound.
//!
//! A random core of workers goes on; the others are dead or cut off for ever. What must become true is a list of
//! conditions, each with a sentence: a stall is reported as the first that is not met when the bound has passed.

use super::World;
use super::heap::What;
use crate::faults::LossKind;
use crate::names::number;
use crate::oracles::fact::Mark;
use crate::oracles::{Property, ShardNo, Time, uncovered};
use leasehold_engine::config::{Config, InitialPosition, TABLE_PATIENCE};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::policy::Assign;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::time::Span;
use serde::Serialize;

/// The state of the time after the faults.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    since: Time,
    /// When all conditions but quiet were first met in a row.
    calm_since: Option<Time>,
    deadline: Time,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// Everything came right.
    Settled {
        /// How long it took after the faults, in µs.
        after_us: u64,
        /// How long it might have taken, in µs.
        bound_us: u64,
    },
    /// It did not, and need not have: why.
    Excused(&'static str),
    /// It did not, and should have; or a property was violated before.
    Broken,
    /// The run was cancelled: whether it would have come right is not known.
    Cancelled,
}

impl World {
    /// The faults are over.
    pub(super) fn heal(&mut self) {
        let now = self.cx.now();
        self.services.heal(&mut self.cx);
        self.cx.set_healed();
        self.settling = Some(Settling {
            since: now,
            calm_since: None,
            deadline: Time::MAX,
        });
        let count = self.workers.len() as u64;
        let sure = self.cx.draws().below("core-one", 0, count);
        for w in 0..self.workers.len() {
            let limited = self.cx.plan().config.max_leases() > 0;
            let core = limited || w as u64 == sure || self.cx.draws().coin("core", w as u64);
            let dies = self.cx.draws().coin("core-dies", w as u64);
            let worker = &mut self.workers[w];
            worker.core = core;
            let pause = worker.pauses;
            if core {
                let generation = worker.generation;
                if !worker.lives() {
                    self.cx.push(
                        now,
                        What::Start {
                            worker: w as u16,
                            generation,
                            loops: 0,
                        },
                    );
                }
                self.resume(w, pause);
                // An operator who told another program to stop kills it in the end: vmware-go-kcl waits for parents first, and kinsumer
                // may wait for ever.
                let worker = &self.workers[w];
                if worker.stopping && worker.peer.is_some() && self.cx.plan().is_mixed() {
                    self.crash(w, 0, 0);
                }
            } else if dies {
                self.crash(w, 0, 0);
                // Nor is it started again, if that was planned.
                self.workers[w].end();
            } else {
                worker.cut = true;
                self.resume(w, pause);
            }
        }
        let bound = self.bound();
        if let Some(settling) = &mut self.settling {
            settling.deadline = now + bound;
        }
        self.cx
            .line(|| format!("faults are over; all must be well within {} s", bound / 1_000_000));
    }

    /// How long it may take until all is well: stated from the configuration, generous but finite.
    fn bound(&self) -> u64 {
        let plan = &self.cx.plan();
        let (faults, load) = (&plan.faults, &plan.load);
        let most = |of: fn(&Config) -> Span| plan.most(of).0;
        let rows = self.rows_at_most();
        let page_of = |limit: u32| if limit == 0 { rows } else { u64::from(limit) };
        let list_page = page_of(faults.stream.list_page);
        let round_trip = 2 * faults.call.latency_us;
        let table_timeout = most(|config| config.table_timeout());
        let stream_timeout = most(|config| config.stream_timeout());
        let retry_max = most(|config| config.retry_max());
        let scan = most(|config| config.scan_interval()) + self.pages() + table_timeout;
        let list = (rows / list_page + 2) * round_trip + stream_timeout;
        // A lease changes hands: it is seen to be idle, it is taken, it is left to settle.
        let take = 3 * plan.config.lease_duration().0 + 3 * scan + 2 * retry_max + table_timeout;
        // Members are missed, somebody else leads, and shares the shards out; then they change hands.
        let round =
            most(|config| config.members().check_interval()) + 5 * round_trip + table_timeout + retry_max;
        let turns = match plan.config.policies().assign {
            Assign::Rank => {
                let members = plan.config.members();
                let lead = members.lead_expiry().0 + 2 * members.lead_interval().0;
                members.expiry().0 + lead + list + 5 * round
            }
            _ => 0,
        };
        let take = take + turns;
        // Missing leases are noticed, planned and created.
        let confidence = u64::from(plan.most(|config| config.audit_confidence()));
        let sync =
            (confidence + 3) * scan + list + rows * round_trip + most(|config| config.bootstrap_delay());
        let application = &faults.application;
        let max_records = u64::from(plan.least(|config| config.reader().max_records()).max(1));
        let batches = |records: u64| records / max_records + 2;
        let pace = most(|config| {
            config
                .reader()
                .min_interval()
                .max(config.reader().idle_interval())
        }) + application.batch_us
            + round_trip;
        let longest = (0..self.services.shards().len() as ShardNo)
            .map(|shard| self.services.records(shard))
            .max()
            .unwrap_or(0);
        let rate = plan.least(|config| config.reader().bytes_per_second()).max(1);
        let bytes = longest * u64::from(load.bytes) * 1_000_000 / rate;
        let read = batches(longest) * pace + bytes + stream_timeout + most(|config| config.handler_backoff());
        let generation = take + sync + read + most(|config| config.checkpoint_interval()) + 4 * retry_max;
        // One steal after a scan, if need be for every lease.
        let balance = match plan.config.policies().assign {
            Assign::Count => rows * scan / u64::from(plan.least(|config| config.max_steals()).max(1)),
            _ => 0,
        };
        let stuck = most(|config| config.shutdown_timeout()) + faults.worst_handler().0 + 20_000_000;
        // A table that was taken away may have been waited for just then.
        let patience = match self.cx.is_lost_for_good() {
            true => 2 * TABLE_PATIENCE.0,
            false => 0,
        };
        (self.services.depth() + 2) * generation + balance + stuck + patience + self.quiet()
    }

    fn rows_at_most(&self) -> u64 {
        self.services.shards().len() as u64 + 20
    }

    /// How long the pages of a scan take.
    fn pages(&self) -> u64 {
        let (call, table) = (&self.cx.plan().faults.call, &self.cx.plan().faults.table);
        let rows = self.rows_at_most();
        let page_of = |limit: u32| if limit == 0 { rows } else { u64::from(limit) };
        let page = self
            .cx
            .plan()
            .least(|config| page_of(config.scan_page_limit()))
            .min(page_of(table.tiny_page));
        (rows / page + 2) * (2 * call.latency_us + table.slow_page_us)
    }

    /// For how long nothing may move.
    fn quiet(&self) -> u64 {
        let listings = match self.cx.plan().config.policies().assign {
            // A leader lists shards all the time; a listing that somebody began before must be over.
            Assign::Rank => 2 * self.cx.plan().most(|config| config.stream_timeout()).0,
            _ => 0,
        };
        let scan = self.cx.plan().most(|config| config.scan_interval()).0 + self.pages();
        3 * scan + 2 * self.cx.plan().config.lease_duration().0 + listings
    }

    /// Judges the state of things, if the faults are over.
    pub(super) fn look(&mut self) {
        let Some(settling) = self.settling.clone() else {
            return;
        };
        let now = self.cx.now();
        if self.cx.is_lost_for_good() {
            return self.look_at_losses(&settling);
        }
        if let Some(key) = self.services.harmed() {
            let key = key.clone();
            self.cx.report(Property::ExclusiveOwnership, || {
                format!("what other people put into the table at {key} is not as they left it")
            });
        }
        let unmet = self.unmet();
        let quiet = self.quiet();
        let calm_since = match (&unmet, settling.calm_since) {
            (Some(_), _) => None,
            (None, since) => Some(since.unwrap_or(now)),
        };
        if let Some(settling) = &mut self.settling {
            settling.calm_since = calm_since;
        }
        let last_move = if self.cx.plan().fleet.keeps_leases() {
            self.cx.oracles().last_move()
        } else {
            0
        };
        let still_since = calm_since.map(|since| since.max(last_move));
        if let Some(since) = still_since
            && now >= since + quiet
        {
            self.settled(since, now - settling.since);
        } else if now > settling.deadline {
            self.stalled(unmet, now - settling.since);
        }
    }

    /// All that is left to be done is to stop.
    fn look_at_losses(&mut self, settling: &Settling) {
        let after_us = self.cx.now() - settling.since;
        match self.goes_on() {
            None => {
                let bound_us = settling.deadline.saturating_sub(settling.since);
                self.ending = Some(Ending::Settled { after_us, bound_us });
            }
            unmet if self.cx.now() > settling.deadline => self.stalled(unmet, after_us),
            Some(_) => {}
        }
    }

    fn settled(&mut self, since: Time, after_us: u64) {
        let now = self.cx.now();
        // The first half of the quiet may still finish what went before.
        let listers: Vec<_> = self
            .cx
            .oracles()
            .listers(since + (now - since) / 2)
            .filter(|&life| self.workers.iter().any(|w| w.lives() && !w.cut && w.life == life))
            .collect();
        if listers.len() > 1 {
            self.cx.report(Property::OneLeader, || {
                format!("after quiet, lives {listers:?} all listed shards")
            });
        }
        let healed = self.settling.as_ref().map_or(now, |settling| settling.since);
        self.cx.look_at_end(healed);
        let bound_us = self
            .settling
            .as_ref()
            .map_or(0, |settling| settling.deadline.saturating_sub(settling.since));
        self.ending = Some(Ending::Settled { after_us, bound_us });
    }

    fn stalled(&mut self, unmet: Option<(Property, String)>, after_us: u64) {
        if let Some(excuse) = self.excuse() {
            self.ending = Some(Ending::Excused(excuse));
            return;
        }
        let (property, sentence) = unmet.unwrap_or_else(|| {
            (
                Property::FairShares,
                "leases kept moving although nothing else changed".to_owned(),
            )
        });
        self.cx.report(property, || {
            format!("{} s after the faults {sentence}", after_us / 1_000_000)
        });
        self.ending = Some(Ending::Broken);
    }

    /// Why it may not have come right.
    fn excuse(&self) -> Option<&'static str> {
        // With clocks worse than promised a holder may be robbed over and over; nothing was promised then.
        self.cx
            .plan()
            .faults
            .clock
            .beyond
            .then_some("clocks were worse than promised")
    }

    /// The first condition that is not met, with the property it belongs to.
    fn unmet(&self) -> Option<(Property, String)> {
        self.without_core()
            .or_else(|| self.uncovered())
            .or_else(|| self.handing_over())
            .or_else(|| self.unattended())
            .or_else(|| self.out_of_turn())
            .or_else(|| self.uneven())
            .or_else(|| self.undelivered())
    }

    fn without_core(&self) -> Option<(Property, String)> {
        let runs = self.workers.iter().any(|worker| worker.core && worker.lives()) || self.restarts();
        let why = || {
            let fatal = self
                .workers
                .iter()
                .filter(|worker| worker.core)
                .find_map(|worker| worker.fatal.as_ref());
            fatal.map_or_else(String::new, |why| format!(": {why}"))
        };
        (!runs).then(|| {
            (
                Property::LeasesOwned,
                format!("no worker of the core runs{}", why()),
            )
        })
    }

    /// Whether a program of others that ended is about to be started again, as its operator does for ever.
    fn restarts(&self) -> bool {
        self.cx.plan().has_others()
            && self.cx.planned().any(|what| match *what {
                What::Start {
                    worker, generation, ..
                } => {
                    let w = &self.workers[usize::from(worker)];
                    w.core && w.generation == generation
                }
                _ => false,
            })
    }

    fn uncovered(&self) -> Option<(Property, String)> {
        let shards = self.services.coverage(&self.cx);
        uncovered(&shards).map(|shard| {
            (
                Property::HashSpaceCovered,
                format!("no lease covers shard {shard}{}", self.services.unread(shard)),
            )
        })
    }

    /// A hand-over that is neither done nor given up.
    fn handing_over(&self) -> Option<(Property, String)> {
        let mut rows = self.services.rows().iter().enumerate();
        rows.find_map(|(shard, lease)| {
            let row = lease.row()?;
            let (old, next) = (row.handing_over.as_ref()?, &row.owner);
            if self.keeps_what_is_claimed(old) {
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
            if row.checkpoint.is_end() {
                continue;
            }
            let stays = row
                .handing_over
                .as_ref()
                .filter(|old| self.keeps_what_is_claimed(old));
            let owner = stays.or(row.owner.as_ref()).and_then(|owner| {
                let life = self.cx.names().owner(owner);
                self.workers.iter().position(|worker| {
                    worker.core && worker.lives() && life == crate::oracles::fact::Owner::Life(worker.life)
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
            if !self.services.waits_for_parents(shard)
                && !self.workers[w]
                    .adapter
                    .consumers
                    .contains_key(&(shard as ShardNo))
            {
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
        for (shard, family) in self.services.shards().iter().enumerate() {
            let records = self.services.records(shard as ShardNo);
            let lease = self.services.rows().get(shard);
            if lease.is_none_or(|lease| !lease.existed()) {
                if self.services.is_forgotten(shard as ShardNo) {
                    continue;
                }
                // Only those that ended before the application began need no lease; coverage sees to the others.
                if self.cx.plan().config.initial_position() == InitialPosition::TrimHorizon {
                    return Some((
                        Property::HashSpaceCovered,
                        format!("shard {shard} never had a lease"),
                    ));
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
                    format!(
                        "shard {shard} is closed and processed, its lease says {}",
                        row.checkpoint
                    ),
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

    /// The first worker that goes on as if nothing had happened.
    fn goes_on(&self) -> Option<(Property, String)> {
        let kind = self.services.lost()?;
        let property = match kind {
            LossKind::StreamDeleted | LossKind::TableDeleted => Property::StallsReported,
            LossKind::StreamRemade | LossKind::TableOfAnother => Property::ForeignTablesRefused,
        };
        let goes_on = |worker: &super::Worker| worker.core && worker.lives();
        let w = self.workers.iter().position(goes_on)?;
        Some((property, format!("w{w} goes on, with {}", kind.family())))
    }

    /// Where leases are assigned by rank: an unfinished lease that is nobody's turn, or not with whose turn it is, once only
    /// the core is left.
    fn out_of_turn(&self) -> Option<(Property, String)> {
        if self.cx.plan().config.policies().assign != Assign::Rank {
            return None;
        }
        let core = self.workers.iter().filter(|worker| worker.core);
        let mut members: Vec<&WorkerId> = core
            .filter_map(|worker| match &worker.peer {
                Some(_) => self.cx.names().name(worker.life),
                None => worker.engine.as_ref()?.worker(),
            })
            .collect();
        members.sort();
        let shards = self.services.shared();
        let left_out = (0..self.services.shards().len()).find(|&n| {
            let waits = self.services.row(n).is_some_and(|row| !row.checkpoint.is_end());
            let listed = !self.services.is_forgotten(n as ShardNo);
            waits
                && listed
                && !shards
                    .iter()
                    .any(|shard| number(shard.as_str()) == Some(n as ShardNo))
        });
        if let Some(shard) = left_out {
            let sentence =
                format!("shard {shard} is unfinished and not shared out: other programs would not read it");
            return Some((Property::HashSpaceCovered, sentence));
        }
        shards.iter().enumerate().find_map(|(place, shard)| {
            let number = number(shard.as_str())?;
            let row = self
                .services
                .row(number as usize)
                .filter(|row| !row.checkpoint.is_end())?;
            let turn = members.get(place % members.len().max(1))?;
            (row.owner.as_ref() != Some(*turn)).then(|| {
                let sentence = format!(
                    "shard {number} belongs to {:?}, and it is the turn of {turn}",
                    row.owner
                );
                (Property::FairShares, sentence)
            })
        })
    }
}
