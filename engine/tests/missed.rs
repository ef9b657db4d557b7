//! Wall clocks that go further than the monotonic clock: after a suspension, or after an operator set the clocks.

use crate::rig::*;
use leasehold_engine::input::Body;

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_step_of_a_healthy_clock_costs_one_renewal_of_each_lease() {
    let mut rig = Rig::new(3, 1).with_records([0], 10).after(30);
    let before = rig[0].sent(RENEW);
    rig.wall_ahead = vec![HOUR_MS];
    rig.tell(0, Body::Tick);
    assert_eq!(rig[0].sent(RENEW), before + 3);
    let told = [TIME_MISSED, FENCED, RESUMED, LOST].map(|notice| rig[0].told(notice));
    assert_eq!(told, [1, 3, 3, 0]);
    rig.put(0, 10);
    rig.assert_all_processed_in(30);
    assert_eq!((rig.duplicates(), rig[0].told(TIME_MISSED)), (0, 1));
}

#[test]
fn a_worker_whose_clock_was_set_robs_nobody() {
    let mut rig = Rig::new(6, 2).after(60);
    let before = [rig[0].told(TOOK), rig[1].told(TOOK)];
    for n in 1..=10 {
        rig.wall_ahead = vec![n * HOUR_MS, 0];
        rig.secs(20);
    }
    assert_eq!([rig[0].told(TOOK), rig[1].told(TOOK)], before);
    assert_eq!(rig[0].told(TIME_MISSED), 10);
}

#[test]
fn a_wall_clock_that_jumps_every_second_starves_no_worker() {
    let mut rig = Rig::new(1, 1).after(30);
    for n in 1..=300 {
        rig.wall_ahead = vec![n * HOUR_MS];
        rig.put(0, 1);
        rig.secs(1);
    }
    let hold = asking().hold().0 / 1_000_000;
    let fenced = rig[0].told(FENCED) as u64;
    assert!((16..=17 + 300 / hold).contains(&fenced), "{fenced} in 300 s");
    assert!(rig[0].told(WALL_IGNORED) > 0);
    rig.assert_all_processed_in(30);
}
