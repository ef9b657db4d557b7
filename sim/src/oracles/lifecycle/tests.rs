use super::super::testing::{
    self, answered, asked, at_once, changed, config, count, count_under, delivered, edited, judge_beside,
    row, taken,
};
use super::*;
use leasehold_engine::format::Format;

fn opened() -> Vec<Fact> {
    vec![testing::opened(0, 0), Fact::OpenDone { life: 0, shard: 0, token: 1 }, delivered(0, 0, 1, 1)]
}

fn ended() -> Fact {
    testing::ended(0, 0)
}

fn closed() -> Fact {
    closed_for(EndReason::Shutdown)
}

fn closed_for(reason: EndReason) -> Fact {
    testing::closed(0, 0, reason)
}

fn judged(facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    count(Property::StopsCleanly, facts)
}

fn after_open(more: impl IntoIterator<Item = Fact>) -> usize {
    judged(opened().into_iter().chain(more).map(|fact| (1, fact)))
}

#[test]
fn a_shard_is_ended_when_that_is_durable() {
    let closed = || closed_for(EndReason::ShardEnded);
    let before = row(Some(0), 1, Mark::At(1));
    let end = || {
        let after = row(None, 2, Mark::End);
        changed(0, Some(0), Verb::End, Some(before), Some(after))
    };
    let removed = || changed(0, None, Verb::Delete, Some(before), None);
    let tried = || asked(0, Ask::Write(Verb::End), 0, 1, 1, 0);
    assert_eq!(after_open([ended(), end(), closed()]), 0);
    assert_eq!(after_open([ended(), tried(), removed(), closed()]), 0);
    assert_eq!(after_open([ended(), closed()]), 1, "not written");
    assert_eq!(after_open([ended(), tried(), closed()]), 1, "not applied");
    assert_eq!(after_open([ended(), removed(), closed()]), 1, "never tried");
}

#[test]
fn a_token_that_a_worker_has_forgotten_may_come_again() {
    let open = |token| Fact::OpenBegun { life: 0, shard: 0, token };
    let left = || Fact::StreamLeft { life: 0, stream: 0, lost: false };
    let set_to = |counter| {
        let before = row(None, 9, Mark::At(1));
        changed(0, None, Verb::Release, Some(before), Some(row(None, counter, Mark::At(1))))
    };
    let again = |facts: Vec<Fact>| after_open([ended(), closed()].into_iter().chain(facts).chain([open(1)]));
    assert_eq!(again(vec![left(), set_to(0)]), 0);
    assert_eq!(again(vec![set_to(0)]), 1, "it remembers the token");
    let policies = Format::VmwareGoKcl.codec().policies();
    let tells_time = Terms::plain(config().with_policies(policies));
    let begins_again = |facts: Vec<Fact>| {
        let before = opened().into_iter().chain([ended(), closed()]);
        let history = before.chain(facts).chain([open(1)]).map(|fact| (1, fact));
        count_under(&tells_time, Property::StopsCleanly, history)
    };
    assert_eq!(begins_again(vec![set_to(0)]), 0, "a time goes on from the row");
    assert_eq!(begins_again(vec![]), 1, "the counter is there");
    assert_eq!(again(vec![left(), set_to(10)]), 1, "the row says more");
}

#[test]
fn one_end_for_every_start() {
    let stopped = Fact::Stopped { life: 0, fatal: false };
    assert_eq!(after_open([ended(), closed(), stopped.clone()]), 0);
    assert_eq!(after_open([closed()]), 1, "closed while a handler runs");
    assert_eq!(after_open([ended(), closed(), closed()]), 1, "closed twice");
    assert_eq!(after_open([ended(), closed(), delivered(0, 0, 2, 2)]), 1, "delivered after the end");
    assert_eq!(after_open([ended(), stopped]), 1, "stopped without an end");
    assert_eq!(after_open([delivered(0, 0, 2, 2)]), 1, "two handlers at a time");
    assert_eq!(after_open([Fact::OpenBegun { life: 0, shard: 0, token: 2 }]), 1, "opened twice");
}

#[test]
fn a_lease_handed_over_by_another_need_not_be_released() {
    let taken = |by, counter| {
        let after = row(Some(by), counter, Mark::TrimHorizon);
        changed(0, Some(by), Verb::Take, None, Some(after))
    };
    let after = row(Some(0), 3, Mark::TrimHorizon);
    let handed = changed(0, Some(1), Verb::HandOver, None, Some(after));
    let facts = [
        taken(0, 1),
        answered(0, Ask::Write(Verb::Take), 0, 0, How::Applied),
        taken(1, 2),
        handed,
        Fact::ShutdownAsked { life: 0 },
        Fact::Stopped { life: 0, fatal: false },
    ];
    assert_eq!(judged(at_once(facts)), 0);
}

#[test]
fn nothing_is_delivered_before_the_application_is_ready() {
    assert_eq!(judged(at_once([testing::opened(0, 0), delivered(0, 0, 1, 1)])), 1);
}

#[test]
fn a_shutdown_that_does_not_end_is_found_once() {
    let facts = |until| {
        let wait = (0..until)
            .map(|second| (second * 1_000_000, Fact::ShardBorn { shard: 9, parents: [None, None] }));
        std::iter::once((0, Fact::ShutdownAsked { life: 0 })).chain(wait).collect::<Vec<_>>()
    };
    assert_eq!(judged(facts(40)), 0);
    assert_eq!(judged(facts(100)), 1);
}

#[test]
fn a_lease_kept_after_a_good_shutdown_is_found() {
    let history = |how| {
        let owned = taken(0);
        let release = answered(0, Ask::Write(Verb::Release), 0, 1, how);
        let knows = answered(0, Ask::Write(Verb::Take), 0, 0, How::Applied);
        let facts =
            [owned, knows, Fact::ShutdownAsked { life: 0 }, release, Fact::Stopped { life: 0, fatal: false }];
        at_once(facts)
    };
    // The answer claims a release not executed: the row decides.
    assert_eq!(judged(history(How::Applied)), 1);
    assert_eq!(judged(history(How::Unknown)), 0);
}

#[test]
fn a_row_that_a_person_edited_since_need_not_be_released() {
    let row = row(Some(0), 1, Mark::TrimHorizon);
    let mut facts = vec![
        changed(0, Some(0), Verb::Take, None, Some(row)),
        answered(0, Ask::Write(Verb::Take), 0, 0, How::Applied),
    ];
    let stops = [Fact::ShutdownAsked { life: 0 }, Fact::Stopped { life: 0, fatal: false }];
    let judged_now = |facts: &[Fact]| judged(facts.iter().chain(&stops).map(|fact| (1, fact.clone())));
    assert_eq!(judged_now(&facts), 1);
    facts.push(edited(0, row, Some(row)));
    assert_eq!(judged_now(&facts), 0);
}

#[test]
fn a_lease_taken_after_an_end_by_hand_need_not_be_released() {
    let (open, end) = (row(None, 1, Mark::At(5)), row(None, 1, Mark::End));
    let by_hand = edited(0, open, Some(end));
    let judged = |first: Option<Fact>, before| {
        let takes = changed(0, Some(0), Verb::Take, Some(before), Some(row(Some(0), 2, before.checkpoint)));
        let knows = answered(0, Ask::Write(Verb::Take), 0, 0, How::Applied);
        let stops = [Fact::ShutdownAsked { life: 0 }, Fact::Stopped { life: 0, fatal: false }];
        judged(first.into_iter().chain([takes, knows]).chain(stops).map(|fact| (1, fact)))
    };
    assert_eq!(judged(Some(by_hand), end), 0);
    assert_eq!(judged(None, end), 1, "no person wrote the end");
    assert_eq!(judged(Some(edited(0, open, Some(open))), open), 1, "the taker knows the row");
}

/// The other program checkpoints by whole items, with the deadline from its memory.
/// A claim of the other program leaves the guard of the owner in place.
#[test]
fn a_row_written_from_another_programs_memory_may_stay() {
    let at = |counter| Some(row(Some(0), counter, Mark::At(5)));
    let taken = || changed(0, Some(0), Verb::Take, None, at(7));
    let knows = || answered(0, Ask::Write(Verb::Take), 0, 0, How::Applied);
    let written = |by, verb| changed(0, Some(by), verb, at(7), at(6));
    let judged = |facts: [Fact; 3]| {
        let stops = [Fact::ShutdownAsked { life: 0 }, Fact::Stopped { life: 0, fatal: false }];
        let found = judge_beside(1, facts.into_iter().chain(stops).map(|fact| (1, fact)));
        found.contains(&Property::StopsCleanly)
    };
    let then = |by, verb| judged([taken(), knows(), written(by, verb)]);
    assert!(!then(1, Verb::Checkpoint));
    assert!(then(1, Verb::Claim), "the owner is asked, and is to answer");
    assert!(then(0, Verb::Checkpoint), "its own write");
    assert!(then(2, Verb::Checkpoint), "no worker of ours writes from memory");
    let late = [taken(), written(1, Verb::Checkpoint), knows()];
    assert!(!judged(late), "the answer is to a write from before");
    let again = [written(1, Verb::Checkpoint), taken(), knows()];
    assert!(judged(again), "it has taken the lease since");
}
