//! The common part of these programs' AWS SDKs: a few attempts with growing pauses, and no deadline of their own.

use super::host::{Ask, Host, ItemOp, Reply, Request};
use crate::oracles::fact::Verb;
use leasehold_engine::ids::{FencingToken, LeaseKey, OpId, ShardId};
use leasehold_engine::input::{Cause, ConsumerState, Fetched, Outcome, Reply as Answer, TableState, Why};
use leasehold_engine::output::{ConsumerOp, Effect, EndReason, IteratorFrom, ShardFilter, StreamOp, TableOp};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::shard::Shard;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_engine::time::Mono;
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::sync::Arc;

/// Clients for AWS, and the way to the application.
#[derive(Clone)]
pub(super) struct Sdk {
    pub host: Host,
    /// The most attempts of a repeatable request.
    pub attempts: u32,
    /// The first pause is up to this long, in µs; each pause is up to twice as long as the pause before.
    pub pause_us: u64,
    /// The table of operations on items.
    pub table: &'static str,
}

/// The table with the leases.
pub(crate) const LEASES: &str = "app";
/// The tables in which versions 3.0 to 3.4 of the Java KCL report and elect their leader.
pub(super) const METRICS: &str = "app-WorkerMetricStats";
pub(super) const COORDINATOR: &str = "app-CoordinatorState";

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The condition of a write does not hold.
    Condition,
    /// The iterator is too old, or the subscription is over.
    Expired,
    /// The table or stream does not exist.
    NotFound,
    /// The table or the consumer exists already, or another subscriber has the place.
    InUse,
    /// Throttled at each attempt.
    Throttled,
    /// Any other failure, at each attempt.
    Other,
}

/// Records of a read: the request, and the facts about the records.
pub(super) struct Batch {
    pub op: OpId,
    pub fetched: Fetched,
}

impl Batch {
    /// The records in a reply.
    pub(super) fn of(reply: Reply) -> Result<Self, Failure> {
        match reply.outcome {
            Outcome::Applied(Answer::Records(fetched)) => Ok(Self { op: op(reply.n), fetched }),
            _ => Err(Failure::Other),
        }
    }
}

const LONGEST_PAUSE_US: u64 = 20_000_000;

impl Sdk {
    /// Clients of the table of leases.
    pub(super) fn new(host: &Host, attempts: u32, pause_us: u64) -> Self {
        Self { host: host.clone(), attempts, pause_us, table: LEASES }
    }

    async fn request(&self, ask: Ask) -> Result<Reply, Failure> {
        let mut pause_us = self.pause_us;
        for attempt in 1.. {
            let reply = self.host.ask(ask.clone()).await;
            let failure = match failure(&reply.outcome) {
                None => return Ok(reply),
                Some(failure) => failure,
            };
            let is_refused = matches!(reply.outcome, Outcome::Refused(_));
            if is_refused || attempt >= self.attempts {
                return Err(failure);
            }
            self.host.sleep(self.host.below("sdk-pause", pause_us)).await;
            pause_us = (pause_us * 2).min(LONGEST_PAUSE_US);
        }
        Err(Failure::Other)
    }

    /// Makes a single attempt, without a wait beyond this time, in µs, or beyond the moment of `is_over`.
    pub(super) async fn attempt(
        &self, op: StreamOp, us: u64, is_over: impl Fn() -> bool,
    ) -> Result<Reply, Failure> {
        let n = self.host.send(Ask::Effect(Effect::Stream(op)));
        let mut reply = None;
        let has_ended = || {
            reply = self.host.take_reply(n);
            reply.is_some() || is_over()
        };
        self.host.until(us, has_ended).await;
        let reply = reply.ok_or(Failure::Other)?;
        failure(&reply.outcome).map_or(Ok(reply), Err)
    }

    /// The same SDK for another table.
    pub(super) fn on(&self, table: &'static str) -> Self {
        Self { table, ..self.clone() }
    }

    async fn item(&self, verb: Option<Verb>, op: ItemOp) -> Result<Reply, Failure> {
        let table = self.table;
        self.request(Ask::Item(Request { table, verb, op })).await
    }

    pub(super) async fn get(&self, key: Item, consistent: bool) -> Result<Option<Arc<Item>>, Failure> {
        let mut reply = self.item(None, ItemOp::Get { key, consistent }).await?;
        Ok(reply.items.pop())
    }

    /// Without a verb, the row is no lease.
    pub(super) async fn put(
        &self, verb: impl Into<Option<Verb>>, item: Item, condition: Option<Condition>,
    ) -> Result<(), Failure> {
        let op = ItemOp::Put { item, condition };
        self.item(verb.into(), op).await.map(|_| ())
    }

    /// Without a verb, the row is no lease.
    pub(super) async fn update(
        &self, verb: impl Into<Option<Verb>>, key: Item, update: Update, condition: Option<Condition>,
    ) -> Result<(), Failure> {
        let op = ItemOp::Update { key, update, condition };
        self.item(verb.into(), op).await.map(|_| ())
    }

    pub(super) async fn delete(&self, key: Item, condition: Option<Condition>) -> Result<(), Failure> {
        let op = ItemOp::Delete { key, condition };
        self.item(Some(Verb::Delete), op).await.map(|_| ())
    }

    /// One page.
    pub(super) async fn scan(
        &self, consistent: bool, after: Option<Item>,
    ) -> Result<(Vec<Arc<Item>>, Option<Item>), Failure> {
        let reply = self.item(None, ItemOp::Scan { consistent, after }).await?;
        Ok((reply.items, reply.next))
    }

    /// All pages.
    pub(super) async fn scan_all(&self, consistent: bool) -> Result<Vec<Arc<Item>>, Failure> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = self.scan(consistent, after).await?;
            items.extend(page);
            if next.is_none() {
                return Ok(items);
            }
            after = next;
        }
    }

    pub(super) async fn table(&self) -> Result<TableState, Failure> {
        let reply = self.request(Ask::Effect(Effect::Table(TableOp::Describe))).await?;
        match reply.outcome {
            Outcome::Applied(Answer::Table(state)) => Ok(state),
            _ => Err(Failure::Other),
        }
    }

    /// Creates the index of owners of leases.
    pub(super) async fn create_owner_index(&self) -> Result<(), Failure> {
        self.item(None, ItemOp::CreateOwnerIndex).await.map(|_| ())
    }

    /// Whether the index of owners is usable.
    pub(super) async fn has_owner_index(&self) -> Result<bool, Failure> {
        let reply = self.request(Ask::Effect(Effect::Table(TableOp::OwnerIndex))).await?;
        match reply.outcome {
            Outcome::Applied(Answer::OwnerIndex(active)) => Ok(active),
            _ => Err(Failure::Other),
        }
    }

    pub(super) async fn create_table(&self) -> Result<(), Failure> {
        let create = Ask::Effect(Effect::Table(TableOp::Create));
        self.request(create).await.map(|_| ())
    }

    /// All shards, page by page.
    pub(super) async fn list_shards(&self) -> Result<Vec<Shard>, Failure> {
        self.list_shards_of(ShardFilter::All).await
    }

    /// Some shards, page by page.
    pub(super) async fn list_shards_of(&self, filter: ShardFilter) -> Result<Vec<Shard>, Failure> {
        let (mut shards, mut after) = (Vec::new(), None);
        loop {
            let reply =
                self.request(Ask::Effect(Effect::Stream(StreamOp::ListShards { filter, after }))).await?;
            let Outcome::Applied(Answer::Shards(page)) = reply.outcome else {
                return Err(Failure::Other);
            };
            shards.extend(page.shards);
            if !page.more {
                return Ok(shards);
            }
            after = Some(op(reply.n));
        }
    }

    /// A place to read from.
    pub(super) async fn iterator(&self, shard: &ShardId, from: IteratorFrom) -> Result<OpId, Failure> {
        let shard = shard.clone();
        let ask = Ask::Effect(Effect::Stream(StreamOp::GetIterator { shard, from }));
        Ok(op(self.request(ask).await?.n))
    }

    pub(super) async fn records(&self, shard: &ShardId, via: OpId, limit: u32) -> Result<Batch, Failure> {
        let shard = shard.clone();
        let ask = Ask::Effect(Effect::Stream(StreamOp::GetRecords { shard, via, limit }));
        let reply = self.request(ask).await?;
        Batch::of(reply)
    }

    /// The ARN of the stream.
    pub(super) async fn stream_arn(&self) -> Result<Arc<str>, Failure> {
        let reply = self.request(Ask::Effect(Effect::Stream(StreamOp::Describe))).await?;
        match reply.outcome {
            Outcome::Applied(Answer::Stream(state)) => Ok(state.arn),
            _ => Err(Failure::Other),
        }
    }

    /// The consumer that is described or registered by an operation.
    pub(super) async fn consumer_of(&self, op: StreamOp) -> Result<ConsumerState, Failure> {
        let reply = self.request(Ask::Effect(Effect::Stream(op))).await?;
        match reply.outcome {
            Outcome::Applied(Answer::Consumer(state)) => Ok(state),
            _ => Err(Failure::Other),
        }
    }

    /// Tells the application of the beginning of a shard.
    pub(super) async fn open(&self, shard: &ShardId, token: u64) {
        self.consumer(ConsumerOp::Open {
            lease: lease(shard),
            token: FencingToken(token),
            from: Checkpoint::TrimHorizon,
            since: None,
        })
        .await;
    }

    /// Gives a batch to the application, again and again until the application has processed the batch.
    pub(super) async fn process(&self, shard: &ShardId, token: u64, batch: OpId) {
        for attempt in 1.. {
            let reply = self
                .consumer(ConsumerOp::Deliver {
                    lease: lease(shard),
                    token: FencingToken(token),
                    batch,
                    after: None,
                    attempt,
                    valid_until: Mono::NEVER,
                })
                .await;
            if matches!(reply.outcome, Outcome::Applied(_)) {
                return;
            }
            self.host.sleep(1_000_000).await;
        }
    }

    /// Tells the application of the end of a shard, or of the loss of its lease.
    pub(super) async fn close(&self, shard: &ShardId, token: u64, reason: EndReason) {
        self.consumer(ConsumerOp::Close { lease: lease(shard), token: FencingToken(token), reason }).await;
    }

    async fn consumer(&self, consumer_op: ConsumerOp) -> Reply {
        self.host.ask(Ask::Effect(Effect::Consumer(consumer_op))).await
    }
}

/// The failure in an outcome, if the request failed.
fn failure(outcome: &Outcome) -> Option<Failure> {
    Some(match outcome {
        Outcome::Applied(_) => return None,
        Outcome::Refused(refusal) => match refusal.why {
            Why::ConditionFailed => Failure::Condition,
            Why::Expired => Failure::Expired,
            Why::NotFound => Failure::NotFound,
            Why::InUse => Failure::InUse,
            _ => Failure::Other,
        },
        Outcome::NotSent(Cause::Throttled) => Failure::Throttled,
        Outcome::NotSent(_) | Outcome::Unknown(_) => Failure::Other,
    })
}

pub(super) fn s(text: &str) -> AttributeValue {
    AttributeValue::s(text)
}

/// An absent value is written as NULL.
pub(super) fn nullable(text: Option<&str>) -> AttributeValue {
    text.map_or(AttributeValue::Null, s)
}

pub(super) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(AttributeValue::as_s)
}

pub(super) fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name).and_then(AttributeValue::as_n)?.parse().ok()
}

/// Whether the condition of a write held.
pub(super) fn held(written: Result<(), Failure>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(Failure::Condition) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// The place after a record.
pub(super) fn after(sequence: &str) -> Result<IteratorFrom, Failure> {
    let sequence = sequence.parse().map_err(|_| Failure::Other)?;
    Ok(IteratorFrom::After(Position::of(sequence)))
}

/// A primary key.
pub(crate) fn key_only(name: &'static str, value: &str) -> Item {
    Item::from([(name.into(), AttributeValue::s(value))])
}

fn lease(shard: &ShardId) -> LeaseKey {
    shard.to_lease()
}

/// The name of a request for later requests.
pub(super) fn op(n: u64) -> OpId {
    OpId { life: 0, n }
}
