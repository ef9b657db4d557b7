use super::*;
use crate::ids::WorkerId;
use crate::position::Checkpoint;
use crate::row::{HandsOver, LeaseRow};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A lease of a live worker, or a free lease.
fn row(owner: Option<u32>, hands_over: HandsOver) -> LeaseRow {
    let mut row = LeaseRow::new("lease".into(), Checkpoint::TrimHorizon);
    row.owner = owner.map(|owner| WorkerId::from(format!("w{owner}")));
    (row.counter, row.hands_over) = (1, hands_over);
    row
}

fn counting(me: &WorkerId, hands_over: bool) -> Counting<'_> {
    Counting { me, hands_over, max_leases: 0 }
}

/// The balance for a worker that holds the leases with its name.
fn weighed(counting: &Counting<'_>, rows: &[LeaseRow]) -> Balance {
    let mut balance = Balance::begin(counting, std::iter::empty());
    for (index, row) in rows.iter().enumerate() {
        let held = row.owner.as_ref() == Some(counting.me);
        let standing = Standing { ours: held.then(Ours::default), ..Standing::default() };
        balance.count(counting, number(index), row, &standing, || true);
    }
    let speaking = rows.iter().filter(|row| !row.hands_over.is_no());
    balance.hear(speaking.filter_map(LeaseRow::actual_owner));
    balance.settle(counting, |ix| *ix);
    balance
}

#[test]
fn a_requested_lease_counts_for_its_next_owner_for_a_while() {
    let mut requested = row(Some(1), HandsOver::Yes);
    requested.handing_over = Some("w2".into());
    let (me, next, owner) = ("w0".into(), "w1".into(), "w2".into());
    for (hands_over, young, expected) in [(true, true, [1, 0]), (true, false, [0, 1]), (false, true, [0, 1])]
    {
        let counting = counting(&me, hands_over);
        let mut balance = Balance::begin(&counting, std::iter::empty());
        let standing = Standing { young, ..Standing::default() };
        balance.count(&counting, number(0), &requested, &standing, || true);
        balance.settle(&counting, |ix| *ix);
        assert_eq!([balance.of(&next), balance.of(&owner)], expected);
        // The next owner need not live; the present owner does.
        assert!(balance.counts().contains_key(&owner));
    }
}

#[test]
fn a_lease_that_stood_still_can_be_taken_if_nothing_hinders() {
    let me = "w0".into();
    let counting = counting(&me, true);
    for (can_take, available) in [(true, 1), (false, 0)] {
        let mut balance = Balance::begin(&counting, std::iter::empty());
        let standing = Standing { expired: true, ..Standing::default() };
        balance.count(&counting, number(0), &row(Some(1), HandsOver::Yes), &standing, || can_take);
        balance.settle(&counting, |ix| *ix);
        assert_eq!((balance.available().len(), balance.workers()), (available, 1));
        assert_eq!(balance.target(), 1);
    }
}

#[test]
fn half_of_what_no_worker_had_is_left_to_others_that_start() {
    let me = "w0".into();
    let fresh = LeaseRow::new("lease".into(), Checkpoint::TrimHorizon);
    let rows = vec![fresh; 7];
    let order: Vec<_> = (0..7).map(number).collect();
    for (hands_over, meeting, now) in [(false, true, 4), (false, false, 7), (true, true, 7)] {
        let counting = counting(&me, hands_over);
        let balance = weighed(&counting, &rows);
        let taking = take(&counting, &balance, 7, order.clone(), meeting, |ix| rows.get(ix.index()));
        assert_eq!((taking.now, taking.more), (now, now < 7));
        assert_eq!(taking.order.len(), 7);
    }
}

proptest! {
    /// Workers look one after another, until no worker acts any more.
    #[test]
    fn workers_come_to_even_shares_and_rest(owners in prop::collection::vec(prop::option::of(0u32..5), 1..40), asks: bool) {
        let hands_over = if asks { HandsOver::Yes } else { HandsOver::No };
        let mut rows: Vec<LeaseRow> = owners.into_iter().map(|owner| row(owner, hands_over)).collect();
        let workers: Vec<WorkerId> = (0..5).map(|n| WorkerId::from(format!("w{n}"))).collect();
        let mut rested = false;
        for _ in 0..rows.len() + 5 {
            let before = rows.clone();
            for me in &workers {
                let counting = counting(me, asks);
                let balance = weighed(&counting, &rows);
                let to_me = match next(&counting, &balance) {
                    None => Vec::new(),
                    Some((Way::Take, need)) => {
                        let order = balance.available().to_vec();
                        let taking = take(&counting, &balance, need, order, false, |ix| rows.get(ix.index()));
                        taking.order[..taking.now as usize].to_vec()
                    }
                    Some((Way::Request, need)) => {
                        let mut requested = Vec::new();
                        request(&counting, &balance, need, u32::MAX, |owner, most| {
                            let theirs = (0..rows.len()).filter(|index| may_be_requested(&rows[*index], owner));
                            let theirs: Vec<_> = theirs.take(most as usize).map(number).collect();
                            requested.extend(&theirs);
                            theirs.len() as u32
                        });
                        requested
                    }
                    Some((Way::Steal, need)) => steal(&counting, &balance, need, 0, 1).map_or(Vec::new(), |stealing| {
                        let theirs = (0..rows.len()).filter(|index| is_plainly_of(&rows[*index], stealing.victim));
                        theirs.take(stealing.spare as usize).map(number).collect()
                    }),
                };
                for ix in to_me {
                    let row = &mut rows[ix.index()];
                    (row.owner, row.hands_over) = (Some(me.clone()), hands_over);
                }
            }
            rested = rows == before;
            if rested {
                break;
            }
        }
        prop_assert!(rested, "leases wander");
        let mut counts: BTreeMap<&WorkerId, usize> = workers.iter().map(|worker| (worker, 0)).collect();
        for row in &rows {
            let owner = row.owner.as_ref();
            prop_assert!(owner.is_some(), "a lease is left lying");
            *counts.entry(owner.unwrap_or(&workers[0])).or_default() += 1;
        }
        let (most, least) = (counts.values().max(), counts.values().min());
        prop_assert!(most <= least.map(|least| least + 1).as_ref(), "{counts:?}");
    }
}
