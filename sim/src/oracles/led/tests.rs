//! Good and bad histories of a fleet with a leader. Life 0 runs another program, all other lives run ours.

use super::super::Oracles;
use super::super::testing::{changed, config, row};
use super::*;
use crate::oracles::fact::Verb;

const S: u64 = 1_000_000;

fn begin() -> Vec<(Time, Fact)> {
    let mut facts: Vec<(Time, Fact)> = (0..3).map(|life| (0, Fact::Booted { life, worker: life })).collect();
    facts.push((S, Fact::Reports { life: 0, there: true, ahead_s: 0 }));
    facts
}

fn judge(facts: impl IntoIterator<Item = (Time, Fact)>) -> Vec<Property> {
    judge_in(false, facts)
}

fn judge_in(migrates: bool, facts: impl IntoIterator<Item = (Time, Fact)>) -> Vec<Property> {
    let terms = Terms { led: true, migrates, ..Terms::plain(config()) };
    let reports =
        (30..1_000).step_by(30).map(|at| (at * S, Fact::Reports { life: 0, there: true, ahead_s: 0 }));
    let mut facts: Vec<(Time, Fact)> = begin().into_iter().chain(reports).chain(facts).collect();
    facts.sort_by_key(|(at, _)| *at);
    // A dead worker sends no reports.
    let dies = |(at, fact): &(Time, Fact)| matches!(fact, Fact::Died { life: 0 }).then_some(*at);
    let dies = facts.iter().find_map(dies).unwrap_or(Time::MAX);
    facts.retain(|(at, fact)| *at <= dies || !matches!(fact, Fact::Reports { life: 0, .. }));
    let mut oracles = Oracles::new(&terms);
    oracles.note_other(0);
    for (at, fact) in facts {
        oracles.look(at);
        oracles.observe(at, &fact);
        oracles.look(at);
    }
    let found = oracles.verdict.violations().iter();
    let of_ours = [
        Property::OneLeader,
        Property::FairShares,
        Property::LeasesOwned,
        Property::StopsCleanly,
        Property::RequestsOnTime,
    ];
    found.map(|found| found.property).filter(|property| of_ours.contains(property)).collect()
}

fn leads(at: u64, life: u32) -> (Time, Fact) {
    (at * S, Fact::Leads { life: Some(life) })
}

fn write(
    at: u64, by: u32, verb: Verb, before: (Option<u32>, u64), after: (Option<u32>, u64),
) -> (Time, Fact) {
    let [before, after] = [before, after].map(|(owner, counter)| Some(row(owner, counter, Mark::At(1))));
    (at * S, changed(0, Some(by), verb, before, after))
}

#[test]
fn who_has_the_lock_assigns() {
    let assigns = |by| write(90, by, Verb::Assign, (None, 0), (Some(2), 1));
    assert_eq!(judge([leads(50, 1), assigns(1)]), []);
    assert_eq!(judge([leads(50, 1), assigns(2)]), [Property::OneLeader]);
    // A decision from before the loss of the lock may be written late, but not long after.
    assert_eq!(judge([leads(50, 1), leads(89, 0), assigns(1)]), []);
    let late = write(190, 1, Verb::Assign, (None, 0), (Some(2), 1));
    assert_eq!(judge([leads(50, 1), leads(89, 0), late]), [Property::OneLeader]);
    // A stopping worker passes its own leases on.
    let stops = (80 * S, Fact::ShutdownAsked { life: 1 });
    let stopped = (91 * S, Fact::Died { life: 1 });
    assert_eq!(judge([leads(50, 0), stops, assigns(1), stopped]), []);
}

#[test]
fn a_free_lease_is_left_to_the_leader() {
    let born = write(190, 0, Verb::Create, (None, 0), (None, 0));
    let takes = |at, by| write(at, by, Verb::Take, (None, 0), (Some(by), 1));
    assert_eq!(judge([leads(50, 0), born.clone(), takes(191, 1)]), [Property::FairShares]);
    assert_eq!(judge([leads(50, 1), born.clone(), takes(191, 1)]), []);
    assert_eq!(judge([leads(50, 0), born.clone(), takes(900, 1)]), []);
    // No live worker of the other program is left, so that no leader is expected.
    let dies = (100 * S, Fact::Died { life: 0 });
    assert_eq!(judge([leads(50, 0), dies, born, takes(191, 1)]), []);
}

#[test]
fn a_live_workers_renewed_lease_is_not_stolen() {
    let owned = write(190, 0, Verb::Take, (None, 0), (Some(0), 1));
    let stolen = write(191, 1, Verb::Take, (Some(0), 1), (Some(1), 2));
    assert_eq!(judge([leads(50, 0), owned, stolen]), [Property::FairShares]);
}

#[test]
fn a_leader_ends_what_the_owner_does_not_hand_over_in_time() {
    let owned = |counter| row(Some(0), counter, Mark::At(1));
    let asked = |counter| Row { next: Some(Owner::Life(2)), ..owned(counter) };
    let change =
        |at: u64, by, verb, before, after| (at * S, changed(0, Some(by), verb, Some(before), Some(after)));
    let ended = |at| {
        judge([
            leads(50, 1),
            write(190, 0, Verb::Take, (None, 0), (Some(0), 1)),
            change(200, 1, Verb::BeginHandOver, owned(1), asked(1)),
            change(at - 1, 0, Verb::Renew, asked(1), asked(2)),
            change(at, 1, Verb::Assign, asked(2), row(Some(2), 3, Mark::At(1))),
        ])
    };
    assert_eq!(ended(241), []);
    assert_eq!(ended(205), [Property::FairShares]);
}

#[test]
fn a_leader_gives_owners_time() {
    let owned = write(190, 0, Verb::Take, (None, 0), (Some(0), 1));
    let assigns = |at| write(at, 1, Verb::Assign, (Some(0), 1), (Some(2), 2));
    assert_eq!(judge([leads(50, 1), owned.clone(), assigns(200)]), [Property::FairShares]);
    assert_eq!(judge([leads(50, 1), owned, assigns(290)]), []);
}

#[test]
fn a_dead_leaders_leases_are_taken_by_its_followers() {
    let owned = write(190, 1, Verb::Take, (None, 0), (Some(1), 1));
    let dies = |life: u32| (300 * S, Fact::Died { life });
    let reports = |life: u32| {
        let said = (10..900).step_by(30);
        said.map(move |at| (at * S, Fact::Reports { life, there: true, ahead_s: 0 }))
    };
    let scans = (1..900).map(|at| (at * S, Fact::ScanEnded { life: 2 }));
    let all = |facts: Vec<(Time, Fact)>| {
        let said = reports(1).filter(|(at, _)| *at < 300 * S).chain(reports(2));
        judge(said.chain(scans.clone()).chain(facts))
    };
    let begun = [leads(50, 1), owned, dies(1)];
    let takes = |at| write(at, 2, Verb::Take, (Some(1), 1), (Some(2), 2));
    let then = |facts: &[(Time, Fact)]| all([&begun[..], facts].concat());
    assert_eq!(then(&[takes(340)]), []);
    assert_eq!(then(&[takes(420)]), [Property::LeasesOwned]);
    // Another worker may have become the leader.
    assert_eq!(then(&[leads(330, 0), takes(420)]), []);
    let beats: Vec<_> = (330..1_000).step_by(5).map(|at| leads(at, 2)).collect();
    assert_eq!(then(&[&beats[..], &[takes(395)]].concat()), []);
    // The report repeats for as long as the violation lasts.
    let found = then(&beats);
    assert!(found.len() > 1 && found.iter().all(|found| *found == Property::LeasesOwned));
}

#[test]
fn who_lives_says_so() {
    let reports = |at: u64| (at * S, Fact::Reports { life: 1, there: true, ahead_s: 0 });
    let scans = |at: u64| (at * S, Fact::ScanEnded { life: 1 });
    let said = (10..900).step_by(30).map(reports);
    assert_eq!(judge(said.chain([scans(900)])), []);
    assert_eq!(judge([reports(10), scans(900)]), [Property::RequestsOnTime]);
    // Without a later scan, the worker may be cut off.
    assert_eq!(judge([reports(10), scans(20)]), []);
}

#[test]
fn an_assigned_lease_is_taken_soon() {
    let judge = |facts: Vec<(Time, Fact)>| {
        let reports =
            (10..900).step_by(30).map(|at| (at * S, Fact::Reports { life: 1, there: true, ahead_s: 0 }));
        judge(reports.chain(facts))
    };
    let assigned = write(190, 0, Verb::Take, (None, 0), (Some(1), 1));
    let taken = write(191, 1, Verb::Take, (Some(1), 1), (Some(1), 2));
    let later = (900 * S, Fact::ScanEnded { life: 1 });
    assert_eq!(judge(vec![leads(50, 0), assigned.clone(), later.clone()]), [Property::LeasesOwned]);
    assert_eq!(judge(vec![leads(50, 0), assigned.clone(), taken, later.clone()]), []);
    let dies = (192 * S, Fact::Died { life: 1 });
    assert_eq!(judge(vec![leads(50, 0), assigned, dies, later]), []);
}

#[test]
fn nothing_is_assigned_to_who_died_long_ago() {
    let dies = |at| (at * S, Fact::Died { life: 0 });
    let assigns = write(900, 1, Verb::Assign, (None, 0), (Some(0), 1));
    assert_eq!(judge([leads(50, 1), dies(100), assigns.clone()]), [Property::LeasesOwned]);
    assert_eq!(judge([leads(50, 1), dies(890), assigns]), []);
}

#[test]
fn who_stops_leaves_no_report_and_no_lock() {
    let reports = |there| (10 * S, Fact::Reports { life: 1, there, ahead_s: 0 });
    let stops = (90 * S, Fact::Stopped { life: 1, fatal: false });
    assert_eq!(judge([reports(true), stops.clone()]), [Property::StopsCleanly]);
    assert_eq!(judge([reports(true), reports(false), stops.clone()]), []);
    assert_eq!(judge([leads(50, 1), stops.clone()]), [Property::StopsCleanly]);
    // A worker cut off from the tables cannot remove its report or lock.
    let cut_off = (89 * S, Fact::CutOff { life: 1 });
    assert_eq!(judge([leads(50, 1), reports(true), cut_off, stops]), []);
}

#[test]
fn the_report_of_a_worker_that_renews_is_not_removed() {
    let reports = |at: u64, there| (at * S, Fact::Reports { life: 1, there, ahead_s: 0 });
    let takes = write(200, 1, Verb::Take, (None, 0), (Some(1), 1));
    let renews = write(202, 1, Verb::Renew, (Some(1), 1), (Some(1), 2));
    let judge = |facts: Vec<(Time, Fact)>| {
        let free = write(100, 0, Verb::Create, (None, 0), (None, 0));
        let begun = [free, leads(50, 0), reports(190, true)];
        judge(begun.into_iter().chain(facts))
    };
    let removed = |at| reports(at, false);
    let kept = |facts: &[(Time, Fact)]| judge(facts.to_vec()).is_empty();
    let begun = [takes.clone(), renews.clone()];
    assert!(kept(&begun));
    assert_eq!(judge(vec![takes.clone(), renews.clone(), removed(203)]), [Property::LeasesOwned]);
    let asked = (203 * S, Fact::ShutdownAsked { life: 1 });
    let releases = write(204, 1, Verb::Release, (Some(1), 2), (None, 3));
    let (life, fatal) = (1, false);
    let stopped = (206 * S, Fact::Stopped { life, fatal });
    assert!(kept(&[takes.clone(), renews, asked, releases, removed(205), stopped]));
    assert!(kept(&[takes.clone(), removed(201)]), "a leader assigned the lease");
}

/// This worker moves the fleet to version 3, or back.
fn rules(at: u64, by: u32, led: bool) -> (Time, Fact) {
    (at * S, Fact::Rules { by: Some(by), led })
}

#[test]
fn a_migrated_fleet_has_a_leader_when_all_can_have_noticed() {
    let judge = |born: u64, facts: Vec<(Time, Fact)>| {
        let begun = [rules(1, 0, false), rules(100, 0, true), leads(120, 0)];
        let free = write(born, 0, Verb::Create, (None, 0), (None, 0));
        let takes = write(born + 1, 1, Verb::Take, (None, 0), (Some(1), 1));
        judge_in(true, begun.into_iter().chain(facts).chain([free, takes]))
    };
    assert_eq!(judge(50, vec![]), []);
    assert_eq!(judge(189, vec![]), []);
    assert_eq!(judge(400, vec![]), [Property::FairShares]);
    assert_eq!(judge(400, vec![rules(390, 0, false)]), []);
    assert_eq!(judge(400, vec![rules(390, 0, false), rules(395, 0, true)]), []);
}

#[test]
fn the_end_of_a_migration_has_waited_for_all_owners_reports() {
    let judge = |by: u32, at: u64, facts: Vec<(Time, Fact)>| {
        let begun = [rules(1, 0, false), rules(at, by, true)];
        judge_in(true, begun.into_iter().chain(facts))
    };
    assert_eq!(judge(1, 700, vec![]), []);
    assert_eq!(judge(1, 300, vec![]), [Property::LeasesOwned]);
    assert_eq!(judge(0, 300, vec![]), [], "others may be configured otherwise");
    let owns = |renewed| {
        vec![
            write(400, 2, Verb::Take, (None, 0), (Some(2), 1)),
            write(renewed, 2, Verb::Renew, (Some(2), 1), (Some(2), 2)),
        ]
    };
    let reports = (680 * S, Fact::Reports { life: 2, there: true, ahead_s: 0 });
    assert_eq!(judge(1, 700, owns(699)), [Property::LeasesOwned]);
    assert_eq!(judge(1, 700, owns(699).into_iter().chain([reports]).collect()), []);
    assert_eq!(judge(1, 700, owns(500)), [], "it may be dead");
}

#[test]
fn the_mark_of_an_earlier_take_shortens_the_wait() {
    let early = |marked: bool, at| {
        let takes = marked.then(|| write(95, 2, Verb::Take, (Some(2), 1), (Some(2), 2)));
        let facts = [
            leads(50, 1),
            write(90, 1, Verb::Assign, (None, 0), (Some(2), 1)),
            write(200, 1, Verb::Take, (Some(2), 2), (Some(1), 3)),
            write(300, 1, Verb::Assign, (Some(1), 3), (Some(2), 4)),
            write(at, 1, Verb::Assign, (Some(2), 4), (Some(1), 5)),
        ];
        let found = judge(facts.into_iter().chain(takes));
        found.into_iter().filter(|found| *found == Property::FairShares).count()
    };
    assert_eq!(early(false, 315), 1, "the worker may not have looked yet");
    assert_eq!(early(true, 315), 0, "the row says that the worker has taken the lease");
    assert_eq!(early(true, 305), 1);
}

#[test]
fn a_leader_of_ours_renews_its_lock() {
    let told = |at| {
        let there = Fact::Reports { life: 1, there: true, ahead_s: 0 };
        [(at * S, there), (at * S, Fact::ScanEnded { life: 1 })]
    };
    let lives = || (10..300).step_by(5).flat_map(told);
    let beats = |until: u64| (200..until).step_by(5).map(|at| leads(at, 1));
    assert_eq!(judge(lives().chain(beats(900))), []);
    let found = judge(lives().chain(beats(250)));
    assert!(!found.is_empty() && found.iter().all(|found| *found == Property::RequestsOnTime));
    let theirs = lives().chain([leads(200, 0)]);
    assert_eq!(judge(theirs), [], "a worker of KCL renews its lock more seldom");
}

#[test]
fn a_new_worker_judges_the_dead_by_their_last_report() {
    let gives = |at, by| write(at, by, Verb::Assign, (None, 0), (Some(1), 1));
    let reported = |ahead_s| (10 * S, Fact::Reports { life: 1, there: true, ahead_s });
    let born = (100 * S, Fact::Booted { life: 3, worker: 3 });
    let then = |ahead_s, at| {
        let died = (20 * S, Fact::Died { life: 1 });
        judge([reported(ahead_s), died, born.clone(), leads(101, 3), gives(at, 3)])
    };
    assert_eq!(then(60, 110), []);
    assert_eq!(then(0, 110), [Property::LeasesOwned], "the report is old");
    assert_eq!(then(3_600, 110), [Property::LeasesOwned], "the report is of the future");
}
