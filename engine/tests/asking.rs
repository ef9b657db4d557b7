//! Scenes of hand-overs among workers that hand leases over on request: how soon shares are even, how long a shard
//! stands still, and that no record is repeated.

use crate::rig::*;
use leasehold_engine::input::{Body, Call, Cause, Outcome};
use leasehold_engine::notice::{Notice, TakeReason};
use leasehold_engine::output::*;
use leasehold_engine::row::{Change, HandsOver};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

fn fleet(shards: u32, workers: u32) -> Rig {
    Rig::of(shards, workers, |_| asking())
}

/// How many leases each worker holds.
fn held(rig: &Rig) -> Vec<usize> {
    rig.workers.iter().map(|worker| worker.engine().held().count()).collect()
}

/// Lets time pass, in steps of a tenth of a second, until this holds. Gives how long that took.
#[track_caller]
fn until(rig: &mut Rig, most: Span, holds: impl Fn(&Rig) -> bool) -> Span {
    let from = rig.now;
    while !holds(rig) {
        assert!(rig.now.since(from) < most, "not within {most}: {:?}", held(rig));
        rig.run(Span::from_millis(100));
    }
    rig.now.since(from)
}

fn even(rig: &Rig, among: std::ops::Range<usize>) -> bool {
    let held = held(rig);
    let alive = &held[among];
    let (least, most) = (alive.iter().min(), alive.iter().max());
    let all: usize = alive.iter().sum();
    all == rig.stream.shards.len() && most.zip(least).is_some_and(|(most, least)| most - least <= 1)
}

fn stolen(notice: &Notice) -> bool {
    matches!(notice, Notice::Took { why: TakeReason::Stolen { .. }, .. })
}

/// The longest time without an open handler for a shard that was handed over, from this moment on.
fn longest_standstill(rig: &Rig, from: Mono) -> Span {
    let calls = rig.workers.iter().flat_map(|worker| &worker.calls);
    let mut events: Vec<(Mono, String, bool)> = calls
        .filter(|(_, op)| matches!(op, ConsumerOp::Open { .. } | ConsumerOp::Close { .. }))
        .map(|(at, op)| (*at, op.lease().to_string(), matches!(op, ConsumerOp::Open { .. })))
        .collect();
    events.sort();
    let (mut closed, mut longest) = (BTreeMap::new(), Span::ZERO);
    for (at, lease, opens) in events {
        if !opens {
            closed.insert(lease, at);
        } else if let Some(since) = closed.remove(&lease).filter(|since| *since >= from) {
            longest = longest.max(at.since(since));
        }
    }
    longest
}

fn aborts(rig: &Rig) -> usize {
    (0..rig.workers.len()).map(|worker| rig[worker].sent(ABORT)).sum()
}

#[test]
fn a_lone_worker_has_all_shards_of_a_new_table_at_once() {
    let mut rig = fleet(40, 1);
    let took = until(&mut rig, Span::from_secs(1), |rig| held(rig) == [40]);
    assert!(took <= Span::from_secs(1), "{took}");
}

#[test]
fn workers_that_start_together_are_even_within_moments() {
    let mut rig = fleet(200, 5);
    until(&mut rig, Span::from_secs(5), |rig| even(rig, 0..5));
    assert_eq!(rig.all_told(stolen), 0);
}

#[test]
fn a_joining_worker_gets_its_share_and_nothing_is_repeated() {
    let mut rig = fleet(8, 1).after(10).with_records(0..8, 20).after(2);
    let joined = rig.now;
    rig.join();
    for _ in 0..40 {
        rig.put_all(0..8, 3);
        rig.run(Span::from_millis(250));
    }
    rig.secs(3);
    assert_eq!(held(&rig), [4, 4]);
    rig.assert_all_processed();
    assert_eq!((rig.duplicates(), aborts(&rig), rig.all_told(stolen)), (0, 0, 0));
    let standstill = longest_standstill(&rig, joined);
    assert!(standstill <= Span::from_millis(500), "{standstill}");
}

#[test]
fn five_workers_that_join_one_are_even_soon_with_bounded_moves() {
    let mut rig = fleet(200, 1).after(5).with_records(0..200, 5);
    let before = rig.all_told(TOOK);
    rig.join_all(5);
    until(&mut rig, Span::from_secs(20), |rig| even(rig, 0..6));
    let moves = rig.all_told(TOOK) - before;
    assert!(moves <= 3 * 200, "{moves}");
    rig.secs(60);
    let after = rig.all_told(TOOK) - before;
    assert_eq!(moves, after, "nothing moves where shares are even");
    rig.assert_all_processed();
    assert_eq!((rig.duplicates(), aborts(&rig)), (0, 0));
}

#[test]
fn a_stopping_workers_leases_are_taken_at_once() {
    let mut rig = fleet(12, 3);
    until(&mut rig, Span::from_secs(10), |rig| even(rig, 0..3));
    let stopped = rig.now;
    rig.call(0, Call::Shutdown);
    until(&mut rig, Span::from_secs(1), |rig| even(rig, 1..3));
    let standstill = longest_standstill(&rig, stopped);
    assert!(standstill <= Span::from_secs(1), "{standstill}");
}

#[test]
fn a_dead_worker_is_noticed_a_lease_after_its_last_write() {
    let mut rig = fleet(12, 3);
    until(&mut rig, Span::from_secs(10), |rig| even(rig, 0..3));
    rig.secs(7);
    rig[0].die();
    let failover = rig.config.lease_duration();
    let took = until(&mut rig, failover + Span::from_secs(3), |rig| even(rig, 1..3));
    assert!(took + rig.config.renew_interval() > failover, "{took}");
}

/// A fleet of two in which the second one has asked for leases, and then died, or was told to stop. When the first lease was handed over.
fn given_in_vain(stops: bool) -> (Rig, Mono) {
    let mut rig = fleet(4, 1).after(10);
    let asker = rig.join();
    while !rig.rows().values().any(|row| row.handing_over.is_some()) {
        rig.run(Span::from_millis(10));
    }
    match stops {
        true => rig.call(asker, Call::Shutdown),
        false => rig[asker].alive = false,
    }
    let given = |rig: &Rig| rig.rows().values().any(|row| row.hands_over == HandsOver::Later);
    until(&mut rig, Span::from_secs(5), given);
    let at = rig.now;
    (rig, at)
}

/// The one that asked has died: the lease goes to it all the same, and is taken back in a moment.
#[test]
fn a_lease_given_to_a_worker_that_died_is_taken_back() {
    for stops in [false, true] {
        let (mut rig, given) = given_in_vain(stops);
        until(&mut rig, Span::from_secs(2), |rig| held(rig)[0] == 4);
        assert!(rig.now.since(given) <= Span::from_millis(2_000), "{stops}");
        let lying = rig.all_told(|notice: &Notice| {
            matches!(notice, Notice::Took { why: TakeReason::LeftLying { .. }, .. })
        });
        assert!(lying > 0, "{stops}");
        assert_eq!(rig.duplicates(), 0);
    }
}

/// A fleet of one worker with hanging handlers, and a second worker requesting its share.
fn asked_of_a_slow_one() -> Rig {
    let mut rig = fleet(2, 1).after(10);
    rig[0].trap(hangs(DELIVER));
    rig.put_all(0..2, 3);
    rig.secs(2);
    rig.join_then(25);
    assert_eq!(held(&rig), [2, 0], "the handler has time to finish");
    assert_eq!(aborts(&rig), 0);
    rig
}

/// An unfinished handler holds its lease up for `hand_over_timeout`. Then its worker stops the handler and hands the
/// lease over, and no worker waits for a belief to end.
#[test]
fn a_late_hand_over_is_made_without_its_handler() {
    let mut rig = asked_of_a_slow_one();
    until(&mut rig, Span::from_secs(10), |rig| aborts(rig) == 1);
    let stopped = rig.now;
    rig[0].trap = None;
    let hung = std::mem::take(&mut rig[0].hung);
    let asked =
        rig[1].changes().find(|(_, change)| change.verb() == "claim").map(|(_, change)| change.key().clone());
    for command in hung {
        let outcome = match &command.effect {
            Effect::Consumer(op) if asked.as_ref() == Some(op.lease()) => Outcome::Unknown(Cause::Cancelled),
            _ => rig.perform(0, &command),
        };
        let op = command.op;
        rig.tell(0, Body::Done { op, outcome });
    }
    // It was asked half a minute ago: by now, the next owner looks once in a quick scan interval.
    let looks = Span::from_secs(2);
    until(&mut rig, looks, |rig| held(rig) == [1, 1]);
    assert!(rig[1].commands(OPEN).any(|(at, _)| at.since(stopped) <= looks));
    assert_eq!(rig.all_told(stolen), 0);
    rig.assert_all_processed_in(30);
}

/// A handler that does not stop either loses the lease a little later.
#[test]
fn a_late_hand_over_ends_in_a_steal() {
    let mut rig = asked_of_a_slow_one();
    until(&mut rig, Span::from_secs(16), |rig| held(rig)[1] == 1);
    assert_eq!((aborts(&rig), rig.all_told(stolen)), (1, 1));
    rig.free(0);
    rig.assert_all_processed_in(30);
}

/// As soon as one owner does not say that it hands leases over, leases are stolen as in KCL, and scans are as seldom as
/// in KCL.
#[test]
fn beside_another_program_leases_are_stolen_one_at_a_time() {
    let mut rig = fleet(9, 1).after(5);
    for row in rig.rows_mut().values_mut().take(8) {
        (row.owner, row.counter) = (Some("java".into()), row.counter + 1);
        row.hands_over = HandsOver::No;
    }
    rig.secs(5);
    let before = rig[0].sent(SCAN);
    for _ in 0..120 {
        for row in rig.rows_mut().values_mut() {
            row.counter += u64::from(row.owner == Some("java".into()));
        }
        rig.secs(1);
    }
    assert!(rig.all_told(stolen) >= 3, "{:?}", held(&rig));
    assert_eq!(rig.all_told(CLAIMED), 0);
    assert!(rig[0].sent(SCAN) - before <= 13, "{}", rig[0].sent(SCAN) - before);
}

/// Scans that fail make quick scans more seldom, for as many scans as the pause was doubled, however long the outage was.
#[test]
fn scans_are_quick_again_soon_after_an_outage() {
    let mut rig = fleet(4, 1).after(10);
    rig[0].trap(meets(SCAN, Trick::THROTTLED));
    rig.secs(600);
    rig[0].trap = None;
    rig.secs(60);
    let before = rig[0].sent(SCAN);
    rig.secs(10);
    let scans = rig[0].sent(SCAN) - before;
    assert!(scans >= 10, "{scans} scans in 10 s");
}

#[test]
fn a_claim_whose_answer_is_lost_is_made_all_the_same() {
    let mut rig = fleet(4, 1).after(10);
    rig.join_trapped(first(1, CLAIM, Trick::ANSWER_LOST));
    until(&mut rig, Span::from_secs(5), |rig| held(rig) == [2, 2]);
    assert_eq!((rig.duplicates(), rig.all_told(stolen)), (0, 0));
}

/// A worker never holds more leases than allowed, however many it is given.
#[test]
fn nobody_is_given_more_than_it_may_have() {
    let mut rig = fleet(6, 1).after(5);
    rig.configure(|config| config.with_max_leases(2));
    rig.join();
    until(&mut rig, Span::from_secs(5), |rig| held(rig) == [4, 2]);
    rig.call(0, Call::Shutdown);
    rig.secs(30);
    assert_eq!(held(&rig), [0, 2]);
}

/// A worker dies, and a new worker starts `after` seconds later. The time from the death until the other workers hold
/// all leases.
fn dies_and_comes_back(survivors: u32, after: Option<u64>, most: u32) -> Span {
    let mut rig = fleet(8, 0);
    rig.configure(|config| config.with_max_leases(most));
    for _ in 0..=survivors {
        rig.join();
    }
    rig.secs(30);
    assert!(even(&rig, 0..rig.workers.len()), "{:?}", held(&rig));
    let died = rig.now;
    rig[0].die();
    if let Some(after) = after {
        rig.secs(after);
        rig.join();
    }
    let left = |rig: &Rig| held(rig)[1..].iter().sum::<usize>() < 8;
    until(&mut rig, Span::from_secs(30), |rig| {
        let has_too_many = |count: &usize| most > 0 && *count > most as usize;
        assert!(!held(rig).iter().any(has_too_many), "{:?}", held(rig));
        !left(rig)
    });
    rig.now.since(died)
}

#[test]
fn a_dead_workers_leases_are_read_a_lease_later_whoever_starts() {
    for survivors in 1..4 {
        for after in [None, Some(0), Some(1), Some(4), Some(7), Some(9)] {
            let took = dies_and_comes_back(survivors, after, 0);
            assert!(took <= Span::from_secs(13), "{survivors} {after:?}: {took}");
        }
    }
}

#[test]
fn who_takes_what_a_dead_worker_had_keeps_to_its_limit() {
    // Eight leases, with a limit of five: the surviving worker is to have three of the dead worker's leases, and knows
    // of this 4 s later. The new worker gets some leases of the survivor before, and so the survivor has room for the
    // rest.
    let took = dies_and_comes_back(1, Some(4), 5);
    assert!(took <= Span::from_secs(16), "{took}");
}

/// How many leases moved from one live worker to another worker.
fn moves(rig: &Rig) -> usize {
    rig.all_told(|notice: &Notice| notice.to_string().contains("handed over as asked"))
}

#[test]
fn of_workers_starting_at_once_each_asks_for_its_share() {
    let mut rig = fleet(60, 3);
    until(&mut rig, Span::from_secs(10), |rig| even(rig, 0..3));
    rig.secs(10);
    let before = moves(&rig);
    rig.join_all(3);
    let took = until(&mut rig, Span::from_secs(10), |rig| even(rig, 0..6));
    let moved = moves(&rig) - before;
    assert!((30..=33).contains(&moved), "{moved} moves, where 30 are needed, in {took}");
}

#[test]
fn a_worker_that_crashes_again_and_again_takes_few_leases_down() {
    let mut rig = fleet(40, 3).after(20);
    let mut lost = Vec::new();
    for _ in 0..12 {
        let last = rig.workers.len() - 1;
        lost.push(held(&rig)[last]);
        rig[last].die();
        rig.join_then(5);
    }
    assert!(lost[0] >= 13, "{lost:?}");
    assert!(lost[1..].iter().all(|held| *held <= 2), "{lost:?}");
    // This worker stays up.
    let took = until(&mut rig, Span::from_secs(25), |rig| {
        let held = held(rig);
        let last = held.len() - 1;
        let live = [held[0], held[1], held[last]];
        live.iter().sum::<usize>() == 40 && live.iter().all(|held| *held >= 13)
    });
    assert!(took <= Span::from_secs(15), "{took}");
}

#[test]
fn a_dead_worker_is_asked_for_nothing() {
    let mut rig = fleet(8, 2).after(30);
    rig[0].die();
    let dead = rig[0].me();
    rig.secs(4);
    let joined = rig.join();
    rig.secs(20);
    let asked = rig[joined].changes().filter_map(|(_, change)| match change {
        Change::Claim { from, .. } => Some(from),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    assert!(!asked.is_empty() && !asked.contains(&&dead), "{asked:?}");
    assert!(even(&rig, 1..3), "{:?}", held(&rig));
}

/// The scan read the sign of an owner's life long before its last page: this page takes longer than half a lease.
#[test]
fn an_owner_is_asked_although_scans_take_long() {
    let mut rig = fleet(8, 2);
    rig.configure(|config| config.with_scan_page_limit(1));
    until(&mut rig, Span::from_secs(10), |rig| even(rig, 0..2));
    let before_last = shard_id(6).to_lease();
    let joined = rig.join_trapped(hangs(move |effect: &Effect| {
        matches!(effect, Effect::Table(TableOp::Scan { after, .. }) if after.as_ref() == Some(&before_last))
    }));
    let long = rig.config.lease_duration().per(2) + Span::from_secs(1);
    for _ in 0..20 {
        rig.run(long);
        rig.release(joined);
    }
    assert!(even(&rig, 0..3), "{:?}", held(&rig));
}
