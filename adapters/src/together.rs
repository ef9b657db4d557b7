//! Groups warnings about many leases in one moment into few lines of the log.
//!
//! A worker that stood still doubts all its leases at once, and loses the leases taken by other workers meanwhile.
//! The first warning of a kind is a line. The warnings of that kind within the next second are counted, and one more
//! line names their leases.

use leasehold_engine::ids::LeaseKey;
use leasehold_engine::notice::Notice;
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

/// For how long after a line the warnings of its kind are counted.
const APART: Span = Span::from_secs(1);
/// A line names no more leases.
const NAMED: usize = 20;

/// What is counted of one kind.
#[derive(Debug)]
struct Group {
    until: Mono,
    leases: Vec<LeaseKey>,
}

/// The kinds with a recent line.
#[derive(Debug, Default)]
pub(crate) struct Together {
    groups: BTreeMap<&'static str, Group>,
}

impl Together {
    /// Whether a later line covers this notice. Call `due` first for the lines due earlier.
    pub(crate) fn counts(&mut self, at: Mono, notice: &Notice) -> bool {
        let (Notice::Fenced { lease } | Notice::Lost { lease, .. }) = notice else {
            return false;
        };
        match self.groups.get_mut(notice.name()) {
            Some(group) if at < group.until => {
                group.leases.push(lease.clone());
                true
            }
            _ => {
                let (until, leases) = (at + APART, Vec::new());
                self.groups.insert(notice.name(), Group { until, leases });
                false
            }
        }
    }

    /// The due lines, each with its kind.
    pub(crate) fn due(&mut self, now: Mono) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        self.groups.retain(|kind, group| {
            if now < group.until {
                return true;
            }
            let leases = std::mem::take(&mut group.leases);
            lines.extend(line(kind, &leases).map(|line| (*kind, line)));
            group.until = now + APART;
            !leases.is_empty()
        });
        lines
    }

    /// The lines of all that was counted: the worker has stopped.
    pub(crate) fn rest(&mut self) -> Vec<(&'static str, String)> {
        let groups = std::mem::take(&mut self.groups).into_iter();
        let lines = groups.map(|(kind, group)| Some((kind, line(kind, &group.leases)?)));
        lines.flatten().collect()
    }
}

fn line(kind: &str, leases: &[LeaseKey]) -> Option<String> {
    let named: Vec<&str> = leases.iter().take(NAMED).map(LeaseKey::as_str).collect();
    let (count, names) = (leases.len(), named.join(", "));
    let more = match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (noun, their) = match count {
        0 => return None,
        1 => ("lease", "its last renewal was"),
        _ => ("leases", "their last renewals were"),
    };
    Some(match kind {
        "fenced" => {
            format!(
                "{count} more {noun} may have expired: {their} not confirmed in time; pausing {names}{more}"
            )
        }
        _ => format!(
            "lost {count} more {noun}, each for a reason that a line of level DEBUG tells: {names}{more}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::notice::LossReason;

    fn fenced(n: u32) -> Notice {
        let lease = format!("shard-{n}").into();
        Notice::Fenced { lease }
    }

    fn lost(n: u32) -> Notice {
        let (lease, why) = (format!("shard-{n}").into(), LossReason::RowGone);
        Notice::Lost { lease, why }
    }

    fn second(n: u64) -> Mono {
        Mono(0) + Span::from_secs(n)
    }

    #[test]
    fn the_first_of_a_kind_is_a_line_and_one_more_names_the_others() {
        let mut together = Together::default();
        let counted: Vec<bool> = (0..4).map(|n| together.counts(second(1), &fenced(n))).collect();
        assert_eq!(counted, [false, true, true, true]);
        assert!(!together.counts(second(1), &lost(0)), "another kind");
        assert_eq!(together.due(second(1)), []);
        let line = "3 more leases may have expired: their last renewals were not confirmed in time; pausing shard-1, shard-2, shard-3";
        assert_eq!(together.due(second(2)), [("fenced", line.to_owned())]);
        assert!(together.counts(second(2), &fenced(9)), "right after the line");
        assert!(!together.counts(second(5), &lost(1)), "long after it");
    }

    #[test]
    fn counted_lines_are_told_when_the_worker_stops() {
        let mut together = Together::default();
        for n in 0..23 {
            together.counts(second(1), &lost(n));
        }
        let lines = together.rest();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].1.starts_with("lost 22 more leases"), "{lines:?}");
        assert!(lines[0].1.ends_with("shard-20 and 2 more"), "{lines:?}");
        assert_eq!(together.rest(), []);
    }
}
