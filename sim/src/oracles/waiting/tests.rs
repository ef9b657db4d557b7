use super::super::fact::Mark;
use super::super::fact::Verb;
use super::super::testing::{
    self, answered, asked, changed, config, count, count_under, delivered, held, processed, row,
};
use super::*;

fn open() -> Vec<(u64, Fact)> {
    let (life, shard, token) = (0, 0, 1);
    let holds = held(life, shard, 1, true, 100_000_000);
    vec![
        (0, Fact::OpenBegun { life, shard, token }),
        (0, holds),
        (0, Fact::OpenDone { life, shard, token }),
        (0, asked(0, Ask::GetRecords, 0, 1, 0, 0)),
    ]
}

fn fetched(op: u64, first: u64, last: u64) -> [Fact; 2] {
    let fetched = Fact::Fetched { life: 0, shard: 0, first, last, bytes: 1 };
    [fetched, answered(0, Ask::GetRecords, 0, op, How::Applied)]
}

fn ended() -> Fact {
    testing::ended(0, 0)
}

fn born() -> Fact {
    Fact::ShardBorn { shard: 9, parents: [None, None] }
}

fn judged(more: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    let facts = open().into_iter().chain(more);
    count(Property::ShardsIndependent, facts)
}

/// The shard is read again all the time, so that only hand-overs are judged.
fn and_reading(more: Vec<(u64, Fact)>) -> usize {
    let [records, answer] = fetched(1, 1, 5);
    let reading = (1, asked(0, Ask::GetRecords, 0, 2, 0, 0));
    judged([(1, records), (1, answer), reading].into_iter().chain(more))
}

#[test]
fn fetched_records_are_handed_over_at_once() {
    let soon = vec![(200_000, delivered(0, 0, 1, 5)), (9_000_000, born())];
    assert_eq!(and_reading(soon), 0, "a slow handler");
    assert_eq!(and_reading(vec![(400_000, born())]), 1, "nobody is at it");
    let [records, answer] = fetched(2, 6, 9);
    let one_by_one = vec![
        (2, delivered(0, 0, 1, 5)),
        (3, records),
        (3, answer),
        (4, asked(0, Ask::GetRecords, 0, 3, 0, 0)),
        (2_000_000, processed(0, 0, 5)),
        (2_000_000, ended()),
    ];
    assert_eq!(and_reading(one_by_one.clone()), 0);
    let forgotten = one_by_one.into_iter().chain([(2_400_000, born())]);
    assert_eq!(and_reading(forgotten.collect()), 1, "its handler is free again");
}

#[test]
fn paused_records_wait_until_the_shard_goes_on() {
    let (life, shard) = (0, 0);
    let pause = (2, Fact::PauseAsked { life, shard });
    let resume = (5_000_000, Fact::ResumeAsked { life, shard });
    assert_eq!(and_reading(vec![pause.clone(), (4_000_000, born())]), 0);
    let soon = (5_200_000, delivered(0, 0, 1, 5));
    let over = (9_000_000, born());
    assert_eq!(and_reading(vec![pause.clone(), resume.clone(), soon, over]), 0);
    assert_eq!(and_reading(vec![pause, resume, (5_400_000, born())]), 1, "too late");
}

#[test]
fn a_failure_allows_for_a_pause_in_proportion_and_no_more() {
    // A batch that comes back this many times, ten seconds apart.
    let failed = |times: u64, then_after| {
        let mut facts = Vec::new();
        for at in (1..=times).map(|n| n * 10_000_000) {
            facts.extend([(2, delivered(0, 0, 1, 5)), (at, ended()), (at, delivered(0, 0, 1, 5))]);
        }
        facts.pop();
        facts.sort_by_key(|(at, _)| *at);
        and_reading(facts.into_iter().chain([(times * 10_000_000 + then_after, born())]).collect())
    };
    assert_eq!((failed(1, 700_000), failed(1, 1_000_000)), (0, 1));
    assert_eq!((failed(6, 5_000_000), failed(6, 7_000_000)), (0, 1));
}

#[test]
fn a_call_that_waited_for_the_runtime_for_too_long_has_failed() {
    let (life, shard, token) = (0, 0, 1);
    let blocked = |more: Vec<(u64, Fact)>, until: u64| {
        let mut facts = vec![(2, Fact::Blocked { life })];
        facts.extend(more);
        facts.extend([(9_000_000, Fact::Unblocked { life }), (9_000_000 + until, born())]);
        and_reading(facts)
    };
    let timed_out = (5_000_000, Fact::TimedOut { life, shard, token });
    assert_eq!(blocked(vec![], 200_000), 0);
    assert_eq!(blocked(vec![], 700_000), 1, "nothing failed");
    assert_eq!(blocked(vec![timed_out.clone()], 700_000), 0);
    assert_eq!(blocked(vec![timed_out], 1_000_000), 1);
}

#[test]
fn a_failed_read_is_tried_again_after_a_pause_in_proportion() {
    let failed = |times: u64, then_after| {
        let mut facts = Vec::new();
        for n in 1..=times {
            let at = n * 10_000_000;
            facts.push((at, answered(0, Ask::GetRecords, 0, n, How::Unknown)));
            facts.push((at, asked(0, Ask::GetRecords, 0, n + 1, 0, 0)));
        }
        facts.pop();
        judged(facts.into_iter().chain([(times * 10_000_000 + then_after, born())]))
    };
    assert_eq!((failed(1, 1_200_000), failed(1, 1_400_000)), (0, 1));
    assert_eq!((failed(6, 5_000_000), failed(6, 6_000_000)), (0, 1));
}

#[test]
fn records_of_a_released_shard_need_not_be_handed_over() {
    let later = (9_000_000, born());
    let stopping = (2, Fact::ShutdownAsked { life: 0 });
    assert_eq!(and_reading(vec![stopping, later.clone()]), 0);
    let lets_go = (2, Fact::LetsGo { life: 0 });
    assert_eq!(and_reading(vec![lets_go, later.clone()]), 0);
    let paused = (2, Fact::Paused { life: 0 });
    assert_eq!(and_reading(vec![paused, later.clone()]), 0);
    let taken = Some(row(Some(1), 2, Mark::TrimHorizon));
    let taken = (2, changed(0, Some(1), Verb::Take, None, taken));
    assert_eq!(and_reading(vec![taken, later]), 0);
}

#[test]
fn records_that_a_checkpoint_covers_are_handed_to_nobody() {
    let at = |through| {
        let row = Some(row(Some(0), 2, Mark::At(through)));
        let ahead = (2, changed(0, None, Verb::Checkpoint, None, row));
        and_reading(vec![ahead, (400_000, born())])
    };
    assert_eq!((at(5), at(4)), (0, 1));
}

#[test]
fn a_shard_is_read_on_while_little_of_it_waits() {
    let [records, answer] = fetched(1, 1, 5);
    let read = |more: Vec<(u64, Fact)>| {
        let begun = [(1, records.clone()), (1, answer.clone()), (1, delivered(0, 0, 1, 5))];
        judged(begun.into_iter().chain(more))
    };
    assert_eq!(read(vec![(1_200_000, born())]), 0);
    assert_eq!(read(vec![(1_400_000, born())]), 1);
    let claim = (1, Fact::EndClaimed { life: 0, shard: 0 });
    let claimed = |at| {
        let answers = [claim.clone(), (1, answer.clone()), (at, born())];
        judged(answers)
    };
    assert_eq!((claimed(40_000_000), claimed(42_000_000)), (0, 1));
    let under_way = (1_000_000, asked(0, Ask::GetRecords, 0, 2, 0, 0));
    assert_eq!(read(vec![under_way, (60_000_000, born())]), 0);
    let closed = Fact::ShardClosed { shard: 0, records: 5, children: vec![] };
    assert_eq!(read(vec![(2, closed), (60_000_000, born())]), 0);
}

#[test]
fn a_shard_waits_for_a_consumer_the_service_does_not_tell_of() {
    let (life, shard, token) = (0, 0, 1);
    let waits = |mode, how: Option<How>| {
        let opened = [
            Fact::OpenBegun { life, shard, token },
            held(life, shard, 1, true, 1_000_000_000),
            Fact::OpenDone { life, shard, token },
        ];
        let opened = opened.map(|fact| (0, fact));
        let asks = |at: u64| Some((at * 1_000_000, answered(life, Ask::Consumer(0), shard, at, how?)));
        let facts = opened.into_iter().chain((30..300).step_by(30).filter_map(asks));
        let reader = config().reader().clone().with_mode(mode);
        let terms = Terms::plain(config().with_reader(reader));
        count_under(&terms, Property::ShardsIndependent, facts.chain([(300_000_000, born())]))
    };
    assert_eq!(waits(ReadMode::FanOut, Some(How::Unknown)), 0);
    assert_ne!(waits(ReadMode::FanOut, Some(How::Refused)), 0, "a refusal is an answer");
    assert_ne!(waits(ReadMode::FanOut, None), 0, "nobody asks");
    assert_ne!(waits(ReadMode::Polling, Some(How::Unknown)), 0, "polling needs no consumer");
}

#[test]
fn with_little_memory_a_shard_may_wait_for_reads_alone() {
    let [records, answer] = fetched(1, 1, 5);
    let found = |tight, more: Vec<(u64, Fact)>| {
        let terms = Terms { tight, ..Terms::plain(config()) };
        let facts = open().into_iter().chain([(1, records.clone()), (1, answer.clone())]);
        count_under(&terms, Property::ShardsIndependent, facts.chain(more))
    };
    let handled = (1, delivered(0, 0, 1, 5));
    assert_eq!(found(false, vec![handled.clone(), (9_000_000, born())]), 1);
    assert_eq!(found(true, vec![handled, (9_000_000, born())]), 0);
    assert!(found(true, vec![(9_000_000, born())]) >= 1, "it is not handed over");
}
