//! Findings about a table: the expectation, the fact, the advice, and safe repairs.

use crate::plan::other::Count;
use crate::plan::{Finding, Survey};
use leasehold::Checkpoint;
use leasehold::admin::{Deed, Shard, Standing, Step, TableReport, View};
use leasehold::format::Finished;
use leasehold::{LeaseKey, LeaseRow, StreamId};
use serde::Serialize;
use std::collections::BTreeMap;

/// One fault of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Ailment {
    pub(super) kind: &'static str,
    /// The stream, of an application of several.
    pub(super) stream: Option<StreamId>,
    pub(super) lease: Option<LeaseKey>,
    pub(super) expected: &'static str,
    pub(super) found: String,
    /// What to do.
    pub(super) advice: String,
    /// The writes to mend the table, one for a lease. None: the command writes nothing about this finding.
    pub(super) repairs: Vec<Step>,
}

/// An examined table, or one stream's part of the table.
pub(super) struct Patient<'a> {
    /// The stream, of an application of several.
    pub(super) stream: Option<&'a StreamId>,
    pub(super) view: &'a View,
    pub(super) shards: &'a [Shard],
    /// The missing attributes of lease items.
    pub(super) lacks: &'a BTreeMap<LeaseKey, Vec<&'static str>>,
    /// The result of watching the table.
    pub(super) report: &'a TableReport,
    pub(super) finished: Finished,
}

impl Patient<'_> {
    fn lease(&self, key: &LeaseKey) -> Option<&LeaseRow> {
        self.view.leases.get(key)
    }

    /// Whether the row changed during the watch.
    fn moves(&self, key: &LeaseKey) -> bool {
        let report = self.report.leases.iter().find(|lease| lease.lease == *key);
        report.is_some_and(|lease| lease.standing == Standing::Alive)
    }

    /// Whether a worker of this stream lives.
    pub(super) fn fleet_lives(&self) -> bool {
        let mut owners = self.report.owners.iter().filter(|owner| owner.alive);
        let mut leases = self.view.leases.values();
        match self.stream {
            None => owners.next().is_some(),
            // Workers of a fleet may differ in their streams.
            Some(_) => {
                leases.any(|row| owners.clone().any(|owner| row.actual_owner() == Some(&owner.worker)))
            }
        }
    }

    /// A step to read the shard from its oldest record. None for a changing row: its owner reads the shard, and writes
    /// a checkpoint.
    fn read_anew(&self, key: &LeaseKey) -> Option<Step> {
        let row = self.lease(key).filter(|_| !self.moves(key))?;
        let follows = "records that were processed before come again, and none is skipped";
        Some(step(row, Deed::Rewind(Checkpoint::TrimHorizon), follows))
    }

    /// A step to free the lease, with its checkpoint and with all guarding attributes.
    fn freed(&self, key: &LeaseKey, why: &str) -> Option<Step> {
        Some(step(self.lease(key)?, Deed::Release, why))
    }
}

/// A change of a row, and what follows from the change.
fn step(row: &LeaseRow, deed: Deed, follows: &str) -> Step {
    Step { lease: row.key.clone(), deed, seen: Some(row.clone()), follows: vec![follows.to_owned()] }
}

/// All findings, in the order of discovery.
pub(super) fn judge(survey: &Survey, patient: &Patient<'_>) -> Vec<Ailment> {
    let mut ailments: Vec<Ailment> = patient
        .lacks
        .iter()
        .filter(|(key, _)| patient.lease(key).is_some())
        .map(|(key, lacks)| incomplete(key, lacks, patient))
        .collect();
    ailments.extend(survey.findings.iter().filter_map(|finding| found(finding, patient)));
    if patient.view.leases.is_empty() {
        // An empty table is one fault; the hole is the same fault.
        ailments.retain(|found| found.kind != "hole");
        ailments.push(empty(patient.stream));
        return ailments;
    }
    ailments.extend(survey.create.iter().map(|creation| {
        let row = &creation.row;
        let lives = patient.fleet_lives();
        Ailment {
            kind: "missing-lease",
            stream: patient.stream.cloned(),
            lease: Some(row.key.clone()),
            expected: "a lease of this shard",
            found: format!("none: {}", creation.reason),
            advice: if lives {
                "wait: a worker was seen to live, and the fleet creates it after a few scans of the table; run this again in some \
                 minutes"
            } else {
                "start a worker, which creates it after a few scans of the table, or repair it"
            }
            .to_owned(),
            repairs: Vec::from_iter((!lives).then(|| Step {
                lease: row.key.clone(),
                deed: Deed::Create(Box::new(row.clone())),
                seen: None,
                follows: vec![format!("a worker with room for it reads it from {}", row.checkpoint)],
            })),
        }
    }));
    ailments
}

/// A table, or the part of one of several streams, without leases.
fn empty(stream: Option<&StreamId>) -> Ailment {
    let (kind, expected, advice) = match stream {
        None => ("empty-table", "leases", "start a worker, which creates them"),
        Some(_) => (
            "empty-stream",
            "leases of this stream",
            "start a worker that reads it, which creates them; or correct its identifier: all workers must give a stream the same",
        ),
    };
    Ailment {
        kind,
        stream: stream.cloned(),
        lease: None,
        expected,
        found: "none".to_owned(),
        advice: advice.to_owned(),
        repairs: Vec::new(),
    }
}

/// Rows whose keys name no stream, in a table of several streams.
pub(super) fn stray(count: Count) -> Option<Ailment> {
    (count != Count::default()).then(|| Ailment {
        kind: "one-stream",
        stream: None,
        lease: None,
        expected: "keys that name the stream, in a table of several streams",
        found: format!("{count} whose keys name none"),
        advice: "see which application of one stream has this table, too, and give one of them another; workers of several streams \
                 leave these leases alone"
            .to_owned(),
        repairs: Vec::new(),
    })
}

fn incomplete(key: &LeaseKey, lacks: &[&str], patient: &Patient<'_>) -> Ailment {
    let moves = patient.moves(key);
    let advice = if moves {
        "wait: its owner lives, and writes that with its next renewal"
    } else {
        "repair it: programs of other libraries may leave the lease alone for ever; a worker of Leasehold takes and mends it once it \
         has stood still for a lease duration"
    };
    Ailment {
        kind: "incomplete-row",
        stream: patient.stream.cloned(),
        lease: Some(key.clone()),
        expected: "what every program of the format writes",
        found: format!("no {}", lacks.join(" and no ")),
        advice: advice.to_owned(),
        repairs: patient
            .freed(key, "the row is complete again, and any worker takes the lease")
            .filter(|_| !moves)
            .into_iter()
            .collect(),
    }
}

/// The advice about a checkpoint outside its shard.
const ELSEWHERE: &str = "rewind it: `leasehold admin rewind --shard`, with the place up to which the shard was processed; or repair it, if \
                         nobody knows the place: the shard is then read from its oldest record. Until then no worker of Leasehold reads the shard";

/// The advice about wrong hash keys.
const RANGE: &str = "wait, if a worker lives: it corrects the row when two listings, `stream_lag` apart, agree, if the row names the stream; \
                     a table in which no row does may be of another stream";

/// The advice about wrong parents.
const PARENTS: &str = "correct the parents in the row: a program of another library waits for them for ever; a worker of Leasehold reads \
                       the shard without them, as soon as listings, `stream_lag` apart, agree";

/// Turns a finding of the survey into an ailment; absent: the finding is no fault.
fn found(finding: &Finding, patient: &Patient<'_>) -> Option<Ailment> {
    let key = finding.lease_key.as_deref().map(LeaseKey::from);
    let mut repair = None;
    let (expected, advice) = match finding.kind {
        "unreadable-row" => (
            "a row that can be read as a lease",
            "correct that attribute in the table, or delete the row: the fleet then creates the lease anew, where no lease covers \
             the shard, and reads it from where new shards begin",
        ),
        "other-stream" => ("a checkpoint of the shard of this name", mistaken(patient.stream.is_some())),
        "other-shard" => {
            repair = patient.read_anew(key.as_ref()?);
            ("a checkpoint that is a number of its own shard", ELSEWHERE)
        }
        "spoiled-row" => {
            repair = patient.read_anew(key.as_ref()?);
            ("a checkpoint that is a place in its shard", ELSEWHERE)
        }
        "wrong-range" => ("the hash keys of its shard", RANGE),
        "wrong-parents" => ("the parents of its shard", PARENTS),
        "ended-but-open" => {
            repair = patient.read_anew(key.as_ref()?);
            ("an unfinished lease, as its shard is open", ELSEWHERE)
        }
        "ended-without-children" => (
            "leases of the children of a finished shard",
            "see the leases that are missing, below; a child whose parents are not all finished gets its lease later",
        ),
        "hole" => (
            "an unfinished lease for each part of the hash space",
            "see the leases that are missing, below; without any, an unfinished shard above brings what is missing when it ends",
        ),
        "orphan" => {
            let key = key.as_ref()?;
            repair = removal(key, patient);
            let ended = patient.lease(key)?.checkpoint.is_end();
            ("a lease of a shard that the stream lists", forgotten(ended, repair.is_some()))
        }
        "stuck-handoff" => {
            // A changing row is a hand-over under way.
            let key = key.as_ref().filter(|key| !patient.moves(key))?;
            repair = patient.freed(key, "neither worker owns the lease any more, and any worker takes it");
            (
                "a hand-over that ends",
                "repair it, if neither worker lives; a worker of Leasehold takes it once it has stood still for a lease duration",
            )
        }
        kind => of_all_leases(kind)?,
    };
    Some(Ailment {
        kind: finding.kind,
        stream: patient.stream.cloned(),
        lease: key,
        expected,
        found: finding.detail.replace("no unfinished lease covers", "none that covers"),
        advice: advice.to_owned(),
        repairs: repair.into_iter().collect(),
    })
}

/// The expectation and advice for the table as a whole, or for the list of shards; absent: the finding is no fault.
fn of_all_leases(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "bad-listing" => (
            "a list of shards that fits together",
            "run it again: the list may have been read during a reshard",
        ),
        "dynamodb-streams" => (
            "leases of shards of a Kinesis stream",
            "give the consumer of the Kinesis stream an application name of its own: its workers take the leases of this table for those of \
             shards that are gone",
        ),
        "multi-stream" => (
            "leases of this stream alone",
            "see to it that these streams are meant to be in this table; name them by their identifiers to examine them",
        ),
        _ => return None,
    })
}

/// The advice about a lease whose checkpoint belongs to another stream, in a table of several streams or of one.
fn mistaken(several: bool) -> &'static str {
    if several {
        "correct the identifier, which ends with the time at which the stream was created; or delete the rows of this stream, if it \
         was made anew: workers must be given its new identifier"
    } else {
        "name the stream that the table belongs to; or delete the table, if its stream was made anew, and start again"
    }
}

/// The advice about the lease of a shard forgotten by the stream.
fn forgotten(ended: bool, can_go: bool) -> &'static str {
    match (ended, can_go) {
        (_, true) => "leave it to the fleet, or repair it: nothing of the shard is left to be read",
        (true, false) => "leave it: it goes when the leases of its children are there",
        (false, false) => {
            "leave it: the worker that holds it finds the shard gone, and the fleet creates the leases that come after it"
        }
    }
}

/// The removal of a finished lease of a forgotten shard, once the leases of its children exist.
fn removal(key: &LeaseKey, patient: &Patient<'_>) -> Option<Step> {
    let row = patient.lease(key)?;
    let listed = patient
        .shards
        .iter()
        .filter(|shard| shard.parents().any(|parent| parent.as_str() == key.as_str()))
        .map(|shard| shard.id.to_lease());
    let known = row.children.iter().map(leasehold::ShardId::to_lease);
    let mut children = listed.chain(known).peekable();
    let needless = row.checkpoint.is_end()
        && patient.finished != Finished::Never
        && children.peek().is_some()
        && children.all(|child| patient.lease(&child).is_some());
    needless.then(|| step(row, Deed::Remove, "its children have leases of their own, and go on"))
}

#[cfg(test)]
#[path = "ailment_tests.rs"]
mod tests;
