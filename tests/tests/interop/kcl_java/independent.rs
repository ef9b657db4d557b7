//! Workers of the KCL and ours in one fleet, on independent servers: kinesis-mock and dynoxide. These fleets do not
//! rest on `leasehold local` and its idea of AWS alone.
//!
//! The servers carry all requests of both lines of the KCL: requests in CBOR, the encoding of the SDK for Java
//! towards Kinesis, splits and merges, conditions in the old form and in expressions, and an index added to a table
//! in use. The servers refuse no request for its rate, and a new table or index is ready at once. kinesis-mock takes
//! some 10 ms for a call: a scene takes longer here.

use super::super::{APPLICATION, World, directory};
use super::beside;
use super::led::{self, Tables};
use crate::independent::{judge_rows, rows, shards};
use crate::interop::fleet::{Fleet, program};
use leasehold::aws::dynamodb;
use leasehold::aws::dynamodb::types::IndexStatus;
use leasehold_tests::cache::available;
use leasehold_tests::dynoxide;
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::kinesis_mock::{self, KinesisMock};
use leasehold_tests::member::Member;
use leasehold_tests::producer::Producer;
use std::collections::BTreeMap;

/// The index for finding the leases of a worker in KCL 3.
const OWNER_INDEX: &str = "LeaseOwnerToLeaseKeyIndex";

/// A fleet on these servers. kinesis-mock ends with the fleet, dynoxide with this process.
struct Independent {
    _kinesis: KinesisMock,
    fleet: Fleet,
    program: Program,
    producer: Producer,
}

impl Independent {
    /// Absent: a server or the program is missing.
    async fn start(test: &'static str, kcl: Kcl) -> Option<Self> {
        let installed = tokio::task::spawn_blocking(kinesis_mock::install).await;
        let home = available(test, installed.expect("no panic"))?;
        let program = program(test, kcl).await?;
        let directory = directory(test);
        let mock = KinesisMock::start(&home, &directory).await.expect("kinesis-mock");
        let world = World::at(mock.endpoint.clone(), dynoxide::start(), directory, 3).await;
        let (fleet, producer) = Fleet::on(test, world);
        Some(Self { _kinesis: mock, fleet, program, producer })
    }

    /// Every record was processed, and the rows tell the whole story.
    async fn finish(self, last: Member) {
        let (kinesis, dynamodb) = (self.fleet.world.kinesis.clone(), self.fleet.world.dynamodb.clone());
        let put = self.producer.finish().await;
        self.fleet.finish_with(put.clone(), vec![last]).await;
        let mut rows = rows(&dynamodb).await;
        rows.retain(|_, row| row.contains_key("leaseCounter"));
        judge_rows(&shards(&kinesis).await, &rows, &put);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kcl_2_and_ours_share_a_fleet_on_servers_of_others() {
    const TEST: &str = "kcl-2-independent";
    let Some(independent) = Independent::start(TEST, Kcl::Two).await else {
        return;
    };
    let last = beside::everything(&independent.fleet, &independent.program, &[]).await;
    independent.finish(last).await;
}

/// The states of the indexes of the lease table, by their names.
async fn indexes(client: &dynamodb::Client) -> BTreeMap<String, IndexStatus> {
    let answer = client.describe_table().table_name(APPLICATION).send().await;
    let table = answer.ok().and_then(|answer| answer.table);
    let indexes = table.and_then(|table| table.global_secondary_indexes);
    let named = indexes.into_iter().flatten();
    named.filter_map(|index| Some((index.index_name?, index.index_status?))).collect()
}

/// The leader of KCL 3 gives our worker leases by hand-over, and takes them back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_3_assigns_leases_to_ours_on_others_servers() {
    const TEST: &str = "kcl-3-independent";
    let Some(independent) = Independent::start(TEST, Kcl::Three).await else {
        return;
    };
    let last = led::their_leader_assigns(&independent.fleet, &independent.program, Tables::One).await;
    let indexes = indexes(&independent.fleet.world.dynamodb).await;
    assert_eq!(
        indexes,
        BTreeMap::from([(OWNER_INDEX.to_owned(), IndexStatus::Active)]),
        "the indexes of the lease table"
    );
    independent.finish(last).await;
}
