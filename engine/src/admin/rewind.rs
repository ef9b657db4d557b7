//! Leases are put at other checkpoints.

use super::release::owner;
use super::{Deed, LeftAlone, Plan, Step, View, Which};
use crate::ids::{LeaseKey, WorkerId};
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// Where shards are to be read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Each shard from its oldest record.
    TrimHorizon,
    /// Each shard with the records that arrive after the take of its lease.
    Latest,
    /// After these checkpoints, by lease. For a time, the caller works the checkpoints out beforehand: programs of
    /// other libraries know checkpoints alone.
    After(BTreeMap<LeaseKey, Checkpoint>),
}

/// The plan to put leases at other checkpoints. `shards` is the whole list of the stream's shards; `alive` are the
/// owners seen to renew.
///
/// Ancestors come first: a rewound child then waits for its parent as before. A rewind of all leases creates a removed
/// lease again if its shard was read to the end and holds the place.
pub fn rewind(
    view: &View, shards: &[Shard], which: &Which, place: &Place, alive: &BTreeSet<WorkerId>,
) -> Plan {
    let listed: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
    let (rows, left) = which.of(view);
    let mut plan = Plan { left, ..Plan::default() };
    for row in rows {
        match target(row, &listed, which, place) {
            Ok(to) if to == row.checkpoint && row.owner.is_none() && row.began.is_none() => {
                let why = format!("it is at {to} already, and has no owner");
                plan.left.push(LeftAlone::new(&row.key, why));
            }
            Ok(to) => plan.steps.push(Step {
                lease: row.key.clone(),
                deed: Deed::Rewind(to),
                seen: Some(row.clone()),
                follows: follows(view, shards, row, to, alive),
            }),
            Err(why) => plan.left.push(LeftAlone::new(&row.key, why)),
        }
    }
    if *which == Which::All && *place != Place::Latest {
        plan.steps.extend(removed(view, shards, place));
    }
    plan.steps.sort_by_key(|step| listed.get(step.lease.as_str()).map(|shard| shard.starting));
    let moved: BTreeSet<_> = plan.steps.iter().map(|step| step.lease.clone()).collect();
    for step in &mut plan.steps {
        children(view, shards, step, &moved);
    }
    plan
}

/// The leases of listed shards that were removed after the shards had been read to their ends: a descendant has a lease.
fn removed(view: &View, shards: &[Shard], place: &Place) -> Vec<Step> {
    let has_row = |key: &LeaseKey| {
        view.leases.contains_key(key) || view.unreadable.contains_key(key) || view.foreign.contains_key(key)
    };
    let mut with_descendants: BTreeSet<&str> = BTreeSet::new();
    // Children begin after their parents.
    let mut youngest_first: Vec<&Shard> = shards.iter().collect();
    youngest_first.sort_by_key(|shard| std::cmp::Reverse(shard.starting));
    let mut steps = Vec::new();
    for shard in youngest_first {
        let key = shard.id.to_lease();
        let was_removed = !has_row(&key) && with_descendants.contains(shard.id.as_str());
        if has_row(&key) || was_removed {
            with_descendants.extend(shard.parents().map(|parent| parent.as_str()));
        }
        let to = match place {
            Place::After(places) => places.get(&key).copied(),
            Place::TrimHorizon | Place::Latest => Some(Checkpoint::TrimHorizon),
        };
        if let Some(to) = to.filter(|_| was_removed && shard.ending.is_some()) {
            steps.push(create(view, shards, shard, to));
        }
    }
    steps
}

fn create(view: &View, shards: &[Shard], shard: &Shard, to: Checkpoint) -> Step {
    let mut row = LeaseRow::new(shard.id.to_lease(), to);
    row.parents = shard.parents().cloned().collect();
    row.range = Some(shard.range);
    let children = shards.iter().filter(|child| child.parents().any(|parent| *parent == shard.id));
    row.children = children.map(|child| child.id.clone()).collect();
    // All rows of a table name one stream.
    row.stream = view.leases.values().find_map(|other| other.stream.clone());
    let again = match to {
        Checkpoint::At(to) => format!("every record after {to} that the stream still has comes again"),
        _ => "every record that the stream still has of the shard comes again".to_owned(),
    };
    let removed =
        "its row was removed after the shard had been read to its end, and is created again".to_owned();
    Step {
        lease: row.key.clone(),
        deed: Deed::Create(Box::new(row)),
        seen: None,
        follows: vec![removed, again],
    }
}

/// The checkpoint that a lease is put at, or why none can be.
fn target(
    row: &LeaseRow, listed: &BTreeMap<&str, &Shard>, which: &Which, place: &Place,
) -> Result<Checkpoint, String> {
    let Some(shard) = listed.get(row.key.as_str()) else {
        return Err("its shard is not listed: the stream has forgotten its records, so there is nothing to read again".to_owned());
    };
    let to = match place {
        Place::TrimHorizon => Checkpoint::TrimHorizon,
        Place::Latest if row.checkpoint.is_end() => {
            return Err(
                "its shard was read to its end, and nothing follows: LATEST would read nothing".to_owned()
            );
        }
        Place::Latest => Checkpoint::Latest,
        Place::After(places) => match places.get(&row.key) {
            Some(to) => *to,
            None if matches!(which, Which::Shards(_)) => {
                return Err("no place was given for it".to_owned());
            }
            None => return Err("nothing of it is as late as that time".to_owned()),
        },
    };
    if let Checkpoint::At(position) = to {
        let number = position.sequence;
        if number < shard.starting {
            return Err(format!(
                "expected a number of its shard, which begins at {}, found {number}; workers would take the table for another \
                 stream's and stop. To read from its beginning, say trim-horizon",
                shard.starting
            ));
        }
        if let Some(ending) = shard.ending.filter(|ending| number > *ending) {
            return Err(format!(
                "expected a number of its shard, which ends at {ending}, found {number}: nothing follows that"
            ));
        }
    }
    Ok(to)
}

fn follows(
    view: &View, shards: &[Shard], row: &LeaseRow, to: Checkpoint, alive: &BTreeSet<WorkerId>,
) -> Vec<String> {
    let mut follows = vec![owner(row, alive)];
    follows.push(match (row.checkpoint, to) {
        (_, Checkpoint::Latest) => {
            "SKIPS what is not processed yet: the next owner begins with what arrives after it took the lease"
                .to_owned()
        }
        (Checkpoint::At(from), Checkpoint::At(to)) if from < to => {
            format!("SKIPS the records after {from}, up to and including {to}")
        }
        (Checkpoint::At(from), Checkpoint::At(to)) if from == to => {
            format!("what was processed after {to} comes again")
        }
        (_, Checkpoint::At(to)) => {
            format!("every record after {to} that the stream still has comes again")
        }
        _ => "every record that the stream still has of the shard comes again".to_owned(),
    });
    let above = parents(row, shards);
    let unfinished: Vec<&str> = above
        .iter()
        .filter(|parent| {
            let row = view.leases.get(**parent);
            row.is_some_and(|row| !row.checkpoint.is_end())
        })
        .copied()
        .collect();
    if !unfinished.is_empty() {
        follows.push(format!(
            "its next owner waits until {} has been read to its end",
            unfinished.join(" and ")
        ));
    }
    follows
}

/// The parents of a row's shard: as the row says, or as the list does.
fn parents<'a>(row: &'a LeaseRow, shards: &'a [Shard]) -> Vec<&'a str> {
    let listed = shards.iter().filter(|shard| shard.id.as_str() == row.key.as_str());
    let mut parents: Vec<&str> = listed.flat_map(Shard::parents).map(|id| id.as_str()).collect();
    parents.extend(row.parents.iter().map(|id| id.as_str()));
    parents.sort_unstable();
    parents.dedup();
    parents
}

/// The treatment of the children of a shard read to its end.
fn children(view: &View, shards: &[Shard], step: &mut Step, moved: &BTreeSet<LeaseKey>) {
    let key = step.lease.as_str();
    let Some(row) = step.seen.as_ref().filter(|row| row.checkpoint.is_end()) else {
        // Nothing is known of the row, or its shard was not read to its end.
        return;
    };
    let listed = shards
        .iter()
        .filter(|shard| shard.parents().any(|parent| parent.as_str() == key))
        .map(|shard| shard.id.to_lease());
    let known = row.children.iter().map(|child| child.to_lease());
    let all: BTreeSet<LeaseKey> = listed.chain(known).collect();
    let (leased, missing): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|child| view.leases.contains_key(child));
    let (again, stay): (Vec<_>, Vec<_>) = leased.into_iter().partition(|child| moved.contains(child));
    let named = |children: &[LeaseKey]| {
        let names: Vec<&str> = children.iter().map(LeaseKey::as_str).collect();
        names.join(" and ")
    };
    if !stay.is_empty() {
        step.follows.push(format!(
            "its shard had been read to its end. {} keep{} the checkpoint: nothing of it is read again unless it is rewound, too. A \
             worker that has it open goes on beside this shard; the next owner of it waits until this shard has been read to its \
             end once more",
            named(&stay),
            if stay.len() == 1 { "s" } else { "" }
        ));
    }
    if !again.is_empty() {
        step.follows.push(format!(
            "{} come{} after it, as the first time",
            named(&again),
            if again.len() == 1 { "s" } else { "" }
        ));
    }
    if !missing.is_empty() {
        step.follows.push(format!(
            "{} {} no lease: the worker that reads this shard to its end creates it, to be read from its beginning",
            named(&missing),
            if missing.len() == 1 { "has" } else { "have" }
        ));
    }
}
