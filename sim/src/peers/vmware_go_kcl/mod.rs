//! vmware-go-kcl, version 2, with its polling consumer.
//!
//! One goroutine looks for shards and takes one lease a round. For each shard, a goroutine consumes, and another
//! goroutine renews. No worker leads. Left out: enhanced fan-out, de-aggregation, metrics, the limit of leases, and the
//! limiter of reads (reads come no faster than its limit).

mod checkpointer;
mod consumer;

use super::CLAIM_TIMEOUT_US;
use super::fleet::{Application, Fleet};
use super::host::Host;
use super::sdk::{Failure, Sdk};
use checkpointer::{Held, NotLeased};
use leasehold_engine::config::{Config, InitialPosition};
use leasehold_engine::ids::ShardId;
use leasehold_engine::input::TableState;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The users' configuration.
#[derive(Clone, Debug)]
struct Settings {
    failover_us: u64,
    refresh_wait_us: u64,
    shard_sync_us: u64,
    parent_poll_us: u64,
    idle_us: u64,
    max_records: u32,
    initial_position: InitialPosition,
    stealing: bool,
    claim_timeout_us: u64,
    lease_sync_us: u64,
    application: Application,
}

/// A process's memory of a shard (`ShardStatus`).
#[derive(Debug)]
struct Status {
    id: ShardId,
    parent: Option<ShardId>,
    checkpoint: RefCell<String>,
    assigned_to: RefCell<String>,
    /// In ns since 1970; none: the zero time.
    deadline: Cell<Option<u64>>,
}

impl Status {
    fn new(id: ShardId, parent: Option<ShardId>) -> Self {
        Self {
            id,
            parent,
            checkpoint: RefCell::default(),
            assigned_to: RefCell::default(),
            deadline: Cell::default(),
        }
    }

    fn has_ended(&self) -> bool {
        *self.checkpoint.borrow() == checkpointer::SHARD_END
    }
}

struct Worker {
    sdk: Sdk,
    me: String,
    settings: Settings,
    shards: RefCell<BTreeMap<ShardId, Rc<Status>>>,
    consumers: Cell<u32>,
    leases_synced_ns: Cell<Option<u64>>,
}

/// The program, from its start until its stop.
pub(super) async fn run(host: Host, me: String, config: Config, fleet: Fleet) {
    let settings = Settings {
        failover_us: config.lease_duration().0,
        refresh_wait_us: config.renew_interval().0,
        shard_sync_us: config.scan_interval().0,
        parent_poll_us: 10_000_000,
        idle_us: config.reader().idle_interval().0,
        max_records: config.reader().max_records(),
        initial_position: config.initial_position(),
        stealing: fleet.stealing,
        claim_timeout_us: CLAIM_TIMEOUT_US,
        lease_sync_us: config.scan_interval().0,
        application: fleet.application,
    };
    let worker = Rc::new(Worker {
        sdk: Sdk::new(&host, 3, 1_000_000),
        me,
        settings,
        shards: RefCell::default(),
        consumers: Cell::new(0),
        leases_synced_ns: Cell::new(None),
    });
    if let Err(failure) = worker.init().await {
        host.die(format!("the worker cannot start: {failure:?}")).await;
    }
    worker.event_loop().await;
    // The worker waits for all consumers, without a limit of time.
    host.until(u64::MAX, || worker.consumers.get() == 0).await;
}

impl Worker {
    /// Creates the table unless a description succeeds; does not wait for a usable table.
    async fn init(&self) -> Result<(), Failure> {
        match self.sdk.table().await {
            Ok(state) if state != TableState::Missing => Ok(()),
            _ => self.sdk.create_table().await,
        }
    }

    async fn event_loop(self: &Rc<Self>) {
        let host = &self.sdk.host;
        loop {
            let interval = self.settings.shard_sync_us;
            let pause = interval / 2 + host.below("sync-pause", interval);
            if host.sleep_or_stop(pause).await {
                return;
            }
            if self.sync_shards().await.is_err() {
                host.sleep(pause).await;
                continue;
            }
            self.take_one().await;
            if self.settings.stealing {
                self.rebalance().await;
            }
        }
    }

    async fn sync_shards(&self) -> Result<(), Failure> {
        let listed = self.sdk.list_shards().await?;
        let mut gone = Vec::new();
        {
            let mut known = self.shards.borrow_mut();
            for shard in &listed {
                known
                    .entry(shard.id.clone())
                    .or_insert_with(|| Rc::new(Status::new(shard.id.clone(), shard.parent.clone())));
            }
            known.retain(|id, _| {
                let stays = listed.iter().any(|shard| shard.id == *id);
                if !stays {
                    gone.push(id.clone());
                }
                stays
            });
        }
        for id in gone {
            // A failure is logged, and the row is forgotten.
            let _ = self.remove_lease_info(&id).await;
        }
        Ok(())
    }

    /// Takes the first available lease, in the order of a Go map.
    async fn take_one(self: &Rc<Self>) {
        let shards: Vec<Rc<Status>> = self.shards.borrow().values().cloned().collect();
        for shard in self.sdk.host.shuffled("map-order", shards) {
            if *shard.assigned_to.borrow() == self.me {
                continue;
            }
            if let Err(Held::Failed(_)) = self.fetch_checkpoint(&shard).await {
                continue;
            }
            if shard.has_ended() {
                continue;
            }
            if self.get_lease(&shard).await.is_ok() {
                self.consumers.set(self.consumers.get() + 1);
                let worker = self.clone();
                self.sdk.host.spawn(async move {
                    worker.consume(&shard).await;
                    worker.consumers.set(worker.consumers.get() - 1);
                });
                return;
            }
        }
    }

    /// Claims a shard of the worker with the most shards.
    async fn rebalance(&self) {
        let Ok(owned) = self.list_active_workers().await else {
            return;
        };
        let shards: usize = owned.values().map(Vec::len).sum();
        let mine = owned.get(&self.me).map_or(0, Vec::len);
        let mut workers = owned.len();
        if workers >= shards {
            return;
        }
        if mine == 0 {
            workers += 1;
        }
        let optimal = shards / workers;
        if mine >= optimal {
            return;
        }
        let others = owned.iter().filter(|(owner, _)| **owner != self.me);
        let Some((_, most)) = others.max_by_key(|(_, shards)| shards.len()) else {
            return;
        };
        if most.len() <= optimal {
            return;
        }
        let pick = self.sdk.host.below("steal", most.len() as u64) as usize;
        // A failure is logged.
        let _: Result<(), NotLeased> = self.claim_shard(&most[pick]).await;
    }
}
