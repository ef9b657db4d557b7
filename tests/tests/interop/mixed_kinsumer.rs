//! A fleet of kinsumer and of our own workers, on one set of tables.
//!
//! Leases are assigned by rank, and the first name leads: kinsumer's names are UUIDs in lower case, and our names
//! come before or after all UUIDs. A record counts for kinsumer as processed when `Next` has returned the record: the
//! producer is quiet when the test kills a kinsumer client.

use super::{APPLICATION, Row, World, all_printed, leave, shard};
use leasehold::aws::dynamodb::types::AttributeValue;
use leasehold_tests::interop::{self, Library};
use leasehold_tests::member::{Member, disorder};
use leasehold_tests::producer::Producer;
use leasehold_tests::wait::until;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Members are dead after five looks of 2 s, and so are leases.
const SOON: Duration = Duration::from_secs(90);
const THEIRS: &[&str] = &["--check-ms=2000", "--leader-ms=2000"];
const OURS: &[&str] = &["--check-interval=2"];
/// Before any digit, and after any.
const FIRST: &str = "+eva";
const LAST: &str = "lea";

struct Fleet {
    world: World,
    program: PathBuf,
}

fn text(row: &Row, name: &str) -> Option<String> {
    let value = row.get(name)?;
    value.as_s().ok().filter(|text| !text.is_empty()).cloned()
}

/// What people call the one in a row: for ours, the name without the life.
fn name(row: &Row, attribute: &str) -> String {
    let name = text(row, attribute).unwrap_or_default();
    name.split(':').next().unwrap_or_default().to_owned()
}

impl Fleet {
    fn theirs(&self, name: &str, more: &[&str]) -> Member {
        let more: Vec<&str> = THEIRS.iter().chain(more).copied().collect();
        interop::start(Library::Kinsumer, &self.program, &self.world.place, name, &more)
    }

    fn ours(&self, name: &str) -> Member {
        self.world.ours(name, "kinsumer", OURS)
    }

    async fn rows(&self, table: &str) -> Vec<Row> {
        self.world.rows(&format!("{APPLICATION}_{table}")).await
    }

    /// Who owns the shards that are not finished; nobody is an empty name.
    async fn owners(&self) -> BTreeMap<String, String> {
        let rows = self.rows("checkpoints").await;
        let open = rows.iter().filter(|row| !row.get("Finished").is_some_and(AttributeValue::is_n));
        open.map(|row| (text(row, "Shard").unwrap_or_default(), name(row, "OwnerName"))).collect()
    }

    /// Who leads, and which shards are shared out.
    async fn led(&self) -> (String, Vec<String>) {
        let rows = self.rows("metadata").await;
        let of = |key: &str| rows.iter().find(|row| text(row, "Key").as_deref() == Some(key));
        let leader = of("Leader").filter(|row| text(row, "ID").is_some());
        let shards = of("ShardCache").and_then(|row| row.get("ShardIDs")?.as_l().ok());
        let shards = shards.into_iter().flatten().filter_map(|id| id.as_s().ok().cloned());
        (leader.map(|row| name(row, "Name")).unwrap_or_default(), shards.collect())
    }

    /// Waits until the members, in the order of their ids, share exactly these shards by turns, and the first member
    /// leads.
    async fn until_shared(&self, what: &str, shards: &[u32], members: &[&str]) {
        let shards: Vec<String> = shards.iter().map(|number| shard(*number)).collect();
        let turns = shards.iter().zip(members.iter().cycle());
        let expected: BTreeMap<String, String> =
            turns.map(|(shard, member)| (shard.clone(), (*member).to_owned())).collect();
        until(what, SOON, || async {
            let (leader, shared) = self.led().await;
            leader == members[0] && shared == shards && self.owners().await == expected
        })
        .await;
    }
}

/// The whole way: theirs, both, ours, both, theirs; and the lead changes in each direction.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_moved_over_and_back_and_the_lead_with_it() {
    const TEST: &str = "kinsumer-mixed";
    let Some(program) = Library::Kinsumer.given(TEST) else {
        return;
    };
    let world = World::start(TEST).await;
    let fleet = Fleet { world, program };
    let producer = Producer::start(fleet.world.kinesis.clone(), &fleet.world.place.stream);
    let mut anna = fleet.theirs("anna", &["--create"]);
    fleet.until_shared("anna to read all", &[0, 1, 2], &["anna"]).await;
    let mut lea = fleet.ours(LAST);
    fleet.until_shared("lea to get her turns", &[0, 1, 2], &["anna", LAST]).await;
    fleet.world.split_first().await;
    fleet
        .until_shared(
            "the children of the split to be shared, the parent read",
            &[1, 2, 3, 4],
            &["anna", LAST],
        )
        .await;
    let mut eva = fleet.ours(FIRST);
    fleet.until_shared("eva to lead", &[1, 2, 3, 4], &[FIRST, "anna", LAST]).await;
    fleet.world.merge_others().await;
    fleet.until_shared("the child of the merge", &[3, 4, 5], &[FIRST, "anna", LAST]).await;

    producer.pause();
    // A batch may be under way.
    tokio::time::sleep(Duration::from_millis(500)).await;
    all_printed(&producer.so_far(), &[&lea, &eva, &anna], SOON).await;
    anna.process.kill().expect("anna to be alive until now");
    producer.resume();
    fleet.until_shared("ours to read all", &[3, 4, 5], &[FIRST, LAST]).await;

    let mut bert = fleet.theirs("bert", &[]);
    fleet.until_shared("bert to get his turns", &[3, 4, 5], &[FIRST, "bert", LAST]).await;
    leave(&mut eva, SOON).await;
    fleet.until_shared("bert to lead", &[3, 4, 5], &["bert", LAST]).await;
    leave(&mut lea, SOON).await;
    fleet.until_shared("bert to read all", &[3, 4, 5], &["bert"]).await;

    let put = producer.finish().await;
    let shards: Vec<String> = (0..6).map(shard).collect();
    assert!(put.keys().eq(&shards), "every shard got records");
    all_printed(&put, &[&lea, &eva, &anna, &bert], SOON).await;
    leave(&mut bert, SOON).await;
    for ours in [&lea, &eva] {
        assert_eq!(disorder(&ours.printed()), Vec::<String>::new());
    }
}
