//! The judge: what is overdue while the world goes on, and whether all comes right within a bound after the faults.
//!
//! After the faults some workers, a random core, and all services are well; the other workers are dead or cut off for ever. What must
//! become true is in [`conditions`] and [`evenness`], how long it may take in [`bound`].

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

/// What is judged, and how the world ended.
#[derive(Debug, Default)]
pub(super) struct Judge {
    settling: Option<Settling>,
    ending: Option<Ending>,
}

/// The time after the faults.
#[derive(Clone, Copy, Debug)]
struct Settling {
    since: Time,
    /// When all conditions but quiet were first met in a row.
    calm_since: Option<Time>,
    deadline: Time,
}

impl Settling {
    fn bound_us(&self) -> u64 {
        self.deadline.saturating_sub(self.since)
    }
}

impl Judge {
    /// How the world ended, if it has.
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

    /// Judges the state of things.
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
        // The leases of a stream that cannot be read may go to and fro.
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

    /// All that is left to be done is to stop.
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
        // The first half of the quiet may still finish what went before.
        let listers: Vec<_> = cx
            .oracles()
            .listers(since + (now - since) / 2)
            .filter(|&life| {
                let w = fleet.of_life(life);
                w.is_some_and(|w| !chances.is_cut_off_for_ever(w))
            })
            .collect();
        let is_well = !cx.plan().faults.several.any_lasts();
        // Who was started since must list a stream itself before it may take leases of it: one that cannot be read, for ever.
        // And the owner of a lease whose shard does not exist lists for it, too, for as long as its parent is listed.
        if listers.len() > 1 && is_well && !services.has_misnamed() {
            cx.report(Property::OneLeader, || format!("after quiet, lives {listers:?} all listed shards"));
        }
        let is_ours = |worker: &Worker| worker.is_core() && worker.is_ours();
        // Nor are finished rows of that stream removed.
        if is_well {
            cx.look_at_end(settling.since, fleet.workers().iter().any(is_ours));
        }
        self.ending = Some(Ending::Settled { after_us: now - settling.since, bound_us: settling.bound_us() });
    }

    fn stalled(&mut self, cx: &mut Context, fleet: &Fleet, unmet: Option<(Property, String)>, after_us: u64) {
        // With clocks worse than promised a holder may be robbed over and over; nothing was promised then.
        if cx.plan().faults.clock.beyond {
            self.ending = Some(Ending::Excused("clocks were worse than promised"));
            return;
        }
        // A leader of KCL moves leases by load, for ever if what is read changes from minute to minute.
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

/// Whether programs of others leave it undone where no worker of ours is left: no model has the auditor that fills holes in KCL, and
/// vmware-go-kcl creates rows of finished shards anew.
fn waits_for_ours(cx: &Context, property: Property) -> bool {
    let plan = cx.plan();
    match property {
        Property::HashSpaceCovered | Property::LeasesOwned => plan.is_mixed(),
        Property::EveryRecordDelivered => plan.is_mixed() && plan.format == Format::VmwareGoKcl,
        _ => false,
    }
}

/// Tells the oracles which shards are held and not all processed: absence makes no fact.
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

/// Whether something is left to be done with a shard.
fn is_behind(cx: &Context, services: &Services, shard: ShardNo) -> bool {
    let family = services.shards().get(shard as usize);
    let closed = family.is_some_and(|family| family.is_closed());
    let ended = || {
        let row = services.row(shard as usize);
        row.is_some_and(|row| row.checkpoint.is_end())
    };
    !cx.oracles().is_complete(shard, services.records(cx, shard)) || (closed && !ended())
}
