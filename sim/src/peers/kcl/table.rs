//! The operations of the Java KCL on the lease table.

use super::super::sdk::{Failure, Sdk, held};
use super::lease::{
    CHECKPOINT, CHECKPOINT_OWNER, CHILDREN, COUNTER, ENTITY, KEY, Lease, OWNER, RANGE_END, RANGE_START, SUB,
    SWITCHES, THROUGHPUT, s,
};
use crate::oracles::fact::Verb;
use leasehold_engine::ids::ShardId;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::{Condition, Update};

#[derive(Clone)]
pub(super) struct Table {
    pub sdk: Sdk,
    /// The table has hand-overs, as in version 3.
    pub hands_over: bool,
}

pub(super) fn key(id: &ShardId) -> Item {
    Item::from([(KEY.into(), s(id.as_str()))])
}

fn counts(lease: &Lease) -> Condition {
    Condition::equals(COUNTER, AttributeValue::n(lease.counter))
}

fn counted(lease: &Lease) -> Update {
    Update::new().set(COUNTER, AttributeValue::n(lease.counter + 1))
}

impl Table {
    /// Every lease; unreadable items are left out.
    pub(super) async fn leases(&self) -> Result<Vec<Lease>, Failure> {
        let rows = self.sdk.scan_all(false).await?;
        Ok(rows.iter().filter_map(|item| Lease::of(item)).collect())
    }

    /// Eventually consistent, like the default configuration.
    pub(super) async fn lease(&self, id: &ShardId) -> Result<Option<Lease>, Failure> {
        let item = self.sdk.get(key(id), false).await?;
        Ok(item.as_deref().and_then(Lease::of))
    }

    pub(super) async fn create(&self, lease: &Lease) -> Result<bool, Failure> {
        let absent = Condition::not_exists(KEY);
        let mut item = lease.item();
        if self.hands_over {
            item.insert(ENTITY.into(), s("LEASE"));
        }
        held(self.sdk.put(Verb::Create, item, Some(absent)).await)
    }

    /// The counter alone guards the renewal; in version 3 also the absence of a known hand-over. After a refusal, a
    /// look at the row shows a hand-over, or an earlier success of an attempt of this very renewal.
    pub(super) async fn renew(&self, lease: &mut Lease) -> Result<bool, Failure> {
        loop {
            let mut update = counted(lease);
            if let Some(throughput) = lease.throughput.filter(|_| self.hands_over) {
                update = update.set(THROUGHPUT, AttributeValue::n(format!("{throughput:.6}")));
            }
            let stays = self.hands_over && !lease.is_handed_over();
            let condition = match stays {
                true => counts(lease).and(Condition::not_exists(CHECKPOINT_OWNER)),
                false => counts(lease),
            };
            let written = self.sdk.update(Verb::Renew, key(&lease.key), update, Some(condition));
            if held(written.await)? {
                lease.counter += 1;
                return Ok(true);
            }
            if stays {
                // The original's refusal brings the row.
                let row = self.sdk.get(key(&lease.key), true).await?;
                let row = row.as_deref().and_then(Lease::of);
                if let Some(row) = row.filter(Lease::is_handed_over) {
                    if row.checkpoint_owner != lease.owner || row.checkpoint_owner == row.owner {
                        return Ok(false);
                    }
                    (lease.owner, lease.checkpoint_owner) = (row.owner, row.checkpoint_owner);
                    continue;
                }
            }
            let found = self.lease(&lease.key).await?;
            // After a hand-over, the row names another owner.
            let mine = found.is_some_and(|row| {
                row.owner.as_deref() == lease.actual_owner() && row.counter == lease.counter + 1
            });
            lease.counter += u64::from(mine);
            return Ok(mine);
        }
    }

    /// Takes a lease from any owner.
    pub(super) async fn take(&self, lease: &mut Lease, me: &str) -> Result<bool, Failure> {
        let mut update = counted(lease).set(OWNER, s(me));
        if self.hands_over {
            update = update.remove(CHECKPOINT_OWNER);
        }
        let changes = lease.owner.as_deref().is_some_and(|owner| owner != me);
        if changes {
            update = update.add(SWITCHES, AttributeValue::n(1));
        }
        let written = self.sdk.update(Verb::Take, key(&lease.key), update, Some(counts(lease)));
        let done = held(written.await)?;
        if done {
            lease.counter += 1;
            lease.switches += u64::from(changes);
            lease.owner = Some(me.to_owned());
            lease.checkpoint_owner = None;
        }
        Ok(done)
    }

    /// Stores the checkpoint, with all kept attributes of the shard.
    pub(super) async fn checkpoint(&self, lease: &mut Lease) -> Result<bool, Failure> {
        let mut update = counted(lease)
            .set(CHECKPOINT, s(&lease.checkpoint))
            .set(SUB, AttributeValue::n(0))
            .set(SWITCHES, AttributeValue::n(0));
        if !lease.children.is_empty() {
            update = update.set(CHILDREN, AttributeValue::Ss(lease.children.clone()));
        }
        if let Some((start, end)) = &lease.range {
            update = update.set(RANGE_START, s(start)).set(RANGE_END, s(end));
        }
        let verb = if lease.has_ended() { Verb::End } else { Verb::Checkpoint };
        let written = self.sdk.update(verb, key(&lease.key), update, Some(counts(lease)));
        let done = held(written.await)?;
        if done {
            lease.counter += 1;
            lease.switches = 0;
        }
        Ok(done)
    }

    /// Names the children of a shard. The owner of its lease is not checked.
    pub(super) async fn set_children(&self, lease: &Lease) -> Result<(), Failure> {
        let update = Update::new().set(CHILDREN, AttributeValue::Ss(lease.children.clone()));
        let exists = Condition::equals(KEY, s(lease.key.as_str()));
        let written = self.sdk.update(Verb::SetRange, key(&lease.key), update, Some(exists));
        // A missing row is logged.
        held(written.await).map(|_| ())
    }
}
