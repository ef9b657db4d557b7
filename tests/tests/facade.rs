//! What an application needs is exported by the crate `leasehold` itself: this file names no other crate of the project.

use leasehold::{
    Batch, Checkpoint, Config, EndReason, FencingToken, Handler, HashKey, InitialPosition, LeaseKey,
    MembersConfig, Position, ReaderConfig, Record, SequenceNumber, ShardId, ShardInfo, Span, Wall, WorkerId,
};
use std::convert::Infallible;
use std::sync::Mutex;

/// What a handler may see of a record.
#[expect(dead_code, reason = "the types are what is tested")]
struct Seen {
    shard: ShardId,
    lease: LeaseKey,
    token: FencingToken,
    position: Position,
    arrival: Option<Wall>,
    hash_key: Option<HashKey>,
    behind: Span,
}

/// A handler that keeps all of that.
#[derive(Default)]
struct Keep(Mutex<Vec<Seen>>);

impl Handler for Keep {
    type Error = Infallible;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Infallible> {
        let _: &Checkpoint = &shard.from;
        Ok(())
    }

    async fn process(&self, batch: Batch) -> Result<(), Infallible> {
        let shard = batch.shard();
        let mut kept = self.0.lock().unwrap();
        kept.extend(batch.records().iter().map(|record: &Record| {
            let _: SequenceNumber = record.position.sequence;
            Seen {
                shard: shard.shard.clone(),
                lease: shard.lease.clone(),
                token: shard.token,
                position: record.position,
                arrival: record.arrival,
                hash_key: record.explicit_hash_key,
                behind: batch.behind(),
            }
        }));
        Ok(())
    }

    async fn close(&self, _: &ShardInfo, reason: EndReason) {
        let _: EndReason = reason;
    }
}

#[test]
fn options_and_handlers_are_written_with_this_crate_alone() {
    let config = Config {
        table: "billing".to_owned(),
        stream: "orders".to_owned(),
        initial_position: InitialPosition::AtTimestamp(Wall(1_767_225_600_000)),
        lease_duration: Span::from_secs(20),
        reader: ReaderConfig {
            idle_interval: Span::from_millis(500),
            ..ReaderConfig::default()
        },
        members: MembersConfig::default(),
        ..Config::default()
    };
    assert_eq!(config.check(), Ok(()));
    assert_eq!(WorkerId::from("worker:1f").to_string(), "worker:1f");
    fn is_handler(_: impl Handler) {}
    is_handler(Keep::default());
}
