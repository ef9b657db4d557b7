//! When a shard is read, alone and beside other applications.

use super::bench::{Bench, no_records, pos};
use super::*;
use crate::input::{Cause, Fetched, Outcome, Reply};
use crate::time::{Mono, Span};

/// The limits of Kinesis for a shard, over all applications: five reads, and 2 MB, in a second. A larger answer costs
/// whole seconds.
#[derive(Default)]
struct Shard {
    second: Mono,
    reads: u32,
    bytes: u64,
    blocked_until: Mono,
}

impl Shard {
    fn read(&mut self, now: Mono, bytes: u64) -> bool {
        const SECOND: Span = Span::from_secs(1);
        if now.since(self.second) >= SECOND {
            (self.second, self.reads, self.bytes) = (now, 0, 0);
        }
        if now < self.blocked_until || self.reads == 5 {
            return false;
        }
        self.reads += 1;
        self.bytes += bytes;
        if self.bytes >= 2_000_000 {
            self.blocked_until = self.second + SECOND.times(self.bytes.div_ceil(2_000_000));
        }
        true
    }
}

/// An application with this many unread records.
struct Application {
    bench: Bench,
    behind: u32,
    read: u32,
    refused: u32,
}

impl Application {
    fn of(seed: u64, behind: u32) -> Self {
        let mut bench = Bench::ready(Start::TrimHorizon);
        bench.seed = seed;
        Self { bench, behind, read: 0, refused: 0 }
    }

    fn due(&self) -> Mono {
        match self.read < self.behind {
            true => self.bench.reader.wake_at(&self.bench.cfg),
            false => Mono::NEVER,
        }
    }

    /// Reads records of so many bytes each. Their sizes vary a bit.
    fn read(&mut self, now: Mono, each: u64, shard: &mut Shard) {
        self.bench.now = now;
        let count = self.bench.limit().min(self.behind - self.read);
        let bytes = u64::from(count) * (each + u64::from(self.read % 3) * each / 100);
        let op = self.bench.send();
        self.bench.now += Span::from_millis(20);
        if !shard.read(now, bytes) {
            self.refused += 1;
            self.bench.done(op, Outcome::NotSent(Cause::Throttled));
            return;
        }
        let first = u64::from(self.read);
        self.read += count;
        let answer = Fetched {
            count,
            bytes,
            first: Some(pos(first)),
            last: Some(pos(first + u64::from(count) - 1)),
            ..no_records(u64::from(self.behind - self.read))
        };
        self.bench.done(op, Outcome::Applied(Reply::Records(answer)));
        self.bench.process_front();
    }
}

/// Reads all, and returns when each application was done, in seconds.
fn read_all(applications: &mut [Application], each: u64) -> Vec<f64> {
    let mut shard = Shard::default();
    let began = applications[0].bench.now;
    let mut done = vec![0.0; applications.len()];
    loop {
        let next = (0..done.len()).min_by_key(|n| applications[*n].due()).unwrap();
        let at = applications[next].due().max(applications[next].bench.now);
        if applications[next].due() == Mono::NEVER {
            return done;
        }
        applications[next].read(at, each, &mut shard);
        done[next] = at.since(began).0 as f64 / 1e6;
    }
}

#[test]
fn a_lone_application_is_never_refused_and_reads_nearly_all() {
    for (each, records) in [(100, 400_000), (1_000, 40_000), (30_000, 1_400), (900_000, 45)] {
        let mut alone = [Application::of(7, records)];
        let took = read_all(&mut alone, each)[0];
        assert_eq!(alone[0].refused, 0, "{each}");
        assert!(took < 30.0, "{each} bytes: {took} s, where 20 s are possible");
    }
}

#[test]
fn applications_that_are_behind_take_turns() {
    for seed in 0..20 {
        let mut three = [1, 2, 3].map(|n| Application::of(seed * 3 + n, 10_000));
        let done = read_all(&mut three, 1_000);
        let (first, last) =
            (done.iter().copied().fold(f64::MAX, f64::min), done.iter().copied().fold(0.0, f64::max));
        assert!(last < 24.0 && first > 0.45 * last, "{done:?}, where 15 s are possible");
    }
}

#[test]
fn a_refusal_for_the_rate_is_asked_again_within_a_second() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    for _ in 0..20 {
        let before = bench.now;
        bench.fetch(Outcome::NotSent(Cause::Throttled));
        let pause = bench.reader.wake_at(&bench.cfg).since(bench.now);
        assert!((Span::from_millis(250)..=Span::from_secs(1)).contains(&pause), "{pause}");
        assert!(bench.now >= before);
    }
}

#[test]
fn after_ten_seconds_without_a_refusal_the_shard_is_ours() {
    let mut bench = Bench::ready(Start::TrimHorizon);
    bench.cfg.bytes_per_second = 1_000;
    bench.fetch(Outcome::NotSent(Cause::Throttled));
    let mut pauses = Vec::new();
    for n in 0..12 {
        let answer =
            Fetched { count: 1, bytes: 1_000, first: Some(pos(n)), last: Some(pos(n)), ..no_records(1) };
        bench.answer(answer);
        bench.process_front();
        pauses.push(bench.reader.wake_at(&bench.cfg).since(bench.now));
    }
    let second = Span::from_secs(1);
    assert!(pauses[..4].iter().all(|pause| *pause >= second + second.per(4)), "{pauses:?}");
    assert!(pauses[9..].iter().all(|pause| *pause <= second + Span(1)), "{pauses:?}");
}
