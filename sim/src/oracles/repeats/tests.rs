//! Repetitions by facts alone.

use super::*;
use crate::oracles::testing::{
    self, beside, changed, config, delivered, edited, processed, row, show_alone, shown,
};

/// Life 0 is ours, life 1 is of another program.
fn judged(facts: impl IntoIterator<Item = Fact>) -> Vec<Property> {
    let (mut repeats, mut verdict) = (Repeats::new(&Terms::plain(config())), Verdict::default());
    let facts = facts.into_iter().map(|fact| (1, fact));
    show_alone(&mut beside(1), facts, |at, fact, history| repeats.observe(at, fact, history, &mut verdict));
    verdict.violations().iter().map(|found| found.property).collect()
}

fn opened(life: u32) -> Fact {
    testing::opened(life, 0)
}

fn looked() -> Fact {
    Fact::Looked { life: 1, shard: 0 }
}

/// A write of life `by`, from one row to the next.
fn written(by: u32, verb: Verb, before: (Option<u32>, Mark), after: (Option<u32>, Mark)) -> Fact {
    let [before, after] = [before, after].map(|(owner, mark)| Some(row(owner, 1, mark)));
    changed(0, Some(by), verb, before, after)
}

/// Our worker takes the shard and processes ten records; five are in the row.
fn begun() -> Vec<Fact> {
    let start = Mark::TrimHorizon;
    vec![
        written(0, Verb::Take, (None, start), (Some(0), start)),
        opened(0),
        delivered(0, 0, 1, 10),
        processed(0, 0, 10),
        written(0, Verb::Checkpoint, (Some(0), start), (Some(0), Mark::At(5))),
    ]
}

fn theirs_from(before: Option<u32>, mark: Mark, first: u64) -> Vec<Fact> {
    let take = written(1, Verb::Take, (before, mark), (Some(1), mark));
    vec![looked(), take, opened(1), delivered(1, 0, first, 12)]
}

fn after(more: impl IntoIterator<Item = Fact>) -> Vec<Property> {
    judged(begun().into_iter().chain(more))
}

#[test]
fn a_checkpoint_of_a_program_that_lost_the_lease_covers_nothing() {
    let (five, ten, twenty) = (Mark::At(5), Mark::At(10), Mark::At(20));
    let robbed = written(1, Verb::Checkpoint, (Some(0), five), (Some(0), twenty));
    let own = written(0, Verb::Checkpoint, (Some(0), twenty), (Some(0), ten));
    let release = written(0, Verb::Release, (Some(0), ten), (None, ten));
    let then = |first| {
        let renewed = written(0, Verb::Renew, (Some(0), twenty), (Some(0), twenty));
        let facts = [robbed.clone(), renewed, own.clone(), release.clone()];
        after(facts.into_iter().chain(theirs_from(None, ten, first)))
    };
    assert_eq!(then(11), []);
    assert_eq!(then(10), [Property::EveryRecordDelivered], "the owner had processed that");
}

#[test]
fn a_shard_that_ours_released_in_good_order_is_not_read_again() {
    let release = |at| written(0, Verb::Release, (Some(0), Mark::At(5)), (None, Mark::At(at)));
    let then = |at, first| after([release(at)].into_iter().chain(theirs_from(None, Mark::At(at), first)));
    assert_eq!(then(10, 11), []);
    assert_eq!(then(10, 10), [Property::EveryRecordDelivered]);
    assert_eq!(then(5, 6), [Property::EveryRecordDelivered], "let go of unsaved");
    let stopping = [Fact::ShutdownAsked { life: 0 }, release(5)];
    let hurried = after(stopping.into_iter().chain(theirs_from(None, Mark::At(5), 6)));
    assert_eq!(hurried, [], "there was no time for more");
}

#[test]
fn a_call_that_ends_after_its_worker_let_go_is_in_no_row() {
    let release = |at| written(0, Verb::Release, (Some(0), Mark::At(5)), (None, Mark::At(at)));
    let then = |lets_go: bool, at, first| {
        let lets_go = lets_go.then_some(Fact::LetsGo { life: 0 });
        let facts = lets_go.into_iter().chain([processed(0, 0, 12), release(at)]);
        after(facts.chain(theirs_from(None, Mark::At(at), first)))
    };
    assert_eq!(then(true, 10, 11), []);
    assert_eq!(then(false, 10, 11), [Property::EveryRecordDelivered]);
    assert_eq!(then(true, 5, 6), [Property::EveryRecordDelivered], "ten were processed before");
}

#[test]
fn records_of_a_steal_or_a_crash_come_again() {
    assert_eq!(after(theirs_from(Some(0), Mark::At(5), 6)), []);
    assert_eq!(
        after(theirs_from(Some(0), Mark::At(5), 5)),
        [Property::EveryRecordDelivered],
        "the checkpoint covers it"
    );
    let crash = [Fact::Died { life: 0 }];
    assert_eq!(after(crash.into_iter().chain(theirs_from(Some(0), Mark::At(5), 6))), []);
}

#[test]
fn an_end_by_a_person_counts_for_those_who_were_shown_it() {
    let release = written(0, Verb::Release, (Some(0), Mark::At(5)), (None, Mark::At(10)));
    let [before, after] = [Mark::At(10), Mark::End].map(|mark| Some(row(None, 1, mark)));
    let edit = changed(0, None, Verb::Checkpoint, before, after);
    let shown = |mark| shown(2, 0, row(None, 1, mark));
    let ours_from = |shown: Option<Fact>, first| {
        let take = written(2, Verb::Take, (None, Mark::End), (Some(2), Mark::End));
        let then = [take, opened(2), delivered(2, 0, first, 12)];
        let before = [release.clone(), edit.clone()].into_iter().chain(shown);
        judged(begun().into_iter().chain(before).chain(then))
    };
    assert_eq!(ours_from(None, 11), []);
    assert_eq!(ours_from(Some(shown(Mark::At(10))), 11), []);
    let again = [Property::EveryRecordDelivered];
    assert_eq!(ours_from(None, 10), again, "the row that it had read covered this");
    assert_eq!(ours_from(Some(shown(Mark::End)), 11), again);
}

fn end() -> Fact {
    written(0, Verb::End, (Some(0), Mark::At(5)), (None, Mark::End))
}

#[test]
fn a_shard_that_ours_ended_is_not_read_again() {
    assert_eq!(
        after([end()].into_iter().chain(theirs_from(None, Mark::End, 6))),
        [Property::EveryRecordDelivered]
    );
    let child = Fact::ShardBorn { shard: 1, parents: [Some(0), None] };
    let begun = [child, end(), delivered(0, 1, 1, 1)];
    assert_eq!(after(begun.into_iter().chain(theirs_from(None, Mark::End, 11))), [Property::ParentsFirst]);
    let only_taken = theirs_from(None, Mark::End, 6).into_iter().take(3);
    assert_eq!(after([end()].into_iter().chain(only_taken)), []);
}

#[test]
fn who_read_the_row_before_cannot_know() {
    let late = [looked(), end()];
    let back = written(1, Verb::Take, (None, Mark::End), (Some(1), Mark::At(5)));
    let more = [back, opened(1), delivered(1, 0, 6, 12)];
    assert_eq!(after(late.into_iter().chain(more.clone())), []);
    // After a write back, the row has the older checkpoint.
    let again = [written(1, Verb::Release, (Some(1), Mark::At(5)), (None, Mark::At(5)))];
    let ours = [
        written(0, Verb::Take, (None, Mark::At(5)), (Some(0), Mark::At(5))),
        opened(0),
        delivered(0, 0, 6, 12),
    ];
    let history = [looked(), end()].into_iter().chain(more).chain(again).chain(ours);
    assert_eq!(after(history), []);
}

#[test]
fn ours_reads_nothing_again_that_theirs_released() {
    let start = Mark::TrimHorizon;
    let theirs = [
        looked(),
        written(1, Verb::Create, (None, start), (Some(1), start)),
        opened(1),
        delivered(1, 0, 1, 10),
        processed(1, 0, 10),
    ];
    let ours = |owner, mark, first| {
        let take = written(0, Verb::Take, (owner, mark), (Some(0), mark));
        [take, opened(0), delivered(0, 0, first, 12)]
    };
    let release = written(1, Verb::Release, (Some(1), start), (None, Mark::At(10)));
    let let_go = |first| {
        judged(theirs.clone().into_iter().chain([release.clone()]).chain(ours(None, Mark::At(10), first)))
    };
    assert_eq!(let_go(11), []);
    assert_eq!(let_go(10), [Property::EveryRecordDelivered]);
    let robbed = judged(theirs.into_iter().chain(ours(Some(1), start, 1)));
    assert_eq!(robbed, []);
}

#[test]
fn a_leader_of_theirs_that_assigns_its_own_lease_robs_itself() {
    let then = |verb| {
        let five = Mark::At(5);
        let taken = theirs_from(None, Mark::TrimHorizon, 1);
        let done = [processed(1, 0, 12), written(1, Verb::Checkpoint, (Some(1), five), (Some(1), five))];
        let given = written(1, verb, (Some(1), five), (Some(0), five));
        let again = [given, Fact::Looked { life: 0, shard: 0 }, opened(0), delivered(0, 0, 6, 12)];
        judged(taken.into_iter().chain(done).chain(again))
    };
    assert_eq!(then(Verb::Take), []);
    assert_eq!(then(Verb::HandOver), [Property::EveryRecordDelivered]);
}

#[test]
fn after_a_person_removed_a_row_nothing_is_asked() {
    let removed = edited(0, row(Some(0), 1, Mark::At(5)), None);
    assert_eq!(after([removed].into_iter().chain(theirs_from(None, Mark::TrimHorizon, 1))), []);
}

#[test]
fn an_owner_that_does_not_know_of_an_end_by_hand_takes_it_back() {
    let at = |record| Mark::At(record);
    let ended = edited(0, row(None, 1, at(5)), Some(row(None, 1, Mark::End)));
    let shown = shown(0, 0, row(None, 1, Mark::End));
    let take = |life, mark| written(life, Verb::Take, (None, mark), (Some(life), mark));
    let unaware = [ended.clone(), take(0, Mark::End), opened(0), delivered(0, 0, 6, 8)];
    let back = [
        written(0, Verb::Checkpoint, (Some(0), Mark::End), (Some(0), at(8))),
        written(0, Verb::Release, (Some(0), at(8)), (None, at(8))),
        take(2, at(8)),
        opened(2),
    ];
    let next = |first| {
        let next = [delivered(2, 0, first, 12)];
        judged(unaware.clone().into_iter().chain(back.clone()).chain(next))
    };
    assert_eq!(next(9), []);
    assert_eq!(next(8), [Property::EveryRecordDelivered]);
    let aware = [ended, shown, take(0, Mark::End), opened(0), delivered(0, 0, 6, 8)];
    assert_eq!(judged(aware), [Property::EveryRecordDelivered]);
}
