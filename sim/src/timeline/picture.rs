//! A timeline as data: a lane for each worker, bars for its shards, marks for events.

use crate::named::named;
use crate::oracles::{Time, Violation};
use serde::Serialize;

/// A worker, by its place among the lanes.
pub type LaneNo = u32;

/// A shard, by its place in [`Timeline::shards`].
pub type ShardIx = u32;

/// The contents of a page. Times are in µs from the timeline's beginning.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// The subject of the timeline.
    pub title: String,
    /// The subject's configuration or origin.
    pub subtitle: String,
    /// The result, in a sentence.
    pub verdict: String,
    /// The timeline's length.
    pub end: Time,
    /// The wall clock at the timeline's beginning, in ms since 1970; absent: a simulated time without a meaning
    /// outside.
    pub epoch_ms: Option<i64>,
    /// The workers, from top to bottom.
    pub workers: Vec<Lane>,
    /// The shards, in the order of their appearance.
    pub shards: Vec<Shard>,
    /// The number of rows in the lane of the stream. None: no facts of the stream itself are known.
    pub stream_rows: u32,
    /// The lives and pauses of workers.
    pub spans: Vec<Span>,
    /// The shards owned and processed by workers.
    pub bars: Vec<Bar>,
    /// All events, in order.
    pub marks: Vec<Mark>,
    /// Violations. Each violation has a mark, too.
    pub violations: Vec<Violation>,
    /// The number of marks left out beyond the limit.
    pub left_out: u64,
}

/// A worker's lane.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// The worker's name.
    pub name: String,
    /// The number of rows of bars in the lane.
    pub rows: u32,
}

/// A shard of the stream.
#[derive(Clone, Debug, Serialize)]
pub struct Shard {
    /// The shard's short name.
    pub name: String,
    /// The number in the shard's name, as the source of the shard's colour.
    pub number: u32,
    /// The shard's row in the lane of the stream.
    pub row: u32,
    /// The time of the shard's creation, if seen.
    pub born: Option<Time>,
    /// The time of the shard's close.
    pub closed: Option<Time>,
    /// The parents of the split or merge.
    pub parents: Vec<ShardIx>,
}

/// A period of a worker.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// The worker.
    pub worker: LaneNo,
    /// The beginning.
    pub from: Time,
    /// The end.
    pub to: Time,
    /// The period's kind.
    pub kind: SpanKind,
    /// A description.
    pub text: String,
}

/// A worker's state in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanKind {
    /// The worker lived.
    Up,
    /// The worker lived but was paused.
    Paused,
}

/// A period of a shard with a worker.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// The worker.
    pub worker: LaneNo,
    /// The shard.
    pub shard: ShardIx,
    /// The bar's row in the lane.
    pub row: u32,
    /// The beginning.
    pub from: Time,
    /// The end.
    pub to: Time,
    /// The bar's meaning.
    pub kind: BarKind,
    /// A description.
    pub text: String,
}

/// The meaning of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarKind {
    /// The row names the worker.
    Owned,
    /// The worker's application processes the shard.
    Processing,
    /// The lease may have expired: its handler receives no batches.
    Fenced,
}

/// An event at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// The time.
    pub at: Time,
    /// The event's kind.
    pub kind: MarkKind,
    /// The worker concerned.
    pub worker: Option<LaneNo>,
    /// The shard concerned.
    pub shard: Option<ShardIx>,
    /// The row of the mark's bar, if the mark lies on a bar.
    pub row: Option<u32>,
    /// A description.
    pub text: String,
}

named! {
    /// The kind of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum MarkKind by pub name {
        Worker = "worker",
        Stream = "stream",
        Row = "row",
        Checkpoint = "checkpoint",
        Take = "take",
        Steal = "steal",
        Release = "release",
        Lost = "lost",
        End = "end",
        Fence = "fence",
        Processing = "processing",
        Notice = "notice",
        Trouble = "trouble",
        Fault = "fault",
        Violation = "violation",
    }
}
