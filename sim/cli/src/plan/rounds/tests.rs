use super::*;
use crate::input::heartbeat;
use leasehold_engine::fleet::{FleetLeader, FleetMetric, FleetRow, FleetVersion, FleetWorker};
use leasehold_engine::format::{Format, LeaseFormat as _};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::RowRead;
use leasehold_engine::time::Wall;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// In seconds.
const NOW: i64 = 1_000;

fn lease(key: &str, owner: Option<&str>) -> LeaseRow {
    let mut row = LeaseRow::new(key.into(), Checkpoint::TrimHorizon);
    row.owner = owner.map(Into::into);
    row
}

fn ours(key: &str, owner: &str) -> LeaseRow {
    let mut row = lease(key, Some(owner));
    row.hands_over = HandsOver::Yes;
    row
}

fn foreign(key: &str, says: FleetRow) -> RowRead {
    RowRead::Foreign { key: key.into(), kind: "A_KIND".into(), says: Some(Box::new(says)) }
}

fn worker(id: &str, at: i64) -> RowRead {
    foreign(id, FleetRow::Worker(heartbeat(id, at)))
}

fn leader(id: &str) -> RowRead {
    let leader = FleetLeader { id: id.into(), version: "v".into(), lease_ms: 120_000, released: false };
    foreign("Leader", FleetRow::Leader(leader))
}

fn version(version: FleetVersion) -> RowRead {
    foreign("Migration3.0", FleetRow::Version(version.into()))
}

fn fleet(rows: &[RowRead], heartbeats: &[(&str, i64)]) -> Fleet {
    let mut all: Vec<_> = heartbeats.iter().map(|(worker, at)| heartbeat(worker, *at)).collect();
    all.extend(super::super::fleet::in_table(rows, Wall(NOW * 1_000)).into_iter().flatten());
    Fleet::read(rows, &all, Wall(NOW * 1_000))
}

fn run(leases: &[LeaseRow], fleet: &Fleet, load: bool) -> Course {
    let leases: Vec<&LeaseRow> = leases.iter().collect();
    course(&leases, fleet, Policies::default(), load)
}

fn told(round: &[Assignment]) -> Vec<(&str, Option<&str>, &str)> {
    let told = round.iter().map(|step| (step.how, step.from.as_deref(), step.to.as_str()));
    told.collect()
}

#[test]
fn unrenewed_leases_are_taken_to_a_share_and_others_asked_for() {
    let leases = [
        ours("a", "w1"),
        ours("b", "w1"),
        ours("c", "w1"),
        ours("d", "w1"),
        lease("e", Some("dead")),
        lease("f", None),
    ];
    let course = run(&leases, &fleet(&[], &[("dead", NOW - 60), ("w2", NOW - 59)]), true);
    let [first] = &course.rounds[..] else {
        panic!("{:?}", course.rounds);
    };
    // w1 looks first, and does not see w2: w2 has no lease yet.
    assert!(course.rests);
    let hows: Vec<_> = first.iter().map(|step| (step.how, &*step.to)).collect();
    assert_eq!(hows[..2], [("take", "w1"); 2]);
    assert_eq!(hows[2..], [("ask", "w2"); 3]);
    let of_dead = first.iter().find(|step| step.lease_key == "e").expect("it is taken");
    assert_eq!(of_dead.from.as_deref(), Some("dead"));
    assert!(
        of_dead.reason.starts_with("dead has it and does not report any more, and w1 has only "),
        "{}",
        of_dead.reason
    );
    assert!(of_dead.reason.ends_with(" of a fair share of 6"), "{}", of_dead.reason);
    assert_eq!(course.counts.iter().map(|(_, count)| *count).max(), Some(4));
}

#[test]
fn leases_of_ours_are_asked_for_and_others_stolen_one_a_round() {
    let all = |row: fn(&str) -> LeaseRow| ["a", "b", "c", "d", "e", "f"].map(row);
    let fleet = fleet(&[], &[("w2", NOW)]);
    let asked = run(&all(|key| ours(key, "w1")), &fleet, true);
    assert_eq!(asked.rounds.len(), 1);
    assert_eq!(told(&asked.rounds[0]), [("ask", Some("w1"), "w2"); 3]);
    assert_eq!(
        asked.rounds[0][0].reason,
        "w1 has 6 leases and w2 0, 3 would be fair; its owner is asked for it and hands it over"
    );
    let stolen = run(&all(|key| lease(key, Some("w1"))), &fleet, true);
    assert_eq!(stolen.rounds.len(), 3);
    for round in &stolen.rounds {
        assert_eq!(told(round), [("steal", Some("w1"), "w2")]);
    }
    assert!(asked.rests && stolen.rests);
}

#[test]
fn a_hand_over_under_way_is_told_and_one_to_the_dead_is_not() {
    for (next, expected) in [("w2", 1), ("dead", 0)] {
        let mut promised = ours("a", next);
        promised.handing_over = Some("w1".into());
        let leases = [promised, ours("b", "w1")];
        let course = run(&leases, &fleet(&[], &[("dead", 0)]), true);
        assert_eq!(course.rounds.concat().len(), expected, "{:?}", course.rounds);
        if let Some(step) = course.rounds.concat().first() {
            assert_eq!((step.how, &*step.to), ("hand-over", "w2"));
        }
        assert!(course.rests);
    }
}

#[test]
fn a_leader_assigns_by_load_or_by_count() {
    let heavy = |key: &str, owner: Option<&str>, throughput| {
        let mut row = lease(key, owner);
        row.throughput = Some(throughput);
        row
    };
    let leases = [
        heavy("a", Some("k1"), 8_000_000),
        heavy("b", Some("k2"), 1_000_000),
        heavy("c", Some("k2"), 1_000_000),
        heavy("d", None, 1_000_000),
    ];
    let rows = [worker("k1", NOW), worker("k2", NOW - 10), leader("k1"), version(FleetVersion::Version3x)];
    let fleet = fleet(&rows, &[]);
    let rule = fleet.rule(Policies::default(), true);
    assert_eq!((rule.by, rule.leader.as_deref()), ("leader", Some("k1")));
    assert_eq!(
        rule.detail,
        "k1 assigns leases by load, as CLIENT_VERSION_3X says, and k1 holds the lock of the leader; it is a worker of another library, \
         whose own rule differs a little; no other worker takes any"
    );
    let by_load = run(&leases, &fleet, true);
    assert_eq!(told(&by_load.rounds[0]), [("assign", None, "k2")]);
    assert!(by_load.rests);
    let by_count = run(&leases, &fleet, false);
    assert_eq!(told(&by_count.rounds[0]), [("assign", None, "k1")]);
    assert!(by_count.rests);
}

/// The leader's next step depends on new measurements of the workers.
#[test]
fn a_leader_of_measuring_workers_is_followed_to_its_first_moves() {
    let leases = ["a", "b", "c", "d"].map(|key| {
        let mut row = lease(key, Some("k1"));
        row.throughput = Some(1_000_000);
        row
    });
    let measured = |id: &str, percent: i64| {
        let cpu = FleetMetric { name: "C".into(), recent: vec![percent * 1_000_000], limit: 100_000_000 };
        let worker = FleetWorker { metrics: vec![cpu], ..heartbeat(id, NOW) };
        foreign(id, FleetRow::Worker(worker))
    };
    for (busy, idle, rounds, rests) in [(80, 20, 1, false), (50, 50, 0, true)] {
        let rows =
            [measured("k1", busy), measured("k2", idle), leader("k1"), version(FleetVersion::Version3x)];
        let fleet = fleet(&rows, &[]);
        let by_load = run(&leases, &fleet, true);
        assert_eq!((by_load.rounds.len(), by_load.rests), (rounds, rests), "{by_load:?}");
        assert!(run(&leases, &fleet, false).rests);
    }
}

#[test]
fn which_rule_holds_follows_from_the_rows_as_in_the_engine() {
    let rule = |rows: &[RowRead]| {
        let rule = fleet(rows, &[]).rule(Policies::default(), true);
        (rule.by, rule.leader.unwrap_or_default(), rule.detail)
    };
    let live = [worker("k1", NOW), worker("k2", NOW)];
    let with = |more: &[RowRead]| rule(&[&live[..], more].concat());
    assert_eq!(rule(&[]).0, "count");
    let (by, _, detail) = with(&[version(FleetVersion::UpgradeFrom2x)]);
    assert_eq!(by, "count");
    assert!(detail.contains("CLIENT_VERSION_UPGRADE_FROM_2X, and 2 workers"), "{detail}");
    assert_eq!(with(&[version(FleetVersion::Version2x)]).0, "count");
    let led = version(FleetVersion::Version3xWithRollback);
    // No worker of another library lives.
    let (by, _, detail) = rule(&[worker("k1", NOW - 60), led.clone()]);
    assert_eq!(by, "count");
    assert!(detail.contains("and 0 workers of another library report"), "{detail}");
    for (lock, leads) in [
        (vec![], "no worker leads: one of the live workers takes the lock, here k1"),
        (vec![leader("k2")], "k2 holds the lock of the leader"),
        (vec![leader("k9")], "the leader k9 does not report any more"),
    ] {
        let (by, leader, detail) = with(&[&lock[..], std::slice::from_ref(&led)].concat());
        assert_eq!(by, "leader");
        assert!(detail.contains(leads), "{detail}");
        assert_eq!(leader, if leads.starts_with("k2") { "k2" } else { "k1" });
    }
    let rank = fleet(&[], &[]).rule(Format::Kinsumer.policies(), true);
    assert_eq!((rank.by, rank.leader), ("rank", None));
}

/// Rows of a table: the owner of each lease, and whether the row offers hand-overs.
fn tables() -> impl Strategy<Value = Vec<LeaseRow>> {
    let row = (prop::option::of(0u32..5), any::<bool>(), prop::option::of(0u64..5_000_000));
    prop::collection::vec(row, 0..30).prop_map(|rows| {
        let row = |(n, (owner, hands_over, throughput)): (usize, (Option<u32>, bool, Option<u64>))| {
            let owner = owner.map(|owner| format!("w{owner}"));
            let mut row = lease(&format!("{n:02}"), owner.as_deref());
            (row.counter, row.throughput) = (1, throughput);
            if hands_over && row.owner.is_some() {
                row.hands_over = HandsOver::Yes;
            }
            row
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

proptest! {
    /// The rounds lead to a table with a live owner for every lease, and, by count, with even shares.
    #[test]
    fn rounds_lead_to_rest(leases in tables(), dead in 0u32..5, led: bool, load: bool, format in 0usize..3) {
        let mut rows = Vec::new();
        for n in 0..5 {
            let at = if n == dead { 0 } else { NOW };
            rows.push(worker(&format!("w{n}"), at));
        }
        if led {
            rows.extend([leader("w0"), version(FleetVersion::Version3x)]);
        }
        let policies = [Format::Kcl, Format::VmwareGoKcl, Format::KclRb][format].policies();
        let fleet = fleet(&rows, &[]);
        let all: Vec<&LeaseRow> = leases.iter().collect();
        let course = course(&all, &fleet, policies, load);
        prop_assert!(course.rests, "{:?}", course.rounds.last());
        let mut owners: BTreeMap<&str, Option<String>> = leases
            .iter()
            .map(|row| (row.key.as_str(), row.owner.as_ref().map(ToString::to_string)))
            .collect();
        for step in course.rounds.iter().flatten() {
            let owner = owners.get_mut(step.lease_key.as_str()).expect("a lease of the table");
            prop_assert_eq!(&*owner, &step.from);
            *owner = Some(step.to.clone());
        }
        let dead = format!("w{dead}");
        let mut counts = BTreeMap::new();
        for owner in owners.into_values() {
            let owner = owner.expect("every lease has an owner");
            prop_assert_ne!(&owner, &dead);
            *counts.entry(owner).or_insert(0u32) += 1;
        }
        let even = counts.values().max().unwrap_or(&0) - counts.values().min().filter(|_| counts.len() == 4).unwrap_or(&0);
        if !led || !load {
            prop_assert!(even <= 1, "{counts:?}");
        }
    }
}
