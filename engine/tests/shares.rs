//! Scenes of the share: how many leases a worker takes, from whom, and when it looks again.

use crate::rig::Rig;
use leasehold_engine::notice::{Choice, Notice};
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::time::Mono;

/// Who has how many; those without a name are nobody's.
type Owners<'a> = &'a [(&'a str, u32)];

/// A table whose leases are these workers', that renew them in the rows only.
fn table_of(owners: Owners) -> Rig {
    let mut rig = Rig::new(owners.iter().map(|(_, leases)| leases).sum(), 0);
    let names = owners
        .iter()
        .flat_map(|(name, leases)| std::iter::repeat_n(*name, *leases as usize));
    let rows = names.enumerate().map(|(n, name)| {
        let shard = &rig.shards[&Rig::id(n as u32)];
        let mut row = LeaseRow::new(shard.id.to_lease(), Checkpoint::TrimHorizon);
        row.owner = Some(name).filter(|name| !name.is_empty()).map(Into::into);
        row.range = Some(shard.range);
        (row.key.clone(), row)
    });
    rig.table = Some(rows.collect());
    rig
}

/// For so long, and each of these renews what it has every second.
fn beside(rig: &mut Rig, alive: &[&str], secs: u64) {
    for _ in 0..secs {
        for row in rig.table.as_mut().unwrap().values_mut() {
            let owner = row.owner.as_ref().map(|owner| owner.as_str());
            if owner.is_some_and(|owner| alive.contains(&owner)) {
                row.counter += 1;
            }
        }
        rig.secs(1);
    }
}

fn choices(rig: &Rig) -> Vec<(Mono, &Choice)> {
    let notices = rig.workers[0].notices.iter();
    notices
        .filter_map(|(at, notice)| match notice {
            Notice::Chose(choice) => Some((*at, &**choice)),
            _ => None,
        })
        .collect()
}

/// Whom it steals from first, and how many leases.
fn first_steal(owners: Owners, max_steals: u32) -> Option<(String, u32)> {
    let mut rig = table_of(owners);
    rig.config.max_steals = max_steals;
    let before = rig.table.clone().unwrap();
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
    assert_eq!(
        stolen(&[("a", 1), ("b", 1)], 10),
        None,
        "more workers than leases"
    );
    assert_eq!(stolen(&[("a", 1)], 10), None);
}

/// Shares are rounded up: where all have just theirs, a newcomer would lack several for ever.
#[test]
fn whoever_lacks_several_takes_one_of_a_share() {
    let of_three = [("a", 3), ("b", 3), ("c", 3)];
    assert_eq!(first_steal(&of_three, 10).unwrap().1, 1);
    // Whoever lacks one leaves it at that.
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
        let me = rig.workers[0].engine.worker().unwrap();
        counts.push((me.as_str(), 0));
        let told: Vec<(&str, u32)> = choice
            .counts
            .iter()
            .map(|(worker, n)| (worker.as_str(), *n))
            .collect();
        assert_eq!(told, counts);
    }
}

#[test]
fn what_has_ended_is_not_stolen() {
    let mut rig = table_of(&[("a", 4)]);
    let table = rig.table.clone().unwrap();
    for (parent, mut row) in (0..2).zip(table.into_values()) {
        let (one, other) = rig.split(parent);
        let rows = rig.table.as_mut().unwrap();
        for child in [one, other] {
            let shard = &rig.shards[&Rig::id(child)];
            let child = LeaseRow {
                key: shard.id.to_lease(),
                parents: shard.parent.clone().into_iter().collect(),
                range: Some(shard.range),
                ..row.clone()
            };
            rows.insert(child.key.clone(), child);
        }
        row.checkpoint = Checkpoint::ShardEnd;
        rows.insert(row.key.clone(), row);
    }
    rig.config.max_steals = 10;
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
    rig.join();
    rig.secs(40);
    // Before it is known to be dead, one is stolen from it.
    let choices = choices(&rig);
    let taken = choices
        .iter()
        .map(|(_, choice)| (choice.taken, choice.victim.is_some()));
    assert_eq!(taken.collect::<Vec<_>>(), [(1, true), (5, false)]);
}

/// Half of what nobody ever had, and soon again: workers that start together meet before one has everything.
#[test]
fn what_nobody_had_is_taken_by_halves() {
    let mut rig = table_of(&[("", 8)]);
    rig.join();
    rig.secs(60);
    let found = choices(&rig);
    let taken: Vec<u32> = found.iter().map(|(_, choice)| choice.taken).collect();
    assert_eq!(taken, [4, 2, 1, 1]);
    let mut pauses = found.windows(2).map(|two| two[1].0.since(two[0].0));
    assert!(pauses.all(|pause| pause < rig.config.scan_interval.per(2)));
    // After that, scans are as far from each other as ever.
    let scans = rig.workers[0].sent.iter().filter_map(|(at, effect)| {
        let last = found.last()?.0;
        (*at > last && matches!(effect, Effect::Table(TableOp::Scan { .. }))).then_some(*at)
    });
    let scans: Vec<Mono> = scans.collect();
    let pauses = scans.windows(2).map(|two| two[1].since(two[0]));
    assert!(scans[0].since(found[3].0) > rig.config.scan_interval.per(2));
    assert!(pauses.min().unwrap() > rig.config.scan_interval.per(2));
}

#[test]
fn no_more_are_had_than_one_may_have() {
    for owners in [&[("", 8)], &[("dead", 8)]] {
        let mut rig = table_of(owners);
        rig.config.max_leases = 3;
        rig.join();
        rig.secs(120);
        assert_eq!(
            (0..8).filter(|n| rig.owner(*n) == Some(0)).count(),
            3,
            "{owners:?}"
        );
    }
}
