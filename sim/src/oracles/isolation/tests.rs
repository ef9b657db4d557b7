use super::super::testing::{
    answered, asked, asked_at_large, changed, closed, count, held, opened, processed, row,
};
use super::*;

const RENEW: Ask = Ask::Write(Verb::Renew);
const CHECKPOINT: Ask = Ask::Write(Verb::Checkpoint);
const SECOND: u64 = 1_000_000;

fn holds(shard: u32) -> Fact {
    held(0, shard, 1, false, u64::MAX)
}

fn judged(facts: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    let mut facts: Vec<_> = facts.into_iter().collect();
    facts.sort_by_key(|(at, _)| *at);
    count(Property::RequestsOnTime, facts)
}

/// Twenty seconds of a held lease, renewed every third second if `renewed`.
fn history(renewed: bool) -> Vec<(u64, Fact)> {
    let mut facts = Vec::new();
    for second in 0..20u64 {
        let at = second * SECOND;
        if renewed && second % 3 == 0 {
            facts.push((at, asked(0, RENEW, 7, second, 1, at)));
            facts.push((at, answered(0, RENEW, 7, second, How::Applied)));
        }
        facts.push((at, holds(7)));
    }
    facts
}

#[test]
fn a_lease_renewed_in_time_is_fine_and_a_forgotten_one_is_found() {
    assert_eq!(judged(history(true)), 0);
    assert!(judged(history(false)) > 0);
}

#[test]
fn a_lease_whose_own_write_hangs_is_excused() {
    let mut facts = vec![(0, asked(0, RENEW, 7, 1, 1, 0))];
    facts.extend(history(false));
    assert_eq!(judged(facts), 0);
}

/// Failing renewals in a row, with the pause doubled after each failure, and one more renewal after this long.
fn failing(times: u32, then_after: u64) -> usize {
    let config = super::super::testing::config();
    let mut facts = vec![(0, holds(7))];
    let mut at = 0;
    for n in 0..times {
        facts.push((at, asked(0, RENEW, 7, u64::from(n), 1, at)));
        facts.push((at, answered(0, RENEW, 7, u64::from(n), How::Unknown)));
        at += config.retry_min().times(1 << n).min(config.retry_max()).0;
    }
    facts.push((at + then_after, asked(0, RENEW, 7, 99, 1, 0)));
    judged(facts)
}

/// Failed renewals of this number in a row, then a write of the hash keys. The next renewal comes a while after the
/// last failure.
fn filled_in_after(failures: u32, again_after: u64) -> usize {
    let set_range = Ask::Write(Verb::SetRange);
    let mut facts = vec![(0, holds(7))];
    let mut at = 0;
    for n in 0..failures {
        at += SECOND;
        facts.push((at, asked(0, RENEW, 7, u64::from(n), 1, at)));
        facts.push((at, answered(0, RENEW, 7, u64::from(n), How::NotSent)));
    }
    facts.push((at + 1, asked(0, set_range, 7, 98, 1, at)));
    facts.push((at + 2, answered(0, set_range, 7, 98, How::Applied)));
    facts.push((at + again_after, asked(0, RENEW, 7, 99, 1, 0)));
    judged(facts)
}

#[test]
fn a_write_of_hash_keys_ends_no_failures_and_is_no_renewal() {
    let config = super::super::testing::config();
    let pause = config.retry_min().times(1 << 7).min(config.retry_max()).0;
    let renewal = config.renew_interval().0;
    assert!(pause > renewal + SLACK_US, "the pause of many failures is the longer one");
    assert_eq!(filled_in_after(8, pause), 0);
    assert_eq!(filled_in_after(8, pause + SECOND), 1);
    assert_eq!(filled_in_after(1, renewal), 0);
    assert_eq!(filled_in_after(1, renewal + SECOND), 1);
    let hangs =
        [(0, holds(7)), (1, asked(0, Ask::Write(Verb::SetRange), 7, 98, 1, 1)), (renewal + SECOND, holds(7))];
    assert_eq!(judged(hangs), 1, "it is under way, and a renewal is due");
}

#[test]
fn the_pause_after_failures_is_in_proportion() {
    let renewal = super::super::testing::config().renew_interval().0;
    assert_eq!(failing(1, 0), 0);
    assert_eq!(failing(4, 0), 0);
    assert_eq!(failing(1, renewal - SECOND), 0, "a renewal is due by then");
    assert_eq!(failing(1, renewal + SECOND), 1);
    let long = judged([
        (0, holds(7)),
        (1, asked(0, RENEW, 7, 1, 1, 1)),
        (2, answered(0, RENEW, 7, 1, How::Unknown)),
        (3 + renewal * 2, asked(0, RENEW, 7, 2, 1, 1)),
    ]);
    assert_eq!(long, 1, "as long as after many failures");
}

/// A held and renewed lease, with a record processed in the first second.
fn with_progress(more: impl IntoIterator<Item = (u64, Fact)>) -> usize {
    let first = [(0, opened(0, 7)), (SECOND, processed(0, 7, 5))];
    judged(history(true).into_iter().chain(first).chain(more))
}

fn checkpointed(at: u64, record: u64) -> Vec<(u64, Fact)> {
    let row = |checkpoint| Some(row(Some(0), 1, checkpoint));
    let change = changed(7, Some(0), Verb::Checkpoint, row(Mark::TrimHorizon), row(Mark::At(record)));
    vec![
        (at, asked(0, CHECKPOINT, 7, 77, 1, at)),
        (at, change),
        (at, answered(0, CHECKPOINT, 7, 77, How::Applied)),
    ]
}

#[test]
fn processed_records_are_checkpointed_in_time() {
    assert_eq!(with_progress(checkpointed(4 * SECOND, 5)), 0);
    assert!(with_progress([]) > 0, "never");
    assert!(with_progress(checkpointed(4 * SECOND, 4)) > 0, "not all of it");
    assert!(with_progress(checkpointed(9 * SECOND, 5)) > 0, "late");
    let closed = closed(0, 7, leasehold_engine::output::EndReason::LeaseLost);
    assert_eq!(with_progress([(2 * SECOND, closed)]), 0, "no more");
}

#[test]
fn a_checkpoint_that_is_asked_for_is_written_at_once() {
    let call = (SECOND + 1, Fact::CheckpointAsked { life: 0, shard: 7, token: 1 });
    let with = |at| with_progress(checkpointed(at, 5).into_iter().chain([call.clone()]));
    assert_eq!(with(SECOND + 2), 0);
    assert!(with(4 * SECOND) > 0);
}

#[test]
fn a_released_shard_is_saved_at_once_if_a_handler_can_run() {
    let life = 0;
    let stops = (2 * SECOND, Fact::ShutdownAsked { life });
    let saved = |more: Vec<(u64, Fact)>, at| {
        with_progress(checkpointed(at, 5).into_iter().chain([stops.clone()]).chain(more))
    };
    assert_eq!(saved(vec![], 2 * SECOND + 1), 0);
    assert!(saved(vec![], 4 * SECOND) > 0);
    let blocked = (SECOND + 1, Fact::Blocked { life });
    let runs = (3 * SECOND, Fact::Unblocked { life });
    assert_eq!(saved(vec![blocked.clone()], 4 * SECOND), 0);
    assert_eq!(saved(vec![blocked.clone(), runs.clone()], 3 * SECOND + 1), 0);
    assert!(saved(vec![blocked, runs], 4 * SECOND) > 0, "it runs again");
}

#[test]
fn a_look_that_failed_is_repeated_and_another_is_not_due() {
    let looked = |how, again_at: u64| {
        judged([
            (1, asked(0, Ask::Setup, 0, 7, 0, 0)),
            (2, answered(0, Ask::Setup, 0, 7, how)),
            (again_at, asked(0, Ask::Setup, 0, 8, 0, 0)),
        ])
    };
    assert_eq!(looked(How::NotSent, 1_200_000), 0);
    assert_eq!(looked(How::NotSent, 1_300_000), 1);
    assert_eq!(looked(How::Applied, 60_000_000), 0);
    let lists = |before: u64| {
        judged([
            (before, asked(0, Ask::ListShards, 0, 6, 0, 0)),
            (1, asked(0, Ask::Setup, 0, 7, 0, 0)),
            (2, answered(0, Ask::Setup, 0, 7, How::NotSent)),
            (5_000_000, asked(0, Ask::Setup, 0, 8, 0, 0)),
        ])
    };
    assert_eq!(lists(0), 0, "after a listing it rests");
    let refused = (2, answered(0, Ask::Setup, 0, 7, How::Refused));
    let other = (60_000_000, asked(0, Ask::Setup, 0, 8, 0, 0));
    assert_eq!(judged([refused, other]), 0, "the application refused something");
}

#[test]
fn the_table_is_looked_at_again_and_again() {
    let interval = super::super::testing::config().scan_interval().0;
    let scan = |n: u64, how| {
        let at = n * interval;
        let ask = asked_at_large(0, Ask::ScanPage, n);
        let answer = Fact::Answered { life: 0, ask: Ask::ScanPage, about: None, op: n, how };
        [(at, ask), (at, answer)]
    };
    let scans = |of: &[u64]| judged(of.iter().flat_map(|&n| scan(n, How::Applied)));
    assert_eq!(scans(&[0, 1, 2, 3]), 0);
    assert_eq!(scans(&[0, 1, 3]), 1);
    let stopping = (1, Fact::ShutdownAsked { life: 0 });
    assert_eq!(judged(scan(0, How::Applied).into_iter().chain([stopping, (9 * interval, holds(7))])), 0);
}

/// A request about a stream fails after the stream was taken away. The request is repeated when the worker reads the
/// stream again.
#[test]
fn a_stream_that_is_read_no_more_is_not_looked_at_again() {
    let (life, stream, lost) = (0, 1, false);
    let look = Ask::DescribeStream(stream);
    let looked = |at: u64, op| (at * SECOND, asked(0, look, 0, op, 1, at));
    let failed = |at: u64, op| (at * SECOND, answered(0, look, 0, op, How::Unknown));
    let left = (2 * SECOND, Fact::StreamLeft { life, stream, lost });
    let back = |at: u64| (at * SECOND, Fact::StreamBack { life, stream });
    assert_eq!(judged([looked(1, 1), left.clone(), failed(3, 1), looked(300, 9)]), 0);
    assert_eq!(judged([looked(1, 1), failed(3, 1), looked(300, 9)]), 1, "it is read");
    let again = [looked(1, 1), left, back(3), failed(4, 1), looked(300, 9)];
    assert_eq!(judged(again), 1, "it is read again");
}
