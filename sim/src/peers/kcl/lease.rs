//! A lease in a worker's memory, and its spelling in a row. Written anew, so models and codecs check each other.

pub(super) use super::super::sdk::{number, s, text};

use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::ShardId;
use leasehold_engine::shard::HashRange;
use leasehold_engine::table::{AttributeValue, Item};
use std::collections::BTreeSet;

pub(super) const KEY: &str = "leaseKey";
pub(super) const OWNER: &str = "leaseOwner";
pub(super) const COUNTER: &str = "leaseCounter";
pub(super) const SWITCHES: &str = "ownerSwitchesSinceCheckpoint";
pub(super) const CHECKPOINT: &str = "checkpoint";
pub(super) const SUB: &str = "checkpointSubSequenceNumber";
pub(super) const PARENTS: &str = "parentShardId";
pub(super) const CHILDREN: &str = "childShardIds";
pub(super) const RANGE_START: &str = "startingHashKey";
pub(super) const RANGE_END: &str = "endingHashKey";

/// Version 3: the present owner until the hand-over to the row's owner.
pub(super) const CHECKPOINT_OWNER: &str = "checkpointOwner";
/// Version 3: the throughput of the shard, in KiB a second.
pub(super) const THROUGHPUT: &str = "throughputKBps";
/// Version 3: the kind of the item; none: a lease.
pub(super) const ENTITY: &str = "entityType";

pub(super) const SHARD_END: &str = "SHARD_END";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lease {
    pub key: ShardId,
    pub owner: Option<String>,
    pub counter: u64,
    pub switches: u64,
    pub checkpoint: String,
    pub parents: Vec<ShardId>,
    pub children: BTreeSet<String>,
    pub range: Option<(String, String)>,
    pub checkpoint_owner: Option<String>,
    pub throughput: Option<f64>,
    /// The time of the last growth of its counter known to this process, by the monotonic clock. Not in the row.
    pub grown_us: Option<u64>,
}

fn set(item: &Item, name: &str) -> BTreeSet<String> {
    match item.get(name) {
        Some(AttributeValue::Ss(set)) => set.clone(),
        _ => BTreeSet::new(),
    }
}

impl Lease {
    /// A lease without an owner.
    pub(super) fn new<'a>(
        key: ShardId, parents: impl Iterator<Item = &'a ShardId>, range: HashRange, checkpoint: &str,
    ) -> Self {
        Self {
            key,
            owner: None,
            counter: 0,
            switches: 0,
            checkpoint: checkpoint.to_owned(),
            parents: parents.cloned().collect(),
            children: BTreeSet::new(),
            range: Some((range.start.to_string(), range.end.to_string())),
            checkpoint_owner: None,
            throughput: None,
            grown_us: None,
        }
    }

    /// `None`: the item is no lease, or lacks an attribute of every lease. A scan omits such items.
    pub(super) fn of(item: &Item) -> Option<Self> {
        if text(item, ENTITY).is_some_and(|kind| kind != "LEASE") {
            return None;
        }
        let bound = |name| text(item, name).map(str::to_owned);
        let throughput = item.get(THROUGHPUT).and_then(AttributeValue::as_n);
        Some(Self {
            key: ShardId::from(text(item, KEY)?.to_owned()),
            owner: text(item, OWNER).map(str::to_owned),
            counter: number(item, COUNTER)?,
            switches: number(item, SWITCHES)?,
            checkpoint: text(item, CHECKPOINT)?.to_owned(),
            parents: set(item, PARENTS).into_iter().map(ShardId::from).collect(),
            children: set(item, CHILDREN),
            range: bound(RANGE_START).zip(bound(RANGE_END)),
            checkpoint_owner: bound(CHECKPOINT_OWNER),
            throughput: throughput.and_then(|number| number.parse().ok()),
            grown_us: None,
        })
    }

    /// The whole item at its creation.
    pub(super) fn item(&self) -> Item {
        let mut item = super::key(&self.key);
        item.insert(COUNTER.into(), AttributeValue::n(self.counter));
        item.insert(SWITCHES.into(), AttributeValue::n(self.switches));
        item.insert(CHECKPOINT.into(), s(&self.checkpoint));
        item.insert(SUB.into(), AttributeValue::n(0));
        if !self.parents.is_empty() {
            let parents = self.parents.iter().map(ToString::to_string).collect();
            item.insert(PARENTS.into(), AttributeValue::Ss(parents));
        }
        if let Some((start, end)) = &self.range {
            item.insert(RANGE_START.into(), s(start));
            item.insert(RANGE_END.into(), s(end));
        }
        item
    }

    /// The worker with the right to write to the row.
    pub(super) fn actual_owner(&self) -> Option<&str> {
        self.checkpoint_owner.as_deref().or(self.owner.as_deref())
    }

    /// Whether the owner is to hand the lease over.
    pub(super) fn is_handed_over(&self) -> bool {
        self.checkpoint_owner.is_some()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.checkpoint == SHARD_END
    }

    /// A lease never seen to grow is expired.
    pub(super) fn is_expired(&self, failover_us: u64, now_us: u64) -> bool {
        self.grown_us.is_none_or(|grown| now_us.saturating_sub(grown) > failover_us)
    }
}

/// The spelling of the configured position. The time of AT_TIMESTAMP is in the configuration only.
pub(super) fn sentinel(position: InitialPosition) -> &'static str {
    match position {
        InitialPosition::TrimHorizon => "TRIM_HORIZON",
        InitialPosition::Latest => "LATEST",
        InitialPosition::AtTimestamp(_) => "AT_TIMESTAMP",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::format::Format;

    #[test]
    fn a_new_lease_is_read_alike_by_both_sides() {
        let parents = [ShardId::from("shardId-000000000001")];
        let lease = Lease::new("shardId-000000000007".into(), parents.iter(), HashRange::ALL, "TRIM_HORIZON");
        let item = lease.item();
        assert_eq!(Lease::of(&item), Some(lease));
        let read = Format::Kcl.codec().decode(&item);
        let row = read.lease().expect("expected a lease");
        assert_eq!((row.counter, row.range), (0, Some(HashRange::ALL)));
        assert_eq!(row.parents, parents);
    }

    #[test]
    fn a_row_without_a_counter_is_no_lease() {
        let mut item = Lease::new("a".into(), [].iter(), HashRange::ALL, "LATEST").item();
        item.remove(COUNTER);
        assert_eq!(Lease::of(&item), None);
    }

    #[test]
    fn a_lease_is_over_after_standing_for_longer_than_its_life() {
        let mut lease = Lease::new("a".into(), [].iter(), HashRange::ALL, "LATEST");
        assert!(lease.is_expired(10, 0));
        lease.grown_us = Some(5);
        assert!(!lease.is_expired(10, 15) && lease.is_expired(10, 16));
    }
}
