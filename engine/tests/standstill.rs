//! Scenes of a worker whose handlers block every thread of their runtime.

use crate::kcl3::{assert_held_after, java_lives, led, report_of};
use crate::rig::side::fleet;
use crate::rig::*;
use leasehold_engine::input::Call;
use leasehold_engine::notice::{Notice, RuntimeNews};
use leasehold_engine::output::{ConsumerOp, Effect};
use leasehold_engine::time::Span;

/// From now on, no handler of a worker comes back.
fn block(rig: &mut Rig, worker: usize) {
    rig[worker].trap(|effect| match effect {
        Effect::Consumer(ConsumerOp::Abort { .. } | ConsumerOp::TimeOut { .. }) => None,
        Effect::Consumer(_) => Some(Trick::Hang),
        _ => None,
    });
}

/// These seconds pass without any running handler, and the worker is told.
fn stand(rig: &mut Rig, worker: usize, seconds: std::ops::RangeInclusive<u64>) {
    for second in seconds {
        rig.secs(1);
        rig.call(worker, Call::RuntimeBlocked(Span::from_secs(second)));
    }
}

/// The handlers come back, and run as ever.
fn unblock(rig: &mut Rig, worker: usize) {
    rig[worker].trap = None;
    rig.call(worker, Call::RuntimeRuns);
    rig.release(worker);
}

/// What a worker told of its runtime.
fn told(rig: &Rig, worker: usize) -> Vec<&'static str> {
    rig[worker].news(|notice| matches!(notice, Notice::Runtime(_)).then(|| notice.name()))
}

/// Two workers that share four shards.
fn pair() -> Rig {
    let rig = Rig::of(4, 2, |_| asking()).after(60);
    assert_eq!((rig.owned(0, 4), rig.owned(1, 4)), (2, 2));
    rig
}

#[test]
fn a_worker_of_blocked_handlers_loses_its_shards_in_a_bound() {
    let mut rig = pair();
    block(&mut rig, 0);
    rig.put_all(0..4, 10);
    let before = rig.owners(4);
    stand(&mut rig, 0, 5..=29);
    assert_eq!(rig.owners(4), before, "it may be a long computation");
    stand(&mut rig, 0, 30..=34);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    rig.assert_all_processed_in(5);
    assert_eq!(told(&rig, 0), ["runtime-blocked", "lets-go"]);

    // The worker takes no lease in this time, however long.
    stand(&mut rig, 0, 40..=200);
    assert_eq!(rig.owners(4), [Some(1); 4]);

    unblock(&mut rig, 0);
    rig.secs(30);
    assert_eq!((rig.owned(0, 4), rig.owned(1, 4)), (2, 2));
    assert_eq!(told(&rig, 0), ["runtime-blocked", "lets-go", "runtime-runs"]);
}

#[test]
fn a_short_block_costs_nothing_and_its_end_is_told() {
    let mut rig = pair();
    let before = rig.owners(4);
    block(&mut rig, 0);
    rig.put_all(0..4, 10);
    stand(&mut rig, 0, 5..=25);
    unblock(&mut rig, 0);
    rig.assert_all_processed_in(10);
    assert_eq!((rig.duplicates(), rig.owners(4)), (0, before));
    assert_eq!(told(&rig, 0), ["runtime-blocked", "runtime-runs"]);
}

/// Otherwise a batch that takes longer would never be processed.
#[test]
fn each_time_that_leases_were_let_go_of_the_next_one_is_later() {
    let mut rig = Rig::new(1, 1).after(60);
    let lets_go = |rig: &Rig| {
        rig[0].news(|notice| match notice {
            Notice::Runtime(RuntimeNews::LetsGo { idle, .. }) => Some(idle.0 / 1_000_000),
            _ => None,
        })
    };
    for times in [[30].as_slice(), &[30, 60], &[30, 60, 120]] {
        block(&mut rig, 0);
        rig.put(0, 5);
        stand(&mut rig, 0, 5..=200);
        assert_eq!(lets_go(&rig), times);
        assert_eq!(rig.owner(0), None);
        unblock(&mut rig, 0);
        rig.secs(60);
        assert_eq!(rig.owner(0), Some(0));
        rig.assert_all_processed();
    }
}

#[test]
fn a_member_whose_handlers_block_has_no_turn_until_they_run() {
    let mut rig = fleet(4, 2).after(60);
    let by_rank = [Some(0), Some(1), Some(0), Some(1)];
    assert_eq!(rig.owners(4), by_rank);
    block(&mut rig, 0);
    rig.put_all(0..4, 10);
    stand(&mut rig, 0, 5..=90);
    assert_eq!(rig.side.members().len(), 1);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    rig.assert_all_processed();
    unblock(&mut rig, 0);
    rig.secs(60);
    assert_eq!((rig.owners(4), rig.side.members().len()), (by_rank.to_vec(), 2));
}

#[test]
fn a_stop_waits_no_longer_for_handlers_that_cannot_run() {
    let mut rig = pair();
    block(&mut rig, 0);
    rig.put_all(0..4, 10);
    stand(&mut rig, 0, 5..=20);
    rig.call(0, Call::Shutdown);
    stand(&mut rig, 0, 21..=33);
    assert_eq!(rig.owners(4), [Some(1); 4]);
    rig.secs(30);
    assert!(rig[0].is_stopped());
    rig.assert_all_processed();
}

#[test]
fn a_worker_that_is_to_keep_its_leases_keeps_them() {
    let mut rig = Rig::of(2, 2, |_| asking().with_give_up_after(Span::ZERO)).after(60);
    let before = rig.owners(2);
    block(&mut rig, 0);
    rig.put_all(0..2, 1);
    stand(&mut rig, 0, 5..=300);
    assert_eq!(rig.owners(2), before);
    assert_eq!(told(&rig, 0), ["runtime-blocked"]);
}

#[test]
fn a_blocked_member_of_a_led_fleet_reports_and_takes_nothing() {
    let mut rig = led(2, 1);
    let me = rig[0].me();
    let assign = |rig: &mut Rig| (0..2).for_each(|shard| rig.give(shard, me.clone()));
    assign(&mut rig);
    assert_held_after(&mut rig, 5, 2);
    block(&mut rig, 0);
    for second in 5..=33 {
        java_lives(&mut rig, 1);
        rig.call(0, Call::RuntimeBlocked(Span::from_secs(second)));
    }
    assert_eq!((rig[0].held(), report_of(&rig, 0).is_some()), (0, false));
    assert!((0..2).all(|shard| rig.row(shard).owner.is_none()));
    // A leader that has not noticed yet.
    assign(&mut rig);
    assert_held_after(&mut rig, 8, 0);
    unblock(&mut rig, 0);
    java_lives(&mut rig, 8);
    assert_eq!((rig[0].held(), report_of(&rig, 0).is_some()), (2, true));
}
