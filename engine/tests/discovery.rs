//! Scenes of a worker that finds its assigned leases in the index of owners. Scans are far apart.

use crate::kcl3::{JAVA, change, held, java_lives, led, me};
use crate::rig::{Rig, Trick, refused};
use leasehold_engine::config::FleetConfig;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::input::{Outcome, OwnedPage, Reply, Why};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{Effect, TableOp};
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
    java_lives(&mut rig, 20);
    assert_eq!(held(&rig, 0), 0);
    rig
}

/// The leader assigns a lease to the worker of ours.
fn assign(rig: &mut Rig, n: u32) {
    let ours = me(rig, 0);
    give(rig, n, &ours);
}

fn give(rig: &mut Rig, n: u32, to: &WorkerId) {
    change(rig, n, |row| {
        row.owner = Some(to.clone());
        row.counter += 1;
    });
}

/// How often the index, and a row, was asked for, and the table scanned.
fn asked(rig: &Rig) -> [usize; 3] {
    let count = |is: fn(&TableOp) -> bool| {
        let ops = rig.workers[0].sent.iter().filter_map(|(_, effect)| match effect {
            Effect::Table(op) => Some(op),
            _ => None,
        });
        ops.filter(|op| is(op)).count()
    };
    [
        count(|op| matches!(op, TableOp::Owned { .. })),
        count(|op| matches!(op, TableOp::Read { .. })),
        count(|op| matches!(op, TableOp::Scan { .. })),
    ]
}

const INTERVAL: Span = Span::from_millis(2_500);

#[test]
fn an_assigned_lease_is_taken_within_the_interval_of_looks() {
    let mut rig = settled(3, INTERVAL);
    rig.put(0, 5);
    let before = asked(&rig);
    assign(&mut rig, 0);
    java_lives(&mut rig, 3);
    assert_eq!(held(&rig, 0), 1);
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
    let ours = me(&rig, 0);
    change(&mut rig, 0, |row| {
        row.owner = Some(ours);
        row.handing_over = Some(JAVA.into());
    });
    java_lives(&mut rig, 10);
    assert_eq!(held(&rig, 0), 0, "its owner is not done");
    change(&mut rig, 0, |row| {
        row.handing_over = None;
        row.counter += 1;
    });
    java_lives(&mut rig, 3);
    assert_eq!(held(&rig, 0), 1);
}

#[test]
fn without_the_index_scans_show_what_was_assigned() {
    let mut rig = settled(2, INTERVAL);
    give(&mut rig, 1, &JAVA.into());
    rig.table.owner_index = false;
    java_lives(&mut rig, 5);
    let before = asked(&rig);
    assign(&mut rig, 0);
    java_lives(&mut rig, 20);
    assert_eq!(held(&rig, 0), 0);
    java_lives(&mut rig, 40);
    assert_eq!(held(&rig, 0), 1, "a scan has shown it");
    assert!(asked(&rig)[0] - before[0] <= 2, "one look in a minute");
    let told = rig.workers[0].notices.iter();
    let told =
        told.filter(|(_, notice)| matches!(notice, Notice::Trouble { what, .. } if what.contains("index")));
    assert_eq!(told.count(), 1);
    // The index is created at last.
    rig.table.owner_index = true;
    java_lives(&mut rig, 62);
    assign(&mut rig, 1);
    java_lives(&mut rig, 3);
    assert_eq!(held(&rig, 0), 2);
}

#[test]
fn a_worker_that_is_not_to_look_finds_it_by_a_scan() {
    let mut rig = settled(1, Span::ZERO);
    assign(&mut rig, 0);
    java_lives(&mut rig, 20);
    assert_eq!((held(&rig, 0), asked(&rig)[0]), (0, 0));
    java_lives(&mut rig, 40);
    assert_eq!((held(&rig, 0), asked(&rig)[0]), (1, 0));
}

/// The index still shows what the leader has taken back since.
#[test]
fn the_index_counts_for_nothing_against_the_row() {
    let mut rig = settled(2, INTERVAL);
    give(&mut rig, 0, &JAVA.into());
    let key = Rig::id(0).to_lease();
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let page = OwnedPage { keys: vec![key.clone()], next: None };
        let looks = matches!(effect, Effect::Table(TableOp::Owned { .. }));
        looks.then_some(Trick::Instead(Outcome::Applied(Reply::Owned(page))))
    }));
    java_lives(&mut rig, 10);
    assert_eq!(held(&rig, 0), 0);
    assert_eq!(rig.row(0).actual_owner(), Some(&JAVA.into()));
    let writes = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(_)));
    assert!(!rig.workers[0].sent.iter().any(|(_, effect)| writes(effect)));
}

/// Failed looks are repeated, and hold no other request up.
#[test]
fn a_look_that_fails_is_made_again() {
    let mut rig = settled(1, INTERVAL);
    let mut failures = 0;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        let looks = matches!(effect, Effect::Table(TableOp::Owned { .. } | TableOp::Read { .. }));
        if !looks || failures == 4 {
            return None;
        }
        failures += 1;
        let cause = leasehold_engine::input::Cause::Throttled;
        Some(Trick::Instead(Outcome::NotSent(cause)))
    }));
    assign(&mut rig, 0);
    java_lives(&mut rig, 8);
    assert_eq!(held(&rig, 0), 1);
}

#[test]
fn a_look_refused_for_a_row_asks_whether_the_table_is_there() {
    let mut rig = settled(1, INTERVAL);
    assign(&mut rig, 0);
    rig.workers[0].trap = Some(Box::new(|effect| {
        let reads = matches!(effect, Effect::Table(TableOp::Read { .. }));
        reads.then_some(Trick::Instead(refused(Why::NotFound, None)))
    }));
    java_lives(&mut rig, 4);
    let describes = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Describe));
    let asked = rig.workers[0].sent.iter().rev().take(20);
    assert!(asked.into_iter().any(|(_, effect)| describes(effect)));
    rig.workers[0].trap = None;
    java_lives(&mut rig, 8);
    assert_eq!(held(&rig, 0), 1);
}
