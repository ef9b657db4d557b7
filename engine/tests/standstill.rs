//! Scenes of a worker whose handlers block every thread of their runtime.

use crate::kcl3::{change, held, java_lives, led, me, report_of};
use crate::rig::side::fleet;
use crate::rig::{Rig, Trick, asking};
use leasehold_engine::input::Call;
use leasehold_engine::notice::{Notice, RuntimeNews};
use leasehold_engine::output::{ConsumerOp, Effect};
use leasehold_engine::time::Span;

/// From now on, no handler of a worker comes back.
fn block(rig: &mut Rig, worker: usize) {
    rig.workers[worker].trap = Some(Box::new(|effect| match effect {
        Effect::Consumer(ConsumerOp::Abort { .. } | ConsumerOp::TimeOut { .. }) => None,
        Effect::Consumer(_) => Some(Trick::Hang),
        _ => None,
    }));
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
    rig.workers[worker].trap = None;
    rig.call(worker, Call::RuntimeRuns);
    rig.release(worker);
}

fn owners(rig: &Rig, shards: u32) -> Vec<Option<usize>> {
    (0..shards).map(|shard| rig.owner(shard)).collect()
}

/// How many of four leases a worker has.
fn leases_of(rig: &Rig, worker: usize) -> usize {
    let owners = owners(rig, 4);
    owners.iter().filter(|owner| **owner == Some(worker)).count()
}

/// What a worker told of its runtime.
fn told(rig: &Rig, worker: usize) -> Vec<&'static str> {
    let notices = rig.workers[worker].notices.iter();
    let news = notices.filter(|(_, notice)| matches!(notice, Notice::Runtime(_)));
    news.map(|(_, notice)| notice.name()).collect()
}

/// Two workers that share four shards.
fn pair() -> Rig {
    let mut rig = Rig::new(4, 0);
    rig.configure(|_| asking());
    rig.join();
    rig.join();
    rig.secs(60);
    assert_eq!((leases_of(&rig, 0), leases_of(&rig, 1)), (2, 2));
    rig
}

#[test]
fn a_worker_of_blocked_handlers_loses_its_shards_in_a_bound() {
    let mut rig = pair();
    block(&mut rig, 0);
    for shard in 0..4 {
        rig.put(shard, 10);
    }
    let before = owners(&rig, 4);
    stand(&mut rig, 0, 5..=29);
    assert_eq!(owners(&rig, 4), before, "it may be a long computation");
    stand(&mut rig, 0, 30..=34);
    assert_eq!(owners(&rig, 4), [Some(1); 4]);
    rig.secs(5);
    rig.assert_all_processed();
    assert_eq!(told(&rig, 0), ["runtime-blocked", "lets-go"]);

    // The worker takes no lease in this time, however long.
    stand(&mut rig, 0, 40..=200);
    assert_eq!(owners(&rig, 4), [Some(1); 4]);

    unblock(&mut rig, 0);
    rig.secs(30);
    assert_eq!((leases_of(&rig, 0), leases_of(&rig, 1)), (2, 2));
    assert_eq!(told(&rig, 0), ["runtime-blocked", "lets-go", "runtime-runs"]);
}

#[test]
fn a_short_block_costs_nothing_and_its_end_is_told() {
    let mut rig = pair();
    let before = owners(&rig, 4);
    block(&mut rig, 0);
    for shard in 0..4 {
        rig.put(shard, 10);
    }
    stand(&mut rig, 0, 5..=25);
    unblock(&mut rig, 0);
    rig.secs(10);
    rig.assert_all_processed();
    assert_eq!((rig.duplicates(), owners(&rig, 4)), (0, before));
    assert_eq!(told(&rig, 0), ["runtime-blocked", "runtime-runs"]);
}

/// Otherwise a batch that takes longer would never be processed.
#[test]
fn each_time_that_leases_were_let_go_of_the_next_one_is_later() {
    let mut rig = Rig::new(1, 1);
    rig.secs(60);
    let lets_go = |rig: &Rig| {
        let notices = rig.workers[0].notices.iter();
        let all = notices.filter_map(|(_, notice)| match notice {
            Notice::Runtime(RuntimeNews::LetsGo { idle, .. }) => Some(idle.0 / 1_000_000),
            _ => None,
        });
        all.collect::<Vec<_>>()
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
    let mut rig = fleet(4, 2);
    rig.secs(60);
    let by_rank = [Some(0), Some(1), Some(0), Some(1)];
    assert_eq!(owners(&rig, 4), by_rank);
    block(&mut rig, 0);
    for shard in 0..4 {
        rig.put(shard, 10);
    }
    stand(&mut rig, 0, 5..=90);
    assert_eq!(rig.side.members().len(), 1);
    assert_eq!(owners(&rig, 4), [Some(1); 4]);
    rig.assert_all_processed();
    unblock(&mut rig, 0);
    rig.secs(60);
    assert_eq!((owners(&rig, 4), rig.side.members().len()), (by_rank.to_vec(), 2));
}

#[test]
fn a_stop_waits_no_longer_for_handlers_that_cannot_run() {
    let mut rig = pair();
    block(&mut rig, 0);
    for shard in 0..4 {
        rig.put(shard, 10);
    }
    stand(&mut rig, 0, 5..=20);
    rig.call(0, Call::Shutdown);
    stand(&mut rig, 0, 21..=33);
    assert_eq!(owners(&rig, 4), [Some(1); 4]);
    rig.secs(30);
    assert!(rig.workers[0].engine().is_stopped());
    rig.assert_all_processed();
}

#[test]
fn a_worker_that_is_to_keep_its_leases_keeps_them() {
    let mut rig = Rig::new(2, 0);
    rig.configure(|_| asking().with_give_up_after(Span::ZERO));
    rig.join();
    rig.join();
    rig.secs(60);
    let before = owners(&rig, 2);
    block(&mut rig, 0);
    rig.put(0, 1);
    rig.put(1, 1);
    stand(&mut rig, 0, 5..=300);
    assert_eq!(owners(&rig, 2), before);
    assert_eq!(told(&rig, 0), ["runtime-blocked"]);
}

#[test]
fn a_blocked_member_of_a_led_fleet_reports_and_takes_nothing() {
    let mut rig = led(2, 1);
    let me = me(&rig, 0);
    let assign = |rig: &mut Rig| {
        for shard in 0..2 {
            change(rig, shard, |row| {
                row.owner = Some(me.clone());
                row.counter += 1;
            });
        }
    };
    assign(&mut rig);
    java_lives(&mut rig, 5);
    assert_eq!(held(&rig, 0), 2);
    block(&mut rig, 0);
    for second in 5..=33 {
        java_lives(&mut rig, 1);
        rig.call(0, Call::RuntimeBlocked(Span::from_secs(second)));
    }
    assert_eq!((held(&rig, 0), report_of(&rig, 0).is_some()), (0, false));
    assert!((0..2).all(|shard| rig.row(shard).owner.is_none()));
    // A leader that has not noticed yet.
    assign(&mut rig);
    java_lives(&mut rig, 8);
    assert_eq!(held(&rig, 0), 0);
    unblock(&mut rig, 0);
    java_lives(&mut rig, 8);
    assert_eq!((held(&rig, 0), report_of(&rig, 0).is_some()), (2, true));
}
