//! The operations of vmware-go-kcl on the lease table.

use super::super::sdk::{Failure, key_only, s, text};
use super::super::time;
use super::{Status, Worker};
use crate::oracles::fact::Verb;
use leasehold_engine::ids::ShardId;
use leasehold_engine::table::Item;
use leasehold_local_aws::dynamo::expr::{Comparator, Condition, Update};
use std::collections::BTreeMap;
use std::rc::Rc;

const KEY: &str = "ShardID";
const OWNER: &str = "AssignedTo";
const DEADLINE: &str = "LeaseTimeout";
const CHECKPOINT: &str = "Checkpoint";
const PARENT: &str = "ParentShardId";
const CLAIM: &str = "ClaimRequest";

pub(super) const SHARD_END: &str = "SHARD_END";

/// The spelling of the zero time.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The reason of a failed read of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The row is missing, or has no checkpoint: the program does not distinguish the cases.
    NoSequence,
    Failed(Failure),
}

/// The reason of a missing lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLeased {
    /// The lease of another worker is not yet expired.
    NotExpired,
    /// Another worker claims the lease.
    Claimed,
    Failed(Failure),
}

impl From<Failure> for NotLeased {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn key(id: &ShardId) -> Item {
    key_only(KEY, id.as_str())
}

fn is(name: &'static str, value: &str) -> Condition {
    Condition::equals(name, s(value))
}

fn spell(deadline: Option<u64>) -> String {
    deadline.map_or_else(|| ZERO_TIME.to_owned(), time::go)
}

impl Worker {
    /// Takes, takes over or renews a lease: all by one write of the whole row, from the kept state of the shard.
    pub(super) async fn get_lease(&self, shard: &Status) -> Result<(), NotLeased> {
        let host = &self.sdk.host;
        let deadline = host.wall_ns() + self.settings.failover_us * 1_000;
        let row = self.sdk.get(key(&shard.id), true).await?.unwrap_or_default();
        let now = host.wall_ns();
        // The original compares the kept state of the shard, not the row.
        let claim_expired =
            shard.deadline.get().is_some_and(|kept| kept + self.settings.claim_timeout_us * 1_000 < now);
        let claim = text(&row, CLAIM).filter(|claim| self.settings.stealing && !claim.is_empty());
        if claim.is_some_and(|claim| claim != self.me) && !claim_expired {
            return Err(NotLeased::Claimed);
        }
        let (mut condition, verb) = match (text(&row, OWNER), text(&row, DEADLINE)) {
            (Some(owner), Some(until)) => {
                let ends = time::parse(until).unwrap_or(0);
                if now < ends && owner != self.me && !(self.settings.stealing && claim_expired) {
                    return Err(NotLeased::NotExpired);
                }
                let verb = if owner == self.me { Verb::Renew } else { Verb::Take };
                let same = is(KEY, shard.id.as_str()).and(is(OWNER, owner)).and(is(DEADLINE, until));
                (same, verb)
            }
            _ => (Condition::not_exists(OWNER), Verb::Take),
        };
        if let Some(claim) = claim.filter(|claim| *claim == self.me && !claim_expired) {
            condition = condition.and(is(CLAIM, claim));
        }
        let mut item = self.row(shard);
        item.insert(OWNER.into(), s(&self.me));
        item.insert(DEADLINE.into(), s(&time::go(deadline)));
        self.sdk.put(verb, item, Some(condition)).await?;
        shard.assigned_to.replace(self.me.clone());
        shard.deadline.set(Some(deadline));
        Ok(())
    }

    /// The common parts of a row in every write of a lease.
    fn row(&self, shard: &Status) -> Item {
        let mut item = key(&shard.id);
        if let Some(parent) = &shard.parent {
            item.insert(PARENT.into(), s(parent.as_str()));
        }
        let checkpoint = shard.checkpoint.borrow();
        if !checkpoint.is_empty() {
            item.insert(CHECKPOINT.into(), s(&checkpoint));
        }
        item
    }

    /// Stores the application's progress: first in memory, then in the table, without a condition.
    pub(super) async fn checkpoint(&self, shard: &Status, sequence: &str) -> Result<(), Failure> {
        shard.checkpoint.replace(sequence.to_owned());
        let mut item = self.row(shard);
        item.insert(OWNER.into(), s(&shard.assigned_to.borrow()));
        item.insert(DEADLINE.into(), s(&spell(shard.deadline.get())));
        let verb = if sequence == SHARD_END { Verb::End } else { Verb::Checkpoint };
        self.sdk.put(verb, item, None).await
    }

    /// Reads the checkpoint, and with it owner and deadline; no attribute at all if the checkpoint is missing.
    pub(super) async fn fetch_checkpoint(&self, shard: &Status) -> Result<(), Held> {
        let row = self.sdk.get(key(&shard.id), true).await.map_err(Held::Failed)?;
        let row = row.unwrap_or_default();
        let checkpoint = text(&row, CHECKPOINT).ok_or(Held::NoSequence)?;
        shard.checkpoint.replace(checkpoint.to_owned());
        if let Some(owner) = text(&row, OWNER) {
            shard.assigned_to.replace(owner.to_owned());
        }
        if let Some(until) = text(&row, DEADLINE).and_then(time::parse) {
            shard.deadline.set(Some(until));
        }
        Ok(())
    }

    pub(super) async fn remove_lease_owner(&self, shard: &Status) -> Result<(), Failure> {
        let (update, mine) = (Update::new().remove(OWNER), is(OWNER, &self.me));
        self.sdk.update(Verb::Release, key(&shard.id), update, Some(mine)).await
    }

    pub(super) async fn remove_lease_info(&self, id: &ShardId) -> Result<(), Failure> {
        self.sdk.delete(key(id), None).await
    }

    /// Asks the owner to stop its renewals.
    pub(super) async fn claim_shard(&self, shard: &Status) -> Result<(), NotLeased> {
        if let Err(Held::Failed(failure)) = self.fetch_checkpoint(shard).await {
            return Err(failure.into());
        }
        let (owner, checkpoint) = (shard.assigned_to.borrow().clone(), shard.checkpoint.borrow().clone());
        let until = spell(shard.deadline.get());
        let mut item = self.row(shard);
        item.insert(CHECKPOINT.into(), s(&checkpoint));
        item.insert(DEADLINE.into(), s(&until));
        item.insert(CLAIM.into(), s(&self.me));
        let mut condition =
            is(KEY, shard.id.as_str()).and(is(DEADLINE, &until)).and(Condition::not_exists(CLAIM));
        condition = if owner.is_empty() {
            condition.and(Condition::not_exists(OWNER))
        } else {
            item.insert(OWNER.into(), s(&owner));
            condition.and(is(OWNER, &owner))
        };
        condition = condition.and(match checkpoint.as_str() {
            "" => Condition::not_exists(CHECKPOINT),
            SHARD_END => Condition::compare(CHECKPOINT, Comparator::Ne, s(&checkpoint)),
            _ => is(CHECKPOINT, &checkpoint),
        });
        condition = condition.and(match &shard.parent {
            Some(parent) => is(PARENT, parent.as_str()),
            None => Condition::not_exists(PARENT),
        });
        Ok(self.sdk.put(Verb::Claim, item, Some(condition)).await?)
    }

    /// The owners and their shards, by the kept state of the shards. Fails if some unfinished shard has no owner.
    pub(super) async fn list_active_workers(&self) -> Result<BTreeMap<String, Vec<Rc<Status>>>, NotLeased> {
        self.sync_leases().await?;
        let mut owned: BTreeMap<String, Vec<Rc<Status>>> = BTreeMap::new();
        for shard in self.shards.borrow().values().filter(|shard| !shard.has_ended()) {
            let owner = shard.assigned_to.borrow().clone();
            if owner.is_empty() {
                return Err(NotLeased::NotExpired);
            }
            owned.entry(owner).or_default().push(shard.clone());
        }
        Ok(owned)
    }

    /// Overwrites the kept state of every shard with the first page of a scan, now and then.
    async fn sync_leases(&self) -> Result<(), Failure> {
        let now = self.sdk.host.wall_ns();
        let due = |last: u64| now >= last + self.settings.lease_sync_us * 1_000;
        if !self.leases_synced_ns.get().is_none_or(due) {
            return Ok(());
        }
        self.leases_synced_ns.set(Some(now));
        let (rows, _) = self.sdk.scan(false, None).await?;
        for row in rows {
            let (Some(id), Some(owner), Some(checkpoint)) =
                (text(&row, KEY), text(&row, OWNER), text(&row, CHECKPOINT))
            else {
                continue;
            };
            if let Some(shard) = self.shards.borrow().get(id) {
                shard.assigned_to.replace(owner.to_owned());
                shard.checkpoint.replace(checkpoint.to_owned());
            }
        }
        Ok(())
    }
}
