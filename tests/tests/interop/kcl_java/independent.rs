//! Workers of the KCL and ours in one fleet, on servers that others wrote: kinesis-mock and dynoxide. So what the fleet relies on is not
//! only what `leasehold local` takes for the behaviour of AWS.

use super::super::{World, directory};
use super::beside;
use super::led::{self, Tables};
use crate::independent::{judge_rows, rows, shards};
use crate::interop::fleet::{Fleet, Worker, program};
use leasehold_tests::cache::available;
use leasehold_tests::dynoxide;
use leasehold_tests::kcl_java::{Kcl, Program};
use leasehold_tests::kinesis_mock::{self, KinesisMock};
use leasehold_tests::producer::Producer;

/// A fleet on these servers, which end with it.
struct Independent {
    _kinesis: KinesisMock,
    fleet: Fleet,
    program: Program,
    producer: Producer,
}

impl Independent {
    /// Nothing where a server or the program is missing.
    async fn start(test: &'static str, kcl: Kcl) -> Option<Self> {
        let installed = tokio::task::spawn_blocking(kinesis_mock::install).await;
        let home = available(test, installed.expect("no panic"))?;
        let program = program(test, kcl).await?;
        let directory = directory(test);
        let mock = KinesisMock::start(&home, &directory).await.expect("kinesis-mock");
        let world = World::at(mock.endpoint.clone(), dynoxide::start(), directory, 3).await;
        let (fleet, producer) = Fleet::on(test, world);
        Some(Self {
            _kinesis: mock,
            fleet,
            program,
            producer,
        })
    }

    /// Every record was processed, and the rows tell the whole story.
    async fn finish(self, last: Worker) {
        let (kinesis, dynamodb) = (
            self.fleet.world.kinesis.clone(),
            self.fleet.world.dynamodb.clone(),
        );
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

/// The leader of KCL 3 gives our worker leases by hand-over, and takes them back.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_of_kcl_3_assigns_leases_to_ours_on_servers_of_others() {
    const TEST: &str = "kcl-3-independent";
    let Some(independent) = Independent::start(TEST, Kcl::Three).await else {
        return;
    };
    let last = led::their_leader_assigns(&independent.fleet, &independent.program, Tables::One).await;
    independent.finish(last).await;
}
