//! Table formats: how lease rows and changes are spelled as items and writes.

mod calendar;
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

use crate::ids::LeaseKey;
use crate::policy::Policies;
use crate::row::{Change, RowRead};
use crate::table::{Item, ItemWrite};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A table format. Pure: two of them never see each other's state, and none has any.
pub trait Dialect {
    /// The name of the table's hash key attribute, a string; there is no sort key.
    fn key_name(&self) -> &'static str;

    /// What follows from the format for a worker's rules.
    fn policies(&self) -> Policies;

    /// The primary key of a row.
    fn key(&self, key: &LeaseKey) -> Item;

    /// What an item is. Any item at all gets an answer.
    fn decode(&self, item: &Item) -> RowRead;

    /// The one conditional write that makes a change. It leaves alone every attribute that it does not name.
    fn encode(&self, change: &Change) -> ItemWrite;

    /// How workers know each other, if they do so from tables beside this one. Then the name of the lease table follows from
    /// the application's.
    fn membership(&self) -> Option<&dyn Membership> {
        None
    }
}

/// The table formats that are known here, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
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

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kcl, Self::VmwareGoKcl, Self::KclRb, Self::Kinsumer];

    /// Its codec.
    pub fn dialect(self) -> &'static (dyn Dialect + Send + Sync) {
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

impl Dialect for Kind {
    fn key_name(&self) -> &'static str {
        self.dialect().key_name()
    }

    fn policies(&self) -> Policies {
        self.dialect().policies()
    }

    fn key(&self, key: &LeaseKey) -> Item {
        self.dialect().key(key)
    }

    fn decode(&self, item: &Item) -> RowRead {
        self.dialect().decode(item)
    }

    fn encode(&self, change: &Change) -> ItemWrite {
        self.dialect().encode(change)
    }

    fn membership(&self) -> Option<&dyn Membership> {
        self.dialect().membership()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("expected {}, found {text:?}", names.join(" or "))
        })
    }
}

impl fmt::Debug for dyn Dialect + Send + Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialect({})", self.key_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Checkpoint, Position};
    use crate::row::{Guard, LeaseRow};
    use crate::shard::HashRange;

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
        for (dialect, counter) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 0), (kind, 7)]) {
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
            for checkpoint in [Checkpoint::TrimHorizon, Checkpoint::Latest, Checkpoint::ShardEnd] {
                changes.extend([None, Some("w1")].map(|from| Change::Take {
                    key: key(),
                    counter,
                    next: counter + 5,
                    from: from.map(Into::into),
                    checkpoint,
                    to: "w2".into(),
                }));
            }
            for change in changes {
                let mut item = None;
                let _ = dialect.encode(&change).carry_out(&mut item);
                assert_eq!(item, None, "{dialect}: {change:?}");
            }
            let mut item = None;
            let row = LeaseRow::new(key(), Checkpoint::TrimHorizon);
            let created = dialect
                .encode(&Change::Create(Box::new(row)))
                .carry_out(&mut item);
            assert!(created.is_ok() && item.is_some(), "{dialect}");
        }
    }
}
