//! Scenes of looks for the tables in which workers of KCL 3.0 to 3.4 know each other: when a worker looks, and its
//! behaviour if it cannot look.

use crate::kcl3::JAVA;
use crate::kcl34::{
    OF_34, assert_held_after, assign, java_lives, leases, led, looks, make_tables, news, report_of,
};
use crate::rig::*;
use leasehold_engine::fleet::{FleetTableOp, FleetTablesNews};
use leasehold_engine::input::{Cause, Outcome, Reply, TableState, Why};
use leasehold_engine::output::{Effect, TableOp};

#[test]
fn without_such_tables_a_worker_looks_once() {
    let mut rig = leases(4);
    rig.join();
    rig.join_then(3_600);
    assert_eq!([rig[0].sent(looks), rig[1].sent(looks)], [1, 1]);
    assert_eq!((rig[0].held(), rig[1].held()), (2, 2));
    assert_eq!(news(&rig, 0), []);
    // Nor at all, if the configuration says so.
    rig.configure(|config| config.with_fleet_tables(false));
    let third = rig.join();
    rig.secs(60);
    assert_eq!(rig[third].sent(looks), 0);
}

/// The tables come later than our worker, with a worker of KCL that owns a lease.
#[test]
fn later_tables_are_found_when_another_program_owns_a_lease() {
    let mut rig = leases(4);
    rig.join_then(10);
    assert_eq!((rig[0].held(), rig[0].sent(looks)), (4, 1));
    make_tables(&mut rig);
    java_lives(&mut rig, OF_34, 30);
    assert_eq!(rig[0].sent(looks), 1);
    assign(&mut rig, 0, &JAVA.into());
    java_lives(&mut rig, OF_34, 30);
    assert_eq!(report_of(&mut rig), [false, true]);
    // Beside a fleet of KCL 2, which has no such tables, a worker looks for the tables once a minute.
    let mut rig = leases(4);
    for n in 0..2 {
        assign(&mut rig, n, &"kcl-2".into());
    }
    rig.join();
    for second in 0..600 {
        for n in 0..2 {
            assign(&mut rig, n, &"kcl-2".into());
        }
        rig.secs(1);
        assert!(rig[0].sent(looks) <= 3 + second / 60, "{second}");
    }
    assert!(rig[0].sent(looks) >= 9, "{}", rig[0].sent(looks));
}

/// A worker without permission to look starts all the same.
#[test]
fn a_denied_look_is_told_once_and_stops_nothing() {
    let mut rig = leases(4);
    rig.join_trapped(meets(looks, Trick::refused(Why::Denied)));
    rig.secs(600);
    assert_eq!((rig[0].held(), rig[0].sent(looks)), (4, 1));
    assert!(matches!(&news(&rig, 0)[..], [FleetTablesNews::Unreadable { .. }]));
}

/// A person removes the tables of a fleet that has long been gone.
#[test]
fn tables_that_are_removed_end_the_membership() {
    let mut rig = led(4, 1).after(100);
    assert_eq!(rig[0].held(), 4, "no worker of KCL lives");
    rig.table.fleet_tables.clear();
    rig.secs(30);
    let before = rig[0].sent(looks);
    rig.secs(300);
    assert_eq!((rig[0].held(), rig[0].sent(looks)), (4, before));
    assert_eq!(news(&rig, 0), [FleetTablesNews::Found, FleetTablesNews::Gone]);
    assert!(rig.table.fleet.is_empty());
    let writes =
        |effect: &Effect| matches!(effect, Effect::Table(TableOp::FleetTable(_, FleetTableOp::Write(_))));
    assert!(rig[0].sent(writes) < 20, "what cannot be written is not written for ever");
}

/// No lease is taken before the worker knows who assigns leases.
#[test]
fn a_failed_look_is_repeated_before_anything_is_taken() {
    let creating = Outcome::Applied(Reply::Table(TableState::Creating));
    for answer in [Outcome::NotSent(Cause::Throttled), creating] {
        let mut rig = led(2, 0);
        rig.join_trapped(first(4, looks, Trick::Instead(answer)));
        assert_held_after(&mut rig, OF_34, 30, 0);
        assert_eq!(report_of(&mut rig), [false, true]);
        let sent = rig[0].sent.iter().map(|(_, effect)| effect);
        let before = sent.take_while(|effect| !SCAN.is(effect));
        assert_eq!(
            before.filter(|effect| looks(effect)).count(),
            7,
            "four, one that is answered, and two tables"
        );
    }
}
