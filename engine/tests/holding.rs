//! Scenes of a lease that is held: what is written to its row, and when.

use crate::rig::*;
use leasehold_engine::input::Call;
use leasehold_engine::time::Span;

/// A lease being released is renewed as before until its handler returns; its progress is written once.
#[test]
fn processed_records_are_written_once_while_a_handler_runs() {
    let mut rig = Rig::new(1, 1).with_records([0], 5).after(60);
    assert!(rig.row(0).checkpoint.position().is_some());
    rig[0].trap(hangs(DELIVER));
    rig.put(0, 5);
    rig.secs(5);
    rig.call(0, Call::Shutdown);
    rig[0].sent.clear();
    rig.secs(20);
    assert_eq!(rig[0].sent(CHECKPOINT), 0, "nothing new is processed");
    assert!(rig[0].sent(RENEW) > 3);
    rig.release(0);
    rig.secs(5);
    assert_eq!(rig[0].sent(CHECKPOINT), 1);
    assert!(rig[0].is_stopped());
}

/// The first of these writes is throttled.
#[test]
fn the_last_writes_of_a_lease_are_tried_again_soon() {
    type BringAbout = fn(&mut Rig);
    let split = |rig: &mut Rig| {
        rig.split(0);
    };
    let stop = |rig: &mut Rig| rig.call(0, Call::Shutdown);
    let save_and_stop = |rig: &mut Rig| {
        rig.put(0, 5);
        rig.secs(60);
        rig.put(0, 5);
        rig.secs(2);
        rig[0].trap(first(1, CHECKPOINT, Trick::THROTTLED));
        rig[0].sent.clear();
        // Without the shutdown, the next attempt would be due later.
        rig.put(0, 5);
        rig.secs(2);
        rig.call(0, Call::Shutdown);
    };
    let cases: [(&str, Act, BringAbout); 3] = [
        ("the end", END, split),
        ("the release", RELEASE, stop),
        ("the last checkpoint", CHECKPOINT, save_and_stop),
    ];
    for (case, act, bring_about) in cases {
        let mut rig = Rig::new(1, 1).after(20);
        rig[0].trap(first(1, act, Trick::THROTTLED));
        bring_about(&mut rig);
        rig.secs(20);
        let at = rig[0].sent_at(act);
        assert!(at.len() >= 2, "{case}: {at:?}");
        let pause = at[1].since(at[0]);
        assert!(pause <= rig.config.retry_min().times(2), "{case}: {pause:?}");
    }
}

/// A worker that finds a released lease starts at once, while the former owner may still believe in the lease.
#[test]
fn a_stolen_lease_is_released_once_no_former_owner_believes() {
    let mut rig = Rig::new(4, 1).after(60);
    let thief = rig.join();
    while rig[thief].sent(TAKE) == 0 {
        rig.run(Span::from_millis(100));
    }
    rig.call(thief, Call::Shutdown);
    rig.secs(60);
    let (took, released) = (rig[thief].sent_at(TAKE)[0], rig[thief].sent_at(RELEASE)[0]);
    assert_eq!(released.since(took), rig.config.lease_duration());
}

#[test]
fn nothing_is_repeated_while_an_answer_is_waited_for() {
    let mut rig = Rig::new(1, 1).after(20);
    rig[0].trap(hangs(RENEW));
    rig.secs(8);
    let before = rig[0].turns();
    assert!(!rig[0].hung.is_empty());
    rig.run(Span::from_millis(1));
    assert!(rig[0].turns() - before < 10, "{}", rig[0].turns() - before);
}
