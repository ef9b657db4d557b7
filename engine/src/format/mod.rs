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
use crate::table::{AttributeValue, Item, ItemWrite};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A table format. Pure: two of them never see each other's state, and none has any.
pub trait LeaseFormat {
    /// The name of the table's hash key attribute, a string; there is no sort key.
    fn key_name(&self) -> &'static str;

    /// The rules of a worker that follow from the format.
    fn policies(&self) -> Policies;

    /// The primary key of a row.
    fn key(&self, key: &LeaseKey) -> Item {
        Item::from([(self.key_name().into(), AttributeValue::s(key.clone()))])
    }

    /// What an item is. Any item at all gets an answer.
    fn decode(&self, item: &Item) -> RowRead;

    /// The missing attributes of an item that is read as a lease all the same. Every program of the format writes all
    /// of them, so a person or a tool removed the missing attributes; the next take of the lease writes the attributes
    /// again.
    fn lacks(&self, item: &Item) -> Vec<&'static str> {
        let _ = item;
        Vec::new()
    }

    /// The conditional write of a change. Attributes not named in the write stay unchanged.
    fn encode(&self, change: &Change) -> ItemWrite;

    /// The conditional write of a row by which workers of a fleet with a leader know each other, if the format has such
    /// rows.
    fn encode_fleet(&self, write: &FleetWrite) -> Option<ItemWrite> {
        let _ = write;
        None
    }

    /// The name of the hash key attribute, a string, of a table in which fleets of such workers may keep these rows;
    /// the table has no sort key. Absent: the format has no such tables.
    fn fleet_table_key(&self, table: FleetTable) -> Option<&'static str> {
        let _ = table;
        None
    }

    /// What an item of such a table is. Any item at all gets an answer.
    fn decode_fleet(&self, table: FleetTable, item: &Item) -> RowRead {
        let _ = table;
        self.decode(item)
    }

    /// The conditional write of a row of such a table.
    fn encode_fleet_in(&self, table: FleetTable, write: &FleetWrite) -> Option<ItemWrite> {
        let _ = (table, write);
        None
    }

    /// The attribute with the owner of a lease, by which the index of owners is kept. Absent: no worker of such a table keeps one.
    fn owner_index_key(&self) -> Option<&'static str> {
        None
    }

    /// How workers know each other, if their rows lie in tables beside the lease table. Then the name of the lease
    /// table follows from the application's.
    fn membership(&self) -> Option<&dyn Membership> {
        None
    }
}

/// The known table formats, by name.
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
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Kcl, Self::VmwareGoKcl, Self::KclRb, Self::Kinsumer];

    /// The format's codec.
    pub fn codec(self) -> &'static (dyn LeaseFormat + Send + Sync) {
        match self {
            Self::Kcl => &Kcl,
            Self::VmwareGoKcl => &vmware_go_kcl::COLUMNS,
            Self::KclRb => &kcl_rb::COLUMNS,
            Self::Kinsumer => &Kinsumer,
        }
    }

    /// The format's name, as typed by people.
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
mod tests;
#[cfg(test)]
mod vectors;
