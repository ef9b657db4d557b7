//! What happened, and why: for logs, metrics and explanations. A notice asks for nothing.

use crate::config::InitialPosition;
use crate::end_reason::EndReason;
use crate::fleet::FleetTablesNews;
use crate::ids::{FencingToken, LeaseKey, OpId, ShardId, WorkerId};
use crate::position::{Checkpoint, Position};
use crate::shard::HashRange;
use crate::time::{Span, Wall};
use serde::{Deserialize, Serialize};
use std::fmt;

mod about;
mod fatal;
mod fleet;
mod kind;
mod migration;
mod missed;
mod reason;
mod rows;
mod runtime;
mod sentence;
mod stall;
mod stop;
mod streams;

pub use fatal::Fatal;
pub use fleet::FleetRules;
pub use kind::Severity;
pub use migration::MigrationNews;
use reason::retries;
pub use reason::{Choice, ListReason, LossReason, TakeReason};
pub use runtime::RuntimeNews;
use sentence::{Ids, Sentence};
pub use stall::Stall;
use stop::Count;
pub use stop::{Left, StopSummary};
pub use streams::StreamNews;

/// An event, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Notice {
    /// A life began under this name.
    Booted { worker: WorkerId, hold: Span },
    /// The lease table can be used.
    TableReady { created: bool },
    /// A whole scan of the lease table ended.
    Scanned { leases: u32, unfinished: u32, foreign: u32, unreadable: u32, pages: u32, workers: u32 },
    /// A row cannot be read, and has been unreadable for a while. The worker leaves the row alone, and no worker reads
    /// its shard. The notice comes at once, and then ever more seldom, once an hour in the end, for as long as scans
    /// show the row.
    Unreadable {
        key: LeaseKey,
        detail: String,
        #[serde(default)]
        lasting: Span,
    },
    /// The checkpoint of a row is no place in its shard, by several listings, and the other rows belong to this stream.
    /// No worker takes the lease. The notice is repeated as for an unreadable row.
    Spoiled { lease: LeaseKey, detail: String, lasting: Span },
    /// Our place in the order of leaders changed: 0 leads; absent: we own no lease, and the order names only owners.
    /// `workers` counts the workers in the order.
    Rank { rank: Option<u32>, workers: u32 },
    /// After a scan, some leases were chosen to be taken, and others left.
    Chose(Box<Choice>),
    /// We own a lease from now on.
    Took { lease: LeaseKey, token: FencingToken, why: TakeReason },
    /// We did not get a lease we tried to take.
    MissedTake { lease: LeaseKey, owner: Option<WorkerId> },
    /// We tried to take a lease, and leave the lease to other workers now: our share became full before the attempt
    /// could be repeated.
    Spared { lease: LeaseKey },
    /// We asked the owner of a lease to hand it over to us.
    Claimed { lease: LeaseKey, owner: WorkerId },
    /// A write whose outcome was not known turned out to have been ours and applied.
    Adopted { lease: LeaseKey, counter: u64 },
    /// We are no longer sure of owning a lease: no batch goes to its handler until the doubt is cleared up.
    Fenced { lease: LeaseKey },
    /// The doubt was cleared up in our favour.
    Resumed { lease: LeaseKey },
    /// We own a lease no more.
    Lost { lease: LeaseKey, why: LossReason },
    /// We gave a lease up.
    Released { lease: LeaseKey },
    /// A person or a program removed the row of a lease we own; the row is put back as we know it.
    Restoring { lease: LeaseKey },
    /// A person or a program removed the counter from the row of a lease we own, or the time in the counter's place.
    /// The next write puts it back.
    Mending { lease: LeaseKey },
    /// A shard waits for these shards: for its parents to end before the shard begins, or for the other parents of its
    /// children to have a lease before the shard ends.
    Blocked { lease: LeaseKey, parents: Vec<ShardId> },
    /// The row of a shard names parents that so many listings, apart in time, deny. The shard does not wait for these parents.
    NotParents { lease: LeaseKey, parents: Vec<ShardId>, listings: u32 },
    /// Processing of a shard began: at LATEST or AT_TIMESTAMP, with what arrived since a moment.
    Opened {
        lease: LeaseKey,
        token: FencingToken,
        from: Checkpoint,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Wall>,
    },
    /// Processing of a shard ended.
    Closed { lease: LeaseKey, token: FencingToken, reason: EndReason },
    /// Progress is durable.
    Checkpointed { lease: LeaseKey, position: Position },
    /// The end of a shard is durable, and so are the leases of its children.
    Ended { lease: LeaseKey, children: Vec<ShardId> },
    /// Part of the hash space has no unfinished lease.
    Hole { range: HashRange, seen: u32, needed: u32 },
    /// The shards are being listed.
    Listing { why: ListReason },
    /// The listing cannot be used.
    BadListing { detail: String },
    /// An empty table is not filled yet: a listing names a parent, but does not show the parent.
    ParentUnlisted { parent: ShardId, again_in: Span },
    /// What is missing and will be created.
    Planned { create: u32, shards: u32 },
    /// A lease was created.
    Created { lease: LeaseKey, checkpoint: Checkpoint, why: String },
    /// A finished lease was removed.
    Removed { lease: LeaseKey },
    /// The handler of a shard failed. The batch is handed over again, here after a pause; absent: the lease is being given
    /// up, and its next owner gets the records.
    HandlerFailed { lease: LeaseKey, attempt: u32, again_in: Option<Span>, detail: String },
    /// A lease is held, its shard is or may be behind, and the shard does not move: for how long, and why. The notice
    /// is repeated whenever this time has doubled. `said`: how the last failed request for the lease failed, in the
    /// words of the service. The engine does not know the words, so no trace and no digest holds them: a worker adds
    /// the words.
    Stalled {
        lease: LeaseKey,
        idle: Span,
        why: Stall,
        #[serde(skip)]
        said: Option<String>,
    },
    /// A stalled shard moves on.
    Moving { lease: LeaseKey, after: Span },
    /// Data was trimmed before it was read.
    Trimmed { lease: LeaseKey, detail: String },
    /// A command failed; it is tried again.
    Trouble { op: OpId, lease: Option<LeaseKey>, what: String, how: String, again_in: Span },
    /// A senseless input, ignored.
    Stray { what: String },
    /// An invariant of the engine does not hold: this is a bug of Leasehold. The worker goes on as well as possible.
    InvariantBroken { expected: String },
    /// The worker cannot go on.
    Fatal(Fatal),
    /// The worker shuts down.
    ShuttingDown { held: u32 },
    /// The last notice.
    Stopped(Box<StopSummary>),
    /// A lease of ours is another member's turn by now: we release the lease as soon as the running batch is done.
    Yields { lease: LeaseKey },
    /// This life found leases of this stream in the table, and the leases do not begin at the configured initial
    /// position. The configured position is not the default.
    Continued { table: String, leases: u32, position: InitialPosition },
    /// The application paused this shard; no more batches are handed over; the lease is kept.
    Paused { lease: LeaseKey },
    /// The application resumed a paused or a stopped shard. A pause that ends with the ownership has no notice of its
    /// own.
    PauseEnded { lease: LeaseKey },
    /// A shard is being closed with batches that the handler kept and did not acknowledge.
    Unacknowledged { lease: LeaseKey, batches: u32 },
    /// A record was set aside because its handler failed with it, and counts as processed. The handler failed this many
    /// times with the record alone; `detail` is the last reason.
    SetAside { lease: LeaseKey, position: Position, attempts: u32, detail: String },
    /// A failing record could not be set aside, in this attempt, counted from 1. The next attempt follows after this
    /// pause; absent: the worker is releasing the lease, and the next owner gets the record.
    SetAsideFailed {
        lease: LeaseKey,
        position: Position,
        attempt: u32,
        again_in: Option<Span>,
        detail: String,
    },
    /// The handler failed too often with one record: no more batches of the shard are handed over until the application
    /// resumes the shard. The lease is kept.
    ShardStopped { lease: LeaseKey, position: Position, attempts: u32, detail: String },
    /// Beside workers of KCL 3.x: the rules by which workers get leases, and the present leader.
    Fleet { rules: FleetRules, leader: Option<WorkerId>, leads: bool, workers: u32, unknown: Option<String> },
    /// News of the two tables in which fleets of KCL 3.0 to 3.4 know each other.
    FleetTables(FleetTablesNews),
    /// As the leader, this worker assigns a lease to another worker.
    Assigned { lease: LeaseKey, from: Option<WorkerId>, to: WorkerId },
    /// News of a stream of a worker with several streams.
    Stream(StreamNews),
    /// What the leader of a migration from KCL 2 to KCL 3 found.
    Migration(MigrationNews),
    /// The runtime of the handlers runs nothing, or runs again.
    Runtime(RuntimeNews),
    /// The wall clock went further than the monotonic clock: the machine was suspended, or the wall clock was set. This
    /// many leases are held, and the belief in each ends earlier by this time.
    TimeMissed { by: Span, leases: u32 },
    /// The wall clock went further than the monotonic clock, and did so too often lately: no consequence follows.
    WallIgnored { by: Span },
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Notice::Booted { worker, hold } => write!(
                f,
                "started as {worker}; a lease is valid for {hold} after its last confirmed renewal was sent"
            ),
            Notice::TableReady { created: true } => f.write_str("created the lease table"),
            Notice::TableReady { created: false } => f.write_str("found the lease table"),
            Notice::Scanned { leases, unfinished, workers, pages, foreign, unreadable } => write!(
                f,
                "scanned the lease table: {leases} leases, {unfinished} of them unfinished, {workers} workers ({pages} pages, \
                 {foreign} foreign items, {unreadable} unreadable items)"
            ),
            Notice::Unreadable { key, detail, lasting } => rows::unreadable(f, key, detail, *lasting),
            Notice::Spoiled { lease, detail, lasting } => rows::spoiled(f, lease, detail, *lasting),
            Notice::Rank { rank: Some(rank), workers } => {
                write!(f, "has rank {} of {workers} in the order of leaders", rank + 1)
            }
            Notice::Rank { rank: None, workers: 0 } => {
                f.write_str("has no rank in the order of leaders, which is empty: no worker owns a lease")
            }
            Notice::Rank { rank: None, workers } => write!(
                f,
                "has no rank in the order of leaders, because it owns no lease: {} in it",
                Count(*workers, "worker is", "workers are")
            ),
            Notice::Chose(choice) => write!(f, "{choice}"),
            Notice::Took { lease, why, .. } => why.sentence(f, lease),
            Notice::MissedTake { lease, owner: Some(owner) } => {
                write!(f, "did not get {lease}: its row names {owner}")
            }
            Notice::MissedTake { lease, owner: None } => {
                write!(f, "did not get {lease}: its row changed before the take")
            }
            Notice::Spared { lease } => {
                write!(f, "left {lease} to other workers: this worker has its fair share")
            }
            Notice::Claimed { lease, owner } => write!(f, "asked {owner} to hand over {lease}"),
            Notice::Adopted { lease, counter } => write!(
                f,
                "write of unknown outcome to {lease} was applied: its row shows counter {counter} of this worker"
            ),
            Notice::Fenced { lease } => write!(
                f,
                "lease of {lease} may have expired: its last renewal was not confirmed in time; pausing {lease}"
            ),
            Notice::Resumed { lease } => write!(f, "lease of {lease} is confirmed again; resuming"),
            Notice::Lost { lease, why } => write!(f, "lost {lease}{why}"),
            Notice::Released { lease } => write!(f, "released {lease}"),
            Notice::Restoring { lease } => write!(f, "row of {lease} was removed; putting it back"),
            Notice::Mending { lease } => {
                write!(f, "counter was removed from the row of {lease}; the next write puts it back")
            }
            Notice::NotParents { lease, parents, listings } => write!(
                f,
                "expected the row of {lease} to name the parents of its shard, found {}, and {listings} listings name none of these as \
                 a parent; the shard is read without waiting for them; correct the parents in the row",
                Ids(parents)
            ),
            Notice::Blocked { lease, parents } => write!(f, "{lease} waits for {}", Ids(parents)),
            Notice::Opened { lease, from, since: Some(since), .. } => {
                write!(f, "started processing {lease} from {from}, that is {since}")
            }
            Notice::Opened { lease, from, .. } => write!(f, "started processing {lease} from {from}"),
            Notice::Unacknowledged { lease, batches } => write!(
                f,
                "closing {lease} with {batches} batches that the handler kept and did not acknowledge: the records in them come again \
                 at the next owner; a longer `flush_timeout` gives the handler more time"
            ),
            Notice::Closed { lease, reason, .. } => {
                let why = match reason {
                    EndReason::ShardEnded => "the shard has ended",
                    EndReason::LeaseLost => "the lease was lost",
                    EndReason::Shutdown => "the worker shuts down",
                    EndReason::HandedOver => "the lease is handed over",
                    EndReason::SourceGone => "the worker cannot go on with its stream and table",
                    EndReason::StreamRemoved => "its stream is read no more",
                    EndReason::HandlersBlocked => "no handler can run",
                };
                write!(f, "stopped processing {lease}: {why}")
            }
            Notice::Checkpointed { lease, position } => write!(f, "checkpointed {lease} at {position}"),
            Notice::Ended { lease, children } if children.is_empty() => {
                write!(f, "finished {lease}, which has no children")
            }
            Notice::Ended { lease, children } => {
                let are = if children.len() == 1 { "child is" } else { "children are" };
                write!(f, "finished {lease}, whose {are} {}", Ids(children))
            }
            Notice::Hole { range, seen, needed } => write!(
                f,
                "no unfinished lease covers the hash keys {} to {} (scan {seen} of {needed})",
                range.start, range.end
            ),
            Notice::Listing { why } => write!(f, "listing the shards: {why}"),
            Notice::BadListing { detail } => write!(f, "list of shards cannot be used: {detail}"),
            Notice::ParentUnlisted { parent, again_in } => write!(
                f,
                "list of shards names {parent} as a parent and does not show it: filling the table when several listings say so; listing again in {again_in}"
            ),
            Notice::Planned { create, shards } => {
                write!(f, "planned {create} new leases for {shards} shards")
            }
            Notice::Created { lease, checkpoint, why } => {
                write!(f, "created the lease of {lease} at {checkpoint}: {why}")
            }
            Notice::Removed { lease } => write!(f, "removed the finished lease of {lease}"),
            Notice::HandlerFailed { lease, attempt, again_in, detail } => {
                write!(f, "handler failed for {lease} (attempt {attempt}): {detail}; ")?;
                retries(f, *again_in, "the records")
            }
            Notice::SetAside { lease, position, attempts, detail } => write!(
                f,
                "set aside record {position} of {lease}, which failed {} alone: {detail}; going on after it",
                Count(*attempts, "time", "times")
            ),
            Notice::SetAsideFailed { lease, position, attempt, again_in, detail } => {
                write!(
                    f,
                    "could not set aside record {position} of {lease} (attempt {attempt}): {detail}; "
                )?;
                retries(f, *again_in, "the record")
            }
            Notice::ShardStopped { lease, position, attempts, detail } => write!(
                f,
                "stopped {lease} at record {position}, which failed {} alone: {detail}; the lease is kept and nothing more is \
                 handed over: correct what makes the handler fail and resume the shard, or set `failure_action` to `set-aside`",
                Count(*attempts, "time", "times")
            ),
            Notice::Trimmed { lease, detail } => {
                write!(f, "records of {lease} may be lost: {detail}")
            }
            Notice::Stalled { lease, idle, why, said } => {
                write!(f, "{lease} has made no progress for {idle}: {why}")?;
                said.as_ref().map_or(Ok(()), |said| write!(f, "; {said}"))
            }
            Notice::Moving { lease, after } => write!(f, "{lease} makes progress again after {after}"),
            Notice::Paused { lease } => write!(
                f,
                "paused {lease}, as the application asked: nothing more is handed over, and the lease is kept"
            ),
            Notice::PauseEnded { lease } => write!(f, "ended the pause of {lease}, as the application asked"),
            Notice::Trouble { what, how, again_in, .. } => {
                write!(f, "could not {what}: {how}; retrying in {again_in}")
            }
            Notice::Stray { what } => write!(f, "ignored {what}"),
            Notice::InvariantBroken { expected } => write!(
                f,
                "a bug in Leasehold: expected that {expected}, and found that it is not so; going on. Please report this with a trace"
            ),
            Notice::Fatal(fatal) => write!(f, "cannot go on: {fatal}"),
            Notice::ShuttingDown { held: 1 } => f.write_str("shutting down with 1 lease"),
            Notice::ShuttingDown { held } => write!(f, "shutting down with {held} leases"),
            Notice::Stopped(summary) => write!(f, "stopped{summary}"),
            Notice::Fleet { rules, leader, leads, workers, unknown } => {
                Notice::fleet_sentence(f, *rules, leader.as_ref(), *leads, *workers, unknown.as_deref())
            }
            Notice::FleetTables(news) => write!(f, "{news}"),
            Notice::Assigned { lease, from: None, to } => {
                write!(f, "assigned {lease}, which had no owner, to {to}")
            }
            Notice::Assigned { lease, from: Some(from), to } => {
                write!(f, "moves {lease} from {from} to {to}")
            }
            Notice::Stream(news) => write!(f, "{news}"),
            Notice::Migration(news) => write!(f, "{news}"),
            Notice::Runtime(news) => write!(f, "{news}"),
            Notice::TimeMissed { by, leases } => missed::time(f, *by, *leases),
            Notice::WallIgnored { by } => missed::ignored(f, *by),
            Notice::Yields { lease } => write!(f, "giving up {lease}: by rank it is another member's"),
            Notice::Continued { table, leases, position } => {
                sentence::continued(f, table, *leases, *position)
            }
        }
    }
}
