//! Which leases are missing, and where each is to start.
//!
//! The core is the algorithm of KCL for Java 3.5 (`HierarchicalShardSyncer`), so that mixed fleets agree. It never
//! creates a shard below a leased one, however far: the owner of that one does, when it reaches the end. Five things are better
//! here, each because the original loses data or stalls:
//!
//! - *Holes are filled.* If the lease above an uncovered open shard has ended, nobody is left to create what follows
//!   it. The nearest shards without a lease below it are created, a closed one too, at its oldest record, once no
//!   parent of theirs is unfinished. The same beside a lease that shows that its parent was read: one that has moved, or
//!   began at its oldest record. One that is still at LATEST or AT_TIMESTAMP shows nothing.
//! - *A trimmed parent counts while it has a lease.* So its children start at their oldest record and not at LATEST.
//! - *A parent that may come is waited for.* One that is neither listed nor leased may still get its lease, while a lease of
//!   another shard that is not listed is unfinished.
//! - *What was read is not read again.* A shard without a lease that has a leased descendant was read to its end before.
//!   The original creates it anew if a row below it was lost, and reads it beside its descendants.
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
    /// Its row.
    pub row: LeaseRow,
    /// Why, as a sentence.
    pub reason: String,
}

/// What a comparison of shards and leases showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The leases to create, in this order: by where their shards start, then by id.
    pub create: Vec<PlannedLease>,
    /// What else is worth knowing.
    pub findings: Vec<Finding>,
}

/// Something worth knowing that needs no new lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// A shard has no lease yet, and will get one after this ancestor of it has been processed. It is open or leads to an open
    /// one.
    Waits {
        /// The shard that has no lease.
        shard: ShardId,
        /// The ancestor; others may be unfinished too. It may have no lease either: one that is created now, or one that an
        /// unfinished lease of a shard that is not listed may bring.
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
/// `shards` must be the listing filtered by the initial position if `table_empty`, and the whole listing otherwise. The leases
/// that are `unreadable` end by nobody's doing.
///
/// If `table_empty`, the first leases are those of the shards that were open at the initial position. The service counts both
/// ends of a shard's time: at a timestamp of the very millisecond of a reshard, it lists the parent and its children. Then the
/// parent gets the lease; the worker that ends the parent creates those of the children. So the whole listing does as well for `TRIM_HORIZON` and
/// `LATEST`. For `AT_TIMESTAMP`, it gives the oldest shards: none is left out, and those closed before have nothing to read.
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

/// Of a listing that shows more than one moment, the shards that were open when the application's reading begins: without a
/// listed parent, or open now.
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

/// What is known of one shard on the way to the plan.
#[derive(Clone, Default)]
struct Mark<'a> {
    /// Without a lease, and with a leased descendant: it was read to its end before.
    passed: bool,
    /// Passed, and by a lease that did not begin where the application did: it was read indeed.
    read: bool,
    /// Open and without a lease, or an ancestor of such a one, reached through shards without a lease.
    needed: bool,
    /// Needed, and below a leased shard or below one that will be created (KCL: "descendant of a current lease").
    below: bool,
    /// Needed, and with nothing above it that is or will be leased: created if anything below it needs that.
    root: bool,
    /// The nearest ancestor whose lease is unfinished, however many shards without a lease lie between.
    unfinished: Option<&'a ShardId>,
    /// Below a leased shard, however far: the application had begun before it came to this one.
    follows: bool,
    /// Needed, and below this shard, which is passed and was not read: what is above that one does not count.
    skipped: Option<&'a ShardId>,
    /// The nearest unfinished ancestor that keeps it waiting.
    behind: Option<&'a ShardId>,
    /// Where to start, and why, if a lease is to be created.
    create: Option<(Checkpoint, String)>,
}

/// Why what is above a shard does not count.
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

    /// Looks up from every lease: what is above it has been read, or was before the start.
    fn mark_passed(&mut self) {
        for n in self.lineage.ancestors_first().iter().rev().copied() {
            let lease = self.lease(&self.lineage.shard(n).id);
            // One that is still where the application began was created beside others, perhaps only now: not all of those may
            // be there yet, and they are no holes.
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

    /// Looks down from every lease: what is below an unfinished one is begun when that comes to it.
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

    /// KCL's algorithm without its recursion. Its outcome for a parent depends on that parent alone, so the order in
    /// which children ask for it does not matter.
    ///
    /// Two differences show only where KCL would lose data or read it too early: a trimmed parent with a lease counts as
    /// leased, and so does one that may get a lease yet.
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

    /// Nothing above this shard is or will be read: reading begins with it, or with what is below it.
    fn begin_at(&mut self, n: usize, shard: &'a Shard) {
        let unwanted = |p: &usize| self.marks[*p].passed && !self.marks[*p].read;
        let skipped = self.lineage.parents(n).iter().find_map(|p| {
            let parent = unwanted(p).then(|| &self.lineage.shard(*p).id);
            parent.or(self.marks[*p].skipped)
        });
        let mark = &mut self.marks[n];
        mark.skipped = skipped;
        // With LATEST, what nobody reads is not caught up with: the open shard itself is started instead.
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

    /// Why a shard with nothing above it is created for the sake of a child of it.
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

    /// A parent that is neither listed nor leased, and that an unfinished lease of a shard that is not listed may bring.
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
                // Its owner creates this shard when it gets to the end.
                (Some(_), _) => {
                    self.marks[n].behind = Some(parent);
                    return;
                }
                // It comes first: it was or will be decided to be created, or it waits itself.
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
