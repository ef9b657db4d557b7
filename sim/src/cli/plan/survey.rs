//! A table and a list of shards, compared.

use super::super::input::Heartbeat;
use super::{Assignment, Creation, Finding, Survey};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::ids::{LeaseKey, ShardId, WorkerId};
use leasehold_engine::policy::{Assign, Finished, Policies};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::shard::{HashRange, Shard};
use leasehold_engine::sync;
use leasehold_engine::time::Wall;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be known besides the table and the shards.
pub(super) struct Asked<'a> {
    /// Where shards nobody has read yet are started.
    pub from: InitialPosition,
    /// What follows from the table's format.
    pub policies: Policies,
    /// When workers said last that they live.
    pub heartbeats: &'a [Heartbeat],
    pub now: Wall,
}

/// A worker that has not reported for so long is taken for dead, in ms: twice the interval of reports, as KCL 3 has it. A
/// lease duration would be too short, since reports are made every 30 s.
const STALE_MS: i64 = 60_000;

/// Everything there is to say about them.
pub(super) fn survey(shards: &[Shard], rows: &[RowRead], asked: &Asked<'_>) -> Survey {
    let mut survey = Survey::default();
    let mut leases: BTreeMap<LeaseKey, &LeaseRow> = BTreeMap::new();
    // Their keys are taken all the same.
    let mut occupied: BTreeSet<LeaseKey> = BTreeSet::new();
    for row in rows {
        let mut say = |kind, detail| survey.find(kind, Some(row.key().as_str()), detail);
        match row {
            RowRead::Foreign { kind, key } => {
                occupied.insert(key.clone());
                say("foreign-row", format!("it is a {kind}, and left alone"));
            }
            RowRead::Unreadable { detail, key } => {
                occupied.insert(key.clone());
                say("unreadable-row", detail.clone());
            }
            RowRead::Lease(lease) => {
                if leases.insert(lease.key.clone(), lease).is_some() {
                    say(
                        "duplicate",
                        "the file has this row twice: pages of different scans, perhaps".into(),
                    );
                }
            }
        }
    }
    survey.judge(shards, &leases, asked.policies.finished);
    survey.plan(shards, &leases, &occupied, asked);
    let ages = ages(asked);
    survey.stale(&ages, &leases);
    // Where ranks decide, rows do not tell who lives.
    if asked.policies.assign == Assign::Count {
        survey.assign(&leases, &ages);
    }
    survey
}

/// How long ago each worker reported last, in ms. It may have reported into two tables.
fn ages(asked: &Asked<'_>) -> BTreeMap<WorkerId, i64> {
    let mut ages = BTreeMap::new();
    for Heartbeat { worker, at } in asked.heartbeats {
        let age = asked.now.0.saturating_sub(at.0);
        let least = ages.entry(worker.clone()).or_insert(age);
        *least = age.min(*least);
    }
    ages
}

impl Survey {
    fn find(&mut self, kind: &'static str, lease_key: Option<&str>, detail: String) {
        self.findings.push(Finding {
            kind,
            lease_key: lease_key.map(str::to_owned),
            detail,
        });
    }

    /// What is wrong with the leases themselves.
    fn judge(&mut self, shards: &[Shard], leases: &BTreeMap<LeaseKey, &LeaseRow>, finished: Finished) {
        let listed: BTreeMap<&str, &Shard> = shards.iter().map(|shard| (shard.id.as_str(), shard)).collect();
        for (key, lease) in leases {
            let say = |survey: &mut Self, kind, detail| survey.find(kind, Some(key.as_str()), detail);
            let Some(shard) = listed.get(key.as_str()) else {
                let detail = if let Some((_, shard)) = key.as_str().rsplit_once(':') {
                    format!(
                        "it is a row of KCL's multi-stream mode, which is not taken for the lease of {shard}"
                    )
                } else if lease.checkpoint.is_end() && finished == Finished::Never {
                    continue;
                } else if lease.checkpoint.is_end() {
                    "its shard is not listed any more; it is finished, and will be removed".to_owned()
                } else {
                    format!(
                        "its shard is not listed; what came after {} is gone",
                        lease.checkpoint
                    )
                };
                say(self, "orphan", detail);
                continue;
            };
            if let Checkpoint::At(position) = lease.checkpoint
                && position.sequence < shard.starting
            {
                let detail = format!(
                    "its checkpoint {position} is before the first number of the shard, {}: it is of another stream, or of an \
                     earlier one of this name",
                    shard.starting
                );
                say(self, "other-stream", detail);
            }
            if lease.checkpoint.is_end() {
                let children = shards
                    .iter()
                    .filter(|child| child.parents().any(|parent| *parent == shard.id));
                let missing: Vec<&str> = children
                    .map(|child| child.id.as_str())
                    .filter(|child| !leases.contains_key(*child))
                    .collect();
                if !missing.is_empty() {
                    let detail = format!(
                        "it has ended, and there is no lease for {}",
                        missing.join(" and ")
                    );
                    say(self, "ended-without-children", detail);
                }
            }
            if let (Some(from), Some(to)) = (&lease.handing_over, &lease.owner) {
                say(
                    self,
                    "stuck-handoff",
                    format!("it is being handed over from {from} to {to}"),
                );
            }
        }
        let ranges = leases
            .iter()
            .filter(|(_, lease)| !lease.checkpoint.is_end())
            .filter_map(|(key, lease)| lease.range.or_else(|| Some(listed.get(key.as_str())?.range)));
        for HashRange { start, end } in sync::holes(ranges) {
            let detail = format!("no unfinished lease covers the hash keys {start} to {end}");
            self.find("hole", None, detail);
        }
    }

    /// What shard sync would create.
    fn plan(
        &mut self,
        shards: &[Shard],
        leases: &BTreeMap<LeaseKey, &LeaseRow>,
        occupied: &BTreeSet<LeaseKey>,
        asked: &Asked<'_>,
    ) {
        let from = asked.from;
        let mut checkpoints: BTreeMap<LeaseKey, Checkpoint> = leases
            .iter()
            .map(|(key, lease)| (key.clone(), lease.checkpoint))
            .collect();
        for key in occupied {
            checkpoints.entry(key.clone()).or_insert(Checkpoint::TrimHorizon);
        }
        // An empty table is filled with what is open at the initial position; the list is not filtered by it here.
        let open_first: Vec<Shard> = match (leases.is_empty(), from) {
            (true, InitialPosition::TrimHorizon) => oldest(shards),
            (true, _) => shards.iter().filter(|shard| shard.is_open()).cloned().collect(),
            (false, _) => shards.to_vec(),
        };
        match sync::plan(&checkpoints, occupied, &open_first, from, leases.is_empty()) {
            Ok(mut plan) => {
                if asked.policies.finished != Finished::WhenRead && !leases.is_empty() {
                    let unread = sync::unread(&checkpoints, occupied, shards, from, &plan.create);
                    plan.create.extend(unread);
                }
                self.create = plan
                    .create
                    .into_iter()
                    .map(|planned| Creation {
                        lease_key: planned.row.key.to_string(),
                        checkpoint: planned.row.checkpoint.to_string(),
                        parents: planned.row.parents.iter().map(ToString::to_string).collect(),
                        reason: planned.reason,
                    })
                    .collect();
                for finding in &plan.findings {
                    if let sync::Finding::EndedButOpen { shard } = finding {
                        self.find("ended-but-open", Some(shard.as_str()), finding.to_string());
                    }
                }
            }
            Err(error) => {
                self.hopeless = true;
                self.find("bad-listing", None, error.to_string());
            }
        }
    }

    /// Workers that have not reported for too long.
    fn stale(&mut self, ages: &BTreeMap<WorkerId, i64>, leases: &BTreeMap<LeaseKey, &LeaseRow>) {
        for (worker, age) in ages.iter().filter(|(_, age)| **age > STALE_MS) {
            let owns =
                |lease: &&&LeaseRow| !lease.checkpoint.is_end() && lease.actual_owner() == Some(worker);
            let detail = format!(
                "{worker} reported last {} s ago, and has {} unfinished leases, to be taken",
                age / 1_000,
                leases.values().filter(owns).count()
            );
            self.find("stale-worker", None, detail);
        }
    }

    /// Who would take what nobody alive owns: the workers with the fewest leases, as a scan would show them.
    fn assign(&mut self, leases: &BTreeMap<LeaseKey, &LeaseRow>, ages: &BTreeMap<WorkerId, i64>) {
        let is_stale = |worker: &WorkerId| ages.get(worker).is_some_and(|age| *age > STALE_MS);
        let owner = |lease: &LeaseRow| lease.actual_owner().filter(|owner| !is_stale(owner)).cloned();
        let unfinished = || leases.iter().filter(|(_, lease)| !lease.checkpoint.is_end());
        let alive = ages.keys().filter(|worker| !is_stale(worker));
        let mut counts: BTreeMap<WorkerId, usize> = alive.map(|worker| (worker.clone(), 0)).collect();
        for owner in unfinished().filter_map(|(_, lease)| owner(lease)) {
            *counts.entry(owner).or_default() += 1;
        }
        let share = unfinished().count().div_ceil(counts.len().max(1));
        for (key, lease) in unfinished().filter(|(_, lease)| owner(lease).is_none()) {
            let Some((worker, count)) = counts.iter_mut().min_by_key(|(_, count)| **count) else {
                break;
            };
            let who = match lease.actual_owner() {
                Some(dead) => format!("{dead} has it and does not report any more"),
                None => "nobody has it".to_owned(),
            };
            let (to, reason) = (
                worker.to_string(),
                format!("{who}, and {worker} has only {count} of a fair share of {share}"),
            );
            *count += 1;
            self.assign.push(Assignment {
                lease_key: key.to_string(),
                to,
                reason,
            });
        }
        let (most, least) = (counts.values().max(), counts.values().min());
        if let (Some(most), Some(least)) = (most, least)
            && *most > least + 1
        {
            let detail = format!("one worker has {most} leases and another {least}; {share} would be fair");
            self.find("unbalanced", None, detail);
        }
    }
}

/// The listed shards without a listed parent: those open at the trim horizon.
fn oldest(shards: &[Shard]) -> Vec<Shard> {
    let listed = |id: &ShardId| shards.iter().any(|shard| shard.id == *id);
    let roots = shards.iter().filter(|shard| !shard.parents().any(listed));
    roots.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_engine::position::Position;
    use leasehold_engine::shard::HashKey;

    const HALF: u128 = 1 << 127;

    fn shard(id: &str, parent: Option<&str>, open: bool, range: (u128, u128)) -> Shard {
        Shard {
            id: id.into(),
            parent: parent.map(Into::into),
            adjacent_parent: None,
            range: HashRange {
                start: HashKey(range.0),
                end: HashKey(range.1),
            },
            starting: 10.into(),
            ending: (!open).then(|| 20.into()),
        }
    }

    fn family() -> Vec<Shard> {
        vec![
            shard("a", None, false, (0, u128::MAX)),
            shard("b", Some("a"), true, (0, HALF - 1)),
            shard("c", Some("a"), true, (HALF, u128::MAX)),
        ]
    }

    fn lease(key: &str, owner: Option<&str>, checkpoint: Checkpoint) -> RowRead {
        let mut row = LeaseRow::new(key.into(), checkpoint);
        row.owner = owner.map(Into::into);
        RowRead::Lease(row)
    }

    fn kinds(survey: &Survey) -> Vec<&str> {
        survey.findings.iter().map(|finding| finding.kind).collect()
    }

    fn asked(from: InitialPosition) -> Asked<'static> {
        Asked {
            from,
            policies: Policies::default(),
            heartbeats: &[],
            now: Wall(0),
        }
    }

    #[test]
    fn an_empty_table_gets_what_is_open_at_the_initial_position() {
        let created = |from| {
            let survey = survey(&family(), &[], &asked(from));
            survey
                .create
                .into_iter()
                .map(|lease| lease.lease_key)
                .collect::<Vec<_>>()
        };
        assert_eq!(created(InitialPosition::TrimHorizon), ["a"]);
        assert_eq!(created(InitialPosition::Latest), ["b", "c"]);
    }

    #[test]
    fn a_hole_below_an_ended_lease_is_found_and_filled() {
        let rows = [
            lease("a", None, Checkpoint::ShardEnd),
            lease("b", Some("w1"), Checkpoint::TrimHorizon),
        ];
        let survey = survey(&family(), &rows, &asked(InitialPosition::Latest));
        assert_eq!(kinds(&survey), ["ended-without-children", "hole"]);
        assert_eq!(survey.create.len(), 1);
        assert_eq!(
            (&*survey.create[0].lease_key, &*survey.create[0].checkpoint),
            ("c", "TRIM_HORIZON")
        );
    }

    #[test]
    fn orphans_strangers_and_other_streams_are_told_apart() {
        let at = |number: u64| Checkpoint::At(Position::of(number.into()));
        let rows = [
            lease("a", Some("w1"), at(5)),
            lease("z", Some("w1"), at(5)),
            RowRead::Foreign {
                key: "lock".into(),
                kind: "LEADER".into(),
            },
            RowRead::Unreadable {
                key: "x".into(),
                detail: "no counter".into(),
            },
            lease("a", Some("w1"), at(5)),
        ];
        let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
        assert_eq!(
            kinds(&survey),
            [
                "foreign-row",
                "unreadable-row",
                "duplicate",
                "other-stream",
                "orphan"
            ]
        );
    }

    #[test]
    fn a_row_that_cannot_be_read_keeps_its_key() {
        let unreadable = RowRead::Unreadable {
            key: "b".into(),
            detail: "no counter".into(),
        };
        let rows = [lease("a", None, Checkpoint::ShardEnd), unreadable];
        let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
        let created: Vec<&str> = survey.create.iter().map(|lease| &*lease.lease_key).collect();
        assert_eq!(created, ["c"]);
    }

    #[test]
    fn what_nobody_has_goes_to_who_has_least_and_an_uneven_share_is_told() {
        let rows = [
            lease("a", Some("w1"), Checkpoint::TrimHorizon),
            lease("b", Some("w1"), Checkpoint::TrimHorizon),
            lease("c", Some("w1"), Checkpoint::TrimHorizon),
            lease("d", Some("w2"), Checkpoint::TrimHorizon),
            lease("e", None, Checkpoint::TrimHorizon),
        ];
        let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
        assert_eq!(survey.assign.len(), 1);
        assert_eq!((&*survey.assign[0].lease_key, &*survey.assign[0].to), ("e", "w2"));
        assert!(!kinds(&survey).contains(&"unbalanced"), "3 and 2 are even enough");
    }

    #[test]
    fn leases_of_a_worker_that_reports_no_more_are_taken() {
        let rows = [
            lease("a", Some("dead"), Checkpoint::TrimHorizon),
            lease("b", Some("dead"), Checkpoint::TrimHorizon),
            lease("c", Some("alive"), Checkpoint::TrimHorizon),
            lease("d", Some("silent"), Checkpoint::TrimHorizon),
        ];
        let beat = |worker: &str, at| Heartbeat {
            worker: worker.into(),
            at: Wall(at),
        };
        // The second report of a worker may stand in another table.
        let heartbeats = [
            beat("dead", 0),
            beat("dead", 40_000),
            beat("alive", 0),
            beat("alive", 99_000),
            beat("new", 90_000),
        ];
        let at = |now| {
            let asked = Asked {
                heartbeats: &heartbeats,
                now: Wall(now),
                ..asked(InitialPosition::TrimHorizon)
            };
            survey(&family(), &rows, &asked)
        };
        let survey = at(100_001);
        let stale: Vec<_> = survey
            .findings
            .iter()
            .filter(|finding| finding.kind == "stale-worker")
            .collect();
        assert_eq!(stale.len(), 1);
        assert!(
            stale[0]
                .detail
                .starts_with("dead reported last 60 s ago, and has 2 "),
            "{stale:?}"
        );
        let taken: Vec<_> = survey
            .assign
            .iter()
            .map(|given| (&*given.lease_key, &*given.to))
            .collect();
        assert_eq!(
            taken,
            [("a", "new"), ("b", "alive")],
            "one that never reported is left alone"
        );
        assert!(!kinds(&at(100_000)).contains(&"stale-worker") && at(100_000).assign.is_empty());
    }

    #[test]
    fn a_listing_that_cannot_be_meant_gives_no_plan() {
        let shards = [
            shard("a", None, true, (0, u128::MAX)),
            shard("b", Some("a"), true, (0, 9)),
        ];
        let rows = [lease("a", None, Checkpoint::TrimHorizon)];
        let survey = survey(&shards, &rows, &asked(InitialPosition::TrimHorizon));
        assert!(survey.hopeless && survey.create.is_empty());
        assert!(kinds(&survey).contains(&"bad-listing"));
    }
}
