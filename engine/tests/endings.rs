//! Scenes of the end of a shard.

use crate::rig::{Rig, Trick};
use leasehold_engine::input::{Cause, Outcome};
use leasehold_engine::notice::Notice;
use leasehold_engine::output::*;
use leasehold_engine::row::Change;

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
        rig.workers[0].trap = Some(Box::new(move |effect| {
            creates(effect, held_back).then_some(Trick::Hang)
        }));
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

/// The child of two shards waits for the lease of the other parent, and the owner says once what it waits for.
#[test]
fn what_a_merged_child_waits_for_is_said_once() {
    let mut rig = Rig::new(2, 1);
    rig.secs(20);
    // One parent of the child is itself a child whose lease does not come for long.
    let (near, far) = rig.split(0);
    let child = rig.merge(far, 1);
    rig.workers[0].trap = Some(Box::new(move |effect| {
        creates(effect, far).then_some(Trick::Hang)
    }));
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
