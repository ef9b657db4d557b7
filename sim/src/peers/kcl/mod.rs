//! The Java KCL, versions 2 and 3.
//!
//! One thread renews the leases. Another thread starts a consumer for each lease, and tells the consumer of a lease's
//! loss. In version 2 a third thread takes leases; in version 3 a leader assigns them (`v3/`). A consumer polls its
//! shard, or reads by subscription (`fan_out.rs`), the original's default. Left out: de-aggregation, prefetch, metrics,
//! the deletion of ended leases, and the auditor, a search for holes every two minutes. The application can process one
//! batch of a shard at a time. The original begins with a lost and regained lease before its old consumer has finished;
//! the model waits. The original subscribes again after the last event, the model after the last record: from LATEST,
//! before the first record, the model misses what came between two subscriptions.

mod consumer;
mod ending;
mod fan_out;
mod feed;
mod leader;
mod lease;
mod renewer;
mod sync;
mod table;
mod taker;
mod v3;

use super::fleet::Fleet;
use super::host::Host;
use super::sdk::{Failure, Sdk};
use consumer::{Consumer, Reason};
use leasehold_engine::config::{Config, InitialPosition};
use leasehold_engine::ids::ShardId;
use leasehold_engine::input::TableState;
use renewer::Renewer;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use table::{Table, key};
use taker::Taker;

/// The users' configuration.
struct Settings {
    idle_us: u64,
    max_records: u32,
    initial_position: InitialPosition,
    /// Also the name of the consumer for subscriptions.
    application: Arc<str>,
    subscribes: bool,
}

struct Worker {
    host: Host,
    kinesis: Sdk,
    table: Table,
    me: String,
    settings: Settings,
    renewer: Rc<Renewer>,
    /// The additions of version 3.
    fleet: Option<v3::Member>,
    consumers: RefCell<BTreeMap<(ShardId, u64), Rc<Consumer>>>,
    /// The ARN of the consumer for subscriptions, once found.
    stream_consumer: RefCell<Option<Arc<str>>>,
}

/// The pause between two looks at the owned leases.
const TICK_US: u64 = 1_000_000;

/// The pause before another attempt of a failed task.
const BACKOFF_US: u64 = 500_000;

/// The number of attempts to begin.
const ATTEMPTS: u32 = 20;

/// The longest wait for all consumers after a stop of the worker.
const GRACE_US: u64 = 20_000_000;

/// The program, from its start until its stop. `is_led`: version 3, with a leader.
pub(super) async fn run(host: Host, me: String, config: Config, fleet: Fleet, is_led: bool) {
    let table = Table { sdk: Sdk::new(&host, 9, 25_000), hands_over: is_led };
    let failover_us = config.lease_duration().0;
    let subscribes = fleet.fan_out > 0 && host.below("fan-out", 1_000) < u64::from(fleet.fan_out);
    let worker = Rc::new(Worker {
        host: host.clone(),
        kinesis: Sdk::new(&host, 4, 100_000),
        table: table.clone(),
        fleet: is_led.then(|| {
            let wait_us = config.fleet().migration_wait().0;
            v3::Member::new(&table, &me, &fleet, wait_us)
        }),
        renewer: Rc::new(Renewer::new(host.clone(), table, failover_us)),
        me,
        settings: Settings {
            idle_us: config.reader().idle_interval().0,
            max_records: config.reader().max_records(),
            initial_position: config.initial_position(),
            application: config.table().into(),
            subscribes,
        },
        consumers: RefCell::default(),
        stream_consumer: RefCell::default(),
    });
    if let Err(failure) = worker.initialize().await {
        host.die(format!("the scheduler cannot start: {failure:?}")).await;
    }
    worker.renewer.regain(&worker.me).await;
    host.spawn(worker.renewer.clone().run());
    if worker.fleet.is_some() {
        worker.join();
    }
    if worker.takes_leases() {
        let taker =
            Taker { renewer: worker.renewer.clone(), me: worker.me.clone(), seen: RefCell::default() };
        let takes = worker.clone();
        host.spawn(taker.run(move || takes.takes_leases()));
    }
    loop {
        worker.tick().await;
        if let Some(fleet) = worker.fleet.as_ref().filter(|fleet| !fleet.is_like_version_2()) {
            // The call renews the answer to "who leads", for the leader's duties besides assignment.
            let _ = fleet.lock.is_leader().await;
        }
        if host.sleep_or_stop(TICK_US).await {
            break;
        }
    }
    worker.stop(failover_us).await;
}

impl Worker {
    /// Whether the worker takes leases itself, without a leader's assignment.
    fn takes_leases(&self) -> bool {
        self.fleet.as_ref().is_none_or(v3::Member::is_like_version_2)
    }

    async fn initialize(&self) -> Result<(), Failure> {
        let mut last = Ok(());
        for _ in 0..ATTEMPTS {
            last = self.try_to_initialize().await;
            if last.is_ok() || self.host.sleep_or_stop(TICK_US).await {
                return Ok(());
            }
        }
        last
    }

    async fn try_to_initialize(&self) -> Result<(), Failure> {
        if self.table.sdk.table().await? == TableState::Missing {
            match self.table.sdk.create_table().await {
                Ok(()) | Err(Failure::InUse) => {}
                Err(failure) => return Err(failure),
            }
        }
        while self.table.sdk.table().await? != TableState::Usable {
            if self.host.sleep_or_stop(10 * TICK_US).await {
                return Ok(());
            }
        }
        self.declare().await?;
        self.fill_table().await
    }

    /// Begins consumers of new leases, and tells consumers of lost leases. Without the stream's consumer, no shard is
    /// read, and the next look tries again.
    async fn tick(self: &Rc<Self>) {
        let awaits = self.settings.subscribes && self.stream_consumer.borrow().is_none();
        if awaits && !self.renewer.held().is_empty() {
            let Ok(arn) = self.find_stream_consumer().await else {
                return;
            };
            self.stream_consumer.replace(Some(arn));
        }
        let held = self.renewer.held();
        let mut consumers = self.consumers.borrow_mut();
        let mut assigned = BTreeSet::new();
        for held in held {
            let id = (held.lease.borrow().key.clone(), held.token);
            assigned.insert(id.clone());
            match consumers.get(&id) {
                Some(known) if known.over.get() && known.reason.get() != Some(Reason::ShardEnd) => {
                    self.renewer.forget(&held);
                }
                Some(_) => {}
                // The application still processes a batch from an earlier lease of the shard.
                None if consumers.values().any(|known| known.shard == id.0) => {}
                None => {
                    let consumer = Rc::new(Consumer::new(held));
                    consumers.insert(id, consumer.clone());
                    self.host.spawn(self.clone().consume(consumer));
                }
            }
        }
        consumers.retain(|id, consumer| {
            let stays = assigned.contains(id);
            if !stays {
                consumer.end(Reason::LeaseLost);
            }
            stays || !consumer.over.get()
        });
    }

    /// Asks every consumer to end, then removes the leases of the remaining consumers. No row is written.
    async fn stop(self: &Rc<Self>, failover_us: u64) {
        let consumers: Vec<Rc<Consumer>> = self.consumers.borrow().values().cloned().collect();
        for consumer in &consumers {
            consumer.end(Reason::Requested);
        }
        let end = self.host.mono_us() + GRACE_US;
        while self.host.mono_us() < end && consumers.iter().any(|consumer| !consumer.over.get()) {
            self.host.sleep(TICK_US).await;
            self.tick().await;
        }
        self.renewer.stop();
        if let Some(fleet) = &self.fleet {
            fleet.lock.release().await;
        }
        let end = self.host.mono_us() + failover_us;
        self.tick().await;
        while self.host.mono_us() < end && !self.consumers.borrow().is_empty() {
            self.host.sleep(TICK_US).await;
            self.tick().await;
        }
    }
}
