//! What a listing says of a shard that was not found.

use super::{Owner, end};
use crate::input::Why;
use crate::output::StreamOp;
use crate::shard::Shard;
use crate::worker::context::Request;
use crate::worker::lease;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{closed, done, refused, row, shard, tenths};

fn listed(owner: &mut Owner, shards: &[Shard]) {
    lease::on_shards_listed(&mut owner.cx, &mut owner.leases, StreamIx::ONLY, shards);
    owner.step();
}

/// The shard was not found.
fn missing() -> Owner {
    let mut owner = Owner::reading(row("a"));
    owner.answer_stream(refused(Why::NotFound));
    owner.forget();
    owner
}

/// The children whose leases are to be created.
fn created(owner: &mut Owner) -> usize {
    let requests = owner.requests();
    let create = |request: &&Request| matches!(request, Request::WriteRow { .. });
    requests.iter().filter(create).count()
}

#[test]
fn a_shard_that_is_listed_is_read_on() {
    let mut owner = missing();
    listed(&mut owner, &[shard("a", &[])]);
    assert!(!owner.held().is_missing());
    owner.later(owner.cx.config().reader.min_interval);
    assert!(matches!(owner.stream(), Some(StreamOp::GetRecords { .. })));
}

#[test]
fn a_shard_that_is_not_listed_any_more_has_ended_and_its_children_follow() {
    let mut owner = missing();
    let halves = ["b", "c"].map(|id| shard(id, &["a"]));
    listed(&mut owner, &halves);
    assert_eq!((owner.told(), created(&mut owner)), (vec!["trimmed"], 2));
}

#[test]
fn a_list_that_shows_one_child_of_two_may_lag_and_another_one_is_waited_for() {
    let half = |id, start, end| Shard {
        range: tenths(start, end),
        ..shard(id, &["a"])
    };
    let parent = || Shard {
        range: tenths(0, 10),
        ..closed(shard("a", &[]))
    };
    let mut owner = Owner::reading(row("a"));
    owner.answer_stream(end(&[]));
    owner.forget();
    listed(&mut owner, &[parent(), half("b", 0, 5)]);
    assert_eq!((owner.told(), created(&mut owner)), (vec![], 0));
    owner.later(owner.cx.config().scan_interval);
    assert!(owner.held().is_missing(), "it asks again");
    listed(&mut owner, &[parent(), half("b", 0, 5), half("c", 5, 10)]);
    assert_eq!(created(&mut owner), 2);
}

#[test]
fn a_shard_without_children_that_several_lists_lack_ends_without_any() {
    let mut owner = Owner::reading(row("a"));
    owner.answer_stream(end(&[]));
    let needed = owner.cx.config().audit_confidence;
    for listing in 1..=needed {
        assert!(
            owner.write().is_none_or(|change| change.verb() != "end"),
            "listing {listing}"
        );
        listed(&mut owner, &[shard("other", &[])]);
        if owner.write().is_some() {
            owner.answer_table(done());
        }
        owner.later(owner.cx.config().scan_interval);
        if owner.write().is_some_and(|change| change.verb() == "renew") {
            owner.answer_table(done());
        }
    }
    assert!(owner.told().contains(&"ended"));
}
