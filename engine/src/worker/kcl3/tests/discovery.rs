//! The look in the index of owners alone: what is asked, and what answers lead to.

use super::super::discovery::{AGAIN, Discovery, MAX_READS};
use crate::config::FleetConfig;
use crate::fleet::{FleetRow, FleetVersion, FleetWorker, seconds as wall_seconds};
use crate::format::Format;
use crate::input::{Outcome, OwnedPage, Reply, ScanPage, Why};
use crate::output::{Effect, TableOp};
use crate::row::{LeaseRow, RowRead};
use crate::time::{Mono, Span};
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::{LeaseTable, Scan};
use crate::worker::testing::{
    Did, config, ended, hold, owned, refused, running, seconds, shown, shows, table, throttled, unknown,
};

const INTERVAL: Span = Span::from_secs(2);

/// A whole scan shows these rows. `led`: it also shows a live worker of KCL 3.x.
fn scanned(cx: &mut Context, leases: &mut LeaseTable, scan: &mut Scan, led: bool, rows: Vec<LeaseRow>) {
    let java = FleetWorker {
        id: "java".into(),
        at: wall_seconds(cx.wall()),
        ours: false,
        one_table: true,
        metrics: Vec::new(),
    };
    let fleet = [FleetRow::Version(FleetVersion::Version3x.into()), FleetRow::Worker(java)];
    let fleet = fleet.map(|says| RowRead::Foreign {
        key: "fleet".into(),
        kind: String::new(),
        says: Some(Box::new(says)),
    });
    let rows = rows.into_iter().map(RowRead::Lease);
    let rows = rows.chain(fleet.into_iter().filter(|_| led)).collect();
    scan.schedule_by(Mono(0));
    scan.step(cx, leases);
    let op = cx.did().op();
    let page = Outcome::Applied(Reply::Page(ScanPage { rows, next: None }));
    scan.on_page(cx, leases, op, page).expect("the only page");
    cx.did();
}

/// A worker that looks every `interval` in a fleet that is led, or is not, and has scanned the table just now.
fn member(interval: Span, led: bool) -> (Context, LeaseTable, Discovery) {
    let options = FleetConfig::default().with_discovery_interval(interval);
    let mut cx = running(config(Format::Kcl).with_fleet(options));
    let mut leases = table(&cx);
    scanned(&mut cx, &mut leases, &mut Scan::default(), led, Vec::new());
    (cx, leases, Discovery::default())
}

/// The same, and a look is due.
fn looking() -> (Context, LeaseTable, Discovery) {
    let (mut cx, leases, discovery) = member(INTERVAL, true);
    cx.later(INTERVAL);
    (cx, leases, discovery)
}

fn step(cx: &mut Context, leases: &LeaseTable, discovery: &mut Discovery) -> Did {
    discovery.step(cx, leases);
    cx.did()
}

fn keys(keys: &[&str], next: Option<&str>) -> Outcome {
    Outcome::Applied(Reply::Owned(OwnedPage {
        keys: keys.iter().map(|key| (*key).into()).collect(),
        next: next.map(Into::into),
    }))
}

/// Asks what is due, and answers it. Returns what was asked, and whether a lease is to be taken.
#[track_caller]
fn turn(
    cx: &mut Context, leases: &mut LeaseTable, discovery: &mut Discovery, outcome: Outcome,
) -> (TableOp, bool) {
    let (op, effect) = step(cx, leases, discovery).command();
    let Effect::Table(asked) = effect else { panic!("expected an operation on the table, found {effect:?}") };
    (asked, discovery.on_outcome(cx, leases, op, outcome))
}

fn page_after(after: Option<&str>) -> TableOp {
    TableOp::Owned { owner: "me".into(), after: after.map(Into::into) }
}

fn read(key: &str) -> TableOp {
    TableOp::Read { key: key.into() }
}

#[test]
fn a_worker_looks_only_where_a_leader_assigns_and_it_is_to_look() {
    for (interval, led, looks) in
        [(INTERVAL, true, true), (INTERVAL, false, false), (Span::ZERO, true, false)]
    {
        let (mut cx, leases, mut discovery) = member(interval, led);
        cx.later(seconds(100));
        let asked = !step(&mut cx, &leases, &mut discovery).is_nothing();
        assert_eq!(asked, looks, "{interval} {led}");
    }
}

#[test]
fn a_look_is_due_an_interval_after_the_last_look_and_scan() {
    let (mut cx, mut leases, mut discovery) = member(INTERVAL, true);
    let due = cx.now() + INTERVAL;
    assert_eq!(discovery.wake_at(&cx, &leases), due);
    cx.later(Span(INTERVAL.0 - 1));
    assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
    cx.later(Span(1));
    let asked = turn(&mut cx, &mut leases, &mut discovery, keys(&[], None));
    assert_eq!(asked, (page_after(None), false));
    assert_eq!(discovery.wake_at(&cx, &leases), due + INTERVAL);
    // What a scan shows need not be asked for.
    cx.later(seconds(1));
    scanned(&mut cx, &mut leases, &mut Scan::default(), true, Vec::new());
    assert_eq!(discovery.wake_at(&cx, &leases), cx.now() + INTERVAL);
}

#[test]
fn a_row_of_ours_is_to_be_taken_and_another_is_left() {
    for (row, ours) in [
        (Some(owned("a", "me", 3)), true),
        (Some(owned("a", "java", 4)), false),
        (Some(LeaseRow { handing_over: Some("java".into()), ..owned("a", "me", 3) }), false),
        (Some(ended("a", &[])), false),
        (None, false),
    ] {
        let (mut cx, mut leases, mut discovery) = looking();
        let page = turn(&mut cx, &mut leases, &mut discovery, keys(&["a"], None));
        assert_eq!(page, (page_after(None), false), "a key alone is a hint");
        let text = format!("{row:?}");
        let answer = turn(&mut cx, &mut leases, &mut discovery, shown(row.clone()));
        assert_eq!(answer, (read("a"), ours), "{text}");
        assert_eq!(leases.row("a"), row.as_ref());
        assert!(step(&mut cx, &leases, &mut discovery).is_nothing(), "the look is over");
    }
}

#[test]
fn our_lease_is_not_read_and_a_known_own_one_is_taken_without() {
    let (mut cx, mut leases, mut discovery) = looking();
    hold(&mut cx, &mut leases, owned("held", "me", 1));
    cx.did();
    let held = turn(&mut cx, &mut leases, &mut discovery, keys(&["held"], None));
    assert_eq!(held, (page_after(None), false));
    shows(&cx, &mut leases, owned("given", "me", 1));
    cx.later(INTERVAL);
    let given = turn(&mut cx, &mut leases, &mut discovery, keys(&["given", "held"], None));
    assert_eq!(given, (page_after(None), true));
    assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
}

#[test]
fn an_answer_that_is_older_than_what_is_known_changes_nothing() {
    let (mut cx, mut leases, mut discovery) = looking();
    turn(&mut cx, &mut leases, &mut discovery, keys(&["a"], None));
    let op = step(&mut cx, &leases, &mut discovery).op();
    shows(&cx, &mut leases, owned("a", "java", 9));
    let found = discovery.on_outcome(&mut cx, &mut leases, op, shown(Some(owned("a", "me", 8))));
    assert!(!found);
    assert_eq!(leases.row("a"), Some(&owned("a", "java", 9)));
}

#[test]
fn rows_are_read_one_by_one_and_pages_follow_one_another() {
    let (mut cx, mut leases, mut discovery) = looking();
    let mut asked = Vec::new();
    for outcome in [
        keys(&["a", "b"], Some("b")),
        shown(None),
        shown(Some(owned("b", "me", 1))),
        // A service that repeats its cursor does not keep the worker in the look.
        keys(&["c"], Some("b")),
        shown(None),
    ] {
        asked.push(turn(&mut cx, &mut leases, &mut discovery, outcome).0);
    }
    let expected = [page_after(None), read("a"), read("b"), page_after(Some("b")), read("c")];
    assert_eq!(asked, expected);
    assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
}

#[test]
fn no_more_rows_are_read_in_a_look_than_a_bound() {
    let (mut cx, mut leases, mut discovery) = looking();
    let names: Vec<String> = (0..MAX_READS + 5).map(|n| format!("lease-{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    turn(&mut cx, &mut leases, &mut discovery, keys(&names, Some("z")));
    for name in &names[..MAX_READS] {
        let (asked, _) = turn(&mut cx, &mut leases, &mut discovery, shown(None));
        assert_eq!(asked, read(name));
    }
    assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
}

#[test]
fn without_an_index_the_next_look_is_later_and_told_once() {
    for (why, doubts) in [(Why::Invalid, false), (Why::Denied, false), (Why::NotFound, true)] {
        let (mut cx, mut leases, mut discovery) = looking();
        for first in [true, false] {
            turn(&mut cx, &mut leases, &mut discovery, refused(why));
            let did = cx.did();
            let told: &[&str] = if first { &["trouble"] } else { &[] };
            assert_eq!(did.told(), told, "{why}");
            assert_eq!(did.requests().contains(&Request::DoubtTable), doubts, "{why}");
            assert_eq!(discovery.wake_at(&cx, &leases), cx.now() + AGAIN, "{why}");
            cx.later(AGAIN);
            scanned(&mut cx, &mut leases, &mut Scan::default(), true, Vec::new());
            cx.later(INTERVAL);
        }
        turn(&mut cx, &mut leases, &mut discovery, keys(&[], None));
        cx.later(INTERVAL);
        turn(&mut cx, &mut leases, &mut discovery, refused(why));
        assert_eq!(cx.did().told(), ["trouble"], "{why}: it was there in between");
    }
}

#[test]
fn a_request_that_fails_is_made_again_after_a_pause() {
    for failure in [throttled(), unknown()] {
        let (mut cx, mut leases, mut discovery) = looking();
        let first = turn(&mut cx, &mut leases, &mut discovery, failure.clone());
        let did = cx.did();
        assert_eq!(did.told(), ["trouble"]);
        let again_at = discovery.wake_at(&cx, &leases);
        assert!(again_at > cx.now() && again_at <= cx.now() + cx.config().retry_max());
        assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
        cx.later(again_at.since(cx.now()));
        assert_eq!(turn(&mut cx, &mut leases, &mut discovery, keys(&["a"], None)), first);
        turn(&mut cx, &mut leases, &mut discovery, failure);
        cx.later(seconds(5));
        cx.did();
        let again = turn(&mut cx, &mut leases, &mut discovery, shown(Some(owned("a", "me", 1))));
        assert_eq!(again, (read("a"), true));
    }
}

#[test]
fn a_fleet_that_is_led_no_more_ends_the_look() {
    let (mut cx, mut leases, mut discovery) = looking();
    let op = step(&mut cx, &leases, &mut discovery).op();
    cx.later(seconds(100));
    scanned(&mut cx, &mut leases, &mut Scan::default(), false, Vec::new());
    assert!(!discovery.on_outcome(&mut cx, &mut leases, op, keys(&["a"], None)));
    assert!(step(&mut cx, &leases, &mut discovery).is_nothing());
    assert_eq!(discovery.wake_at(&cx, &leases), Mono::NEVER);
}
