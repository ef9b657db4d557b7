//! Each worker gets the same number of leases, as far as the limits of workers allow.

use super::{Candidate, Fleet, Move, Portion};
use std::collections::BTreeSet;

/// Places the available leases and, with `balance`, moves leases until no worker with room has two fewer than a worker
/// that may give.
///
/// Of workers with the same number, the one with the least id gets, and the one with the greatest id gives. A lease
/// stays where it is if only its own owner has room.
pub fn by_count(candidates: &[Candidate], leases: &[Portion], balance: bool) -> Vec<Move> {
    share(&mut Fleet::new(candidates, leases), balance)
}

/// The same, for a fleet already counted.
pub(super) fn share(fleet: &mut Fleet<'_>, balance: bool) -> Vec<Move> {
    let mut open: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (number, member) in fleet.members.iter().enumerate() {
        if member.has_room() {
            open.insert((member.leases, number));
        }
    }
    let mut moves = Vec::new();
    let available: Vec<usize> = fleet.available().collect();
    for lease in available {
        if open.is_empty() {
            break;
        }
        let failed = fleet.owners[lease];
        if let Some(place) = open.iter().find(|(_, number)| Some(*number) != failed).copied() {
            moves.push(give(fleet, &mut open, place, lease));
        }
    }
    if balance {
        even_out(fleet, &mut open, &mut moves);
    }
    moves
}

/// From the worker with the most leases to the worker with the fewest, until the counts differ by one at most.
fn even_out(fleet: &mut Fleet<'_>, open: &mut BTreeSet<(usize, usize)>, moves: &mut Vec<Move>) {
    let mut movable = fleet.movable();
    // The first of them goes first.
    movable.iter_mut().for_each(|leases| leases.reverse());
    let counts = fleet.members.iter().map(|member| member.leases);
    let mut givers: BTreeSet<(usize, usize)> = counts.zip(0..).collect();
    while let (Some(least), Some(most)) = (open.first().copied(), givers.pop_last()) {
        if most.0 < least.0 + 2 {
            break;
        }
        let giver = most.1;
        let Some(lease) = movable[giver].pop() else {
            continue;
        };
        // A giver has two more leases than the taker, so no worker both gives and takes.
        givers.remove(&least);
        moves.push(give(fleet, open, least, lease));
        givers.insert((fleet.members[least.1].leases, least.1));
        open.remove(&most);
        fleet.members[giver].leases -= 1;
        let left = (fleet.members[giver].leases, giver);
        givers.insert(left);
        if fleet.members[giver].has_room() {
            open.insert(left);
        }
    }
}

/// Gives a lease to the member of this place in `open`.
fn give(
    fleet: &mut Fleet<'_>, open: &mut BTreeSet<(usize, usize)>, place: (usize, usize), lease: usize,
) -> Move {
    open.remove(&place);
    let member = &mut fleet.members[place.1];
    member.leases += 1;
    if member.has_room() {
        open.insert((member.leases, place.1));
    }
    fleet.to(lease, place.1)
}
