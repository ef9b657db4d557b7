//! `--until-caught-up`: the worker ends when everything is printed that was in its streams when the command began.

use leasehold::admin::{Admin, NamedStream, Shard, View};
use leasehold::aws::kinesis;
use leasehold::{Control, FencingToken, LeaseKey, Notice, Phase, Status, StreamNews, WorkerId};
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_millis(250);

/// A shard is at its tip when two reads say so, since one answer may come from a replica that is behind. From the first read to the second
/// one, so much time passes at least.
const APART: Span = Span::from_secs(1);

/// When a read first said that a shard is at its tip, since the command began, for each ownership. A read that says otherwise takes that back.
#[derive(Debug, Default)]
struct Tips(BTreeMap<(LeaseKey, FencingToken), Span>);

/// What was seen of the rows of other workers: the counter at first, and whether it has changed.
type Others = BTreeMap<LeaseKey, (u64, bool)>;

/// Where it is looked.
pub(super) struct Goal {
    pub(super) admin: Admin,
    pub(super) kinesis: kinesis::Client,
    pub(super) streams: Vec<NamedStream>,
    pub(super) lost: Arc<Lost>,
}

/// The streams of several that the worker cannot go on with, and why.
#[derive(Debug, Default)]
pub(super) struct Lost(Mutex<BTreeMap<String, String>>);

impl Lost {
    pub(super) fn observe(&self, notice: &Notice) {
        if let Notice::Stream(StreamNews::Lost { stream, why }) = notice {
            let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lost.insert(stream.clone(), why.to_string());
        }
    }

    fn has(&self, stream: &NamedStream) -> bool {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.id().is_some_and(|id| lost.contains_key(id.as_str()))
    }

    /// What was not read to its end, in a sentence.
    pub(super) fn told(&self) -> Option<String> {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = lost.iter().map(|(stream, why)| format!("has not caught up with stream {stream}: {why}"));
        (!lost.is_empty()).then(|| each.collect::<Vec<_>>().join("; "))
    }
}

/// Shuts the worker down once it has caught up with what was there when the command began.
pub(super) async fn end(control: Control, goal: Goal, began: Instant) {
    let mut others = Others::new();
    let (mut before, mut tips) = (false, Tips::default());
    loop {
        tokio::time::sleep(LOOK).await;
        let status = control.status();
        if status.phase == Phase::Stopping || status.phase == Phase::Stopped {
            return;
        }
        let mut now =
            status.phase == Phase::Running && tips.are_reached(&status, Span::from(began.elapsed()));
        // What cannot be read now is looked at again; the worker says in its log what is wrong with it.
        if now {
            now = goal.is_reached(&status, &mut others).await;
        }
        // Scans may lag: one alone shows no child of a shard that has just ended.
        if now && before {
            return control.shutdown();
        }
        before = now;
    }
}

impl Goal {
    /// Whether each stream that is read is covered by leases.
    async fn is_reached(&self, status: &Status, others: &mut Others) -> bool {
        let Ok(view) = self.admin.view().await else {
            return false;
        };
        let mut reached = true;
        for stream in self.streams.iter().filter(|stream| !self.lost.has(stream)) {
            let mut view = view.clone();
            view.keep_stream(stream.id());
            let shards = self.admin.shards(&self.kinesis, stream).await;
            reached &= is_covered(&view, status, others);
            reached &= shards.is_ok_and(|shards| are_leased(&shards, &view));
        }
        reached
    }
}

impl Tips {
    /// Whether of each shard that is held everything is processed that came before the command began, by two reads. `at`: the time since then.
    fn are_reached(&mut self, status: &Status, at: Span) -> bool {
        let mut reached = true;
        for lease in &status.leases {
            let of = (lease.lease.clone(), lease.token);
            // An answer that is doubted shows no tip: the shard waits for another answer then.
            let all = lease.open && lease.read && lease.waiting == 0 && lease.waits_for.is_none();
            reached &= self.is_reached(of, all, lease.behind, at);
        }
        reached
    }

    /// Whether two reads have come to the tip of one shard. All records of the shard are processed, but those of the last `behind`. If that is
    /// from before the command began, the reads before showed no tip. `all`: nothing waits to be processed now.
    fn is_reached(&mut self, of: (LeaseKey, FencingToken), all: bool, behind: Span, at: Span) -> bool {
        if behind > at {
            self.0.remove(&of);
            return false;
        }
        all && *self.0.entry(of).or_insert(at) + APART + behind <= at
    }
}

/// Whether each open shard has an unfinished lease. The children of a shard have none while its end is not read, though the shard may be
/// at its tip.
fn are_leased(shards: &[Shard], view: &View) -> bool {
    let mut open = shards.iter().filter(|shard| shard.is_open());
    open.all(|shard| {
        let row = view.leases.get(shard.id.as_str());
        row.is_some_and(|row| !row.checkpoint.is_end())
    })
}

/// Whether each unfinished lease is held here, or by another worker that was seen to renew it.
fn is_covered(view: &View, status: &Status, others: &mut Others) -> bool {
    let held: BTreeSet<&LeaseKey> = status.leases.iter().map(|lease| &lease.lease).collect();
    let mut covered = !view.leases.is_empty() && view.unreadable.is_empty();
    for row in view.leases.values().filter(|row| !row.checkpoint.is_end()) {
        let seen = others.entry(row.key.clone()).or_insert((row.counter, false));
        seen.1 |= seen.0 != row.counter;
        let theirs = |owner: &WorkerId| status.worker.as_ref() != Some(owner);
        covered &= held.contains(&row.key) || (seen.1 && row.actual_owner().is_some_and(theirs));
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{Checkpoint, LeaseRow};

    fn view(rows: &[(&str, Option<&str>, u64, Checkpoint)]) -> View {
        let mut view = View::default();
        for (key, owner, counter, checkpoint) in rows {
            let mut row = LeaseRow::new((*key).into(), *checkpoint);
            (row.owner, row.counter) = (owner.map(Into::into), *counter);
            view.leases.insert(row.key.clone(), row);
        }
        view
    }

    #[test]
    fn a_shard_is_at_its_tip_when_two_reads_a_second_apart_say_so() {
        let mut tips = Tips::default();
        let mut reached = |at: u64, behind: u64| {
            let of = (LeaseKey::from("a"), FencingToken(1));
            tips.is_reached(of, true, Span::from_millis(behind), Span::from_millis(at))
        };
        assert!(!reached(500, 600), "the read began before the command");
        assert!(!reached(500, 100), "one read");
        assert!(!reached(1_600, 1_200), "the same read, later");
        assert!(!reached(1_600, 200), "another read, too soon");
        assert!(reached(2_000, 300));
    }

    #[test]
    fn a_read_that_is_behind_takes_the_tip_back() {
        let mut tips = Tips::default();
        let mut read = |at: u64, behind: u64, waiting: u32| {
            let of = (LeaseKey::from("a"), FencingToken(1));
            tips.is_reached(of, waiting == 0, Span::from_millis(behind), Span::from_millis(at))
        };
        assert!(!read(500, 0, 0), "one read");
        assert!(!read(800, 9_000, 0), "all is processed, and the answer was behind");
        assert!(!read(2_000, 0, 0), "one read again");
        assert!(!read(2_200, 700, 4), "these came since the command began");
        assert!(read(3_000, 0, 0));
        assert!(!read(3_250, 9_000, 7), "an older record waits");
        assert!(!read(3_500, 0, 0));
        assert!(read(4_500, 0, 0));
    }

    #[test]
    fn a_lease_counts_only_if_it_is_held_or_its_owner_was_seen_to_live() {
        let mut status = Status::default();
        status.worker = Some("me".into());
        let mut others = Others::new();
        let (open, ended) = (Checkpoint::TrimHorizon, Checkpoint::ShardEnd);
        let mut covered = |rows: &[_]| is_covered(&view(rows), &status, &mut others);
        assert!(!covered(&[]), "an empty table is filled first");
        assert!(covered(&[("a", None, 1, ended)]));
        assert!(!covered(&[("b", None, 1, open)]), "no worker has it");
        assert!(!covered(&[("b", Some("me"), 2, open)]), "it was taken and is not held yet");
        assert!(!covered(&[("c", Some("other"), 5, open)]), "it may be dead");
        assert!(covered(&[("c", Some("other"), 6, open)]));
    }
}
