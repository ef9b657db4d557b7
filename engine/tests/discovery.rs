//! Scenes of a worker that finds its assigned leases in the index of owners. Scans are far apart.

use crate::kcl3::{JAVA, assert_held_after, java_lives, led};
use crate::rig::*;
use leasehold_engine::config::FleetConfig;
use leasehold_engine::input::Why;
use leasehold_engine::notice::Notice;
use leasehold_engine::time::Span;

/// A fleet led by `java`, and a worker of ours that scans once a minute. Its first scans are over.
fn settled(shards: u32, interval: Span) -> Rig {
    let mut rig = led(shards, 0);
    rig.table.owner_index = true;
    rig.configure(|config| {
        config
            .with_scan_interval(Span::from_secs(60))
            .with_quick_scan_interval(Span::from_secs(60))
            .with_fleet(FleetConfig::default().with_discovery_interval(interval))
    });
    rig.join();
    assert_held_after(&mut rig, 20, 0);
    rig
}

/// The leader assigns a lease to the worker of ours.
fn assign(rig: &mut Rig, n: u32) {
    rig.give(n, rig[0].me());
}

/// How often the index, and a row, was asked for, and the table scanned.
fn asked(rig: &Rig) -> [usize; 3] {
    [OWNED, READ, SCAN].map(|act| rig[0].sent(act))
}

const INTERVAL: Span = Span::from_millis(2_500);

#[test]
fn an_assigned_lease_is_taken_within_the_interval_of_looks() {
    let mut rig = settled(3, INTERVAL).with_records([0], 5);
    let before = asked(&rig);
    assign(&mut rig, 0);
    assert_held_after(&mut rig, 3, 1);
    let after = asked(&rig);
    assert_eq!(after[2], before[2], "no scan was needed");
    assert_eq!(after[1], before[1] + 1, "one row was read");
    assert_eq!(rig.owner(0), Some(0));
    // The rows of its own leases are not read again.
    java_lives(&mut rig, 25);
    let last = asked(&rig);
    assert_eq!(last[1..], after[1..]);
    assert_eq!(last[0] - after[0], 10, "one look in 2.5 s");
    rig.assert_all_processed();
}

#[test]
fn a_promised_lease_is_taken_after_its_hand_over() {
    let mut rig = settled(2, INTERVAL);
    rig.name([0], rig[0].me());
    rig.row_mut(0).handing_over = Some(JAVA.into());
    java_lives(&mut rig, 10);
    assert_eq!(rig[0].held(), 0, "its owner is not done");
    let row = rig.row_mut(0);
    (row.handing_over, row.counter) = (None, row.counter + 1);
    assert_held_after(&mut rig, 3, 1);
}

#[test]
fn without_the_index_scans_show_what_was_assigned() {
    let mut rig = settled(2, INTERVAL);
    rig.give(1, JAVA);
    rig.table.owner_index = false;
    java_lives(&mut rig, 5);
    let before = asked(&rig);
    assign(&mut rig, 0);
    assert_held_after(&mut rig, 20, 0);
    java_lives(&mut rig, 40);
    assert_eq!(rig[0].held(), 1, "a scan has shown it");
    assert!(asked(&rig)[0] - before[0] <= 2, "one look in a minute");
    let told = |notice: &Notice| matches!(notice, Notice::Trouble { what, .. } if what.contains("index"));
    assert_eq!(rig[0].told(told), 1);
    // The index is created at last.
    rig.table.owner_index = true;
    java_lives(&mut rig, 62);
    assign(&mut rig, 1);
    assert_held_after(&mut rig, 3, 2);
}

#[test]
fn a_worker_that_is_not_to_look_finds_it_by_a_scan() {
    let mut rig = settled(1, Span::ZERO);
    assign(&mut rig, 0);
    java_lives(&mut rig, 20);
    assert_eq!((rig[0].held(), asked(&rig)[0]), (0, 0));
    java_lives(&mut rig, 40);
    assert_eq!((rig[0].held(), asked(&rig)[0]), (1, 0));
}

#[test]
fn a_look_refused_for_a_row_asks_whether_the_table_is_there() {
    let mut rig = settled(1, INTERVAL);
    assign(&mut rig, 0);
    rig[0].trap(meets(READ, Trick::refused(Why::NotFound)));
    java_lives(&mut rig, 4);
    let asked = rig[0].sent.iter().rev().take(20);
    assert!(asked.into_iter().any(|(_, effect)| DESCRIBE_TABLE.is(effect)));
    rig[0].trap = None;
    assert_held_after(&mut rig, 8, 1);
}
