//! One shard: captured, read into the queue, committed now and then, released.

use super::super::sdk::{Failure, after, held, key_only, nullable};
use super::{
    BUFFER, CHECKPOINT_KEY, COMMIT_US, Delivery, ERRORS, Member, THROTTLE_US, UPDATED, number, s, text,
};
use crate::oracles::fact::Verb;
use leasehold_engine::ids::ShardId;
use leasehold_engine::output::IteratorFrom;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::expr::{Comparator, Condition, Operand, Path, Update};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const OWNER: &str = "OwnerID";
const SEQUENCE: &str = "SequenceNumber";
pub(super) const FINISHED: &str = "Finished";

fn key(shard: &ShardId) -> Item {
    key_only(CHECKPOINT_KEY, shard.as_str())
}

/// The progress in a captured shard, and the written part of the progress.
pub(super) struct Checkpointer {
    sequence: RefCell<Option<String>>,
    dirty: Cell<bool>,
    /// The shard was read to its end: the last record read, if any.
    end: RefCell<Option<Option<String>>>,
}

impl Checkpointer {
    pub(super) fn update(&self, sequence: &str) {
        self.sequence.replace(Some(sequence.to_owned()));
        self.dirty.set(true);
    }

    /// Whether the caller has all records.
    fn is_finishing(&self) -> bool {
        let end = self.end.borrow();
        end.as_ref().is_some_and(|last| last.is_none() || *last == *self.sequence.borrow())
    }
}

impl Member {
    pub(super) async fn consume(self: &Rc<Self>, shard: &ShardId, stop: &Cell<bool>) {
        let host = &self.dynamo.host;
        let checkpointer = loop {
            match self.capture(shard).await {
                Ok(Some(checkpointer)) => break Rc::new(checkpointer),
                Ok(None) => {}
                Err(_) => return self.shard_error().await,
            }
            if host.until(THROTTLE_US, || stop.get()).await {
                return;
            }
        };
        host.until(u64::MAX, || !self.open.borrow().contains(shard)).await;
        self.open.borrow_mut().insert(shard.clone());
        let token = host.next_token();
        self.kinesis.open(shard, token).await;
        if self.read(shard, token, &checkpointer, stop).await.is_err() {
            self.shard_error().await;
        }
        if self.release(shard, &checkpointer).await.is_err() {
            self.shard_error().await;
        }
        let (member, shard) = (self.clone(), shard.clone());
        host.spawn(async move { member.close(&shard, token).await });
    }

    async fn shard_error(&self) {
        let host = &self.dynamo.host;
        host.until(u64::MAX, || self.shard_errors.get() < ERRORS).await;
        self.shard_errors.set(self.shard_errors.get() + 1);
    }

    /// Takes a row without an owner, or a row without a recent write; writes the whole read row back.
    async fn capture(&self, shard: &ShardId) -> Result<Option<Checkpointer>, Failure> {
        let row = self.dynamo.get(key(shard), true).await?.unwrap_or_default();
        let cutoff = self.cutoff();
        // Own rows, too.
        if text(&row, OWNER).is_some() && number(&row, UPDATED) > cutoff {
            return Ok(None);
        }
        let mut item = key(shard);
        for name in [SEQUENCE, FINISHED] {
            item.insert(name.into(), row.get(name).cloned().unwrap_or(AttributeValue::Null));
        }
        item.insert(OWNER.into(), s(&self.me));
        item.insert(UPDATED.into(), self.now());
        let is_null = Condition::HasType(Operand::Path(Path::attribute(OWNER)), "NULL".to_owned());
        let condition = Condition::not_exists(OWNER).or(is_null).or(Condition::compare(
            UPDATED,
            Comparator::Le,
            AttributeValue::n(cutoff),
        ));
        let is_mine = held(self.dynamo.put(Verb::Take, item, Some(condition)).await)?;
        Ok(is_mine.then(|| Checkpointer {
            sequence: RefCell::new(text(&row, SEQUENCE).map(str::to_owned)),
            dirty: Cell::new(false),
            end: RefCell::default(),
        }))
    }

    /// Writes new progress, if any; returns whether the shard is then finished.
    async fn commit(&self, shard: &ShardId, checkpointer: &Checkpointer) -> Result<bool, Failure> {
        if !checkpointer.dirty.get() && checkpointer.end.borrow().is_none() {
            return Ok(false);
        }
        let finishes = checkpointer.is_finishing();
        checkpointer.dirty.set(false);
        let mut item = key(shard);
        item.insert(SEQUENCE.into(), nullable(checkpointer.sequence.borrow().as_deref()));
        item.insert(OWNER.into(), s(&self.me));
        item.insert(UPDATED.into(), self.now());
        let finished = if finishes { self.now() } else { AttributeValue::Null };
        item.insert(FINISHED.into(), finished);
        let verb = if finishes { Verb::End } else { Verb::Checkpoint };
        self.dynamo.put(verb, item, Some(self.mine())).await?;
        Ok(finishes)
    }

    async fn release(&self, shard: &ShardId, checkpointer: &Checkpointer) -> Result<(), Failure> {
        let sequence = nullable(checkpointer.sequence.borrow().as_deref());
        let update = Update::new().remove(OWNER).set(UPDATED, self.now()).set(SEQUENCE, sequence);
        self.dynamo.update(Verb::Release, key(shard), update, Some(self.mine())).await
    }

    fn mine(&self) -> Condition {
        Condition::equals(OWNER, s(&self.me))
    }

    async fn read(
        &self, shard: &ShardId, token: u64, checkpointer: &Rc<Checkpointer>, stop: &Cell<bool>,
    ) -> Result<(), Failure> {
        let (host, sdk) = (&self.dynamo.host, &self.kinesis);
        let from = start(checkpointer.sequence.borrow().as_deref())?;
        let mut place = sdk.iterator(shard, from).await?;
        let mut next_commit = host.mono_us() + COMMIT_US;
        let mut last = None;
        let mut waiting: Option<Delivery> = None;
        let (mut next_read, mut retries) = (host.mono_us() + THROTTLE_US, 0);
        loop {
            let has_room = || self.queued() < BUFFER;
            let reads = waiting.is_none() && checkpointer.end.borrow().is_none();
            let until = if reads { next_commit.min(next_read) } else { next_commit };
            let goes_on = || stop.get() || (waiting.is_some() && has_room());
            host.until(until.saturating_sub(host.mono_us()), goes_on).await;
            if stop.get() {
                return Ok(());
            }
            if has_room()
                && let Some(delivery) = waiting.take()
            {
                self.queue.borrow_mut().push_back(delivery);
                continue;
            }
            if host.mono_us() >= next_commit {
                next_commit = host.mono_us() + COMMIT_US;
                if self.commit(shard, checkpointer).await? {
                    return Ok(());
                }
            }
            if !reads || host.mono_us() < next_read {
                continue;
            }
            next_read = host.mono_us() + THROTTLE_US;
            let batch = match sdk.records(shard, place, self.max_records).await {
                Ok(batch) => batch,
                Err(Failure::Throttled) if retries < 3 => {
                    retries += 1;
                    host.sleep(retries * 1_000_000).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            retries = 0;
            place = batch.op;
            if let Some(position) = batch.fetched.last {
                last = Some(position.sequence.to_string());
                waiting = Some(Delivery {
                    shard: shard.clone(),
                    batch: batch.op,
                    records: batch.fetched.count,
                    last: position.sequence.to_string(),
                    token,
                    checkpointer: checkpointer.clone(),
                });
            }
            if batch.fetched.end.is_some() {
                checkpointer.end.replace(Some(last.clone()));
            }
        }
    }
}

fn start(sequence: Option<&str>) -> Result<IteratorFrom, Failure> {
    match sequence {
        None | Some("") => Ok(IteratorFrom::TrimHorizon),
        Some("LATEST") => Ok(IteratorFrom::Latest),
        Some(sequence) => after(sequence),
    }
}
