//! Tables with faults.

use super::*;
use crate::plan::survey::{Asked, survey};
use leasehold::admin::report;
use leasehold::format::{Format, LeaseFormat};
use leasehold::{Checkpoint, InitialPosition, Position, Span, Wall};
use leasehold_engine::row::RowRead;
use leasehold_engine::shard::{HashKey, HashRange};

fn key(n: u64) -> LeaseKey {
    format!("shardId-{n:012}").into()
}

/// Shard 0 was split into 1 and 2.
fn shards() -> Vec<Shard> {
    let half = u128::MAX / 2;
    let ranges = [(0, u128::MAX), (0, half), (half + 1, u128::MAX)];
    let each = ranges.into_iter().enumerate().map(|(n, (start, end))| Shard {
        id: key(n as u64).to_shard(),
        parent: (n > 0).then(|| key(0).to_shard()),
        adjacent_parent: None,
        range: HashRange { start: HashKey(start), end: HashKey(end) },
        starting: if n > 0 { 100.into() } else { 10.into() },
        ending: (n == 0).then(|| 99.into()),
    });
    each.collect()
}

fn row(n: u64, checkpoint: Checkpoint) -> LeaseRow {
    LeaseRow {
        counter: 7,
        range: shards().get(n as usize).map(|shard| shard.range),
        parents: (n > 0).then(|| key(0).to_shard()).into_iter().collect(),
        ..LeaseRow::new(key(n), checkpoint)
    }
}

fn at(number: u64) -> Checkpoint {
    Checkpoint::At(Position::of(number.into()))
}

/// The findings about these rows. Only the row of `alive` changes.
fn judged(
    rows: &[RowRead], alive: Option<u64>, lacks: &BTreeMap<LeaseKey, Vec<&'static str>>,
) -> Vec<Ailment> {
    judged_of(None, rows, alive.map(key), lacks)
}

/// The findings about these rows, as rows of one of several streams.
fn judged_of(
    stream: Option<&StreamId>, rows: &[RowRead], alive: Option<LeaseKey>,
    lacks: &BTreeMap<LeaseKey, Vec<&'static str>>,
) -> Vec<Ailment> {
    let policies = Format::Kcl.policies();
    let asked = Asked {
        stream,
        identity: None,
        from: InitialPosition::TrimHorizon,
        policies,
        heartbeats: &[],
        now: Wall(0),
    };
    let named = |shard| match stream {
        Some(id) => id.qualify_shard(shard),
        None => shard,
    };
    let shards: Vec<Shard> = shards().into_iter().map(named).collect();
    let found = survey(&shards, rows, &asked);
    let view: View = rows.iter().cloned().collect();
    let mut before = view.clone();
    if let Some(row) = alive.and_then(|key| before.leases.get_mut(&key)) {
        row.counter -= 1;
    }
    let report = report(&before, &view, Span::from_secs(5), Span::from_secs(10));
    let patient =
        Patient { stream, view: &view, shards: &shards, lacks, report: &report, finished: policies.finished };
    judge(&found, &patient)
}

fn leases(rows: &[LeaseRow]) -> Vec<RowRead> {
    rows.iter().cloned().map(RowRead::Lease).collect()
}

fn kinds(ailments: &[Ailment]) -> Vec<(&str, Option<&str>, Option<String>)> {
    let each = ailments.iter().map(|found| {
        let repair = found.repairs.first().map(ToString::to_string);
        (found.kind, found.lease.as_ref().map(LeaseKey::as_str), repair)
    });
    each.collect()
}

#[test]
fn a_sound_table_has_nothing() {
    let rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, at(100)), row(2, at(200))]);
    assert_eq!(judged(&rows, None, &BTreeMap::new()), []);
}

#[test]
fn a_missing_child_is_created_unless_a_fleet_lives_that_does_it() {
    let owned = LeaseRow { owner: Some("w".into()), ..row(1, at(100)) };
    let rows = leases(&[row(0, Checkpoint::ShardEnd), owned]);
    let dead = judged(&rows, None, &BTreeMap::new());
    let (one, two) = ("shardId-000000000000", "shardId-000000000002");
    let create = Some(format!("create {two} at TRIM_HORIZON"));
    assert_eq!(
        kinds(&dead),
        [
            ("ended-without-children", Some(one), None),
            ("hole", None, None),
            ("missing-lease", Some(two), create)
        ]
    );
    let alive = judged(&rows, Some(1), &BTreeMap::new());
    assert_eq!(kinds(&alive)[2], ("missing-lease", Some(two), None));
    assert!(alive[2].advice.starts_with("wait"), "{}", alive[2].advice);
}

#[test]
fn a_hand_over_is_stuck_only_if_its_row_stands_still() {
    let handed = LeaseRow { owner: Some("next".into()), handing_over: Some("old".into()), ..row(1, at(100)) };
    let rows = leases(&[row(0, Checkpoint::ShardEnd), handed, row(2, at(200))]);
    let found = judged(&rows, None, &BTreeMap::new());
    let one = "shardId-000000000001";
    assert_eq!(kinds(&found), [("stuck-handoff", Some(one), Some(format!("release {one}")))]);
    assert_eq!(judged(&rows, Some(1), &BTreeMap::new()), []);
}

#[test]
fn a_row_without_its_guard_is_mended_unless_its_owner_does_it() {
    let owned = LeaseRow { owner: Some("w".into()), ..row(1, at(100)) };
    let rows = leases(&[row(0, Checkpoint::ShardEnd), owned, row(2, at(200))]);
    let lacks = BTreeMap::from([(key(1), vec!["leaseCounter"])]);
    let found = judged(&rows, None, &lacks);
    let one = "shardId-000000000001";
    assert_eq!(kinds(&found), [("incomplete-row", Some(one), Some(format!("release {one}")))]);
    assert_eq!(kinds(&judged(&rows, Some(1), &lacks)), [("incomplete-row", Some(one), None)]);
}

#[test]
fn a_forgotten_shards_finished_lease_goes_after_its_children() {
    let mut old = row(9, Checkpoint::ShardEnd);
    let sound = [row(0, Checkpoint::ShardEnd), row(1, at(100)), row(2, at(200))];
    let with = |old: &LeaseRow| leases(&[&sound[..], std::slice::from_ref(old)].concat());
    let nine = "shardId-000000000009";
    let unknown = judged(&with(&old), None, &BTreeMap::new());
    assert_eq!(kinds(&unknown), [("orphan", Some(nine), None)]);
    old.children = vec![key(0).to_shard()];
    let known = judged(&with(&old), None, &BTreeMap::new());
    assert_eq!(kinds(&known), [("orphan", Some(nine), Some(format!("remove {nine}")))]);
    old.checkpoint = at(3);
    let unfinished = judged(&with(&old), None, &BTreeMap::new());
    assert_eq!(kinds(&unfinished), [("orphan", Some(nine), None)]);
}

/// The rewind skips no record; some records come again.
#[test]
fn a_row_at_no_place_in_its_shard_can_go_to_the_oldest_record() {
    let rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, at(100)), row(2, Checkpoint::ShardEnd)]);
    let found = judged(&rows, None, &BTreeMap::new());
    let two = "shardId-000000000002";
    assert!(
        kinds(&found).contains(&(
            "ended-but-open",
            Some(two),
            Some(format!("rewind {two} from SHARD_END to TRIM_HORIZON"))
        )),
        "{found:?}"
    );
    let rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, at(100)), row(2, at(1))]);
    let found = judged(&rows, None, &BTreeMap::new());
    assert!(
        kinds(&found).iter().any(|(kind, lease, repair)| *kind == "spoiled-row"
            && *lease == Some(two)
            && repair.as_ref().is_some_and(|repair| repair.ends_with("to TRIM_HORIZON"))),
        "{found:?}"
    );
    let owned = LeaseRow { owner: Some("w".into()), ..row(2, at(1)) };
    let rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, at(100)), owned]);
    let alive = judged(&rows, Some(2), &BTreeMap::new());
    assert!(alive.iter().any(|found| found.kind == "spoiled-row"), "{alive:?}");
    assert!(alive.iter().all(|found| found.kind != "spoiled-row" || found.repairs.is_empty()));
}

#[test]
fn a_fault_for_a_person_is_not_repaired() {
    let unreadable = RowRead::Unreadable { key: key(2), detail: "expected a number, found \"x\"".into() };
    let mut rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, Checkpoint::ShardEnd)]);
    rows.push(unreadable);
    let found = judged(&rows, None, &BTreeMap::new());
    let said: Vec<_> = found.iter().map(|found| found.kind).collect();
    assert!(said.contains(&"unreadable-row"), "{said:?}");
    let repaired = found.iter().filter(|found| !found.repairs.is_empty());
    assert!(repaired.clone().all(|found| found.kind == "ended-but-open"), "{found:?}");
}

#[test]
fn a_stream_of_several_is_judged_by_its_own_leases() {
    let id: StreamId = "1:orders:2".parse().unwrap();
    let of = |row: LeaseRow| LeaseRow {
        key: id.lease(row.key.as_str()),
        parents: row.parents.iter().map(|parent| id.qualified(parent)).collect(),
        owner: Some("w".into()),
        ..row
    };
    let judged = |rows: &[LeaseRow], alive| judged_of(Some(&id), &leases(rows), alive, &BTreeMap::new());
    let (old, one) = (of(row(0, Checkpoint::ShardEnd)), of(row(1, at(100))));
    let whole = [old.clone(), one.clone(), of(row(2, at(200)))];
    assert_eq!(judged(&whole, None), []);

    let rows = [old, one.clone()];
    let dead = judged(&rows, None);
    let two = "1:orders:2:shardId-000000000002";
    let zero = Some("1:orders:2:shardId-000000000000");
    assert_eq!(
        kinds(&dead),
        [
            ("ended-without-children", zero, None),
            ("hole", None, None),
            ("missing-lease", Some(two), Some(format!("create {two} at TRIM_HORIZON")))
        ]
    );
    assert!(dead.iter().all(|found| found.stream.as_ref() == Some(&id)), "{dead:?}");
    assert_eq!(kinds(&judged(&rows, Some(one.key)))[2], ("missing-lease", Some(two), None));

    let none = judged(&[], None);
    assert_eq!(kinds(&none), [("empty-stream", None, None)]);
}

#[test]
fn an_empty_table_is_left_to_a_worker() {
    let found = judged(&[], None, &BTreeMap::new());
    assert_eq!(kinds(&found), [("empty-table", None, None)]);
}

#[test]
fn another_shards_checkpoint_names_that_shard_and_the_remedy() {
    use leasehold_engine::position::SequenceNumber;
    use leasehold_local_aws::kinesis::{self, SequenceParts};
    let parts = |position| SequenceParts {
        created_secs: 1_700_000_000,
        position,
        time_secs: 1_700_000_000,
        shard: 5,
    };
    let number =
        |position| SequenceNumber::from_words(kinesis::SequenceNumber::new(parts(position)).to_words());
    let (wrong, one) = (Checkpoint::At(Position::of(number(7))), "shardId-000000000001");
    let rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, wrong), row(2, at(200))]);
    let found = judged(&rows, None, &BTreeMap::new());
    let repair = format!("rewind {one} from {wrong} to TRIM_HORIZON");
    assert_eq!(kinds(&found), [("other-shard", Some(one), Some(repair))]);
    assert!(found[0].found.contains("a shard shardId-000000000005"), "{}", found[0].found);
    assert!(found[0].advice.contains("admin rewind --shard"), "{}", found[0].advice);
}

#[test]
fn wrong_hash_keys_are_told_with_those_of_the_shard() {
    let whole = LeaseRow { range: Some(leasehold_engine::shard::HashRange::ALL), ..row(1, at(200)) };
    let rows = leases(&[row(0, Checkpoint::ShardEnd), whole, row(2, at(200))]);
    let found = judged(&rows, None, &BTreeMap::new());
    assert_eq!(kinds(&found), [("wrong-range", Some("shardId-000000000001"), None)]);
    assert!(found[0].found.starts_with("its row names the hash keys 0 to "), "{}", found[0].found);
}
