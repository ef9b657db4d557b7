//! What a timeline shows, as data: a lane for every worker, bars for the shards it held, marks for what happened.

use crate::oracles::{Time, Violation};
use serde::Serialize;

/// A worker, by its place among the lanes.
pub type LaneNo = u32;

/// A shard, by its place in [`Timeline::shards`].
pub type ShardIx = u32;

/// Everything that a page shows. Times are in µs from its beginning.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// What it is of.
    pub title: String,
    /// How that was configured, or where it comes from.
    pub subtitle: String,
    /// How it ended, in a sentence.
    pub verdict: String,
    /// Its length.
    pub end: Time,
    /// The wall clock at its beginning, in ms since 1970; absent: a simulated time that means nothing outside.
    pub epoch_ms: Option<i64>,
    /// The workers, from top to bottom.
    pub workers: Vec<Lane>,
    /// The shards, in the order of their appearance.
    pub shards: Vec<Shard>,
    /// How many rows the lane of the stream has. None: nothing is known of the stream itself.
    pub stream_rows: u32,
    /// When workers lived and when they stood still.
    pub spans: Vec<Span>,
    /// What they held and processed.
    pub bars: Vec<Bar>,
    /// Everything that happened, in order.
    pub marks: Vec<Mark>,
    /// What should not have happened. Each is a mark as well.
    pub violations: Vec<Violation>,
    /// How many marks were left out for being too many.
    pub left_out: u64,
}

/// A worker's lane.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// How many bars lie below each other in it.
    pub rows: u32,
}

/// A shard of the stream.
#[derive(Clone, Debug, Serialize)]
pub struct Shard {
    /// Its name, short.
    pub name: String,
    /// What its colour is made from: the number in its name.
    pub number: u32,
    /// Its row in the lane of the stream.
    pub row: u32,
    /// When it began to exist, if that was seen.
    pub born: Option<Time>,
    /// When it took no more records.
    pub closed: Option<Time>,
    /// What it was split off or merged from.
    pub parents: Vec<ShardIx>,
}

/// A time of a worker.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// Whose.
    pub worker: LaneNo,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// What it was.
    pub kind: SpanKind,
    /// In words.
    pub text: String,
}

/// What a worker did in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpanKind {
    /// It lived.
    Up,
    /// It lived but stood still.
    Paused,
}

/// A shard with a worker.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// With whom.
    pub worker: LaneNo,
    /// Which.
    pub shard: ShardIx,
    /// Its row in the lane.
    pub row: u32,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// What it means.
    pub kind: BarKind,
    /// In words.
    pub text: String,
}

/// What a bar means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarKind {
    /// The row names the worker.
    Owned,
    /// The worker's application processes the shard.
    Processing,
    /// The lease may have expired: nothing is given to its handler.
    Fenced,
}

/// A moment.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// When.
    pub at: Time,
    /// What sort of thing happened.
    pub kind: MarkKind,
    /// To whom.
    pub worker: Option<LaneNo>,
    /// With what.
    pub shard: Option<ShardIx>,
    /// The row of the bar it lies on, if it lies on one.
    pub row: Option<u32>,
    /// In words.
    pub text: String,
}

/// What sort of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum MarkKind {
    Worker,
    Stream,
    Row,
    Checkpoint,
    Take,
    Steal,
    Release,
    Lost,
    End,
    Fence,
    Processing,
    Notice,
    Trouble,
    Fault,
    Violation,
}

impl MarkKind {
    /// As the page and its filter call it.
    pub fn name(self) -> &'static str {
        match self {
            MarkKind::Worker => "worker",
            MarkKind::Stream => "stream",
            MarkKind::Row => "row",
            MarkKind::Checkpoint => "checkpoint",
            MarkKind::Take => "take",
            MarkKind::Steal => "steal",
            MarkKind::Release => "release",
            MarkKind::Lost => "lost",
            MarkKind::End => "end",
            MarkKind::Fence => "fence",
            MarkKind::Processing => "processing",
            MarkKind::Notice => "notice",
            MarkKind::Trouble => "trouble",
            MarkKind::Fault => "fault",
            MarkKind::Violation => "violation",
        }
    }
}
