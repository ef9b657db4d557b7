//! `--until-caught-up`: the worker ends after printing every record that its streams held when the command began.

use super::hindrance::{Hindrance, Teller};
use super::late::FoundLate;
use leasehold::admin::{Admin, NamedStream, Shard, View};
use leasehold::aws::kinesis;
use leasehold::{Control, FencingToken, LeaseKey, Notice, Phase, Status, StreamNews, WorkerId};
use leasehold_engine::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(250);

/// A shard is at its tip only after two reads say so, since one answer may come from a lagging replica. `APART` is the
/// shortest time between the two reads.
const APART: Span = Span::from_secs(1);

/// The time of the first read at the tip, since the command began, for each ownership. A later read behind the tip
/// removes the time.
#[derive(Debug, Default)]
struct Tips(BTreeMap<(LeaseKey, FencingToken), Span>);

/// Observed rows of other workers: the first counter, and whether the counter has changed.
type Others = BTreeMap<LeaseKey, (u64, bool)>;

/// Where it is looked.
pub(super) struct Goal {
    pub(super) admin: Admin,
    pub(super) kinesis: kinesis::Client,
    pub(super) streams: Vec<NamedStream>,
    /// The streams that are found after the start of the worker.
    pub(super) late: FoundLate,
    pub(super) lost: Arc<Lost>,
}

/// The streams of several that the worker cannot go on with, and why.
#[derive(Debug, Default)]
pub(super) struct Lost(Mutex<BTreeMap<String, String>>);

impl Lost {
    pub(super) fn observe(&self, notice: &Notice) {
        if let Notice::Stream(StreamNews::Lost { stream, why }) = notice {
            self.give_up(stream, &why.to_string());
        }
    }

    /// The worker goes on without a stream.
    pub(super) fn give_up(&self, stream: &str, why: &str) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lost.insert(stream.to_owned(), why.to_owned());
    }

    fn has(&self, stream: &NamedStream) -> bool {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.id().is_some_and(|id| lost.contains_key(id.as_str()))
    }

    /// The streams not read to their end, in a sentence.
    pub(super) fn told(&self) -> Option<String> {
        let lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = lost.iter().map(|(stream, why)| format!("has not caught up with stream {stream}: {why}"));
        (!lost.is_empty()).then(|| each.collect::<Vec<_>>().join("; "))
    }
}

/// Shuts the worker down after the worker caught up with all records from before the command. Tells meanwhile what is
/// waited for.
pub(super) async fn end(control: Control, goal: Goal, began: Instant) {
    let mut others = Others::new();
    let (mut before, mut tips, mut teller) = (false, Tips::default(), Teller::default());
    loop {
        tokio::time::sleep(LOOK).await;
        let status = control.status();
        if status.phase == Phase::Stopping || status.phase == Phase::Stopped {
            return;
        }
        let mut hindrances = match status.phase {
            Phase::Running => tips.hindrances(&status, Span::from(began.elapsed())),
            _ => vec![Hindrance::Other("the worker has not read the lease table yet".to_owned())],
        };
        // A failed read is tried again; the worker's log has the reason.
        if hindrances.is_empty() {
            hindrances = goal.hindrances(&status, &mut others).await;
        }
        teller.tell(began.elapsed(), &hindrances);
        let now = hindrances.is_empty();
        // Scans may lag: one scan alone may miss a child of a shard that has just ended.
        if now && before {
            return control.shutdown();
        }
        before = now;
    }
}

impl Goal {
    /// What is missing until leases of live workers cover each readable stream.
    async fn hindrances(&self, status: &Status, others: &mut Others) -> Vec<Hindrance> {
        let view = match self.admin.view().await {
            Ok(view) => view,
            Err(error) => return vec![Hindrance::Other(error.to_string())],
        };
        // In this order: a stream is found before the look-up is over.
        let sought = self.late.sought().into_iter();
        let mut hindrances: Vec<_> =
            sought.map(|stream| Hindrance::Other(format!("stream {stream:?} is not found yet"))).collect();
        let late = self.late.so_far();
        for stream in self.streams.iter().chain(&late).filter(|stream| !self.lost.has(stream)) {
            let mut view = view.clone();
            view.keep_stream(stream.id());
            let shards = self.admin.shards(&self.kinesis, stream).await;
            hindrances.extend(uncovered(&view, status, others));
            match shards {
                Ok(shards) => hindrances.extend(unleased(&shards, &view)),
                Err(error) => hindrances.push(Hindrance::Other(error.to_string())),
            }
        }
        hindrances
    }
}

impl Tips {
    /// The held shards with unprocessed records from before the command. Two reads prove that a shard has none. `at`: the time since
    /// the command began.
    fn hindrances(&mut self, status: &Status, at: Span) -> Vec<Hindrance> {
        let mut hindrances = Vec::new();
        for lease in &status.leases {
            let of = (lease.lease.clone(), lease.token);
            // A doubted answer shows no tip: the shard then waits for another answer.
            let all = lease.open && lease.read && lease.waiting == 0 && lease.waits_for.is_none();
            if self.is_reached(of, all, lease.behind, at) {
                continue;
            }
            let key = &lease.lease;
            hindrances.push(match &lease.waits_for {
                Some(why) => Hindrance::Other(format!("{key} does not move: {why}")),
                None => Hindrance::Records(format!("{key} is {} behind", lease.behind)),
            });
        }
        hindrances
    }

    /// Whether two reads have come to the tip of one shard. All records of the shard are processed, except records of
    /// the last `behind`. If `behind` reaches back before the command's begin, earlier reads showed no tip. `all`: no
    /// record waits for processing now.
    fn is_reached(&mut self, of: (LeaseKey, FencingToken), all: bool, behind: Span, at: Span) -> bool {
        if behind > at {
            self.0.remove(&of);
            return false;
        }
        all && *self.0.entry(of).or_insert(at) + APART + behind <= at
    }
}

/// The open shards without an unfinished lease. The children of a shard have none while its end is not read, though the shard may be
/// at its tip.
fn unleased(shards: &[Shard], view: &View) -> Vec<Hindrance> {
    let open = shards.iter().filter(|shard| shard.is_open());
    let unleased = open.filter(|shard| {
        let row = view.leases.get(shard.id.as_str());
        // An unreadable row is told as such.
        row.is_none_or(|row| row.checkpoint.is_end()) && !view.unreadable.contains_key(shard.id.as_str())
    });
    unleased.map(|shard| Hindrance::Other(format!("shard {} has no unfinished lease", shard.id))).collect()
}

/// The unfinished leases that are not held by this worker, and not seen to be renewed by another worker.
fn uncovered(view: &View, status: &Status, others: &mut Others) -> Vec<Hindrance> {
    let held: BTreeSet<&LeaseKey> = status.leases.iter().map(|lease| &lease.lease).collect();
    let mut hindrances = Vec::new();
    if view.leases.is_empty() {
        hindrances.push(Hindrance::Other("the lease table has no leases yet".to_owned()));
    }
    for (key, detail) in &view.unreadable {
        hindrances.push(Hindrance::Other(format!(
            "the row of {key} cannot be read: {detail}; correct it in the table"
        )));
    }
    for row in view.leases.values().filter(|row| !row.checkpoint.is_end()) {
        let seen = others.entry(row.key.clone()).or_insert((row.counter, false));
        seen.1 |= seen.0 != row.counter;
        let theirs = |owner: &&WorkerId| status.worker.as_ref() != Some(*owner);
        let owner = row.actual_owner().filter(theirs);
        if held.contains(&row.key) || (seen.1 && owner.is_some()) {
            continue;
        }
        hindrances.push(Hindrance::Other(match owner {
            Some(owner) => format!("the owner of {}, {owner}, was not seen to renew it", row.key),
            None => format!("no worker holds {}", row.key),
        }));
    }
    hindrances
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{Checkpoint, LeaseRow, ShardId};
    use leasehold_engine::shard::HashRange;
    use leasehold_engine::testkit::shard;

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
    fn a_row_that_cannot_be_read_is_named_once() {
        let mut view = view(&[("b", Some("me"), 1, Checkpoint::ShardEnd)]);
        view.unreadable.insert("a".into(), "expected a number".to_owned());
        let shard = shard("a", None::<ShardId>, HashRange::ALL, 1, None);
        let mut told = uncovered(&view, &Status::default(), &mut Others::new());
        told.extend(unleased(&[shard], &view));
        let row = "the row of a cannot be read: expected a number; correct it in the table";
        assert_eq!(told, [Hindrance::Other(row.to_owned())]);
    }

    #[test]
    fn a_lease_counts_only_if_held_or_if_its_owner_was_seen_alive() {
        let mut status = Status::default();
        status.worker = Some("me".into());
        let mut others = Others::new();
        let (open, ended) = (Checkpoint::TrimHorizon, Checkpoint::ShardEnd);
        let mut covered = |rows: &[_]| uncovered(&view(rows), &status, &mut others).is_empty();
        assert!(!covered(&[]), "an empty table is filled first");
        assert!(covered(&[("a", None, 1, ended)]));
        assert!(!covered(&[("b", None, 1, open)]), "no worker has it");
        assert!(!covered(&[("b", Some("me"), 2, open)]), "it was taken and is not held yet");
        assert!(!covered(&[("c", Some("other"), 5, open)]), "it may be dead");
        assert!(covered(&[("c", Some("other"), 6, open)]));
    }
}
