use super::*;
use crate::format::Format;
use crate::rank::Turns;
use crate::worker::testing::{config, owned, row, running, shows, stage_of, table};

#[test]
fn workers_are_ranked_among_those_that_own_a_lease() {
    let (mut cx, mut leases, mut room) = stage_of(Leadership::default());
    shows(&cx, &mut leases, row("a"));
    shows(&cx, &mut leases, owned("b", "me", 1));
    room.elect(&mut cx, &leases);
    let told = [Notice::Rank { rank: Some(0), workers: 1 }];
    assert_eq!(cx.did().notices(), told);
    assert_eq!(room.deputy(), 0);
}

#[test]
fn a_worker_without_a_lease_waits_longest_unless_nobody_has_one() {
    let (mut cx, mut leases, mut room) = stage_of(Leadership::default());
    room.elect(&mut cx, &leases);
    assert_eq!(room.deputy(), 0);
    shows(&cx, &mut leases, owned("a", "other", 1));
    room.elect(&mut cx, &leases);
    assert_eq!(room.deputy(), MAX_DEPUTY);
}

#[test]
fn a_rank_is_told_once_and_again_when_it_changes() {
    let (mut cx, mut leases, mut room) = stage_of(Leadership::default());
    room.elect(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["rank"]);
    room.elect(&mut cx, &leases);
    assert!(cx.did().is_nothing());
    shows(&cx, &mut leases, owned("a", "me", 1));
    room.elect(&mut cx, &leases);
    assert_eq!(cx.did().told(), ["rank"]);
}

#[test]
fn members_are_ranked_by_their_names_whatever_they_own() {
    let (mut cx, mut room) = (running(config(Format::Kinsumer)), Leadership::default());
    let mut leases = table(&cx);
    shows(&cx, &mut leases, owned("a", "me", 1));
    leases.set_turns(Turns::new(cx.me(), vec!["a".into(), "b".into()], vec![]));
    room.elect(&mut cx, &leases);
    let told = [Notice::Rank { rank: Some(2), workers: 3 }];
    assert_eq!(cx.did().notices(), told);
    assert_eq!(room.deputy(), 2);
}
