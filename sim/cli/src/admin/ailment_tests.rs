//! Tables with faults.

use super::*;
use crate::plan::survey::{Asked, survey};
use leasehold::admin::report;
use leasehold::format::{Format, LeaseFormat};
use leasehold::{Checkpoint, InitialPosition, Position, Span, Wall};
use leasehold_engine::position::SequenceNumber;
use leasehold_engine::row::RowRead;
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::testkit::{at, shard};
use leasehold_local_aws::kinesis::{self, SequenceParts};
use leasehold_sim::timeline::words::shorten;

fn key(n: u64) -> LeaseKey {
    format!("shardId-{n:012}").into()
}

/// Shard 0 was split into 1 and 2.
fn shards() -> Vec<Shard> {
    let half = u128::MAX / 2;
    let ranges = [(0, u128::MAX), (0, half), (half + 1, u128::MAX)];
    let each = (0..).zip(ranges).map(|(n, (start, end))| {
        let (parent, range) = (key(0).to_shard(), HashRange { start: HashKey(start), end: HashKey(end) });
        let (first, last) = if n > 0 { (100, None) } else { (10, Some(99)) };
        shard(key(n).to_shard(), (n > 0).then_some(parent), range, first, last)
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

/// The findings about these rows beside the ended lease of shard 0. Only the row of `alive` changes.
fn judged(
    rows: &[LeaseRow], alive: Option<u64>, lacks: &BTreeMap<LeaseKey, Vec<&'static str>>,
) -> Vec<Ailment> {
    let rows = leases(&[&[row(0, Checkpoint::ShardEnd)], rows].concat());
    judged_of(None, &rows, alive.map(key), lacks)
}

/// Each finding with its lease and its repair.
fn told(ailments: &[Ailment]) -> Vec<String> {
    let each = ailments.iter().map(|found| {
        let lease = found.lease.as_ref().map_or(String::new(), |key| format!(" {key}"));
        let repair = found.repairs.first().map_or(String::new(), |step| format!(": {step}"));
        shorten(&format!("{}{lease}{repair}", found.kind))
    });
    each.collect()
}

/// A checkpoint in another shard.
fn elsewhere() -> Checkpoint {
    let parts =
        SequenceParts { created_secs: 1_700_000_000, position: 7, time_secs: 1_700_000_000, shard: 5 };
    let number = kinesis::SequenceNumber::new(parts).to_words();
    Checkpoint::At(Position::of(SequenceNumber::from_words(number)))
}

#[test]
fn each_fault_is_told_with_its_safe_repair() {
    let (one, two) = (row(1, at(100)), row(2, at(200)));
    let owned = LeaseRow { owner: Some("w".into()), ..one.clone() };
    let handed = LeaseRow { handing_over: Some("old".into()), ..owned.clone() };
    let whole = LeaseRow { range: Some(HashRange::ALL), ..one.clone() };
    let old = row(9, Checkpoint::ShardEnd);
    let parent = LeaseRow { children: vec![key(0).to_shard()], ..old.clone() };
    let unread = LeaseRow { checkpoint: at(3), ..parent.clone() };
    let ended = row(2, Checkpoint::ShardEnd);
    let spoiled = LeaseRow { owner: Some("w".into()), ..row(2, at(1)) };
    let strange = format!("other-shard shard-1: rewind shard-1 from {} to TRIM_HORIZON", elsewhere());
    let gone = "ended-without-children shard-0";
    let with = |last: &LeaseRow| vec![one.clone(), two.clone(), last.clone()];
    for (case, rows, alive, expected) in [
        ("none", vec![one.clone(), two.clone()], None, &[][..]),
        (
            "no lease of a child",
            vec![owned.clone()],
            None,
            &[gone, "hole", "missing-lease shard-2: create shard-2 at TRIM_HORIZON"],
        ),
        ("the fleet creates it", vec![owned], Some(1), &[gone, "hole", "missing-lease shard-2"]),
        (
            "a stuck hand-over",
            vec![handed.clone(), two.clone()],
            None,
            &["stuck-handoff shard-1: release shard-1"],
        ),
        ("a hand-over under way", vec![handed, two.clone()], Some(1), &[]),
        ("a forgotten shard", with(&old), None, &["orphan shard-9"]),
        ("its children have leases", with(&parent), None, &["orphan shard-9: remove shard-9"]),
        ("it is not finished", with(&unread), None, &["orphan shard-9"]),
        (
            "an end in an open shard",
            vec![one.clone(), ended],
            None,
            &["hole", "ended-but-open shard-2: rewind shard-2 from SHARD_END to TRIM_HORIZON"],
        ),
        (
            "no place in its shard",
            vec![one.clone(), spoiled.clone()],
            None,
            &["spoiled-row shard-2: rewind shard-2 from 1 to TRIM_HORIZON"],
        ),
        ("its owner lives", vec![one, spoiled], Some(2), &["spoiled-row shard-2"]),
        ("a place in another shard", vec![row(1, elsewhere()), two.clone()], None, &[&strange]),
        ("wrong hash keys", vec![whole, two], None, &["wrong-range shard-1"]),
    ] {
        assert_eq!(told(&judged(&rows, alive, &BTreeMap::new())), expected, "{case}");
    }
}

#[test]
fn a_finding_names_the_fact_and_the_remedy() {
    let found = |row: LeaseRow| judged(&[row, self::row(2, at(200))], None, &BTreeMap::new()).remove(0);
    let strange = found(row(1, elsewhere()));
    assert!(strange.found.contains("a shard shardId-000000000005"), "{}", strange.found);
    assert!(strange.advice.contains("admin rewind --shard"), "{}", strange.advice);
    let whole = found(LeaseRow { range: Some(HashRange::ALL), ..row(1, at(200)) });
    assert!(whole.found.starts_with("its row names the hash keys 0 to "), "{}", whole.found);
    let owned = LeaseRow { owner: Some("w".into()), ..row(1, at(100)) };
    let missing = judged(&[owned], Some(1), &BTreeMap::new());
    assert!(missing[2].advice.starts_with("wait"), "{}", missing[2].advice);
}

#[test]
fn a_row_without_its_guard_is_mended_unless_its_owner_does_it() {
    let owned = LeaseRow { owner: Some("w".into()), ..row(1, at(100)) };
    let rows = [owned, row(2, at(200))];
    let lacks = BTreeMap::from([(key(1), vec!["leaseCounter"])]);
    assert_eq!(told(&judged(&rows, None, &lacks)), ["incomplete-row shard-1: release shard-1"]);
    assert_eq!(told(&judged(&rows, Some(1), &lacks)), ["incomplete-row shard-1"]);
}

#[test]
fn a_fault_for_a_person_is_not_repaired() {
    let unreadable = RowRead::Unreadable { key: key(2), detail: "expected a number, found \"x\"".into() };
    let mut rows = leases(&[row(0, Checkpoint::ShardEnd), row(1, Checkpoint::ShardEnd)]);
    rows.push(unreadable);
    let found = judged_of(None, &rows, None, &BTreeMap::new());
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
    let missing = "missing-lease 1:orders:2:shard-2";
    let create = format!("{missing}: create 1:orders:2:shard-2 at TRIM_HORIZON");
    assert_eq!(told(&dead), ["ended-without-children 1:orders:2:shard-0", "hole", &create]);
    assert!(dead.iter().all(|found| found.stream.as_ref() == Some(&id)), "{dead:?}");
    assert_eq!(told(&judged(&rows, Some(one.key)))[2], missing);

    assert_eq!(told(&judged(&[], None)), ["empty-stream"]);
}

#[test]
fn an_empty_table_is_left_to_a_worker() {
    assert_eq!(told(&judged_of(None, &[], None, &BTreeMap::new())), ["empty-table"]);
}
