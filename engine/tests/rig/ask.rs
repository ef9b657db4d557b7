//! Questions about the workers and the rows of a rig, and changes of them.

use super::acts::Wanted;
use super::{OPEN, Rig, Trick, Worker, shard_id};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::{ConsumerOp, Effect, EndReason, TableOp};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::{Mono, Span};
use std::collections::BTreeMap;

impl Worker {
    /// Such commands of the worker, with their times.
    pub fn commands(&self, which: impl Wanted<Effect>) -> impl Iterator<Item = &(Mono, Effect)> {
        self.sent.iter().filter(move |(_, effect)| which.is(effect))
    }

    /// How many such commands were sent.
    pub fn sent(&self, which: impl Wanted<Effect>) -> usize {
        self.commands(which).count()
    }

    /// When such commands were sent.
    pub fn sent_at(&self, which: impl Wanted<Effect>) -> Vec<Mono> {
        self.commands(which).map(|(at, _)| *at).collect()
    }

    /// The changes of rows that the worker has asked for, with their times.
    pub fn changes(&self) -> impl Iterator<Item = (Mono, &Change)> {
        self.sent.iter().filter_map(|(at, effect)| match effect {
            Effect::Table(TableOp::Write(change)) => Some((*at, change)),
            _ => None,
        })
    }

    /// How many such notices were told.
    pub fn told(&self, which: impl Wanted<Notice>) -> usize {
        self.told_at(which).len()
    }

    /// When such notices were told.
    pub fn told_at(&self, which: impl Wanted<Notice>) -> Vec<Mono> {
        let notices = self.notices.iter();
        notices.filter(|(_, notice)| which.is(notice)).map(|(at, _)| *at).collect()
    }

    /// What is picked from the notices, in their order.
    pub fn news<'a, T>(&'a self, pick: impl Fn(&'a Notice) -> Option<T>) -> Vec<T> {
        self.notices.iter().filter_map(|(_, notice)| pick(notice)).collect()
    }

    /// Forgets the commands and notices so far.
    pub fn forget(&mut self) {
        self.sent.clear();
        self.notices.clear();
    }

    /// The reasons for which handlers were closed.
    pub fn closed(&self) -> Vec<EndReason> {
        let calls = self.calls.iter();
        let reason = |op: &ConsumerOp| match op {
            ConsumerOp::Close { reason, .. } => Some(*reason),
            _ => None,
        };
        calls.filter_map(|(_, op)| reason(op)).collect()
    }

    /// When the worker opened the shard with this number first.
    pub fn opened(&self, n: u32) -> Option<Mono> {
        self.commands(OPEN.of(n)).map(|(at, _)| *at).next()
    }

    /// The commands of the worker meet this trap from now on.
    pub fn trap(&mut self, trap: impl FnMut(&Effect) -> Option<Trick> + 'static) {
        self.trap = Some(Box::new(trap));
    }

    /// How many such commands hang.
    pub fn hung(&self, which: impl Wanted<Effect>) -> usize {
        self.hung.iter().filter(|command| which.is(&command.effect)).count()
    }

    /// The worker's name in rows.
    pub fn me(&self) -> WorkerId {
        self.engine().worker().expect("a booted worker").clone()
    }

    pub fn is_stopped(&self) -> bool {
        self.engine().is_stopped()
    }

    /// How many leases the worker holds.
    pub fn held(&self) -> usize {
        self.engine().held().count()
    }

    pub fn die(&mut self) {
        self.alive = false;
    }
}

impl Rig {
    /// How many such notices all workers have told.
    pub fn all_told(&self, which: impl Wanted<Notice>) -> usize {
        let notices = self.workers.iter().flat_map(|worker| &worker.notices);
        notices.filter(|(_, notice)| which.is(notice)).count()
    }

    /// Removes the trap for a worker's commands, and answers the worker's hanging commands.
    pub fn free(&mut self, worker: usize) {
        self[worker].trap = None;
        self.release(worker);
    }

    /// Time passes, in steps, until such a command hangs.
    #[track_caller]
    pub fn until_hung(&mut self, worker: usize, step: Span, which: impl Wanted<Effect>) {
        let from = self.now;
        while self[worker].hung(|effect: &Effect| which.is(effect)) == 0 {
            assert!(self.now.since(from) < Span::from_secs(3_600), "nothing hangs within an hour");
            self.run(step);
        }
    }

    pub fn rows(&self) -> &BTreeMap<LeaseKey, LeaseRow> {
        self.table.rows.as_ref().expect("a table")
    }

    pub fn rows_mut(&mut self) -> &mut BTreeMap<LeaseKey, LeaseRow> {
        self.table.rows.as_mut().expect("a table")
    }

    pub fn row(&self, n: u32) -> &LeaseRow {
        &self.rows()[&shard_id(n).to_lease()]
    }

    pub fn has_row(&self, n: u32) -> bool {
        self.rows().contains_key(&shard_id(n).to_lease())
    }

    /// The row of the shard with this number, to be changed.
    pub fn row_mut(&mut self, n: u32) -> &mut LeaseRow {
        self.rows_mut().get_mut(&shard_id(n).to_lease()).expect("a row")
    }

    /// Another program makes itself, or somebody, the owner of a row.
    pub fn give(&mut self, n: u32, owner: impl Into<WorkerId>) {
        let row = self.row_mut(n);
        (row.owner, row.counter) = (Some(owner.into()), row.counter + 1);
    }

    /// Writes the name of an owner into the rows of some shards. No other attribute of the rows changes.
    pub fn name(&mut self, shards: impl IntoIterator<Item = u32>, owner: impl Into<WorkerId> + Clone) {
        shards.into_iter().for_each(|n| self.row_mut(n).owner = Some(owner.clone().into()));
    }

    /// How many of the first `shards` rows name this owner.
    pub fn named(&self, owner: &str, shards: u32) -> usize {
        (0..shards).filter(|n| self.row(*n).owner.as_ref().is_some_and(|name| name.as_str() == owner)).count()
    }

    pub fn insert(&mut self, row: LeaseRow) {
        self.rows_mut().insert(row.key.clone(), row);
    }

    /// A row as a worker creates it for a listed shard. The shard is read from its beginning.
    pub fn new_row(&self, n: u32) -> LeaseRow {
        let shard = &self.stream.shards[&shard_id(n)];
        let mut row = LeaseRow::new(shard.id.to_lease(), Checkpoint::TrimHorizon);
        (row.range, row.parents) = (Some(shard.range), shard.parents().cloned().collect());
        row
    }

    pub fn owner(&self, n: u32) -> Option<usize> {
        let owner = self.row(n).owner.as_ref()?;
        self.workers.iter().position(|worker| worker.engine().worker() == Some(owner))
    }

    /// The owners of the first `shards` shards.
    pub fn owners(&self, shards: u32) -> Vec<Option<usize>> {
        (0..shards).map(|n| self.owner(n)).collect()
    }

    /// How many of the first `shards` leases this worker owns.
    pub fn owned(&self, worker: usize, shards: u32) -> usize {
        self.owners(shards).into_iter().filter(|owner| *owner == Some(worker)).count()
    }
}

/// A row of another program: the row lacks hash keys and parents, and the shard is read from the oldest record on.
pub fn bare(n: u32) -> LeaseRow {
    LeaseRow::new(shard_id(n).to_lease(), Checkpoint::TrimHorizon)
}
