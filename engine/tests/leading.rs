//! What the first of the members does for all, in scenes: where leases are assigned by rank.

use crate::rig::side::{beside, fleet, share, stamp};
use crate::rig::{Rig, Trick};
use leasehold_engine::ids::WorkerId;
use leasehold_engine::members::*;
use leasehold_engine::output::*;
use leasehold_engine::time::{Mono, Span};

/// The lead goes to whoever is first by name, in both directions.
#[test]
fn the_lead_is_given_up_to_a_first_name_and_taken_from_a_silent_one() {
    let mut rig = fleet(2, 1);
    rig.secs(10);
    assert_eq!(
        rig.side.leader().unwrap().id.as_ref(),
        rig.workers[0].engine.worker()
    );
    beside(&mut rig, "0-client", 10);
    assert_eq!(rig.side.leader().unwrap().id, None, "stepped down");
    let me = Member {
        id: "0-client".into(),
        at: stamp(&rig),
    };
    let seen = rig.side.leader();
    rig.side.write(MembersChange::Lead { me, seen });
    // It leaves its row and never leads again: it counts as the leader for five intervals of four seconds.
    rig.side.write(MembersChange::Leave("0-client".into()));
    rig.secs(10);
    assert_eq!(rig.side.leader().unwrap().id, Some("0-client".into()));
    rig.secs(20);
    assert_eq!(
        rig.side.leader().unwrap().id.as_ref(),
        rig.workers[0].engine.worker()
    );
}

/// A leader that stood still finds that another shared out the shards meanwhile, and does not write its older list.
#[test]
fn an_old_list_of_shards_is_not_shared_out() {
    let mut rig = fleet(1, 1);
    rig.secs(20);
    let shares = |effect: &Effect| {
        matches!(
            effect,
            Effect::Table(TableOp::Members(MembersOp::Write(MembersChange::Share { .. })))
        )
    };
    rig.workers[0].trap = Some(Box::new(move |effect| shares(effect).then_some(Trick::Hang)));
    let (a, b) = rig.split(0);
    rig.put(0, 5);
    while rig.workers[0].hung.is_empty() {
        rig.secs(1);
    }
    let seen = rig.side.shared().map(|shared| shared.at);
    let newer = Shared {
        shards: [a, b].map(Rig::id).to_vec(),
        at: stamp(&rig) + 1,
    };
    rig.side.write(MembersChange::Share {
        shared: newer.clone(),
        seen,
    });
    rig.release(0);
    assert_eq!(rig.side.shared(), Some(newer));
}

/// Programs that read the time in a row do nothing before it.
#[test]
fn a_list_of_shards_from_the_future_is_corrected() {
    let mut rig = fleet(2, 0);
    rig.side_tables();
    let hour = 3_600_000_000_000;
    let shared = Shared {
        shards: [0, 1].map(Rig::id).to_vec(),
        at: stamp(&rig) + hour,
    };
    rig.side.write(MembersChange::Share { shared, seen: None });
    rig.join();
    rig.secs(60);
    let shared = rig.side.shared().unwrap();
    assert_eq!(shared.shards, [0, 1].map(Rig::id));
    assert!(shared.at < stamp(&rig), "{shared:?}");
}

/// What two listings lack is gone, and what is new is shared out at once.
#[test]
fn only_what_is_still_lacking_is_shared_out_no_more() {
    let mut rig = fleet(2, 0);
    rig.side_tables();
    share(&mut rig, 1..3);
    rig.join();
    let mut seen = vec![rig.side.shards()];
    for _ in 0..120 {
        rig.run(Span::from_millis(500));
        let now = rig.side.shards();
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    let expected: [&[u32]; 3] = [&[1, 2], &[0, 1, 2], &[0, 1]];
    let expected = expected.map(|shards| shards.iter().copied().map(Rig::id).collect::<Vec<_>>());
    assert_eq!(seen, expected);
}

#[test]
fn only_rows_of_the_long_dead_are_removed() {
    let mut rig = fleet(1, 0);
    rig.side_tables();
    rig.now = Mono(0) + Span::from_secs(10 * 86_400);
    let day = 86_400_000_000_000;
    let now = stamp(&rig);
    rig.side.register("week", now - 7 * day);
    rig.side.register("yesterday", now - day);
    rig.join();
    rig.secs(60);
    let me = rig.workers[0].engine.worker().unwrap().clone();
    assert_eq!(rig.side.members(), [me, WorkerId::from("yesterday")]);
}
