//! The history of a world: the rows, the shards and the lives, as the facts so far tell. All oracles read it.
//!
//! The history notes a fact before an oracle sees the fact.

use super::denial::Denials;
use super::fact::{Mark, Row, rewrites};
use super::former::Former;
use super::given::Given;
use super::partial::Partial;
use super::per_shard::PerShard;
use super::throttling::Throttling;
use super::{Fact, LifeNo, ShardNo, Terms, Time, trespass};
use crate::streams::{StreamNo, Streams};
use std::collections::BTreeSet;

/// A shard and its row.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    pub parents: [Option<ShardNo>; 2],
    pub children: Vec<ShardNo>,
    /// The number of records, of a shard closed to new records.
    pub records: Option<u64>,
    /// The service no longer knows the shard.
    pub forgotten: bool,
    /// Its past lies before the world.
    pub given: bool,
    pub born: Time,
    /// The row, and the row before its last change.
    pub row: Option<Row>,
    pub before: Option<Row>,
    /// The last writer of the row.
    pub by: Option<LifeNo>,
    /// The last change of the row, and the last change of its counter.
    pub changed: Time,
    pub counted: Time,
    /// Since when an unfinished row exists; and since when not, after such a row.
    pub unfinished: Option<Time>,
    pub over: Option<Time>,
    /// The highest checkpoint so far.
    pub durable: Option<Mark>,
    /// The progress by any worker. Another program checkpoints records without processing: the next owner does not
    /// process these records either.
    pub done: u64,
    /// A person changed the row.
    pub edited: bool,
    /// A person changed the row, or another program wrote over the row of a different owner.
    pub tampered: bool,
    /// A person created or removed the row, or changed its checkpoint.
    pub rewritten: bool,
    /// The row was removed: by a person, or by anybody.
    pub removed: bool,
    pub made_anew: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The present fact is the act of another program.
    pub of_others: bool,
    /// The present fact is the write of another program over the row of a different owner.
    pub trespass: bool,
    /// The present fact robs an owner that cannot know: a trespass, or an edit by hand.
    pub robs: bool,
    /// Lives of other programs. Our promises about beliefs, about children's leases and about hand-overs do not bind
    /// other programs.
    pub others: BTreeSet<LifeNo>,
    pub shards: PerShard<Shard>,
    pub unknown: Shard,
    /// Lives told to stop; and these and lives that give up.
    pub told_to_stop: BTreeSet<LifeNo>,
    pub stopping: BTreeSet<LifeNo>,
    /// Lives whose handlers cannot run.
    pub blocked: BTreeSet<LifeNo>,
    /// Lives with a suspension shown by no clock.
    pub adrift: BTreeSet<LifeNo>,
    /// The stream or the table is gone for good, or belongs to another stream.
    pub lost_for_good: bool,
    /// Deleted streams of several.
    pub gone: BTreeSet<StreamNo>,
    pub streams: Streams,
    pub given: Given,
    pub former: Former,
    pub throttling: Throttling,
    pub partial: Partial,
    pub denials: Denials,
}

impl History {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            streams: Streams::new(terms.streams),
            given: Given::new(terms),
            former: Former::new(terms),
            ..Self::default()
        }
    }

    /// A shard, known or not.
    pub(super) fn shard(&self, shard: ShardNo) -> &Shard {
        self.shards.get(shard as usize).unwrap_or(&self.unknown)
    }

    /// All shards, in the order of their numbers.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardNo, &Shard)> {
        (0..).zip(self.shards.iter())
    }

    /// Notes a fact. Returns a trespass of another program in the form of an equal edit by hand.
    pub(super) fn note(&mut self, now: Time, fact: &Fact) -> Option<Fact> {
        self.of_others = fact.life().is_some_and(|life| self.others.contains(&life));
        (self.trespass, self.robs) = (false, false);
        match *fact {
            Fact::RowChanged { .. } => return self.note_row(now, fact),
            Fact::ScanEnded { .. } => self.partial.observe(fact),
            Fact::Answered { .. } if !self.of_others => self.throttling.observe(now, fact),
            Fact::Processed { shard, through, .. } => {
                let done = &mut self.shards.of(shard).done;
                *done = through.max(*done);
            }
            Fact::Given { shard, through, .. } => {
                let known = self.shards.of(shard);
                (known.done, known.given) = (through, true);
            }
            Fact::ShardBorn { shard, parents } => {
                let known = self.shards.of(shard);
                (known.born, known.parents) = (now, parents);
            }
            Fact::ShardClosed { shard, records, ref children } => {
                let known = self.shards.of(shard);
                known.records = Some(records);
                known.children.clone_from(children);
            }
            Fact::Forgotten { shard } => self.shards.of(shard).forgotten = true,
            Fact::LostForGood | Fact::Foreign => self.lost_for_good = true,
            Fact::StreamGone { stream } => drop(self.gone.insert(stream)),
            Fact::StreamLeft { .. } | Fact::StreamBack { .. } => self.partial.observe(fact),
            Fact::Described { .. } => self.denials.observe(fact),
            Fact::Booted { .. } => self.former.observe(fact),
            Fact::ShutdownAsked { life } => {
                self.told_to_stop.insert(life);
                self.stopping.insert(life);
            }
            Fact::GivesUp { life } => drop(self.stopping.insert(life)),
            Fact::Blocked { life } => drop(self.blocked.insert(life)),
            Fact::Unblocked { life } => drop(self.blocked.remove(&life)),
            Fact::ClockStands { life } => drop(self.adrift.insert(life)),
            Fact::ClockRight { life } => drop(self.adrift.remove(&life)),
            Fact::Resumed { .. } => self.throttling.observe(now, fact),
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.adrift.remove(&life);
                self.throttling.observe(now, fact);
            }
            _ => {}
        }
        None
    }

    fn note_row(&mut self, now: Time, fact: &Fact) -> Option<Fact> {
        let Fact::RowChanged { shard, by, verb, before, after, .. } = *fact else {
            return None;
        };
        self.given.observe(fact);
        let edit = trespass::as_edit(fact).filter(|_| self.of_others);
        self.trespass = edit.is_some();
        self.robs = self.trespass || trespass::disowns(fact);
        let known = self.shards.of(shard);
        known.before = std::mem::replace(&mut known.row, after);
        (known.by, known.changed) = (by, now);
        if before.map(|row| row.counter) != after.map(|row| row.counter) {
            known.counted = now;
        }
        if after.is_some_and(Row::is_open) {
            known.unfinished.get_or_insert(now);
        } else if known.unfinished.take().is_some() {
            known.over = Some(now);
        }
        known.edited |= verb.is_none();
        known.tampered |= verb.is_none() || self.trespass;
        known.rewritten |= rewrites(verb, before, after);
        known.removed |= verb.is_none() && after.is_none();
        known.made_anew |= after.is_none();
        if let Some(row) = after {
            known.durable = known.durable.max(Some(row.checkpoint));
            if let Mark::At(through) = row.checkpoint {
                known.done = through.max(known.done);
            }
        }
        edit
    }
}
