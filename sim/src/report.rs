//! Displays of worlds: a column log of one world, marks and a summary of many worlds.

use crate::oracles::Time;
use leasehold_engine::notice::Notice;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Named events of a world, each once.
#[derive(Clone, Debug)]
pub struct Marks {
    set: BTreeSet<&'static str>,
    /// The last name of each slot. Most marks are set again and again, and the same text needs no search.
    recent: [&'static str; 64],
}

impl Default for Marks {
    fn default() -> Self {
        Self { set: BTreeSet::new(), recent: [""; 64] }
    }
}

impl PartialEq for Marks {
    fn eq(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

impl Eq for Marks {}

impl Marks {
    /// Sets a mark.
    pub fn set(&mut self, mark: &'static str) {
        let slot = (mark.as_ptr().addr() ^ mark.len()) % self.recent.len();
        if !std::ptr::eq(self.recent[slot], mark) {
            self.recent[slot] = mark;
            self.set.insert(mark);
        }
    }

    /// All marks set, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.set.iter().copied()
    }
}

/// One line for every state change: the time, what every worker holds, the event.
#[derive(Clone, Debug)]
pub struct ColumnLog {
    lines: Vec<String>,
}

impl ColumnLog {
    /// A log with a heading for this many workers.
    pub fn new(workers: usize) -> Self {
        let mut heading = format!("{:>12} |", "time");
        for worker in 0..workers {
            let _ = write!(heading, "{:>4}", format!("w{worker}"));
        }
        heading.push_str(" | event");
        Self { lines: vec![heading] }
    }

    /// Adds a line. `held` has each worker's number of rows, or `None` while the worker is down.
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

    /// All lines.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
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
    fn a_mark_is_kept_once_and_in_order_whatever_came_between() {
        let names: Vec<&'static str> = (0..200).map(|n| &*format!("{n:03}").leak()).collect();
        let mut marks = Marks::default();
        for mark in names.iter().rev().chain(&names) {
            marks.set(mark);
            marks.set(mark);
        }
        assert_eq!(marks.iter().collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_line_has_a_column_for_every_worker() {
        let mut log = ColumnLog::new(2);
        log.line(1_234_567, &[Some(3), None], "w1 dies");
        assert_eq!(log.into_lines(), ["        time |  w0  w1 | event", "       1.234 |   3   - | w1 dies"]);
    }
}
