//! kcl-rb, version 1.
//!
//! Every second the worker lists the shards and leases each shard without its own lease. A thread for each leased shard
//! drains the shard until a read brings no records; the worker waits for all threads. So a lease lasts for one drain,
//! without any renewal. An uncaught exception ends the process. Left out: threads that outlive a failed main thread,
//! and the limit of leases, which limits nothing.

use super::host::Host;
use super::sdk::{Failure, Sdk, after, key_only, nullable, s, text};
use super::time;
use crate::oracles::fact::Verb;
use leasehold_engine::config::Config;
use leasehold_engine::ids::ShardId;
use leasehold_engine::input::TableState;
use leasehold_engine::output::{EndReason, IteratorFrom};
use leasehold_engine::table::Item;
use leasehold_local_aws::dynamo::expr::{Condition, Update};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const KEY: &str = "shard_id";
const OWNER: &str = "assigned_to";
const TIMEOUT: &str = "lease_timeout";
const CHECKPOINT: &str = "checkpoint";
const SHARD_END: &str = "SHARD_END";

/// The page size of DescribeStream; the worker asks for a single page.
const PAGE: usize = 100;

const TICK_US: u64 = 1_000_000;

/// A read carries no limit.
const MOST_RECORDS: u32 = 10_000;

/// The worker's memory of a shard (`ShardInfo`).
#[derive(Debug)]
struct Info {
    id: ShardId,
    has_parent: bool,
    checkpoint: RefCell<Option<String>>,
    assigned_to: RefCell<Option<String>>,
    /// In ns since 1970.
    timeout: Cell<Option<u64>>,
}

/// An exception.
type Raised = String;

struct Worker {
    dynamo: Sdk,
    kinesis: Sdk,
    me: String,
    failover_us: u64,
    shards: RefCell<BTreeMap<ShardId, Rc<Info>>>,
    /// Every shard ever listed.
    live: RefCell<BTreeSet<ShardId>>,
}

/// The program, from its start until it has stopped.
pub(super) async fn run(host: Host, me: String, config: Config) {
    let sdk = |attempts| Sdk::new(&host, attempts, 100_000);
    let worker = Rc::new(Worker {
        dynamo: sdk(11),
        kinesis: sdk(4),
        me,
        failover_us: config.lease_duration().0,
        shards: RefCell::default(),
        live: RefCell::default(),
    });
    let mut outcome = worker.make_table().await;
    while outcome.is_ok() && !host.sleep_or_stop(TICK_US).await {
        outcome = worker.tick().await;
    }
    if let Err(raised) = outcome {
        host.die(raised).await;
    }
}

fn raised(what: &str) -> impl Fn(Failure) -> Raised {
    move |failure| format!("{what}: {failure:?}")
}

/// A missing table is no error here.
fn unless_missing<T>(result: Result<T, Failure>, what: &str) -> Result<Option<T>, Raised> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Failure::NotFound) => Ok(None),
        Err(failure) => Err(raised(what)(failure)),
    }
}

impl Worker {
    async fn make_table(&self) -> Result<(), Raised> {
        match self.dynamo.table().await.map_err(raised("describe_table"))? {
            TableState::Missing => self.dynamo.create_table().await.map_err(raised("create_table")),
            _ => Ok(()),
        }
    }

    async fn tick(self: &Rc<Self>) -> Result<(), Raised> {
        self.sync_shards().await?;
        let shards: Vec<Rc<Info>> = self.shards.borrow().values().cloned().collect();
        // The outcome of each thread.
        let threads: Rc<RefCell<Vec<Result<(), Raised>>>> = Rc::default();
        let mut started = 0;
        for shard in shards {
            if shard.assigned_to.borrow().as_deref() == Some(&self.me) {
                continue;
            }
            self.fetch_checkpoint(&shard).await?;
            if shard.checkpoint.borrow().as_deref() == Some(SHARD_END) {
                continue;
            }
            // A lease of another worker makes no difference here.
            self.lease(&shard).await?;
            started += 1;
            let (worker, threads) = (self.clone(), threads.clone());
            self.dynamo.host.spawn(async move {
                let drained = worker.drain(&shard).await;
                let released = worker.remove_lease_owner(&shard).await;
                threads.borrow_mut().push(drained.and(released));
            });
        }
        let over = || {
            let threads = threads.borrow();
            threads.len() == started || threads.iter().any(Result::is_err)
        };
        self.dynamo.host.until(u64::MAX, over).await;
        threads.take().into_iter().collect()
    }

    async fn sync_shards(&self) -> Result<(), Raised> {
        let mut listed = self.kinesis.list_shards().await.map_err(raised("describe_stream"))?;
        listed.truncate(PAGE);
        for shard in &listed {
            if self.live.borrow_mut().insert(shard.id.clone()) {
                let info = Info {
                    id: shard.id.clone(),
                    has_parent: shard.parent.is_some(),
                    checkpoint: RefCell::default(),
                    assigned_to: RefCell::default(),
                    timeout: Cell::default(),
                };
                self.shards.borrow_mut().insert(shard.id.clone(), Rc::new(info));
            }
        }
        let is_gone = |id: &&ShardId| !listed.iter().any(|shard| shard.id == **id);
        let gone: Vec<ShardId> = self.live.borrow().iter().filter(is_gone).cloned().collect();
        for id in gone {
            // The id stays in `live`, so the next tick finds no entry here.
            let known = self.shards.borrow_mut().remove(&id);
            let Some(shard) = known else {
                return Err("undefined method `shard_id' for nil".to_owned());
            };
            unless_missing(self.dynamo.delete(key(&shard.id), None).await, "delete_item")?;
        }
        Ok(())
    }

    /// Eventually consistent. Absent attributes leave the kept values unchanged.
    async fn fetch_checkpoint(&self, shard: &Info) -> Result<(), Raised> {
        let found = self.dynamo.get(key(&shard.id), false).await;
        let Some(row) = unless_missing(found, "get_item")?.flatten() else {
            return Ok(());
        };
        if let Some(checkpoint) = text(&row, CHECKPOINT) {
            shard.checkpoint.replace(Some(checkpoint.to_owned()));
        }
        if let Some(owner) = text(&row, OWNER) {
            shard.assigned_to.replace(Some(owner.to_owned()));
        }
        Ok(())
    }

    async fn lease(&self, shard: &Info) -> Result<(), Raised> {
        let now = self.dynamo.host.wall_ns();
        let next = now + self.failover_us * 1_000;
        let found = self.dynamo.get(key(&shard.id), false).await;
        let row = unless_missing(found, "get_item")?.flatten().unwrap_or_default();
        let is = |name: &'static str, value: &str| Condition::equals(name, s(value));
        let mut verb = Verb::Take;
        let condition = match (text(&row, OWNER), text(&row, TIMEOUT)) {
            (Some(owner), Some(timeout)) => {
                let ends = time::parse(timeout).ok_or("no time information in \"\"")?;
                // Inverted in the original: the worker refuses an expired lease and takes a live lease.
                if now > ends && owner != self.me {
                    return Err(format!("LeaseNotAquiredError: {}", shard.id));
                }
                if owner == self.me {
                    verb = Verb::Renew;
                }
                is(KEY, shard.id.as_str()).and(is(OWNER, owner)).and(is(TIMEOUT, timeout))
            }
            _ => Condition::not_exists(OWNER),
        };
        compare_parent(shard)?;
        let mut item = key(&shard.id);
        item.insert(OWNER.into(), s(&self.me));
        item.insert(TIMEOUT.into(), s(&time::ruby(next)));
        item.insert(CHECKPOINT.into(), nullable(shard.checkpoint.borrow().as_deref()));
        let put = self.dynamo.put(verb, item, Some(condition)).await;
        if unless_missing(put, "put_item")?.is_some() {
            shard.assigned_to.replace(Some(self.me.clone()));
            shard.timeout.set(Some(next));
        }
        Ok(())
    }

    /// Without a condition, and with the deadline from the take of the lease.
    async fn update_checkpoint(&self, shard: &Info, checkpoint: &str) -> Result<(), Raised> {
        shard.checkpoint.replace(Some(checkpoint.to_owned()));
        compare_parent(shard)?;
        let mut item = key(&shard.id);
        item.insert(CHECKPOINT.into(), s(checkpoint));
        item.insert(OWNER.into(), nullable(shard.assigned_to.borrow().as_deref()));
        let timeout = shard.timeout.get().map_or_else(String::new, time::ruby);
        item.insert(TIMEOUT.into(), s(&timeout));
        let verb = if checkpoint == SHARD_END { Verb::End } else { Verb::Checkpoint };
        unless_missing(self.dynamo.put(verb, item, None).await, "put_item").map(|_| ())
    }

    async fn remove_lease_owner(&self, shard: &Info) -> Result<(), Raised> {
        let update = Update::new().remove(OWNER);
        let removed = self.dynamo.update(Verb::Release, key(&shard.id), update, None).await;
        if unless_missing(removed, "update_item")?.is_some() {
            shard.assigned_to.replace(None);
        }
        Ok(())
    }

    /// Reads a shard from its checkpoint until a read brings no records.
    async fn drain(&self, shard: &Info) -> Result<(), Raised> {
        self.fetch_checkpoint(shard).await?;
        let from = match shard.checkpoint.borrow().as_deref() {
            None => IteratorFrom::TrimHorizon,
            Some(sequence) => after(sequence).map_err(|_| format!("no such position: {sequence}"))?,
        };
        let place = self.kinesis.iterator(&shard.id, from).await;
        let mut place = place.map_err(raised("get_shard_iterator"))?;
        let token = self.kinesis.host.next_token();
        self.kinesis.open(&shard.id, token).await;
        loop {
            let read = self.kinesis.records(&shard.id, place, MOST_RECORDS).await;
            let batch = read.map_err(raised("get_records"))?;
            if let Some(last) = batch.fetched.last {
                self.kinesis.process(&shard.id, token, batch.op).await;
                self.update_checkpoint(shard, &last.sequence.to_string()).await?;
            }
            if batch.fetched.end.is_some() {
                self.kinesis.close(&shard.id, token, EndReason::ShardEnded).await;
                return self.update_checkpoint(shard, SHARD_END).await;
            }
            if batch.fetched.count == 0 {
                self.kinesis.close(&shard.id, token, EndReason::Shutdown).await;
                return Ok(());
            }
            place = batch.op;
        }
    }
}

fn key(id: &ShardId) -> Item {
    key_only(KEY, id.as_str())
}

/// `parent_shard_id > 0`: a name cannot be compared with a number.
fn compare_parent(shard: &Info) -> Result<(), Raised> {
    if shard.has_parent {
        return Err("comparison of String with 0 failed".to_owned());
    }
    Ok(())
}
