//! Two fleets with one application name, each with a stream of its own, on one table.

use leasehold_engine::config::Config;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Body, Boot, Input, Outcome};
use leasehold_engine::notice::{Fatal, Notice};
use leasehold_engine::output::{Command, ConsumerOp, Effect};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::LeaseRow;
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::testkit::{Carry, Driven, LeaseTable, Plain, Reading, Stream};
use leasehold_engine::time::{Mono, Span, Wall};

/// A worker of one of the two fleets, and its stream.
struct Side {
    driven: Driven,
    seen: Seen,
}

/// The stream, and the worker's use of the stream.
struct Seen {
    stream: Stream,
    reading: Reading,
    fatal: Option<Fatal>,
    /// Rows under which records were handed over.
    read: Vec<LeaseRow>,
}

/// One side and the table shared by both.
struct Beside<'a>(&'a mut Seen, &'a mut LeaseTable);

impl Carry for Beside<'_> {
    fn carry(&mut self, command: Command) -> Option<Outcome> {
        let Beside(seen, table) = self;
        Some(match &command.effect {
            Effect::Table(op) => table.execute(op),
            Effect::Stream(op) => seen.stream.execute(&mut seen.reading, command.op, op),
            Effect::StreamOf(..) => unreachable!("expected workers of one stream"),
            Effect::Consumer(op) => {
                if let ConsumerOp::Deliver { lease, .. } = op {
                    let rows = table.rows.iter().flatten();
                    let under = rows.filter(|(key, _)| *key == lease);
                    seen.read.extend(under.map(|(_, row)| row.clone()));
                }
                seen.reading.execute(&seen.stream, op)
            }
        })
    }

    fn told(&mut self, notice: Notice) {
        if let Notice::Fatal(fatal) = notice {
            self.0.fatal = Some(fatal);
        }
    }
}

const CREATED: Wall = Wall(1_600_000_000_000);

fn arn(name: &str) -> String {
    format!("arn:aws:kinesis:eu-central-1:123456789012:stream/{name}")
}

fn identity(name: &str, created: Wall) -> StreamIdentity {
    StreamIdentity::new(&arn(name), created).unwrap()
}

impl Side {
    /// A worker that has not begun, and its stream of this name, with `shards` shards of ten records each.
    fn new(name: &str, shards: u32) -> Self {
        let mut stream = Stream::of(shards);
        (stream.created, stream.arn) = (Some(CREATED), arn(name));
        for shard in 0..shards {
            stream.put(shard, 10).unwrap();
        }
        let seen = Seen { stream, reading: Reading::default(), fatal: None, read: Vec::new() };
        let driven = Driven::default();
        Self { driven, seen }
    }

    fn tell(&mut self, table: &mut LeaseTable, input: Input) {
        self.driven.tell(input, &mut Beside(&mut self.seen, table));
    }

    fn boot(&mut self, table: &mut LeaseTable, name: &str, at: Mono, seed: u64) {
        let config = Config::default().with_table("app").with_stream(name);
        let boot = Boot { worker: name.into(), incarnation: 1, seed, config };
        let body = Body::Boot(Box::new(boot));
        self.tell(table, Input { at, wall: Wall(1), body });
    }

    /// All that is due until then.
    fn until(&mut self, table: &mut LeaseTable, at: Mono) {
        while self.driven.wake_at() <= at && !self.driven.engine().is_stopped() {
            let at = self.driven.wake_at();
            let body = Body::Tick;
            self.tell(table, Input { at, wall: Wall(1), body });
        }
    }

    fn records(&self) -> usize {
        self.seen.reading.processed.values().map(Vec::len).sum()
    }

    fn refuses(&self) -> bool {
        matches!(self.seen.fatal, Some(Fatal::OtherStream { .. }))
    }
}

fn seconds(seconds: u64) -> Mono {
    Mono(0) + Span::from_secs(seconds)
}

/// Both go on, by turns, from one moment to the next.
fn go_on(table: &mut LeaseTable, sides: &mut [&mut Side], from: u64, to: u64) {
    for tenth in from * 10..to * 10 {
        for side in &mut *sides {
            side.until(table, Mono(0) + Span::from_millis(100 * tenth));
        }
    }
}

#[test]
fn the_second_fleet_refuses_and_the_first_reads_on() {
    let mut table = LeaseTable::empty(Plain);
    let (mut orders, mut returns) = (Side::new("orders", 2), Side::new("returns", 4));
    orders.boot(&mut table, "orders", seconds(1), 1);
    go_on(&mut table, &mut [&mut orders], 1, 30);
    assert_eq!(orders.records(), 20);
    returns.boot(&mut table, "returns", seconds(30), 2);
    go_on(&mut table, &mut [&mut orders, &mut returns], 30, 40);
    assert!(returns.refuses(), "{:?}", returns.seen.fatal);
    let said = returns.seen.fatal.as_ref().map(ToString::to_string).unwrap_or_default();
    for part in [&*arn("orders"), &*arn("returns"), "\"app\"", "shardId-"] {
        assert!(said.contains(part), "expected {part} in {said}");
    }
    assert_eq!((returns.records(), returns.seen.read.len()), (0, 0));
    assert_eq!(orders.seen.fatal, None);
    orders.seen.stream.put(0, 5).unwrap();
    go_on(&mut table, &mut [&mut orders], 40, 60);
    assert_eq!(orders.records(), 25);
    let rows = table.rows.unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.values().all(|row| row.stream == Some(identity("orders", CREATED))));
}

/// Which fleet is quicker does not matter: no lease is read under the wrong stream, and no fleet goes on with half of its shards.
#[test]
fn two_fleets_that_begin_together_read_no_lease_of_the_other() {
    for seed in 0..40 {
        let mut table = LeaseTable::empty(Plain);
        let shards = [2, 4, 7];
        let [one, other] = [shards[seed as usize % 3], shards[seed as usize / 3 % 3]];
        let (mut orders, mut returns) = (Side::new("orders", one), Side::new("returns", other));
        orders.boot(&mut table, "orders", seconds(1), seed);
        returns.boot(&mut table, "returns", seconds(1), 1_000 + seed);
        go_on(&mut table, &mut [&mut orders, &mut returns], 1, 40);
        for (side, name, shards) in [(&orders, "orders", one), (&returns, "returns", other)] {
            let ours = Some(identity(name, CREATED));
            assert!(side.seen.read.iter().all(|row| row.stream == ours), "seed {seed}: {name}");
            assert!(side.refuses() || side.records() == 10 * shards as usize, "seed {seed}: {name}");
        }
        assert!(orders.refuses() || returns.refuses(), "seed {seed}");
    }
}

/// KCL's workers and earlier versions name no stream.
#[test]
fn a_fleet_of_rows_without_a_stream_is_joined_and_then_named() {
    let mut orders = Side::new("orders", 2);
    let mut table = LeaseTable::covering(&orders.seen.stream);
    orders.boot(&mut table, "orders", seconds(1), 1);
    go_on(&mut table, &mut [&mut orders], 1, 30);
    assert_eq!((orders.records(), &orders.seen.fatal), (20, &None));
    let rows = table.rows.unwrap();
    assert!(rows.values().all(|row| row.stream == Some(identity("orders", CREATED))));
}

#[test]
fn a_stream_made_anew_is_another_even_if_nothing_was_read() {
    let mut orders = Side::new("orders", 2);
    let mut table = LeaseTable::covering(&orders.seen.stream);
    let key = LeaseKey::from("shardId-000000000001");
    let row = table.rows.as_mut().and_then(|rows| rows.get_mut(&key)).unwrap();
    row.stream = Some(identity("orders", Wall(CREATED.0 - 60_000)));
    let before = table.rows.clone();
    orders.boot(&mut table, "orders", seconds(1), 1);
    go_on(&mut table, &mut [&mut orders], 1, 15);
    assert!(orders.refuses(), "{:?}", orders.seen.fatal);
    assert_eq!(table.rows, before, "nothing was taken");
}

#[test]
fn a_running_worker_refuses_when_another_fleet_takes_a_lease() {
    let mut orders = Side::new("orders", 2);
    let mut table = LeaseTable::covering(&orders.seen.stream);
    orders.boot(&mut table, "orders", seconds(1), 1);
    go_on(&mut table, &mut [&mut orders], 1, 20);
    let key = LeaseKey::from("shardId-000000000000");
    let row = table.rows.as_mut().and_then(|rows| rows.get_mut(&key)).unwrap();
    (row.stream, row.owner) = (Some(identity("returns", CREATED)), Some("returns:1".into()));
    (row.counter, row.checkpoint) = (row.counter + 1, Checkpoint::TrimHorizon);
    go_on(&mut table, &mut [&mut orders], 20, 35);
    assert!(orders.refuses(), "{:?}", orders.seen.fatal);
}
