//! A fleet of kinsumer.
//!
//! A record counts as processed when `Next` has returned the record: a client killed with a record in hand may lose
//! the record. Therefore the producer is quiet, and all records are printed, before the test kills a client.

use super::rows::{Checkpoint, Client, Metadata};
use super::{APPLICATION, SOON, World, all_printed, leave, shard};
use leasehold_tests::interop::{self, Library};
use leasehold_tests::producer::{Producer, Put};
use leasehold_tests::wait::until;
use std::collections::{BTreeMap, BTreeSet};

const LIBRARY: Library = Library::Kinsumer;

/// All three tables, with every row in the library's form.
struct Tables {
    clients: Vec<Client>,
    checkpoints: Vec<Checkpoint>,
    metadata: Metadata,
}

impl Tables {
    async fn read(world: &World) -> Self {
        let rows = async |table: &str| world.rows(&format!("{APPLICATION}_{table}")).await;
        let mut clients: Vec<Client> = rows("clients").await.iter().map(Client::read).collect();
        clients.sort_by(|a, b| a.id.cmp(&b.id));
        Self {
            clients,
            checkpoints: rows("checkpoints").await.iter().map(Checkpoint::read).collect(),
            metadata: Metadata::read(&rows("metadata").await),
        }
    }

    /// Whether exactly these shards are neither finished nor forgotten, and each shard is read by the right client:
    /// the client's place among the clients follows from the shard's place among the shards.
    fn shared(&self, shards: &[u32], clients: &[&Client]) -> bool {
        let shards: Vec<String> = shards.iter().map(|number| shard(*number)).collect();
        let open = self.checkpoints.iter().filter(|checkpoint| !checkpoint.finished);
        let open: BTreeMap<&str, &Checkpoint> = open.map(|open| (open.shard.as_str(), open)).collect();
        let owned = |(place, shard): (usize, &String)| {
            let owner = &clients[place % clients.len()].id;
            open.get(shard.as_str())
                .is_some_and(|open| open.sequence.is_some() && open.owner.as_ref() == Some(owner))
        };
        self.metadata.shards == shards
            && self.metadata.leader.as_ref() == Some(&clients[0].id)
            && open.len() == shards.len()
            && shards.iter().enumerate().all(owned)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_survives_a_split_and_the_death_of_its_leader() {
    const TEST: &str = "kinsumer";
    let Some(program) = LIBRARY.given(TEST) else {
        return;
    };
    let world = World::start(TEST).await;
    let producer = Producer::start(world.kinesis.clone(), &world.place.stream);
    let anna = interop::start(LIBRARY, &program, &world.place, "anna", &["--create"]);
    until("the first client", SOON, || async { !Tables::read(&world).await.clients.is_empty() }).await;
    let bert = interop::start(LIBRARY, &program, &world.place, "bert", &[]);
    until("both to share the shards", SOON, || async {
        let tables = Tables::read(&world).await;
        let clients: Vec<&Client> = tables.clients.iter().collect();
        clients.len() == 2 && tables.shared(&[0, 1, 2], &clients)
    })
    .await;
    world.split_first().await;
    until("the children to be shared, and the parent to be finished", SOON, || async {
        let tables = Tables::read(&world).await;
        let parent = tables.checkpoints.iter().find(|row| row.shard == shard(0));
        let clients: Vec<&Client> = tables.clients.iter().collect();
        tables.shared(&[1, 2, 3, 4], &clients) && parent.is_some_and(|parent| parent.finished)
    })
    .await;

    producer.pause();
    // A batch may be under way.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    all_printed(&producer.so_far(), &[&anna, &bert], SOON).await;
    let clients = Tables::read(&world).await.clients;
    let (leader, other) = (&clients[0], &clients[1]);
    let (mut killed, mut left) = if leader.name == "anna" { (anna, bert) } else { (bert, anna) };
    assert_eq!((&killed.name, &left.name), (&leader.name, &other.name));
    killed.process.kill().expect("the leader to be alive until now");
    producer.resume();
    until("the other one to lead, and to read all", SOON, || async {
        Tables::read(&world).await.shared(&[1, 2, 3, 4], &[other])
    })
    .await;

    let put = producer.finish().await;
    let shards: Vec<String> = (0..5).map(shard).collect();
    assert!(put.keys().eq(&shards), "every shard got records: {:?}", put.keys());
    all_printed(&put, &[&killed, &left], SOON).await;
    leave(&mut left, SOON).await;
    for member in [&killed, &left] {
        in_order(&member.name, &member.payloads(), &put);
    }
    let tables = Tables::read(&world).await;
    // Clients that crashed are remembered for two days.
    assert_eq!(tables.clients, std::slice::from_ref(leader));
    assert_eq!(tables.metadata.leader, None, "the leader stood down");
    assert_eq!(tables.metadata.shards, shards[1..]);
    let rows: BTreeSet<&String> = tables.checkpoints.iter().map(|row| &row.shard).collect();
    assert!(rows.into_iter().eq(&shards), "one row for each shard");
    for row in &tables.checkpoints {
        let (last, _) = put[&row.shard].last().expect("a record");
        assert_eq!((&row.sequence, &row.owner), (&Some(last.clone()), &None), "{row:?}");
        assert_eq!(row.finished, row.shard == shard(0), "{row:?}");
    }
}

/// A client printed the records of each shard in their order, and no record twice: no client stood still, and no two
/// clients read one shard side by side.
fn in_order(name: &str, payloads: &[String], put: &Put) {
    let places: BTreeMap<&String, (&String, usize)> = put
        .iter()
        .flat_map(|(shard, records)| {
            let data = records.iter().enumerate();
            data.map(move |(place, (_, data))| (data, (shard, place)))
        })
        .collect();
    let mut last: BTreeMap<&String, usize> = BTreeMap::new();
    for data in payloads {
        let (shard, place) = places[data];
        if let Some(before) = last.insert(shard, place) {
            assert!(before < place, "{name}: {data} of {shard} after what came later");
        }
    }
}
