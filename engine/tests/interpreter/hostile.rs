//! Values no sane service sends, and configurations few people set.

use super::world::{KEYS, OWNERS};
use super::{Dice, members};
use leasehold_engine::config::{
    Config, FailureAction, InitialPosition, ReadMode, ReaderConfig, StreamSource,
};
use leasehold_engine::fleet::{FleetLeader, FleetRow, FleetState, FleetVersion, FleetWorker, TableMigration};
use leasehold_engine::ids::{FencingToken, LeaseKey, ShardId};
use leasehold_engine::input::*;
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{HandsOver, LeaseRow, RowRead};
use leasehold_engine::shard::{ChildShard, HashKey, HashRange, Shard};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::time::{Span, Wall};

/// How much an outcome brings.
pub fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Applied(Reply::Page(page)) => page.rows.len(),
        Outcome::Applied(Reply::Shards(page)) => page.shards.len(),
        Outcome::Applied(Reply::Records(Fetched { end: Some(end), .. })) => end.len(),
        _ => 1,
    }
}

pub fn config(dice: &mut Dice<'_>) -> Config {
    let good = Config::default()
        .with_table("app")
        .with_stream("orders")
        .with_scan_page_limit(u32::from(dice.byte() % 3))
        .with_max_leases(u32::from(dice.byte() % 4))
        .with_steal_cooldown(!dice.one_in(2))
        .with_max_steals(u32::from(dice.byte() % 3))
        .with_reader(ReaderConfig::default().with_mode(dice.pick(&[
            ReadMode::Polling,
            ReadMode::Auto,
            ReadMode::FanOut,
        ])));
    let kind = dice.byte();
    let good =
        good.with_failure_attempts(u32::from(dice.byte() % 3)).with_failure_action(match dice.one_in(2) {
            true => FailureAction::SetAside,
            false => FailureAction::Stop,
        });
    match kind {
        0..176 => good,
        // Its streams have the same shards.
        176..208 => good
            .with_stream("")
            .with_streams(vec![stream(dice), stream(dice)])
            .with_stream_cleanup_delay(match dice.one_in(2) {
                true => Span::from_secs(30),
                false => Span::ZERO,
            }),
        208..224 => members::ranked(good),
        224..240 => good
            .with_initial_position(InitialPosition::AtTimestamp(Wall(i64::MIN)))
            .with_cleanup_delay(Span(1))
            .with_checkpoint_interval(Span::ZERO)
            .with_shutdown_timeout(Span::ZERO)
            .with_bootstrap_delay(Span::ZERO)
            .with_handler_backoff(Span::ZERO)
            .with_audit_confidence(u32::MAX)
            .with_max_creates(1),
        240..250 => good
            .with_initial_position(InitialPosition::Latest)
            .with_cleanup_delay(Span(u64::MAX))
            .with_handler_backoff(Span(u64::MAX))
            .with_audit_confidence(1)
            .with_max_steals(u32::MAX)
            .with_max_leases(u32::MAX)
            .with_max_creates(u32::MAX)
            .with_scan_page_limit(u32::MAX),
        // Refused by the configuration's own check.
        250.. => Config::default()
            .with_lease_duration(Span(u64::MAX))
            .with_clock_rate_error_ppm(u32::MAX)
            .with_shutdown_timeout(Span(u64::MAX)),
    }
}

/// One of three streams. A configuration with a repeated stream is refused.
pub fn stream(dice: &mut Dice<'_>) -> StreamSource {
    let id: StreamId = dice.pick(&["1:a:2", "1:b:2", "1:c:2"]).parse().expect("an identifier");
    let initial_position = dice.one_in(2).then_some(InitialPosition::Latest);
    let modes = [ReadMode::Polling, ReadMode::FanOut, ReadMode::Auto];
    let reader_mode = dice.one_in(2).then(|| dice.pick(&modes));
    StreamSource { initial_position, reader_mode, ..id.into() }
}

pub fn key(dice: &mut Dice<'_>) -> LeaseKey {
    dice.pick(&KEYS).into()
}

fn shard_id(dice: &mut Dice<'_>) -> ShardId {
    dice.pick(&KEYS).into()
}

pub fn token(dice: &mut Dice<'_>) -> FencingToken {
    FencingToken(dice.number())
}

pub fn position(dice: &mut Dice<'_>) -> Position {
    let high = dice.number();
    Position {
        sequence: SequenceNumber::from_words(match dice.below(4) {
            3 => [high; 3],
            _ => [0, 0, high],
        }),
        sub: if dice.one_in(2) { dice.number() } else { 0 },
    }
}

fn range(dice: &mut Dice<'_>) -> HashRange {
    // The wrong way round is among them.
    let ends = [0, 1, u128::MAX / 2, u128::MAX / 2 + 1, u128::MAX];
    HashRange { start: HashKey(dice.pick(&ends)), end: HashKey(dice.pick(&ends)) }
}

pub fn lease(dice: &mut Dice<'_>) -> LeaseRow {
    let owner = |dice: &mut Dice<'_>| match dice.pick(&OWNERS) {
        "" => None,
        owner => Some(owner.into()),
    };
    LeaseRow {
        key: key(dice),
        owner: owner(dice),
        counter: dice.number(),
        checkpoint: match dice.below(5) {
            0 => Checkpoint::At(position(dice)),
            1 => Checkpoint::ShardEnd,
            2 => Checkpoint::Latest,
            3 => Checkpoint::AtTimestamp,
            _ => Checkpoint::TrimHorizon,
        },
        handing_over: owner(dice),
        range: (!dice.one_in(2)).then(|| range(dice)),
        parents: (0..dice.below(3)).map(|_| shard_id(dice)).collect(),
        children: (0..dice.below(3)).map(|_| shard_id(dice)).collect(),
        switches: u64::MAX,
        hands_over: dice.pick(&[HandsOver::Yes, HandsOver::No, HandsOver::Later]),
        throughput: dice.one_in(2).then(|| dice.number()),
        began: dice.one_in(2).then(|| Wall(dice.number() as i64)),
        stream: StreamIdentity::new(dice.pick(&STREAMS), Wall(dice.number() as i64)),
    }
}

/// The contents of a row of a fleet of KCL 3.x.
fn fleet_row(dice: &mut Dice<'_>) -> FleetRow {
    match dice.below(4) {
        0 => FleetRow::Worker(FleetWorker {
            id: dice.pick(&OWNERS).into(),
            at: dice.number() as i64,
            ours: dice.one_in(4),
            one_table: dice.one_in(2),
            metrics: Vec::new(),
        }),
        3 => FleetRow::Tables(match dice.below(5) {
            0 => TableMigration::Init,
            1 => TableMigration::Deployed,
            2 => TableMigration::Pending,
            3 => TableMigration::Complete,
            _ => TableMigration::Unknown(String::new()),
        }),
        1 => FleetRow::Leader(FleetLeader {
            id: dice.pick(&OWNERS).into(),
            version: dice.pick(&["", "v"]).to_owned(),
            lease_ms: dice.number(),
            released: dice.one_in(4),
        }),
        _ => FleetRow::Version(match dice.below(4) {
            0 => fleet_state(dice),
            1 => FleetVersion::Version2x.into(),
            2 => FleetVersion::Unknown(String::new()).into(),
            _ => FleetVersion::Version3x.into(),
        }),
    }
}

/// A fleet that migrates.
fn fleet_state(dice: &mut Dice<'_>) -> FleetState {
    FleetState {
        version: FleetVersion::UpgradeFrom2x,
        written: dice.one_in(2).then(|| ("tool".into(), dice.number() as i64)),
        before: Vec::new(),
    }
}

/// Names of streams in answers of services.
const STREAMS: [&str; 3] = ["", "arn:aws:kinesis:eu-west-1:1:stream/orders", "returns"];

fn row(dice: &mut Dice<'_>) -> RowRead {
    match dice.below(8) {
        6 => RowRead::Foreign {
            key: key(dice),
            kind: String::new(),
            says: (!dice.one_in(4)).then(|| Box::new(fleet_row(dice))),
        },
        7 => RowRead::Unreadable { key: key(dice), detail: String::new() },
        _ => RowRead::Lease(lease(dice)),
    }
}

fn reply(dice: &mut Dice<'_>) -> Reply {
    match dice.below(16) {
        15 => Reply::Owned(OwnedPage {
            next: dice.one_in(2).then(|| key(dice)),
            keys: (0..dice.below(4)).map(|_| key(dice)).collect(),
        }),
        14 => Reply::OwnerIndex(dice.one_in(2)),
        0 => Reply::Done,
        1 => Reply::Table(dice.pick(&[
            TableState::Missing,
            TableState::Creating,
            TableState::Usable,
            TableState::Deleting,
            TableState::Incompatible,
        ])),
        2 | 3 => Reply::Page(ScanPage {
            next: dice.one_in(2).then(|| key(dice)),
            rows: (0..dice.below(4)).map(|_| row(dice)).collect(),
        }),
        4 => Reply::Row(dice.one_in(2).then(|| Box::new(row(dice)))),
        5 => Reply::Stream(StreamState {
            readable: dice.one_in(2),
            created: Wall(dice.number() as i64),
            arn: dice.pick(&STREAMS).into(),
        }),
        6 | 7 => Reply::Shards(ShardPage {
            more: dice.one_in(2),
            shards: (0..dice.below(4)).map(|_| shard(dice)).collect(),
        }),
        8 => Reply::Iterator,
        9 => Reply::Records(Fetched {
            count: dice.number() as u32,
            bytes: dice.number(),
            first: dice.one_in(2).then(|| position(dice)),
            last: dice.one_in(2).then(|| position(dice)),
            behind_ms: dice.number(),
            end: dice.one_in(2).then(|| {
                (0..dice.below(4))
                    .map(|_| ChildShard {
                        id: shard_id(dice),
                        parents: (0..dice.below(4)).map(|_| shard_id(dice)).collect(),
                        range: range(dice),
                    })
                    .collect()
            }),
            range_unproven: dice.one_in(4),
            unordered: dice.one_in(4),
        }),
        10 => Reply::Kept,
        11 => Reply::ProcessedThrough(position(dice)),
        12 => Reply::ConfirmsEnd,
        _ => members::reply(dice).unwrap_or(Reply::Processed),
    }
}

fn shard(dice: &mut Dice<'_>) -> Shard {
    Shard {
        id: shard_id(dice),
        parent: dice.one_in(2).then(|| shard_id(dice)),
        adjacent_parent: dice.one_in(4).then(|| shard_id(dice)),
        range: range(dice),
        starting: position(dice).sequence,
        ending: dice.one_in(2).then(|| position(dice).sequence),
    }
}

const CAUSES: [Cause; 7] = [
    Cause::Timeout,
    Cause::Network,
    Cause::Server,
    Cause::Throttled,
    Cause::Credentials,
    Cause::Cancelled,
    Cause::Garbled,
];
const WHYS: [Why; 9] = [
    Why::ConditionFailed,
    Why::NotFound,
    Why::InUse,
    Why::Expired,
    Why::Denied,
    Why::Invalid,
    Why::HandlerFailed,
    Why::Gone,
    Why::RecordFailed(Position { sequence: SequenceNumber::from_words([0, 0, 3]), sub: 0 }),
];

/// The handler failed.
pub fn failed(why: Why) -> Outcome {
    Outcome::Refused(Refusal { why, current: None, detail: String::new() })
}

/// Any outcome, whatever was asked.
pub fn outcome(dice: &mut Dice<'_>) -> Outcome {
    match dice.below(8) {
        0..4 => Outcome::Applied(reply(dice)),
        4 => Outcome::NotSent(dice.pick(&CAUSES)),
        5 => Outcome::Unknown(dice.pick(&CAUSES)),
        _ => Outcome::Refused(Refusal {
            why: dice.pick(&WHYS),
            current: dice.one_in(2).then(|| Box::new(row(dice))),
            detail: String::new(),
        }),
    }
}
