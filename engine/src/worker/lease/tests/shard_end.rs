//! The end of a shard.

use super::{Owner, child, closes_for, reads_the_end};
use crate::output::{Effect, EndReason, TableOp};
use crate::row::{Change, LeaseRow};
use crate::time::{Mono, Span};
use crate::worker::context::Request;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{closed, done, ended, owned, refused_by, row, shard, shown, shows};

/// A fully read shard with these children.
fn ending(children: &[(&str, &[&str])]) -> Owner {
    let mut owner = Owner::reading(row("a"));
    let children: Vec<_> = children.iter().map(|(id, parents)| child(id, parents)).collect();
    reads_the_end(&mut owner, &children);
    owner
}

fn child_written(owner: &mut Owner) {
    owner.room.on_child_written(&owner.cx, &mut owner.leases, owner.ix);
    owner.step();
}

#[test]
fn the_childrens_leases_come_first_then_the_end_then_the_close() {
    let mut owner = ending(&[("b", &["a"]), ("c", &["a"])]);
    let requests = owner.requests();
    let created = |request: &Request| match request {
        Request::WriteRow { change: Change::Create(row), child_of, expires, .. } => {
            assert_eq!((*child_of, *expires), (Some(owner.ix), Mono::NEVER));
            row.key.to_string()
        }
        other => panic!("expected a row to be created, found {other:?}"),
    };
    assert_eq!(requests.iter().map(created).collect::<Vec<_>>(), ["b", "c"]);
    child_written(&mut owner);
    assert_eq!(owner.write(), None);
    child_written(&mut owner);
    assert!(matches!(owner.write(), Some(Change::End { .. })));

    owner.answer_table(done());
    assert_eq!(owner.told(), ["ended"]);
    assert_eq!(owner.requests(), [Request::Rescan(owner.cx.now())]);
    assert_eq!(closes_for(owner.app()), Some(EndReason::ShardEnded));
    let ended = LeaseRow { counter: 2, ..ended("a", &["b", "c"]) };
    assert_eq!(owner.row(), ended);
    owner.answer_app(done());
    assert!(!owner.holds());
}

#[test]
fn a_merged_child_waits_until_its_other_parent_has_a_lease() {
    let mut owner = ending(&[("m", &["a", "z"])]);
    assert_eq!((owner.told(), owner.requests()), (vec!["blocked"], vec![]));
    assert_eq!(owner.row_read(), Some("z".into()));
    owner.answer_table(shown(Some(row("z"))));
    assert_eq!(owner.requests().len(), 1, "the child's lease is created");

    let mut owner = ending(&[("m", &["a", "z"])]);
    owner.answer_table(shown(None));
    assert_eq!(owner.requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    assert!(owner.held().is_missing());
}

/// The worker that creates the lease of the other parent may create the lease at any moment.
#[test]
fn the_other_parents_row_is_read_soon_and_shards_listed_seldom() {
    let mut owner = ending(&[("m", &["a", "z"])]);
    owner.answer_table(shown(None));
    owner.forget();
    let ends = owner.cx.now() + owner.cx.config().scan_interval;
    let (mut looks, mut pause) = (0, Span::from_millis(250));
    while owner.cx.now() + pause < ends {
        owner.later(pause);
        assert_eq!(owner.row_read(), Some("z".into()), "after {looks} looks");
        owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Read { .. })), shown(None));
        if owner.write().is_some() {
            owner.answer_table(done());
        }
        assert_eq!(owner.requests(), [], "after {looks} looks");
        looks += 1;
        pause = pause.times(2).min(owner.cx.config().renew_interval);
    }
    assert!((8..=10).contains(&looks), "{looks}");
    owner.later(pause);
    owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Read { .. })), shown(None));
    assert_eq!(owner.requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    owner.later(pause);
    owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Read { .. })), shown(Some(row("z"))));
    assert_eq!(owner.requests().len(), 1, "the child's lease is created before the listing comes");
}

#[test]
fn children_that_have_a_lease_need_nothing_more() {
    let mut owner = Owner::reading(row("a"));
    shows(&owner.cx, &mut owner.leases, row("m"));
    reads_the_end(&mut owner, &[child("m", &["a", "z"])]);
    assert_eq!(owner.requests(), []);
    assert!(matches!(owner.write(), Some(Change::End { .. })));
}

#[test]
fn an_end_that_names_no_children_has_the_shards_listed() {
    let mut owner = Owner::reading(row("a"));
    reads_the_end(&mut owner, &[]);
    assert_eq!(owner.requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    assert!(owner.held().is_missing() && owner.write().is_none());
}

/// One child of two: the lease of the other child would be missing when the row of the parent goes.
#[test]
fn an_end_that_names_one_child_of_two_has_the_shards_listed() {
    let mut owner = ending(&[("b", &["a"]), ("b", &["a"])]);
    assert_eq!(owner.requests(), [Request::DoubtStream(StreamIx::ONLY)]);
    assert!(owner.held().is_missing() && owner.write().is_none());
    let listing = [closed(shard("a", &[])), shard("b", &["a"]), shard("c", &["a"])];
    let asked = owner.cx.now();
    owner.room.on_shards_listed(&mut owner.cx, &mut owner.leases, StreamIx::ONLY, asked, &listing);
    owner.step();
    assert_eq!(owner.held().processing().children(), ["b".into(), "c".into()]);
}

#[test]
fn a_child_named_twice_gets_one_lease_and_the_shard_ends() {
    let mut owner = ending(&[("b", &["a"]), ("b", &["a"]), ("c", &["a"])]);
    assert_eq!(owner.requests().len(), 2);
    child_written(&mut owner);
    child_written(&mut owner);
    assert!(matches!(owner.write(), Some(Change::End { .. })));
}

#[test]
fn a_stop_waits_for_the_end_to_be_written() {
    let mut owner = ending(&[("b", &["a"]), ("c", &["a"])]);
    owner.stop();
    assert_eq!(owner.app(), None);
    child_written(&mut owner);
    child_written(&mut owner);
    assert!(matches!(owner.write(), Some(Change::End { .. })));
    owner.answer_table(done());
    assert_eq!(closes_for(owner.app()), Some(EndReason::ShardEnded));
}

/// The other parent of a merged child gets its lease when the whole of another shard was read: no worker waits for that
/// to stop.
#[test]
fn a_stop_does_not_wait_for_the_lease_of_another_parent() {
    let mut owner = ending(&[("m", &["a", "z"])]);
    owner.stop();
    assert_eq!(owner.app(), None, "it may be there");
    owner.answer_table(shown(Some(row("z"))));
    assert_eq!(owner.app(), None, "the end is written");

    let mut owner = ending(&[("m", &["a", "z"])]);
    owner.answer_table(shown(None));
    owner.stop();
    assert_eq!(closes_for(owner.app()), Some(EndReason::Shutdown));
}

#[test]
fn an_end_waiting_for_another_parent_is_handed_over_on_request() {
    let requested = || LeaseRow { handing_over: Some("me".into()), ..owned("a", "other", 1) };
    let mut owner = ending(&[("m", &["a", "z"])]);
    owner.answer_table(shown(None));
    owner.later(owner.cx.config().renew_interval);
    owner.answer(|effect| matches!(effect, Effect::Table(TableOp::Write(_))), refused_by(requested()));
    assert_eq!(closes_for(owner.app()), Some(EndReason::HandedOver));

    // The end of a shard that waits for no parent is written first.
    let mut owner = ending(&[("b", &["a"]), ("c", &["a"])]);
    owner.later(owner.cx.config().renew_interval);
    owner.answer_table(refused_by(requested()));
    assert_eq!(owner.app(), None);
}
