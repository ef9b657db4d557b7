//! How many records a read asks for.

use super::bench::{Bench, STREAM_TIMEOUT, no_records, pos};
use super::*;
use crate::input::{Fetched, Outcome, Reply};

/// So many records of so many bytes each.
fn of(n: u64, count: u32, each: u64) -> Fetched {
    Fetched {
        count,
        bytes: u64::from(count) * each,
        first: Some(pos(n * 100_000)),
        last: Some(pos(n * 100_000 + u64::from(count) - 1)),
        ..no_records(1)
    }
}

/// A shard that has records without end.
struct Shard {
    bench: Bench,
    each: u64,
    n: u64,
}

impl Shard {
    fn of(each: u64) -> Self {
        Self { bench: Bench::ready(Start::TrimHorizon), each, n: 0 }
    }

    fn limit(&mut self) -> u32 {
        self.bench.wait();
        self.bench.limit()
    }

    /// A read ends after so long. How many records were asked for.
    fn ends(&mut self, took: Span, outcome: impl FnOnce(u64, u32, u64) -> Outcome) -> u32 {
        let limit = self.limit();
        let op = self.bench.send();
        self.bench.now += took;
        self.n += 1;
        let outcome = outcome(self.n, limit, self.each);
        self.bench.done(op, outcome);
        if self.bench.reader.front().is_some() {
            self.bench.process_front();
        }
        limit
    }

    /// After this time, a read is answered with as many records as requested.
    fn read(&mut self, took: Span) -> u32 {
        self.ends(took, |n, limit, each| Outcome::Applied(Reply::Records(of(n, limit, each))))
    }

    fn time_out(&mut self) -> u32 {
        self.ends(STREAM_TIMEOUT, |_, _, _| Outcome::Unknown(Cause::Timeout))
    }
}

const QUICK: Span = Span::from_millis(50);

#[test]
fn the_first_read_is_small_and_quick_full_answers_lengthen_it() {
    let mut shard = Shard::of(100);
    let asked: Vec<u32> = (0..7).map(|_| shard.read(QUICK)).collect();
    assert_eq!(asked, [10, 40, 160, 640, 2_560, 9_500, 9_500]);

    let mut shard = Shard::of(100);
    shard.bench.cfg.max_records = 25;
    assert_eq!([shard.read(QUICK), shard.read(QUICK)], [10, 25]);
    shard.bench.cfg.max_records = 3;
    assert_eq!(shard.limit(), 3);
}

#[test]
fn an_answer_that_is_shorter_than_asked_changes_nothing() {
    let mut shard = Shard::of(100);
    shard.ends(QUICK, |n, _, each| Outcome::Applied(Reply::Records(of(n, 3, each))));
    shard.ends(QUICK, |_, _, _| Outcome::Applied(Reply::Records(no_records(0))));
    assert_eq!(shard.limit(), 10);
}

#[test]
fn a_slow_answer_is_not_asked_for_longer_unless_it_is_short() {
    let mut shard = Shard::of(20_000);
    assert_eq!(shard.read(Span::from_millis(1_500)), 10);
    assert_eq!(shard.read(Span::from_millis(2_500)), 20, "1.5 s are not quick");
    assert_eq!(shard.read(Span::from_millis(2_500)), 20, "2.5 s are long");
    let mut shard = Shard::of(100);
    assert_eq!(shard.read(Span::from_secs(5)), 10);
    assert_eq!(shard.limit(), 40, "a service that is slow for all answers is none of their length");
}

#[test]
fn a_read_that_timed_out_asks_for_half_down_to_one() {
    let mut shard = Shard::of(100);
    let asked: Vec<u32> = (0..6).map(|_| shard.time_out()).collect();
    assert_eq!(asked, [10, 5, 2, 1, 1, 1]);
    assert_eq!(shard.read(QUICK), 1);
    assert_eq!(shard.limit(), 4, "all reads failed: not for their length");
}

#[test]
fn a_failed_read_differs_from_a_refused_one() {
    for (outcome, limit) in [
        (Outcome::Unknown(Cause::Timeout), 5),
        (Outcome::Unknown(Cause::Network), 5),
        (Outcome::Unknown(Cause::Garbled), 5),
        (Outcome::Unknown(Cause::Server), 10),
        (Outcome::NotSent(Cause::Throttled), 10),
        (Outcome::NotSent(Cause::Timeout), 10),
    ] {
        let mut shard = Shard::of(100);
        shard.ends(QUICK, |_, _, _| outcome.clone());
        assert_eq!(shard.limit(), limit, "{outcome:?}");
    }
}

#[test]
fn answers_grow_slowly_from_the_failed_length_until_it_comes() {
    let mut shard = Shard::of(100);
    assert_eq!([shard.read(QUICK), shard.read(QUICK)], [10, 40]);
    assert_eq!(shard.time_out(), 160);
    let asked: Vec<u32> = (0..7).map(|_| shard.read(QUICK)).collect();
    assert_eq!(asked, [80, 90, 101, 113, 127, 142, 159]);
    assert_eq!(shard.read(QUICK), 178);
    assert_eq!(shard.limit(), 712, "such an answer has come");
}

#[test]
fn a_late_answer_is_asked_for_shorter() {
    let mut shard = Shard::of(20_000);
    shard.read(QUICK);
    assert_eq!(shard.read(STREAM_TIMEOUT), 40);
    assert_eq!(shard.limit(), 20);
}

/// 60 records of 100 kB wait, and 150 kB come in a second.
#[test]
fn over_a_narrow_line_every_record_comes() {
    let mut shard = Shard::of(100_000);
    let (mut came, mut asked) = (0, Vec::new());
    while came < 60 {
        let limit = shard.limit();
        let took = Span::from_millis(u64::from(limit) * 667);
        asked.push(match took > STREAM_TIMEOUT {
            true => shard.time_out(),
            false => {
                came += limit;
                shard.read(took)
            }
        });
    }
    assert!(asked.iter().all(|limit| *limit <= 10), "{asked:?}");
}

#[test]
fn the_expectation_follows_the_last_answers_or_any_size() {
    let mut shard = Shard::of(1_000);
    let (one, all) = shard.bench.reader.expects(10);
    assert!(one >= 1 << 20 && all >= 10 << 20);
    shard.read(QUICK);
    let expected = |shard: &Shard, limit| shard.bench.reader.expects(limit).1;
    assert_eq!(expected(&shard, 30), 30 * (1_256 + 419), "a third more on its way");
    shard.each = 100_000;
    shard.read(QUICK);
    assert_eq!(expected(&shard, 1), 100_256 + 33_419);
    assert!(expected(&shard, 10_000) < 20 << 20, "no answer is longer than the service gives");
    shard.each = 0;
    let before = expected(&shard, 1);
    shard.read(QUICK);
    assert!(expected(&shard, 1) < before && expected(&shard, 1) > before / 2, "small ones count slowly");
}

#[test]
fn a_kept_batch_is_not_held() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.answer(of(1, 2, 100));
    bench.answer(of(2, 2, 100));
    assert_eq!(bench.reader.held_bytes(), 4 * 356);
    bench.reader.delivered();
    let first = bench.reader.front();
    assert_eq!(first, None);
    assert!(bench.reader.keep(bench::op(2)));
    assert_eq!(bench.reader.held_bytes(), 2 * 356);
}

#[test]
fn a_service_that_says_any_number_of_bytes_breaks_no_sum() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.cfg.buffer_bytes = u64::MAX;
    bench.cfg.bytes_per_second = u64::MAX;
    let most = Fetched { bytes: u64::MAX, ..of(1, 1, 0) };
    bench.answer(most);
    assert_eq!(bench.reader.held_bytes(), 1 << 40);
    let (one, all) = bench.reader.expects(10_000);
    assert!(one <= all && all < 20 << 20);
}
