//! What the first of the members does for all, in scenes: where leases are assigned by rank.

use crate::rig::side::{beside, fleet, fleet_with_tables, share, stamp};
use crate::rig::*;
use leasehold_engine::ids::WorkerId;
use leasehold_engine::members::*;
use leasehold_engine::time::{Mono, Span};

/// The lead goes to the member that is first by name, in both directions.
#[test]
fn the_lead_goes_to_a_first_name_and_from_a_silent_one() {
    let mut rig = fleet(2, 1).after(10);
    assert_eq!(rig.side.leads(), Some(rig[0].me()));
    beside(&mut rig, "0-client", 10);
    assert_eq!(rig.side.leads(), None, "stepped down");
    client_leads(&mut rig);
    // The client leaves its row and never leads again: it counts as the leader for five intervals of four seconds.
    rig.side.write(MembersChange::Leave("0-client".into()));
    rig.secs(10);
    assert_eq!(rig.side.leads(), Some("0-client".into()));
    rig.secs(20);
    assert_eq!(rig.side.leads(), Some(rig[0].me()));
}

/// A leader that stood still finds a list shared out meanwhile by another leader, and does not write its older list.
#[test]
fn an_old_list_of_shards_is_not_shared_out() {
    let mut rig = fleet(1, 1).after(20);
    rig[0].trap(hangs(SHARE));
    let (a, b) = rig.split(0);
    rig.put(0, 5);
    rig.until_hung(0, Span::from_secs(1), SHARE);
    let seen = rig.side.shared().map(|shared| shared.at);
    let newer = Shared { shards: [a, b].map(shard_id).to_vec(), at: stamp(&rig) + 1 };
    rig.side.write(MembersChange::Share { shared: newer.clone(), seen });
    rig.release(0);
    assert_eq!(rig.side.shared(), Some(newer));
}

/// Programs that read the time in a row take no action before this time.
#[test]
fn a_list_of_shards_from_the_future_is_corrected() {
    let mut rig = fleet_with_tables(2, 0);
    let hour = 3_600_000_000_000;
    let shared = Shared { shards: [0, 1].map(shard_id).to_vec(), at: stamp(&rig) + hour };
    rig.side.write(MembersChange::Share { shared, seen: None });
    rig.join_then(60);
    let shared = rig.side.shared().unwrap();
    assert_eq!(shared.shards, [0, 1].map(shard_id));
    assert!(shared.at < stamp(&rig), "{shared:?}");
}

/// A shard missing from two listings is gone, and a new shard is shared out at once.
#[test]
fn only_what_is_still_lacking_is_shared_out_no_more() {
    let mut rig = fleet_with_tables(2, 0);
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
    let expected = expected.map(|shards| shards.iter().copied().map(shard_id).collect::<Vec<_>>());
    assert_eq!(seen, expected);
}

#[test]
fn only_rows_of_the_long_dead_are_removed() {
    let mut rig = fleet_with_tables(1, 0);
    rig.now = Mono(0) + Span::from_secs(10 * 86_400);
    let day = 86_400_000_000_000;
    let now = stamp(&rig);
    rig.side.register("week", now - 7 * day);
    rig.side.register("yesterday", now - day);
    rig.join_then(60);
    let me = rig[0].me();
    assert_eq!(rig.side.members(), [me, WorkerId::from("yesterday")]);
}

/// A client of another program takes the lead from the present leader, if a leader is present.
fn client_leads(rig: &mut Rig) {
    let me = Member { id: "0-client".into(), at: stamp(rig) };
    let seen = rig.side.leader();
    rig.side.write(MembersChange::Lead { me, seen });
}

/// A silent leader counts for a while; until then no member does its part, though its name is no longer first.
#[test]
fn nobody_shares_out_while_another_leads() {
    let mut rig = fleet(1, 1).after(20);
    rig.side.register("0-client", stamp(&rig));
    client_leads(&mut rig);
    rig.side.write(MembersChange::Leave("0-client".into()));
    rig.secs(5);
    rig[0].sent.clear();
    rig.split(0);
    rig.secs(10);
    assert_eq!(rig[0].sent(SHARE), 0);
    assert_eq!(rig.side.leads(), Some("0-client".into()));
    rig.secs(60);
    assert_eq!(rig.side.shards(), [1, 2].map(shard_id));
}

/// A leader's write of its lead may fail. After the time that members wait for a silent leader, the leader does not
/// know the present leader.
#[test]
fn a_leader_that_could_not_say_so_shares_nothing_out() {
    let mut rig = fleet(1, 1).after(20);
    rig[0].trap(hangs(LEAD));
    rig.secs(10);
    assert_eq!(rig[0].hung.len(), 1);
    rig.split(0);
    rig[0].sent.clear();
    rig.secs(60);
    assert_eq!(rig[0].sent(SHARE), 0);
}

/// While no list is shared out, only the first member by name may share one out.
#[test]
fn the_first_list_is_shared_out_by_the_first_member() {
    let mut rig = fleet(4, 2).after(30);
    assert_eq!(rig.side.shards().len(), 4);
    assert_eq!((rig[0].sent(SHARE), rig[1].sent(SHARE)), (1, 0));
}

/// A list of shards that arrives meanwhile stops no running work.
#[test]
fn the_dead_are_removed_one_after_the_other() {
    let mut rig = fleet_with_tables(1, 0);
    rig.now = Mono(0) + Span::from_secs(10 * 86_400);
    let week = stamp(&rig) - 7 * 86_400_000_000_000;
    for n in 0..5 {
        rig.side.register(&format!("dead-{n}"), week);
    }
    rig.join_trapped(hangs(REAP));
    rig.until_hung(0, Span::from_millis(100), REAP);
    rig.run(Span::from_millis(1_500));
    rig.free(0);
    assert_eq!(rig.side.members().len(), 1);
}

/// A listing by the former leader means nothing for the present leader.
#[test]
fn a_worker_that_reads_of_another_leader_assigns_nothing() {
    for replaced in [false, true] {
        let mut rig = fleet(1, 1).after(20);
        rig[0].trap(hangs(LIST));
        rig.until_hung(0, Span::from_millis(100), LIST);
        rig.split(0);
        if replaced {
            client_leads(&mut rig);
        }
        rig[0].sent.clear();
        while rig[0].sent(READ_LEADER) == 0 {
            rig.run(Span::from_millis(100));
        }
        rig.free(0);
        rig.run(Span::from_millis(100));
        let shared = rig[0].sent(SHARE) > 0;
        assert_eq!(shared, !replaced);
    }
}

/// Members wait for a silent leader longer than the leader counts on its own lead.
#[test]
fn a_list_that_comes_late_is_shared_out_while_the_lead_is_sure() {
    for sure in [true, false] {
        let mut rig = fleet(1, 1);
        // The listing that confirms the first listing is over.
        rig.secs(30);
        let (interval, check) = (rig.config.members().lead_interval(), rig.config.members().check_interval());
        let mut listed = false;
        rig[0].trap(move |effect| {
            listed |= LIST.is(effect);
            match LIST.is(effect) {
                true => Some(Trick::Hang),
                false => (listed && LEAD.is(effect)).then_some(Trick::THROTTLED),
            }
        });
        rig.until_hung(0, Span::from_millis(100), LIST);
        rig.split(0);
        rig[0].sent.clear();
        let around = if sure { check.per(2) } else { check.per(2).times(3) };
        rig.run(interval + around);
        rig.release(0);
        rig.secs(2);
        let shared = rig[0].sent(SHARE) > 0;
        assert_eq!(shared, sure);
    }
}
