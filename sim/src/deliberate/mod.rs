//! Deliberate bugs, which prove that the oracles see.
//!
//! An oracle that has never caught anything proves nothing. Each file of `sim/mutants/` describes a bug as edits of the sources.
//! The sources themselves know nothing of it. [`Sources::with_bugs`] writes a copy of the workspace in which every edit stands behind a switch
//! that is off; a program that is built from the copy turns one of them on for a world, and [`hunt`](crate::hunt) runs world after world
//! until a property is violated that is meant for the bug.

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
    /// If there is none, or a file of the catalogue cannot be read, as a sentence.
    pub fn named(id: &str) -> Result<Self, String> {
        let all = Self::all()?;
        let found = all.iter().find(|bug| bug.id == id);
        found.copied().ok_or_else(|| {
            let ids: Vec<&str> = all.iter().map(|bug| bug.id).collect();
            format!("expected one of {}, found {id:?}", ids.join(", "))
        })
    }

    /// Its name, which is also its file's.
    pub fn id(self) -> &'static str {
        self.id
    }

    /// What it does wrong, in a sentence.
    pub fn about(self) -> &'static str {
        &self.entry.about
    }

    /// The properties that it may break. The first is the one meant for it.
    pub fn properties(self) -> &'static [Property] {
        &self.entry.properties
    }

    /// The table format of the worlds in which it is looked for.
    pub fn format(self) -> Format {
        self.entry.format
    }

    /// Whether it shows beside workers of another program only.
    pub fn mixed(self) -> bool {
        self.entry.mixed
    }

    /// A world that is known to show it: the hunt begins there.
    pub fn known_world(self) -> Option<u64> {
        self.entry.known_world
    }

    /// Whether it shows in one world of many thousands only: too seldom for every run of the tests.
    pub fn is_rare(self) -> bool {
        self.entry.rare
    }

    /// What it changes in the sources.
    pub fn edits(self) -> &'static [Edit] {
        &self.entry.edits
    }

    /// Its number in this catalogue, which its places in the copy ask for.
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

/// Turns a bug on in this thread, or turns all of them off, until the answer is dropped.
///
/// # Panics
/// If this program does not have the bugs in it: what it would say of one is not true.
pub(crate) fn turn_on(bug: Option<Bug>) -> Switched {
    if let (Some(bug), false) = (bug, HAS_BUGS) {
        panic!("expected a program that has the bug {bug:?} in it, found an ordinary one; {HOW}");
    }
    switch(bug.map(Bug::number))
}

/// How a program is built that has the bugs in it.
pub const HOW: &str = "`leasehold mutants --prepare`, inside a checkout, says how a program is built that has the deliberate bugs";
