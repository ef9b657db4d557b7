//! The judge: overdue events while the world runs, and whether all comes right within a bound after the faults.
//!
//! After the faults some workers, a random core, and all services are well; the other workers are dead or cut off for
//! ever. [`conditions`] and [`evenness`] hold the conditions that must become true, and [`bound`] the longest time
//! until then.

mod bound;
mod conditions;
mod evenness;

use super::chances::Chances;
use super::context::Context;
use super::fleet::{Fleet, Worker};
use super::services::Services;
use crate::oracles::fact::Owner;
use crate::oracles::{Fact, Property, ShardNo, Time};
use crate::peers::Assignment;
use bound::{bound, quiet};
use conditions::Scene;
use leasehold_engine::format::Format;
use serde::Serialize;

/// The ending of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// Every condition came true.
    Settled {
        /// The time after the faults, in µs.
        after_us: u64,
        /// The bound for that time, in µs.
        bound_us: u64,
    },
    /// Some condition did not come true, with an excuse: the reason.
    Excused(&'static str),
    /// Some condition did not come true, without an excuse; or a property was violated before.
    Broken,
    /// The run was cancelled, without a result.
    Cancelled,
}

/// The judged state, and the ending of the world.
#[derive(Debug, Default)]
pub(super) struct Judge {
    settling: Option<Settling>,
    ending: Option<Ending>,
}

/// The time after the faults.
#[derive(Clone, Copy, Debug)]
struct Settling {
    since: Time,
    /// The beginning of the present time in which all conditions but quiet are met.
    calm_since: Option<Time>,
    deadline: Time,
}

impl Settling {
    fn bound_us(&self) -> u64 {
        self.deadline.saturating_sub(self.since)
    }
}

impl Judge {
    /// The ending of the world, once ended.
    pub(super) fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The run was cancelled.
    pub(super) fn cancel(&mut self) {
        self.ending = Some(Ending::Cancelled);
    }

    /// The faults are over.
    pub(super) fn begin(&mut self, cx: &mut Context, services: &Services) {
        let (now, bound) = (cx.now(), bound(cx, services));
        self.settling = Some(Settling { since: now, calm_since: None, deadline: now + bound });
        cx.line(|| format!("faults are over; all must be well within {} s", bound / 1_000_000));
    }

    /// Judges the state of the world.
    pub(super) fn look(&mut self, cx: &mut Context, services: &Services, fleet: &Fleet, chances: &Chances) {
        look_for_the_slow(cx, services, fleet);
        cx.look();
        let Some(mut settling) = self.settling else {
            return;
        };
        if cx.is_lost_for_good() {
            return self.look_at_losses(cx, services, fleet, &settling);
        }
        if let Some(key) = services.harmed() {
            cx.report(Property::ExclusiveOwnership, || {
                format!("what other people put into the table at {key} is not as they left it")
            });
        }
        let (now, quiet) = (cx.now(), quiet(cx, services));
        let scene = Scene { cx, services, fleet };
        let unmet = scene.unmet();
        settling.calm_since = match (&unmet, settling.calm_since) {
            (Some(_), _) => None,
            (None, since) => Some(since.unwrap_or(now)),
        };
        self.settling = Some(settling);
        // The leases of an unreadable stream may move back and forth.
        let is_well = !cx.plan().faults.several.any_lasts();
        let last_move = if cx.plan().fleet.keeps_leases() && is_well { cx.oracles().last_move() } else { 0 };
        let still_since = settling.calm_since.map(|since| since.max(last_move));
        if let Some(since) = still_since
            && now >= since + quiet
        {
            self.settled(cx, (services, fleet, chances), since, &settling);
        } else if now > settling.deadline {
            self.stalled(cx, fleet, unmet, now - settling.since);
        }
    }

    /// After a loss, workers only need to stop.
    fn look_at_losses(&mut self, cx: &mut Context, services: &Services, fleet: &Fleet, settling: &Settling) {
        let (now, after_us) = (cx.now(), cx.now() - settling.since);
        let scene = Scene { cx, services, fleet };
        match scene.goes_on() {
            None => {
                let bound_us = settling.bound_us();
                self.ending = Some(Ending::Settled { after_us, bound_us });
            }
            unmet if now > settling.deadline => self.stalled(cx, fleet, unmet, after_us),
            Some(_) => {}
        }
    }

    fn settled(
        &mut self, cx: &mut Context, (services, fleet, chances): (&Services, &Fleet, &Chances), since: Time,
        settling: &Settling,
    ) {
        let now = cx.now();
        // The first half of the quiet may still finish earlier work.
        let listers: Vec<_> = cx
            .oracles()
            .listers(since + (now - since) / 2)
            .filter(|&life| {
                let w = fleet.of_life(life);
                w.is_some_and(|w| !chances.is_cut_off_for_ever(w))
            })
            .collect();
        let is_well = !cx.plan().faults.several.any_lasts();
        // A worker started later must list a stream itself before it may take leases of the stream, and lists an
        // unreadable stream for ever. And the owner of a lease without a shard lists, too, for as long as the parent of
        // that shard is listed.
        if listers.len() > 1 && is_well && !services.has_misnamed() {
            cx.report(Property::OneLeader, || format!("after quiet, lives {listers:?} all listed shards"));
        }
        let is_ours = |worker: &Worker| worker.is_core() && worker.is_ours();
        // Finished rows of an unreadable stream are not removed either.
        if is_well {
            cx.look_at_end(settling.since, fleet.workers().iter().any(is_ours));
        }
        self.ending = Some(Ending::Settled { after_us: now - settling.since, bound_us: settling.bound_us() });
    }

    fn stalled(&mut self, cx: &mut Context, fleet: &Fleet, unmet: Option<(Property, String)>, after_us: u64) {
        // With clocks worse than promised, an owner may lose its lease to thieves over and over; the promises do not
        // cover this case.
        if cx.plan().faults.clock.beyond {
            self.ending = Some(Ending::Excused("clocks were worse than promised"));
            return;
        }
        // A leader of KCL moves leases by load, for ever if the read load changes from minute to minute.
        let plan = &cx.plan().fleet;
        if unmet.is_none() && plan.is_led() && plan.assignment == Assignment::Load {
            self.ending = Some(Ending::Excused("a leader of KCL moved leases to and fro by load"));
            return;
        }
        let waits = unmet.as_ref().is_some_and(|(property, _)| waits_for_ours(cx, *property));
        let mut core = fleet.workers().iter().filter(|worker| worker.is_core());
        if waits && !core.any(Worker::is_ours) {
            self.ending = Some(Ending::Excused("no worker of ours is left to do what others leave undone"));
            return;
        }
        let (property, sentence) = unmet.unwrap_or_else(|| {
            (Property::FairShares, "leases kept moving although nothing else changed".to_owned())
        });
        cx.report(property, || format!("{} s after the faults {sentence}", after_us / 1_000_000));
        self.ending = Some(Ending::Broken);
    }
}

/// Whether foreign programs leave the condition unmet when no worker of ours is left: no model has KCL's auditor, which
/// fills holes, and vmware-go-kcl creates rows of finished shards anew.
fn waits_for_ours(cx: &Context, property: Property) -> bool {
    let plan = cx.plan();
    match property {
        Property::HashSpaceCovered | Property::LeasesOwned => plan.is_mixed(),
        Property::EveryRecordDelivered => plan.is_mixed() && plan.format == Format::VmwareGoKcl,
        _ => false,
    }
}

/// Tells the oracles the owned shards with unprocessed records: missing progress makes no fact.
fn look_for_the_slow(cx: &mut Context, services: &Services, fleet: &Fleet) {
    if cx.is_lost_for_good() {
        return;
    }
    let slow: Vec<_> = fleet.said().filter(|&(_, shard)| is_behind(cx, services, shard)).collect();
    for (life, shard) in slow {
        if services.owner_of(cx, Some(shard)) == Some(Owner::Life(life)) {
            cx.observe(&Fact::Behind { life, shard });
        }
    }
}

/// Whether a shard has unprocessed records, or a missing end.
fn is_behind(cx: &Context, services: &Services, shard: ShardNo) -> bool {
    let family = services.shards().get(shard as usize);
    let closed = family.is_some_and(|family| family.is_closed());
    let ended = || {
        let row = services.row(shard as usize);
        row.is_some_and(|row| row.checkpoint.is_end())
    };
    !cx.oracles().is_complete(shard, services.records(cx, shard)) || (closed && !ended())
}
