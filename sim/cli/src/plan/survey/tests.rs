use super::*;
use crate::input::heartbeat;
use leasehold_engine::position::{self, Position};
use leasehold_engine::shard::HashKey;
use leasehold_engine::testkit;
use leasehold_local_aws::kinesis::{SequenceNumber, SequenceParts};
use proptest::prelude::*;

const HALF: u128 = 1 << 127;

fn shard(id: &str, parent: Option<&str>, open: bool, (start, end): (u128, u128)) -> Shard {
    let range = HashRange { start: HashKey(start), end: HashKey(end) };
    testkit::shard(id, parent, range, 10, (!open).then_some(20))
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
    Asked { stream: None, identity: None, from, policies: Policies::default(), heartbeats: &[], now: Wall(0) }
}

#[test]
fn an_empty_table_gets_what_is_open_at_the_initial_position() {
    let created = |from| {
        let survey = survey(&family(), &[], &asked(from));
        survey.create.into_iter().map(|lease| lease.lease_key).collect::<Vec<_>>()
    };
    assert_eq!(created(InitialPosition::TrimHorizon), ["a"]);
    assert_eq!(created(InitialPosition::Latest), ["b", "c"]);
}

#[test]
fn an_empty_table_gets_the_shards_open_at_a_time_then_the_rest() {
    let mut shards = family();
    let numbered = |secs, shard| {
        let parts = SequenceParts { created_secs: secs, position: 0, time_secs: secs, shard };
        position::SequenceNumber::from_words(SequenceNumber::new(parts).to_words())
    };
    let at = |shards: &[Shard], secs: i64| {
        let from = InitialPosition::AtTimestamp(Wall(secs * 1_000));
        let survey = survey(shards, &[], &asked(from));
        let created = survey.create.iter().map(|lease| lease.lease_key.clone());
        let waits = survey.wait.iter().map(|wait| format!("{} {}", wait.lease_key, wait.behind));
        assert!(survey.create.iter().all(|lease| lease.checkpoint == "AT_TIMESTAMP"));
        (
            created.collect::<Vec<_>>().join(" "),
            waits.collect::<Vec<_>>().join(", "),
            kinds(&survey).join(" "),
        )
    };
    let text = |parts: [&str; 3]| (parts[0].to_owned(), parts[1].to_owned(), parts[2].to_owned());
    // Where the numbers tell no times, no open shard can be left out.
    let unknown = text(["a", "b a, c a", "hole unknown-times"]);
    assert_eq!(at(&shards, 5_000), unknown);
    for (n, secs) in [1_000, 2_000, 2_000].into_iter().enumerate() {
        shards[n].starting = numbered(secs, n as u32);
    }
    let before = text(["a", "b a, c a", "hole"]);
    for secs in [500, 1_500, 2_000] {
        assert_eq!(at(&shards, secs), before, "{secs}");
    }
    assert_eq!(at(&shards, 2_001), text(["b c", "", "hole"]));
}

#[test]
fn a_later_lease_is_told_with_the_shard_that_it_waits_for() {
    let waits = |shards: &[Shard], rows: &[RowRead]| {
        let survey = survey(shards, rows, &asked(InitialPosition::TrimHorizon));
        let told = |wait: Wait| (wait.lease_key, wait.behind, wait.reason);
        survey.wait.into_iter().map(told).collect::<Vec<_>>()
    };
    let reasons = |ids: [&str; 2], behind: &str, reason: &str| {
        ids.map(|id| (id.to_owned(), behind.to_owned(), reason.to_owned()))
    };
    let unread = "a comes before it, and has not been processed to its end";
    let shards = family();
    assert_eq!(waits(&shards, &[]), reasons(["b", "c"], "a", unread));
    let rows = [lease("a", Some("w1"), Checkpoint::TrimHorizon)];
    assert_eq!(waits(&shards, &rows), reasons(["b", "c"], "a", unread));
    let unreadable = RowRead::Unreadable { key: "a".into(), detail: "no counter".into() };
    let stuck = "a comes before it, and the row of a cannot be read: no worker reads that shard";
    let rows = [unreadable, lease("z", None, Checkpoint::ShardEnd)];
    assert_eq!(waits(&shards, &rows), reasons(["b", "c"], "a", stuck));
    let forgotten = [lease("z", Some("w1"), Checkpoint::TrimHorizon)];
    let lost = "a comes before it and is neither listed nor leased: an unfinished lease of another shard that is not \
                listed may still bring it";
    assert_eq!(waits(&shards[1..], &forgotten), reasons(["b", "c"], "a", lost));
    let ended = [lease("a", None, Checkpoint::ShardEnd)];
    assert_eq!(waits(&shards, &ended), [], "they are created now");
}

proptest! {
    /// Shards with random parents among the shards before them, and leases of some shards.
    #[test]
    fn missing_children_are_those_that_a_search_finds(
        parents in prop::collection::vec((0usize..12, 0usize..12), 1..12),
        ended in prop::collection::vec(prop::option::of(any::<bool>()), 12),
    ) {
        let shards: Vec<Shard> = parents.iter().enumerate().map(|(n, (one, other))| {
            let parent = |m: usize| (m < n).then(|| format!("{m:02}"));
            let mut shard = shard(&format!("{n:02}"), parent(*one).as_deref(), false, (0, u128::MAX));
            shard.adjacent_parent = parent(*other).as_deref().map(Into::into);
            shard
        }).collect();
        let rows: Vec<LeaseRow> = shards.iter().zip(ended).filter_map(|(shard, ended)| {
            let checkpoint = if ended? { Checkpoint::ShardEnd } else { Checkpoint::Latest };
            Some(LeaseRow::new(shard.id.to_lease(), checkpoint))
        }).collect();
        let leases: BTreeMap<LeaseKey, &LeaseRow> = rows.iter().map(|row| (row.key.clone(), row)).collect();
        let mut expected = Vec::new();
        for row in rows.iter().filter(|row| row.checkpoint.is_end()) {
            let missing: Vec<&str> = shards.iter()
                .filter(|shard| shard.parents().any(|parent| parent.as_str() == row.key.as_str()))
                .map(|shard| shard.id.as_str())
                .filter(|id| !leases.contains_key(*id))
                .collect();
            if !missing.is_empty() {
                expected.push(format!("it has ended, and there is no lease for {}", missing.join(" and ")));
            }
        }
        let mut survey = Survey::default();
        survey.judge(&shards, &leases, &asked(InitialPosition::TrimHorizon));
        let found: Vec<String> = survey.findings.into_iter()
            .filter(|finding| finding.kind == "ended-without-children")
            .map(|finding| finding.detail)
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_hole_below_an_ended_lease_is_found_and_filled() {
    let rows = [lease("a", None, Checkpoint::ShardEnd), lease("b", Some("w1"), Checkpoint::TrimHorizon)];
    let survey = survey(&family(), &rows, &asked(InitialPosition::Latest));
    assert_eq!(kinds(&survey), ["ended-without-children", "hole"]);
    assert_eq!(survey.create.len(), 1);
    assert_eq!((&*survey.create[0].lease_key, &*survey.create[0].checkpoint), ("c", "TRIM_HORIZON"));
}

#[test]
fn orphans_strangers_and_other_streams_are_told_apart() {
    let at = |number: u64| Checkpoint::At(Position::of(number.into()));
    let rows = [
        lease("a", Some("w1"), at(5)),
        lease("z", Some("w1"), at(5)),
        RowRead::Foreign { key: "lock".into(), kind: "LEADER".into(), says: None },
        RowRead::Unreadable { key: "x".into(), detail: "no counter".into() },
        lease("a", Some("w1"), at(5)),
    ];
    let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
    assert_eq!(kinds(&survey), ["foreign-row", "unreadable-row", "duplicate", "other-stream", "orphan"]);
}

#[test]
fn a_row_that_cannot_be_read_keeps_its_key() {
    let unreadable = RowRead::Unreadable { key: "b".into(), detail: "no counter".into() };
    let rows = [lease("a", None, Checkpoint::ShardEnd), unreadable];
    let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
    let created: Vec<&str> = survey.create.iter().map(|lease| &*lease.lease_key).collect();
    assert_eq!(created, ["c"]);
}

#[test]
fn a_worker_that_reports_no_more_is_told() {
    let rows = [
        lease("a", Some("dead"), Checkpoint::TrimHorizon),
        lease("b", Some("dead"), Checkpoint::TrimHorizon),
        lease("c", Some("alive"), Checkpoint::TrimHorizon),
        lease("d", Some("silent"), Checkpoint::TrimHorizon),
    ];
    // The second report of a worker may stand in another table.
    let reports = [("dead", 0), ("dead", 40), ("alive", 0), ("alive", 99), ("new", 90)];
    let heartbeats = reports.map(|(worker, at)| heartbeat(worker, at));
    let at = |now| {
        let asked = Asked { heartbeats: &heartbeats, now: Wall(now), ..asked(InitialPosition::TrimHorizon) };
        let mut survey = survey(&family(), &rows, &asked);
        survey.stale(&asked, &rows);
        survey
    };
    let survey = at(100_001);
    let stale: Vec<_> = survey.findings.iter().filter(|finding| finding.kind == "stale-worker").collect();
    assert_eq!(stale.len(), 1);
    assert!(stale[0].detail.starts_with("dead reported last 60 s ago, and has 2 "), "{stale:?}");
    assert!(!kinds(&at(99_999)).contains(&"stale-worker"));
}

#[test]
fn leases_of_other_streams_are_told_by_stream() {
    let one = "12:bills:1700000000:shardId-000000000000";
    let two = "12:bills:1700000000:shardId-000000000001";
    let rows = [
        lease(one, Some("w1"), Checkpoint::TrimHorizon),
        lease(two, None, Checkpoint::ShardEnd),
        lease("12:orders:1700000000:a", Some("w1"), Checkpoint::TrimHorizon),
        lease("a:b", None, Checkpoint::ShardEnd),
        lease("b", Some("w1"), Checkpoint::TrimHorizon),
        lease("c", Some("w1"), Checkpoint::TrimHorizon),
    ];
    let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
    assert_eq!(kinds(&survey), ["orphan", "multi-stream", "multi-stream"]);
    let told = |n: usize| survey.findings[n].detail.split(", in").next().unwrap_or_default();
    assert_eq!(
        [told(1), told(2)],
        [
            "2 leases (1 unfinished) of the stream 12:bills:1700000000",
            "1 lease (1 unfinished) of the stream 12:orders:1700000000"
        ]
    );
}

#[test]
fn leases_of_shards_of_dynamodb_streams_are_one_finding() {
    let rows = [0, 1].map(|n| {
        let key = format!("shardId-0000000176299240{n}730-85636fc{n}");
        lease(&key, Some("w1"), Checkpoint::TrimHorizon)
    });
    let survey = survey(&family(), &rows, &asked(InitialPosition::TrimHorizon));
    assert_eq!(kinds(&survey)[0], "dynamodb-streams");
    assert!(survey.findings[0].detail.starts_with("2 leases (2 unfinished) of shards of DynamoDB Streams"));
    assert!(!kinds(&survey).contains(&"orphan"), "{:?}", survey.findings);
}

#[test]
fn a_listing_that_cannot_be_meant_gives_no_plan() {
    let shards = [shard("a", None, true, (0, u128::MAX)), shard("b", Some("a"), true, (0, 9))];
    let rows = [lease("a", None, Checkpoint::TrimHorizon)];
    let survey = survey(&shards, &rows, &asked(InitialPosition::TrimHorizon));
    assert!(survey.hopeless && survey.create.is_empty());
    assert!(kinds(&survey).contains(&"bad-listing"));
}
