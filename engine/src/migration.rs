//! Bringing one row of a lease table up to the row of the same shard in another, whatever formats the two have.
//!
//! [`next`] looks at both rows and says the next guarded write. A migration carries this write out, reads the row again
//! and calls [`next`] again: the migration can be interrupted anywhere, repeated, and run the other way round. A
//! checkpoint never goes backwards, and a lease owned by a worker in the new table is left alone.

use crate::began;
use crate::ids::{ShardId, WorkerId};
use crate::policy::Life;
use crate::position::Checkpoint;
use crate::row::{Change, Guard, LeaseRow};
use crate::time::{Span, Wall};
use std::fmt;

/// What comes next for a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// This write, and then to look again.
    Write(Box<Change>),
    /// Nothing: the new row agrees with the old row.
    Done,
    /// Nothing can be done, and why.
    Conflict(Conflict),
}

/// Why a row is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// A worker owns the lease in the new table.
    Owned(WorkerId),
    /// It is further on in the new table.
    Ahead {
        /// Where the old row is.
        old: Checkpoint,
        /// The checkpoint in the new row.
        new: Checkpoint,
    },
    /// The old row begins at one place, and the existing new row begins at another place.
    Begins {
        /// Where the old row begins.
        old: Checkpoint,
        /// The start in the new row.
        new: Checkpoint,
    },
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conflict::Owned(owner) => write!(
                f,
                "expected nobody to own the lease in the new table, found {:?}; stop that worker first",
                owner.as_str()
            ),
            Conflict::Ahead { old, new } => write!(
                f,
                "expected the lease in the new table to be at {old} at most, found {new}; if the old table is right, \
                 delete that row and migrate again"
            ),
            Conflict::Begins { old, new } => write!(
                f,
                "expected the lease in the new table to begin at {old}, found {new}; delete that row and migrate again"
            ),
        }
    }
}

/// The row that `old` becomes in another table: the copy has no owner and no guard yet. The copy keeps the moment from
/// which its shard is read; a row at `LATEST` without a moment is read from `now` on.
pub fn copied(old: &LeaseRow, now: Wall) -> LeaseRow {
    LeaseRow {
        began: began::carried(old, now),
        parents: old.parents.clone(),
        children: old.children.clone(),
        range: old.range,
        stream: old.stream.clone(),
        ..LeaseRow::new(old.key.clone(), old.checkpoint)
    }
}

/// The next step, for `me` as the migrating worker. `life` is the `Life` of the new table, `now` this machine's clock.
pub fn next(old: &LeaseRow, new: Option<&LeaseRow>, me: &WorkerId, life: Life, now: Wall) -> Step {
    let Some(new) = new else {
        return write(Change::Create(Box::new(copied(old, now))));
    };
    let mine = new.owner.as_ref() == Some(me) && new.handing_over.is_none();
    if let Some(owner) = new.actual_owner().or(new.owner.as_ref()).filter(|_| !mine) {
        return Step::Conflict(Conflict::Owned(owner.clone()));
    }
    let key = new.key.clone();
    let next = life.next(new.counter, now, Span::ZERO);
    let guard = Guard { counter: new.counter, next, holder: me.clone(), next_owner: None };
    match Order::of(old.checkpoint, new.checkpoint) {
        Order::Same if mine => write(Change::Release { key, guard }),
        Order::Same => Step::Done,
        Order::Ahead => Step::Conflict(Conflict::Ahead { old: old.checkpoint, new: new.checkpoint }),
        Order::Otherwise => Step::Conflict(Conflict::Begins { old: old.checkpoint, new: new.checkpoint }),
        Order::Behind if !mine => write(Change::Take {
            key,
            counter: new.counter,
            next,
            from: None,
            checkpoint: new.checkpoint,
            to: me.clone(),
            // The old row is further on, and has a checkpoint.
            began: None,
            named: new.stream.clone(),
            stream: old.stream.clone(),
        }),
        Order::Behind => write(match old.checkpoint {
            Checkpoint::At(position) => Change::Checkpoint { key, guard, position },
            _ => Change::End {
                key,
                guard,
                children: children(old, new),
                // A table says less than where a shard ended: the new row may be behind.
                last: None,
            },
        }),
    }
}

fn write(change: Change) -> Step {
    Step::Write(Box::new(change))
}

fn children(old: &LeaseRow, new: &LeaseRow) -> Vec<ShardId> {
    let known = if old.children.is_empty() { new } else { old };
    known.children.clone()
}

/// How far the new row is, compared with the old one.
enum Order {
    Same,
    Behind,
    Ahead,
    Otherwise,
}

impl Order {
    fn of(old: Checkpoint, new: Checkpoint) -> Self {
        match (old, new) {
            (old, new) if old == new => Order::Same,
            (Checkpoint::ShardEnd, _) => Order::Behind,
            (_, Checkpoint::ShardEnd) => Order::Ahead,
            (Checkpoint::At(old), Checkpoint::At(new)) if new < old => Order::Behind,
            (_, Checkpoint::At(_)) => Order::Ahead,
            (Checkpoint::At(_), _) => Order::Behind,
            _ => Order::Otherwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Format, LeaseFormat};
    use crate::row::RowRead;
    use crate::table::Item;
    use crate::testkit::at;
    use proptest::prelude::*;

    const NOW: Wall = Wall(1_700_000_000_000);

    fn me() -> WorkerId {
        "migration".into()
    }

    fn row(checkpoint: Checkpoint) -> LeaseRow {
        LeaseRow {
            counter: 7,
            owner: Some("old".into()),
            parents: vec!["shardId-000000000000".into()],
            ..LeaseRow::new("shardId-000000000001".into(), checkpoint)
        }
    }

    fn read(kind: Format, item: Option<&Item>) -> Option<LeaseRow> {
        match kind.decode(item?) {
            RowRead::Lease(row) => Some(row),
            other => panic!("{other:?}"),
        }
    }

    /// Carries out at most `most` steps; returns the end of the migration, if reached.
    fn migrate(old: &LeaseRow, kind: Format, table: &mut Option<Item>, most: usize) -> Option<Step> {
        for _ in 0..most {
            let new = read(kind, table.as_ref());
            match next(old, new.as_ref(), &me(), kind.policies().life, NOW) {
                Step::Write(change) => kind.encode(&change).carry_out(table).unwrap(),
                end => return Some(end),
            }
        }
        None
    }

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        prop_oneof![
            (0u64..4).prop_map(at),
            Just(Checkpoint::TrimHorizon),
            Just(Checkpoint::Latest),
            Just(Checkpoint::ShardEnd),
        ]
    }

    fn kinds() -> impl Strategy<Value = Format> {
        prop::sample::select(Format::ALL.to_vec())
    }

    proptest! {
        /// Interrupted after any number of steps, and with the old fleet going on in between, it ends as if it had not been.
        #[test]
        fn interruptions_leave_no_trace(kind in kinds(), first in checkpoints(), then in checkpoints(), steps in 0usize..6) {
            let (mut once, mut twice) = (None, None);
            migrate(&row(first), kind, &mut twice, steps);
            let again = migrate(&row(then), kind, &mut twice, 10).unwrap();
            let whole = migrate(&row(then), kind, &mut once, 10).unwrap();
            prop_assert_eq!(whole, Step::Done);
            if again == Step::Done {
                let plain = |table: &Option<Item>| read(kind, table.as_ref()).map(|row| copied(&row, NOW));
                prop_assert_eq!(plain(&once), plain(&twice));
            } else {
                // Only a checkpoint already further on is left alone.
                let behind = !matches!(Order::of(then, first), Order::Ahead | Order::Otherwise);
                prop_assert!(!behind, "{:?} of {:?} after {:?}", again, then, first);
            }
        }

        /// There, work in the new table, and back.
        #[test]
        fn the_way_back_brings_what_was_done(there in kinds(), back in kinds(), first in checkpoints(), done in checkpoints()) {
            let (mut old, mut new) = (None, None);
            prop_assert_eq!(migrate(&row(first), back, &mut old, 10), Some(Step::Done));
            let begun = read(back, old.as_ref()).unwrap();
            prop_assert_eq!(migrate(&begun, there, &mut new, 10), Some(Step::Done));
            prop_assume!(matches!(Order::of(done, first), Order::Behind | Order::Same));
            prop_assert_eq!(migrate(&row(done), there, &mut new, 10), Some(Step::Done));
            let worked = read(there, new.as_ref()).unwrap();
            prop_assert_eq!(migrate(&worked, back, &mut old, 10), Some(Step::Done));
            prop_assert_eq!(read(back, old.as_ref()).unwrap().checkpoint, done);
        }
    }

    /// Both fleets begin there, whichever table comes first.
    #[test]
    fn the_moment_from_which_a_shard_is_read_goes_along() {
        for kind in Format::ALL {
            let old = LeaseRow { began: Some(Wall(NOW.0 - 60_000)), ..row(Checkpoint::Latest) };
            let mut table = None;
            migrate(&old, kind, &mut table, 10);
            let new = read(kind, table.as_ref()).unwrap();
            assert!(
                new.began < old.began,
                "{kind:?}: the first owner in the new table begins a margin later"
            );
            let bare = row(Checkpoint::Latest);
            let mut table = None;
            migrate(&bare, kind, &mut table, 10);
            let new = read(kind, table.as_ref()).unwrap();
            assert_eq!(new.began, Some(Wall(NOW.0 - began::MARGIN_MS)), "{kind:?}");
        }
    }

    #[test]
    fn owned_and_advanced_rows_are_left_alone() {
        let owned = LeaseRow { owner: Some("w".into()), ..copied(&row(at(1)), NOW) };
        let step = |old, new: &LeaseRow| match next(&row(old), Some(new), &me(), Life::Counter, NOW) {
            Step::Conflict(conflict) => conflict.to_string(),
            step => format!("{step:?}"),
        };
        assert!(step(at(2), &owned).contains("found \"w\"; stop that worker first"));
        assert!(step(at(1), &copied(&row(at(2)), NOW)).contains("at 1 at most, found 2"));
        assert!(
            step(Checkpoint::Latest, &copied(&row(Checkpoint::TrimHorizon), NOW)).contains("begin at LATEST")
        );
    }
}
