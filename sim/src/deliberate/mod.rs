//! Deliberate bugs, to prove that oracles find errors.
//!
//! An oracle without a catch proves nothing. Each file of `sim/mutants/` describes a bug as edits of the sources. The
//! sources themselves contain no trace of bugs. [`Sources::with_bugs`] writes a copy of the workspace. In the copy,
//! each edit stands behind a switch, off by default. A program built from the copy turns a bug on for a world.
//! [`hunt`](crate::hunt) runs world after world until a violation of a property meant for the bug.

mod catalogue;
mod edit;
mod switch;
mod workspace;

pub use edit::{Change, Edit, apply};
pub use switch::{HAS_BUGS, Switched, on, switch};
pub use workspace::{FOLDER, Files, Sources, write};

use crate::oracles::Property;
use catalogue::{Entry, FILES, entries};
use leasehold_engine::format::Format;
use std::fmt;

/// A deliberate bug of the catalogue.
#[derive(Clone, Copy)]
pub struct Bug {
    id: &'static str,
    number: u16,
    entry: &'static Entry,
}

impl Bug {
    /// All bugs of the catalogue, in the order of their names.
    ///
    /// # Errors
    /// If a file of the catalogue cannot be read, as a sentence.
    pub fn all() -> Result<Vec<Self>, String> {
        let files = FILES.iter().zip(entries()?);
        Ok((0..).zip(files).map(|(number, ((id, _), entry))| Self { id, number, entry }).collect())
    }

    /// The bug of this name.
    ///
    /// # Errors
    /// If no bug has the name, or a file of the catalogue cannot be read, as a sentence.
    pub fn named(id: &str) -> Result<Self, String> {
        let all = Self::all()?;
        let found = all.iter().find(|bug| bug.id == id);
        found.copied().ok_or_else(|| {
            let ids: Vec<&str> = all.iter().map(|bug| bug.id).collect();
            format!("expected one of {}, found {id:?}", ids.join(", "))
        })
    }

    /// The bug's name, also the name of its file.
    pub fn id(self) -> &'static str {
        self.id
    }

    /// The bug's error, in a sentence.
    pub fn about(self) -> &'static str {
        &self.entry.about
    }

    /// The properties broken by the bug. The first is the property meant for the bug.
    pub fn properties(self) -> &'static [Property] {
        &self.entry.properties
    }

    /// The table format of the hunt's worlds.
    pub fn format(self) -> Format {
        self.entry.format
    }

    /// Whether the bug shows only beside workers of another program.
    pub fn mixed(self) -> bool {
        self.entry.mixed
    }

    /// A world known to show the bug. The hunt begins there.
    pub fn known_world(self) -> Option<u64> {
        self.entry.known_world
    }

    /// Whether the bug shows in one world of many thousands only: too seldom for each run of the tests.
    pub fn is_rare(self) -> bool {
        self.entry.rare
    }

    /// The edits of the sources.
    pub fn edits(self) -> &'static [Edit] {
        &self.entry.edits
    }

    /// The bug's number in this catalogue, used by the switches in the copy.
    pub fn number(self) -> u16 {
        self.number
    }
}

impl fmt::Debug for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl PartialEq for Bug {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Bug {}

/// Turns a bug on in this thread, or turns all bugs off, until the returned guard is dropped.
///
/// # Panics
/// If a bug is given and this program is built without the bugs: results would be false.
pub(crate) fn turn_on(bug: Option<Bug>) -> Switched {
    if let (Some(bug), false) = (bug, HAS_BUGS) {
        panic!("expected a program that has the bug {bug:?} in it, found an ordinary one; {HOW}");
    }
    switch(bug.map(Bug::number))
}

/// How to build a program with the bugs.
pub const HOW: &str = "`leasehold mutants --prepare`, inside a checkout, says how a program is built that has the deliberate bugs";
