//! Scenes of an application with several streams. Rows are KCL's, changed as items of KCL's format.

use crate::rig::*;
use leasehold_engine::config::{Config, InitialPosition, StreamSource};
use leasehold_engine::format::Kcl;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::Call;
use leasehold_engine::notice::{Notice, StreamNews};
use leasehold_engine::output::{Effect, EndReason, StreamOp};
use leasehold_engine::position::{Checkpoint, Position};
use leasehold_engine::row::LeaseRow;
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::testkit::Stream;
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
    let now = wall(rig.now);
    let stream = stream(rig, name);
    stream.now = now;
    stream.put(shard, count).expect("a shard");
}

fn row<'a>(rig: &'a Rig, name: &str, shard: u32) -> &'a LeaseRow {
    &rig.rows()[&key(name, shard)]
}

/// How many records of a stream this worker has processed.
fn processed(rig: &Rig, worker: usize, name: &str) -> usize {
    let reading = rig[worker].of.get(&id(name));
    reading.map_or(0, |reading| reading.processed.values().map(Vec::len).sum())
}

/// How many shards of a stream this worker holds.
fn held(rig: &Rig, worker: usize, name: &str) -> usize {
    let prefix = id(name).lease("");
    let held = rig[worker].engine().held();
    held.filter(|held| held.lease.as_str().starts_with(prefix.as_str())).count()
}

/// How many shards of orders and of returns this worker holds.
fn holds(rig: &Rig, worker: usize) -> [usize; 2] {
    ["orders", "returns"].map(|name| held(rig, worker, name))
}

fn news(rig: &Rig, worker: usize) -> Vec<StreamNews> {
    rig[worker].news(|notice| match notice {
        Notice::Stream(StreamNews::Found { .. }) => None,
        Notice::Stream(news) => Some(news.clone()),
        _ => None,
    })
}

fn is_lost(news: &StreamNews, name: &str) -> bool {
    matches!(news, StreamNews::Lost { stream, .. } if *stream == id(name).to_string())
}

/// Two streams of two shards each, and no worker.
fn two() -> Rig {
    application(&[("orders", 2), ("returns", 2)])
}

/// The same, and a worker that reads both.
fn reading_both() -> Rig {
    let mut rig = two();
    rig.join_then(5);
    rig
}

#[test]
fn every_stream_is_read_under_its_keys_from_its_position() {
    let mut rig = two();
    for name in ["orders", "returns"] {
        put(&mut rig, name, 0, 5);
    }
    let latest = StreamSource { initial_position: Some(InitialPosition::Latest), ..id("returns").into() };
    rig.configure(|config| config.with_streams(vec![id("orders").into(), latest]));
    // What arrived in the second before the leases were created may be read.
    rig.secs(3);
    rig.join_then(3);
    put(&mut rig, "returns", 1, 3);
    rig.secs(30);
    assert_eq!((processed(&rig, 0, "orders"), processed(&rig, 0, "returns")), (5, 3));
    assert_eq!(row(&rig, "returns", 0).checkpoint, Checkpoint::Latest);
    assert!(matches!(row(&rig, "orders", 0).checkpoint, Checkpoint::At(_)));
    assert_eq!(rig.rows().len(), 4);
}

#[test]
fn shards_that_are_split_and_merged_are_read_in_their_order() {
    let mut rig = reading_both();
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
    rig.join_then(5);
    assert_eq!(rig[0].held(), 8);
    rig.join_then(10);
    assert_eq!([0, 1].map(|worker| rig[worker].held()), [4, 4]);
}

#[test]
fn an_added_stream_is_read_and_a_removed_one_goes_on_later() {
    let mut rig = two();
    rig.config = reading(&["orders"]);
    rig.join_then(5);
    put(&mut rig, "returns", 0, 7);
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.secs(3);
    assert_eq!((held(&rig, 0, "returns"), processed(&rig, 0, "returns")), (2, 7));

    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(5);
    assert_eq!(holds(&rig, 0), [2, 0]);
    let left = row(&rig, "returns", 0).clone();
    let last = Position::of(stream(&mut rig, "returns").records[&shard_id(0)][6].into());
    assert_eq!((left.owner, left.checkpoint), (None, Checkpoint::At(last)));
    assert_eq!(rig[0].closed(), [EndReason::StreamRemoved; 2]);

    put(&mut rig, "returns", 0, 4);
    rig.secs(60);
    assert_eq!(processed(&rig, 0, "returns"), 7, "it is read no more");
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.secs(5);
    assert_eq!(processed(&rig, 0, "returns"), 11, "nothing comes again");
    let stream = id("returns").to_string();
    let expected = [
        StreamNews::Added { stream: stream.clone() },
        StreamNews::Removed { stream: stream.clone() },
        StreamNews::NotRead { stream: stream.clone(), leases: 2 },
        StreamNews::Added { stream },
    ];
    assert_eq!(news(&rig, 0), expected);
}

#[test]
fn the_end_of_one_stream_is_not_the_end_of_the_others() {
    let mut rig = reading_both();
    stream(&mut rig, "returns").created = Some(Wall(99));
    rig.secs(120);
    assert_eq!(holds(&rig, 0), [2, 0]);
    assert!(is_lost(&news(&rig, 0)[0], "returns"), "{:?}", news(&rig, 0));
    put(&mut rig, "orders", 1, 5);
    rig.secs(5);
    assert_eq!(processed(&rig, 0, "orders"), 5);
    assert!(rig[0].told(SHUTTING_DOWN) == 0);
    stream(&mut rig, "orders").created = None;
    rig.secs(120);
    assert!(rig[0].told(SHUTTING_DOWN) > 0, "nothing is left to be read");
}

#[test]
fn a_stream_made_anew_under_a_lost_ones_name_is_told_once() {
    let mut rig = reading_both();
    stream(&mut rig, "returns").created = None;
    rig.secs(120);
    let told = |rig: &Rig| {
        rig[0].news(|notice| match notice {
            Notice::Stream(StreamNews::MadeAnew { stream, id }) => Some((stream.clone(), id.clone())),
            _ => None,
        })
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
    let mut rig = two();
    rig.config = reading(&["returns", "nowhere", "orders"]);
    rig.join_then(5);
    assert_eq!(holds(&rig, 0), [2, 2]);
    assert_eq!(news(&rig, 0)[..], [], "answers of one moment may be wrong, and no restart looks again");
    rig.run(rig.config.stream_lag());
    let news = news(&rig, 0);
    assert!(news.len() == 1 && is_lost(&news[0], "nowhere"), "{news:?}");
}

#[test]
fn a_stream_that_cannot_be_listed_holds_no_other_up() {
    let mut rig = two();
    let lists = |op: &StreamOp| matches!(op, StreamOp::ListShards { .. });
    rig.join_trapped(meets(asks_of("returns", lists), Trick::THROTTLED));
    rig.secs(5);
    assert_eq!(holds(&rig, 0), [2, 0]);
    rig[0].trap = None;
    rig.secs(10);
    assert_eq!(held(&rig, 0, "returns"), 2);
}

/// A worker with an old configuration must not take leases without a handler, nor remove their rows.
#[test]
fn leases_of_unread_streams_are_left_alone_while_others_read() {
    let mut rig = reading_both();
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(30));
    rig.join_then(300);
    assert_eq!((held(&rig, 0, "returns"), held(&rig, 1, "returns")), (2, 0));
    assert!(held(&rig, 1, "orders") > 0);
    let stream = id("returns").to_string();
    assert_eq!(news(&rig, 1), [StreamNews::NotRead { stream, leases: 2 }]);
}

/// Every worker counts for itself since when the rows stand still.
#[test]
fn rows_of_an_unread_stream_are_removed_whoever_leads() {
    let mut rig = application(&[("orders", 4), ("returns", 2)]);
    rig.join_then(5);
    rig[0].die();
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(300));
    rig.join_all(2);
    rig.secs(200);
    rig[1].die();
    rig.secs(50);
    assert_eq!(row(&rig, "returns", 0).key, key("returns", 0), "not yet");
    rig.secs(120);
    let rows = rig.rows();
    assert!(rows.keys().all(|lease| lease.as_str().starts_with(id("orders").as_str())));
    let forgotten = news(&rig, 2).into_iter().filter(|news| matches!(news, StreamNews::Forgot { .. }));
    assert_eq!(forgotten.count(), 2);
}

#[test]
fn by_default_the_rows_of_a_stream_stay() {
    let mut rig = reading_both();
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(3_000);
    assert_eq!(rig.rows().len(), 4);
}

#[test]
fn the_rows_of_a_stream_that_was_lost_stay() {
    let mut rig = two();
    rig.configure(|config| config.with_stream_cleanup_delay(Span::from_secs(60)));
    rig.join_then(5);
    stream(&mut rig, "returns").created = Some(Wall(99));
    rig.secs(1_000);
    assert_eq!(holds(&rig, 0), [2, 0]);
    assert_eq!(rig.rows().len(), 4);
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.secs(1_000);
    assert_eq!(rig.rows().len(), 4, "it was lost before it was removed");
}

/// A row touched since its read is not removed.
#[test]
fn a_stream_read_again_at_the_last_moment_is_not_forgotten() {
    let mut rig = reading_both();
    rig[0].die();
    rig.config = reading(&["orders"]).with_stream_cleanup_delay(Span::from_secs(60));
    rig.join_trapped(hangs(FORGET));
    rig.secs(100);
    assert!(!rig[1].hung.is_empty());
    rig.config = reading(&["returns"]);
    rig.join_then(20);
    assert_eq!(held(&rig, 2, "returns"), 2);
    rig.free(1);
    assert!(row(&rig, "returns", 0).owner.is_some());
}

#[test]
fn workers_of_one_stream_and_of_several_leave_each_other_alone() {
    let mut rig = application(&[("orders", 2)]);
    rig.stream = Stream::of(2);
    rig.join_then(5);
    rig.config = asking();
    rig.join_then(60);
    assert_eq!(rig[1].held(), 2);
    assert_eq!(rig[0].held(), 2);
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
    assert_eq!((rig[0].held(), news(&rig, 0)), (2, Vec::new()));
}

/// What is asked about one stream.
fn asks_of(of: &str, asks: fn(&StreamOp) -> bool) -> impl Fn(&Effect) -> bool + use<> {
    let of = id(of);
    move |effect| matches!(effect, Effect::StreamOf(id, op) if *id == of && asks(op))
}

fn hang_listings(of: &str) -> impl FnMut(&Effect) -> Option<Trick> + use<> {
    hangs(asks_of(of, |op| matches!(op, StreamOp::ListShards { .. })))
}

/// A slow listing waits for a scan that shows whether the table is still empty. If the stream is removed and added
/// meanwhile, no listing waits any more.
#[test]
fn a_stream_read_again_is_listed_anew_whatever_its_last_listing() {
    let mut rig = two();
    rig.join_trapped(hang_listings("returns"));
    rig.secs(5);
    rig[0].trap(hangs(SCAN));
    rig.release(0);
    rig.secs(2);
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.call(0, Call::AddStream(id("returns").into()));
    rig.free(0);
    rig.secs(30);
    assert_eq!(holds(&rig, 0), [2, 2]);
}

/// The page may list different shards: the open shards, where all shards are to be read.
#[test]
fn a_page_from_before_a_stream_is_read_again_says_nothing() {
    let mut rig = application(&[("orders", 2), ("returns", 1)]);
    put(&mut rig, "returns", 0, 5);
    stream(&mut rig, "returns").split(0).expect("a shard");
    let from = |position| StreamSource { initial_position: Some(position), ..id("returns").into() };
    rig.configure(|config| config.with_streams(vec![id("orders").into(), from(InitialPosition::Latest)]));
    rig.join_trapped(hang_listings("returns"));
    rig.secs(5);
    assert_eq!(rig[0].hung.len(), 1, "the listing");
    rig.call(0, Call::RemoveStream(id("returns")));
    rig.call(0, Call::AddStream(from(InitialPosition::TrimHorizon)));
    rig.free(0);
    rig.secs(30);
    assert_eq!((held(&rig, 0, "returns"), processed(&rig, 0, "returns")), (2, 5));
}

/// Work begun before the removal of the stream relied on the knowledge at the time.
#[test]
fn a_stream_read_again_is_listed_before_a_lease_is_taken() {
    let mut rig = two();
    let prefix = id("returns").lease("");
    let of_returns =
        move |effect: &Effect| effect.described().1.is_some_and(|lease| lease.starts_with(prefix.as_str()));
    let of = of_returns.clone();
    rig.join_trapped(move |effect| match effect {
        effect if TAKE.is(effect) && of(effect) => Some(Trick::UNKNOWN),
        effect => (READ.is(effect) && of(effect)).then_some(Trick::Hang),
    });
    rig.secs(5);
    assert_eq!(rig[0].hung.len(), 2, "both rows are looked at");
    rig.call(0, Call::RemoveStream(id("returns")));
    rig[0].trap(hangs(asks_of("returns", |_| true)));
    rig.call(0, Call::AddStream(id("returns").into()));
    let sent = rig[0].sent.len();
    rig.release(0);
    rig[0].trap(hang_listings("returns"));
    rig.secs(10);
    let mut since = rig[0].sent[sent..].iter().map(|(_, effect)| effect);
    assert!(!since.any(|effect| TAKE.is(effect) && of_returns(effect)));
    rig.free(0);
    rig.secs(10);
    assert_eq!(held(&rig, 0, "returns"), 2);
}
