//! Scenes of the end of a shard.

use crate::rig::{Rig, Trick};
use leasehold_engine::input::{Body, Call, Cause, Outcome};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::Span;

fn creates(effect: &Effect, n: u32) -> bool {
    matches!(effect, Effect::Table(TableOp::Write(Change::Create(row))) if row.key == Rig::id(n).to_lease())
}

#[test]
fn an_end_is_written_after_the_leases_of_all_children() {
    for held_back in [1, 2] {
        let mut rig = Rig::new(1, 1);
        rig.secs(20);
        let (one, other) = rig.split(0);
        assert_eq!((one, other), (1, 2));
        rig.workers[0].trap = Some(Box::new(move |effect| creates(effect, held_back).then_some(Trick::Hang)));
        rig.secs(30);
        assert!(rig.has_row(3 - held_back) && !rig.has_row(held_back));
        assert!(!rig.row(0).checkpoint.is_end());
        rig.workers[0].trap = None;
        rig.release(0);
        rig.secs(1);
        assert!(rig.row(0).checkpoint.is_end() && rig.has_row(held_back));
    }
}

#[test]
fn an_end_waits_while_a_child_cannot_be_created() {
    let mut rig = Rig::new(1, 1);
    rig.secs(20);
    rig.split(0);
    let throttled = || Trick::Instead(Outcome::NotSent(Cause::Throttled));
    rig.workers[0].trap = Some(Box::new(move |effect| creates(effect, 1).then(throttled)));
    rig.secs(120);
    assert!(!rig.row(0).checkpoint.is_end());
    assert_eq!(rig.owner(0), Some(0), "it is kept");
}

/// The child of two shards waits for the lease of the other parent, and the owner tells the cause of the wait once.
#[test]
fn a_merged_childs_wait_is_said_once() {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    // One parent of the child is itself a child whose lease does not come for long.
    let (near, far) = rig.split(0);
    let child = rig.merge(far, 1);
    rig.workers[0].trap = Some(Box::new(move |effect| creates(effect, far).then_some(Trick::Hang)));
    rig.secs(45);
    assert!(rig.has_row(near) && !rig.has_row(far) && !rig.has_row(child));
    let blocked = |(_, notice): &&(_, Notice)| matches!(notice, Notice::Blocked { lease, .. } if *lease == Rig::id(1).to_lease());
    assert_eq!(rig.workers[0].notices.iter().filter(blocked).count(), 1);
    assert!(!rig.row(1).checkpoint.is_end());
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(60);
    assert!(rig.row(0).checkpoint.is_end() && rig.row(1).checkpoint.is_end());
    assert!(rig.has_row(child));
}

#[test]
fn childrens_leases_are_created_with_ranges_and_parents() {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    let (one, other) = rig.split(0);
    let merged = rig.merge(other, 1);
    rig.secs(60);
    for child in [one, other, merged] {
        let created = rig.workers[0].sent.iter().find_map(|(_, effect)| match effect {
            Effect::Table(TableOp::Write(Change::Create(row))) if row.key == Rig::id(child).to_lease() => {
                Some(row)
            }
            _ => None,
        });
        let (row, shard) = (created.unwrap(), &rig.stream.shards[&Rig::id(child)]);
        assert_eq!(row.range, Some(shard.range));
        let mut parents: Vec<_> =
            [&shard.parent, &shard.adjacent_parent].into_iter().flatten().cloned().collect();
        parents.sort();
        assert_eq!(row.parents, parents);
    }
}

/// A worker with both parents of a merged child. One parent has no lease yet, as its creation is never answered.
fn waits_for_a_parents_lease() -> (Rig, u32, u32) {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    let (_, far) = rig.split(0);
    let child = rig.merge(far, 1);
    rig.workers[0].trap = Some(Box::new(move |effect| creates(effect, far).then_some(Trick::Hang)));
    rig.secs(45);
    assert!(!rig.has_row(far) && !rig.has_row(child));
    (rig, far, child)
}

fn looks(effect: &Effect, n: u32) -> bool {
    matches!(effect, Effect::Table(TableOp::Read { key }) if *key == Rig::id(n).to_lease())
}

fn add_row(rig: &mut Rig, n: u32) {
    let row = LeaseRow::new(Rig::id(n).to_lease(), Checkpoint::TrimHorizon);
    rig.table.rows.as_mut().unwrap().insert(row.key.clone(), row);
}

#[test]
fn the_other_parents_lease_is_seen_without_a_scan() {
    let (mut rig, far, child) = waits_for_a_parents_lease();
    rig.workers[0].trap =
        Some(Box::new(|effect| matches!(effect, Effect::Table(TableOp::Scan { .. })).then_some(Trick::Hang)));
    add_row(&mut rig, far);
    rig.secs(90);
    assert!(rig.has_row(child), "{:?}", rig.workers[0].notices);
}

/// A scan may show the row while the look at it is under way.
#[test]
fn a_look_at_the_other_parent_that_comes_late_changes_nothing() {
    let (mut rig, far, child) = waits_for_a_parents_lease();
    rig.workers[0].trap = Some(Box::new(move |effect| looks(effect, far).then_some(Trick::Hang)));
    while !rig.workers[0].hung.iter().any(|command| looks(&command.effect, far)) {
        rig.secs(1);
    }
    add_row(&mut rig, far);
    rig.secs(45);
    assert!(rig.has_row(child));
    rig.release(0);
    rig.secs(20);
    assert!(rig.row(1).checkpoint.is_end());
}

/// The same while the end is being written.
#[test]
fn a_look_at_the_other_parent_may_come_as_the_end_is_written() {
    let (mut rig, far, child) = waits_for_a_parents_lease();
    let ends = |effect: &Effect| matches!(effect, Effect::Table(TableOp::Write(Change::End { key, .. })) if *key == Rig::id(1).to_lease());
    rig.workers[0].trap =
        Some(Box::new(move |effect| (looks(effect, far) || ends(effect)).then_some(Trick::Hang)));
    let hangs = |rig: &Rig, what: &dyn Fn(&Effect) -> bool| {
        rig.workers[0].hung.iter().any(|command| what(&command.effect))
    };
    while !hangs(&rig, &|effect| looks(effect, far)) {
        rig.secs(1);
    }
    add_row(&mut rig, far);
    while !hangs(&rig, &ends) {
        rig.secs(1);
    }
    let hung = &mut rig.workers[0].hung;
    let look = hung.iter().position(|command| looks(&command.effect, far));
    let look = hung.remove(look.unwrap());
    let outcome = rig.perform(0, &look);
    rig.tell(0, Body::Done { op: look.op, outcome });
    rig.workers[0].trap = None;
    rig.release(0);
    rig.secs(1);
    assert!(rig.row(1).checkpoint.is_end() && rig.has_row(child));
}

#[test]
fn a_missing_lease_is_looked_for_by_renewals_and_scans() {
    let (mut rig, far, _) = waits_for_a_parents_lease();
    rig.workers[0].sent.clear();
    let intervals = 10;
    let span = rig.config.scan_interval().times(intervals);
    rig.run(span);
    let sent = rig.workers[0].sent.iter();
    let looked = sent.clone().filter(|(_, effect)| looks(effect, far)).count() as u64;
    let renewals = span.0 / rig.config.renew_interval().0;
    assert!((intervals + 2..=renewals + 1).contains(&looked), "{looked}");
    let lists = |effect: &Effect| matches!(effect, Effect::Stream(StreamOp::ListShards { .. }));
    let listed = sent.filter(|(_, effect)| lists(effect)).count() as u64;
    assert!((1..=intervals + 1).contains(&listed), "{listed}");
}

#[test]
fn another_parents_lease_that_is_known_is_not_looked_for() {
    let mut rig = Rig::new(2, 1);
    rig.secs(60);
    let child = rig.merge(0, 1);
    rig.secs(60);
    assert!(rig.has_row(child));
    // Later looks concern the child, as it waits for both parents.
    let sent = rig.workers[0].sent.iter().map(|(_, effect)| effect);
    let before = sent.take_while(|effect| !creates(effect, child));
    let looked = before.filter(|effect| looks(effect, 0) || looks(effect, 1));
    assert_eq!(looked.count(), 0);
}

/// Leases further down show that a child was read to its end, though the rows of the child and of its other parent are
/// gone.
#[test]
fn a_child_that_was_read_gets_no_lease_again() {
    let mut rig = Rig::new(2, 0);
    let child = rig.merge(0, 1);
    let (one, other) = rig.split(child);
    for n in [0, one, other] {
        add_row(&mut rig, n);
    }
    rig.join();
    rig.secs(120);
    assert!(rig.row(0).checkpoint.is_end());
    assert!(!rig.has_row(child) && !rig.has_row(1));
}

/// A table that is short of capacity is not asked again at once.
#[test]
fn a_look_that_fails_is_repeated_after_a_pause() {
    let (mut rig, far, _) = waits_for_a_parents_lease();
    let span = rig.config.scan_interval().times(3);
    let pause = rig.config.retry_max().min(rig.config.renew_interval());
    let most = span.0 / pause.0 + 1;
    let mut left = most;
    rig.workers[0].trap = Some(Box::new(move |effect| {
        if !looks(effect, far) {
            return None;
        }
        left = left.checked_sub(1).expect("no more looks than that");
        Some(Trick::Instead(Outcome::NotSent(Cause::Throttled)))
    }));
    rig.workers[0].sent.clear();
    rig.run(span);
    let looked = rig.workers[0].sent.iter().filter(|(_, effect)| looks(effect, far)).count() as u64;
    assert!((2..=most).contains(&looked), "{looked} of {most}");
}

/// The other parent's lease may be hours away: a stopping worker releases a lease with this wait.
#[test]
fn a_wait_for_a_parents_lease_is_given_up_at_once() {
    let (mut rig, ..) = waits_for_a_parents_lease();
    rig.call(0, Call::Shutdown);
    rig.secs(1);
    assert!(rig.config.shutdown_timeout() > Span::from_secs(1));
    assert_eq!(rig.owner(1), None);
    assert!(!rig.row(1).checkpoint.is_end());
}
