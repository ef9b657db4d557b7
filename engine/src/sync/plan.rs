//! The missing leases, and where each lease starts.
//!
//! The core is the algorithm of KCL for Java 3.5 (`HierarchicalShardSyncer`), so mixed fleets agree. The algorithm
//! never creates a shard below a leased shard, however far below: the owner of the leased shard creates the lower shard
//! at the end. Five points are better here, each because the original loses data or stalls:
//!
//! - *Holes are filled.* If the lease above an uncovered open shard has ended, no worker is left to create the shards
//!   after it. The nearest shards without a lease below them are created, even closed shards, at their oldest record,
//!   once no parent of theirs is unfinished. The same happens beside a lease whose position proves that its parent was
//!   read: a lease that has moved, or began at its oldest record. A lease still at LATEST or AT_TIMESTAMP shows
//!   nothing.
//! - *A trimmed parent counts while it has a lease.* So its children start at their oldest record and not at LATEST.
//! - *A parent that may come is waited for.* A parent neither listed nor leased may still get its lease, while a lease
//!   of another unlisted shard is unfinished.
//! - *A shard once read is not read again.* An unleased shard with a leased descendant was read to its end before. The
//!   original creates the shard anew if a row below it was lost, and reads the shard beside its descendants.
//! - *A shard of a single hash key is like any other.*

use super::unread::brings_unlisted;
use super::{BadListing, Lineage};
use crate::config::InitialPosition;
use crate::ids::{LeaseKey, ShardId};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A lease to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedLease {
    /// The lease's row.
    pub row: LeaseRow,
    /// Why, as a sentence.
    pub reason: String,
}

/// What a comparison of shards and leases showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The leases to create, in this order: by where their shards start, then by id.
    pub create: Vec<PlannedLease>,
    /// Further findings.
    pub findings: Vec<Finding>,
}

/// A finding of interest, without a new lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// A shard has no lease yet, and will get a lease after this ancestor has been processed. The shard is open or
    /// leads to an open shard.
    Waits {
        /// The shard that has no lease.
        shard: ShardId,
        /// The ancestor; further ancestors may be unfinished too. The ancestor may have no lease either: its lease is
        /// created now, or an unfinished lease of an unlisted shard may bring it.
        behind: ShardId,
    },
    /// The lease says that the whole shard was processed, and the shard is open.
    EndedButOpen {
        /// The shard.
        shard: ShardId,
    },
    /// The lease is unfinished, and its shard is listed no more: the rest of its data is gone.
    TrimmedUnfinished {
        /// The lease.
        lease: LeaseKey,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waits { shard, behind } => write!(f, "{shard} waits until {behind} has been processed"),
            Self::EndedButOpen { shard } => {
                write!(f, "the lease of {shard} has ended although the shard is open")
            }
            Self::TrimmedUnfinished { lease } => {
                write!(f, "the lease {lease} is unfinished although its shard was trimmed away")
            }
        }
    }
}

/// Compares the leases of a stream (their checkpoints) with its shards.
///
/// `shards` must be the listing filtered by the initial position if `table_empty`, and the whole listing otherwise. No
/// worker ends the leases in `unreadable`.
///
/// If `table_empty`, the first leases belong to the shards open at the initial position. The service counts both ends
/// of a shard's time: at a timestamp of the very millisecond of a reshard, the service lists the parent and its
/// children. Then the parent gets the lease; the worker that ends the parent creates the leases of the children. So the
/// whole listing does as well for `TRIM_HORIZON` and `LATEST`. For `AT_TIMESTAMP`, it gives the oldest shards: no shard
/// is left out, and the shards closed before hold no records to read.
///
/// The time grows as `n log n` with the number `n` of shards and leases.
pub fn plan(
    leases: &BTreeMap<LeaseKey, Checkpoint>, unreadable: &BTreeSet<LeaseKey>, shards: &[Shard],
    initial: InitialPosition, table_empty: bool,
) -> Result<Plan, BadListing> {
    let lineage = Lineage::new(shards);
    lineage.check()?;
    if table_empty {
        let first = open_at_start(&lineage, initial);
        let lineage = Lineage::new(&first);
        lineage.check_coverage()?;
        return Ok(first_leases(leases, &lineage, initial));
    }
    let mut survey = Survey::new(leases, &lineage, initial);
    survey.brings_unlisted = brings_unlisted(leases, unreadable, shards);
    survey.mark_passed();
    survey.mark_what_follows();
    survey.mark_needed();
    survey.descend();
    Ok(survey.into_plan())
}

/// Of a listing that spans more than one moment, the shards that were open when the application's reading begins:
/// without a listed parent, or open now.
fn open_at_start(lineage: &Lineage<'_>, initial: InitialPosition) -> Vec<Shard> {
    (0..lineage.len())
        .filter(|n| match initial {
            InitialPosition::Latest => lineage.shard(*n).is_open(),
            InitialPosition::TrimHorizon | InitialPosition::AtTimestamp(_) => lineage.parents(*n).is_empty(),
        })
        .map(|n| lineage.shard(n).clone())
        .collect()
}

/// For an empty table: every shard open at the initial position.
fn first_leases(
    leases: &BTreeMap<LeaseKey, Checkpoint>, lineage: &Lineage<'_>, initial: InitialPosition,
) -> Plan {
    let start = sentinel(initial);
    let create = lineage
        .shards()
        .filter(|shard| !leases.contains_key(shard.id.as_str()))
        .map(|shard| {
            planned(shard, start, format!("there are no leases yet, and the stream is read from {start}"))
        })
        .collect();
    Plan { create, findings: Vec::new() }
}

pub(super) fn sentinel(initial: InitialPosition) -> Checkpoint {
    match initial {
        InitialPosition::TrimHorizon => Checkpoint::TrimHorizon,
        InitialPosition::Latest => Checkpoint::Latest,
        InitialPosition::AtTimestamp(_) => Checkpoint::AtTimestamp,
    }
}

pub(super) fn planned(shard: &Shard, checkpoint: Checkpoint, reason: String) -> PlannedLease {
    let mut row = LeaseRow::new(shard.id.to_lease(), checkpoint);
    row.parents = shard.parents().cloned().collect();
    row.parents.sort();
    row.parents.dedup();
    row.range = Some(shard.range);
    PlannedLease { row, reason }
}

/// The knowledge about one shard on the way to the plan.
#[derive(Clone, Default)]
struct Mark<'a> {
    /// Without a lease, and with a leased descendant: the shard was read to its end before.
    passed: bool,
    /// Passed, and by a lease that did not begin where the application did: the shard was certainly read.
    read: bool,
    /// Open and without a lease, or an ancestor of such a shard, reached through shards without a lease.
    needed: bool,
    /// Needed, and below a leased shard or below a shard to be created (KCL: "descendant of a current lease").
    below: bool,
    /// Needed, and without any shard above it that is or will be leased: created if any shard below needs it.
    root: bool,
    /// The nearest ancestor whose lease is unfinished, however many shards without a lease lie between.
    unfinished: Option<&'a ShardId>,
    /// Below a leased shard, however far: the application began before it reached the shard.
    follows: bool,
    /// Needed, and below this passed and unread shard: shards above the passed shard do not count.
    skipped: Option<&'a ShardId>,
    /// The nearest unfinished ancestor that the shard waits for.
    behind: Option<&'a ShardId>,
    /// Where to start, and why, if a lease is to be created.
    create: Option<(Checkpoint, String)>,
}

/// Why the shards above a shard do not count.
fn begun_after(before: &ShardId) -> String {
    format!(
        "{before}, which comes before it, is from before the application began: the nearest leases below {before} are still at \
         LATEST or AT_TIMESTAMP"
    )
}

struct Survey<'a> {
    leases: &'a BTreeMap<LeaseKey, Checkpoint>,
    lineage: &'a Lineage<'a>,
    initial: InitialPosition,
    brings_unlisted: bool,
    marks: Vec<Mark<'a>>,
}

impl<'a> Survey<'a> {
    fn new(
        leases: &'a BTreeMap<LeaseKey, Checkpoint>, lineage: &'a Lineage<'a>, initial: InitialPosition,
    ) -> Self {
        Self { leases, lineage, initial, brings_unlisted: false, marks: vec![Mark::default(); lineage.len()] }
    }

    fn lease(&self, shard: &ShardId) -> Option<Checkpoint> {
        self.leases.get(shard.as_str()).copied()
    }

    /// Looks up from every lease: shards above a lease have been read, or ended before the start.
    fn mark_passed(&mut self) {
        for n in self.lineage.ancestors_first().iter().rev().copied() {
            let lease = self.lease(&self.lineage.shard(n).id);
            // A lease still where the application began was created beside other leases, perhaps only now: some of
            // these other leases may not exist yet, and their shards are no holes.
            let began = lease.is_none_or(|at| matches!(at, Checkpoint::Latest | Checkpoint::AtTimestamp));
            let read = !began || self.marks[n].read;
            if lease.is_some() || self.marks[n].passed {
                for parent in self.lineage.parents(n) {
                    let unleased = self.lease(&self.lineage.shard(*parent).id).is_none();
                    self.marks[*parent].passed = unleased;
                    self.marks[*parent].read |= unleased && read;
                }
            }
        }
    }

    /// Looks down from every lease: shards below an unfinished lease are begun when the lease's owner reaches them.
    fn mark_what_follows(&mut self) {
        let lineage = self.lineage;
        for n in lineage.ancestors_first().iter().copied() {
            for parent in lineage.shard(n).parents() {
                let lease = self.lease(parent);
                let above = lineage.find(parent).map(|p| &self.marks[p]);
                let follows = lease.is_some() || above.is_some_and(|above| above.follows);
                let unfinished = match lease {
                    Some(at) => Some(parent).filter(|_| !at.is_end()),
                    None => above.and_then(|above| above.unfinished),
                };
                let mark = &mut self.marks[n];
                mark.follows |= follows;
                mark.unfinished = mark.unfinished.or(unfinished);
            }
        }
    }

    /// Walks up from every open shard without a lease, as far as there are none.
    fn mark_needed(&mut self) {
        let mut stack: Vec<usize> =
            (0..self.lineage.len()).filter(|n| self.lineage.shard(*n).is_open()).collect();
        while let Some(n) = stack.pop() {
            let mark = &self.marks[n];
            if !mark.needed && !mark.passed && self.lease(&self.lineage.shard(n).id).is_none() {
                self.marks[n].needed = true;
                stack.extend_from_slice(self.lineage.parents(n));
            }
        }
    }

    /// Decides about every needed shard, ancestors first.
    fn descend(&mut self) {
        let lineage = self.lineage;
        for n in lineage.ancestors_first().iter().copied() {
            if !self.marks[n].needed {
                continue;
            }
            let shard = lineage.shard(n);
            self.decide_as_kcl(n, shard);
            self.fill_hole(n, shard);
        }
    }

    /// KCL's algorithm without its recursion. The outcome for a parent depends on this parent alone, so the order of
    /// its children does not matter.
    ///
    /// Two differences show only where KCL would lose data or read data too early: a trimmed parent with a lease counts
    /// as leased, and so does a parent that may still get a lease.
    fn decide_as_kcl(&mut self, n: usize, shard: &'a Shard) {
        let lineage = self.lineage;
        let leased_parent = shard.parents().any(|parent| self.lease(parent).is_some());
        let parents = lineage.parents(n);
        let below = leased_parent
            || parents.iter().any(|p| self.marks[*p].below || self.marks[*p].root || self.marks[*p].read)
            || self.marks[n].unfinished.is_some()
            || self.may_come(shard).is_some();
        self.marks[n].below = below;
        if !below {
            self.begin_at(n, shard);
            return;
        }
        for parent in parents.iter().copied() {
            let mark = &self.marks[parent];
            if mark.needed && !mark.below && mark.create.is_none() {
                let reason = self.why_before(parent, shard);
                self.marks[parent].create = Some((sentinel(self.initial), reason));
            }
        }
    }

    /// No shard above this shard is or will be read: reading begins with this shard, or with the shards below it.
    fn begin_at(&mut self, n: usize, shard: &'a Shard) {
        let unwanted = |p: &usize| self.marks[*p].passed && !self.marks[*p].read;
        let skipped = self.lineage.parents(n).iter().find_map(|p| {
            let parent = unwanted(p).then(|| &self.lineage.shard(*p).id);
            parent.or(self.marks[*p].skipped)
        });
        let mark = &mut self.marks[n];
        mark.skipped = skipped;
        // With LATEST, a worker does not catch up with unread shards: the open shard itself is started instead.
        mark.root = self.initial != InitialPosition::Latest;
        if shard.is_open() {
            let reason = match skipped {
                None => "it is open, and neither it nor any listed ancestor has a lease".to_owned(),
                Some(before) => format!("it is open and has no lease, and {}", begun_after(before)),
            };
            let start = match mark.follows {
                true => Checkpoint::TrimHorizon,
                false => sentinel(self.initial),
            };
            mark.create = Some((start, reason));
        }
    }

    /// Why a shard without ancestors is created for the sake of its child.
    fn why_before(&self, n: usize, child: &Shard) -> String {
        let (mark, id) = (&self.marks[n], &self.lineage.shard(n).id);
        if mark.root {
            return match mark.skipped {
                None => {
                    format!("it is the oldest listed ancestor, without a lease, on the way to {}", child.id)
                }
                Some(before) => format!("it is on the way to {}, and {}", child.id, begun_after(before)),
            };
        }
        let Some(other) = child.parents().find(|parent| *parent != id) else {
            return format!("it comes before {}", child.id);
        };
        let state = match (self.lease(other), self.lineage.find(other)) {
            (Some(_), _) => "has a lease",
            (None, Some(listed)) if self.marks[listed].read => "was read before",
            (None, Some(_)) => "follows one that was or is being read",
            (None, None) => "may still get a lease",
        };
        format!("it was merged into {}, whose other parent {other} {state}", child.id)
    }

    /// A parent that is neither listed nor leased, and may be brought by an unfinished lease of an unlisted shard.
    fn may_come(&self, shard: &'a Shard) -> Option<&'a ShardId> {
        let lost = |parent: &&ShardId| self.lease(parent).is_none() && self.lineage.find(parent).is_none();
        shard.parents().find(lost).filter(|_| self.brings_unlisted)
    }

    /// Creates a shard below an ended lease, if everything before it has been processed or is gone.
    fn fill_hole(&mut self, n: usize, shard: &'a Shard) {
        if !self.marks[n].below {
            return;
        }
        if let Some(parent) = self.may_come(shard) {
            self.marks[n].behind = Some(parent);
            return;
        }
        let mut ended = None;
        for parent in shard.parents() {
            match (self.lease(parent), self.lineage.find(parent)) {
                (Some(Checkpoint::ShardEnd), _) => ended = Some(parent),
                (None, Some(listed)) if self.marks[listed].read => ended = Some(parent),
                // What is before the start of the application is not read.
                (None, Some(listed)) if self.marks[listed].passed => {}
                // The parent's owner creates this shard at the parent's end.
                (Some(_), _) => {
                    self.marks[n].behind = Some(parent);
                    return;
                }
                // The parent comes first: it was or will be decided to be created, or it waits itself.
                (None, Some(listed)) => {
                    self.marks[n].behind = self.marks[listed].behind.or(Some(parent));
                    return;
                }
                (None, None) => {}
            }
        }
        if let Some(parent) = ended {
            let reason = if self.lease(parent).is_some() {
                format!(
                    "it fills a hole: the lease of its parent {parent} has ended, and neither this shard nor one below it has a lease"
                )
            } else {
                format!(
                    "it fills a hole: its parent {parent} was read before, as leases of other shards below {parent} show"
                )
            };
            self.marks[n].create = Some((Checkpoint::TrimHorizon, reason));
        } else {
            self.marks[n].behind = self.marks[n].unfinished;
        }
    }

    fn into_plan(self) -> Plan {
        let mut plan = Plan::default();
        for (n, shard) in self.lineage.shards().enumerate() {
            let mark = &self.marks[n];
            if let Some((checkpoint, reason)) = &mark.create {
                plan.create.push(planned(shard, *checkpoint, reason.clone()));
            } else if let (true, Some(behind)) = (mark.needed, mark.behind) {
                plan.findings.push(Finding::Waits { shard: shard.id.clone(), behind: behind.clone() });
            } else if shard.is_open() && self.lease(&shard.id) == Some(Checkpoint::ShardEnd) {
                plan.findings.push(Finding::EndedButOpen { shard: shard.id.clone() });
            }
        }
        for (lease, checkpoint) in self.leases {
            if !checkpoint.is_end() && self.lineage.find(&lease.to_shard()).is_none() {
                plan.findings.push(Finding::TrimmedUnfinished { lease: lease.clone() });
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests;
