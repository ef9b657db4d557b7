//! An account with a stream of two shards, and workers of the stream in this process.

use crate::account::Account;
use crate::probe::Probe;
use crate::wait::{SOON, until_or};
use leasehold::CompleteBuilder;
use std::collections::BTreeSet;
use std::ops::Deref;

pub use crate::account::SHARDS;

/// A stream of two shards.
#[derive(Debug)]
pub struct TwoShards {
    account: Account,
    stream: &'static str,
    application: &'static str,
}

impl Deref for TwoShards {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.account
    }
}

impl TwoShards {
    /// Starts a server, with this stream. Workers are of this application.
    pub async fn start(stream: &'static str, application: &'static str) -> Self {
        let account = Account::start().await;
        account.create(stream, 2).await;
        Self { account, stream, application }
    }

    /// Starts a server and a worker, with this record in each half of the hash space.
    pub async fn worked_on(stream: &'static str, application: &'static str, data: &str) -> (Self, Probe) {
        let scene = Self::start(stream, application).await;
        scene.put(data).await;
        let probe = scene.worker();
        (scene, probe)
    }

    /// The builder of a worker.
    pub fn worker_builder(&self) -> CompleteBuilder {
        self.account.worker_of(self.stream, self.application)
    }

    /// Starts a worker.
    pub fn worker(&self) -> Probe {
        Probe::of(self.worker_builder())
    }

    /// Puts a record into each half of the hash space; gives the sequence number of the first.
    pub async fn put(&self, data: &str) -> String {
        self.account.put_both(self.stream, data).await
    }

    /// Splits the first shard.
    pub async fn split_first(&self, at: u128) {
        self.account.split(self.stream, SHARDS[0], at).await;
    }

    /// The row of a lease.
    pub async fn lease(&self, shard: &str) -> Option<crate::account::Row> {
        self.account.row(self.application, shard).await
    }
}

/// Waits until a worker has processed exactly these payloads of a shard, in this order.
///
/// # Panics
/// If the wait is long. The message has the payloads and the notices of the worker.
pub async fn becomes(probe: &Probe, shard: &str, expected: &[&str]) {
    waits(probe, shard, expected, |payloads| payloads).await;
}

/// The same for each of the two shards.
///
/// # Panics
/// If the wait is long. The message has the payloads and the notices of the worker.
pub async fn all_become(probe: &Probe, expected: &[&str]) {
    for shard in SHARDS {
        becomes(probe, shard, expected).await;
    }
}

/// The same for a worker that lost the lease of the shard: records after the last checkpoint come again, and count once.
///
/// # Panics
/// If the wait is long. The message has the payloads and the notices of the worker.
pub async fn becomes_after_a_loss(probe: &Probe, shard: &str, expected: &[&str]) {
    waits(probe, shard, expected, |mut payloads| {
        let mut known = BTreeSet::new();
        payloads.retain(|payload| known.insert(payload.clone()));
        payloads
    })
    .await;
}

async fn waits(probe: &Probe, shard: &str, expected: &[&str], counted: impl Fn(Vec<String>) -> Vec<String>) {
    let payloads = || -> Vec<String> {
        let seen = probe.seen();
        let records = seen.records.get(shard).map(Vec::as_slice).unwrap_or_default();
        records.iter().map(|(_, data)| data.clone()).collect()
    };
    let found = || format!("found {:?}; the worker told {:#?}", payloads(), probe.seen().notices);
    let what = format!("{expected:?} of {shard}");
    until_or(&what, SOON, || async { counted(payloads()) == expected }, found).await;
}
