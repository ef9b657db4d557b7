//! Fleets of vmware-go-kcl-v2.
//!
//! All start at TRIM_HORIZON. There, no known fault of the library loses a record: a checkpoint that goes back, or is
//! erased, leads to repeated records. At LATEST, an erased checkpoint skips earlier records, and every new child
//! loses the records before its first iterator.
//!
//! A record may be printed often, by several workers, and again and again by one worker. One property always holds:
//! from the start of reading a shard until the stop, a worker prints a run of that shard's records without a hole.

use super::rows::Lease;
use super::{APPLICATION, SOON, World, all_printed, leave, shard};
use leasehold::aws::kinesis::types::Shard;
use leasehold_tests::interop::{self, Library};
use leasehold_tests::member::{Member, Printed};
use leasehold_tests::producer::{Producer, Put};
use leasehold_tests::wait::until;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const LIBRARY: Library = Library::VmwareGoKcl;

/// A world with the library's program in it.
struct Fleet {
    world: World,
    program: PathBuf,
}

impl Fleet {
    async fn start(test: &str) -> Option<Self> {
        let program = LIBRARY.given(test)?;
        let world = World::start(test).await;
        Some(Self { world, program })
    }

    fn member(&self, name: &str, more: &[&str]) -> Member {
        interop::start(LIBRARY, &self.program, &self.world.place, name, more)
    }

    /// All rows, each in the library's form.
    async fn leases(&self) -> BTreeMap<String, Lease> {
        let rows = self.world.rows(APPLICATION).await;
        let leases = rows.iter().map(Lease::read);
        leases.map(|lease| (lease.shard.clone(), lease)).collect()
    }

    /// Waits until the table passes the check `asked`.
    async fn until(&self, what: &str, asked: impl Fn(&BTreeMap<String, Lease>) -> bool) {
        until(what, SOON, || async { asked(&self.leases().await) }).await;
    }

    /// The first worker of a fleet is alone until the table exists: of two workers creating the table, one ends with
    /// an error.
    async fn first(&self, name: &str, more: &[&str]) -> Member {
        let first = self.member(name, more);
        self.until("the table, and a lease in it", |leases| !leases.is_empty()).await;
        first
    }
}

/// Who reads the shards that are not finished.
fn owners(leases: &BTreeMap<String, Lease>) -> BTreeSet<&str> {
    let open = leases.values().filter(|lease| !lease.finished());
    open.filter_map(|lease| lease.owner.as_deref()).collect()
}

/// Whether the leases of exactly these shards are open, read and checkpointed, all of them by these workers.
fn shared_by(leases: &BTreeMap<String, Lease>, shards: &[u32], workers: &[&str]) -> bool {
    let open: Vec<&Lease> = leases.values().filter(|lease| !lease.finished()).collect();
    let found: BTreeSet<String> = open.iter().map(|lease| lease.shard.clone()).collect();
    found == shards.iter().map(|number| shard(*number)).collect::<BTreeSet<_>>()
        && open.iter().all(|lease| lease.in_progress() && lease.claimed_by.is_none())
        && owners(leases).iter().all(|owner| workers.contains(owner))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_survives_joins_leaves_crashes_a_split_and_a_merge() {
    const TEST: &str = "vmware-go-kcl-without-stealing";
    let Some(fleet) = Fleet::start(TEST).await else {
        return;
    };
    let producer = Producer::start(fleet.world.kinesis.clone(), &fleet.world.place.stream);
    // Without stealing, no worker gives up a lease: the test must leave some leases for bert.
    let anna = fleet.first("anna", &["--max-leases=2"]).await;
    let bert = fleet.member("bert", &[]);
    fleet
        .until("both to read", |leases| {
            shared_by(leases, &[0, 1, 2], &["anna", "bert"]) && owners(leases).len() == 2
        })
        .await;
    let carl = fleet.member("carl", &[]);
    changes(&fleet, producer, [anna, bert, carl], &[]).await;
}

/// A claim is lost when the victim writes a checkpoint, or a renewal begun earlier. Therefore the producer is quiet
/// while leases are stolen; the library does not claim leases of shards without any checkpoint, and the quiet begins
/// after all shards have a checkpoint.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_steals_shares_its_leases_and_survives_the_same() {
    const TEST: &str = "vmware-go-kcl-with-stealing";
    let Some(fleet) = Fleet::start(TEST).await else {
        return;
    };
    let producer = Producer::start(fleet.world.kinesis.clone(), &fleet.world.place.stream);
    let anna = fleet.first("anna", &["--steal"]).await;
    fleet.until("anna to read all", |leases| shared_by(leases, &[0, 1, 2], &["anna"])).await;
    producer.pause();
    let bert = fleet.member("bert", &["--steal"]);
    let claims = std::sync::Mutex::new(BTreeSet::new());
    fleet
        .until("bert to have claimed and got his share", |leases| {
            let claimed = leases.values().filter_map(|lease| lease.claimed_by.clone());
            claims.lock().expect("no panic").extend(claimed);
            shared_by(leases, &[0, 1, 2], &["anna", "bert"]) && owners(leases).len() == 2
        })
        .await;
    let claims = claims.into_inner().expect("no panic");
    assert!(claims.contains("bert"), "expected to see a claim of bert, found {claims:?}");
    producer.resume();
    let carl = fleet.member("carl", &["--steal"]);
    changes(&fleet, producer, [anna, bert, carl], &["--steal"]).await;
}

/// The changes of any fleet of three workers on shards 0, 1 and 2.
async fn changes(fleet: &Fleet, producer: Producer, [mut anna, mut bert, carl]: [Member; 3], more: &[&str]) {
    fleet.world.split_first().await;
    let all = ["anna", "bert", "carl"];
    fleet
        .until("the children of the split to be read", |leases| shared_by(leases, &[1, 2, 3, 4], &all))
        .await;
    // Not while any worker waits for a parent: a request to stop does not end that wait.
    leave(&mut bert, SOON).await;
    // A worker may mistake its own lease for a lease already read, and only another worker then takes the lease over.
    // Therefore at least two workers always run.
    let dora = fleet.member("dora", more);
    fleet
        .until("what bert read to be read by others", |leases| {
            shared_by(leases, &[1, 2, 3, 4], &["anna", "carl", "dora"])
        })
        .await;
    anna.process.kill().expect("anna to be alive until now");
    fleet
        .until("what anna read to be read by others", |leases| {
            shared_by(leases, &[1, 2, 3, 4], &["carl", "dora"])
        })
        .await;
    fleet.world.merge_others().await;
    fleet
        .until("the child of the merge to be read", |leases| shared_by(leases, &[3, 4, 5], &["carl", "dora"]))
        .await;

    let put = producer.finish().await;
    let mut members = [anna, bert, carl, dora];
    let shards: Vec<String> = (0..6).map(shard).collect();
    assert!(put.keys().eq(&shards), "every shard got records: {:?}", put.keys());
    all_printed(&put, &members.each_ref(), SOON).await;
    fleet.until("the last records to be checkpointed", |leases| at_the_end(leases, &put)).await;
    for member in &mut members[2..] {
        leave(member, SOON).await;
    }
    for member in &members {
        runs(&member.name, &member.printed(), &put);
    }
    judge_rows(fleet, &put).await;
    for member in &members {
        println!("{} printed {}", member.name, member.printed().len());
    }
}

/// Whether finished shards are marked as finished, and the remaining shards are at their last record.
fn at_the_end(leases: &BTreeMap<String, Lease>, put: &Put) -> bool {
    put.iter().all(|(shard, records)| {
        let (last, _) = &records[records.len() - 1];
        leases.get(shard).is_some_and(|lease| lease.finished() || lease.checkpoint.as_ref() == Some(last))
    })
}

/// Checks that each session is a run of one shard's records: in order, once, without a hole.
fn runs(name: &str, printed: &[Printed], put: &Put) {
    let mut next: BTreeMap<u64, (&str, usize)> = BTreeMap::new();
    for record in printed {
        let of_shard = &put[&record.shard];
        let found = of_shard.iter().position(|(sequence, _)| *sequence == record.sequence);
        let place = found.unwrap_or_else(|| panic!("{name}: {record:?} was never put"));
        assert_eq!(of_shard[place].1, record.data, "{name}: {record:?}");
        if let Some((shard, expected)) = next.insert(record.session, (record.shard.as_str(), place + 1)) {
            assert_eq!((shard, expected), (record.shard.as_str(), place), "{name}: {record:?}");
        }
    }
}

/// Checks that the table tells the whole story after the end of all workers.
async fn judge_rows(fleet: &Fleet, put: &Put) {
    let leases = fleet.leases().await;
    assert!(at_the_end(&leases, put), "{leases:?}");
    let shards = fleet.world.shards().await;
    let listed: BTreeSet<&str> = shards.iter().map(Shard::shard_id).collect();
    assert!(leases.keys().map(String::as_str).eq(listed), "one row for each shard: {leases:?}");
    for shard in &shards {
        let lease = &leases[shard.shard_id()];
        assert_eq!(lease.parent.as_deref(), shard.parent_shard_id(), "{lease:?}");
        assert_eq!(lease.claimed_by, None, "{lease:?}");
        let range = shard.sequence_number_range();
        let closed = range.is_some_and(|range| range.ending_sequence_number().is_some());
        assert_eq!(lease.finished(), closed, "{lease:?}");
    }
    // A renewal under way during the release of the lease takes the lease once more, in about one of a hundred
    // releases.
    let kept = leases.values().filter(|lease| lease.owner.is_some());
    assert!(kept.count() <= 2, "expected leases to be given up, found {leases:?}");
}

/// A worker that stood still for longer than its leases reads on from its old place. Its first checkpoints have no
/// condition, and overwrite the checkpoints of the new owner. The overwrite costs order and repetition, and no
/// record.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_goes_on_and_nothing_is_lost() {
    const TEST: &str = "vmware-go-kcl-frozen";
    let Some(fleet) = Fleet::start(TEST).await else {
        return;
    };
    let producer = Producer::start(fleet.world.kinesis.clone(), &fleet.world.place.stream);
    let anna = fleet.first("anna", &[]).await;
    fleet.until("anna to read all", |leases| shared_by(leases, &[0, 1, 2], &["anna"])).await;
    anna.process.freeze().expect("a signal");
    let bert = fleet.member("bert", &[]);
    fleet.until("bert to read all", |leases| shared_by(leases, &[0, 1, 2], &["bert"])).await;
    let before = anna.printed().len();
    anna.process.thaw().expect("a signal");
    until("anna to print what bert has printed", SOON, || async {
        let theirs: BTreeSet<String> = bert.payloads().into_iter().collect();
        anna.payloads()[before..].iter().any(|data| theirs.contains(data))
    })
    .await;
    let put = producer.finish().await;
    let mut members = [anna, bert];
    all_printed(&put, &members.each_ref(), SOON).await;
    fleet.until("the last records to be checkpointed", |leases| at_the_end(leases, &put)).await;
    for member in &mut members {
        leave(member, SOON).await;
    }
    for member in &members {
        runs(&member.name, &member.printed(), &put);
    }
    judge_rows(&fleet, &put).await;
}
