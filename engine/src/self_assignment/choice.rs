//! What a worker does about its share, by the balance of the leases.

use super::{Balance, Counting};
use crate::ids::{LeaseIx, WorkerId};
use crate::row::{HandsOver, LeaseRow};
use std::collections::BTreeSet;

/// The most leases taken after one scan, to spare the table a burst.
pub(crate) const MAX_TAKES: u32 = 1_000;

/// How a worker gets its missing leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The worker takes free or expired leases.
    Take,
    /// The worker requests leases from the owners above their share, and these owners hand leases over.
    Request,
    /// The worker steals from the owner with the most leases.
    Steal,
}

/// How many leases we lack, and how we come by them. Absent: we have our share.
pub fn next(counting: &Counting<'_>, balance: &Balance) -> Option<(Way, u32)> {
    let mine = balance.of(counting.me);
    let need = balance.target().saturating_sub(mine);
    if need == 0 && above_share(counting, balance, 0) == 0 {
        return None;
    }
    if !balance.available().is_empty() {
        Some((Way::Take, need))
    } else if evens_out(counting, balance) {
        Some((Way::Request, need))
    } else {
        Some((Way::Steal, need))
    }
}

/// Whether a worker below its share gets leases within moments: each owner above its share hands over the requested
/// leases.
pub(crate) fn evens_out(counting: &Counting<'_>, balance: &Balance) -> bool {
    counting.hands_over && !balance.has_other_programs()
}

/// The number of dead workers' leases that we take beyond our share, if `within` of these leases are within our share.
///
/// Workers aware of an expired lease take the lease as a part of their shares. The remaining leases are then the share
/// of a worker that has just started: a new worker learns of an expired lease a whole lease duration after its own
/// start. Meanwhile, an aware worker takes these leases and reads their shards, and the new worker requests the leases
/// when it sees a new owner. Two workers take all leases at once. Of more workers, each takes twice its part, and the
/// rest after the next scan: few workers want the same lease.
fn above_share(counting: &Counting<'_>, balance: &Balance, within: u32) -> u32 {
    if !evens_out(counting, balance) {
        return 0;
    }
    let left = (balance.overdue().len() as u32).saturating_sub(within);
    let part = left.saturating_mul(2).div_ceil(balance.workers());
    let room = match counting.max_leases {
        0 => u32::MAX,
        most => most.saturating_sub(balance.of(counting.me).saturating_add(within)),
    };
    left.min(part).min(room)
}

/// Leases to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    /// The leases that can be taken, in the order of the takes.
    pub order: Vec<LeaseIx>,
    /// The number of leases taken now.
    pub now: u32,
    /// Leases left to the fleet for a moment are ours if no worker takes them first.
    pub more: bool,
}

/// Our takes of free or expired leases, in the drawn `order`, if we lack `need`: this number, and the leases of dead
/// workers beyond our share. A part may be left to other workers for a moment: `meeting` says whether workers that
/// start at the same time may not have seen each other yet.
pub fn take<'a>(
    counting: &Counting<'_>, balance: &Balance, need: u32, order: Vec<LeaseIx>, meeting: bool,
    row_of: impl Fn(LeaseIx) -> Option<&'a LeaseRow>,
) -> Taking {
    debug_assert!(need <= balance.target(), "no more is needed than a share");
    // Where leases are handed over, a second starting worker has its share within moments anyway.
    if evens_out(counting, balance) {
        return take_all(counting, balance, need, order);
    }
    let (order, most) = match meeting {
        true => leave_half(balance, order, &row_of),
        false => {
            let all = order.len() as u32;
            (order, all)
        }
    };
    let most = most.min(need).min(MAX_TAKES);
    let more = need > most && order.len() > most as usize;
    Taking { order, now: most, more }
}

/// The leases of dead workers go first: a worker may take more than its share of dead workers' leases.
fn take_all(counting: &Counting<'_>, balance: &Balance, need: u32, order: Vec<LeaseIx>) -> Taking {
    let overdue: BTreeSet<LeaseIx> = balance.overdue().iter().copied().collect();
    let (mut order, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(|ix| overdue.contains(ix));
    order.extend(rest);
    let within = need.min(order.len() as u32);
    let above = above_share(counting, balance, within);
    debug_assert!((within + above) as usize <= order.len(), "only what is available is taken");
    Taking { order, now: (within + above).min(MAX_TAKES), more: false }
}

/// Puts the leases left to other workers for a moment behind the rest, in the order drawn. Returns how many leases may
/// be taken at once, too.
///
/// When workers start together, no worker sees the rest before they own leases. So each worker leaves half of the
/// leases that a second starting worker may be about to take. These are the never owned leases; and the released
/// leases, if no other worker is seen to live: then the whole fleet may be starting. Leases left to a live fleet by a
/// dead or leaving worker are taken at once.
fn leave_half<'a>(
    balance: &Balance, order: Vec<LeaseIx>, row_of: impl Fn(LeaseIx) -> Option<&'a LeaseRow>,
) -> (Vec<LeaseIx>, u32) {
    let alone = balance.workers() == 1;
    let mut take = false;
    let (mut at_once, left): (Vec<_>, Vec<_>) = order.into_iter().partition(|ix| {
        let anybodys = row_of(*ix).is_some_and(|row| row.never_owned() || row.owner.is_none() && alone);
        take ^= anybodys;
        take || !anybodys
    });
    let most = at_once.len() as u32;
    debug_assert!(at_once.len() >= left.len(), "no more than half is left");
    at_once.extend(left);
    (at_once, most)
}

/// Leases to be stolen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stealing<'a> {
    /// The owner to steal from.
    pub victim: &'a WorkerId,
    /// The number of its leases.
    pub theirs: u32,
    /// How many we have, or requested.
    pub ours: u32,
    /// How many are stolen.
    pub spare: u32,
}

/// KCL's rule: from the most loaded worker, its leases above its share, or one lease if we lack two or more. We lack
/// `need` leases and have already requested `coming` of them, and steal no more than `most`.
pub fn steal<'a>(
    counting: &Counting<'_>, balance: &'a Balance, need: u32, coming: u32, most: u32,
) -> Option<Stealing<'a>> {
    let (ours, need) = (balance.of(counting.me) + coming, need.saturating_sub(coming));
    if need == 0 {
        return None;
    }
    let others = balance.counts().iter().filter(|(owner, _)| *owner != counting.me);
    let (victim, theirs) = others.max_by_key(|(_, count)| **count)?;
    let mut spare = need.min(theirs.saturating_sub(balance.target()));
    if spare == 0 && need > 1 && *theirs >= balance.target() {
        spare = 1;
    }
    let spare = spare.min(most);
    if spare == 0 {
        return None;
    }
    // A worker with leases to spare has at least two more than we have: one steal leaves both counts more even, or
    // leases would wander.
    debug_assert!(*theirs > ours + 1, "a steal evens out");
    Some(Stealing { victim, theirs: *theirs, ours, spare })
}

/// Requests the leases we lack: the busiest owners first, each for the leases above its share. Where no owner has more
/// than its share and we lack several, we request one lease from one owner. We request no more than `most` now.
/// `ask_owner` requests this many leases from an owner, and returns the number of requests made: some of its leases may
/// not be available yet.
pub fn request<'a>(
    counting: &Counting<'_>, balance: &'a Balance, lacks: u32, most: u32,
    mut ask_owner: impl FnMut(&'a WorkerId, u32) -> u32,
) {
    let now = lacks.min(most);
    let mut left = now;
    for (owner, theirs) in by_load(counting, balance) {
        let spare = theirs.saturating_sub(balance.target()).min(left);
        if spare == 0 {
            break;
        }
        left -= ask_owner(owner, spare);
    }
    if left == now
        && now > 0
        && lacks > 1
        && let Some((owner, theirs)) = by_load(counting, balance).into_iter().next()
        && theirs >= balance.target()
    {
        ask_owner(owner, 1);
    }
}

/// The other workers, the worker with the most leases first.
pub fn by_load<'a>(counting: &Counting<'_>, balance: &'a Balance) -> Vec<(&'a WorkerId, u32)> {
    let others = balance.counts().iter().filter(|(worker, _)| *worker != counting.me);
    let mut others: Vec<_> = others.map(|(worker, count)| (worker, *count)).collect();
    others.sort_by(|(a, some), (b, other)| other.cmp(some).then_with(|| a.cmp(b)));
    others
}

/// Whether an unfinished lease is this worker's, and is not being handed over.
pub fn is_plainly_of(row: &LeaseRow, owner: &WorkerId) -> bool {
    !row.checkpoint.is_end() && row.handing_over.is_none() && row.owner.as_ref() == Some(owner)
}

/// Whether a lease may be requested from its owner: the row says that the owner hands the lease over.
pub fn may_be_requested(row: &LeaseRow, owner: &WorkerId) -> bool {
    row.hands_over == HandsOver::Yes && is_plainly_of(row, owner)
}

/// Leases in the order of their random draws.
pub fn drawn(some: impl Iterator<Item = (u64, LeaseIx)>) -> Vec<LeaseIx> {
    let mut order: Vec<(u64, LeaseIx)> = some.collect();
    order.sort_unstable();
    order.into_iter().map(|(_, ix)| ix).collect()
}
