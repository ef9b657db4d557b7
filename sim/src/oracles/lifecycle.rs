//! `stops-cleanly`: each start of a shard has exactly one end, and no event after the end. A shard is closed as ended
//! only if its end is durable. A shutdown ends within its deadline, with the leases released if the table answered.

use super::fact::{Ask, How, Mark, Verb, owner};
use super::{EVENTS, Fact, History, LifeNo, Property, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict};
use leasehold_engine::output::EndReason;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    /// The start failed, and may be tried again.
    Failed,
    Open,
    Handling,
    /// The handler was asked to stop, and is still running.
    Stopping,
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Shutdown {
    asked: Time,
    deadline: Time,
    /// Some request failed during the shutdown: leases may have to be left to expire.
    troubled: bool,
    /// The worker is paused, and its deadline waits.
    stands: bool,
    reported: bool,
}

/// Facts about leases lost to a worker. A worker that leaves a stream forgets the stream's leases. If the row was set
/// back meanwhile, tokens begin again at the row's counter. A counter used as a time goes on from the row and not from
/// memory, since other programs act on the time: where a program removed the counter, tokens begin again.
#[derive(Clone, Debug, Default)]
struct Memory {
    tells_time: bool,
    opened: BTreeMap<(LifeNo, ShardNo), Time>,
    left_stream: BTreeMap<LifeNo, Time>,
    set_back: BTreeMap<ShardNo, Time>,
}

impl Memory {
    fn observe(&mut self, now: Time, fact: &Fact) {
        match *fact {
            Fact::StreamLeft { life, .. } => drop(self.left_stream.insert(life, now)),
            Fact::RowChanged { shard, before: Some(before), after: Some(after), .. }
                if after.counter < before.counter =>
            {
                let _ = self.set_back.insert(shard, now);
            }
            _ => {}
        }
    }

    /// Notes a lease opened by a life. Returns whether the life can have forgotten the facts of its earlier opening.
    fn opens(&mut self, now: Time, life: LifeNo, shard: ShardNo) -> bool {
        let before = self.opened.insert((life, shard), now);
        let since = |at: Option<&Time>| at.zip(before).is_some_and(|(at, before)| *at >= before);
        (self.tells_time || since(self.left_stream.get(&life))) && since(self.set_back.get(&shard))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    terms: Terms,
    /// The latest token of each worker and shard, and the token's stage.
    stages: BTreeMap<(LifeNo, ShardNo), (u64, Stage)>,
    shutdowns: BTreeMap<LifeNo, Shutdown>,
    /// The progress of each life in its open shards.
    through: BTreeMap<(LifeNo, ShardNo), u64>,
    /// Lives that have known themselves as a shard's owner. A taker without the outcome of its take does not know.
    knew: std::collections::BTreeSet<(LifeNo, ShardNo)>,
    /// Shards with a row edited by a person, or written from memory by another program, after the last write of its
    /// owner. A late answer to the owner's write proves no fact of the later row.
    edited: BTreeSet<ShardNo>,
    memory: Memory,
    /// Lives that requested the write of a shard's end.
    ends: BTreeSet<(LifeNo, ShardNo)>,
}

const SLACK_US: u64 = 1_000_000;

impl Lifecycle {
    pub(super) const SEES: Sees = Sees::all(REQUESTS | ROWS | EVENTS).edits();

    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            terms: terms.clone(),
            stages: BTreeMap::new(),
            shutdowns: BTreeMap::new(),
            through: BTreeMap::new(),
            knew: Default::default(),
            edited: BTreeSet::new(),
            memory: Memory { tells_time: terms.config.policies().life.tells_time(), ..Memory::default() },
            ends: BTreeSet::new(),
        }
    }

    /// The longest shutdown: its timeout, then the last requests, and handlers deaf to the abort.
    fn allowed(&self) -> u64 {
        let last = self.terms.most(|config| {
            config.shutdown_timeout() + config.table_timeout() + config.table_timeout() + config.retry_max()
        });
        self.terms.at_most(last) + self.terms.abort_us + self.terms.deaf_us + SLACK_US
    }

    /// Whether a worker is stopping with all the time needed, and without a failure meanwhile.
    fn in_good_order(&self, now: Time, life: LifeNo) -> bool {
        // Two requests before its deadline, the worker stops waiting.
        let in_time = self.terms.least(|config| {
            let timeout = config.shutdown_timeout().0;
            let waits = timeout.saturating_sub(3 * config.table_timeout().0);
            waits.min(timeout / 2)
        });
        let shutdown = self.shutdowns.get(&life);
        shutdown
            .is_some_and(|shutdown| !shutdown.troubled && !shutdown.stands && now < shutdown.asked + in_time)
    }

    fn forget(&mut self, life: LifeNo) {
        let keys: Vec<_> = self.stages.range((life, 0)..=(life, ShardNo::MAX)).map(|(key, _)| *key).collect();
        for key in keys {
            self.stages.remove(&key);
        }
        self.shutdowns.remove(&life);
    }

    pub(super) fn look(&mut self, now: Time, of_others: &BTreeSet<LifeNo>, verdict: &mut Verdict) {
        for (life, shutdown) in &mut self.shutdowns {
            if now > shutdown.deadline && !shutdown.reported && !shutdown.stands {
                shutdown.reported = true;
                // vmware-go-kcl stops no sooner than the ends of the parents, and kinsumer may wait for ever.
                verdict.of_others = of_others.contains(life);
                verdict.report(Property::StopsCleanly, now, || {
                    format!(
                        "life {life} was told to stop {} ms ago and has not, {} ms are allowed",
                        (now - shutdown.asked) / 1_000,
                        (shutdown.deadline - shutdown.asked) / 1_000
                    )
                });
            }
        }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        self.memory.observe(now, fact);
        match *fact {
            Fact::Processed { life, shard, token, through } => {
                if matches!(self.stages.get(&(life, shard)), Some((open, _)) if *open == token) {
                    let known = self.through.entry((life, shard)).or_default();
                    *known = through.max(*known);
                }
            }
            Fact::OpenBegun { life, shard, token } => {
                self.through.remove(&(life, shard));
                self.ends.remove(&(life, shard));
                // A row made anew counts from the beginning, and tokens with the row.
                let anew = history.shard(shard).made_anew || self.memory.opens(now, life, shard);
                let before = self.stages.insert((life, shard), (token, Stage::Opening));
                if let Some((old, stage)) = before
                    && !matches!(
                        (stage, old < token || anew, old == token),
                        (Stage::Closed | Stage::Failed, true, _) | (Stage::Failed, _, true)
                    )
                {
                    verdict.report(Property::StopsCleanly, now, || {
                        format!("life {life} opened shard {shard} with token {token}, after token {old} which is {stage:?}")
                    });
                }
            }
            Fact::OpenDone { life, shard, token } => {
                self.step(now, life, shard, token, Stage::Opening, Stage::Open, verdict)
            }
            Fact::Delivered { life, shard, token, .. } => {
                self.step(now, life, shard, token, Stage::Open, Stage::Handling, verdict);
            }
            Fact::OpenFailed { life, shard, token } => {
                self.step(now, life, shard, token, Stage::Opening, Stage::Failed, verdict);
            }
            Fact::Aborted { life, shard, token } => {
                if let Some(entry) = self.stages.get_mut(&(life, shard))
                    && *entry == (token, Stage::Handling)
                {
                    entry.1 = Stage::Stopping;
                }
            }
            Fact::HandlerEnded { life, shard, token } => {
                if let Some(entry) = self.stages.get_mut(&(life, shard))
                    && matches!(*entry, (open, Stage::Handling | Stage::Stopping) if open == token)
                {
                    entry.1 = Stage::Open;
                }
            }
            Fact::Asked { life, ask: Ask::Write(Verb::End), about: Some(shard), .. } => {
                let _ = self.ends.insert((life, shard));
            }
            Fact::Closed { life, shard, token, reason, .. } => {
                // If the row is gone after the request, the write may have been applied, and the row cleaned up.
                let known = history.shard(shard);
                let removed = known.made_anew && self.ends.contains(&(life, shard));
                if reason == EndReason::ShardEnded && !removed && known.durable != Some(Mark::End) {
                    verdict.report(Property::StopsCleanly, now, || {
                        format!("life {life} closed shard {shard} as ended, and its end was never durable")
                    });
                }
                let through = self.through.remove(&(life, shard)).unwrap_or(0);
                let saved = through == 0 || known.durable >= Some(Mark::At(through));
                if reason == EndReason::Shutdown && !saved && self.in_good_order(now, life) {
                    verdict.report(Property::StopsCleanly, now, || {
                        format!(
                            "life {life} closed shard {shard} in a shutdown in good order, and the records up to {through} that it \
                             processed are not durable"
                        )
                    });
                }
                let stage = self.stages.insert((life, shard), (token, Stage::Closed));
                let good = matches!(stage, Some((open, Stage::Opening | Stage::Failed | Stage::Open)) if open == token);
                if !good {
                    verdict.report(Property::StopsCleanly, now, || {
                        format!("life {life} closed shard {shard} with token {token}, which is {stage:?}")
                    });
                }
            }
            Fact::RowChanged { shard, after, verb, by, .. } => {
                let [before, owner] = [history.shard(shard).before, after].map(|row| owner(row)?.life());
                // A new owner may not know of its ownership yet, if another program wrote the row. After an edit by a
                // person, or a write from another program's memory, the owner counts the lease as lost, although the
                // row still names the owner.
                if let Some(life) = owner.filter(|_| owner != before || verb.is_none()) {
                    self.knew.remove(&(life, shard));
                }
                match verb {
                    None => drop(self.edited.insert(shard)),
                    // The counter guards takes and renewals, so an end by a person may be unknown to the writer.
                    Some(Verb::Take | Verb::Renew) if after.is_some_and(|row| !row.is_open()) => {}
                    Some(_) if by == owner => drop(self.edited.remove(&shard)),
                    Some(_) => {}
                }
            }
            Fact::Answered {
                life,
                ask: Ask::Write(Verb::Take | Verb::Renew | Verb::Checkpoint),
                about: Some(shard),
                how: How::Applied,
                ..
            } if !self.edited.contains(&shard) => drop(self.knew.insert((life, shard))),
            Fact::ShutdownAsked { life } => {
                let deadline = now + self.allowed();
                self.shutdowns.entry(life).or_insert(Shutdown {
                    asked: now,
                    deadline,
                    troubled: false,
                    stands: false,
                    reported: false,
                });
            }
            Fact::Paused { life } => {
                if let Some(shutdown) = self.shutdowns.get_mut(&life) {
                    shutdown.stands = true;
                }
            }
            Fact::Resumed { life, stood } => {
                if let Some(shutdown) = self.shutdowns.get_mut(&life) {
                    shutdown.stands = false;
                    shutdown.deadline += stood;
                    shutdown.troubled = true;
                }
            }
            Fact::Answered { life, ask: Ask::Write(_) | Ask::Read, how, .. } if how != How::Applied => {
                if let Some(shutdown) = self.shutdowns.get_mut(&life) {
                    shutdown.troubled = true;
                }
            }
            Fact::Stopped { life, fatal } => {
                for (&(_, shard), &(token, stage)) in self.stages.range((life, 0)..=(life, ShardNo::MAX)) {
                    // A deaf handler cannot be ended; the deadline comes first.
                    // In a blocked runtime, no close is carried out before the threads are free.
                    let deaf =
                        stage == Stage::Stopping && self.terms.deaf_us > 0 || history.blocked.contains(&life);
                    if !matches!(stage, Stage::Closed | Stage::Failed) && !deaf {
                        verdict.report(Property::StopsCleanly, now, || {
                            format!("life {life} stopped with shard {shard} (token {token}) still {stage:?}")
                        });
                    }
                }
                let in_time = self.terms.least(|config| config.shutdown_timeout().0) / 2;
                if let Some(shutdown) = self.shutdowns.get(&life)
                    && !shutdown.troubled
                    && !fatal
                    && now < shutdown.asked + in_time
                {
                    for (shard, known) in history.shards() {
                        if known.row.is_some_and(|row| row.is_of(life)) && self.knew.contains(&(life, shard))
                        {
                            verdict.report(Property::StopsCleanly, now, || {
                                format!("life {life} stopped in good order, and the row of shard {shard} still names it")
                            });
                        }
                    }
                }
                self.forget(life);
            }
            Fact::Died { life } => self.forget(life),
            _ => {}
        }
    }

    #[allow(clippy::too_many_arguments, reason = "it takes a fact apart")]
    fn step(
        &mut self, now: Time, life: LifeNo, shard: ShardNo, token: u64, from: Stage, to: Stage,
        verdict: &mut Verdict,
    ) {
        let entry = self.stages.insert((life, shard), (token, to));
        if entry != Some((token, from)) {
            verdict.report(Property::StopsCleanly, now, || {
                format!("shard {shard} of life {life} (token {token}) became {to:?}, expected {from:?} before, found {entry:?}")
            });
        }
    }
}

#[cfg(test)]
mod tests;
