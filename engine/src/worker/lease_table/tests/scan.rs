//! Scans: pages, failures, and what a whole scan leaves behind.

use crate::input::Why;
use crate::output::{Effect, TableOp};
use crate::time::{Mono, Span};
use crate::worker::context::Request;
use crate::worker::lease_table::Scan;
use crate::worker::testing::{hold, owned, page, refused, row, shows, stage_of, throttled, whole_scan};

fn asks_after(after: Option<&str>) -> Effect {
    Effect::Table(TableOp::Scan { after: after.map(Into::into), limit: None })
}

#[test]
fn a_scan_asks_for_page_after_page_and_then_rests() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    scan.step(&mut cx, &mut leases);
    let (op, first) = cx.did().command();
    assert_eq!(first, asks_after(None));
    assert_eq!(scan.wake_at(&cx, &leases), Mono::NEVER, "one page at a time");

    let answer = page(vec![row("a")], Some("a"));
    assert!(scan.on_page(&mut cx, &mut leases, op, answer).is_none());
    let (op, second) = cx.did().command();
    assert_eq!(second, asks_after(Some("a")));
    assert_eq!((leases.scans().number(), leases.scans().complete()), (1, 0));

    let answer = page(vec![row("b")], None);
    assert!(scan.on_page(&mut cx, &mut leases, op, answer).is_some());
    assert!(leases.row("a").is_some() && leases.row("b").is_some());
    assert_eq!(leases.scans().complete(), 1);
    let (rest, interval) = (scan.wake_at(&cx, &leases).since(cx.now()), cx.config().scan_interval);
    assert!(rest >= interval && rest <= interval + interval.per(20), "{rest}");
}

#[test]
fn a_page_that_failed_is_asked_for_again_after_a_pause() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    scan.step(&mut cx, &mut leases);
    let op = cx.did().op();
    scan.on_page(&mut cx, &mut leases, op, page(vec![row("a")], Some("a")));
    let op = cx.did().op();
    scan.on_page(&mut cx, &mut leases, op, throttled());
    let did = cx.did();
    assert_eq!((did.told(), did.effects()), (vec!["trouble"], vec![]));
    let pause = scan.wake_at(&cx, &leases).since(cx.now());
    assert!(pause > Span::ZERO && pause <= cx.config().retry_min, "{pause}");
    cx.later(pause);
    scan.step(&mut cx, &mut leases);
    assert_eq!(cx.did().effects(), [asks_after(Some("a"))]);
}

#[test]
fn a_scan_that_does_not_find_the_table_doubts_it() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    scan.step(&mut cx, &mut leases);
    let op = cx.did().op();
    scan.on_page(&mut cx, &mut leases, op, refused(Why::NotFound));
    assert_eq!(cx.did().requests(), [Request::DoubtTable]);
}

#[test]
fn a_lease_that_a_whole_scan_lacks_is_forgotten_unless_held() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    shows(&cx, &mut leases, owned("gone", "other", 1));
    let held = hold(&mut cx, &mut leases, row("held"));
    cx.did();
    whole_scan(&mut cx, &mut leases, &mut scan, vec![row("there")]);
    assert_eq!(leases.find("gone"), None);
    assert_eq!(leases.find("held"), Some(held));
    assert!(leases.row("there").is_some());
}

#[test]
fn a_page_that_repeats_its_cursor_is_asked_for_after_a_pause() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    scan.step(&mut cx, &mut leases);
    let op = cx.did().op();
    scan.on_page(&mut cx, &mut leases, op, page(vec![], Some("a")));
    for _ in 0..2 {
        let op = cx.did().op();
        assert!(scan.on_page(&mut cx, &mut leases, op, page(vec![], Some("a"))).is_none());
        let did = cx.did();
        assert_eq!((did.told(), did.effects()), (vec!["trouble"], vec![]));
        cx.later(cx.config().retry_max);
        scan.step(&mut cx, &mut leases);
    }
    let did = cx.did();
    assert_eq!(did.effects(), [asks_after(Some("a"))]);
    let scanned = scan.on_page(&mut cx, &mut leases, did.op(), page(vec![row("there")], None));
    assert!(scanned.is_some() && leases.row("there").is_some());
}

#[test]
fn a_scan_is_brought_forward_but_not_too_close_to_the_last_one() {
    let (mut cx, mut leases, mut scan) = stage_of(Scan::default());
    whole_scan(&mut cx, &mut leases, &mut scan, vec![]);
    let (now, interval) = (cx.now(), cx.config().scan_interval);
    scan.schedule_by(now + interval.per(2));
    assert_eq!(scan.wake_at(&cx, &leases), now + interval.per(2));
    scan.schedule_by(now);
    assert_eq!(scan.wake_at(&cx, &leases), now + interval.per(8));
}
