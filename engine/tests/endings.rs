//! Scenes of the end of a shard.

use crate::rig::*;
use leasehold_engine::input::Body;
use leasehold_engine::notice::Notice;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow};
use leasehold_engine::time::Span;

#[test]
fn an_end_waits_while_a_child_cannot_be_created() {
    let mut rig = Rig::new(1, 1).after(20);
    rig.split(0);
    rig[0].trap(meets(CREATE.of(1), Trick::THROTTLED));
    rig.secs(120);
    assert!(!rig.row(0).checkpoint.is_end());
    assert_eq!(rig.owner(0), Some(0), "it is kept");
}

/// The child of two shards waits for the lease of the other parent, and the owner tells the cause of the wait once.
#[test]
fn a_merged_childs_wait_is_said_once() {
    let mut rig = Rig::new(2, 1).after(20);
    // One parent of the child is itself a child whose lease does not come for long.
    let (near, far) = rig.split(0);
    let child = rig.merge(far, 1);
    rig[0].trap(hangs(CREATE.of(far)));
    rig.secs(45);
    assert!(rig.has_row(near) && !rig.has_row(far) && !rig.has_row(child));
    let blocked =
        |notice: &Notice| matches!(notice, Notice::Blocked { lease, .. } if *lease == shard_id(1).to_lease());
    assert_eq!(rig[0].told(blocked), 1);
    assert!(!rig.row(1).checkpoint.is_end());
    rig.free(0);
    rig.secs(60);
    assert!(rig.row(0).checkpoint.is_end() && rig.row(1).checkpoint.is_end());
    assert!(rig.has_row(child));
}

#[test]
fn childrens_leases_are_created_with_ranges_and_parents() {
    let mut rig = Rig::new(2, 1).after(20);
    let (one, other) = rig.split(0);
    let merged = rig.merge(other, 1);
    rig.secs(60);
    for child in [one, other, merged] {
        let created = rig[0].changes().find_map(|(_, change)| match change {
            Change::Create(row) if row.key == shard_id(child).to_lease() => Some(row),
            _ => None,
        });
        let (row, shard) = (created.unwrap(), &rig.stream.shards[&shard_id(child)]);
        assert_eq!(row.range, Some(shard.range));
        let mut parents: Vec<_> = shard.parents().cloned().collect();
        parents.sort();
        assert_eq!(row.parents, parents);
    }
}

/// A worker with both parents of a merged child. One parent has no lease yet, as its creation is never answered.
fn waits_for_a_parents_lease() -> (Rig, u32, u32) {
    let mut rig = Rig::new(2, 1).after(20);
    let (_, far) = rig.split(0);
    let child = rig.merge(far, 1);
    rig[0].trap(hangs(CREATE.of(far)));
    rig.secs(45);
    assert!(!rig.has_row(far) && !rig.has_row(child));
    (rig, far, child)
}

fn add_row(rig: &mut Rig, n: u32) {
    rig.insert(LeaseRow::new(shard_id(n).to_lease(), Checkpoint::TrimHorizon));
}

#[test]
fn the_other_parents_lease_is_seen_without_a_scan() {
    let (mut rig, far, child) = waits_for_a_parents_lease();
    rig[0].trap(hangs(SCAN));
    add_row(&mut rig, far);
    rig.secs(90);
    assert!(rig.has_row(child), "{:?}", rig[0].notices);
}

/// A scan may show the row while the look at it is under way.
#[test]
fn a_look_at_the_other_parent_that_comes_late_changes_nothing() {
    let (mut rig, far, child) = waits_for_a_parents_lease();
    rig[0].trap(hangs(READ.of(far)));
    rig.until_hung(0, Span::from_secs(1), READ.of(far));
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
    rig[0].trap(hangs(either(READ.of(far), END.of(1))));
    rig.until_hung(0, Span::from_secs(1), READ.of(far));
    add_row(&mut rig, far);
    rig.until_hung(0, Span::from_secs(1), END.of(1));
    let hung = &mut rig[0].hung;
    let look = hung.iter().position(|command| READ.is(&command.effect));
    let look = hung.remove(look.unwrap());
    let outcome = rig.perform(0, &look);
    rig.tell(0, Body::Done { op: look.op, outcome });
    rig.free(0);
    rig.secs(1);
    assert!(rig.row(1).checkpoint.is_end() && rig.has_row(child));
}

#[test]
fn another_parents_lease_that_is_known_is_not_looked_for() {
    let mut rig = Rig::new(2, 1).after(60);
    let child = rig.merge(0, 1);
    rig.secs(60);
    assert!(rig.has_row(child));
    // Later looks concern the child, as it waits for both parents.
    let sent = rig[0].sent.iter().map(|(_, effect)| effect);
    let before = sent.take_while(|effect| !CREATE.of(child).is(effect));
    let looked = before.filter(|effect| either(READ.of(0), READ.of(1)).is(*effect));
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
    rig.join_then(120);
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
    rig[0].trap(meets(READ.of(far), Trick::THROTTLED));
    rig[0].forget();
    rig.run(span);
    let looked = rig[0].sent(READ.of(far)) as u64;
    assert!((2..=most).contains(&looked), "{looked} of {most}");
}
