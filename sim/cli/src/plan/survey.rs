//! A table and a list of shards, compared.

use super::fleet::last_reports;
use super::other;
use super::start::{OpenAt, open_at};
use super::whose;
use super::{Creation, Finding, Survey, Wait};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::fleet::FleetWorker;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::internals::leader_assignment::is_fresh;
use leasehold_engine::internals::sync;
use leasehold_engine::policy::{Finished, Policies};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::shard::{HashRange, Shard};
use leasehold_engine::stream_id::StreamId;
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::time::Wall;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The facts for a survey besides the table and the shards.
pub(crate) struct Asked<'a> {
    /// The stream, of an application of several: shards are named by the keys of their leases, and the rows are its own.
    pub stream: Option<&'a StreamId>,
    /// The service's description of the stream; absent: not known.
    pub identity: Option<&'a StreamIdentity>,
    /// The start of shards without a lease.
    pub from: InitialPosition,
    /// The policies of the table's format.
    pub policies: Policies,
    /// The last reports of workers.
    pub heartbeats: &'a [FleetWorker],
    pub now: Wall,
}

impl Asked<'_> {
    /// Whether a lease is of the stream whose shards are listed.
    fn is_meant(&self, key: &LeaseKey) -> bool {
        other::stream_of(key.as_str()) == self.stream.map(StreamId::as_str)
    }
}

/// The survey of shards and rows, without the assignment of leases.
pub(crate) fn survey(shards: &[Shard], rows: &[RowRead], asked: &Asked<'_>) -> Survey {
    let mut survey = Survey::default();
    let mut leases: BTreeMap<LeaseKey, &LeaseRow> = BTreeMap::new();
    // Their keys are taken all the same.
    let mut occupied: BTreeSet<LeaseKey> = BTreeSet::new();
    for row in rows {
        let mut say = |kind, detail| survey.find(kind, Some(row.key().as_str()), detail);
        match row {
            RowRead::Foreign { key, .. } => {
                occupied.insert(key.clone());
                survey.foreign(row);
            }
            RowRead::Unreadable { detail, key } => {
                occupied.insert(key.clone());
                say(
                    "unreadable-row",
                    format!(
                        "{detail}; no worker reads its shard until that attribute is corrected in the table"
                    ),
                );
            }
            RowRead::Lease(lease) => {
                if leases.insert(lease.key.clone(), lease).is_some() {
                    say("duplicate", "the file has this row twice: pages of different scans, perhaps".into());
                }
            }
        }
    }
    survey.of_tables(&leases);
    survey.judge(shards, &leases, asked);
    survey.other_streams(&leases, asked);
    survey.plan(shards, &leases, &occupied, asked);
    survey
}

/// The fault of a checkpoint outside its shard. `of_another`: most rows of the table belong to another stream.
fn misplaced(
    lease: &LeaseRow, shard: &Shard, shards: &[Shard], of_another: bool,
) -> Option<(&'static str, String)> {
    let Checkpoint::At(position) = lease.checkpoint else {
        return None;
    };
    if let Some(detail) = whose::of_another(shard, position.sequence, shards) {
        return Some(("other-shard", detail));
    }
    if let Some(detail) = whose::of_no_record(shard, position.sequence) {
        return Some(("spoiled-row", detail));
    }
    let how = match shard.ending {
        _ if position.sequence < shard.starting => {
            format!("before the first number of the shard, {}", shard.starting)
        }
        Some(ending) if position.sequence > ending => format!("after the last number of the shard, {ending}"),
        _ => return None,
    };
    let (kind, why) = match of_another {
        true => ("other-stream", "it is of another stream, or of an earlier one of this name"),
        false => ("spoiled-row", "the table is this stream's, so a person or a program has spoiled this row"),
    };
    Some((kind, format!("its checkpoint {position} is {how}: {why}")))
}

/// The difference between the hash keys of a row and of its shard.
fn wrong_range(lease: &LeaseRow, shard: &Shard) -> Option<String> {
    let range = lease.range.filter(|range| *range != shard.range)?;
    Some(format!(
        "its row names the hash keys {} to {}, and the shard takes {} to {}",
        range.start, range.end, shard.range.start, shard.range.end
    ))
}

impl Survey {
    pub(super) fn find(&mut self, kind: &'static str, lease_key: Option<&str>, detail: String) {
        self.findings.push(Finding { kind, lease_key: lease_key.map(str::to_owned), detail });
    }

    /// Adds the findings about another stream of the same table.
    pub(super) fn add(&mut self, other: Survey) {
        self.create.extend(other.create);
        self.wait.extend(other.wait);
        self.findings.extend(other.findings);
        self.hopeless |= other.hopeless;
    }

    /// Reports a row of another kind than a lease.
    pub(super) fn foreign(&mut self, row: &RowRead) {
        if let RowRead::Foreign { kind, key, .. } = row {
            let detail = format!("it is a {kind}, and left alone");
            self.find("foreign-row", Some(key.as_str()), detail);
        }
    }

    /// Finds faults of the leases themselves.
    fn judge(&mut self, shards: &[Shard], leases: &BTreeMap<LeaseKey, &LeaseRow>, asked: &Asked<'_>) {
        let finished = asked.policies.finished;
        let listed: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        let lineage = sync::Lineage::new(shards);
        let of_another = sync::is_of_another(leases.values().copied(), shards, asked.identity);
        for (key, lease) in leases {
            let say = |survey: &mut Self, kind, detail| survey.find(kind, Some(key.as_str()), detail);
            if !asked.is_meant(key) || whose::is_of_a_table(key.as_str()) {
                continue;
            }
            let Some(shard) = listed.get(key.as_str()) else {
                let detail = if lease.checkpoint.is_end() && finished == Finished::Never {
                    continue;
                } else if lease.checkpoint.is_end() {
                    "its shard is not listed any more; it is finished, and will be removed".to_owned()
                } else {
                    format!("its shard is not listed; what came after {} is gone", lease.checkpoint)
                };
                say(self, "orphan", detail);
                continue;
            };
            if let Some((kind, detail)) = misplaced(lease, shard, shards, of_another) {
                say(self, kind, detail);
            }
            if let Some(detail) = wrong_range(lease, shard) {
                say(self, "wrong-range", detail);
            }
            let strangers = whose::not_parents(lease, shard, &listed);
            if !strangers.is_empty() {
                let detail = format!(
                    "its row names {}, and the stream lists that shard without a child of this name",
                    strangers.join(" and ")
                );
                say(self, "wrong-parents", detail);
            }
            if lease.checkpoint.is_end() {
                let children = lineage.find(&shard.id).map_or(&[][..], |n| lineage.children(n));
                let missing: Vec<&str> = children
                    .iter()
                    .map(|child| lineage.shard(*child).id.as_str())
                    .filter(|child| !leases.contains_key(*child))
                    .collect();
                if !missing.is_empty() {
                    let detail = format!("it has ended, and there is no lease for {}", missing.join(" and "));
                    say(self, "ended-without-children", detail);
                }
            }
            if let (Some(from), Some(to)) = (&lease.handing_over, &lease.owner) {
                say(self, "stuck-handoff", format!("it is being handed over from {from} to {to}"));
            }
        }
        self.holes(&listed, leases, asked);
    }

    /// Leases of shards of DynamoDB Streams.
    fn of_tables(&mut self, leases: &BTreeMap<LeaseKey, &LeaseRow>) {
        let mut count = other::Count::default();
        let of_tables = leases.iter().filter(|(key, _)| whose::is_of_a_table(key.as_str()));
        of_tables.for_each(|(_, lease)| count.add(lease));
        if count != other::Count::default() {
            let detail = format!(
                "{count} of shards of DynamoDB Streams: an application that reads the changes of a table has this lease table"
            );
            self.find("dynamodb-streams", None, detail);
        }
    }

    /// Hash keys without an unfinished lease.
    fn holes(
        &mut self, listed: &BTreeMap<&str, &Shard>, leases: &BTreeMap<LeaseKey, &LeaseRow>, asked: &Asked<'_>,
    ) {
        let ranges = leases
            .iter()
            .filter(|(key, lease)| !lease.checkpoint.is_end() && asked.is_meant(key))
            .filter_map(|(key, lease)| lease.range.or_else(|| Some(listed.get(key.as_str())?.range)));
        for HashRange { start, end } in sync::holes(ranges) {
            let detail = format!("no unfinished lease covers the hash keys {start} to {end}");
            self.find("hole", None, detail);
        }
    }

    /// Leases of KCL's multi-stream mode, by their streams.
    fn other_streams(&mut self, leases: &BTreeMap<LeaseKey, &LeaseRow>, asked: &Asked<'_>) {
        let mut streams: BTreeMap<&str, other::Count> = BTreeMap::new();
        for (key, lease) in leases.iter().filter(|(key, _)| !asked.is_meant(key)) {
            if let Some(stream) = other::stream_of(key.as_str()) {
                streams.entry(stream).or_default().add(lease);
            }
        }
        for (stream, count) in streams {
            let detail = format!(
                "{count} of the stream {stream}, in the way of KCL's multi-stream mode: they are not compared with this list of \
                 shards"
            );
            self.find("multi-stream", None, detail);
        }
    }

    /// Plans the leases that shard sync would create.
    fn plan(
        &mut self, shards: &[Shard], leases: &BTreeMap<LeaseKey, &LeaseRow>, occupied: &BTreeSet<LeaseKey>,
        asked: &Asked<'_>,
    ) {
        let from = asked.from;
        let mut checkpoints: BTreeMap<LeaseKey, Checkpoint> =
            leases.iter().map(|(key, lease)| (key.clone(), lease.checkpoint)).collect();
        for key in occupied {
            checkpoints.entry(key.clone()).or_insert(Checkpoint::TrimHorizon);
        }
        if let Err(error) = sync::Lineage::new(shards).check() {
            return self.give_up(&error);
        }
        let empty = leases.is_empty();
        let listing = match (empty, from) {
            (true, InitialPosition::AtTimestamp(time)) => Cow::Owned(self.open_at(shards, time)),
            _ => Cow::Borrowed(shards),
        };
        let finished = asked.policies.finished;
        let plan = match sync::missing(&checkpoints, occupied, &listing, from, empty, finished) {
            Ok(plan) => plan,
            Err(error) => return self.give_up(&error),
        };
        for finding in &plan.findings {
            if let sync::Finding::EndedButOpen { shard } = finding {
                self.find("ended-but-open", Some(shard.as_str()), finding.to_string());
            }
        }
        for planned in plan.create {
            let row = planned.row;
            checkpoints.insert(row.key.clone(), row.checkpoint);
            self.create.push(Creation {
                lease_key: row.key.as_str().to_owned(),
                checkpoint: row.checkpoint.to_string(),
                parents: row.parents.iter().map(|parent| parent.as_str().to_owned()).collect(),
                reason: planned.reason,
                row,
            });
        }
        self.wait(shards, &checkpoints, occupied, from);
    }

    fn give_up(&mut self, error: &sync::BadListing) {
        self.hopeless = true;
        self.find("bad-listing", None, error.to_string());
    }

    /// The shards open at a time, if the list tells; otherwise the oldest shards.
    fn open_at(&mut self, shards: &[Shard], time: Wall) -> Vec<Shard> {
        let OpenAt { shards, untold } = open_at(shards, time);
        if untold > 0 {
            let detail = format!(
                "the sequence numbers of {untold} shards do not tell when these were created: they are taken for newer than the \
                 time in --from, and their oldest listed ancestors are started; a worker starts what the service names as open \
                 at that time"
            );
            self.find("unknown-times", None, detail);
        }
        shards
    }

    /// The shards that wait for a lease, after all leases of the table and of the plan exist.
    fn wait(
        &mut self, shards: &[Shard], checkpoints: &BTreeMap<LeaseKey, Checkpoint>,
        occupied: &BTreeSet<LeaseKey>, from: InitialPosition,
    ) {
        let Ok(later) = sync::plan(checkpoints, occupied, shards, from, false) else {
            return;
        };
        for finding in later.findings {
            if let sync::Finding::Waits { shard, behind } = finding {
                let key = behind.to_lease();
                let reason = if occupied.contains(&key) {
                    format!(
                        "{behind} comes before it, and the row of {behind} cannot be read: no worker reads that shard"
                    )
                } else if checkpoints.contains_key(&key) {
                    format!("{behind} comes before it, and has not been processed to its end")
                } else {
                    format!(
                        "{behind} comes before it and is neither listed nor leased: an unfinished lease of another shard that is \
                         not listed may still bring it"
                    )
                };
                self.wait.push(Wait {
                    lease_key: shard.as_str().to_owned(),
                    behind: behind.as_str().to_owned(),
                    reason,
                });
            }
        }
    }

    /// Reports workers whose last report is too old.
    pub(super) fn stale(&mut self, asked: &Asked<'_>, rows: &[RowRead]) {
        let leases = rows.iter().filter_map(RowRead::lease);
        let leases: BTreeMap<_, _> = leases.map(|lease| (&lease.key, lease)).collect();
        let reports = last_reports(asked.heartbeats);
        for (worker, report) in reports.iter().filter(|(_, report)| !is_fresh(report, asked.now)) {
            let owns =
                |lease: &&&LeaseRow| !lease.checkpoint.is_end() && lease.actual_owner() == Some(worker);
            let detail = format!(
                "{worker} reported last {} s ago, and has {} unfinished leases, to be taken",
                asked.now.0.div_euclid(1_000).saturating_sub(report.at),
                leases.values().filter(owns).count()
            );
            self.find("stale-worker", None, detail);
        }
    }
}

#[cfg(test)]
mod tests;
