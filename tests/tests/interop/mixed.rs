//! Fleets of vmware-go-kcl-v2 and of our own workers, on one table.
//!
//! Our workers have the timers of production here, and the library the matching lease duration: these tests take a
//! minute.
//!
//! A claim is lost when the owner checkpoints before its next renewal, since the owner writes whole items: a busy
//! shard is not given up. Therefore the producer is quiet while leases are stolen.

use super::{APPLICATION, World, all_printed, leave, shard};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::interop::{self, Library};
use leasehold_tests::member::{Member, disorder};
use leasehold_tests::producer::Producer;
use leasehold_tests::wait::until;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// A lease expires after 10 s, which is noticed by the second scan after; scans are 20 s apart.
const SOON: Duration = Duration::from_secs(120);
const LIKE_OURS: &[&str] = &["--failover-ms=10000", "--refresh-ms=2500"];

struct Fleet {
    world: World,
    program: PathBuf,
    steals: bool,
}

impl Fleet {
    async fn start(test: &str, steals: bool) -> Option<Self> {
        let program = Library::VmwareGoKcl.given(test)?;
        let world = World::start(test).await;
        Some(Self { world, program, steals })
    }

    fn theirs(&self, name: &str) -> Member {
        let mut more = LIKE_OURS.to_vec();
        if self.steals {
            more.push("--steal");
        }
        interop::start(Library::VmwareGoKcl, &self.program, &self.world.place, name, &more)
    }

    fn ours(&self, name: &str) -> Member {
        self.world.ours(name, "vmware-go-kcl", &[])
    }

    /// The owners of unfinished shards, by the name before the colon; an empty name means no owner.
    async fn owners(&self) -> BTreeMap<String, String> {
        let rows = self.world.rows(APPLICATION).await;
        let text = |row: &super::Row, name: &str| {
            let value = row.get(name).and_then(|value| AttributeValue::as_s(value).ok());
            value.cloned().unwrap_or_default()
        };
        rows.iter()
            .filter(|row| text(row, "Checkpoint") != "SHARD_END")
            .map(|row| {
                let owner = text(row, "AssignedTo");
                let name = owner.split(':').next().unwrap_or_default().to_owned();
                (text(row, "ShardID"), name)
            })
            .collect()
    }

    /// Waits until exactly these shards are owned by exactly these workers, and each worker owns some.
    async fn until_owned(&self, what: &str, shards: &[u32], by: &[&str]) {
        let (shards, by): (BTreeSet<String>, BTreeSet<&str>) =
            (shards.iter().map(|n| shard(*n)).collect(), by.iter().copied().collect());
        until(what, SOON, || async {
            let owners = self.owners().await;
            let found: BTreeSet<&str> = owners.values().map(String::as_str).collect();
            owners.keys().eq(&shards) && found == by
        })
        .await;
    }
}

/// The whole way: theirs, both, ours, both, theirs.
async fn there_and_back(test: &str, steals: bool) {
    let Some(fleet) = Fleet::start(test, steals).await else {
        return;
    };
    let producer = Producer::start(fleet.world.kinesis.clone(), &fleet.world.place.stream);
    let mut anna = fleet.theirs("anna");
    fleet.until_owned("anna to read all", &[0, 1, 2], &["anna"]).await;
    if steals {
        producer.pause();
    }
    let mut lea = fleet.ours("lea");
    if steals {
        fleet.until_owned("lea to get a share", &[0, 1, 2], &["anna", "lea"]).await;
        producer.resume();
    }
    fleet.world.split_first().await;
    until("the children of the split to be read", SOON, || async {
        let owners = fleet.owners().await;
        let expected: BTreeSet<String> = [1, 2, 3, 4].map(shard).into();
        owners.keys().eq(&expected) && owners.values().all(|owner| !owner.is_empty())
    })
    .await;
    anna.process.kill().expect("anna to be alive until now");
    fleet.until_owned("lea to read all", &[1, 2, 3, 4], &["lea"]).await;
    fleet.world.merge_others().await;
    fleet.until_owned("the child of the merge to be read", &[3, 4, 5], &["lea"]).await;
    if steals {
        producer.pause();
    }
    let mut bert = fleet.theirs("bert");
    if steals {
        fleet.until_owned("bert to get a share", &[3, 4, 5], &["bert", "lea"]).await;
        producer.resume();
    }
    leave(&mut lea, SOON).await;
    fleet.until_owned("bert to read all", &[3, 4, 5], &["bert"]).await;

    let put = producer.finish().await;
    all_printed(&put, &[&lea, &anna, &bert], SOON).await;
    leave(&mut bert, SOON).await;
    assert_eq!(disorder(&lea.printed()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_moves_over_and_back_worker_by_worker() {
    there_and_back("vmware-go-kcl-mixed", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn theirs_and_ours_claim_leases_of_each_other() {
    there_and_back("vmware-go-kcl-mixed-stealing", true).await;
}
