//! Telling the choice of leases, and the counts behind the choice.

use super::context::Context;
use super::lease_table::{Balance, LeaseTable};
use crate::ids::{LeaseIx, WorkerId};
use crate::notice::{Choice, Notice};

/// How leases are had that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way<'a> {
    /// They are free or expired, and taken.
    Take,
    /// Steals leases from this owner.
    Steal(&'a WorkerId),
    /// Requests leases from this owner.
    Request(&'a WorkerId),
}

/// Says what was weighed, the leases in the order drawn; the first `now` are taken or requested.
pub(super) fn report_choice(
    cx: &mut Context, leases: &LeaseTable, balance: &Balance, ours: u32, way: Way<'_>, order: &[LeaseIx],
    now: usize,
) {
    let (chosen, left) = order.split_at(now.min(order.len()));
    if chosen.is_empty() {
        return;
    }
    let keys = |part: &[LeaseIx]| {
        let part = part.iter().filter_map(|ix| leases.get(*ix));
        part.map(|lease| lease.key().clone()).take(Choice::MOST).collect()
    };
    let choice = Choice {
        taken: chosen.len() as u32,
        chosen: keys(chosen),
        left: keys(left),
        candidates: order.len() as u32,
        asked: matches!(way, Way::Request(_)),
        victim: match way {
            Way::Take => None,
            Way::Steal(owner) | Way::Request(owner) => Some(owner.clone()),
        },
        counts: balance.busiest(cx.me()).to_vec(),
        workers: balance.workers(),
        unfinished: balance.unfinished(),
        target: balance.target(),
        ours,
    };
    cx.notify(Notice::Chose(Box::new(choice)));
}
