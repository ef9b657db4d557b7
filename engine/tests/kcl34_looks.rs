//! Scenes of looks for the tables in which workers of KCL 3.0 to 3.4 know each other: when a worker looks, and its
//! behaviour if it cannot look.

use crate::kcl34::{JAVA, OF_34, assign, held, java_lives, leases, led, looks, make_tables, news, report_of};
use crate::rig::{Trap, Trick, refused};
use leasehold_engine::fleet::{FleetTableOp, FleetTablesNews};
use leasehold_engine::input::{Cause, Outcome, Reply, TableState, Why};
use leasehold_engine::output::{Effect, TableOp};

#[test]
fn without_such_tables_a_worker_looks_once() {
    let mut rig = leases(4);
    rig.join();
    rig.join();
    rig.secs(3_600);
    assert_eq!([looks(&rig, 0), looks(&rig, 1)], [1, 1]);
    assert_eq!((held(&rig, 0), held(&rig, 1)), (2, 2));
    assert_eq!(news(&rig, 0), []);
    // Nor at all, if the configuration says so.
    rig.configure(|config| config.with_fleet_tables(false));
    let third = rig.join();
    rig.secs(60);
    assert_eq!(looks(&rig, third), 0);
}

/// The tables come later than our worker, with a worker of KCL that owns a lease.
#[test]
fn later_tables_are_found_when_another_program_owns_a_lease() {
    let mut rig = leases(4);
    rig.join();
    rig.secs(10);
    assert_eq!((held(&rig, 0), looks(&rig, 0)), (4, 1));
    make_tables(&mut rig);
    java_lives(&mut rig, OF_34, 30);
    assert_eq!(looks(&rig, 0), 1);
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
        assert!(looks(&rig, 0) <= 3 + second / 60, "{second}");
    }
    assert!(looks(&rig, 0) >= 9, "{}", looks(&rig, 0));
}

/// A worker without permission to look starts all the same.
#[test]
fn a_denied_look_is_told_once_and_stops_nothing() {
    let mut rig = leases(4);
    let looks_at = |effect: &Effect| matches!(effect, Effect::Table(TableOp::FleetTable(..)));
    let denied = move |effect: &Effect| looks_at(effect).then(|| Trick::Instead(refused(Why::Denied, None)));
    rig.join_trapped(Some(Box::new(denied)));
    rig.secs(600);
    assert_eq!((held(&rig, 0), looks(&rig, 0)), (4, 1));
    assert!(matches!(&news(&rig, 0)[..], [FleetTablesNews::Unreadable { .. }]));
}

/// A person removes the tables of a fleet that has long been gone.
#[test]
fn tables_that_are_removed_end_the_membership() {
    let mut rig = led(4, 1);
    rig.secs(100);
    assert_eq!(held(&rig, 0), 4, "no worker of KCL lives");
    rig.table.fleet_tables.clear();
    rig.secs(30);
    let before = looks(&rig, 0);
    rig.secs(300);
    assert_eq!((held(&rig, 0), looks(&rig, 0)), (4, before));
    assert_eq!(news(&rig, 0), [FleetTablesNews::Found, FleetTablesNews::Gone]);
    assert!(rig.table.fleet.is_empty());
    let writes = rig.workers[0].sent.iter().filter(|(_, effect)| {
        matches!(effect, Effect::Table(TableOp::FleetTable(_, FleetTableOp::Write(_))))
    });
    assert!(writes.count() < 20, "what cannot be written is not written for ever");
}

/// What the first `n` looks meet.
fn first_looks(n: u32, answer: Outcome) -> Trap {
    let mut left = n;
    Box::new(move |effect| {
        let looks = matches!(effect, Effect::Table(TableOp::FleetTable(..)));
        let meets = looks && left > 0;
        left -= u32::from(meets);
        meets.then(|| Trick::Instead(answer.clone()))
    })
}

/// No lease is taken before the worker knows who assigns leases.
#[test]
fn a_failed_look_is_repeated_before_anything_is_taken() {
    let creating = Outcome::Applied(Reply::Table(TableState::Creating));
    for answer in [Outcome::NotSent(Cause::Throttled), creating] {
        let mut rig = led(2, 0);
        rig.join_trapped(Some(first_looks(4, answer)));
        java_lives(&mut rig, OF_34, 30);
        assert_eq!(held(&rig, 0), 0);
        assert_eq!(report_of(&mut rig), [false, true]);
        let sent = rig.workers[0].sent.iter().map(|(_, effect)| effect);
        let looks = |effect: &&Effect| matches!(effect, Effect::Table(TableOp::FleetTable(..)));
        let before = sent.take_while(|effect| !matches!(effect, Effect::Table(TableOp::Scan { .. })));
        assert_eq!(before.filter(looks).count(), 7, "four, one that is answered, and two tables");
    }
}
