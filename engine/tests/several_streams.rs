//! Scenes of an application with several streams. Rows are KCL's, changed as items of KCL's format.

use crate::rig::{Rig, Trap, Trick, asking};
use leasehold_engine::config::{Config, InitialPosition, StreamSource};
use leasehold_engine::format::Kcl;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::Call;
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::notice::{Notice, StreamNews};
use leasehold_engine::output::{ConsumerOp, Effect, EndReason, StreamOp, TableOp};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::testkit::{Stream, shard_id};
use leasehold_engine::time::{Span, Wall};

fn id(name: &str) -> StreamId {
    StreamId::new("123456789012", name, 1_700_000_000).expect("an identifier")
}

fn key(name: &str, shard: u32) -> LeaseKey {
    id(name).lease(shard_id(shard).as_str())
}

fn reading(names: &[&str]) -> Config {
    let ids: Vec<StreamId> = names.iter().map(|name| id(name)).collect();
    asking().with_stream("").with_streams(ids)
}

/// Streams of so many shards, an empty table of KCL's, and no worker. Workers are to read all of them.
fn application(streams: &[(&str, u32)]) -> Rig {
    let mut rig = Rig::new(0, 0);
    rig.table.keeping.0 = Some(&Kcl);
    for (name, shards) in streams {
        rig.streams.insert(id(name), Stream::of(*shards));
    }
    let names: Vec<&str> = streams.iter().map(|(name, _)| *name).collect();
    rig.config = reading(&names);
    rig
}

fn stream<'a>(rig: &'a mut Rig, name: &str) -> &'a mut Stream {
    rig.streams.get_mut(&id(name)).expect("a stream")
}

fn put(rig: &mut Rig, name: &str, shard: u32, count: u64) {
    let now = rig.wall();
    let stream = stream(rig, name);
    stream.now = now;
    stream.put(shard, count).expect("a shard");
}

fn row<'a>(rig: &'a Rig, name: &str, shard: u32) -> &'a LeaseRow {
    &rig.table.rows.as_ref().expect("a table")[&key(name, shard)]
}

/// How many records of a stream this worker has processed.
fn processed(rig: &Rig, worker: usize, name: &str) -> usize {
    let reading = rig.workers[worker].of.get(&id(name));
    reading.map_or(0, |reading| reading.processed.values().map(Vec::len).sum())
}

/// How many shards of a stream this worker holds.
fn held(rig: &Rig, worker: usize, name: &str) -> usize {
    let prefix = id(name).lease("");
    let held = rig.workers[worker].engine().held();
    held.filter(|held| held.lease.as_str().starts_with(prefix.as_str())).count()
}

fn news(rig: &Rig, worker: usize) -> Vec<StreamNews> {
    let notices = rig.workers[worker].notices.iter();
    let news = notices.filter_map(|(_, notice)| match notice {
        Notice::Stream(news) => Some(news.clone()),
        _ => None,
    });
    news.filter(|news| !matches!(news, StreamNews::Found { .. })).collect()
}

fn is_stopping(rig: &Rig, worker: usize) -> bool {
    let mut notices = rig.workers[worker].notices.iter();
    notices.any(|(_, notice)| matches!(notice, Notice::ShuttingDown { .. }))
}

#[test]
fn every_stream_is_read_under_its_keys_from_its_position() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    for name in ["orders", "returns"] {
        put(&mut rig, name, 0, 5);
    }
    let latest = StreamSource { initial_position: Some(InitialPosition::Latest), ..id("returns").into() };
    rig.configure(|config| config.with_streams(vec![id("orders").into(), latest]));
    // What arrived in the second before the leases were created may be read.
    rig.secs(3);
    rig.join();
    rig.secs(3);
    put(&mut rig, "returns", 1, 3);
    rig.secs(30);
    assert_eq!((processed(&rig, 0, "orders"), processed(&rig, 0, "returns")), (5, 3));
    assert_eq!(row(&rig, "returns", 0).checkpoint, Checkpoint::Latest);
    assert!(matches!(row(&rig, "orders", 0).checkpoint, Checkpoint::At(_)));
    assert_eq!(rig.table.rows.as_ref().map(|rows| rows.len()), Some(4));
}

#[test]
fn shards_that_are_split_and_merged_are_read_in_their_order() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    for name in ["orders", "returns"] {
        put(&mut rig, name, 0, 10);
        let (low, high) = stream(&mut rig, name).split(0).expect("a shard");
        put(&mut rig, name, low, 10);
        put(&mut rig, name, high, 10);
        let merged = stream(&mut rig, name).merge(low, high).expect("two shards");
        put(&mut rig, name, merged, 10);
    }
    rig.secs(60);
    for name in ["orders", "returns"] {
        assert_eq!(processed(&rig, 0, name), 40, "{name}");
        let merged = row(&rig, name, 4);
        let parents: Vec<LeaseKey> = merged.parents.iter().map(|parent| parent.to_lease()).collect();
        assert_eq!(parents, [key(name, 2), key(name, 3)]);
    }
}

#[test]
fn leases_of_all_streams_are_shared_out_together() {
    let mut rig = application(&[("orders", 4), ("returns", 2), ("stock", 2)]);
    rig.join();
    rig.secs(5);
    assert_eq!(rig.workers[0].engine().held().count(), 8);
    rig.join();
    rig.secs(10);
    let counts = [0, 1].map(|worker| rig.workers[worker].engine().held().count());
    assert_eq!(counts, [4, 4]);
}

#[test]
fn an_added_stream_is_read_and_a_removed_one_goes_on_later() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.config = reading(&["orders"]);
    rig.join();
    rig.secs(5);
    put(&mut rig, "returns", 0, 7);
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.secs(3);
    assert_eq!((held(&rig, 0, "returns"), processed(&rig, 0, "returns")), (2, 7));

    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(5);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 0));
    let left = row(&rig, "returns", 0).clone();
    let last = Position::of(stream(&mut rig, "returns").records[&shard_id(0)][6].into());
    assert_eq!((left.owner, left.checkpoint), (None, Checkpoint::At(last)));
    let closed = rig.workers[0]
        .calls
        .iter()
        .filter(|(_, op)| matches!(op, ConsumerOp::Close { reason: EndReason::StreamRemoved, .. }));
    assert_eq!(closed.count(), 2);

    put(&mut rig, "returns", 0, 4);
    rig.secs(60);
    assert_eq!(processed(&rig, 0, "returns"), 7, "it is read no more");
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.secs(5);
    assert_eq!(processed(&rig, 0, "returns"), 11, "nothing comes again");
    let stream = id("returns").to_string();
    assert_eq!(
        news(&rig, 0),
        [
            StreamNews::Added { stream: stream.clone() },
            StreamNews::Removed { stream: stream.clone() },
            StreamNews::NotRead { stream: stream.clone(), leases: 2 },
            StreamNews::Added { stream },
        ]
    );
}

#[test]
fn the_end_of_one_stream_is_not_the_end_of_the_others() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    stream(&mut rig, "returns").created = Some(Wall(99));
    rig.secs(120);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 0));
    assert!(
        matches!(&news(&rig, 0)[..], [StreamNews::Lost { stream, .. }, ..] if *stream == id("returns").to_string()),
        "{:?}",
        news(&rig, 0)
    );
    put(&mut rig, "orders", 1, 5);
    rig.secs(5);
    assert_eq!(processed(&rig, 0, "orders"), 5);
    assert!(!is_stopping(&rig, 0));
    stream(&mut rig, "orders").created = None;
    rig.secs(120);
    assert!(is_stopping(&rig, 0), "nothing is left to be read");
}

#[test]
fn a_stream_made_anew_under_a_lost_ones_name_is_told_once() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    stream(&mut rig, "returns").created = None;
    rig.secs(120);
    let told = |rig: &Rig| {
        let anew = |news: &StreamNews| match news {
            StreamNews::MadeAnew { stream, id } => Some((stream.clone(), id.clone())),
            _ => None,
        };
        news(rig, 0).iter().filter_map(anew).collect::<Vec<_>>()
    };
    assert_eq!(told(&rig), [], "it is lost, and there is no other");
    stream(&mut rig, "returns").created = Some(Wall(1_800_000_000_000));
    rig.secs(40);
    let anew = "123456789012:returns:1800000000".to_owned();
    assert_eq!(told(&rig), [(id("returns").to_string(), anew)]);
    rig.secs(300);
    assert_eq!(told(&rig).len(), 1);
    assert_eq!(held(&rig, 0, "orders"), 2);
}

#[test]
fn a_stream_that_does_not_exist_is_told_and_the_others_are_read() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.config = reading(&["returns", "nowhere", "orders"]);
    rig.join();
    rig.secs(5);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 2));
    assert_eq!(news(&rig, 0)[..], [], "answers of one moment may be wrong, and no restart looks again");
    rig.run(rig.config.stream_lag());
    assert!(
        matches!(&news(&rig, 0)[..], [StreamNews::Lost { stream, .. }] if *stream == id("nowhere").to_string())
    );
}

#[test]
fn a_stream_that_cannot_be_listed_holds_no_other_up() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    let returns = id("returns");
    rig.join_trapped(Some(Box::new(move |effect| match effect {
        Effect::StreamOf(id, StreamOp::ListShards { .. }) if *id == returns => {
            Some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
        }
        _ => None,
    })));
    rig.secs(5);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 0));
    rig.workers[0].trap = None;
    rig.secs(10);
    assert_eq!(held(&rig, 0, "returns"), 2);
}

/// A worker with an old configuration must not take leases without a handler, nor remove their rows.
#[test]
fn leases_of_unread_streams_are_left_alone_while_others_read() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(30));
    rig.join();
    rig.secs(300);
    assert_eq!((held(&rig, 0, "returns"), held(&rig, 1, "returns")), (2, 0));
    assert!(held(&rig, 1, "orders") > 0);
    let stream = id("returns").to_string();
    assert_eq!(news(&rig, 1), [StreamNews::NotRead { stream, leases: 2 }]);
}

/// Every worker counts for itself since when the rows stand still.
#[test]
fn rows_of_an_unread_stream_are_removed_whoever_leads() {
    let mut rig = application(&[("orders", 4), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    rig.workers[0].alive = false;
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(300));
    for _ in 0..2 {
        rig.join();
    }
    rig.secs(200);
    rig.workers[1].alive = false;
    rig.secs(50);
    assert_eq!(row(&rig, "returns", 0).key, key("returns", 0), "not yet");
    rig.secs(120);
    let rows = rig.table.rows.as_ref().expect("a table");
    assert!(rows.keys().all(|lease| lease.as_str().starts_with(id("orders").as_str())));
    let forgotten = news(&rig, 2).into_iter().filter(|news| matches!(news, StreamNews::Forgot { .. }));
    assert_eq!(forgotten.count(), 2);
}

#[test]
fn by_default_the_rows_of_a_stream_stay() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(3_000);
    assert_eq!(rig.table.rows.as_ref().map(|rows| rows.len()), Some(4));
}

#[test]
fn the_rows_of_a_stream_that_was_lost_stay() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.configure(|config| config.with_stream_cleanup_delay(Span::from_secs(60)));
    rig.join();
    rig.secs(5);
    stream(&mut rig, "returns").created = Some(Wall(99));
    rig.secs(1_000);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 0));
    assert_eq!(rig.table.rows.as_ref().map(|rows| rows.len()), Some(4));
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(1_000);
    assert_eq!(rig.table.rows.as_ref().map(|rows| rows.len()), Some(4), "it was lost before it was removed");
}

/// A row touched since its read is not removed.
#[test]
fn a_stream_read_again_at_the_last_moment_is_not_forgotten() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join();
    rig.secs(5);
    rig.workers[0].alive = false;
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(60));
    rig.join_trapped(Some(Box::new(|effect| match effect {
        Effect::Table(TableOp::Write(Change::Forget { .. })) => Some(Trick::Hang),
        _ => None,
    })));
    rig.secs(100);
    assert!(!rig.workers[1].hung.is_empty());
    rig.config = reading(&["returns"]);
    rig.join();
    rig.secs(20);
    assert_eq!(held(&rig, 2, "returns"), 2);
    rig.workers[1].trap = None;
    rig.release(1);
    assert!(row(&rig, "returns", 0).owner.is_some());
}

#[test]
fn workers_of_one_stream_and_of_several_leave_each_other_alone() {
    let mut rig = application(&[("orders", 2)]);
    rig.stream = Stream::of(2);
    rig.join();
    rig.secs(5);
    rig.config = asking();
    rig.join();
    rig.secs(60);
    assert_eq!(rig.workers[1].engine().held().count(), 2);
    assert_eq!(rig.workers[0].engine().held().count(), 2);
    let stream = id("orders").to_string();
    assert_eq!(news(&rig, 1), [StreamNews::NotRead { stream, leases: 2 }]);
    let stream = String::new();
    assert_eq!(news(&rig, 0), [StreamNews::NotRead { stream, leases: 2 }]);
}

#[test]
fn news_of_other_streams_is_ignored_by_a_worker_of_one() {
    let mut rig = Rig::new(2, 1);
    rig.call(0, Call::AddStream(id("orders").into()));
    rig.call(0, Call::RemoveStream(id("orders")));
    rig.secs(60);
    assert_eq!((rig.workers[0].engine().held().count(), news(&rig, 0)), (2, Vec::new()));
}

/// Hangs what is asked about one stream.
fn hang_stream(of: &str, asks: fn(&StreamOp) -> bool) -> Trap {
    let of = id(of);
    Box::new(move |effect| match effect {
        Effect::StreamOf(id, op) if *id == of && asks(op) => Some(Trick::Hang),
        _ => None,
    })
}

fn hang_listings(of: &str) -> Trap {
    hang_stream(of, |op| matches!(op, StreamOp::ListShards { .. }))
}

/// A slow listing waits for a scan that shows whether the table is still empty. If the stream is removed and added
/// meanwhile, no listing waits any more.
#[test]
fn a_stream_read_again_is_listed_anew_whatever_its_last_listing() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    rig.join_trapped(Some(hang_listings("returns")));
    rig.secs(5);
    rig.workers[0].trap = Some(Box::new(|effect| match effect {
        Effect::Table(TableOp::Scan { .. }) => Some(Trick::Hang),
        _ => None,
    }));
    rig.release(0);
    rig.secs(2);
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(30);
    assert_eq!((held(&rig, 0, "orders"), held(&rig, 0, "returns")), (2, 2));
}

/// The page may list different shards: the open shards, where all shards are to be read.
#[test]
fn a_page_from_before_a_stream_is_read_again_says_nothing() {
    let mut rig = application(&[("orders", 2), ("returns", 1)]);
    put(&mut rig, "returns", 0, 5);
    stream(&mut rig, "returns").split(0).expect("a shard");
    let from = |position| StreamSource { initial_position: Some(position), ..id("returns").into() };
    rig.configure(|config| config.with_streams(vec![id("orders").into(), from(InitialPosition::Latest)]));
    rig.join_trapped(Some(hang_listings("returns")));
    rig.secs(5);
    assert_eq!(rig.workers[0].hung.len(), 1, "the listing");
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.call(0, Call::AddStream(from(InitialPosition::TrimHorizon)));
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(30);
    assert_eq!((held(&rig, 0, "returns"), processed(&rig, 0, "returns")), (2, 5));
}

/// Work begun before the removal of the stream relied on the knowledge at the time.
#[test]
fn a_stream_read_again_is_listed_before_a_lease_is_taken() {
    let mut rig = application(&[("orders", 2), ("returns", 2)]);
    let prefix = id("returns").lease("");
    let of_returns = move |lease: &LeaseKey| lease.as_str().starts_with(prefix.as_str());
    let of = of_returns.clone();
    rig.join_trapped(Some(Box::new(move |effect| match effect {
        Effect::Table(TableOp::Write(change @ Change::Take { .. })) if of(change.key()) => {
            Some(Trick::Instead(Outcome::Unknown(Cause::Timeout)))
        }
        Effect::Table(TableOp::Read { key }) if of(key) => Some(Trick::Hang),
        _ => None,
    })));
    rig.secs(5);
    assert_eq!(rig.workers[0].hung.len(), 2, "both rows are looked at");
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.workers[0].trap = Some(hang_stream("returns", |_| true));
    rig.call(0, Call::AddStream(id("returns").into()));
    let sent = rig.workers[0].sent.len();
    rig.release(0);
    rig.workers[0].trap = Some(hang_listings("returns"));
    rig.secs(10);
    let mut since = rig.workers[0].sent[sent..].iter().map(|(_, effect)| effect);
    assert!(!since.any(|effect| match effect {
        Effect::Table(TableOp::Write(change @ Change::Take { .. })) => of_returns(change.key()),
        _ => false,
    }));
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(10);
    assert_eq!(held(&rig, 0, "returns"), 2);
}
