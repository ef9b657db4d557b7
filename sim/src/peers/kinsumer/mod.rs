//! kinsumer.
//!
//! Every member works out its own shards: by the place of its id among the live members, and by the place of each shard
//! among all shards. A goroutine for each shard captures its row and reads into one queue; the caller takes from the
//! queue. Left out: the reaping of members dead for two days, and statistics. The records of a read are handed over at
//! once, as to a caller that collects records.

mod leader;
mod shard;

use super::host::Host;
use super::sdk::{Failure, Sdk, key_only, s, text};
use leasehold_engine::config::Config;
use leasehold_engine::ids::{OpId, ShardId};
use leasehold_engine::output::EndReason;
use leasehold_engine::table::{AttributeValue, Item};
use shard::Checkpointer;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

const CLIENTS: &str = "app_clients";
const METADATA: &str = "app_metadata";

/// Keys of its tables. Written anew, like every name here known to codecs, so models and codecs check each other.
const CHECKPOINT_KEY: &str = "Shard";
const CLIENT_KEY: &str = "ID";
const METADATA_KEY: &str = "Key";

const UPDATED: &str = "LastUpdate";

/// The age in periods after which a row is expired.
const PERIODS: u64 = 5;

const THROTTLE_US: u64 = 250_000;
const COMMIT_US: u64 = 1_000_000;

/// Records in the queue, and places in each of the two channels of errors.
const BUFFER: u32 = 100;
const ERRORS: u32 = 10;

/// The records of a read.
struct Delivery {
    shard: ShardId,
    batch: OpId,
    records: u32,
    last: String,
    token: u64,
    checkpointer: Rc<Checkpointer>,
}

/// The members and their shards, in this member's view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct View {
    members: usize,
    place: usize,
    shards: Vec<ShardId>,
}

struct Member {
    /// The client of the checkpoint table; other tables by [`Sdk::on`].
    dynamo: Sdk,
    kinesis: Sdk,
    me: String,
    /// The period of the member's reports and looks at other members, in µs.
    period_us: u64,
    /// The period of the leader's acts, in µs.
    lead_us: u64,
    max_records: u32,
    view: RefCell<View>,
    queue: RefCell<VecDeque<Delivery>>,
    /// Taken from the queue, but not yet taken by the caller.
    held: RefCell<Option<Delivery>>,
    /// The caller waits for a record.
    in_next: Cell<bool>,
    /// The ownership of the records that the caller processes.
    at: Cell<u64>,
    consumers: Cell<u32>,
    /// Shards with records that the caller has not finished.
    open: RefCell<BTreeSet<ShardId>>,
    shard_errors: Cell<u32>,
    errors: Cell<u32>,
    /// The leader's goroutine.
    leading: RefCell<Option<leader::Lead>>,
}

/// The program, from its start until its stop.
pub(super) async fn run(host: Host, me: String, config: Config) {
    let sdk = |attempts| Sdk::new(&host, attempts, 50_000);
    let member = Rc::new(Member {
        dynamo: sdk(11),
        kinesis: sdk(4),
        me,
        period_us: config.members().check_interval().0,
        lead_us: config.members().lead_interval().0,
        max_records: config.reader().max_records(),
        view: RefCell::default(),
        queue: RefCell::default(),
        held: RefCell::default(),
        in_next: Cell::new(false),
        at: Cell::new(0),
        consumers: Cell::new(0),
        open: RefCell::default(),
        shard_errors: Cell::new(0),
        errors: Cell::new(0),
        leading: RefCell::default(),
    });
    if let Err(failure) = member.refresh().await {
        member.deregister().await;
        host.die(format!("the member cannot start: {failure:?}")).await;
    }
    host.spawn(member.clone().call_next());
    member.main().await;
}

impl Member {
    /// The caller: takes a record, and another record after finishing the first.
    async fn call_next(self: Rc<Self>) {
        let host = &self.dynamo.host;
        loop {
            self.in_next.set(true);
            host.until(u64::MAX, || !self.in_next.get() || self.errors.get() > 0).await;
            if self.errors.replace(0) > 0 {
                // The caller logs the errors, and continues.
                continue;
            }
            let Some(delivery) = self.held.take() else {
                continue;
            };
            self.at.set(delivery.token);
            self.kinesis.process(&delivery.shard, delivery.token, delivery.batch).await;
            self.at.set(0);
        }
    }

    async fn main(self: &Rc<Self>) {
        let host = &self.dynamo.host;
        let mut stop = self.start_consumers();
        let mut tick = host.mono_us() + self.period_us;
        loop {
            let due = || {
                let hands_over = self.in_next.get() && self.held.borrow().is_some();
                let fetches = self.held.borrow().is_none() && !self.queue.borrow().is_empty();
                host.is_stopping() || hands_over || fetches || self.shard_errors.get() > 0
            };
            host.until(tick.saturating_sub(host.mono_us()), due).await;
            if host.is_stopping() {
                break;
            }
            if self.held.borrow().is_none() {
                let first = self.queue.borrow_mut().pop_front();
                self.held.replace(first);
            }
            if self.in_next.get()
                && let Some(delivery) = &*self.held.borrow()
            {
                // For kinsumer, a record handed over is processed.
                delivery.checkpointer.update(&delivery.last);
                self.in_next.set(false);
            }
            if self.shard_errors.get() > 0 {
                self.shard_errors.set(self.shard_errors.get() - 1);
                self.error().await;
            }
            if host.mono_us() < tick {
                continue;
            }
            let before = self.view.borrow().clone();
            if self.refresh().await.is_err() {
                self.error().await;
            } else if *self.view.borrow() != before {
                self.stop_consumers(&stop).await;
                stop = self.start_consumers();
            }
            tick = host.mono_us() + self.period_us;
        }
        self.stop_consumers(&stop).await;
        self.deregister().await;
        self.step_down().await;
    }

    /// Records in the queue.
    fn queued(&self) -> u32 {
        self.queue.borrow().iter().map(|delivery| delivery.records).sum()
    }

    /// Gives an error to the caller; no work continues until the caller takes the error.
    async fn error(&self) {
        let host = &self.dynamo.host;
        host.until(u64::MAX, || self.errors.get() < ERRORS).await;
        self.errors.set(self.errors.get() + 1);
    }

    fn start_consumers(self: &Rc<Self>) -> Rc<Cell<bool>> {
        let stop = Rc::new(Cell::new(false));
        let view = self.view.borrow().clone();
        for (n, shard) in view.shards.into_iter().enumerate() {
            if n % view.members == view.place {
                self.consumers.set(self.consumers.get() + 1);
                let (member, stop) = (self.clone(), stop.clone());
                self.dynamo.host.spawn(async move {
                    member.consume(&shard, &stop).await;
                    member.consumers.set(member.consumers.get() - 1);
                });
            }
        }
        stop
    }

    /// Waits for all consumers, without reading their errors. Their unprocessed records are dropped.
    async fn stop_consumers(&self, stop: &Cell<bool>) {
        stop.set(true);
        self.dynamo.host.until(u64::MAX, || self.consumers.get() == 0).await;
        self.queue.borrow_mut().clear();
        if self.in_next.get() {
            self.held.replace(None);
        }
    }

    /// The application hears nothing of shards; for the oracles, a shard ends after the last of its records was
    /// processed.
    async fn close(&self, shard: &ShardId, token: u64) {
        let over = || {
            let of = |delivery: &Delivery| delivery.token == token;
            self.at.get() != token
                && !self.held.borrow().as_ref().is_some_and(of)
                && !self.queue.borrow().iter().any(of)
        };
        self.dynamo.host.until(u64::MAX, over).await;
        self.kinesis.close(shard, token, EndReason::Shutdown).await;
        self.open.borrow_mut().remove(shard);
    }

    /// Reports the member's life, and looks for other live members and for shards.
    async fn refresh(self: &Rc<Self>) -> Result<(), Failure> {
        let clients = self.dynamo.on(CLIENTS);
        let mut mine = key_only(CLIENT_KEY, &self.me);
        mine.insert(UPDATED.into(), self.now());
        clients.put(None, mine, None).await?;
        let cutoff = self.cutoff();
        let rows = clients.scan_all(true).await?;
        let mut ids: Vec<&str> = rows
            .iter()
            .filter(|row| number(row, UPDATED) > cutoff)
            .filter_map(|row| text(row, CLIENT_KEY))
            .collect();
        ids.sort_unstable();
        let place = ids.iter().position(|id| *id == self.me);
        let place = place.ok_or(Failure::Other)?;
        if place > 0 {
            self.step_down().await;
        } else if self.leading.borrow().is_none() {
            self.begin_to_lead();
        }
        let mut shards = self.cached_shards().await?.0;
        if shards.is_empty() {
            shards = self.kinesis.list_shards().await?.into_iter().map(|shard| shard.id).collect();
            shards.sort_unstable();
            self.cache_shards(&shards).await?;
        }
        self.view.replace(View { members: ids.len(), place, shards });
        Ok(())
    }

    async fn deregister(&self) {
        let mine = key_only(CLIENT_KEY, &self.me);
        let _ = self.dynamo.on(CLIENTS).delete(mine, None).await;
    }

    fn now(&self) -> AttributeValue {
        AttributeValue::n(self.dynamo.host.wall_ns())
    }

    /// Rows written before are expired, by this member's own clock.
    fn cutoff(&self) -> u64 {
        self.periods_ago(self.period_us)
    }

    fn periods_ago(&self, us: u64) -> u64 {
        self.dynamo.host.wall_ns() - PERIODS * us * 1_000
    }
}

/// A missing number counts as 0.
fn number(item: &Item, name: &str) -> u64 {
    super::sdk::number(item, name).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::sdk::LEASES;
    use super::*;
    use leasehold_engine::format::Format;
    use leasehold_engine::members::Side;

    #[test]
    fn the_tables_are_those_of_the_format() {
        let format = Format::Kinsumer.codec();
        let membership = format.membership().expect("kinsumer's workers know each other");
        let side = |side| (membership.side(LEASES, side), membership.key_name(side));
        assert_eq!(format.key_name(), CHECKPOINT_KEY);
        assert_eq!(side(Side::Members), (CLIENTS.to_owned(), CLIENT_KEY));
        assert_eq!(side(Side::Fleet), (METADATA.to_owned(), METADATA_KEY));
    }
}
