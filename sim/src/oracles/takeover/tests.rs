//! Free leases and their requesters, by facts alone.

use super::*;
use crate::oracles::fact::{How, Mark};
use crate::oracles::testing::{answered, asked, changed, config, count_under, edited, held, row, shown};
use leasehold_engine::config::Config;

const TAKE: Ask = Ask::Write(Verb::Take);
const HOUR: u64 = 3_600_000_000;

fn free(counter: u64) -> Row {
    row(None, counter, Mark::TrimHorizon)
}

fn of(owner: u32) -> Row {
    row(Some(owner), 7, Mark::TrimHorizon)
}

/// Life 0 tries to take a lease, and then these rows are in the table.
fn table(rows: &[Row]) -> Vec<(u64, Fact)> {
    let mut facts = vec![
        (0, Fact::Booted { life: 0, worker: 0 }),
        (1, asked(0, TAKE, 9, 9, 0, 1)),
        (1, answered(0, TAKE, 9, 9, How::Refused)),
    ];
    facts.extend(rows.iter().enumerate().map(|(shard, row)| {
        let by = Some(5);
        (2, changed(shard as u32, by, Verb::Release, None, Some(*row)))
    }));
    facts
}

/// A whole scan with the given rows, and the given number of takes at its end.
fn scan(at: u64, rows: &[Row], takes: u32) -> Vec<(u64, Fact)> {
    let shown = |(shard, row): (usize, &Row)| shown(0, shard as u32, *row);
    let end = at + 1;
    let mut facts = vec![(at, asked(0, Ask::ScanPage, 0, at, 0, at))];
    facts.extend(rows.iter().enumerate().map(shown).map(|fact| (end, fact)));
    facts.push((end, Fact::ScanEnded { life: 0 }));
    let take = |shard| asked(0, TAKE, shard, end + u64::from(shard), 7, end);
    facts.extend((0..takes).map(|shard| (end, take(shard))));
    facts.push((end, Fact::Said { life: 0 }));
    facts
}

fn judged_under(config: Config, facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    count_under(&Terms::plain(config), Property::FairShares, facts)
}

fn judged(facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    judged_under(config(), facts)
}

#[test]
fn all_that_is_free_is_asked_for_when_the_scan_ends() {
    let rows = [free(3), free(3), free(0), free(3)];
    let after = |takes| table(&rows).into_iter().chain(scan(HOUR, &rows, takes));
    assert_eq!(judged(after(4)), 0);
    assert_eq!(judged(after(3)), 1);
}

#[test]
fn a_row_from_before_a_hand_over_hides_the_next_owner() {
    // A late page shows the lease as still held; the worker knows of its own hand-over, and to a living worker.
    let rows = [free(3), free(3), free(3), of(0)];
    let after = |takes| table(&rows).into_iter().chain(scan(HOUR, &rows, takes));
    assert_eq!(judged(after(2)), 0);
    assert_eq!(judged(after(1)), 1);
}

#[test]
fn leases_left_to_others_at_first_are_asked_for_later() {
    let rows = [free(0), free(0)];
    let meeting = config().meeting().0;
    let after = |at| table(&rows).into_iter().chain(scan(at, &rows, 0));
    assert_eq!(judged(after(meeting / 2)), 0);
    assert_eq!(judged(after(2 * meeting)), 1);
}

#[test]
fn a_lease_that_stood_still_for_a_lease_is_free() {
    let rows = [of(1), of(1)];
    let lease = config().lease_duration().0;
    let twice = |later, takes| {
        let first = scan(HOUR, &rows, 0);
        table(&rows).into_iter().chain(first).chain(scan(HOUR + later, &rows, takes))
    };
    assert_eq!(judged(twice(lease, 0)), 0, "by a clock that is slow");
    assert_eq!(judged(twice(2 * lease, 0)), 1);
    assert_eq!(judged(twice(2 * lease, 2)), 0);
}

#[test]
fn a_dead_workers_leases_are_asked_for_beyond_the_share() {
    // Three leases of a dead worker, and a lease renewed by its owner.
    let rows = |renewals| [of(1), of(1), of(1), row(Some(2), 7 + renewals, Mark::TrimHorizon)];
    let lease = config().lease_duration().0;
    let after_hand_over = |config: Config, takes: [u32; 2], begun: Option<Verb>| {
        let mut facts = table(&rows(0));
        let other = Some(row(None, 1, Mark::End));
        facts.extend(begun.map(|verb| (3, changed(9, None, verb, other, other))));
        facts.extend(scan(HOUR, &rows(0), 0));
        for (n, takes) in (1..).zip(takes) {
            let at = HOUR + (n + 1) * lease;
            let (before, now) = (Some(rows(n - 1)[3]), Some(rows(n)[3]));
            facts.push((at - 1, changed(3, Some(2), Verb::Renew, before, now)));
            facts.extend(scan(at, &rows(n), takes));
        }
        judged_under(config, facts)
    };
    let after = |config, takes| after_hand_over(config, takes, None);
    let asking = || crate::swarm::named(true);
    // A share is two leases of four. The other worker takes as many, unless the other worker has just started.
    assert_eq!(after(asking(), [2, 1]), 0);
    assert_eq!(after(asking(), [2, 0]), 1);
    assert_eq!(after(asking(), [1, 2]), 1);
    assert_eq!(after(asking(), [1, 1]), 2, "of its share, and of the rest");
    assert_eq!(after(asking().with_max_leases(2), [2, 0]), 0);
    let by_hand = |verb| after_hand_over(asking(), [2, 0], Some(verb));
    assert_eq!(by_hand(Verb::BeginHandOver), 0, "an owner may look like another program");
    assert_eq!(by_hand(Verb::Take), 1);
    assert_eq!(after(config(), [2, 0]), 0, "where leases are stolen, a share is all");
}

#[test]
fn a_row_that_a_whole_scan_did_not_show_is_observed_anew() {
    let rows = [of(1), of(1)];
    let lease = config().lease_duration().0;
    let after = |takes| {
        table(&rows)
            .into_iter()
            .chain(scan(HOUR, &rows, 0))
            .chain(scan(HOUR + lease / 2, &rows[..1], 0))
            .chain(scan(HOUR + 2 * lease, &rows, takes))
    };
    assert_eq!(judged(after(1)), 0);
    assert_eq!(judged(after(0)), 1);
}

#[test]
fn no_more_is_asked_for_than_there_is_room_for() {
    let rows = [free(3), free(3), of(1), of(1)];
    let after = |takes| table(&rows).into_iter().chain(scan(HOUR, &rows, takes));
    assert_eq!(judged(after(2)), 0);
    assert_eq!(judged(after(1)), 1);
    let limited = |max_leases| config().with_max_leases(max_leases);
    assert_eq!(judged_under(limited(1), after(1)), 0);
    assert_eq!(judged_under(limited(2), after(1)), 1);
    let rows = [free(3), of(1), of(2), of(3)];
    assert_eq!(judged(table(&rows).into_iter().chain(scan(HOUR, &rows, 0))), 1);
    let held = |shard| held(0, shard, 1, true, HOUR);
    let full = table(&rows).into_iter().chain([(3, held(9))]);
    assert_eq!(judged(full.chain(scan(HOUR, &rows, 0))), 0, "it has its share");
}

#[test]
fn facts_unknown_or_useless_to_the_worker_ask_nothing_of_it() {
    let rows = [free(3)];
    let with = |more: Vec<(u64, Fact)>| {
        let scanned = scan(HOUR, &rows, 0);
        judged(table(&rows).into_iter().chain(more).chain(scanned))
    };
    assert_eq!(with(vec![]), 1);
    assert_eq!(with(vec![(3, Fact::ShutdownAsked { life: 0 })]), 0);
    let edit = edited(0, rows[0], Some(rows[0]));
    assert_eq!(with(vec![(3, edit)]), 0, "a person changed it");
    let taken = changed(0, Some(1), Verb::Take, Some(rows[0]), Some(of(1)));
    let lately = scan(HOUR, &rows, 0).into_iter().map(|(at, fact)| match fact {
        Fact::ScanEnded { .. } => vec![(at, taken.clone()), (at, fact)],
        fact => vec![(at, fact)],
    });
    let lately = lately.flatten();
    assert_eq!(judged(table(&rows).into_iter().chain(lately)), 0, "it is gone by now");
}

#[test]
fn a_promise_seen_with_a_lost_lease_counts_for_the_worker() {
    let promised = Row { next: Some(Owner::Life(0)), ..of(1) };
    let rows = [free(3), of(1), promised];
    let told = |row| Fact::Shown { life: 0, shard: 2, row, scanned: false };
    // The scan had passed the row by.
    let after = |row| {
        let told = [(3, told(row))];
        judged_under(
            crate::swarm::named(true),
            table(&rows).into_iter().chain(told).chain(scan(HOUR, &rows[..2], 0)),
        )
    };
    assert_eq!(after(promised), 0);
    assert_eq!(after(of(1)), 1);
}

#[test]
fn a_row_older_than_a_workers_own_write_is_believed_later() {
    let given = row(Some(1), 9, Mark::TrimHorizon);
    let rows = [free(3), free(3), free(3), row(Some(1), 0, Mark::TrimHorizon)];
    let lease = config().lease_duration().0;
    let after = |own: Vec<(u64, Fact)>| {
        let scans = scan(HOUR, &rows, 2).into_iter().chain(scan(HOUR + 2 * lease, &rows, 0));
        judged(table(&rows).into_iter().chain(own).chain(scans))
    };
    let handed = changed(3, Some(0), Verb::HandOver, Some(of(0)), Some(given));
    assert_eq!(after(vec![(3, handed)]), 0, "its owner may live");
    assert_eq!(after(vec![]), 1, "it stood still for a lease");
}
