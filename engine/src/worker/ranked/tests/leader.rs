//! Leading the members.

use super::{Shown, member, ranked};
use crate::ids::ShardId;
use crate::members::{MembersChange, MembersOp};
use crate::worker::context::Request;
use crate::worker::ranked::tasks::Task;
use crate::worker::testing::{ended, shard, shows};

fn leads(asked: &[MembersOp]) -> bool {
    let lead = |op: &MembersOp| matches!(op, MembersOp::Write(MembersChange::Lead { .. }));
    asked.iter().any(lead)
}

/// The shards that are to be shared out.
fn to_share(tasks: impl IntoIterator<Item = Task>) -> Option<Vec<ShardId>> {
    let share = |task| match task {
        Task::Share(shards, _) => Some(shards),
        _ => None,
    };
    tasks.into_iter().find_map(share)
}

#[test]
fn the_first_member_leads_alone_and_lists_the_shards() {
    let (mut cx, mut leases, mut members) = ranked();
    let shown = Shown { members: vec![member(&cx, "me"), member(&cx, "second")], shards: vec!["a"] };
    assert!(leads(&shown.round(&mut cx, &mut leases, &mut members)));
    assert!(members.leads);
    members.wants_listing = true;
    members.step(&mut cx, true);
    assert!(cx.did().is_nothing(), "they are being listed");
    members.step(&mut cx, false);
    assert!(matches!(cx.did().requests(), [Request::ListShards(..)]));
}

#[test]
fn a_later_member_does_not_lead_and_steps_down() {
    let (mut cx, mut leases, mut members) = ranked();
    let alone = Shown { members: vec![member(&cx, "me")], shards: vec!["a"] };
    assert!(leads(&alone.round(&mut cx, &mut leases, &mut members)));
    cx.later(cx.config().members.check_interval);
    let joined = Shown { members: vec![member(&cx, "first"), member(&cx, "me")], shards: vec!["a"] };
    let all = joined.round(&mut cx, &mut leases, &mut members);
    let down = |op: &MembersOp| matches!(op, MembersOp::Write(MembersChange::StepDown(_)));
    assert!(!leads(&all) && all.iter().any(down), "{all:?}");
    assert!(!members.leads);
}

#[test]
fn the_leader_shares_out_what_is_listed_and_not_read_to_its_end() {
    let (mut cx, mut leases, mut members) = ranked();
    let shown = Shown { members: vec![member(&cx, "me")], shards: vec!["a"] };
    shown.round(&mut cx, &mut leases, &mut members);
    shows(&cx, &mut leases, ended("a", &["b"]));
    members.compare_shared(&cx, &leases, &[shard("a", &[]), shard("b", &["a"])]);
    assert_eq!(to_share(members.tasks.clone()), Some(vec!["b".into()]));
}

#[test]
fn a_shard_stays_shared_out_until_two_lists_have_lacked_it() {
    let (mut cx, mut leases, mut members) = ranked();
    let shown = Shown { members: vec![member(&cx, "me")], shards: vec!["a", "b"] };
    shown.round(&mut cx, &mut leases, &mut members);
    members.compare_shared(&cx, &leases, &[shard("b", &[])]);
    assert_eq!(to_share(members.tasks.clone()), None);
    members.compare_shared(&cx, &leases, &[shard("b", &[])]);
    assert_eq!(to_share(members.tasks.clone()), Some(vec!["b".into()]));
}
