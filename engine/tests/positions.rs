//! Scenes of the initial position on a table that holds leases already.

use crate::rig::*;
use leasehold_engine::config::InitialPosition;
use leasehold_engine::notice::Notice;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::testkit::at;
use leasehold_engine::time::Wall;

const NOON: InitialPosition = InitialPosition::AtTimestamp(Wall(1_738_324_800_000));

/// A table filled long ago by other workers, with these checkpoints, and a worker configured to begin at `initial`.
fn on_a_table_of(checkpoints: &[Checkpoint], initial: InitialPosition) -> Rig {
    let mut rig = Rig::new(checkpoints.len() as u32, 0);
    for (n, checkpoint) in (0..).zip(checkpoints) {
        let row = LeaseRow { checkpoint: *checkpoint, ..rig.new_row(n) };
        rig.insert(row);
    }
    rig.configure(|config| config.with_initial_position(initial));
    rig.join_then(120);
    rig
}

/// The worker's notices of leases that do not begin at the configured position.
fn continued(rig: &Rig, worker: usize) -> Vec<String> {
    rig[worker].news(|notice| matches!(notice, Notice::Continued { .. }).then(|| notice.to_string()))
}

#[test]
fn leases_that_go_on_elsewhere_are_told_once_with_what_to_do() {
    let rig = on_a_table_of(&[at(7), Checkpoint::TrimHorizon, Checkpoint::AtTimestamp], NOON);
    assert_eq!(
        continued(&rig, 0),
        [
            "found 2 leases in the lease table of \"app\" and goes on from their checkpoints: the initial position \
             2025-01-31T12:00:00Z applies only to shards without a lease; to begin anew from there, stop the fleet and delete \
             the table, or use another application name"
        ]
    );
    let rig = on_a_table_of(&[at(7), Checkpoint::Latest], InitialPosition::Latest);
    let told = continued(&rig, 0);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("found 1 lease in") && told[0].contains("position latest applies"), "{told:?}");
}

#[test]
fn the_default_and_leases_at_the_initial_position_are_not_told() {
    for (checkpoints, initial) in [
        ([at(7), at(8)], InitialPosition::TrimHorizon),
        ([Checkpoint::AtTimestamp, Checkpoint::TrimHorizon], InitialPosition::TrimHorizon),
        ([Checkpoint::AtTimestamp; 2], NOON),
        ([Checkpoint::Latest; 2], InitialPosition::Latest),
    ] {
        let rig = on_a_table_of(&checkpoints, initial);
        assert_eq!(continued(&rig, 0), [] as [String; 0], "{checkpoints:?} {initial:?}");
    }
}

#[test]
fn a_fleet_that_fills_the_table_is_not_told_of_its_leases() {
    let mut rig =
        Rig::of(3, 2, |config| config.with_initial_position(NOON)).after(30).with_records(0..3, 5).after(60);
    for worker in 0..2 {
        assert_eq!(continued(&rig, worker), [] as [String; 0], "worker {worker}");
    }
    // The next worker comes to a table with its checkpoints.
    assert!(matches!(rig.row(0).checkpoint, Checkpoint::At(_)));
    rig.join_then(60);
    assert_eq!(continued(&rig, 2).len(), 1);
    assert_eq!(continued(&rig, 0), [] as [String; 0]);
}

#[test]
fn a_table_of_another_stream_is_not_gone_on_with() {
    let mut rig = Rig::of(2, 0, |config| config.with_initial_position(NOON));
    let mut row = LeaseRow { checkpoint: at(7), ..rig.new_row(0) };
    // The hash keys of this stream's other shard.
    row.range = Some(rig.stream.shards[&shard_id(1)].range);
    rig.insert(row);
    rig.join_then(120);
    assert_eq!(rig[0].told(FATAL), 1, "{:?}", rig[0].notices);
    assert_eq!(continued(&rig, 0), [] as [String; 0]);
}
