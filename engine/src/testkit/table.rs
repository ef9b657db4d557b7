//! A lease table in memory: its rows, and the effects of operations on the rows.

use super::{Plain, Stream, refused_by};
use crate::fleet::{FleetTable, FleetTableOp};
use crate::format::{Kcl, LeaseFormat};
use crate::ids::{LeaseKey, WorkerId};
use crate::input::{Outcome, OwnedPage, Reply, ScanPage, TableState, Why};
use crate::output::TableOp;
use crate::position::Checkpoint;
use crate::row::{Change, LeaseRow, RowRead};
use crate::table::{Item, ItemWrite, WriteError};
use std::collections::BTreeMap;

/// How a table keeps its rows, and the effect of a change on a row.
pub trait Keeping {
    /// A row as it is kept.
    type Row;

    /// A row as it is read.
    fn read(&self, row: &Self::Row) -> RowRead;

    /// Makes a guarded change of the row with the change's key, which may be absent.
    ///
    /// # Errors
    /// Why the write is refused. The row is then as it was.
    fn change(&self, row: &mut Option<Self::Row>, change: &Change) -> Result<(), Why>;
}

/// A lease table without delays and failures.
#[derive(Clone, Debug)]
pub struct LeaseTable<K: Keeping = Plain> {
    /// The rows; absent: the table does not exist.
    pub rows: Option<BTreeMap<LeaseKey, K::Row>>,
    /// The unreadable rows, each with its error.
    pub unreadable: BTreeMap<LeaseKey, String>,
    /// How rows are kept.
    pub keeping: K,
    /// The rows by which workers of KCL 3.x know each other, as items of KCL's format. The last page of a scan shows
    /// these rows.
    pub fleet: BTreeMap<LeaseKey, Item>,
    /// Whether the index of owners is there.
    pub owner_index: bool,
    /// The tables in which workers of KCL 3.0 to 3.4 know each other, as items of KCL's format; absent: the table does
    /// not exist.
    pub fleet_tables: BTreeMap<FleetTable, BTreeMap<LeaseKey, Item>>,
}

impl<K: Keeping> LeaseTable<K> {
    /// An existing table without rows.
    pub fn empty(keeping: K) -> Self {
        Self {
            rows: Some(BTreeMap::new()),
            unreadable: BTreeMap::new(),
            keeping,
            fleet: BTreeMap::new(),
            owner_index: false,
            fleet_tables: BTreeMap::new(),
        }
    }

    /// Carries out an operation. Operations on members are refused with `NotFound`: no tables lie beside this table.
    pub fn execute(&mut self, op: &TableOp) -> Outcome {
        let Some(rows) = &self.rows else {
            return match op {
                TableOp::Describe => Outcome::Applied(Reply::Table(TableState::Missing)),
                TableOp::Create => {
                    self.rows = Some(BTreeMap::new());
                    Outcome::Applied(Reply::Done)
                }
                TableOp::FleetTable(table, op) => self.beside(*table, op),
                _ => refused_by(Why::NotFound, None),
            };
        };
        Outcome::Applied(match op {
            TableOp::Describe => Reply::Table(TableState::Usable),
            TableOp::Create => return refused_by(Why::InUse, None),
            TableOp::Scan { after, limit } => Reply::Page(self.page(rows, after.as_ref(), *limit)),
            TableOp::Read { key } => Reply::Row(self.read(key).map(Box::new)),
            TableOp::Write(change) => return self.write(change),
            TableOp::Members(_) => return refused_by(Why::NotFound, None),
            TableOp::Fleet(write) => return write_row(&mut self.fleet, write.key(), Kcl.encode_fleet(write)),
            TableOp::OwnerIndex => Reply::OwnerIndex(self.owner_index),
            TableOp::FleetTable(table, op) => return self.beside(*table, op),
            TableOp::Owned { .. } if !self.owner_index => return refused_by(Why::Invalid, None),
            TableOp::Owned { owner, after } => {
                Reply::Owned(OwnedPage { keys: self.owned(owner, after.as_ref()), next: None })
            }
        })
    }

    /// Carries out an operation on a table in which workers of KCL 3.0 to 3.4 know each other.
    fn beside(&mut self, table: FleetTable, op: &FleetTableOp) -> Outcome {
        let rows = self.fleet_tables.get_mut(&table);
        match (op, rows) {
            (FleetTableOp::Describe, None) => Outcome::Applied(Reply::Table(TableState::Missing)),
            (FleetTableOp::Describe, Some(_)) => Outcome::Applied(Reply::Table(TableState::Usable)),
            (_, None) => refused_by(Why::NotFound, None),
            (FleetTableOp::Scan { .. }, Some(rows)) => Outcome::Applied(Reply::Page(ScanPage {
                rows: rows.values().map(|item| Kcl.decode_fleet(table, item)).collect(),
                next: None,
            })),
            (FleetTableOp::Write(write), Some(rows)) => {
                write_row(rows, write.key(), Kcl.encode_fleet_in(table, write))
            }
        }
    }

    /// The keys of this owner's leases, after the key `after`.
    fn owned(&self, owner: &WorkerId, after: Option<&LeaseKey>) -> Vec<LeaseKey> {
        let rows = self.rows.iter().flatten().filter(|(key, _)| after < Some(*key));
        let owned = rows.filter(|(_, row)| {
            let row = self.keeping.read(row);
            row.lease().is_some_and(|row| row.owner.as_ref() == Some(owner))
        });
        owned.map(|(key, _)| key.clone()).collect()
    }

    /// The row with this key as read by a worker; absent: the row does not exist.
    pub fn read(&self, key: &LeaseKey) -> Option<RowRead> {
        let row = self.rows.as_ref()?.get(key)?;
        Some(self.shown(key, row))
    }

    fn shown(&self, key: &LeaseKey, row: &K::Row) -> RowRead {
        match self.unreadable.get(key) {
            None => self.keeping.read(row),
            Some(detail) => RowRead::Unreadable { key: key.clone(), detail: detail.clone() },
        }
    }

    fn page(
        &self, rows: &BTreeMap<LeaseKey, K::Row>, after: Option<&LeaseKey>, limit: Option<u32>,
    ) -> ScanPage {
        let mut left = rows.iter().filter(|(key, _)| after < Some(*key));
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let page: Vec<_> = left.by_ref().take(limit).collect();
        let last = page.last().map(|(key, _)| (*key).clone());
        let next = last.filter(|_| left.next().is_some());
        let mut rows: Vec<_> = page.into_iter().map(|(key, row)| self.shown(key, row)).collect();
        if next.is_none() {
            rows.extend(self.fleet.values().map(|item| Kcl.decode(item)));
        }
        ScanPage { rows, next }
    }

    fn write(&mut self, change: &Change) -> Outcome {
        let key = change.key();
        let Some(rows) = &mut self.rows else {
            return refused_by(Why::NotFound, None);
        };
        let mut row = rows.remove(key);
        let done = self.keeping.change(&mut row, change);
        rows.extend(row.map(|row| (key.clone(), row)));
        match done {
            Ok(()) => Outcome::Applied(Reply::Done),
            Err(why) => refused_by(why, self.read(key)),
        }
    }
}

/// Makes a write of a row by which workers of KCL 3.x know each other.
fn write_row(rows: &mut BTreeMap<LeaseKey, Item>, key: LeaseKey, write: Option<ItemWrite>) -> Outcome {
    let mut item = rows.remove(&key);
    let done = match write {
        Some(write) => write.carry_out(&mut item),
        None => Err(WriteError::ConditionFailed),
    };
    rows.extend(item.map(|item| (key, item)));
    match done {
        Ok(()) => Outcome::Applied(Reply::Done),
        Err(_) => refused_by(Why::ConditionFailed, None),
    }
}

impl LeaseTable {
    /// A table with a row for each shard of a stream: no worker has owned a lease yet, and each shard is read from its
    /// beginning.
    pub fn covering(stream: &Stream) -> Self {
        let mut table = Self::empty(Plain);
        table.rows = Some(
            stream
                .shards
                .values()
                .map(|shard| {
                    let mut row = LeaseRow::new(shard.id.to_lease(), Checkpoint::TrimHorizon);
                    row.range = Some(shard.range);
                    row.parents = shard.parents().cloned().collect();
                    (row.key.clone(), row)
                })
                .collect(),
        );
        table
    }
}

/// Rows are kept as items of a format.
#[derive(Clone, Copy, Debug)]
pub struct Items<F>(pub F);

impl<F: LeaseFormat> Keeping for Items<F> {
    type Row = Item;

    fn read(&self, item: &Item) -> RowRead {
        self.0.decode(item)
    }

    fn change(&self, item: &mut Option<Item>, change: &Change) -> Result<(), Why> {
        let write = self.0.encode(change);
        write.carry_out(item).map_err(|error| match error {
            WriteError::ConditionFailed => Why::ConditionFailed,
            WriteError::Invalid { .. } => Why::Invalid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Kcl;
    use crate::position::Position;
    use crate::row::{Guard, HandsOver};
    use crate::shard::HashRange;
    use crate::testkit::{item_of, renaming_of, reset_of, shard_id, take_of};

    fn scan(after: Option<&str>, limit: Option<u32>) -> TableOp {
        let after = after.map(LeaseKey::from);
        TableOp::Scan { after, limit }
    }

    /// The keys of a page, and the key after which the next page starts.
    #[track_caller]
    fn keys<K: Keeping>(table: &mut LeaseTable<K>, op: &TableOp) -> (Vec<String>, Option<LeaseKey>) {
        let Outcome::Applied(Reply::Page(page)) = table.execute(op) else {
            panic!("expected a page of {op:?}");
        };
        let keys = page.rows.iter().map(|row| row.key().to_string()).collect();
        (keys, page.next)
    }

    fn why(outcome: &Outcome) -> Option<Why> {
        match outcome {
            Outcome::Refused(refusal) => Some(refusal.why),
            _ => None,
        }
    }

    fn take(key: &str, counter: u64) -> TableOp {
        let row = LeaseRow { counter, ..LeaseRow::new(key.into(), Checkpoint::TrimHorizon) };
        TableOp::Write(take_of(&row, counter + 1, "w"))
    }

    #[test]
    fn a_table_is_created_once_and_only_then_has_rows() {
        let mut table = LeaseTable::empty(Plain);
        assert_eq!(why(&table.execute(&TableOp::Create)), Some(Why::InUse));
        table.rows = None;
        let missing = Outcome::Applied(Reply::Table(TableState::Missing));
        assert_eq!(table.execute(&TableOp::Describe), missing);
        for op in [scan(None, None), TableOp::Read { key: "a".into() }, take("a", 0)] {
            assert_eq!(why(&table.execute(&op)), Some(Why::NotFound), "{op:?}");
        }
        assert_eq!(table.execute(&TableOp::Create), Outcome::Applied(Reply::Done));
        assert_eq!(keys(&mut table, &scan(None, None)), (Vec::new(), None));
    }

    #[test]
    fn pages_follow_one_another_and_the_last_one_has_no_next() {
        let mut table = LeaseTable::covering(&Stream::of(3));
        let id = |n| shard_id(n).to_string();
        let (first, next) = keys(&mut table, &scan(None, Some(2)));
        assert_eq!(first, [id(0), id(1)]);
        assert_eq!(next, Some(shard_id(1).to_lease()));
        let rest = scan(next.as_ref().map(LeaseKey::as_str), Some(2));
        assert_eq!(keys(&mut table, &rest), (vec![id(2)], None));
        assert_eq!(keys(&mut table, &scan(None, Some(3))).1, None);
    }

    #[test]
    fn a_refused_write_shows_the_row_and_leaves_it_alone() {
        let mut table = LeaseTable::covering(&Stream::of(1));
        let key = shard_id(0).to_lease();
        let before = table.read(&key);
        let Outcome::Refused(refusal) = table.execute(&take(key.as_str(), 7)) else {
            panic!("expected a refusal: the counter is 0");
        };
        assert_eq!(refusal.why, Why::ConditionFailed);
        assert_eq!(refusal.current.map(|row| *row), before);
        assert_eq!(table.read(&key), before);
        table.unreadable.insert(key.clone(), "a test".to_owned());
        assert!(matches!(table.read(&key), Some(RowRead::Unreadable { .. })));
    }

    /// A change of each kind, guarded by the counter 3 and by the owner `w`; with `next`, by a hand-over from `w` to
    /// `next`.
    fn changes(next: Option<&str>) -> [Change; 12] {
        let (key, checkpoint) = (LeaseKey::from("k"), Checkpoint::TrimHorizon);
        let guard = Guard { counter: 3, next: 4, holder: "w".into(), next_owner: next.map(Into::into) };
        let (counter, owner) = (3, next.map(Into::into));
        let taken = LeaseRow { counter, owner, ..LeaseRow::new(key.clone(), checkpoint) };
        let owned = LeaseRow {
            owner: Some(next.unwrap_or("w").into()),
            handing_over: next.map(|_| "w".into()),
            ..taken.clone()
        };
        [
            Change::Create(Box::new(LeaseRow::new(key.clone(), checkpoint))),
            Change::Renew { key: key.clone(), guard: guard.clone(), began: None },
            Change::Release { key: key.clone(), guard: guard.clone() },
            Change::HandOver { key: key.clone(), guard: guard.clone() },
            Change::End { key: key.clone(), guard: guard.clone(), children: vec!["c".into()], last: None },
            Change::Checkpoint { key: key.clone(), guard, position: Position::of(9.into()) },
            take_of(&taken, 4, "t"),
            Change::Claim { key: key.clone(), counter: 3, from: "w".into(), checkpoint, by: "c".into() },
            Change::SetRange { key: key.clone(), was: None, range: HashRange::ALL },
            reset_of(&owned, 4, Checkpoint::Latest),
            renaming_of(&owned),
            Change::Delete { key, counter: 3 },
        ]
    }

    /// The changes that only the leader of a fleet makes, of the same row.
    fn of_a_leader(next: Option<&str>) -> [Change; 2] {
        let key = LeaseKey::from("k");
        [
            Change::Assign {
                key: key.clone(),
                counter: 3,
                next: 4,
                from: Some(next.unwrap_or("w").into()),
                handing_over: next.map(|_| "w".into()),
                to: "a".into(),
            },
            Change::Offer { key: key.clone(), from: "w".into(), to: "o".into() },
        ]
    }

    /// Makes a change of a plain row and of its item, and compares both. Gives whether the guard held.
    #[track_caller]
    fn agree(row: &LeaseRow, change: &Change) -> bool {
        let (mut plain, mut item) = (Some(row.clone()), Some(item_of(&Kcl, row)));
        let done = Plain.change(&mut plain, change);
        assert_eq!(Items(Kcl).change(&mut item, change), done, "{change:?} of {row:?}");
        let item = item.map(|item| Items(Kcl).read(&item));
        // How often the owner changed is not counted in rows as they are.
        let switches = item.as_ref().and_then(RowRead::lease).map_or(0, |row| row.switches);
        let plain = plain.map(|row| RowRead::Lease(LeaseRow { switches, ..row }));
        assert_eq!(plain, item, "{change:?} of {row:?}");
        done.is_ok()
    }

    /// Each change is tried on rows of every kind; its guard holds on some rows only.
    #[test]
    fn rows_as_they_are_change_like_items_of_a_format() {
        let mut applied = 0;
        for (owner, old) in [(None, None), (Some("w"), None), (Some("n"), Some("w"))] {
            for (counter, checkpoint) in
                [(3, Checkpoint::TrimHorizon), (3, Checkpoint::ShardEnd), (5, Checkpoint::ShardEnd)]
            {
                let row = LeaseRow {
                    owner: owner.map(Into::into),
                    handing_over: old.map(Into::into),
                    counter,
                    ..LeaseRow::new("k".into(), checkpoint)
                };
                let all = [None, Some("n")].map(|next| changes(next).into_iter().chain(of_a_leader(next)));
                let all: Vec<_> = all.into_iter().flatten().collect();
                applied += all.iter().filter(|change| agree(&row, change)).count();
                if owner.is_some() {
                    let hands_over = HandsOver::Yes;
                    let row = LeaseRow { hands_over, ..row };
                    applied += all.iter().filter(|change| agree(&row, change)).count();
                }
            }
        }
        assert!(applied > 20, "{applied}");
    }
}
