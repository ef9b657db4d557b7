//! Trouble that no failed request explains, as few lines of the log: an answer that is not used, above all.
//!
//! A service that repeats its answers gives such trouble with every answer about every shard. Sentences that differ in
//! numbers and leases alone are of one cause: the first is a line, and the later ones are counted.

use super::{Leases, More, PAUSE, Trouble};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::time::Mono;
use std::collections::{BTreeMap, BTreeSet};

/// More causes than these are one cause: a sentence may hold words of an answer.
const CAUSES: usize = 32;

/// The troubles of one cause.
#[derive(Debug)]
struct Repeat {
    /// The last one.
    line: String,
    last: Mono,
    told: Mono,
    /// How many no line has told of yet, and the leases they are about.
    more: u64,
    leases: BTreeSet<LeaseKey>,
}

/// Groups troubles by their sentences.
#[derive(Debug, Default)]
pub(super) struct Repeats(BTreeMap<String, Repeat>);

impl Repeats {
    /// Gives a line, unless a recent line has told of this cause.
    pub(super) fn trouble(&mut self, now: Mono, trouble: &Trouble<'_>) -> Option<String> {
        let line = format!("could not {}: {}", trouble.what, trouble.how);
        let mut cause = cause(&line);
        if self.0.len() >= CAUSES && !self.0.contains_key(&cause) {
            cause = String::new();
        }
        let Some(repeat) = self.0.get_mut(&cause) else {
            let new = Repeat { line: line.clone(), last: now, told: now, more: 0, leases: BTreeSet::new() };
            self.0.insert(cause, new);
            return Some(line);
        };
        (repeat.last, repeat.line) = (now, line.clone());
        let silence = now.since(repeat.told);
        if silence < PAUSE {
            repeat.more += 1;
            repeat.leases.extend(trouble.lease.cloned());
            return None;
        }
        let (more, leases) = (std::mem::take(&mut repeat.more), std::mem::take(&mut repeat.leases));
        repeat.told = now;
        Some(match more {
            0 => line,
            _ => format!("{line}; {more} more of these in the last {silence}{}", Leases(leases.len())),
        })
    }

    /// Lines about causes that ended a while ago.
    pub(super) fn over(&mut self, now: Mono) -> Vec<String> {
        let mut lines = Vec::new();
        self.0.retain(|_, repeat| {
            let since = now.since(repeat.last);
            if since < PAUSE {
                return true;
            }
            if repeat.more > 0 {
                let more = More(repeat.more);
                lines.push(format!("is over: {}; the last time was {since} ago{more}", repeat.line));
            }
            false
        });
        lines
    }
}

/// A sentence without what differs from lease to lease: words with digits.
fn cause(line: &str) -> String {
    let words = line.split(' ');
    let kept = words.filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit()));
    kept.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::op;
    use leasehold_engine::time::Span;

    /// Trouble with the answer about a shard, at a time in milliseconds.
    fn read(repeats: &mut Repeats, at: u64, shard: u64, how: &str) -> Option<String> {
        let lease = LeaseKey::from(format!("shard-{shard}").as_str());
        let what = format!("read {lease}");
        repeats.trouble(Mono(at * 1_000), &Trouble { op: op(at), lease: Some(&lease), what: &what, how })
    }

    #[test]
    fn the_answers_of_many_shards_are_one_line_a_minute() {
        let mut repeats = Repeats::default();
        let mut lines = Vec::new();
        for at in (0..125_000).step_by(100) {
            let how = format!("expected records after {at}, found none");
            lines.extend(read(&mut repeats, at, at / 100 % 40, &how));
        }
        assert_eq!(
            lines,
            [
                "could not read shard-0: expected records after 0, found none",
                "could not read shard-0: expected records after 60000, found none; 599 more of these in the last 60.000s, of 40 leases",
                "could not read shard-0: expected records after 120000, found none; 599 more of these in the last 60.000s, of 40 leases",
            ]
        );
        assert_eq!(repeats.over(Mono(0) + Span::from_secs(184)), Vec::<String>::new());
        assert_eq!(
            repeats.over(Mono(0) + Span::from_secs(185)),
            [
                "is over: could not read shard-9: expected records after 124900, found none; the last time was 60.100s ago; 49 more \
              requests had failed"
            ]
        );
        assert!(read(&mut repeats, 200_000, 1, "expected records after 1, found none").is_some());
    }

    #[test]
    fn causes_are_told_apart_up_to_a_number() {
        let mut repeats = Repeats::default();
        assert!(read(&mut repeats, 0, 1, "this").is_some());
        assert!(read(&mut repeats, 0, 2, "that").is_some());
        assert!(read(&mut repeats, 1, 3, "this").is_none());
        let causes = (0..100_usize).map(|n| "x".repeat(n + 1));
        let told = causes.filter(|how| read(&mut repeats, 2, 1, how).is_some()).count();
        assert_eq!(told, CAUSES - 1, "the last one stands for all the others");
    }
}
