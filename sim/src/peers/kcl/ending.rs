//! The end of a shard: leases for its children, then its own end.

use super::super::sdk::Failure;
use super::consumer::Consumer;
use super::lease::{Lease, SHARD_END};
use super::{BACKOFF_US, Worker};
use leasehold_engine::output::EndReason;
use leasehold_engine::shard::ChildShard;

/// The reason of a failed end of a shard.
enum Undone {
    /// Worth another attempt in a moment.
    Failed,
    /// The lease is not (any longer) this worker's, or the worker gives up on it.
    Lost,
}

impl From<Failure> for Undone {
    fn from(_: Failure) -> Self {
        Self::Failed
    }
}

impl Worker {
    /// Repeats until the shard's end is stored or the lease is lost; returns whether the end is stored.
    pub(super) async fn end_shard(&self, consumer: &Consumer, children: &[ChildShard]) -> bool {
        loop {
            match self.try_to_end(consumer, children).await {
                Ok(()) => return true,
                Err(Undone::Lost) => return false,
                Err(Undone::Failed) => self.host.sleep(BACKOFF_US).await,
            }
        }
    }

    async fn try_to_end(&self, consumer: &Consumer, children: &[ChildShard]) -> Result<(), Undone> {
        let held = &consumer.held;
        if !self.renewer.holds(held) {
            return Err(Undone::Lost);
        }
        if !children.is_empty() {
            self.create_children(consumer, children).await?;
        }
        let row = self.table.lease(&consumer.shard).await?.ok_or(Undone::Lost)?;
        if row.has_ended() {
            // The application hears nothing of this end.
            return Ok(());
        }
        // The application must answer the shard's end with a checkpoint without a position.
        if !self.renewer.checkpoint(held, SHARD_END).await? {
            return Err(Undone::Failed);
        }
        let ended = self.kinesis.close(&consumer.shard, held.token, EndReason::ShardEnded);
        ended.await;
        Ok(())
    }

    async fn create_children(&self, consumer: &Consumer, children: &[ChildShard]) -> Result<(), Undone> {
        if let [merged] = children {
            let [one, other] = &merged.parents[..] else {
                return Err(Undone::Lost);
            };
            let there = [one, other].map(|parent| self.table.lease(parent));
            let [one, other] = there;
            if one.await?.is_some() != other.await?.is_some() {
                // The other parent may still get its lease. Now and then the worker gives up.
                return Err(match self.host.below("missing-parent", 30) {
                    0 => Undone::Lost,
                    _ => Undone::Failed,
                });
            }
        }
        for child in children {
            if self.table.lease(&child.id).await?.is_none() {
                let lease = Lease::new(child.id.clone(), child.parents.iter(), child.range, "TRIM_HORIZON");
                self.table.create(&lease).await?;
            }
        }
        let named = children.iter().map(|child| child.id.to_string());
        consumer.held.lease.borrow_mut().children.extend(named);
        let lease = consumer.held.lease.borrow().clone();
        self.table.set_children(&lease).await?;
        Ok(())
    }
}
