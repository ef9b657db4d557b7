//! Fleets of other libraries on the in-memory AWS, their rows, and their requests.
//!
//! | file | subject |
//! |---|---|
//! | `vmware_go_kcl.rs` | fleets of vmware-go-kcl-v2: joining, leaving, crashes, stealing, a freeze, a split, a merge |
//! | `mixed.rs` | fleets of vmware-go-kcl-v2 and of our own workers, moved over and back |
//! | `kinsumer.rs` | fleets of kinsumer: a split, a crash of the leader |
//! | `mixed_kinsumer.rs` | fleets of kinsumer and of our own workers, moved over and back, each leading for a while |
//! | `hand_overs.rs` | fleets of our own workers at the defaults: what a move of a lease costs |
//! | `many_shards.rs` | two hundred shards among our own workers: how soon shares are even; for a quiet machine |
//! | `behind.rs` | a worker of our own that is far behind, on a narrow line; for a quiet machine |
//! | `outages.rs` | fleets of our own workers in ten bad minutes: kills, freezes, cuts, splits, merges |
//! | `restarts.rs` | fleets of our own workers: what deploys and crashes cost; for a quiet machine |
//! | `fan_out.rs` | fleets of our own workers that read by subscription |
//! | `fleet.rs` | what these fleets and those of KCL for Java are held to |
//! | `kcl_java/` | fleets of KCL for Java and of our own workers |
//! | `rows.rs` | every row of the Go libraries' tables has the known form |
//! | `requests.rs` | the conditions of the Go libraries are understood; needs no library |

mod behind;
mod fan_out;
mod fleet;
mod hand_overs;
mod kcl_java;
mod kinsumer;
mod many_shards;
mod mixed;
mod mixed_kinsumer;
mod outages;
mod requests;
mod restarts;
mod rows;
mod vmware_go_kcl;

use leasehold::aws::kinesis::types::{Shard, StreamStatus};
use leasehold::aws::{dynamodb, kinesis};
use leasehold_tests::account::Row;
use leasehold_tests::clients;
use leasehold_tests::consume::Target;
use leasehold_tests::local::{Local, instant};
use leasehold_tests::member::{Member, Place};
use leasehold_tests::producer::Put;
use leasehold_tests::wait::until;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

const STREAM: &str = "orders";
const APPLICATION: &str = "billing";
const HALF: &str = "56713727820156410577229101238628035242";
/// Timers are at most 4 s long, and things take several of them.
const SOON: Duration = Duration::from_secs(40);

/// A stream of three shards, or as many as a test needs, and clients of its own.
struct World {
    place: Place,
    kinesis: kinesis::Client,
    dynamodb: dynamodb::Client,
}

impl World {
    /// Without limits: the libraries create tables of 10 writes per second, too few for fleets with timers this
    /// short.
    async fn start(name: &str) -> Self {
        Self::with_shards(name, 3).await
    }

    async fn with_shards(name: &str, shards: i32) -> Self {
        let local = Local::start(instant()).await;
        Self::at(local.endpoint.clone(), local.endpoint, directory(name), shards).await
    }

    /// On these servers.
    async fn at(kinesis: String, dynamodb: String, directory: PathBuf, shards: i32) -> Self {
        let world = Self {
            kinesis: clients::kinesis(&kinesis),
            dynamodb: clients::dynamodb(&dynamodb),
            place: Place {
                kinesis,
                dynamodb,
                stream: STREAM.to_owned(),
                application: APPLICATION.to_owned(),
                directory,
            },
        };
        let stream = world.kinesis.create_stream().stream_name(STREAM);
        stream.shard_count(shards).send().await.expect("a stream");
        world.until_active().await;
        world
    }

    /// Until the stream can be changed.
    async fn until_active(&self) {
        until("the stream to be ACTIVE", SOON, || async {
            let summary = self.kinesis.describe_stream_summary().stream_name(STREAM);
            let answer = summary.send().await.ok();
            let summary = answer.and_then(|answer| answer.stream_description_summary);
            summary.is_some_and(|summary| summary.stream_status == StreamStatus::Active)
        })
        .await;
    }

    /// A worker of ours beside theirs, on their tables.
    fn ours(&self, name: &str, format: &'static str, more: &'static [&'static str]) -> Member {
        let program = env!("CARGO_BIN_EXE_leasehold-under-test");
        Target { format, more, ..Target::new(program, self.place.clone()) }.start(name)
    }

    /// Creates another stream of three shards, and has workers of several streams read both streams. Gives the
    /// streams' identifiers.
    async fn read_several(&mut self, other: &str) -> [String; 2] {
        let stream = self.kinesis.create_stream().stream_name(other).shard_count(3);
        stream.send().await.expect("a stream");
        let mut ids = Vec::new();
        for name in [STREAM, other] {
            let found = leasehold::StreamRef::find(&self.kinesis, name).await;
            ids.push(found.expect("a stream").id().to_string());
        }
        self.place.stream = ids.join(",");
        ids.try_into().expect("two streams")
    }

    async fn shards(&self) -> Vec<Shard> {
        let answer = self.kinesis.list_shards().stream_name(STREAM).send().await;
        answer.expect("the shards").shards.unwrap_or_default()
    }

    /// Splits the first shard, without a change of the hash keys of the second and third.
    async fn split_first(&self) {
        let split = self.kinesis.split_shard().stream_name(STREAM);
        let split = split.shard_to_split(shard(0)).new_starting_hash_key(HALF);
        split.send().await.expect("a split");
        self.until_active().await;
    }

    async fn merge_others(&self) {
        let merge = self.kinesis.merge_shards().stream_name(STREAM);
        let merge = merge.shard_to_merge(shard(1)).adjacent_shard_to_merge(shard(2));
        merge.send().await.expect("a merge");
        self.until_active().await;
    }

    /// The rows of a table; none while there is no table.
    async fn rows(&self, table: &str) -> Vec<Row> {
        let scan = self.dynamodb.scan().table_name(table).consistent_read(true);
        let answer = scan.send().await;
        answer.ok().and_then(|answer| answer.items).unwrap_or_default()
    }
}

/// A directory for the output of a test's workers.
pub(super) fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

fn shard(number: u32) -> String {
    format!("shardId-{number:012}")
}

/// Waits until every record that was put was printed by some member.
async fn all_printed(put: &Put, members: &[&Member], within: Duration) {
    until("every record to be printed by somebody", within, || async {
        let printed: BTreeSet<String> = members.iter().flat_map(|member| member.payloads()).collect();
        put.values().flatten().all(|(_, data)| printed.contains(data))
    })
    .await;
}

/// Interrupts it, and waits until it ended well.
async fn leave(member: &mut Member, within: Duration) {
    member.process.interrupt().expect("a signal");
    member.process.ends_well(within).await;
}
