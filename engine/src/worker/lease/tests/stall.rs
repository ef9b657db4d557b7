//! Noticing leases that do not move.

use super::{Owner, records};
use crate::notice::{Notice, Stall};
use crate::time::Span;
use crate::worker::testing::{done, row};

fn stalls(owner: &mut Owner) -> Vec<(Span, Stall)> {
    let notices = std::mem::take(&mut owner.notices);
    let stall = |notice| match notice {
        Notice::Stalled { idle, why, .. } => Some((idle, why)),
        _ => None,
    };
    notices.into_iter().filter_map(stall).collect()
}

#[test]
fn a_stalled_handler_is_told_and_again_after_twice_the_time() {
    let mut owner = Owner::processing();
    let after = owner.cx.config().stall_after;
    owner.keeps(Span(after.0 - 1));
    assert_eq!(stalls(&mut owner), []);
    owner.keeps(Span(1));
    let handler = || Stall::Handler { attempt: 1 };
    assert_eq!(stalls(&mut owner), [(after, handler())]);
    owner.keeps(after);
    assert_eq!(stalls(&mut owner), [(after.times(2), handler())]);
    owner.answer_app(done());
    let moving = [Notice::Moving { lease: "a".into(), after: after.times(2) }];
    assert_eq!(owner.notices, moving);
}

#[test]
fn an_application_that_does_not_open_a_shard_is_named() {
    let mut owner = Owner::of(row("a"));
    let after = owner.cx.config().stall_after;
    owner.keeps(after);
    assert_eq!(stalls(&mut owner), [(after, Stall::Opening)]);
}

#[test]
fn a_shard_that_moves_is_never_told() {
    let mut owner = Owner::processing();
    let after = owner.cx.config().stall_after;
    for batch in 1..10 {
        owner.keeps(after.per(2));
        owner.answer_app(done());
        owner.keeps(after.per(4));
        owner.answer_stream(records(10 * batch, 10 * batch + 5));
    }
    assert_eq!(stalls(&mut owner), []);
}
