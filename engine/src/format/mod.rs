//! Table formats: how lease rows and changes are spelled as items and writes.

mod deadline;
mod kcl;
mod kcl_rb;
mod kinsumer;
mod membership;
mod reading;
mod vmware_go_kcl;

pub use kcl::Kcl;
pub use kinsumer::Kinsumer;
pub use membership::{ItemOp, Membership, SideRead};

use crate::fleet::{FleetTable, FleetWrite};
use crate::ids::LeaseKey;
use crate::policy::Policies;
use crate::row::{Change, RowRead};
use crate::table::{Item, ItemWrite};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A table format. Pure: two of them never see each other's state, and none has any.
pub trait LeaseFormat {
    /// The name of the table's hash key attribute, a string; there is no sort key.
    fn key_name(&self) -> &'static str;

    /// What follows from the format for a worker's rules.
    fn policies(&self) -> Policies;

    /// The primary key of a row.
    fn key(&self, key: &LeaseKey) -> Item;

    /// What an item is. Any item at all gets an answer.
    fn decode(&self, item: &Item) -> RowRead;

    /// What an item lacks that is read as a lease all the same. Every program of the format writes these attributes, so a person
    /// or another tool removed them; the next worker that takes the lease writes them again.
    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        let _ = item;
        Vec::new()
    }

    /// The one conditional write that makes a change. It leaves alone every attribute that it does not name.
    fn encode(&self, change: &Change) -> ItemWrite;

    /// The one conditional write of a row by which workers of a fleet with a leader know each other, if the format has such rows.
    fn encode_fleet(&self, write: &FleetWrite) -> Option<ItemWrite> {
        let _ = write;
        None
    }

    /// The name of the hash key attribute, a string, of a table in which fleets of such workers may keep these rows; there is no sort
    /// key. Absent: the format has no such tables.
    fn fleet_table_key(&self, table: FleetTable) -> Option<&'static str> {
        let _ = table;
        None
    }

    /// What an item of such a table is. Any item at all gets an answer.
    fn decode_fleet(&self, table: FleetTable, item: &Item) -> RowRead {
        let _ = table;
        self.decode(item)
    }

    /// The one conditional write of a row of such a table.
    fn encode_fleet_in(&self, table: FleetTable, write: &FleetWrite) -> Option<ItemWrite> {
        let _ = (table, write);
        None
    }

    /// The attribute with the owner of a lease, by which the index of owners is kept. Absent: no worker of such a table keeps one.
    fn owner_index_key(&self) -> Option<&'static str> {
        None
    }

    /// How workers know each other, if they do so from tables beside this one. Then the name of the lease table follows from
    /// the application's.
    fn membership(&self) -> Option<&dyn Membership> {
        None
    }
}

/// The table formats that are known here, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// [`Kcl`].
    #[default]
    Kcl,
    /// The lease table of vmware-go-kcl, versions 1 and 2.
    VmwareGoKcl,
    /// The lease table of kcl-rb, version 1. Its own workers must not run beside ours.
    KclRb,
    /// [`Kinsumer`].
    Kinsumer,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kcl, Self::VmwareGoKcl, Self::KclRb, Self::Kinsumer];

    /// Its codec.
    pub fn codec(self) -> &'static (dyn LeaseFormat + Send + Sync) {
        match self {
            Self::Kcl => &Kcl,
            Self::VmwareGoKcl => &vmware_go_kcl::COLUMNS,
            Self::KclRb => &kcl_rb::COLUMNS,
            Self::Kinsumer => &Kinsumer,
        }
    }

    /// Its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kcl => "kcl",
            Self::VmwareGoKcl => "vmware-go-kcl",
            Self::KclRb => "kcl-rb",
            Self::Kinsumer => "kinsumer",
        }
    }
}

impl LeaseFormat for Format {
    fn key_name(&self) -> &'static str {
        self.codec().key_name()
    }

    fn policies(&self) -> Policies {
        self.codec().policies()
    }

    fn key(&self, key: &LeaseKey) -> Item {
        self.codec().key(key)
    }

    fn decode(&self, item: &Item) -> RowRead {
        self.codec().decode(item)
    }

    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        self.codec().lacks(item)
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        self.codec().encode(change)
    }

    fn encode_fleet(&self, write: &FleetWrite) -> Option<ItemWrite> {
        self.codec().encode_fleet(write)
    }

    fn fleet_table_key(&self, table: FleetTable) -> Option<&'static str> {
        self.codec().fleet_table_key(table)
    }

    fn decode_fleet(&self, table: FleetTable, item: &Item) -> RowRead {
        self.codec().decode_fleet(table, item)
    }

    fn encode_fleet_in(&self, table: FleetTable, write: &FleetWrite) -> Option<ItemWrite> {
        self.codec().encode_fleet_in(table, write)
    }

    fn owner_index_key(&self) -> Option<&'static str> {
        self.codec().owner_index_key()
    }

    fn membership(&self) -> Option<&dyn Membership> {
        self.codec().membership()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("expected {}, found {text:?}", names.join(" or "))
        })
    }
}

impl fmt::Debug for dyn LeaseFormat + Send + Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseFormat({})", self.key_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Checkpoint, Position};
    use crate::row::{Guard, LeaseRow};
    use crate::shard::HashRange;
    use crate::time::Wall;
    use proptest::prelude::*;

    /// The changes that only the leader of a fleet makes.
    fn of_a_leader(counter: u64) -> [Change; 2] {
        let key = || LeaseKey::from("shardId-000000000000");
        let assign = Change::Assign {
            key: key(),
            counter,
            next: counter + 5,
            from: None,
            handing_over: None,
            to: "w2".into(),
        };
        let offer = Change::Offer {
            key: key(),
            from: "w1".into(),
            to: "w2".into(),
        };
        [assign, offer]
    }

    /// A condition of absent attributes holds for no item at all, too: the write would make a row anew that others removed.
    #[test]
    fn only_a_creation_makes_a_row() {
        let key = || LeaseKey::from("shardId-000000000000");
        let guard = |counter| Guard {
            counter,
            holder: "w1".into(),
            next: counter + 5,
            next_owner: None,
        };
        for (format, counter) in Format::ALL.into_iter().flat_map(|kind| [(kind, 0), (kind, 7)]) {
            let mut changes = vec![
                Change::Claim {
                    key: key(),
                    counter,
                    from: "w1".into(),
                    checkpoint: Checkpoint::TrimHorizon,
                    by: "w2".into(),
                },
                Change::Renew {
                    key: key(),
                    guard: guard(counter),
                    began: None,
                },
                Change::Checkpoint {
                    key: key(),
                    guard: guard(counter),
                    position: Position::of(1.into()),
                },
                Change::SetRange {
                    key: key(),
                    range: HashRange::ALL,
                },
                Change::Delete { key: key(), counter },
            ];
            changes.extend(of_a_leader(counter));
            let checkpoints = [Checkpoint::TrimHorizon, Checkpoint::Latest, Checkpoint::ShardEnd];
            changes.extend(checkpoints.map(|checkpoint| Change::Reset {
                key: key(),
                counter,
                next: counter + 5,
                owner: None,
                handing_over: None,
                checkpoint,
                to: Checkpoint::TrimHorizon,
            }));
            for checkpoint in [Checkpoint::TrimHorizon, Checkpoint::Latest, Checkpoint::ShardEnd] {
                changes.extend([None, Some("w1")].map(|from| Change::Take {
                    key: key(),
                    counter,
                    next: counter + 5,
                    from: from.map(Into::into),
                    checkpoint,
                    to: "w2".into(),
                    began: None,
                    named: None,
                    stream: None,
                }));
            }
            for change in changes {
                let mut item = None;
                let _ = format.encode(&change).carry_out(&mut item);
                assert_eq!(item, None, "{format}: {change:?}");
            }
            let mut item = None;
            let row = LeaseRow::new(key(), Checkpoint::TrimHorizon);
            let created = format.encode(&Change::Create(Box::new(row))).carry_out(&mut item);
            assert!(created.is_ok() && item.is_some(), "{format}");
        }
    }

    /// A person's edit may remove what guards a row. It is read as zero. The next worker that takes the lease writes it again; and only
    /// one does.
    #[test]
    fn a_row_without_its_guard_is_taken_once_and_complete_again() {
        let guards = [
            &["leaseCounter", "ownerSwitchesSinceCheckpoint"][..],
            &["LeaseTimeout"],
            &["lease_timeout", "leasehold_deadline"],
            &["LastUpdate"],
        ];
        let at = Checkpoint::At(Position::of(5.into()));
        let owners = [None, Some("w1")];
        for (format, guards) in Format::ALL.into_iter().zip(guards) {
            for (checkpoint, owner) in [at, Checkpoint::TrimHorizon]
                .into_iter()
                .flat_map(|checkpoint| owners.map(|owner| (checkpoint, owner)))
            {
                let told = format!("{format}: {checkpoint:?} of {owner:?}");
                let mut row = LeaseRow::new("shardId-000000000000".into(), checkpoint);
                (row.owner, row.counter) = (owner.map(Into::into), 7_000_000_007);
                let mut item = None;
                let create = format.encode(&Change::Create(Box::new(row.clone())));
                create.carry_out(&mut item).unwrap();
                assert_eq!(format.lacks(item.as_ref().unwrap()), Vec::<&str>::new(), "{told}");
                item.as_mut()
                    .unwrap()
                    .retain(|name, _| !guards.contains(&&**name));

                let lacks = format.lacks(item.as_ref().unwrap());
                // Where there is no owner, there need be no deadline.
                assert_eq!(
                    lacks.is_empty(),
                    owner.is_none() && guards[0].to_lowercase().contains("timeout"),
                    "{told}"
                );
                assert!(
                    lacks.iter().all(|name| guards.contains(name)),
                    "{told}: {lacks:?}"
                );
                row.counter = 0;
                assert_eq!(
                    format.decode(item.as_ref().unwrap()),
                    RowRead::Lease(row.clone()),
                    "{told}"
                );

                let take = |to: &str| {
                    format.encode(&Change::Take {
                        key: row.key.clone(),
                        counter: 0,
                        next: 5,
                        from: row.owner.clone(),
                        checkpoint,
                        to: to.into(),
                        began: None,
                        named: None,
                        stream: None,
                    })
                };
                take("w2").carry_out(&mut item).unwrap();
                assert!(take("w3").carry_out(&mut item).is_err(), "{told}: taken twice");
                let taken = item.unwrap();
                assert_eq!(format.lacks(&taken), Vec::<&str>::new(), "{told}");
                let read = format.decode(&taken);
                let read = read.lease().unwrap();
                assert_eq!(
                    (read.counter, read.owner.as_ref().unwrap().as_str()),
                    (5, "w2"),
                    "{told}"
                );
                assert_eq!(read.checkpoint, checkpoint, "{told}");
            }
        }
    }

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        prop_oneof![
            (0u64..9, 0u64..3).prop_map(|(sequence, sub)| {
                let sequence = sequence.into();
                Checkpoint::At(Position { sequence, sub })
            }),
            Just(Checkpoint::TrimHorizon),
            Just(Checkpoint::Latest),
            Just(Checkpoint::AtTimestamp),
            Just(Checkpoint::ShardEnd),
        ]
    }

    /// Where a row begins at a moment, a take gives it the one that it lacks, a renewal an earlier one, and a checkpoint takes it away.
    #[test]
    fn every_format_keeps_the_moment_from_which_a_shard_is_read() {
        let key = || LeaseKey::from("shardId-000000000000");
        for format in Format::ALL {
            for checkpoint in [Checkpoint::Latest, Checkpoint::AtTimestamp] {
                let mut item = None;
                let row = LeaseRow::new(key(), checkpoint);
                let mut carry_out = |change: Change| {
                    format.encode(&change).carry_out(&mut item).unwrap();
                    let RowRead::Lease(row) = format.decode(item.as_ref().unwrap()) else {
                        panic!("{item:?}")
                    };
                    (row.checkpoint, row.began)
                };
                let guard = |counter, next| Guard {
                    counter,
                    next,
                    holder: "w".into(),
                    next_owner: None,
                };
                assert_eq!(
                    carry_out(Change::Create(Box::new(row))),
                    (checkpoint, None),
                    "{format:?}"
                );
                let take = Change::Take {
                    key: key(),
                    counter: 0,
                    next: 5,
                    from: None,
                    checkpoint,
                    to: "w".into(),
                    began: Some(Wall(70)),
                    named: None,
                    stream: None,
                };
                assert_eq!(carry_out(take), (checkpoint, Some(Wall(70))), "{format:?}");
                let plain = Change::Renew {
                    key: key(),
                    guard: guard(5, 6),
                    began: None,
                };
                assert_eq!(carry_out(plain), (checkpoint, Some(Wall(70))), "{format:?}");
                let earlier = Change::Renew {
                    key: key(),
                    guard: guard(6, 7),
                    began: Some(Wall(60)),
                };
                assert_eq!(carry_out(earlier), (checkpoint, Some(Wall(60))), "{format:?}");
                let position = Position::of(9.into());
                let saved = Change::Checkpoint {
                    key: key(),
                    guard: guard(7, 8),
                    position,
                };
                assert_eq!(carry_out(saved), (Checkpoint::At(position), None), "{format:?}");
            }
        }
    }

    proptest! {
        /// Whatever a row says, a reset leaves a free lease at its checkpoint. It is made of the row that was read, and of no other.
        #[test]
        fn a_reset_frees_the_row_that_was_read(
            format in prop::sample::select(Format::ALL.to_vec()),
            (from, to) in (checkpoints(), checkpoints()),
            owner in prop::option::of("[a-z]{1,3}"),
            handing_over in prop::option::of("[A-Z]{1,3}"),
            counter in 0u64..3,
        ) {
            prop_assume!(from.is_end() || !to.is_end());
            let mut row = LeaseRow::new("shardId-000000000001".into(), from);
            row.owner = owner.map(|owner| owner.as_str().into());
            if row.owner.is_some() && format != Format::Kinsumer {
                row.handing_over = handing_over.map(|owner| owner.as_str().into());
            }
            row.counter = counter;
            row.began = Some(Wall(5));
            let mut item = None;
            format.encode(&Change::Create(Box::new(row.clone()))).carry_out(&mut item).unwrap();
            let RowRead::Lease(row) = format.decode(item.as_ref().unwrap()) else { panic!("{item:?}") };
            let reset = |row: &LeaseRow| format.encode(&Change::Reset {
                key: row.key.clone(),
                counter: row.counter,
                next: row.counter + 7,
                owner: row.owner.clone(),
                handing_over: row.handing_over.clone(),
                checkpoint: row.checkpoint,
                to,
            });
            let others = [
                LeaseRow { counter: row.counter + 1, ..row.clone() },
                LeaseRow { owner: Some("another".into()), ..row.clone() },
                LeaseRow { checkpoint: Checkpoint::At(Position::of(77.into())), ..row.clone() },
            ];
            for other in others {
                let before = item.clone();
                prop_assert!(reset(&other).carry_out(&mut item).is_err(), "{:?}", other);
                prop_assert_eq!(&item, &before);
            }
            reset(&row).carry_out(&mut item).unwrap();
            let read = format.decode(item.as_ref().unwrap());
            let expected = LeaseRow {
                owner: None,
                handing_over: None,
                counter: row.counter + 7,
                switches: 0,
                checkpoint: to,
                began: None,
                ..row.clone()
            };
            prop_assert_eq!(read, RowRead::Lease(expected));
            prop_assert!(reset(&row).carry_out(&mut item).is_err(), "made twice");
        }
    }
}
