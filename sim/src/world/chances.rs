//! Chance: what hits a request or a batch is drawn while the world runs, or is given as a list.

use super::World;
use crate::draws::Roll;
use crate::faults::{Chance, Deed, RequestFault, Service, Site};
use crate::oracles::ShardNo;
use crate::oracles::fact::{Ask, Verb};
use std::collections::BTreeMap;

/// What decides about chance, and what it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Chances {
    /// Then nothing else happens.
    listed: Option<BTreeMap<Site, Vec<Chance>>>,
    /// Every request fault, if they are wanted.
    pub struck: Option<Vec<RequestFault>>,
    crashes_on_write: u32,
}

impl Chances {
    pub(super) fn new(listed: Option<&[RequestFault]>, record: bool) -> Self {
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
        }
    }

    fn note(&mut self, site: Site, chances: &[Chance]) {
        if let Some(struck) = &mut self.struck {
            struck.extend(chances.iter().map(|&fault| RequestFault { on: site, fault }));
        }
    }
}

impl World {
    /// Counts a deed of a worker's present life.
    pub(super) fn site(&mut self, w: usize, deed: Deed, shard: Option<ShardNo>) -> Site {
        let worker = &mut self.workers[w];
        Site {
            worker: w as u16,
            life: worker.generation,
            deed,
            shard,
            nth: worker.adapter.count(deed, shard),
        }
    }

    /// What chance does to a request that ordinarily takes so long, in µs.
    pub(super) fn chances_of_call(&mut self, site: Site, roll: &mut Roll, way_us: u64) -> Vec<Chance> {
        let found = match &self.chances.listed {
            Some(listed) => listed.get(&site).cloned().unwrap_or_default(),
            None => self.draw_call(site, roll, way_us),
        };
        self.chances.note(site, &found);
        found
    }

    /// Whether a request is turned away because everybody is.
    fn is_stormy(&self, site: Site) -> bool {
        let service = if site.deed.is_of_table() {
            Service::Table
        } else {
            Service::Stream
        };
        let rate = self.cx.plan().faults.storm.rate(service, self.cx.now());
        rate > 0 && site.deed != Deed::Setup && self.cx.draws().roll("storm", site.key()).happens(rate)
    }

    fn draw_call(&mut self, site: Site, roll: &mut Roll, way_us: u64) -> Vec<Chance> {
        let (mut found, mut stormy) = (Vec::new(), false);
        let faults = &self.cx.plan().faults;
        let deed = site.deed;
        if deed.is_write() && site.shard.is_some() && site.shard == faults.table.hung_lease {
            found.push(Chance::Hung {
                executed: roll.below(2) == 0,
            });
        } else if deed == Deed::Fetch && site.shard.is_some() && site.shard == faults.stream.dry_shard {
            found.push(Chance::Empty);
        } else if self.is_stormy(site) {
            stormy = true;
            found.push(Chance::Throttled);
        } else if !faults.call.rests(self.cx.draws(), self.cx.now()) {
            if deed == Deed::Fetch {
                faults.stream.chances(roll, &mut found);
            }
            found.extend(faults.call.chance(roll));
            if deed == Deed::Scan {
                found.extend(faults.table.chance_of_staleness(roll));
            }
        }
        found.extend(faults.process.chance_of_pause(roll));
        if deed == Deed::Take {
            found.extend(
                faults
                    .process
                    .chance_of_stop(roll, self.cx.plan().config.lease_duration().0),
            );
        }
        if matches!(deed, Deed::Take | Deed::Create | Deed::End) {
            found.extend(faults.outage.chance(roll));
        }
        if deed.is_write()
            && let Some(crash) =
                faults
                    .process
                    .chance_of_crash(roll, way_us, self.cx.plan().config.lease_duration().0)
            && self.chances.crashes_on_write < faults.process.crash_on_write_most
        {
            self.chances.crashes_on_write += 1;
            found.push(crash);
        }
        if deed == Deed::Take && self.owner_of(site.shard).is_some() {
            let lease_us = self.cx.plan().config.lease_duration().0;
            let faults = &self.cx.plan().faults;
            found.extend(faults.table.chance_of_hand_over(roll, lease_us));
        }
        if stormy {
            self.cx.mark("throttle-storm");
        }
        found
    }

    /// What chance does to the handling of a batch.
    pub(super) fn chances_of_batch(&mut self, site: Site, roll: &mut Roll) -> Vec<Chance> {
        let found = match &self.chances.listed {
            Some(listed) => listed.get(&site).cloned().unwrap_or_default(),
            None => {
                let mut found = Vec::new();
                self.cx.plan().faults.application.chances(roll, &mut found);
                if let Some(cut) = self.cx.plan().faults.outage.chance(roll) {
                    found.push(cut);
                    // A handler that is still at it when the lease is another's is what such a cut is about. What does not
                    // heed an abort is long enough as it is.
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
        self.chances.note(site, &found);
        found
    }
}

/// The deed that a request is.
pub(super) fn deed(ask: Ask) -> Deed {
    match ask {
        Ask::Setup => Deed::Setup,
        Ask::Members => Deed::Members,
        Ask::ScanPage => Deed::Scan,
        Ask::Read => Deed::Read,
        Ask::ListShards | Ask::ListMore => Deed::List,
        Ask::GetIterator => Deed::Iterator,
        Ask::GetRecords => Deed::Fetch,
        Ask::Write(verb) => match verb {
            Verb::Create => Deed::Create,
            Verb::Renew => Deed::Renew,
            Verb::Take | Verb::Claim => Deed::Take,
            Verb::Checkpoint => Deed::Checkpoint,
            Verb::End => Deed::End,
            Verb::Release => Deed::Release,
            Verb::BeginHandOver | Verb::HandOver => Deed::HandOver,
            Verb::SetRange => Deed::SetRange,
            Verb::Delete => Deed::Delete,
        },
    }
}
