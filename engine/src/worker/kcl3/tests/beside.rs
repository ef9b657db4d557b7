//! What the tables beside the lease table show of a fleet, and for how long it counts.

use crate::fleet::{FleetRow, FleetVersion, FleetWorker};
use crate::leader_assignment::Rules;
use crate::time::{Mono, Span, Wall};
use crate::worker::context::Context;
use crate::worker::kcl3::Kcl3Workers;
use crate::worker::testing::context;

fn report(id: &str, at: i64) -> FleetRow {
    FleetRow::Worker(FleetWorker { id: id.into(), at, ours: false, one_table: false, metrics: Vec::new() })
}

/// Both clocks of a worker go on.
fn pass(cx: &mut Context, secs: u64) {
    let wall = Wall(cx.wall().0 + secs as i64 * 1_000);
    cx.clock(cx.now() + Span::from_secs(secs), wall);
}

/// A look shows these reports: the look was begun at `begun` and has ended now.
fn look(cx: &Context, fleet: &mut Kcl3Workers, number: u64, begun: Mono, reports: &[(&str, i64)]) {
    let reports = reports.iter().map(|(id, at)| report(id, *at));
    let version = FleetRow::Version(FleetVersion::Version3x.into());
    fleet.looked(cx, number, begun, reports.chain([version]).collect());
}

fn live(cx: &Context, fleet: &Kcl3Workers) -> Vec<String> {
    let live = fleet.live(cx.now());
    live.map(|worker| worker.id.to_string()).collect()
}

/// A worker that stood still reads a report written at an unknown time meanwhile. The report is as old as its own time
/// says.
#[test]
fn a_report_of_a_long_gap_is_as_old_as_it_says() {
    for pauses_within in [false, true] {
        let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
        let first = cx.wall().0 / 1_000;
        look(&cx, &mut fleet, 1, cx.now(), &[("dead", first), ("lives", first)]);
        assert_eq!(live(&cx, &fleet), ["dead", "lives"]);
        // The pause is before the next look, or in the midst of it.
        let begun = cx.now();
        pass(&mut cx, 200);
        let begun = if pauses_within { begun } else { cx.now() };
        look(&cx, &mut fleet, 2, begun, &[("dead", first + 10), ("lives", first + 190)]);
        assert_eq!(live(&cx, &fleet), ["lives"]);
        // Looks in quick succession show changes by themselves, whatever the clocks of other workers say.
        pass(&mut cx, 5);
        let begun = cx.now();
        look(&cx, &mut fleet, 3, begun, &[("dead", first + 11), ("lives", first + 190)]);
        let expected: &[&str] = if pauses_within { &["lives"] } else { &["dead", "lives"] };
        assert_eq!(live(&cx, &fleet), expected, "the look before this one: {pauses_within}");
    }
}

/// A failure to read the tables makes no fleet leaderless, and gives no lease to workers that may be dead.
#[test]
fn a_fleet_that_cannot_be_seen_is_led() {
    let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
    let first = cx.wall().0 / 1_000;
    look(&cx, &mut fleet, 1, cx.now(), &[("java", first)]);
    fleet.scanned(&cx, 1);
    assert_eq!(fleet.rules(), Rules::Led);
    pass(&mut cx, 600);
    fleet.scanned(&cx, 2);
    assert_eq!((fleet.rules(), live(&cx, &fleet)), (Rules::Led, vec![]));
    look(&cx, &mut fleet, 2, cx.now(), &[("java", first)]);
    fleet.scanned(&cx, 3);
    assert_eq!(fleet.rules(), Rules::Reporting, "it has said nothing since");
    // After a pause, before the next look.
    pass(&mut cx, 600);
    fleet.scanned(&cx, 4);
    assert_eq!(fleet.rules(), Rules::Led, "workers of KCL may have come meanwhile");
    look(&cx, &mut fleet, 3, cx.now(), &[("java", first)]);
    fleet.scanned(&cx, 5);
    assert_eq!(fleet.rules(), Rules::Reporting);
}
