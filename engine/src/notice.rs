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

use Severity::{Debug, Error, Info, Warning};
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

/// An entry: the meaning, the variant with its fields, then `(name, severity) => (sentence)`. A sentence that depends on
/// more than the fields' texts is `(f: result)`.
macro_rules! notices {
    ($(
        $(#[doc = $about:literal])+
        $Kind:ident $({$($(#[$attribute:meta])* $field:ident: $Type:ty),+ $(,)?})? $(($part:ident: $Part:ty))?:
        $kind:expr => $sentence:tt;
    )+) => {
        /// An event, with its reason.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the names of the fields say it")]
        pub enum Notice {$(
            $(#[doc = $about])+
            $Kind $({$($(#[$attribute])* $field: $Type),+})? $(($Part))?,
        )+}

        /// The name and the severity.
        #[allow(unused_variables, reason = "few kinds depend on a field")]
        fn kind(notice: &Notice) -> (&'static str, Severity) {
            match notice {
                $(Notice::$Kind $({$($field),+})? $(($part))? => $kind,)+
            }
        }

        /// The lease in the first field, if that is the lease.
        fn first_lease(notice: &Notice) -> Option<&LeaseKey> {
            $($(notices! { @lease notice $Kind $($field)+ })?)+
            None
        }

        impl fmt::Display for Sentence<'_> {
            #[allow(unused_variables, reason = "few sentences show all fields")]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $(Notice::$Kind $({$($field),+})? $(($part))? => notices! { @say f $sentence },)+
                }
            }
        }
    };
    (@lease $notice:ident $Kind:ident lease $($more:ident)*) => {
        if let Notice::$Kind { lease, .. } = $notice {
            return Some(lease);
        }
    };
    (@lease $notice:ident $Kind:ident $($more:ident)+) => {};
    (@say $out:ident ($f:ident: $result:expr)) => {{
        let $f = $out;
        $result
    }};
    (@say $out:ident ($($sentence:tt)+)) => { write!($out, $($sentence)+) };
}

notices! {
    /// A life began under this name.
    Booted { worker: WorkerId, hold: Span }: ("booted", Info) =>
        ("started as {worker}; a lease is valid for {hold} after its last confirmed renewal was sent");
    /// The lease table can be used.
    TableReady { created: bool }: ("table-ready", Info) =>
        (f: f.write_str(if *created { "created the lease table" } else { "found the lease table" }));
    /// A whole scan of the lease table ended.
    Scanned { leases: u32, unfinished: u32, foreign: u32, unreadable: u32, pages: u32, workers: u32 }: ("scanned", Debug) =>
        ("scanned the lease table: {leases} leases, {unfinished} of them unfinished, {workers} workers ({pages} pages, \
        {foreign} foreign items, {unreadable} unreadable items)");
    /// A row cannot be read, and has been unreadable for a while. The worker leaves the row alone, and no worker reads
    /// its shard. The notice comes at once, and then ever more seldom, once an hour in the end, for as long as scans
    /// show the row.
    Unreadable {
        key: LeaseKey,
        detail: String,
        #[serde(default)]
        lasting: Span,
    }: ("unreadable", Warning) => (f: rows::unreadable(f, key, detail, *lasting));
    /// The checkpoint of a row is no place in its shard, by several listings, and the other rows belong to this stream.
    /// No worker takes the lease. The notice is repeated as for an unreadable row.
    Spoiled { lease: LeaseKey, detail: String, lasting: Span }: ("spoiled", Warning) =>
        (f: rows::spoiled(f, lease, detail, *lasting));
    /// Our place in the order of leaders changed: 0 leads; absent: we own no lease, and the order names only owners.
    /// `workers` counts the workers in the order.
    Rank { rank: Option<u32>, workers: u32 }: ("rank", Info) => (f: match (rank, workers) {
        (Some(rank), workers) => write!(f, "has rank {} of {workers} in the order of leaders", rank + 1),
        (None, 0) => f.write_str("has no rank in the order of leaders, which is empty: no worker owns a lease"),
        (None, workers) => write!(
            f,
            "has no rank in the order of leaders, because it owns no lease: {} in it",
            Count(*workers, "worker is", "workers are")
        ),
    });
    /// After a scan, some leases were chosen to be taken, and others left.
    Chose(choice: Box<Choice>): ("chose", Debug) => ("{choice}");
    /// We own a lease from now on.
    Took { lease: LeaseKey, token: FencingToken, why: TakeReason }: ("took", Info) =>
        (f: why.sentence(f, lease));
    /// We did not get a lease we tried to take.
    MissedTake { lease: LeaseKey, owner: Option<WorkerId> }: ("missed-take", Debug) => (f: match owner {
        Some(owner) => write!(f, "did not get {lease}: its row names {owner}"),
        None => write!(f, "did not get {lease}: its row changed before the take"),
    });
    /// We tried to take a lease, and leave the lease to other workers now: our share became full before the attempt
    /// could be repeated.
    Spared { lease: LeaseKey }: ("spared", Debug) =>
        ("left {lease} to other workers: this worker has its fair share");
    /// We asked the owner of a lease to hand it over to us.
    Claimed { lease: LeaseKey, owner: WorkerId }: ("claimed", Info) => ("asked {owner} to hand over {lease}");
    /// A write whose outcome was not known turned out to have been ours and applied.
    Adopted { lease: LeaseKey, counter: u64 }: ("adopted", Info) =>
        ("write of unknown outcome to {lease} was applied: its row shows counter {counter} of this worker");
    /// We are no longer sure of owning a lease: no batch goes to its handler until the doubt is cleared up.
    Fenced { lease: LeaseKey }: ("fenced", Warning) =>
        ("lease of {lease} may have expired: its last renewal was not confirmed in time; pausing {lease}");
    /// The doubt was cleared up in our favour.
    Resumed { lease: LeaseKey }: ("resumed", Info) => ("lease of {lease} is confirmed again; resuming");
    /// We own a lease no more.
    Lost { lease: LeaseKey, why: LossReason }: ("lost", Warning) => ("lost {lease}{why}");
    /// We gave a lease up.
    Released { lease: LeaseKey }: ("released", Info) => ("released {lease}");
    /// A person or a program removed the row of a lease we own; the row is put back as we know it.
    Restoring { lease: LeaseKey }: ("restoring", Warning) => ("row of {lease} was removed; putting it back");
    /// A person or a program removed the counter from the row of a lease we own, or the time in the counter's place.
    /// The next write puts it back.
    Mending { lease: LeaseKey }: ("mending", Warning) =>
        ("counter was removed from the row of {lease}; the next write puts it back");
    /// A shard waits for these shards: for its parents to end before the shard begins, or for the other parents of its
    /// children to have a lease before the shard ends.
    Blocked { lease: LeaseKey, parents: Vec<ShardId> }: ("blocked", Debug) =>
        ("{lease} waits for {}", Ids(parents));
    /// The row of a shard names parents that so many listings, apart in time, deny. The shard does not wait for these parents.
    NotParents { lease: LeaseKey, parents: Vec<ShardId>, listings: u32 }: ("not-parents", Warning) =>
        ("expected the row of {lease} to name the parents of its shard, found {}, and {listings} listings name none of these as \
        a parent; the shard is read without waiting for them; correct the parents in the row",
        Ids(parents));
    /// Processing of a shard began: at LATEST or AT_TIMESTAMP, with what arrived since a moment.
    Opened {
        lease: LeaseKey,
        token: FencingToken,
        from: Checkpoint,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Wall>,
    }: ("opened", Info) => (f: {
        write!(f, "started processing {lease} from {from}")?;
        since.map_or(Ok(()), |since| write!(f, ", that is {since}"))
    });
    /// Processing of a shard ended.
    Closed { lease: LeaseKey, token: FencingToken, reason: EndReason }: ("closed", Info) => (f: {
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
    });
    /// Progress is durable.
    Checkpointed { lease: LeaseKey, position: Position }: ("checkpointed", Debug) =>
        ("checkpointed {lease} at {position}");
    /// The end of a shard is durable, and so are the leases of its children.
    Ended { lease: LeaseKey, children: Vec<ShardId> }: ("ended", Info) => (f: match &children[..] {
        [] => write!(f, "finished {lease}, which has no children"),
        [_] => write!(f, "finished {lease}, whose child is {}", Ids(children)),
        _ => write!(f, "finished {lease}, whose children are {}", Ids(children)),
    });
    /// Part of the hash space has no unfinished lease.
    Hole { range: HashRange, seen: u32, needed: u32 }: ("hole", Info) =>
        ("no unfinished lease covers the hash keys {} to {} (scan {seen} of {needed})",
        range.start, range.end);
    /// The shards are being listed.
    Listing { why: ListReason }: ("listing", Debug) => ("listing the shards: {why}");
    /// The listing cannot be used.
    BadListing { detail: String }: ("bad-listing", Warning) => ("list of shards cannot be used: {detail}");
    /// An empty table is not filled yet: a listing names a parent, but does not show the parent.
    ParentUnlisted { parent: ShardId, again_in: Span }: ("parent-unlisted", Info) =>
        ("list of shards names {parent} as a parent and does not show it: filling the table when several listings say so; listing again in {again_in}");
    /// What is missing and will be created.
    Planned { create: u32, shards: u32 }: ("planned", Info) =>
        ("planned {create} new leases for {shards} shards");
    /// A lease was created.
    Created { lease: LeaseKey, checkpoint: Checkpoint, why: String }: ("created", Info) =>
        ("created the lease of {lease} at {checkpoint}: {why}");
    /// A finished lease was removed.
    Removed { lease: LeaseKey }: ("removed", Info) => ("removed the finished lease of {lease}");
    /// The handler of a shard failed. The batch is handed over again, here after a pause; absent: the lease is being given
    /// up, and its next owner gets the records.
    HandlerFailed { lease: LeaseKey, attempt: u32, again_in: Option<Span>, detail: String }: ("handler-failed", Warning) =>
        (f: {
        write!(f, "handler failed for {lease} (attempt {attempt}): {detail}; ")?;
        retries(f, *again_in, "the records")
    });
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
    }: ("stalled", Warning) => (f: {
        write!(f, "{lease} has made no progress for {idle}: {why}")?;
        said.as_ref().map_or(Ok(()), |said| write!(f, "; {said}"))
    });
    /// A stalled shard moves on.
    Moving { lease: LeaseKey, after: Span }: ("moving", Info) =>
        ("{lease} makes progress again after {after}");
    /// Data was trimmed before it was read.
    Trimmed { lease: LeaseKey, detail: String }: ("trimmed", Error) =>
        ("records of {lease} may be lost: {detail}");
    /// A command failed; it is tried again.
    Trouble { op: OpId, lease: Option<LeaseKey>, what: String, how: String, again_in: Span }: ("trouble", Warning) =>
        ("could not {what}: {how}; retrying in {again_in}");
    /// A senseless input, ignored.
    Stray { what: String }: ("stray", Warning) => ("ignored {what}");
    /// An invariant of the engine does not hold: this is a bug of Leasehold. The worker goes on as well as possible.
    InvariantBroken { expected: String }: ("invariant_broken", Error) =>
        ("a bug in Leasehold: expected that {expected}, and found that it is not so; going on. Please report this with a trace");
    /// The worker cannot go on.
    Fatal(fatal: Fatal): ("fatal", Error) => ("cannot go on: {fatal}");
    /// The worker shuts down.
    ShuttingDown { held: u32 }: ("shutting-down", Info) =>
        ("shutting down with {}", Count(*held, "lease", "leases"));
    /// The last notice.
    Stopped(summary: Box<StopSummary>): ("stopped", if summary.is_clean() { Info } else { Warning }) =>
        ("stopped{summary}");
    /// A lease of ours is another member's turn by now: we release the lease as soon as the running batch is done.
    Yields { lease: LeaseKey }: ("yields", Info) => ("giving up {lease}: by rank it is another member's");
    /// This life found leases of this stream in the table, and the leases do not begin at the configured initial
    /// position. The configured position is not the default.
    Continued { table: String, leases: u32, position: InitialPosition }: ("continued", Warning) => (f: {
        sentence::continued(f, table, *leases, *position)
    });
    /// The application paused this shard; no more batches are handed over; the lease is kept.
    Paused { lease: LeaseKey }: ("paused", Info) =>
        ("paused {lease}, as the application asked: nothing more is handed over, and the lease is kept");
    /// The application resumed a paused or a stopped shard. A pause that ends with the ownership has no notice of its
    /// own.
    PauseEnded { lease: LeaseKey }: ("pause-ended", Info) =>
        ("ended the pause of {lease}, as the application asked");
    /// A shard is being closed with batches that the handler kept and did not acknowledge.
    Unacknowledged { lease: LeaseKey, batches: u32 }: ("unacknowledged", Warning) =>
        ("closing {lease} with {batches} batches that the handler kept and did not acknowledge: the records in them come again \
        at the next owner; a longer `flush_timeout` gives the handler more time");
    /// A record was set aside because its handler failed with it, and counts as processed. The handler failed this many
    /// times with the record alone; `detail` is the last reason.
    SetAside { lease: LeaseKey, position: Position, attempts: u32, detail: String }: ("set-aside", Warning) =>
        ("set aside record {position} of {lease}, which failed {} alone: {detail}; going on after it",
        Count(*attempts, "time", "times"));
    /// A failing record could not be set aside, in this attempt, counted from 1. The next attempt follows after this
    /// pause; absent: the worker is releasing the lease, and the next owner gets the record.
    SetAsideFailed {
        lease: LeaseKey,
        position: Position,
        attempt: u32,
        again_in: Option<Span>,
        detail: String,
    }: ("set-aside-failed", Warning) => (f: {
        write!(
            f,
            "could not set aside record {position} of {lease} (attempt {attempt}): {detail}; "
        )?;
        retries(f, *again_in, "the record")
    });
    /// The handler failed too often with one record: no more batches of the shard are handed over until the application
    /// resumes the shard. The lease is kept.
    ShardStopped { lease: LeaseKey, position: Position, attempts: u32, detail: String }: ("shard-stopped", Error) =>
        ("stopped {lease} at record {position}, which failed {} alone: {detail}; the lease is kept and nothing more is \
        handed over: correct what makes the handler fail and resume the shard, or set `failure_action` to `set-aside`",
        Count(*attempts, "time", "times"));
    /// Beside workers of KCL 3.x: the rules by which workers get leases, and the present leader.
    Fleet { rules: FleetRules, leader: Option<WorkerId>, leads: bool, workers: u32, unknown: Option<String> }: ("fleet", if unknown.is_some() { Warning } else { Info }) =>
        (f: {
        Notice::fleet_sentence(f, *rules, leader.as_ref(), *leads, *workers, unknown.as_deref())
    });
    /// News of the two tables in which fleets of KCL 3.0 to 3.4 know each other.
    FleetTables(news: FleetTablesNews): ("fleet-tables", news_severity(news)) => ("{news}");
    /// As the leader, this worker assigns a lease to another worker.
    Assigned { lease: LeaseKey, from: Option<WorkerId>, to: WorkerId }: ("assigned", Info) => (f: match from {
        None => write!(f, "assigned {lease}, which had no owner, to {to}"),
        Some(from) => write!(f, "moves {lease} from {from} to {to}"),
    });
    /// News of a stream of a worker with several streams.
    Stream(news: StreamNews): news.kind() => ("{news}");
    /// What the leader of a migration from KCL 2 to KCL 3 found.
    Migration(news: MigrationNews): news.kind() => ("{news}");
    /// The runtime of the handlers runs nothing, or runs again.
    Runtime(news: RuntimeNews): news.kind() => ("{news}");
    /// The wall clock went further than the monotonic clock: the machine was suspended, or the wall clock was set. This
    /// many leases are held, and the belief in each ends earlier by this time.
    TimeMissed { by: Span, leases: u32 }: ("time-missed", Warning) => (f: missed::time(f, *by, *leases));
    /// The wall clock went further than the monotonic clock, and did so too often lately: no consequence follows.
    WallIgnored { by: Span }: ("wall-ignored", Warning) => (f: missed::ignored(f, *by));
}

/// The severity of news of the tables of a fleet.
fn news_severity(news: &FleetTablesNews) -> Severity {
    match news {
        FleetTablesNews::Unknown { .. } | FleetTablesNews::Unreadable { .. } => Warning,
        _ => Info,
    }
}
