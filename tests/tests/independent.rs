//! `leasehold consume` against servers that others wrote: kinesis-mock and dynoxide.
//!
//! Two worker processes, a producer, a split, a merge, and a kill -9 of one of the two.

use super::interop::directory;
use leasehold::aws::kinesis::types::{Shard, StreamStatus};
use leasehold::aws::{dynamodb, kinesis};
use leasehold_tests::account::{Row, text};
use leasehold_tests::cache::available;
use leasehold_tests::consume::Target;
use leasehold_tests::kinesis_mock::{self, KinesisMock};
use leasehold_tests::member::{Member, Place, Printed, disorder};
use leasehold_tests::producer::{Producer, Put};
use leasehold_tests::wait::until;
use leasehold_tests::{clients, dynoxide};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STREAM: &str = "orders";
const APPLICATION: &str = "billing";
/// A lease expires after 10 s, which is noticed by the second scan after; scans are 20 s apart.
const TAKE_OVER: Duration = Duration::from_secs(90);

pub(crate) async fn shards(client: &kinesis::Client) -> Vec<Shard> {
    let answer = client.list_shards().stream_name(STREAM).send().await.expect("the shards");
    answer.shards.unwrap_or_default()
}

async fn active(client: &kinesis::Client) {
    until("the stream to be ACTIVE", Duration::from_secs(60), || async {
        let answer = client.describe_stream_summary().stream_name(STREAM).send().await;
        let summary = answer.ok().and_then(|answer| answer.stream_description_summary);
        summary.is_some_and(|summary| summary.stream_status == StreamStatus::Active)
    })
    .await;
}

pub(crate) async fn rows(client: &dynamodb::Client) -> BTreeMap<String, Row> {
    let answer = client.scan().table_name(APPLICATION).consistent_read(true).send().await;
    let rows = answer.ok().and_then(|answer| answer.items).unwrap_or_default().into_iter();
    rows.map(|row| (text(&row, "leaseKey").unwrap_or_default().to_owned(), row)).collect()
}

/// The owners of leases, with how many each has.
async fn owners(client: &dynamodb::Client) -> BTreeMap<String, usize> {
    let mut owners = BTreeMap::new();
    for row in rows(client).await.values() {
        if let Some(owner) = text(row, "leaseOwner") {
            // An owner is a worker's name and its incarnation.
            *owners.entry(owner.to_owned()).or_default() += 1;
        }
    }
    owners
}

fn names(owners: &BTreeMap<String, usize>, worker: &str) -> bool {
    owners.keys().any(|owner| owner.starts_with(worker))
}

fn ended(rows: &BTreeMap<String, Row>, shard: &str) -> bool {
    rows.get(shard).is_some_and(|row| text(row, "checkpoint") == Some("SHARD_END"))
}

/// The records printed only by anna and processed according to the checkpoint of a row owned by anna.
fn durable(rows: &BTreeMap<String, Row>, anna: &Member, bert: &Member) -> BTreeSet<String> {
    let of_bert: BTreeSet<String> = bert.printed().into_iter().map(|record| record.data).collect();
    let place = |sequence: &str| (sequence.len(), sequence.to_owned());
    let of_anna = anna.printed().into_iter().filter(|record| {
        let row = rows.get(&record.shard);
        let row = row.filter(|row| text(row, "leaseOwner").is_some_and(|owner| owner.starts_with("anna")));
        row.and_then(|row| text(row, "checkpoint")).is_some_and(|at| {
            at.starts_with(|first: char| first.is_ascii_digit()) && place(&record.sequence) <= place(at)
        })
    });
    of_anna.map(|record| record.data).filter(|data| !of_bert.contains(data)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_survive_a_split_a_merge_and_a_kill() {
    const TEST: &str = "two_workers_survive_a_split_a_merge_and_a_kill";
    let installed = tokio::task::spawn_blocking(kinesis_mock::install).await.expect("no panic");
    let Some(home) = available(TEST, installed) else {
        return;
    };
    let directory = directory("independent");
    let mock = KinesisMock::start(&home, &directory).await.expect("kinesis-mock");
    let place = Place { dynamodb: dynoxide::start(), ..Place::at(&mock.endpoint, directory) };
    let (kinesis, dynamodb) = (clients::kinesis(&place.kinesis), clients::dynamodb(&place.dynamodb));
    let target = Target::new(env!("CARGO_BIN_EXE_leasehold-under-test"), place);
    kinesis.create_stream().stream_name(STREAM).shard_count(3).send().await.expect("a stream");
    active(&kinesis).await;

    let producer = Producer::start(kinesis.clone(), STREAM);
    let mut anna = target.start("anna");
    let bert = target.start("bert");
    until("both workers to own leases", TAKE_OVER, || async {
        let owners = owners(&dynamodb).await;
        names(&owners, "anna") && names(&owners, "bert")
    })
    .await;

    let first = &shards(&kinesis).await[0];
    let split = kinesis.split_shard().stream_name(STREAM).shard_to_split(first.shard_id());
    split.new_starting_hash_key("56713727820156410577229101238628035242").send().await.expect("a split");
    active(&kinesis).await;
    until("the parent of the split to be ended", TAKE_OVER, || async {
        ended(&rows(&dynamodb).await, first.shard_id())
    })
    .await;
    until("anna to have made something durable that only anna has printed", TAKE_OVER, || async {
        !durable(&rows(&dynamodb).await, &anna, &bert).is_empty()
    })
    .await;
    let annas = durable(&rows(&dynamodb).await, &anna, &bert);
    assert!(!annas.is_empty(), "what is durable stays so");
    anna.process.kill().expect("anna to be alive until now");
    let merge = kinesis.merge_shards().stream_name(STREAM);
    let merge = merge.shard_to_merge("shardId-000000000001").adjacent_shard_to_merge("shardId-000000000002");
    merge.send().await.expect("a merge");
    active(&kinesis).await;
    until("bert to own all that is left, and the parents of the merge to be ended", TAKE_OVER, || async {
        let (rows, owners) = (rows(&dynamodb).await, owners(&dynamodb).await);
        ended(&rows, "shardId-000000000001")
            && ended(&rows, "shardId-000000000002")
            && names(&owners, "bert")
            && !names(&owners, "anna")
            && owners.values().sum::<usize>() == 3
    })
    .await;

    let put = producer.finish().await;
    assert_eq!(put.len(), 6, "every shard got records: three, two of the split, one of the merge");
    let all: BTreeSet<&String> = put.values().flatten().map(|(_, data)| data).collect();
    until("every record to be printed", TAKE_OVER, || async {
        let printed: BTreeSet<String> =
            [&anna, &bert].iter().flat_map(|each| each.printed()).map(|record| record.data).collect();
        all.iter().all(|data| printed.contains(*data))
    })
    .await;
    let mut bert = bert;
    bert.process.interrupt().expect("a signal");
    bert.process.ends_well(TAKE_OVER).await;
    judge(&put, &anna.printed(), &bert.printed());
    let again: Vec<Printed> = bert.printed();
    let again: Vec<&Printed> = again.iter().filter(|record| annas.contains(&record.data)).collect();
    assert!(again.is_empty(), "bert goes on from anna's checkpoints, not from the beginning: {again:?}");
    judge_rows(&shards(&kinesis).await, &rows(&dynamodb).await, &put);
    assert_eq!(owners(&dynamodb).await, BTreeMap::new(), "every lease was given up");
    println!(
        "{} records in {} shards; anna printed {}, bert {}",
        all.len(),
        put.len(),
        anna.printed().len(),
        bert.printed().len()
    );
}

/// That every shard was printed whole and in order by the two together.
fn judge(put: &Put, anna: &[Printed], bert: &[Printed]) {
    for (name, printed) in [("anna", anna), ("bert", bert)] {
        assert_eq!(disorder(printed), Vec::<String>::new(), "{name} keeps the order of each shard");
    }
    for (shard, expected) in put {
        let of = |printed: &[Printed]| -> BTreeMap<(usize, String), String> {
            let own = printed.iter().filter(|record| record.shard == *shard);
            own.map(|record| ((record.sequence.len(), record.sequence.clone()), record.data.clone()))
                .collect()
        };
        let mut union = of(anna);
        union.extend(of(bert));
        let found: Vec<(String, String)> =
            union.into_iter().map(|((_, sequence), data)| (sequence, data)).collect();
        assert!(
            found == *expected,
            "{shard}: {} records put, {} printed, or not as they were put",
            expected.len(),
            found.len()
        );
    }
}

/// That the table tells the whole story: ended parents with their children, and open shards at their last record.
pub(crate) fn judge_rows(shards: &[Shard], rows: &BTreeMap<String, Row>, put: &Put) {
    let listed: BTreeSet<&str> = shards.iter().map(Shard::shard_id).collect();
    assert_eq!(rows.keys().map(String::as_str).collect::<BTreeSet<_>>(), listed, "one row for each shard");
    for shard in shards {
        let row = &rows[shard.shard_id()];
        let parents: BTreeSet<&str> =
            [shard.parent_shard_id(), shard.adjacent_parent_shard_id()].into_iter().flatten().collect();
        let kept: BTreeSet<&str> = row
            .get("parentShardId")
            .and_then(|parents| parents.as_ss().ok())
            .map(|parents| parents.iter().map(String::as_str).collect())
            .unwrap_or_default();
        assert_eq!(kept, parents, "parents of {}", shard.shard_id());
        let children: BTreeSet<&str> = shards
            .iter()
            .filter(|child| {
                [child.parent_shard_id(), child.adjacent_parent_shard_id()].contains(&Some(shard.shard_id()))
            })
            .map(Shard::shard_id)
            .collect();
        let checkpoint = text(row, "checkpoint").unwrap_or_default();
        if children.is_empty() {
            let last = put.get(shard.shard_id()).and_then(|records| records.last());
            let expected = last.map(|(sequence, _)| sequence.as_str());
            assert_eq!(Some(checkpoint), expected, "{}", shard.shard_id());
        } else {
            assert_eq!(checkpoint, "SHARD_END", "{}", shard.shard_id());
            let kept = row["childShardIds"].as_ss().expect("a set");
            assert_eq!(
                kept.iter().map(String::as_str).collect::<BTreeSet<_>>(),
                children,
                "{}",
                shard.shard_id()
            );
        }
    }
}
