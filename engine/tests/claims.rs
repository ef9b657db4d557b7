//! A worker's knowledge of its claims, in scenes: where a worker gets a live owner's lease by a request to the owner.

use crate::rig::*;
use leasehold_engine::format::Format;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Body, Outcome, Reply, ScanPage};
use leasehold_engine::output::Command;
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{LeaseRow, RowRead};
use leasehold_engine::time::{Mono, Span};

/// A table of `leases` leases, all owned by another program.
fn theirs(leases: u32) -> Rig {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), leases, 0);
    for n in 0..leases {
        rig.insert(LeaseRow::new(shard_id(n).to_lease(), Checkpoint::TrimHorizon));
    }
    give_back(&mut rig, |_| true);
    rig
}

/// The other program writes the rows chosen by `whether` back, as the program knows them.
fn give_back(rig: &mut Rig, whether: impl Fn(&LeaseKey) -> bool) {
    let rows = rig.rows_mut().values_mut();
    for row in rows.filter(|row| whether(&row.key)) {
        (row.owner, row.handing_over) = (Some("theirs".into()), None);
        row.counter += 1;
    }
}

fn claims(rig: &Rig) -> Vec<(Mono, LeaseKey)> {
    let claims = rig[0].changes().filter(|(_, change)| change.verb() == "claim");
    claims.map(|(at, change)| (at, change.key().clone())).collect()
}

/// A scan requested before the write of a claim does not show the claim; the worker claims no more leases than it
/// lacks.
#[test]
fn a_scan_that_is_older_than_a_claim_takes_nothing_from_it() {
    let mut rig = theirs(6);
    rig.configure(|config| {
        config.with_scan_interval(Span::from_secs(2)).with_stream_lag(Span::from_secs(2)).with_max_steals(10)
    });
    let mut asked = false;
    rig.join_trapped(move |effect| {
        asked |= CLAIM.is(effect);
        (CLAIM.is(effect) || (asked && SCAN.is(effect))).then_some(Trick::Hang)
    });
    while rig[0].hung.is_empty() {
        rig.run(Span::from_millis(100));
        if rig[0].hung.is_empty() {
            give_back(&mut rig, |_| true);
        }
    }
    rig.until_hung(0, Span::from_millis(100), SCAN);
    let (scans, asked): (Vec<Command>, Vec<Command>) =
        std::mem::take(&mut rig[0].hung).into_iter().partition(|command| SCAN.is(&command.effect));
    assert_eq!((scans.len(), asked.len()), (1, 3));
    let before: Vec<RowRead> = rig.rows().values().cloned().map(RowRead::Lease).collect();
    let answer = |rig: &mut Rig, command: &Command, outcome| {
        let op = command.op;
        rig.tell(0, Body::Done { op, outcome });
    };
    for claim in &asked {
        let outcome = rig.perform(0, claim);
        answer(&mut rig, claim, outcome);
    }
    let page = ScanPage { rows: before, next: None };
    answer(&mut rig, &scans[0], Outcome::Applied(Reply::Page(page)));
    rig.run(Span::from_millis(500));
    assert_eq!(claims(&rig).len(), 3);
}

/// A lease given to us is forgotten as a claim, though more leases are lacking: a lease taken back is claimed again
/// together with the next claims.
#[test]
fn a_claim_that_lasted_makes_no_later_one_wait() {
    let mut rig = theirs(3);
    rig.configure(|config| config.with_max_steals(10));
    rig.join();
    while claims(&rig).is_empty() {
        rig.secs(1);
        if claims(&rig).is_empty() {
            give_back(&mut rig, |_| true);
        }
    }
    // One lease is handed over, and the other leases are not.
    let (_, given) = claims(&rig)[0].clone();
    let row = rig.rows_mut().get_mut(&given).unwrap();
    row.handing_over = None;
    row.counter += 1;
    for _ in 0..1_000 {
        give_back(&mut rig, |key| *key != given);
        rig.secs(1);
    }
    assert_eq!(rig.rows()[&given].owner, Some(rig[0].me()));
    assert_eq!(claims(&rig).iter().filter(|(_, key)| *key == given).count(), 1);
    let since = rig.now;
    for _ in 0..200 {
        give_back(&mut rig, |_| true);
        rig.secs(1);
    }
    let again: Vec<Mono> =
        claims(&rig).into_iter().filter_map(|(at, key)| (at > since && key == given).then_some(at)).collect();
    let scan = rig.config.scan_interval();
    let pause = again[1].since(again[0]);
    assert!(pause >= scan && pause < scan.times(2), "{again:?}");
}
