//! Wall clocks that go further than the monotonic clock: after a suspension, or after an operator set the clocks.

use crate::rig::{Rig, asking};
use leasehold_engine::input::Body;
use leasehold_engine::output::*;
use leasehold_engine::row::Change;

const HOUR_MS: i64 = 3_600_000;

fn told(rig: &Rig, worker: usize, name: &str) -> usize {
    let notices = rig.workers[worker].notices.iter();
    notices.filter(|(_, notice)| notice.name() == name).count()
}

fn renewals(rig: &Rig) -> usize {
    let sent = rig.workers[0].sent.iter();
    sent.filter(|(_, effect)| matches!(effect, Effect::Table(TableOp::Write(Change::Renew { .. })))).count()
}

#[test]
fn a_step_of_a_healthy_clock_costs_one_renewal_of_each_lease() {
    let mut rig = Rig::new(3, 1);
    rig.put(0, 10);
    rig.secs(30);
    let before = renewals(&rig);
    rig.wall_ahead = vec![HOUR_MS];
    rig.tell(0, Body::Tick);
    assert_eq!(renewals(&rig), before + 3);
    let named = |name| told(&rig, 0, name);
    assert_eq!([named("time-missed"), named("fenced"), named("resumed"), named("lost")], [1, 3, 3, 0]);
    rig.put(0, 10);
    rig.secs(30);
    rig.assert_all_processed();
    assert_eq!((rig.duplicates(), told(&rig, 0, "time-missed")), (0, 1));
}

#[test]
fn a_worker_whose_clock_was_set_robs_nobody() {
    let mut rig = Rig::new(6, 2);
    rig.secs(60);
    let before = [told(&rig, 0, "took"), told(&rig, 1, "took")];
    for n in 1..=10 {
        rig.wall_ahead = vec![n * HOUR_MS, 0];
        rig.secs(20);
    }
    assert_eq!([told(&rig, 0, "took"), told(&rig, 1, "took")], before);
    assert_eq!(told(&rig, 0, "time-missed"), 10);
}

#[test]
fn a_wall_clock_that_jumps_every_second_starves_no_worker() {
    let mut rig = Rig::new(1, 1);
    rig.secs(30);
    for n in 1..=300 {
        rig.wall_ahead = vec![n * HOUR_MS];
        rig.put(0, 1);
        rig.secs(1);
    }
    let hold = asking().hold().0 / 1_000_000;
    let fenced = told(&rig, 0, "fenced") as u64;
    assert!((16..=17 + 300 / hold).contains(&fenced), "{fenced} in 300 s");
    assert!(told(&rig, 0, "wall-ignored") > 0);
    rig.secs(30);
    rig.assert_all_processed();
}
