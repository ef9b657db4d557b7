//! The timeline of a recorded world.

use super::builder::Builder;
use super::picture::{BarKind, LaneNo, MarkKind, ShardIx, Timeline};
use super::words;
use crate::oracles::fact::{Owner, Row, Verb};
use crate::oracles::{Fact, LifeNo, ShardNo, Time};
use crate::recording::{Event, Fault, Recording};
use crate::run::WorldReport;
use crate::world::Ending;
use leasehold_engine::notice::{Notice, TakeReason};
use std::collections::BTreeMap;

/// The timeline of one world, run with [`record`](crate::run::Options::record).
pub fn timeline(report: &WorldReport) -> Timeline {
    let found = &report.found;
    let mut feed = Feed::new(&found.recording);
    for (at, event) in found.recording.iter() {
        feed.add(at, event);
    }
    for violation in &found.violations {
        feed.builder.violation(violation.clone());
    }
    let verdict = match (&found.ending, found.violations.as_slice()) {
        (Ending::Settled { after_us, .. }, []) => {
            format!("all is well, {} after the last fault", words::seconds(*after_us))
        }
        (Ending::Excused(why), []) => format!("no violation; excused from coming right: {why}"),
        (_, []) => "no violation".to_owned(),
        (_, [one]) => format!("{} is violated: {}", one.property, one.summary),
        (_, [first, others @ ..]) => format!(
            "{:?} is violated first, and {} more violations follow: {}",
            first.property,
            others.len(),
            first.summary
        ),
    };
    Timeline {
        title: format!("World {}", report.seed),
        subtitle: report.configuration.clone(),
        verdict: words::shorten(&verdict),
        ..feed.builder.finish(found.simulated)
    }
}

/// The batches handed to a worker while the worker processed a shard.
#[derive(Clone, Copy, Debug, Default)]
struct Handed {
    batches: u64,
    first: u64,
    last: u64,
}

struct Feed {
    builder: Builder,
    /// The lane of each life.
    lives: Vec<LaneNo>,
    handed: BTreeMap<(LifeNo, ShardNo), Handed>,
}

impl Feed {
    fn new(recording: &Recording) -> Self {
        let mut builder = Builder::default();
        // Lanes are in the order of the workers' numbers, not of their starts.
        let booted = recording.iter().filter_map(|(_, event)| match event {
            Event::Fact(Fact::Booted { worker, .. }) => Some(*worker + 1),
            _ => None,
        });
        for worker in 0..booted.max().unwrap_or(0) {
            builder.worker(&format!("w{worker}"));
        }
        Self { builder, lives: Vec::new(), handed: BTreeMap::new() }
    }

    fn add(&mut self, at: Time, event: &Event) {
        match event {
            Event::Fact(fact) => self.fact(at, fact),
            Event::Told { worker, notice } => self.told(at, *worker, notice),
            Event::Fault(fault) => self.fault(at, fault),
        }
    }

    fn shard(&mut self, shard: ShardNo) -> ShardIx {
        self.builder.shard(&format!("shardId-{shard:012}"))
    }

    fn lane(&self, life: LifeNo) -> LaneNo {
        self.lives.get(life as usize).copied().unwrap_or(0)
    }

    fn who(&self, life: LifeNo) -> String {
        self.builder.name(self.lane(life)).to_owned()
    }

    fn about(&mut self, at: Time, kind: MarkKind, life: LifeNo, text: &str) {
        let text = format!("{} {text}", self.who(life));
        self.builder.mark(at, kind, Some(self.lane(life)), None, text);
    }

    fn fact(&mut self, at: Time, fact: &Fact) {
        match fact {
            Fact::Booted { life, worker } => {
                self.lives.resize(*life as usize + 1, *worker);
                let text = format!("life {life} of {}", self.who(*life));
                self.builder.up(at, *worker, text);
                self.about(at, MarkKind::Worker, *life, &format!("begins life {life}"));
            }
            Fact::Died { life } => {
                self.about(at, MarkKind::Worker, *life, "dies without a word");
                self.builder.down(at, self.lane(*life));
            }
            Fact::ShutdownAsked { life } => self.about(at, MarkKind::Worker, *life, "is told to stop"),
            Fact::Stopped { life, fatal } => {
                let text = if *fatal { "stops, as it cannot go on" } else { "has stopped" };
                self.about(at, MarkKind::Worker, *life, text);
                self.builder.down(at, self.lane(*life));
            }
            Fact::Resumed { life, stood } => {
                let text = format!("{} stands still for {}", self.who(*life), words::seconds(*stood));
                let from = at.saturating_sub(*stood);
                self.builder.paused(from, at, self.lane(*life), text);
                let text = format!("goes on after standing still for {}", words::seconds(*stood));
                self.about(at, MarkKind::Worker, *life, &text);
            }
            Fact::ShardBorn { shard, parents } => self.born(at, *shard, parents),
            Fact::ShardClosed { shard, records, children } => {
                let ix = self.shard(*shard);
                self.builder.closed(at, ix);
                let children: Vec<String> = children.iter().map(|child| format!("shard-{child}")).collect();
                let text = format!(
                    "shard-{shard} is closed after {records} records; {} go on",
                    children.join(" and ")
                );
                self.builder.mark(at, MarkKind::Stream, None, Some(ix), text);
            }
            Fact::RowChanged { shard, by, verb, before, after, .. } => {
                self.row(at, *shard, *by, *verb, before.as_ref(), after.as_ref());
            }
            Fact::OpenBegun { life, shard, token } => {
                let (lane, ix) = (self.lane(*life), self.shard(*shard));
                self.handed.insert((*life, *shard), Handed::default());
                let text = format!("{} processes shard-{shard} (token {token})", self.who(*life));
                self.builder.mark(at, MarkKind::Processing, Some(lane), Some(ix), text.clone());
                self.builder.begin(at, lane, ix, BarKind::Processing, text);
            }
            Fact::Delivered { life, shard, first, last, .. } if first <= last => {
                let handed = self.handed.entry((*life, *shard)).or_default();
                if handed.batches == 0 {
                    handed.first = *first;
                }
                handed.batches += 1;
                handed.last = *last;
            }
            Fact::OpenFailed { life, shard, .. } => self.no_more(at, *life, *shard, "could not begin with"),
            Fact::Closed { life, shard, reason, .. } => {
                let why = format!("ends ({reason:?})");
                self.no_more(at, *life, *shard, &why);
            }
            Fact::Aborted { life, shard, .. } | Fact::TimedOut { life, shard, .. } => {
                let (lane, ix) = (self.lane(*life), self.shard(*shard));
                let text = format!("{} asks the handler of shard-{shard} to stop", self.who(*life));
                self.builder.mark(at, MarkKind::Processing, Some(lane), Some(ix), text);
            }
            _ => {}
        }
    }

    fn born(&mut self, at: Time, shard: ShardNo, parents: &[Option<ShardNo>; 2]) {
        let ix = self.shard(shard);
        let names: Vec<String> = parents.iter().flatten().map(|parent| format!("shard-{parent}")).collect();
        let parents = parents.iter().flatten().map(|parent| self.shard(*parent)).collect();
        self.builder.born(at, ix, parents);
        if !names.is_empty() {
            let text = format!("shard-{shard} is born of {}", names.join(" and "));
            self.builder.mark(at, MarkKind::Stream, None, Some(ix), text);
        }
    }

    fn row(
        &mut self, at: Time, shard: ShardNo, by: Option<LifeNo>, verb: Option<Verb>, before: Option<&Row>,
        after: Option<&Row>,
    ) {
        let ix = self.shard(shard);
        let owner = |row: Option<&Row>| row.and_then(|row| row.owner);
        if owner(before) != owner(after) {
            let owner = owner(after).map(|owner| match owner {
                Owner::Life(life) => {
                    let text = format!("the row of shard-{shard} names {}, life {life}", self.who(life));
                    (self.lane(life), text)
                }
                Owner::Stranger => {
                    let text = format!("the row of shard-{shard} names a stranger");
                    (self.builder.worker("a stranger"), text)
                }
            });
            self.builder.owner(at, ix, owner);
        }
        let kind = match verb {
            Some(Verb::Renew) => return,
            Some(Verb::Checkpoint) => MarkKind::Checkpoint,
            Some(Verb::End) => MarkKind::End,
            _ => MarkKind::Row,
        };
        let who = by.map_or_else(|| "somebody".to_owned(), |life| self.who(life));
        let what = verb.map_or("edit", words::verb);
        let now = match after {
            Some(row) => format!("counter {}, {}", row.counter, words::progress(row.checkpoint)),
            None => "it is gone".to_owned(),
        };
        let text = match kind {
            MarkKind::Checkpoint => format!("{who} checkpoints shard-{shard}: {now}"),
            _ => format!("row of shard-{shard}: {what} by {who}; {now}"),
        };
        let lane = by.map(|life| self.lane(life));
        self.builder.mark(at, kind, lane, Some(ix), text);
    }

    /// Processing of a shard ended.
    fn no_more(&mut self, at: Time, life: LifeNo, shard: ShardNo, how: &str) {
        let (lane, ix) = (self.lane(life), self.shard(shard));
        let handed = self.handed.remove(&(life, shard)).unwrap_or_default();
        let records = match handed {
            Handed { batches: 0, .. } => "no records".to_owned(),
            Handed { batches, first, last } => format!("records {first} to {last} in {batches} batches"),
        };
        let text = format!("{} processes shard-{shard}: {records}", self.who(life));
        self.builder.end(at, lane, ix, BarKind::Processing, Some(text));
        let text = format!("{}: shard-{shard} {how} after {records}", self.who(life));
        self.builder.mark(at, MarkKind::Processing, Some(lane), Some(ix), text);
    }

    fn told(&mut self, at: Time, worker: u32, notice: &Notice) {
        let lane = self.builder.worker(&format!("w{worker}"));
        add_notice(&mut self.builder, at, lane, notice, true);
    }

    fn fault(&mut self, at: Time, fault: &Fault) {
        let worker = fault.worker.map(|worker| self.builder.worker(&format!("w{worker}")));
        let shard = fault.request.and_then(|(_, _, about)| about);
        let ix = shard.map(|shard| self.shard(shard));
        let mut text = fault.name.replace('-', " ");
        if let Some((_, op, _)) = fault.request {
            text.push_str(&format!(" (request {op}"));
            if let Some(shard) = shard {
                text.push_str(&format!(" about shard-{shard}"));
            }
            text.push(')');
        }
        if let Some(worker) = worker {
            text = format!("{}: {text}", self.builder.name(worker));
        }
        self.builder.mark(at, MarkKind::Fault, worker, ix, text);
    }
}

/// Adds a worker's notice. `seen`: rows and handlers are known from facts, so notices about rows and handlers are not
/// needed.
pub(super) fn add_notice(builder: &mut Builder, at: Time, lane: LaneNo, notice: &Notice, seen: bool) {
    let kind = match notice {
        Notice::Scanned { .. } | Notice::Booted { .. } | Notice::Stopped(_) => return,
        Notice::Checkpointed { .. } | Notice::Opened { .. } | Notice::Closed { .. } if seen => return,
        Notice::Checkpointed { .. } => MarkKind::Checkpoint,
        Notice::Opened { .. } | Notice::Closed { .. } | Notice::Blocked { .. } => MarkKind::Processing,
        Notice::Took { why: TakeReason::Stolen { .. }, .. } => MarkKind::Steal,
        Notice::Claimed { .. } => MarkKind::Steal,
        Notice::Took { .. } => MarkKind::Take,
        Notice::Released { .. } | Notice::Yields { .. } => MarkKind::Release,
        Notice::Lost { .. } | Notice::MissedTake { .. } => MarkKind::Lost,
        Notice::Ended { .. } => MarkKind::End,
        Notice::Fenced { .. } | Notice::Resumed { .. } => MarkKind::Fence,
        Notice::HandlerFailed { .. }
        | Notice::Trouble { .. }
        | Notice::Trimmed { .. }
        | Notice::Unreadable { .. }
        | Notice::Spoiled { .. }
        | Notice::NotParents { .. }
        | Notice::BadListing { .. }
        | Notice::ParentUnlisted { .. }
        | Notice::Stray { .. }
        | Notice::InvariantBroken { .. }
        | Notice::Fatal(_) => MarkKind::Trouble,
        _ => MarkKind::Notice,
    };
    // An unreadable row need not be a shard's row.
    let lease = notice.lease().filter(|_| !matches!(notice, Notice::Unreadable { .. }));
    let shard = lease.map(|lease| builder.shard(lease.as_str()));
    if let Some(shard) = shard {
        match notice {
            Notice::Fenced { .. } => {
                let text = words::shorten(&notice.to_string());
                builder.begin(at, lane, shard, BarKind::Fenced, text);
            }
            Notice::Resumed { .. } | Notice::Lost { .. } | Notice::Released { .. } | Notice::Ended { .. } => {
                builder.end(at, lane, shard, BarKind::Fenced, None);
            }
            _ => {}
        }
    }
    let text = format!("{}: {}", builder.name(lane), words::shorten(&notice.to_string()));
    builder.mark(at, kind, Some(lane), shard, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Options, run_seed};

    #[test]
    fn a_world_is_shown_with_all_its_workers_and_shards() {
        let options = Options { record: true, ..Options::default() };
        // Seed 0 is left out: its world is lost for good, and processes no record.
        for seed in 1..6 {
            let report = run_seed(seed, &options);
            let timeline = timeline(&report);
            let born: Vec<u32> = timeline
                .shards
                .iter()
                .filter(|shard| shard.born.is_some())
                .map(|shard| shard.number)
                .collect();
            assert!(!timeline.workers.is_empty() && !born.is_empty(), "seed {seed}");
            for bar in &timeline.bars {
                assert!(bar.from <= bar.to && bar.to <= timeline.end, "seed {seed}: {bar:?}");
                assert!(bar.row < timeline.workers[bar.worker as usize].rows, "seed {seed}: {bar:?}");
            }
            let processed = timeline.bars.iter().any(|bar| bar.kind == BarKind::Processing);
            let held = timeline.bars.iter().any(|bar| bar.kind == BarKind::Owned);
            assert!(processed && held, "seed {seed}");
            assert!(timeline.marks.windows(2).all(|pair| pair[0].at <= pair[1].at));
        }
    }

    #[test]
    fn recording_changes_nothing() {
        let recorded = Options { record: true, ..Options::default() };
        for seed in [2, 7] {
            let (with, without) = (run_seed(seed, &recorded), run_seed(seed, &Options::default()));
            assert_eq!(with.found.digest, without.found.digest);
            assert!(with.found.recording.iter().count() > 100);
            assert_eq!(without.found.recording.iter().count(), 0);
        }
    }
}
