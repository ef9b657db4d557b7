//! Workers answered by replicas (late or partial), and wrong answers so far.

use super::About;
use crate::faults::{Chance, Deed, Replica, Says, Site};
use crate::oracles::{ShardNo, Time};
use crate::world::context::Context;
use std::collections::{BTreeMap, BTreeSet};

/// By the number of the worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Replicas {
    /// The end, the life, and the replica of each worker.
    of: Vec<Option<(Time, u32, Replica)>>,
    /// Shards not found once, by worker. A second time would break the promise to the engine: see
    /// [`crate::faults::ReplicaFaults`].
    struck: BTreeSet<(usize, ShardNo)>,
    /// Claimed ends by worker and shard: the time of the claim, and how long answers repeat the claim, in µs.
    claimed: BTreeMap<(usize, ShardNo), (Time, u64)>,
    /// The last single wrong answer: the life that got the answer, the number of the life's question, and the time.
    wrong: Vec<Option<(u32, u32, Time)>>,
}

/// The rest after a wrong replica until another wrong replica, for one worker, in scan intervals. In less time, two
/// wrong listings lie close enough together to be evidence.
const REST: u64 = 10;

impl Replicas {
    pub(super) fn new(workers: u32) -> Self {
        Self {
            of: vec![None; workers as usize],
            struck: BTreeSet::new(),
            claimed: BTreeMap::new(),
            wrong: vec![None; workers as usize],
        }
    }

    pub(super) fn begin(&mut self, now: Time, (w, life): (usize, u32), for_us: u64, replica: Replica) {
        self.of[w] = Some((now.saturating_add(for_us), life, replica));
    }

    /// The promise to a starting worker is stronger, since the worker gives up sooner: a replica's time ends with the
    /// life of its worker.
    pub(super) fn of(&self, now: Time, (w, life): (usize, u32)) -> Option<Replica> {
        let (until, met_in, replica) = self.of[w]?;
        (now < until && life == met_in).then_some(replica)
    }

    /// Whether the answer to a read of our worker claims the end of the shard.
    pub(super) fn draw_claim(&mut self, cx: &Context, site: Site, about: About) -> Option<Chance> {
        let of = (usize::from(site.worker), site.shard?);
        if site.deed != Deed::Fetch || !cx.plan().runs_ours(of.0, cx.now()) || self.claimed.contains_key(&of)
        {
            return None;
        }
        let mut roll = cx.draws().roll("end-claimed", site.key());
        let most_us = longest(cx);
        let faults = &cx.plan().faults.replica;
        faults.chance_of_claimed_end(about.ended.is_some(), most_us, &mut roll)
    }

    /// From now on, answers claim the end of the shard, for this time.
    pub(super) fn claim(&mut self, now: Time, site: Site, for_us: u64) {
        if let Some(shard) = site.shard {
            let of = (usize::from(site.worker), shard);
            self.claimed.insert(of, (now, for_us));
        }
    }

    /// Whether an answer repeats the claim of an earlier answer that the shard has ended. `ended`: the claim has become
    /// true. Then the promise to the engine counts: no answer about a closed shard is wrong for long.
    pub(super) fn claims_again(&self, cx: &Context, site: Site, ended: bool) -> bool {
        let claimed = |shard| self.claimed.get(&(usize::from(site.worker), shard));
        let Some(&(since, for_us)) = site.shard.and_then(claimed) else {
            // No answer to this worker has claimed the end of the shard.
            return false;
        };
        let for_us = if ended { for_us.min(longest(cx)) } else { for_us };
        site.deed == Deed::Fetch && cx.now() < since.saturating_add(for_us)
    }

    /// The fault drawn for a request, within the promise to the engine.
    pub(super) fn draw(&mut self, cx: &Context, site: Site, about: About) -> Option<Chance> {
        let faults = &cx.plan().faults.replica;
        let mut roll = cx.draws().roll("replica", site.key());
        let w = usize::from(site.worker);
        // A replica right before or after a single wrong answer would be wrong for longer than the promise allows.
        let scan_us = cx.plan().least(|config| config.scan_interval()).0;
        let replica_rested = self.of[w].is_none_or(|(until, ..)| cx.now() >= until + REST * scan_us);
        let wrong_rested = self.wrong[w].is_none_or(|(.., at)| cx.now() >= at + scan_us);
        if site.deed == Deed::Setup {
            let questions = cx.plan().streams;
            let rests =
                |&(life, nth, _): &(u32, u32, Time)| life == site.life && site.nth <= nth + 4 * questions;
            if !replica_rested || !wrong_rested || self.wrong[w].as_ref().is_some_and(rests) {
                return None;
            }
            let found = faults.chance_of_wrong(site.nth < 2 * questions + 2, &mut roll)?;
            self.wrong[w] = Some((site.life, site.nth, cx.now()));
            return Some(found);
        }
        let shard = site.shard.or(about.ended)?;
        if !replica_rested || !wrong_rested || self.struck.contains(&(w, shard)) {
            return None;
        }
        let most_us = longest(cx);
        let found = match site.deed {
            Deed::List => faults.chance_of_partial_list(shard, most_us, &mut roll)?,
            _ => faults.chance_of_not_found(site, about.turns, most_us, &mut roll)?,
        };
        self.struck.insert((w, shard));
        // With several streams, a worker looks for a returned stream like a starting worker.
        Some(match found {
            Chance::Replica { for_us, shows, .. } if cx.plan().streams > 1 => {
                Chance::Replica { for_us, shows, says: Says::Truth }
            }
            found => found,
        })
    }
}

/// The longest time of a wrong replica, in µs: less than `stream_lag`, the shortest scan interval of the world.
fn longest(cx: &Context) -> u64 {
    cx.plan().least(|config| config.scan_interval()).0 * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Shows;

    #[test]
    fn a_worker_is_answered_by_a_replica_for_so_long() {
        let mut replicas = Replicas::new(2);
        let replica = Replica { shard: 3, shows: Shows::Nothing, says: Says::Truth };
        replicas.begin(10, (1, 2), 5, replica);
        assert_eq!([replicas.of(14, (0, 2)), replicas.of(14, (1, 3))], [None, None]);
        assert_eq!([replicas.of(14, (1, 2)), replicas.of(15, (1, 2))], [Some(replica), None]);
    }
}
