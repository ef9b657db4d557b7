//! The shared parts of a world.

use crate::cloud::{Answer, Cloud, STREAM, TABLE, wall_ms};
use crate::connector::Request;
use crate::ledger::Ledger;
use crate::plan::Plan;
use leasehold::Control;
use leasehold::internals::MemorySink;
use leasehold_engine::format::{Kcl, LeaseFormat};
use leasehold_engine::ids::LeaseKey;
use leasehold_local_aws::kinesis::NewRecord;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The services, the ledger and the workers. Clones share.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Mutex<Scene>>);

impl Stage {
    /// The stage of a plan.
    pub fn new(plan: &Plan) -> Self {
        let ledger = Ledger::new(plan.config.steal_cooldown());
        Self(Arc::new(Mutex::new(Scene {
            cloud: Cloud::new(plan.shards),
            ledger,
            lives: Vec::new(),
            families: BTreeMap::new(),
            cut: BTreeSet::new(),
            healed: false,
            written: BTreeMap::new(),
            events: BTreeMap::new(),
        })))
    }

    /// The scene. No task waits while it holds the scene.
    pub fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content of a stage.
#[derive(Debug)]
pub struct Scene {
    /// The services.
    pub cloud: Cloud,
    /// What must hold.
    pub ledger: Ledger,
    /// Every life of every worker, in the order of their beginnings.
    pub lives: Vec<Life>,
    /// How many requests each family of faults hit.
    pub families: BTreeMap<&'static str, u64>,
    /// The workers cut off from the services.
    pub cut: BTreeSet<u32>,
    /// Whether faults have ended.
    pub healed: bool,
    /// How many records of each partition key were written.
    pub written: BTreeMap<String, u64>,
    /// How often each kind of event took place.
    pub events: BTreeMap<&'static str, u64>,
}

/// One life of a worker: from the start of its process to its end.
#[derive(Debug)]
pub struct Life {
    /// The worker.
    pub worker: u32,
    /// The worker's name and the number of its life.
    pub client: String,
    /// Its trace.
    pub trace: MemorySink,
    /// The handle on it.
    pub control: Control,
    /// How it ended; absent while it lives.
    pub end: Option<End>,
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its process was killed.
    Killed,
    /// It returned.
    Returned(Result<(), String>),
}

impl Scene {
    /// A request arrives at the services.
    pub fn execute(&mut self, now_us: u64, client: &str, request: &Request) -> Answer {
        let answer = self.cloud.execute(now_us, client, &request.target, &request.body);
        if let Some(key) = written_key(request) {
            let item = self.cloud.dynamo.peek(TABLE, &Kcl.key(&key)).cloned();
            let stream = self.cloud.stream();
            self.ledger.wrote(stream, client, &key, item.as_deref());
        }
        answer
    }

    /// Writes a record. The data hold the record's key and the number within the key, from 1.
    pub fn write(&mut self, now_us: u64, key: String) -> bool {
        let number = self.written.get(&key).copied().unwrap_or(0) + 1;
        let record = NewRecord {
            data: format!("{key}/{number}").into_bytes().into(),
            partition_key: key.as_str().into(),
            explicit_hash_key: None,
        };
        let put = self.cloud.kinesis.put_record(wall_ms(now_us), STREAM, record, None);
        if put.is_ok() {
            self.written.insert(key, number);
        }
        put.is_ok()
    }

    /// How many records were written.
    pub fn records(&self) -> u64 {
        self.written.values().sum()
    }

    /// The worker's life without an end.
    pub fn living(&mut self, worker: u32) -> Option<&mut Life> {
        self.lives.iter_mut().rev().find(|life| life.worker == worker && life.end.is_none())
    }

    /// A life ends.
    pub fn ends(&mut self, client: &str, end: End) {
        if let Some(life) = self.lives.iter_mut().find(|life| life.client == client) {
            life.end.get_or_insert(end);
        }
        self.ledger.dies(client);
    }

    /// Counts an event.
    pub fn count(&mut self, event: &'static str) {
        *self.events.entry(event).or_default() += 1;
    }
}

/// The lease written by a request.
fn written_key(request: &Request) -> Option<LeaseKey> {
    let place = match request.operation() {
        "PutItem" => "Item",
        "UpdateItem" | "DeleteItem" => "Key",
        _ => return None,
    };
    let body: Value = serde_json::from_slice(&request.body).ok()?;
    let key = body.get(place)?.get(Kcl.key_name())?.get("S")?.as_str()?;
    Some(LeaseKey::from(key))
}
