//! The leader, the member with the first id: it keeps the list of shards that the members share.

use super::super::sdk::{Failure, key_only};
use super::{CHECKPOINT_KEY, METADATA, METADATA_KEY, Member, UPDATED, number, s, shard, text};
use leasehold_engine::ids::ShardId;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::{Comparator, Condition, Update};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

const LEADER: &str = "Leader";
const SHARD_CACHE: &str = "ShardCache";
const LEADER_ID: &str = "ID";
const SHARDS: &str = "ShardIDs";

fn key(name: &str) -> Item {
    key_only(METADATA_KEY, name)
}

/// A leader's goroutine.
#[derive(Clone, Default)]
pub(super) struct Lead {
    /// A request to end.
    stop: Rc<Cell<bool>>,
    /// The goroutine has ended.
    over: Rc<Cell<bool>>,
}

impl Member {
    pub(super) fn begin_to_lead(self: &Rc<Self>) {
        let lead = Lead::default();
        self.leading.replace(Some(lead.clone()));
        let member = self.clone();
        self.dynamo.host.spawn(async move {
            let host = &member.dynamo.host;
            loop {
                match member.register_leadership().await {
                    Ok(()) => {
                        if member.lead().await.is_err() {
                            member.error().await;
                        }
                    }
                    Err(Failure::Condition) => {}
                    Err(_) => member.error().await,
                }
                if host.until(member.lead_us, || lead.stop.get()).await {
                    break;
                }
            }
            member.deregister_leadership().await;
            lead.over.set(true);
        });
    }

    pub(super) async fn step_down(&self) {
        let Some(lead) = self.leading.take() else {
            return;
        };
        lead.stop.set(true);
        self.dynamo.host.until(u64::MAX, || lead.over.get()).await;
    }

    async fn register_leadership(&self) -> Result<(), Failure> {
        let mut row = key(LEADER);
        row.insert(LEADER_ID.into(), s(&self.me));
        row.insert(UPDATED.into(), self.now());
        let condition = Condition::equals(LEADER_ID, s(&self.me)).or(Condition::not_exists(LEADER_ID)).or(
            Condition::compare(UPDATED, Comparator::Le, AttributeValue::n(self.periods_ago(self.lead_us))),
        );
        self.dynamo.on(METADATA).put(None, row, Some(condition)).await
    }

    async fn deregister_leadership(&self) {
        let update = Update::new().remove(LEADER_ID).set(UPDATED, self.now());
        let mine = Condition::equals(LEADER_ID, s(&self.me));
        let _ = self.dynamo.on(METADATA).update(None, key(LEADER), update, Some(mine)).await;
    }

    /// The shared list, and the time of its write.
    pub(super) async fn cached_shards(&self) -> Result<(Vec<ShardId>, u64), Failure> {
        let row = self.dynamo.on(METADATA).get(key(SHARD_CACHE), true).await?;
        let row = row.unwrap_or_default();
        let shards = match row.get(SHARDS) {
            Some(AttributeValue::L(list)) => {
                list.iter().filter_map(AttributeValue::as_s).map(ShardId::from).collect()
            }
            _ => Vec::new(),
        };
        Ok((shards, number(&row, UPDATED)))
    }

    /// Without a condition, by a member that finds no list, and by a member that led when its round began.
    pub(super) async fn cache_shards(&self, shards: &[ShardId]) -> Result<(), Failure> {
        if shards.is_empty() {
            return Ok(());
        }
        let mut row = key(SHARD_CACHE);
        let list = shards.iter().map(|shard| s(shard.as_str())).collect();
        row.insert(SHARDS.into(), AttributeValue::L(list));
        row.insert(UPDATED.into(), self.now());
        self.dynamo.on(METADATA).put(None, row, None).await
    }

    async fn lead(&self) -> Result<(), Failure> {
        let (cached, written) = self.cached_shards().await?;
        if self.dynamo.host.wall_ns() < written + self.lead_us * 1_000 {
            return Ok(());
        }
        let listed = self.kinesis.list_shards().await?;
        let rows = self.dynamo.scan_all(true).await?;
        let finished: BTreeSet<&str> = rows
            .iter()
            .filter(|row| number(row, shard::FINISHED) > 0)
            .filter_map(|row| text(row, CHECKPOINT_KEY))
            .collect();
        let mut shards: Vec<ShardId> =
            listed.into_iter().map(|shard| shard.id).filter(|id| !finished.contains(id.as_str())).collect();
        shards.sort_unstable();
        if shards != cached {
            self.cache_shards(&shards).await?;
        }
        Ok(())
    }
}
