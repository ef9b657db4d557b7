//! `every-record-delivered`: in fleets of several programs, too, no record is repeated without a crash or a steal.
//!
//! The next owner of a shard, ours or another program's, receives again no record
//!
//! * covered by a checkpoint in the row; the end of the shard covers all records;
//! * processed by its owner before the owner gave up the lease by a release, a hand-over or an end. For a stopping
//!   owner, its written checkpoint counts: the owner may run out of time.
//!
//! Only the following reasons excuse a repetition:
//!
//! | excuse | why |
//! |---|---|
//! | a crash | records processed since the last checkpoint are in no row |
//! | a steal, the take of an expired lease, or a leader of another program that assigns its own lease | the former owner did not release the lease: its row is behind its progress |
//! | the next owner read the row before the release | another program begins at the checkpoint of its last read |
//! | the worker let the lease go because its handlers blocked every thread | a call that ends afterwards is in no row |
//! | another program, or a person, wrote an older checkpoint back | from then on the row's checkpoint counts |
//! | another program wrote a checkpoint into the row of a lost lease | the owner's next checkpoint is its own, and may be older |
//! | a person removed a row, or the table or the stream was lost | leases begin anew |
//! | a person put an open shard at its end after the next owner had read the row | the take is of the row as read: the counter is the same; the next checkpoint of the new owner takes the end back |
//!
//! `parents-first` as well: after a child has begun, no worker reads its finished parent again.

mod parent_rows;

use super::fact::{Mark, Owner, Row, Verb, begins, owner};
use super::{
    EVENTS, Fact, History, LifeNo, PerShard, Property, READS, ROWS, SHOWN, Sees, ShardNo, Terms, Time,
    Verdict,
};
use parent_rows::ParentRows;
use std::collections::{BTreeMap, BTreeSet};

/// The coverage of a shard's end.
const ALL: u64 = u64::MAX;

/// One ownership.
#[derive(Clone, Copy, Debug, Default)]
struct Ownership {
    token: u64,
    /// The record covered when the owner read its start position.
    floor: u64,
}

/// A shard put at its end by a person.
#[derive(Clone, Debug)]
struct EndedByHand {
    /// The record covered before.
    covered: u64,
    /// Lives with an answer that showed the end.
    shown: BTreeSet<LifeNo>,
    /// An owner without knowledge of the end: its next checkpoint takes the end back.
    unaware: Option<LifeNo>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Repeats {
    parent_rows: ParentRows,
    /// No record of a shard up to here needs another processing.
    covered: PerShard<u64>,
    /// The record covered at a life's last read of the row, or when the life became the owner.
    seen: BTreeMap<(LifeNo, ShardNo), u64>,
    owners: BTreeMap<(LifeNo, ShardNo), Ownership>,
    /// The progress of each owner.
    processed: BTreeMap<(LifeNo, ShardNo), u64>,
    /// Workers of other programs with two readers of a shard in turn: one reader wrote an older checkpoint over a newer
    /// checkpoint.
    wrote_back: BTreeSet<(LifeNo, ShardNo)>,
    ended_by_hand: BTreeMap<ShardNo, EndedByHand>,
    /// Leases let go of because no handler could run.
    let_go: BTreeSet<(LifeNo, ShardNo)>,
    /// Shards with records of a child handed over.
    passed: BTreeSet<ShardNo>,
    /// Leases begin anew at unknown places.
    lost: bool,
}

fn covers(row: Row) -> u64 {
    match row.checkpoint {
        Mark::At(record) => record,
        Mark::End => ALL,
        Mark::AtTimestamp | Mark::TrimHorizon | Mark::Latest | Mark::Nowhere => 0,
    }
}

impl Repeats {
    pub(super) const SEES: Sees = Sees::ours(ROWS | SHOWN | READS | EVENTS).others(ROWS | READS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        Self { parent_rows: ParentRows::new(terms), ..Self::default() }
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, verdict: &mut Verdict) {
        self.parent_rows.observe(now, fact, history, verdict);
        match *fact {
            Fact::RowChanged { shard, by, verb, before, after, .. } => {
                self.row_changed(shard, by.filter(|_| verb.is_some()), (before, after), verb, history)
            }
            // The row's present content decides about the start.
            Fact::Looked { life, shard } => {
                let covered = *self.covered.of(shard);
                self.seen.insert((life, shard), covered);
            }
            Fact::Shown { life, shard, row, .. } if row.checkpoint == Mark::End => {
                if let Some(ended) = self.ended_by_hand.get_mut(&shard) {
                    ended.shown.insert(life);
                }
            }
            Fact::OpenBegun { life, shard, token } => {
                let floor = self.seen.get(&(life, shard)).copied().unwrap_or(0);
                self.owners.insert((life, shard), Ownership { token, floor });
                self.processed.remove(&(life, shard));
                self.let_go.remove(&(life, shard));
            }
            Fact::LetsGo { life } => {
                let owned = self.owners.range((life, 0)..=(life, ShardNo::MAX));
                self.let_go.extend(owned.map(|(owned, _)| *owned));
            }
            Fact::Processed { life, shard, through, .. } if !self.let_go.contains(&(life, shard)) => {
                let done = self.processed.entry((life, shard)).or_default();
                *done = through.max(*done);
            }
            Fact::Delivered { life, shard, token, first, .. } => {
                self.delivered(now, (life, shard, token), first, verdict);
                let parents = history.shard(shard).parents;
                self.passed.extend(parents.into_iter().flatten());
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.seen.retain(|(of, _), _| *of != life);
                self.owners.retain(|(of, _), _| *of != life);
                self.processed.retain(|(of, _), _| *of != life);
                self.wrote_back.retain(|(of, _)| *of != life);
                self.let_go.retain(|(of, _)| *of != life);
            }
            Fact::LostForGood | Fact::Foreign => self.lost = true,
            _ => {}
        }
    }

    /// `by`: absent for a person.
    fn row_changed(
        &mut self, shard: ShardNo, by: Option<LifeNo>, (before, after): (Option<Row>, Option<Row>),
        verb: Option<Verb>, history: &History,
    ) {
        let of_others = history.of_others;
        let goes_back = before.map_or(0, covers) > after.map_or(0, covers) && after.is_some();
        if let Some(life) = by.filter(|_| goes_back && of_others) {
            self.wrote_back.insert((life, shard));
        }
        let done = by
            .filter(|life| !history.stopping.contains(life) && !self.wrote_back.contains(&(*life, shard)))
            .and_then(|life| self.processed.get(&(life, shard)).copied());
        let Some(row) = after else {
            // A finished shard stays finished without its row.
            self.lost |= before.is_some_and(|row| row.checkpoint != Mark::End) || by.is_none();
            return;
        };
        let (was, is) = (before.map_or(0, covers), covers(row));
        let ended = self.ended_by_hand.get(&shard);
        let ended = ended.filter(|ended| by.is_some() && by == ended.unaware);
        let taken_back = ended.map(|ended| ended.covered);
        let now_covered = self.covered.of(shard);
        let covered_before = *now_covered;
        if is < was && (of_others || by.is_none()) {
            *now_covered = is;
        } else if let Some(covered) = taken_back.filter(|_| is < was) {
            *now_covered = covered;
        }
        let binds = !of_others || may_write(owner(before), owner(after), by);
        if binds && (is != was || before.is_none()) {
            *now_covered = is.max(*now_covered);
        }
        // The owner writes another owner, or none, into the row. A leader of another program that owns the lease robs
        // itself: the leader assigns the lease, and the leader's reader continues.
        let robs_itself = of_others && verb == Some(Verb::Take);
        let lets_go = by.is_some_and(|life| owner(before) == Some(Owner::Life(life)))
            && owner(after) != owner(before)
            && !robs_itself;
        if let Some(done) = done.filter(|_| lets_go) {
            *now_covered = done.max(*now_covered);
        }
        let covered = *now_covered;
        self.note_end_by_hand(shard, by, (was, row), covered_before);
        let becomes = owner(after).and_then(Owner::life).filter(|_| begins(verb, before, after));
        if let Some(life) = becomes {
            // The life lost its earlier progress with the earlier ownership, or gave the progress up.
            self.processed.remove(&(life, shard));
            self.wrote_back.remove(&(life, shard));
        }
        if let Some(life) = becomes.filter(|life| !of_others || by != Some(*life)) {
            // From a robbed owner, the new owner has no more than the row's checkpoint.
            let robbed = owner(before).is_some() && by == Some(life) && owner(before) != owner(after);
            let unknown = self.ended_by_hand.get_mut(&shard);
            let unknown = unknown.filter(|ended| by == Some(life) && !ended.shown.contains(&life));
            let seen = unknown.map_or(if robbed { is } else { covered }, |ended| {
                ended.unaware = Some(life);
                ended.covered
            });
            self.seen.insert((life, shard), seen);
        }
    }

    /// A person puts a shard at its end. The counter stays, so the take of a worker with an earlier read of the row is
    /// still applied.
    fn note_end_by_hand(&mut self, shard: ShardNo, by: Option<LifeNo>, (was, row): (u64, Row), covered: u64) {
        if covers(row) != ALL {
            self.ended_by_hand.remove(&shard);
        } else if was != ALL && by.is_none() {
            let ended =
                EndedByHand { covered, shown: BTreeSet::new(), unaware: row.owner.and_then(Owner::life) };
            self.ended_by_hand.insert(shard, ended);
        }
    }

    fn delivered(
        &mut self, now: Time, (life, shard, token): (LifeNo, ShardNo, u64), first: u64, verdict: &mut Verdict,
    ) {
        let owner = self.owners.get(&(life, shard)).filter(|owner| owner.token == token);
        let Some(floor) = owner.map(|owner| owner.floor).filter(|floor| first <= *floor && !self.lost) else {
            return;
        };
        if floor == ALL {
            let (property, when) = match self.passed.contains(&shard) {
                true => (Property::ParentsFirst, "after a child had begun"),
                false => (Property::EveryRecordDelivered, "again"),
            };
            return verdict.report_of_anybody(property, now, || {
                format!(
                    "life {life} was given record {first} of shard {shard} {when}, and the row that it had read said that the \
                     shard was processed to its end"
                )
            });
        }
        verdict.report_of_anybody(Property::EveryRecordDelivered, now, || {
            format!(
                "life {life} was given record {first} of shard {shard}, and nobody had crashed or was robbed: when it read where to \
                 begin, those up to {floor} were processed, and the lease was let go of in good order or its checkpoint covered them"
            )
        });
    }
}

/// Whether the owner wrote a checkpoint. Another program may write a checkpoint after the loss of its lease. The owner
/// goes on from its own checkpoint, and leaves the foreign checkpoint in the row until then.
fn may_write(before: Option<Owner>, after: Option<Owner>, by: Option<LifeNo>) -> bool {
    before.is_none() || before == by.map(Owner::Life) || before != after
}

#[cfg(test)]
mod tests;
