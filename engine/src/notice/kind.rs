//! The name and the severity of every notice.

use super::Notice;
use crate::fleet::FleetTablesNews;

/// How much attention a notice asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// A step of the protocol: of interest when one looks into a worker.
    Debug,
    /// A change of the worker's leases or of its work.
    Info,
    /// An event out of the ordinary. The worker deals with the event, but a person may be needed in the end.
    Warning,
    /// Records were lost, or the worker cannot go on with a shard or at all.
    Error,
}

impl Notice {
    /// A short, stable name, such as `took`: the label `kind` of metrics and log lines.
    pub fn name(&self) -> &'static str {
        kind(self).0
    }

    /// How much attention it asks for: a worker logs it at the level of the same name.
    pub fn severity(&self) -> Severity {
        kind(self).1
    }
}

fn kind(notice: &Notice) -> (&'static str, Severity) {
    use Severity::{Debug, Error, Info, Warning};
    match notice {
        Notice::TimeMissed { .. } => ("time-missed", Warning),
        Notice::WallIgnored { .. } => ("wall-ignored", Warning),
        Notice::Booted { .. } => ("booted", Info),
        Notice::TableReady { .. } => ("table-ready", Info),
        Notice::Scanned { .. } => ("scanned", Debug),
        Notice::Unreadable { .. } => ("unreadable", Warning),
        Notice::Spoiled { .. } => ("spoiled", Warning),
        Notice::Rank { .. } => ("rank", Info),
        Notice::Chose(_) => ("chose", Debug),
        Notice::Took { .. } => ("took", Info),
        Notice::MissedTake { .. } => ("missed-take", Debug),
        Notice::Spared { .. } => ("spared", Debug),
        Notice::Claimed { .. } => ("claimed", Info),
        Notice::Yields { .. } => ("yields", Info),
        Notice::Continued { .. } => ("continued", Warning),
        Notice::Adopted { .. } => ("adopted", Info),
        Notice::Fenced { .. } => ("fenced", Warning),
        Notice::Resumed { .. } => ("resumed", Info),
        Notice::Lost { .. } => ("lost", Warning),
        Notice::Released { .. } => ("released", Info),
        Notice::Restoring { .. } => ("restoring", Warning),
        Notice::Mending { .. } => ("mending", Warning),
        Notice::Blocked { .. } => ("blocked", Debug),
        Notice::NotParents { .. } => ("not-parents", Warning),
        Notice::Opened { .. } => ("opened", Info),
        Notice::Closed { .. } => ("closed", Info),
        Notice::Unacknowledged { .. } => ("unacknowledged", Warning),
        Notice::Checkpointed { .. } => ("checkpointed", Debug),
        Notice::Ended { .. } => ("ended", Info),
        Notice::Hole { .. } => ("hole", Info),
        Notice::Listing { .. } => ("listing", Debug),
        Notice::BadListing { .. } => ("bad-listing", Warning),
        Notice::ParentUnlisted { .. } => ("parent-unlisted", Info),
        Notice::Planned { .. } => ("planned", Info),
        Notice::Created { .. } => ("created", Info),
        Notice::Removed { .. } => ("removed", Info),
        Notice::HandlerFailed { .. } => ("handler-failed", Warning),
        Notice::Stalled { .. } => ("stalled", Warning),
        Notice::Moving { .. } => ("moving", Info),
        Notice::Paused { .. } => ("paused", Info),
        Notice::PauseEnded { .. } => ("pause-ended", Info),
        Notice::SetAside { .. } => ("set-aside", Warning),
        Notice::SetAsideFailed { .. } => ("set-aside-failed", Warning),
        Notice::ShardStopped { .. } => ("shard-stopped", Error),
        Notice::Fleet { unknown: Some(_), .. } => ("fleet", Warning),
        Notice::Fleet { .. } => ("fleet", Info),
        Notice::FleetTables(FleetTablesNews::Unknown { .. } | FleetTablesNews::Unreadable { .. }) => {
            ("fleet-tables", Warning)
        }
        Notice::FleetTables(_) => ("fleet-tables", Info),
        Notice::Stream(news) => news.kind(),
        Notice::Migration(news) => news.kind(),
        Notice::Runtime(news) => news.kind(),
        Notice::Assigned { .. } => ("assigned", Info),
        Notice::Trimmed { .. } => ("trimmed", Error),
        Notice::Trouble { .. } => ("trouble", Warning),
        Notice::Stray { .. } => ("stray", Warning),
        Notice::InvariantBroken { .. } => ("invariant_broken", Error),
        Notice::Fatal(_) => ("fatal", Error),
        Notice::ShuttingDown { .. } => ("shutting-down", Info),
        Notice::Stopped(summary) if summary.is_clean() => ("stopped", Info),
        Notice::Stopped(_) => ("stopped", Warning),
    }
}
