//! A worker's knowledge of its claims, in scenes: where a worker gets a live owner's lease by a request to the owner.

use crate::rig::{Rig, Trick};
use leasehold_engine::format::Format;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Body, Outcome, Reply, ScanPage};
use leasehold_engine::output::{Command, Effect, TableOp};
use leasehold_engine::position::Checkpoint;
use leasehold_engine::row::{Change, LeaseRow, RowRead};
use leasehold_engine::time::{Mono, Span};

/// A table of `leases` leases, all owned by another program.
fn theirs(leases: u32) -> Rig {
    let mut rig = Rig::with_format(Format::VmwareGoKcl.codec(), leases, 0);
    for n in 0..leases {
        let row = LeaseRow::new(Rig::id(n).to_lease(), Checkpoint::TrimHorizon);
        rig.table.rows.as_mut().unwrap().insert(row.key.clone(), row);
    }
    give_back(&mut rig, |_| true);
    rig
}

/// The other program writes the rows chosen by `whether` back, as the program knows them.
fn give_back(rig: &mut Rig, whether: impl Fn(&LeaseKey) -> bool) {
    let rows = rig.table.rows.as_mut().unwrap().values_mut();
    for row in rows.filter(|row| whether(&row.key)) {
        (row.owner, row.handing_over) = (Some("theirs".into()), None);
        row.counter += 1;
    }
}

fn claimed(effect: &Effect) -> Option<&LeaseKey> {
    match effect {
        Effect::Table(TableOp::Write(change @ Change::Claim { .. })) => Some(change.key()),
        _ => None,
    }
}

fn is_scan(effect: &Effect) -> bool {
    matches!(effect, Effect::Table(TableOp::Scan { .. }))
}

fn claims(rig: &Rig) -> Vec<(Mono, LeaseKey)> {
    let sent = rig.workers[0].sent.iter();
    sent.filter_map(|(at, effect)| Some((*at, claimed(effect)?.clone()))).collect()
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
    rig.join_trapped(Some(Box::new(move |effect| {
        asked |= claimed(effect).is_some();
        (claimed(effect).is_some() || (asked && is_scan(effect))).then_some(Trick::Hang)
    })));
    while rig.workers[0].hung.is_empty() {
        rig.run(Span::from_millis(100));
        if rig.workers[0].hung.is_empty() {
            give_back(&mut rig, |_| true);
        }
    }
    while !rig.workers[0].hung.iter().any(|command| is_scan(&command.effect)) {
        rig.run(Span::from_millis(100));
    }
    let (scans, asked): (Vec<Command>, Vec<Command>) =
        std::mem::take(&mut rig.workers[0].hung).into_iter().partition(|command| is_scan(&command.effect));
    assert_eq!((scans.len(), asked.len()), (1, 3));
    let before: Vec<RowRead> =
        rig.table.rows.as_ref().unwrap().values().cloned().map(RowRead::Lease).collect();
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
    let row = |rig: &mut Rig| rig.table.rows.as_mut().unwrap().get_mut(&given).cloned().unwrap();
    let mut row = row(&mut rig);
    row.handing_over = None;
    row.counter += 1;
    rig.table.rows.as_mut().unwrap().insert(given.clone(), row);
    for _ in 0..1_000 {
        give_back(&mut rig, |key| *key != given);
        rig.secs(1);
    }
    let me = rig.workers[0].engine().worker().cloned();
    assert_eq!(rig.table.rows.as_ref().unwrap()[&given].owner, me);
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
