//! Which workers of a fleet of KCL 3.x live, by their reports in scans.

use crate::fleet::{
    FORGET_AFTER, FleetRow, FleetVersion, FleetWorker, REPORT_INTERVAL, WORKER_EXPIRY, seconds,
};
use crate::time::{Mono, Span};
use crate::worker::context::Context;
use crate::worker::kcl3::Kcl3Workers;
use crate::worker::kcl3::Standing;
use crate::worker::testing::context;
use std::collections::BTreeMap;

/// A report of `other`, written `age` ago by a right clock.
fn report(cx: &Context, age: Span) -> FleetWorker {
    FleetWorker {
        id: "other".into(),
        at: seconds(cx.wall()) - (age.0 / 1_000_000) as i64,
        ours: false,
        one_table: false,
        metrics: Vec::new(),
    }
}

/// A whole scan, requested at `asked`, shows this report.
fn shows(cx: &Context, fleet: &mut Kcl3Workers, scan: u64, asked: Mono, report: &FleetWorker) {
    fleet.observe(cx, scan, asked, FleetRow::Worker(report.clone()));
    fleet.scanned(cx, scan);
}

fn lives(cx: &Context, fleet: &Kcl3Workers) -> bool {
    fleet.live(cx.now()).next().is_some()
}

/// The worker has reported for the last time in the midst of a pause of ours.
fn after_a_pause(pause: Span, age: Span) -> (Context, Kcl3Workers) {
    let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
    shows(&cx, &mut fleet, 1, cx.now(), &report(&cx, Span::ZERO));
    cx.later(pause);
    shows(&cx, &mut fleet, 2, cx.now(), &report(&cx, age));
    (cx, fleet)
}

#[test]
fn a_report_that_changed_unseen_is_as_old_as_it_says() {
    let (pause, expiry) = (WORKER_EXPIRY.times(4), WORKER_EXPIRY);
    let (cx, fleet) = after_a_pause(pause, expiry);
    assert!(!lives(&cx, &fleet), "it died in the pause");
    let (mut cx, fleet) = after_a_pause(pause, Span(expiry.0 - 2_000_000));
    assert!(lives(&cx, &fleet));
    cx.later(Span::from_secs(2));
    assert!(!lives(&cx, &fleet), "its report counts for no longer than others'");
}

#[test]
fn a_report_is_no_older_than_the_last_look_whatever_its_clock() {
    let wrong = Span::from_secs(86_400);
    let (mut cx, fleet) = after_a_pause(REPORT_INTERVAL, wrong);
    assert!(lives(&cx, &fleet));
    cx.later(REPORT_INTERVAL);
    assert!(lives(&cx, &fleet), "the next report is due now");
    let (cx, fleet) = after_a_pause(WORKER_EXPIRY.times(2), wrong);
    assert!(!lives(&cx, &fleet), "nothing tells when it reported");
}

#[test]
fn a_report_that_changes_from_scan_to_scan_counts_in_full() {
    let mut cx = context();
    let interval = cx.config().scan_interval;
    let (first, mut second) = (report(&cx, WORKER_EXPIRY.times(2)), report(&cx, WORKER_EXPIRY));
    second.at += 1;
    let mut fleet = Kcl3Workers::default();
    shows(&cx, &mut fleet, 1, cx.now(), &first);
    assert!(!lives(&cx, &fleet), "by the time in it");
    cx.later(interval);
    shows(&cx, &mut fleet, 2, cx.now(), &second);
    cx.later(Span(WORKER_EXPIRY.0 - 1));
    assert!(lives(&cx, &fleet));
    cx.later(Span(1));
    assert!(!lives(&cx, &fleet));
}

#[test]
fn an_answer_that_lay_through_a_pause_is_no_look() {
    let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
    let first = report(&cx, Span::ZERO);
    shows(&cx, &mut fleet, 1, cx.now(), &first);
    let asked = cx.now();
    cx.later(WORKER_EXPIRY.times(4));
    shows(&cx, &mut fleet, 2, asked, &first);
    cx.later(cx.config().scan_interval);
    shows(&cx, &mut fleet, 3, cx.now(), &report(&cx, WORKER_EXPIRY.times(2)));
    assert!(!lives(&cx, &fleet));
}

#[test]
fn reports_of_the_dead_are_removed_after_a_day() {
    let mut cx = context();
    let mut fleet = Kcl3Workers::default();
    let last = report(&cx, Span::ZERO);
    shows(&cx, &mut fleet, 1, cx.now(), &last);
    cx.later(FORGET_AFTER);
    shows(&cx, &mut fleet, 2, cx.now(), &last);
    assert_eq!(fleet.stale(&cx), None);
    cx.later(Span::from_secs(1));
    shows(&cx, &mut fleet, 3, cx.now(), &last);
    assert_eq!(fleet.stale(&cx), Some((None, &last)), "it was seen to live, and died");
    let interval = cx.config().scan_interval;
    cx.later(interval);
    let mut wrong = last;
    wrong.at += 30;
    shows(&cx, &mut fleet, 4, cx.now(), &wrong);
    assert_eq!(fleet.stale(&cx), None, "its clock is wrong, and it lives");
}

#[test]
fn our_dead_workers_report_misleads_until_it_expires_or_changes() {
    let dead = |ours| {
        let (cx, mut fleet) = (context(), Kcl3Workers::default());
        let report = FleetWorker { ours, ..report(&cx, Span::ZERO) };
        shows(&cx, &mut fleet, 1, cx.now(), &report);
        assert_eq!(fleet.misleading(&cx), None, "it lives");
        fleet.note_owners(&cx, &BTreeMap::from([(report.id.clone(), Standing::of_silent())]));
        (cx, fleet, report)
    };
    let (cx, fleet, _) = dead(false);
    assert_eq!(fleet.misleading(&cx), None, "KCL removes its own");
    let (mut cx, mut fleet, report) = dead(true);
    assert_eq!(fleet.misleading(&cx), Some((None, &report)));
    let again = FleetWorker { at: report.at + 10, ..report };
    shows(&cx, &mut fleet, 2, cx.now(), &again);
    assert_eq!(fleet.misleading(&cx), None, "it has reported since");
    fleet.note_owners(&cx, &BTreeMap::from([(again.id.clone(), Standing::of_silent())]));
    cx.later(WORKER_EXPIRY);
    let ahead = Some((None, &again));
    assert_eq!(fleet.misleading(&cx), ahead, "KCL goes by the time in it");
    cx.later(Span::from_secs(10));
    assert_eq!(fleet.misleading(&cx), None, "nobody goes by it any more");
}

#[test]
fn who_renews_leases_lives_whatever_the_time_in_its_report() {
    let (cx, mut fleet) = (context(), Kcl3Workers::default());
    let old = report(&cx, Span::from_secs(3_600));
    shows(&cx, &mut fleet, 1, cx.now(), &old);
    assert!(!lives(&cx, &fleet));
    let owner = BTreeMap::from([(old.id.clone(), Standing::of_plain(false))]);
    fleet.note_owners(&cx, &owner);
    assert!(lives(&cx, &fleet), "the clock of one of the two is wrong");
    shows(&cx, &mut fleet, 2, cx.now(), &old);
    assert!(lives(&cx, &fleet), "until a scan shows its leases expired");
    fleet.note_owners(&cx, &BTreeMap::new());
    assert!(!lives(&cx, &fleet));
}

/// The report was read before this worker stood still, and the scan ends after the standstill.
#[test]
fn a_report_read_before_a_standstill_leaves_the_fleet_led() {
    let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
    let version = || FleetRow::Version(FleetVersion::Version3x.into());
    fleet.observe(&cx, 1, cx.now(), version());
    fleet.observe(&cx, 1, cx.now(), FleetRow::Worker(report(&cx, Span::ZERO)));
    cx.later(WORKER_EXPIRY.times(4));
    fleet.scanned(&cx, 1);
    assert!(fleet.is_led());
    fleet.observe(&cx, 2, cx.now(), version());
    shows(&cx, &mut fleet, 2, cx.now(), &report(&cx, WORKER_EXPIRY.times(4)));
    assert!(!fleet.is_led(), "a later look shows the death of the other worker");
}

/// A leader that has just started finds the row of a dead worker: the row is new to the leader, and so perhaps fresh.
#[test]
fn a_leader_gives_nothing_to_a_worker_without_report_or_renewal() {
    let (cx, mut fleet) = (context(), Kcl3Workers::default());
    let old = report(&cx, Span::from_secs(3_600));
    let sure = |fleet: &Kcl3Workers| fleet.surely_live(cx.now()).count();
    shows(&cx, &mut fleet, 1, cx.now(), &old);
    fleet.note_owners(&cx, &BTreeMap::from([(old.id.clone(), Standing::of_new_row())]));
    assert!(lives(&cx, &fleet), "nothing is taken from the worker");
    assert_eq!(sure(&fleet), 0);
    fleet.note_owners(&cx, &BTreeMap::from([(old.id.clone(), Standing::of_plain(false))]));
    assert_eq!(sure(&fleet), 1, "the worker has renewed a lease");
    let (mut fleet, fresh) = (Kcl3Workers::default(), report(&cx, Span::ZERO));
    shows(&cx, &mut fleet, 1, cx.now(), &fresh);
    assert_eq!(sure(&fleet), 1, "the worker has reported");
}

#[test]
fn our_worker_that_takes_nothing_is_dead_though_assigned() {
    let dead_after = |ours, takes| {
        let (mut cx, mut fleet) = (context(), Kcl3Workers::default());
        let report = FleetWorker { ours, ..report(&cx, Span::ZERO) };
        let named = BTreeMap::from([(report.id.clone(), Standing::of_plain(takes))]);
        let scans = 1..=cx.config().lease_duration.times(5).0 / 1_000_000;
        let dead = scans.map(|scan| {
            shows(&cx, &mut fleet, scan, cx.now(), &report);
            fleet.note_owners(&cx, &named);
            cx.later(Span::from_secs(1));
            !lives(&cx, &fleet)
        });
        dead.take_while(|dead| !dead).count()
    };
    let seconds = |span: Span| (span.0 / 1_000_000) as usize;
    let lease = context().config().lease_duration;
    assert_eq!(dead_after(true, false), seconds(lease.scaled(5, 2)));
    assert_eq!(dead_after(true, true), seconds(lease.times(5)));
    assert_eq!(dead_after(false, false), seconds(lease.times(5)), "KCL's rows tell no take");
}
