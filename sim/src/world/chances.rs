//! Chance: faults of requests and batches are drawn while the world runs, or come from a list.

mod misreads;
mod replicas;

use super::context::Context;
use crate::draws::Roll;
use crate::faults::{Chance, Deed, Replica, RequestFault, Service, Site};
use crate::oracles::fact::{Ask, Verb};
use crate::oracles::{ShardNo, Time};
use misreads::Misreads;
use replicas::Replicas;
use std::collections::BTreeMap;

/// The properties of a request that matter to chance.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    /// The request takes a lease from an owner.
    owned: bool,
    /// The shard of the request began or ended lately.
    turns: bool,
    /// An ended shard: the shard of the request, or a shard of the listed stream.
    ended: Option<ShardNo>,
}

impl About {
    pub(super) fn new(owned: bool, turns: bool, ended: Option<ShardNo>) -> Self {
        Self { owned, turns, ended }
    }
}

/// The source of chance faults, and the effects that last.
#[derive(Clone, Debug, Default)]
pub(super) struct Chances {
    /// The list of faults; with a list, no other fault happens.
    listed: Option<BTreeMap<Site, Vec<Chance>>>,
    /// Every request fault, if requested.
    struck: Option<Vec<RequestFault>>,
    crashes_on_write: u32,
    /// Workers answered by a replica (late or partial).
    replicas: Replicas,
    /// Wrong answers so far, by worker and shard.
    misreads: Misreads,
    /// Each worker's reach of the services, by the worker's number.
    reach: Vec<Reach>,
}

/// Whether a worker reaches the services.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    /// The worker never reaches a service again.
    never: bool,
    /// The worker does not reach the table until this time.
    not_table_until: Time,
}

impl Chances {
    pub(super) fn new(listed: Option<&[RequestFault]>, record: bool, workers: u32) -> Self {
        let listed = listed.map(|request_faults| {
            let mut sites: BTreeMap<Site, Vec<Chance>> = BTreeMap::new();
            for fault in request_faults {
                sites.entry(fault.on).or_default().push(fault.fault);
            }
            sites
        });
        Self {
            listed,
            struck: record.then(Vec::new),
            crashes_on_write: 0,
            replicas: Replicas::new(workers),
            misreads: Misreads::default(),
            reach: vec![Reach::default(); workers as usize],
        }
    }

    /// Every request fault, if requested.
    pub(super) fn into_struck(self) -> Vec<RequestFault> {
        self.struck.unwrap_or_default()
    }

    /// From now on a worker does not reach the table, for this time.
    pub(super) fn cut_off(&mut self, now: Time, w: usize, for_us: u64) {
        let until = now.saturating_add(for_us);
        let reach = &mut self.reach[w];
        reach.not_table_until = reach.not_table_until.max(until);
    }

    /// From now on a worker reaches no service.
    pub(super) fn cut_off_for_ever(&mut self, w: usize) {
        self.reach[w].never = true;
    }

    pub(super) fn is_cut_off_for_ever(&self, w: usize) -> bool {
        self.reach[w].never
    }

    pub(super) fn reaches_table(&self, now: Time, w: usize) -> bool {
        now >= self.reach[w].not_table_until
    }

    /// From now on a replica without knowledge of a shard answers a worker, for this time.
    pub(super) fn answer_by(&mut self, now: Time, site: Site, for_us: u64, replica: Replica) {
        let of = (usize::from(site.worker), site.life);
        self.replicas.begin(now, of, for_us, replica);
    }

    /// The replica that answers a worker, unless the replica is well.
    pub(super) fn replica_of(&self, now: Time, site: Site) -> Option<Replica> {
        self.replicas.of(now, (usize::from(site.worker), site.life))
    }

    /// From now on, answers to a worker claim the end of a shard, for this time.
    pub(super) fn claim_end(&mut self, now: Time, site: Site, for_us: u64) {
        self.replicas.claim(now, site, for_us);
    }

    /// Whether an answer repeats the claim of an earlier answer that its shard has ended.
    pub(super) fn claims_end_again(&self, cx: &Context, site: Site, ended: bool) -> bool {
        self.replicas.claims_again(cx, site, ended)
    }

    /// Draws the faults of a batch, applies cuts, and returns the faults.
    pub(super) fn hit_batch(&mut self, cx: &mut Context, site: Site, roll: &mut Roll) -> Vec<Chance> {
        let found = self.of_batch(cx, site, roll);
        let w = usize::from(site.worker);
        for chance in &found {
            cx.fault(chance.family(), Some(w), None);
            if let Chance::Cut { for_us } = *chance {
                self.cut_off(cx.now(), w, for_us);
            }
        }
        found
    }

    fn note(&mut self, site: Site, chances: &[Chance]) {
        if let Some(struck) = &mut self.struck {
            struck.extend(chances.iter().map(|&fault| RequestFault { on: site, fault }));
        }
    }

    /// The faults of a request. `way_us`: the ordinary time of the request, in µs.
    pub(super) fn of_call(
        &mut self, cx: &mut Context, site: Site, roll: &mut Roll, way_us: u64, about: About,
    ) -> Vec<Chance> {
        let found = match &self.listed {
            Some(listed) => listed.get(&site).cloned().unwrap_or_default(),
            None => {
                let mut found = Vec::new();
                if !is_spared(cx, usize::from(site.worker)) {
                    found = self.draw_call(cx, site, roll, way_us, about.owned);
                    found.extend(self.replicas.draw(cx, site, about));
                    found.extend(self.replicas.draw_claim(cx, site, about));
                    found.extend(self.misreads.draw(cx, site, about));
                }
                let ours = cx.plan().runs_ours(usize::from(site.worker), cx.now());
                let mut roll = cx.draws().roll("peers", site.key());
                found.extend(cx.plan().faults.peers.chance(site.deed, ours, &mut roll));
                found
            }
        };
        self.note(site, &found);
        found
    }

    fn draw_call(
        &mut self, cx: &mut Context, site: Site, roll: &mut Roll, way_us: u64, owned: bool,
    ) -> Vec<Chance> {
        let (mut found, mut stormy, mut failed) = (Vec::new(), false, false);
        let faults = &cx.plan().faults;
        let deed = site.deed;
        let of_lease = |lease| deed.is_write() && site.shard.is_some() && site.shard == lease;
        if of_lease(faults.table.hung_lease) {
            found.push(Chance::Hung { executed: roll.below(2) == 0 });
        } else if deed != Deed::Create && of_lease(faults.table.refused_lease) {
            found.push(Chance::Refused);
        } else if deed == Deed::Fetch && site.shard.is_some() && site.shard == faults.stream.dry_shard {
            found.push(Chance::Empty);
        } else if is_stormy(cx, site) {
            stormy = true;
            found.push(Chance::Throttled);
        } else if is_failed(cx, site) {
            failed = true;
            found.push(Chance::ServerError { executed: false });
        } else if !faults.call.rests(cx.draws(), cx.now()) {
            if deed == Deed::Fetch {
                faults.stream.chances(roll, &mut found);
            }
            found.extend(faults.call.chance(roll));
            if deed == Deed::Scan {
                found.extend(faults.table.chance_of_staleness(roll));
            }
        }
        found.extend(faults.process.chance_of_pause(roll));
        if deed == Deed::Setup && site.nth == 0 && roll.happens(faults.stream.wrong_first_look) {
            found.push(Chance::WrongFirstLook);
        }
        if deed == Deed::Take {
            found.extend(faults.process.chance_of_stop(roll, cx.plan().config.lease_duration().0));
        }
        if matches!(deed, Deed::Take | Deed::Create | Deed::End) {
            found.extend(faults.outage.chance(roll));
        }
        if deed.is_write()
            && let Some(crash) =
                faults.process.chance_of_crash(deed, roll, way_us, cx.plan().config.lease_duration().0)
            && self.crashes_on_write < faults.process.crash_on_write_most
        {
            self.crashes_on_write += 1;
            found.push(crash);
        }
        if deed == Deed::Take && owned {
            let lease_us = cx.plan().config.lease_duration().0;
            let faults = &cx.plan().faults;
            found.extend(faults.table.chance_of_hand_over(roll, lease_us));
        }
        if stormy {
            cx.mark("throttle-storm");
        }
        if failed {
            cx.mark("failing-writes");
        }
        found
    }

    /// The faults in the handling of a batch.
    fn of_batch(&mut self, cx: &Context, site: Site, roll: &mut Roll) -> Vec<Chance> {
        let found = match &self.listed {
            Some(listed) => listed.get(&site).cloned().unwrap_or_default(),
            None if is_spared(cx, usize::from(site.worker)) => Vec::new(),
            None => {
                let mut found = Vec::new();
                let application = &cx.plan().faults.application;
                application.chances(roll, &mut found);
                found.extend(application.chance_of_pause(cx.draws().roll("shard-paused", site.key())));
                if let Some(cut) = cx.plan().faults.outage.chance(roll) {
                    found.push(cut);
                    // The cut aims at a handler still at work when another worker has the lease. A handler deaf to an
                    // abort is slow enough without a further delay.
                    let deaf = |chance: &Chance| {
                        matches!(chance, Chance::HandlerHangs { .. } | Chance::HandlerDeaf { .. })
                    };
                    let slows = roll.below(2) == 0 && !found.iter().any(deaf);
                    if let (Chance::Cut { for_us }, true) = (cut, slows) {
                        let by_us = for_us * 2;
                        found.push(Chance::HandlerSlow { by_us });
                    }
                }
                found
            }
        };
        self.note(site, &found);
        found
    }
}

/// Whether faults spare a worker, since the worker runs a foreign program.
pub(super) fn is_spared(cx: &Context, w: usize) -> bool {
    cx.plan().faults.peers.spared && !cx.plan().runs_ours(w, cx.now())
}

/// Whether a storm throttles a request.
fn is_stormy(cx: &Context, site: Site) -> bool {
    let service = if site.deed.is_of_table() { Service::Table } else { Service::Stream };
    let rate = cx.plan().faults.storm.rate(service, cx.now());
    rate > 0 && site.deed != Deed::Setup && cx.draws().roll("storm", site.key()).happens(rate)
}

/// Whether the lease table fails a write.
fn is_failed(cx: &Context, site: Site) -> bool {
    let rate = if site.deed.is_write() { cx.plan().faults.storm.fails(cx.now()) } else { 0 };
    rate > 0 && cx.draws().roll("failing-writes", site.key()).happens(rate)
}

/// The deed of a request.
pub(super) fn deed(ask: Ask) -> Deed {
    match ask {
        Ask::Setup | Ask::OwnerIndex | Ask::DescribeStream(_) | Ask::Consumer(_) => Deed::Setup,
        Ask::Members => Deed::Members,
        Ask::ScanPage | Ask::Owned => Deed::Scan,
        Ask::Read => Deed::Read,
        Ask::ListShards | Ask::ListMore => Deed::List,
        Ask::GetIterator | Ask::Subscribe => Deed::Iterator,
        Ask::GetRecords | Ask::NextEvent => Deed::Fetch,
        Ask::Write(verb) => match verb {
            Verb::Create => Deed::Create,
            Verb::Renew => Deed::Renew,
            Verb::Take | Verb::Claim | Verb::Assign => Deed::Take,
            Verb::Checkpoint => Deed::Checkpoint,
            Verb::End => Deed::End,
            Verb::Release => Deed::Release,
            Verb::BeginHandOver | Verb::HandOver => Deed::HandOver,
            Verb::SetRange => Deed::SetRange,
            Verb::Delete => Deed::Delete,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::swarm::Plan;

    #[test]
    fn a_worker_cut_off_twice_reaches_the_table_after_the_later_cut() {
        let mut chances = Chances::new(None, false, 2);
        chances.cut_off(10, 1, 20);
        chances.cut_off(15, 1, 5);
        assert!(chances.reaches_table(29, 0) && !chances.reaches_table(29, 1));
        assert!(chances.reaches_table(30, 1));
        chances.cut_off_for_ever(0);
        assert!(chances.is_cut_off_for_ever(0) && !chances.is_cut_off_for_ever(1));
    }

    #[test]
    fn a_batch_that_is_listed_is_hit_and_cuts_its_worker_off() {
        let plan = Plan::draw(3).without_faults();
        let on = Site { worker: 0, life: 0, deed: Deed::Batch, shard: Some(0), nth: 0 };
        let fault = Chance::Cut { for_us: 7 };
        let mut chances = Chances::new(Some(&[RequestFault { on, fault }]), true, plan.workers);
        let mut cx = Context::new(plan, &Options::default());
        let mut roll = cx.draws().roll("handle", on.key());
        assert_eq!(chances.hit_batch(&mut cx, on, &mut roll), [fault]);
        assert!(!chances.reaches_table(6, 0) && chances.reaches_table(7, 0));
        assert_eq!(chances.into_struck(), [RequestFault { on, fault }]);
    }
}
