//! A share of all leases, counted by their owners.

use super::taken;
use crate::config::Config;
use crate::format::Format;
use crate::notice::TakeReason;
use crate::policy::Steal;
use crate::worker::assignment::by_count::ByCount;
use crate::worker::context::{Context, Request};
use crate::worker::lease_table::LeaseTable;
use crate::worker::testing::{Did, config, owned, row, running, shows, stage_of, table};

fn take_share(cx: &mut Context, leases: &LeaseTable, room: &mut ByCount) -> Did {
    let balance = leases.shares(cx).balance();
    room.take_share(cx, leases, &balance, &[]);
    cx.did()
}

/// `other` has `count` leases.
fn busy(cx: &Context, leases: &mut LeaseTable, count: u32) {
    for n in 0..count {
        shows(cx, leases, owned(&format!("busy-{n}"), "other", 1));
    }
}

#[test]
fn workers_that_start_together_leave_each_other_half_of_the_new() {
    let mut config = config(Format::Kcl);
    config.policies.steal = Steal::Take;
    let (mut cx, mut room) = (running(config), ByCount::default());
    let mut leases = table(&cx);
    for key in ["a", "b", "c", "d"] {
        shows(&cx, &mut leases, row(key));
    }
    let did = take_share(&mut cx, &leases, &mut room);
    assert_eq!(taken(&did, &leases).len(), 2);
    let meeting = cx.now() + cx.config().meeting();
    assert_eq!(did.requests().last(), Some(&Request::Rescan(meeting)));

    cx.later(cx.config().meeting());
    assert_eq!(taken(&take_share(&mut cx, &leases, &mut room), &leases).len(), 4);
}

#[test]
fn leases_of_a_dead_worker_are_taken_at_once_up_to_our_share() {
    let (mut cx, mut leases, mut room) = stage_of(ByCount::default());
    let dead = ["a", "b", "c"].map(|key| owned(key, "dead", 1));
    for row in &dead {
        shows(&cx, &mut leases, row.clone());
    }
    cx.later(cx.config().lease_duration);
    for row in dead {
        shows(&cx, &mut leases, row);
    }
    busy(&cx, &mut leases, 1);
    let did = take_share(&mut cx, &leases, &mut room);
    assert_eq!(taken(&did, &leases).len(), 2, "two of four are our share");
    assert_eq!(did.told(), ["chose"]);
}

#[test]
fn a_worker_ahead_by_two_leases_loses_one_and_ahead_by_one_none() {
    for (theirs, stolen) in [(1, 0), (2, 1), (5, 1)] {
        let (mut cx, mut leases, mut room) = stage_of(ByCount::default());
        busy(&cx, &mut leases, theirs);
        let did = take_share(&mut cx, &leases, &mut room);
        assert_eq!(did.requests().len(), stolen, "of {theirs}");
        let steals = |request: &Request| matches!(request, Request::Take(_, TakeReason::Stolen { .. }));
        assert!(did.requests().iter().all(steals));
    }
}

#[test]
fn no_more_leases_are_stolen_after_one_scan_than_configured() {
    let config = Config { max_steals: 2, ..config(Format::Kcl) };
    let (mut cx, mut room) = (running(config), ByCount::default());
    let mut leases = table(&cx);
    busy(&cx, &mut leases, 9);
    assert_eq!(taken(&take_share(&mut cx, &leases, &mut room), &leases).len(), 2);
    assert!(take_share(&mut cx, &leases, &mut room).is_nothing());
}

#[test]
fn a_lease_requested_from_its_owner_counts_as_ours() {
    let (mut cx, mut room) = (running(config(Format::VmwareGoKcl)), ByCount::default());
    let mut leases = table(&cx);
    busy(&cx, &mut leases, 2);
    let did = take_share(&mut cx, &leases, &mut room);
    let [Request::OfOwner(request)] = did.requests() else { panic!("expected a request, found {did:?}") };
    let requested = [request.key().clone()];
    let balance = leases.shares(&cx).balance();
    room.take_share(&mut cx, &leases, &balance, &requested);
    assert!(cx.did().is_nothing());
}
