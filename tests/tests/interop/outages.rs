//! A fleet of our own workers, as processes, in bad times: for ten minutes, workers are killed, stopped, frozen and
//! started, connections break, and shards split and merge. The test prints the repeats and standstills.

use super::fleet::Fleet;
use super::{STREAM, World};
use leasehold::aws::kinesis::types::Shard;
use leasehold_tests::history::{Cause, Handover, table};
use leasehold_tests::member::Member;
use leasehold_tests::proxy::Proxy;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const WORKERS: usize = 4;
const LASTS: Duration = Duration::from_secs(600);
/// Shards at once.
const FEW: usize = 3;
const MANY: usize = 8;

/// Numbers that look random, and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// A worker's place in the fleet.
struct Seat {
    /// The number of lives so far.
    lives: usize,
    running: Option<Member>,
    /// When a worker that does not run starts, or a frozen worker goes on.
    back: Instant,
    frozen: bool,
}

struct Outages {
    fleet: Fleet,
    proxy: Proxy,
    options: &'static [&'static str],
    dice: Dice,
    seats: Vec<Seat>,
    counts: BTreeMap<&'static str, usize>,
}

impl Outages {
    async fn last(&mut self) {
        let began = Instant::now();
        while began.elapsed() < LASTS {
            self.go_on();
            let event = self.dice.below(12);
            let seat = self.dice.below(WORKERS as u64) as usize;
            let told = match event {
                0..3 => self.stop(seat, Cause::Killed).await,
                3..5 => self.stop(seat, Cause::Left).await,
                5..7 => self.freeze(seat),
                7..10 => (self.proxy.cut() > 0).then_some("cuts of all connections"),
                10 => self.split().await,
                _ => self.merge().await,
            };
            *self.counts.entry(told.unwrap_or("events without an object")).or_default() += 1;
            tokio::time::sleep(Duration::from_millis(500 + self.dice.below(7_000))).await;
        }
        // All go on at once.
        self.seats.iter_mut().for_each(|seat| seat.back = Instant::now());
        self.go_on();
    }

    /// Starts and thaws every worker whose time has come.
    fn go_on(&mut self) {
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if seat.back > Instant::now() {
                continue;
            }
            match &seat.running {
                Some(member) if seat.frozen => {
                    member.process.thaw().expect("a signal");
                    seat.frozen = false;
                }
                Some(_) => {}
                None => {
                    seat.lives += 1;
                    let name = format!("w{number}-{}", seat.lives);
                    seat.running = Some(self.fleet.ours_with(&name, self.options));
                }
            }
        }
    }

    fn away(&mut self) -> Instant {
        Instant::now() + Duration::from_millis(self.dice.below(8_000))
    }

    async fn stop(&mut self, seat: usize, cause: Cause) -> Option<&'static str> {
        let back = self.away();
        let seat = &mut self.seats[seat];
        if seat.frozen {
            return None;
        }
        let mut member = seat.running.take()?;
        seat.back = back;
        self.fleet.watch.ends(&member.name, cause);
        if cause == Cause::Killed {
            member.process.kill().expect("a worker that lives until now");
            return Some("kills");
        }
        member.process.terminate().expect("a signal");
        // A process that has not begun to listen for signals dies.
        let code = member.process.ends(Duration::from_secs(60)).await;
        let log = member.process.stderr();
        assert!(code == 0 || log.is_empty(), "expected a good end of {}, found {code}: {log}", member.name);
        self.fleet.watch.has_left(&member.name);
        Some("stops")
    }

    fn freeze(&mut self, seat: usize) -> Option<&'static str> {
        let back = self.away();
        let seat = &mut self.seats[seat];
        let member = seat.running.as_ref().filter(|_| !seat.frozen)?;
        member.process.freeze().expect("a signal");
        (seat.frozen, seat.back) = (true, back);
        Some("freezes")
    }

    /// The open shards, in the order of their hash keys.
    async fn open(&self) -> Vec<Shard> {
        let mut shards = self.fleet.world.shards().await;
        shards.retain(|shard| {
            shard.sequence_number_range().is_some_and(|range| range.ending_sequence_number().is_none())
        });
        shards.sort_by_key(|shard| keys(shard).0);
        shards
    }

    async fn split(&mut self) -> Option<&'static str> {
        let open = self.open().await;
        if open.len() >= MANY {
            return None;
        }
        let shard = &open[self.dice.below(open.len() as u64) as usize];
        let (first, last) = keys(shard);
        let split =
            self.fleet.world.kinesis.split_shard().stream_name(STREAM).shard_to_split(shard.shard_id());
        split
            .new_starting_hash_key((first + (last - first) / 2 + 1).to_string())
            .send()
            .await
            .expect("a split");
        Some("splits")
    }

    async fn merge(&mut self) -> Option<&'static str> {
        let open = self.open().await;
        if open.len() <= FEW {
            return None;
        }
        let first = self.dice.below(open.len() as u64 - 1) as usize;
        let merge = self.fleet.world.kinesis.merge_shards().stream_name(STREAM);
        let merge = merge.shard_to_merge(open[first].shard_id());
        merge.adjacent_shard_to_merge(open[first + 1].shard_id()).send().await.expect("a merge");
        Some("merges")
    }
}

/// The first and the last hash key of a shard.
fn keys(shard: &Shard) -> (u128, u128) {
    let range = shard.hash_key_range().expect("hash keys");
    let key = |text: &str| text.parse().expect("a hash key");
    (key(range.starting_hash_key()), key(range.ending_hash_key()))
}

/// The hand-overs of a cause: their number, the repeats, and the longest standstill.
fn told(handovers: &[Handover], cause: Cause) -> String {
    let of: Vec<&Handover> = handovers.iter().filter(|handover| handover.cause == cause).collect();
    let repeats: usize = of.iter().map(|handover| handover.repeats).sum();
    let longest = of.iter().map(|handover| handover.standstill).max().unwrap_or_default();
    format!("{} moves, {repeats} records again, longest standstill {} ms", of.len(), longest.as_millis())
}

async fn nothing_is_lost(test: &'static str, options: &'static [&'static str]) {
    let mut world = World::with_shards(test, FEW as i32).await;
    let proxy = Proxy::to(&world.place.kinesis).await.expect("a free port");
    // The producer and the watch keep their own way.
    world.place.kinesis.clone_from(&proxy.endpoint);
    world.place.dynamodb.clone_from(&proxy.endpoint);
    let (fleet, producer) = Fleet::on(test, world);
    let now = Instant::now();
    let seat = || Seat { lives: 0, running: None, back: now, frozen: false };
    let seats = (0..WORKERS).map(|_| seat()).collect();
    let mut outages = Outages { fleet, proxy, options, dice: Dice(39), seats, counts: BTreeMap::new() };
    outages.last().await;
    let Outages { fleet, proxy, seats, counts, .. } = outages;
    let workers: Vec<Member> = seats.into_iter().filter_map(|seat| seat.running).collect();
    let handovers = fleet.watch.handovers();
    println!("{}", table(&handovers));
    println!("{test}: {counts:?}");
    for (name, cause) in [("stopped", Cause::Left), ("killed", Cause::Killed), ("taken", Cause::Taken)] {
        println!("{name}: {}", told(&handovers, cause));
    }
    fleet.finish(producer, workers).await;
    drop(proxy);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn nothing_is_lost_in_ten_bad_minutes_by_subscription() {
    nothing_is_lost("outages-fan-out", &["--reader-mode=fan-out"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn nothing_is_lost_in_ten_bad_minutes_both_ways() {
    nothing_is_lost("outages-auto", &["--reader-mode=auto"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes ten minutes"]
async fn nothing_is_lost_in_ten_bad_minutes_by_polling() {
    nothing_is_lost("outages-polling", &[]).await;
}
