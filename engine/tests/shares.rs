//! Scenes of the share: how many leases a worker takes, from which owner, and when it looks again.

use crate::rig::*;
use leasehold_engine::input::Call;
use leasehold_engine::notice::{Choice, Notice, TakeReason};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::time::{Mono, Span};

/// The owners with their numbers of leases; leases without a name are free.
type Owners<'a> = &'a [(&'a str, u32)];

/// A table whose leases belong to these workers; the workers renew leases in the rows only.
fn table_of(owners: Owners) -> Rig {
    let mut rig = Rig::new(owners.iter().map(|(_, leases)| leases).sum(), 0);
    let names = owners.iter().flat_map(|(name, leases)| std::iter::repeat_n(*name, *leases as usize));
    for (n, name) in (0..).zip(names) {
        let owner = Some(name).filter(|name| !name.is_empty()).map(Into::into);
        rig.insert(LeaseRow { owner, ..rig.new_row(n) });
    }
    rig
}

/// For `secs` seconds, each worker in `alive` renews its leases every second.
fn beside(rig: &mut Rig, alive: &[&str], secs: u64) {
    for _ in 0..secs {
        for row in rig.rows_mut().values_mut() {
            let owner = row.owner.as_ref().map(|owner| owner.as_str());
            if owner.is_some_and(|owner| alive.contains(&owner)) {
                row.counter += 1;
            }
        }
        rig.secs(1);
    }
}

fn choices(rig: &Rig) -> Vec<(Mono, &Choice)> {
    let notices = rig[0].notices.iter();
    notices
        .filter_map(|(at, notice)| match notice {
            Notice::Chose(choice) => Some((*at, &**choice)),
            _ => None,
        })
        .collect()
}

/// The victim of the first steal, and the number of stolen leases.
fn first_steal(owners: Owners, max_steals: u32) -> Option<(String, u32)> {
    let mut rig = table_of(owners);
    rig.configure(|config| config.with_max_steals(max_steals));
    let before = rig.rows().clone();
    rig.join();
    let alive: Vec<&str> = owners.iter().map(|(name, _)| *name).collect();
    beside(&mut rig, &alive, 25);
    let choices = choices(&rig);
    let (_, choice) = choices.iter().find(|(_, choice)| choice.victim.is_some())?;
    let victim = choice.victim.as_ref()?;
    for lease in &choice.chosen {
        assert_eq!(before[lease].owner.as_ref(), Some(victim));
    }
    Some((victim.to_string(), choice.taken))
}

#[test]
fn it_is_stolen_from_the_busiest_what_it_has_above_its_share() {
    let stolen = |owners: Owners, most| first_steal(owners, most);
    let from = |name: &str, leases| Some((name.to_string(), leases));
    assert_eq!(stolen(&[("a", 4)], 10), from("a", 2));
    assert_eq!(stolen(&[("a", 10)], 3), from("a", 3), "no more at a time");
    assert_eq!(stolen(&[("a", 2), ("b", 7)], 10), from("b", 3), "all we lack");
    assert_eq!(stolen(&[("a", 3), ("b", 6), ("c", 3)], 10), from("b", 3));
    assert_eq!(stolen(&[("a", 1), ("b", 1)], 10), None, "more workers than leases");
    assert_eq!(stolen(&[("a", 1)], 10), None);
}

/// Shares are rounded up: where all have just theirs, a newcomer would lack several for ever.
#[test]
fn a_worker_that_lacks_several_takes_one_of_a_share() {
    let of_three = [("a", 3), ("b", 3), ("c", 3)];
    assert_eq!(first_steal(&of_three, 10).unwrap().1, 1);
    // A worker that lacks one lease takes none.
    assert_eq!(first_steal(&[("a", 1), ("b", 1), ("c", 1)], 10), None);
}

/// What is told of a choice is short, however large the fleet is, and we are in it, however little we have.
#[test]
fn a_choice_of_a_large_fleet_tells_of_ourselves_too() {
    let names: Vec<String> = ('a'..='r').map(String::from).collect();
    for others in [14, 15, 16, 18] {
        let owners: Vec<(&str, u32)> = names[..others].iter().map(|name| (name.as_str(), 2)).collect();
        let mut rig = table_of(&owners);
        rig.join();
        let alive: Vec<&str> = owners.iter().map(|(name, _)| *name).collect();
        beside(&mut rig, &alive, 25);
        let (_, choice) = choices(&rig)[0];
        assert_eq!(choice.workers as usize, others + 1);
        let mut counts: Vec<(&str, u32)> = owners[..others.min(Choice::MOST - 1)].to_vec();
        let me = rig[0].me();
        counts.push((me.as_str(), 0));
        let told: Vec<(&str, u32)> = choice.counts.iter().map(|(worker, n)| (worker.as_str(), *n)).collect();
        assert_eq!(told, counts);
    }
}

#[test]
fn an_ended_lease_is_not_stolen() {
    let mut rig = table_of(&[("a", 4)]);
    for parent in 0..2 {
        let (one, other) = rig.split(parent);
        for child in [one, other] {
            rig.insert(rig.new_row(child));
            rig.name([child], "a");
        }
        rig.row_mut(parent).checkpoint = Checkpoint::ShardEnd;
    }
    rig.configure(|config| config.with_max_steals(10));
    rig.join();
    beside(&mut rig, &["a"], 25);
    let choices = choices(&rig);
    let (_, choice) = choices[0];
    assert_eq!((choice.taken, choice.candidates, choice.unfinished), (3, 6, 6));
    assert_eq!((choice.ours, choice.target, choice.workers), (0, 3, 2));
}

#[test]
fn all_of_a_dead_worker_is_taken_at_once() {
    let mut rig = table_of(&[("dead", 6)]);
    rig.join_then(40);
    // Before the worker knows of the death, it steals one lease from the dead owner.
    let choices = choices(&rig);
    let taken = choices.iter().map(|(_, choice)| (choice.taken, choice.victim.is_some()));
    assert_eq!(taken.collect::<Vec<_>>(), [(1, true), (5, false)]);
}

/// How many were taken after each scan that let some be taken, and how long after the first.
fn takes(rig: &Rig) -> Vec<(u32, Span)> {
    let choices = choices(rig);
    let first = choices.first().map(|(at, _)| *at);
    let taken = choices.iter().map(|(at, choice)| (choice.taken, at.since(first.unwrap())));
    taken.collect()
}

/// Leaves each free lease in the state after a release by its owner.
fn given_up(rig: &mut Rig) {
    for row in rig.rows_mut().values_mut().filter(|row| row.owner.is_none()) {
        row.counter = 7;
    }
}

/// Half at first: workers that start together meet before one worker has all leases. The rest an eighth of a scan
/// interval later.
#[test]
fn a_lone_worker_takes_half_of_the_free_leases_then_the_rest() {
    let meeting = Span(2_506_250);
    assert_eq!(config().meeting(), meeting);
    for before in [false, true] {
        let mut rig = table_of(&[("", 40)]);
        if before {
            // The whole fleet may be starting again.
            given_up(&mut rig);
        }
        rig.join_then(60);
        assert_eq!(takes(&rig), [(20, Span::ZERO), (20, meeting)]);
        // Afterwards, scans are as far apart as ever.
        let last = choices(&rig)[1].0;
        let scans =
            rig[0].sent.iter().filter_map(|(at, effect)| (*at > last && SCAN.is(effect)).then_some(*at));
        let scans: Vec<Mono> = scans.collect();
        let pauses = scans.windows(2).map(|two| two[1].since(two[0]));
        assert!(scans[0].since(last) > rig.config.scan_interval().per(2));
        assert!(pauses.min().unwrap() > rig.config.scan_interval().per(2));
    }
}

/// A never owned lease stands beside the leases of a dead worker: it holds none of these leases back.
#[test]
fn a_dead_workers_leases_are_taken_whatever_stands_beside() {
    let mut rig = table_of(&[("dead", 40)]);
    rig.join_then(15);
    let new = rig.rows_mut().values_mut().find(|row| row.owner == Some("dead".into()));
    new.unwrap().owner = None;
    rig.secs(40);
    let taken: Vec<u32> = takes(&rig).iter().map(|(taken, _)| *taken).collect();
    // One is stolen before the worker is known to be dead.
    assert_eq!(taken, [1, 39]);
}

#[test]
fn a_workers_released_leases_are_taken_at_once() {
    let mut rig = Rig::new(20, 2).after(200);
    let counts = |rig: &Rig| [0, 1].map(|worker| rig.owned(worker, 20));
    assert_eq!(counts(&rig), [10, 10]);
    rig.call(1, Call::Shutdown);
    let at = rig.now;
    rig.secs(22);
    assert_eq!(counts(&rig), [20, 0]);
    let later = choices(&rig).into_iter().filter(|(then, _)| *then > at);
    assert_eq!(later.map(|(_, choice)| choice.taken).collect::<Vec<_>>(), [10]);

    // A worker that has just started takes the leases at once, too, if further workers live: then the fleet is not
    // starting.
    let mut rig = table_of(&[("a", 10), ("", 10)]);
    given_up(&mut rig);
    rig.join();
    assert_eq!(takes(&rig), [(10, Span::ZERO)]);
}

/// Only the first moments of the worker count: leases found later are taken at once, even if no other worker is seen to
/// live then.
#[test]
fn nothing_is_left_to_others_by_a_worker_of_long_standing() {
    let mut rig = table_of(&[("a", 8)]);
    rig.join();
    beside(&mut rig, &["a"], 60);
    let before = takes(&rig).len();
    for row in rig.rows_mut().values_mut() {
        if row.owner == Some("a".into()) {
            (row.owner, row.counter) = (None, row.counter + 1);
        }
    }
    rig.secs(22);
    let after: Vec<u32> = takes(&rig)[before..].iter().map(|(taken, _)| *taken).collect();
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(after[0] > 1, "{after:?}");
    assert!((0..8).all(|n| rig.owner(n) == Some(0)));
}

#[test]
fn workers_that_start_together_share_what_nobody_had() {
    for gap in [0, 1, 2] {
        let mut rig = table_of(&[("", 40)]);
        for _ in 0..3 {
            rig.join_then(gap);
        }
        rig.secs(300);
        let mut counts = [0, 1, 2].map(|worker| rig.owned(worker, 40));
        counts.sort_unstable();
        assert_eq!(counts, [13, 13, 14]);
        let stolen = |notice: &Notice| matches!(notice, Notice::Took { why: TakeReason::Stolen { .. }, .. });
        let steals = rig.all_told(stolen);
        // The first worker took 20, and has 13 or 14 in the end.
        assert!(steals <= 7, "{steals} steals, {gap} s apart");
    }
}

#[test]
fn no_more_are_had_than_one_may_have() {
    for owners in [&[("", 8)], &[("dead", 8)]] {
        let mut rig = table_of(owners);
        rig.configure(|config| config.with_max_leases(3));
        rig.join_then(120);
        assert_eq!(rig.owned(0, 8), 3, "{owners:?}");
    }
}
