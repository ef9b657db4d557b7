//! The evidence of a listing about a shard not found.

use super::{Owner, end, reads_the_end, records, renewed, waits_out_the_lag};
use crate::input::Why;
use crate::notice::Stall;
use crate::output::{ConsumerOp, StreamOp};
use crate::shard::Shard;
use crate::worker::context::Request;
use crate::worker::stream_set::StreamIx;
use crate::worker::testing::{closed, done, refused, row, shard, tenths};

fn listed(owner: &mut Owner, shards: &[Shard]) {
    let asked = owner.cx.now();
    owner.room.on_shards_listed(&mut owner.cx, &mut owner.leases, StreamIx::ONLY, asked, shards);
    owner.step();
}

/// Time passes, and the shard is asked for again and not found.
fn not_found_again(owner: &mut Owner) {
    owner.later(owner.cx.config().scan_interval);
    renewed(owner);
    assert!(owner.stream().is_some(), "it is asked for again");
    owner.answer_stream(refused(Why::NotFound));
    owner.forget();
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
fn a_shard_missing_from_several_lists_has_ended_before_children() {
    let mut owner = missing();
    let halves = ["b", "c"].map(|id| shard(id, &["a"]));
    let needed = owner.cx.config().audit_confidence;
    for listing in 1..needed {
        listed(&mut owner, &halves);
        assert_eq!((owner.told(), created(&mut owner)), (vec![], 0), "listing {listing}");
        not_found_again(&mut owner);
    }
    listed(&mut owner, &halves);
    assert_eq!((owner.told(), created(&mut owner)), (vec!["trimmed"], 2));
}

#[test]
fn lists_of_one_moment_count_once() {
    let mut owner = missing();
    // Each five seconds later than the one before; those that count are ten seconds apart.
    for expected in [1, 1, 2, 2] {
        listed(&mut owner, &[shard("b", &["a"])]);
        assert_eq!(created(&mut owner), 0);
        let why = owner.why_stalled();
        let against = None;
        let listings = expected;
        assert_eq!(why, Stall::Unproven { listings, against });
        owner.later(owner.cx.config().scan_interval.per(4));
        renewed(&mut owner);
        owner.answer_stream(refused(Why::NotFound));
        owner.forget();
    }
    listed(&mut owner, &[shard("b", &["a"])]);
    assert_eq!(created(&mut owner), 1);
}

#[test]
fn no_list_that_shows_a_parent_says_that_the_shard_is_forgotten() {
    let parent = shard("s0", &[]);
    let mut owner = Owner::reading(row("s1"));
    owner.answer_stream(refused(Why::NotFound));
    owner.forget();
    for _ in 0..20 {
        listed(&mut owner, std::slice::from_ref(&parent));
        assert_eq!((owner.told(), created(&mut owner)), (vec![], 0));
        let why = owner.why_stalled();
        let older = Some("s0".into());
        assert_eq!(why, Stall::Unproven { listings: 0, against: older });
        not_found_again(&mut owner);
    }
}

#[test]
fn a_shard_that_is_found_again_is_doubted_anew() {
    let mut owner = missing();
    let halves = ["b", "c"].map(|id| shard(id, &["a"]));
    for _ in 0..10 {
        listed(&mut owner, &halves);
        not_found_again(&mut owner);
        listed(&mut owner, &[shard("a", &[])]);
        assert_eq!(created(&mut owner), 0);
        not_found_again(&mut owner);
    }
}

#[test]
fn after_a_contradictory_list_the_shard_is_asked_for_again() {
    let mut owner = missing();
    owner.room.on_bad_listing(&owner.cx, &mut owner.leases, StreamIx::ONLY);
    owner.step();
    assert!(!owner.held().is_missing());
    not_found_again(&mut owner);
    assert!(owner.held().is_missing());
}

/// The shard is closed, and has two children.
fn split() -> [Shard; 3] {
    let half = |id, start, end| Shard { range: tenths(start, end), ..shard(id, &["a"]) };
    let parent = Shard { range: tenths(0, 10), ..closed(shard("a", &[])) };
    [parent, half("b", 0, 5), half("c", 5, 10)]
}

#[test]
fn a_list_with_one_child_of_two_may_lag_so_another_is_awaited() {
    let mut owner = Owner::reading(row("a"));
    reads_the_end(&mut owner, &[]);
    owner.forget();
    listed(&mut owner, &split()[..2]);
    assert_eq!((owner.told(), created(&mut owner)), (vec![], 0));
    owner.later(owner.cx.config().scan_interval);
    assert!(owner.held().is_missing(), "it asks again");
    listed(&mut owner, &split());
    assert_eq!(created(&mut owner), 0);
    confirms_the_end(&mut owner);
    listed(&mut owner, &split());
    assert_eq!(created(&mut owner), 2);
}

#[test]
fn a_childless_shard_missing_from_several_lists_ends() {
    let mut owner = Owner::reading(row("a"));
    reads_the_end(&mut owner, &[]);
    let needed = owner.cx.config().audit_confidence;
    for listing in 1..=needed {
        assert!(owner.write().is_none_or(|change| change.verb() != "end"), "listing {listing}");
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

/// An answer without an iterator and without children, of a shard that is open.
fn ends_falsely(owner: &mut Owner) {
    reads_the_end(owner, &[]);
    owner.forget();
    assert!(owner.held().is_missing(), "a listing is asked for");
}

#[test]
fn an_end_denied_by_a_listing_is_read_on_after_the_last_record() {
    let mut owner = Owner::reading(row("a"));
    ends_falsely(&mut owner);
    listed(&mut owner, &[shard("a", &[])]);
    assert!(owner.told().contains(&"trouble"), "a warning says why");
    owner.later(owner.cx.config().reader.min_interval);
    assert!(matches!(owner.stream(), Some(StreamOp::GetIterator { .. })));
    owner.iterates();
    owner.later(owner.cx.config().reader.idle_interval);
    assert!(matches!(owner.stream(), Some(StreamOp::GetRecords { .. })));
    assert_eq!(created(&mut owner), 0);
}

/// One more answer asserts the end, without children, `stream_lag` after a listing with the shard closed.
fn confirms_the_end(owner: &mut Owner) {
    assert!(!owner.held().is_missing(), "the end is asked for once more");
    let pause = owner.cx.config().reader.min_interval;
    waits_out_the_lag(owner);
    owner.iterates();
    owner.later(pause);
    owner.answer_stream(end(&[]));
    owner.forget();
    assert!(owner.held().is_missing(), "a listing is asked for");
}

/// An answer just after the listing may be as old as the answers before, and a list may lack a closed shard.
#[test]
fn an_answer_soon_after_the_listing_confirms_no_end() {
    for shown in [&split()[..], &split()[1..]] {
        let mut owner = Owner::reading(row("a"));
        ends_falsely(&mut owner);
        listed(&mut owner, shown);
        let pause = owner.cx.config().reader.min_interval;
        owner.later(pause);
        owner.iterates();
        owner.later(pause);
        owner.answer_stream(end(&[]));
        owner.forget();
        assert!(!owner.held().is_missing(), "the end is asked for again");
        assert_eq!(created(&mut owner), 0);
    }
}

/// The shard was open when answers asserted its end, and was closed before the listing: records may lie in between.
#[test]
fn records_written_after_a_claimed_end_are_read_before_the_end() {
    let mut owner = Owner::reading(row("a"));
    ends_falsely(&mut owner);
    listed(&mut owner, &split());
    assert_eq!(created(&mut owner), 0);
    let pause = owner.cx.config().reader.min_interval;
    owner.later(pause);
    owner.iterates();
    owner.later(pause);
    owner.answer_stream(records(5, 6));
    assert!(matches!(owner.app(), Some(ConsumerOp::Deliver { .. })));
}

#[test]
fn a_shard_forgotten_before_its_end_is_confirmed_ends_by_lists() {
    for shown in [&split()[..], &split()[1..]] {
        let mut owner = Owner::reading(row("a"));
        ends_falsely(&mut owner);
        listed(&mut owner, &split());
        owner.later(owner.cx.config().reader.min_interval);
        owner.answer_stream(refused(Why::NotFound));
        for _ in 0..2 {
            listed(&mut owner, shown);
            assert_eq!(created(&mut owner), 0);
            not_found_again(&mut owner);
        }
        listed(&mut owner, shown);
        assert_eq!(created(&mut owner), 2);
        assert!(!owner.told().contains(&"trimmed"), "no record is lost");
    }
}

#[test]
fn an_end_claimed_and_denied_often_is_paced_and_told() {
    let mut owner = Owner::reading(row("a"));
    for times in 1..=4 {
        ends_falsely(&mut owner);
        listed(&mut owner, &[shard("a", &[])]);
        let why = owner.why_stalled();
        assert_eq!(why, Stall::EndDenied { times });
        owner.later(owner.cx.config().retry_max);
        renewed(&mut owner);
        owner.iterates();
        owner.later(owner.cx.config().reader.min_interval);
        renewed(&mut owner);
    }
}
