//! The first leases. Leases of children are created where their parents end.

use super::super::sdk::Failure;
use super::lease::{Lease, sentinel};
use super::{Worker, leader};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::output::ShardFilter;

const SECOND: u64 = 1_000_000;

/// After creating leases, the thread sleeps: no stream is to be listed more often.
const PAUSE_US: u64 = 60 * SECOND;

impl Worker {
    /// Fills an empty table, unless another worker fills the table during the wait.
    pub(super) async fn fill_table(&self) -> Result<(), Failure> {
        let host = &self.host;
        let wait = SECOND * (1 + host.below("first-leases", 30));
        let end = host.mono_us() + wait;
        while self.table.leases().await?.is_empty() {
            if host.mono_us() < end {
                let left = end - host.mono_us();
                if host.sleep_or_stop(left.min(3 * SECOND)).await {
                    return Ok(());
                }
                continue;
            }
            if self.leads().await? {
                self.create_leases().await?;
                host.sleep_or_stop(PAUSE_US).await;
            }
            return Ok(());
        }
        Ok(())
    }

    async fn leads(&self) -> Result<bool, Failure> {
        if let Some(fleet) = self.fleet.as_ref().filter(|fleet| !fleet.is_like_version_2()) {
            return fleet.lock.is_leader().await;
        }
        let leases = self.table.leases().await?;
        let owners = leases.into_iter().filter_map(|lease| lease.owner);
        Ok(leader::leads(owners, &self.me))
    }

    /// A lease for every shard that was open at the initial position.
    async fn create_leases(&self) -> Result<(), Failure> {
        let position = self.settings.initial_position;
        let filter = match position {
            InitialPosition::TrimHorizon => ShardFilter::AtTrimHorizon,
            InitialPosition::Latest => ShardFilter::AtLatest,
            InitialPosition::AtTimestamp(at) => ShardFilter::AtTimestamp(at),
        };
        let mut shards = self.kinesis.list_shards_of(filter).await?;
        shards.sort_by(|a, b| (a.starting, &a.id).cmp(&(b.starting, &b.id)));
        for shard in shards {
            let lease = Lease::new(shard.id.clone(), shard.parents(), shard.range, sentinel(position));
            self.table.create(&lease).await?;
        }
        Ok(())
    }
}
