//! What is shown of worlds: a column log of one, marks and a summary of many.

use crate::oracles::Time;
use leasehold_engine::notice::{LossReason, Notice, TakeReason};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Named things that occurred in a world, each once however often it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeSet<&'static str>);

impl Marks {
    /// It occurred.
    pub fn set(&mut self, mark: &'static str) {
        self.0.insert(mark);
    }

    /// What occurred, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().copied()
    }
}

/// One line for every state change: the time, what every worker holds, the event.
#[derive(Clone, Debug)]
pub struct ColumnLog {
    lines: Vec<String>,
}

impl ColumnLog {
    /// A log with a heading for so many workers.
    pub fn new(workers: usize) -> Self {
        let mut heading = format!("{:>12} |", "time");
        for worker in 0..workers {
            let _ = write!(heading, "{:>4}", format!("w{worker}"));
        }
        heading.push_str(" | event");
        Self { lines: vec![heading] }
    }

    /// Adds a line. `held`: how many leases name each worker; none if it is down.
    pub fn line(&mut self, now: Time, held: &[Option<u32>], event: &str) {
        let mut line = format!("{:>8}.{:03} |", now / 1_000_000, now / 1_000 % 1_000);
        for held in held {
            let _ = match held {
                Some(count) => write!(line, "{count:>4}"),
                None => write!(line, "{:>4}", "-"),
            };
        }
        let _ = write!(line, " | {event}");
        self.lines.push(line);
    }

    /// All of it.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

/// The mark of a notice, if it has one.
pub(crate) fn mark_of(notice: &Notice) -> Option<&'static str> {
    Some(match notice {
        Notice::Took {
            why: TakeReason::Unowned,
            ..
        } => "engine/took-unowned",
        Notice::Took {
            why: TakeReason::Expired { .. },
            ..
        } => "engine/took-expired",
        Notice::Took {
            why: TakeReason::Stolen { .. },
            ..
        } => "engine/stole",
        Notice::Took {
            why: TakeReason::Ours,
            ..
        } => "engine/found-own",
        Notice::MissedTake { .. } => "engine/missed-take",
        Notice::Adopted { .. } => "engine/adopted",
        Notice::Fenced { .. } => "engine/fenced",
        Notice::Resumed { .. } => "engine/resumed",
        Notice::Lost {
            why: LossReason::Taken { .. },
            ..
        } => "engine/lost-taken",
        Notice::Lost {
            why: LossReason::RowGone,
            ..
        } => "engine/lost-row-gone",
        Notice::Lost { .. } => "engine/lost-other",
        Notice::Released { .. } => "engine/released",
        Notice::Restoring { .. } => "engine/restoring",
        Notice::Blocked { .. } => "engine/blocked",
        Notice::Ended { .. } => "engine/ended",
        Notice::Hole { .. } => "engine/hole",
        Notice::BadListing { .. } => "engine/bad-listing",
        Notice::Created { .. } => "engine/created",
        Notice::Removed { .. } => "engine/removed",
        Notice::HandlerFailed { .. } => "engine/handler-failed",
        Notice::Unreadable { .. } => "engine/unreadable",
        Notice::Stray { .. } => "engine/stray",
        Notice::Fatal(_) => "engine/fatal",
        _ => return None,
    })
}

/// Whether a notice is a state change rather than chatter.
pub(crate) fn is_worth_a_line(notice: &Notice) -> bool {
    !matches!(
        notice,
        Notice::Scanned { .. }
            | Notice::Checkpointed { .. }
            | Notice::Rank { .. }
            | Notice::Booted { .. }
            | Notice::Chose(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_column_for_every_worker() {
        let mut log = ColumnLog::new(2);
        log.line(1_234_567, &[Some(3), None], "w1 dies");
        assert_eq!(
            log.into_lines(),
            [
                "        time |  w0  w1 | event",
                "       1.234 |   3   - | w1 dies"
            ]
        );
    }
}
