//! Shares by facts alone.

use super::*;
use crate::oracles::fact::Mark;
use crate::oracles::testing::{answered, asked, changed, config, count_under, held, judge_under, row};
use Ask::Write;

const TAKE: Ask = Write(Verb::Take);
const CLAIM: Ask = Write(Verb::Claim);

fn terms() -> Terms {
    Terms::plain(config().with_max_steals(100))
}

fn shown(shard: u32, row: Row) -> Fact {
    Fact::Shown { life: 0, shard, row, scanned: true }
}

/// One shard and lease for each of these owners, shown to life 0 with renewals for so long that no doubt is left.
fn table(owners: &[u32]) -> Vec<(u64, Fact)> {
    let step = terms().config.renew_interval().0;
    let mut facts = Vec::new();
    for turn in 1..=40 {
        for (shard, owner) in owners.iter().enumerate() {
            let owned = |counter| row(Some(*owner), counter, Mark::TrimHorizon);
            let (shard, at) = (shard as u32, turn * step);
            let before = (turn > 1).then(|| owned(turn - 1));
            facts.push((at, changed(shard, Some(*owner), Verb::Renew, before, Some(owned(turn)))));
            let row = owned(turn);
            facts.push((at, shown(shard, row)));
        }
    }
    facts
}

fn judged(facts: Vec<(u64, Fact)>, more: impl IntoIterator<Item = Fact>) -> usize {
    let now = facts.last().map_or(0, |(at, _)| *at);
    let more = more.into_iter().map(|fact| (now, fact));
    count_under(&terms(), Property::FairShares, facts.into_iter().chain(more))
}

fn ask(ask: Ask, shard: u32) -> Fact {
    asked(0, ask, shard, u64::from(shard), 40, 0)
}

#[test]
fn as_many_as_the_share_and_no_more() {
    for verb in [TAKE, CLAIM] {
        let asks = |count: u32| (0..count).map(move |shard| ask(verb, shard));
        assert_eq!(judged(table(&[1, 1, 1, 1, 2, 2]), asks(2)), 0);
        assert_eq!(judged(table(&[1, 1, 1, 1, 2, 2]), asks(3)), 1);
    }
}

#[test]
fn who_was_shown_once_may_be_dead_and_makes_no_share_smaller() {
    let mut facts = table(&[1, 1, 1, 1, 2, 2]);
    let hour = 3_600_000_000;
    let row = row(Some(1), 99, Mark::TrimHorizon);
    facts.push((hour, shown(0, row)));
    assert_eq!(judged(facts, (1..6).map(|shard| ask(TAKE, shard))), 0);
}

/// A row with a smaller counter comes from a stale read, or was made anew. Its reader may count from the first view of
/// the row.
#[test]
fn an_owner_of_a_still_row_made_anew_may_be_dead() {
    let lease = terms().config.lease_duration().0;
    // Shown three times, this far apart; the first answer may be a stale read.
    let found = |apart: u64| {
        let mut facts = table(&[1, 1, 1, 1, 2, 2]);
        for _ in 0..3 {
            let at = facts.last().unwrap().0 + apart;
            let anew = (0..4).map(|shard| (at, shown(shard, row(Some(1), 3, Mark::TrimHorizon))));
            facts.extend(anew);
            let renewed = row(Some(2), at, Mark::TrimHorizon);
            facts.extend((4..6).map(|shard| (at, shown(shard, renewed))));
        }
        judged(facts, (0..3).map(|shard| ask(TAKE, shard)))
    };
    assert_eq!(found(lease / 8 * 3), 1);
    assert_eq!(found(lease / 2), 0);
}

#[test]
fn a_take_of_what_is_promised_to_another_does_not_count() {
    let facts = || table(&[1, 1, 1, 1, 2, 2]);
    let promised = Row { next: Some(Owner::Life(2)), ..row(Some(1), 41, Mark::TrimHorizon) };
    let two = [ask(TAKE, 0), ask(TAKE, 1)];
    let more = |row: Row| two.clone().into_iter().chain([shown(0, row), ask(TAKE, 2)]);
    assert_eq!(judged(facts(), more(row(Some(1), 41, Mark::TrimHorizon))), 1);
    assert_eq!(judged(facts(), more(promised)), 0);
}

#[test]
fn a_take_of_what_its_owner_has_taken_back_does_not_count() {
    let owned = row(Some(1), 41, Mark::TrimHorizon);
    let promised = Row { next: Some(Owner::Life(3)), ..owned };
    let facts = |first: Row| {
        let both = [shown(0, first), ask(TAKE, 0), shown(0, row(Some(1), 42, Mark::TrimHorizon))];
        both.into_iter().chain([ask(TAKE, 1), ask(TAKE, 2)])
    };
    assert_eq!(judged(table(&[1, 1, 1, 1, 2, 2]), facts(owned)), 1);
    assert_eq!(judged(table(&[1, 1, 1, 1, 2, 2]), facts(promised)), 0);
}

#[test]
fn an_owner_that_a_scan_does_not_show_may_be_unknown() {
    let ended = || Fact::ScanEnded { life: 0 };
    let asks = || (0..3).map(|shard| ask(TAKE, shard));
    let facts = || table(&[1, 1, 1, 1, 2, 2]);
    assert_eq!(judged(facts(), std::iter::once(ended()).chain(asks())), 1);
    // The second scan lacks all rows.
    assert_eq!(judged(facts(), [ended(), ended()].into_iter().chain(asks())), 0);
    let again = (0..6).map(|shard| shown(shard, row(Some(1 + shard / 4), 40, Mark::TrimHorizon)));
    let again = std::iter::once(ended()).chain(again).chain([ended()]);
    assert_eq!(judged(facts(), again.chain(asks())), 1);
}

#[test]
fn a_requested_lease_counts_while_the_row_says_so() {
    let owners = [1, 1, 1, 1, 2, 2];
    let claimed = |shard: u32| {
        let before = row(Some(1), 40, Mark::TrimHorizon);
        let after = Row { next: Some(Owner::Life(0)), ..before };
        [
            ask(CLAIM, shard),
            changed(shard, Some(0), Verb::Claim, Some(before), Some(after)),
            answered(0, CLAIM, shard, u64::from(shard), How::Applied),
        ]
    };
    let lost = |shard: u32| {
        let before = Row { next: Some(Owner::Life(0)), ..row(Some(1), 40, Mark::TrimHorizon) };
        let after = row(Some(1), 41, Mark::TrimHorizon);
        changed(shard, Some(1), Verb::Renew, Some(before), Some(after))
    };
    let both = || claimed(0).into_iter().chain(claimed(1));
    assert_eq!(judged(table(&owners), both()), 0);
    assert_eq!(judged(table(&owners), both().chain([ask(CLAIM, 2)])), 1);
    assert_eq!(judged(table(&owners), both().chain([ask(TAKE, 2)])), 0);
    assert_eq!(judged(table(&owners), both().chain([lost(1), ask(CLAIM, 2)])), 0);
}

#[test]
fn finished_leases_are_nobodys_share() {
    let mut facts = table(&[1, 1, 1, 1, 2, 2]);
    let at = facts.last().unwrap().0;
    for shard in 2..4 {
        let before = row(Some(1), 40, Mark::TrimHorizon);
        let after = row(Some(1), 41, Mark::End);
        facts.push((at, changed(shard, Some(1), Verb::End, Some(before), Some(after))));
        let row = after;
        facts.push((at, shown(shard, row)));
    }
    // Right after the end, a worker may still count the old row; later no worker may.
    assert_eq!(judged(facts.clone(), [0, 4].map(|shard| ask(TAKE, shard))), 0);
    let later = table(&[1, 1, 2, 2]);
    assert_eq!(judged(later.clone(), [0, 2].map(|shard| ask(TAKE, shard))), 0);
    assert_eq!(judged(later, [0, 1, 2].map(|shard| ask(TAKE, shard))), 1);
}

#[test]
fn a_held_lease_to_be_handed_over_does_not_count() {
    let holds = |shard| held(0, shard, 1, true, 1);
    let told = |next| Fact::Shown {
        life: 0,
        shard: 0,
        row: Row { next, ..row(Some(0), 40, Mark::TrimHorizon) },
        scanned: false,
    };
    // The row may have come back to this worker since: the worker learns of its return only by a refused write of its
    // own.
    let after = |told: Vec<Fact>| {
        let held = [(0, holds(0)), (0, holds(1))];
        let facts: Vec<(u64, Fact)> = held.into_iter().chain(table(&[0, 0, 1, 1])).collect();
        let now = facts.last().map_or(0, |(at, _)| *at);
        let more = told.into_iter().chain([ask(CLAIM, 2)]).map(|fact| (now, fact));
        let asking = Terms::plain(crate::swarm::named(true));
        count_under(&asking, Property::FairShares, facts.into_iter().chain(more))
    };
    assert_eq!(after(vec![]), 1);
    let other = Some(Owner::Life(1));
    assert_eq!(after(vec![told(other)]), 0);
    assert_eq!(after(vec![told(other), told(None)]), 1);
}

#[test]
fn a_stale_read_between_two_answers_hides_no_renewal() {
    let owned = |owner, counter| row(Some(owner), counter, Mark::TrimHorizon);
    let judged = |answers: &[Row]| {
        let truth = *answers.last().expect("an answer");
        let first = changed(0, Some(1), Verb::Renew, None, Some(truth));
        let answers = answers.iter().map(|row| shown(0, *row));
        let facts = [first].into_iter().chain(answers).chain([ask(CLAIM, 0)]);
        let terms = Terms::plain(crate::swarm::named(true));
        let found = judge_under(&terms, (1..).zip(facts));
        found.contains(&Property::FairShares)
    };
    assert!(judged(&[owned(1, 5)]), "no renewal was seen");
    assert!(!judged(&[owned(1, 5), owned(1, 6)]));
    assert!(!judged(&[owned(1, 5), owned(2, 3), owned(1, 6)]));
    assert!(judged(&[owned(2, 3), owned(1, 6)]), "the lease changed hands");
}
