//! Assignment by count: all workers get the same number of leases. Ended leases count, too.

use super::assign::{Moves, Seen};
use std::collections::BTreeMap;

/// The target number of leases of a worker.
fn target(leases: usize, workers: usize) -> usize {
    match workers >= leases {
        true => 1,
        false => leases.div_ceil(workers.max(1)),
    }
}

/// The live workers and their numbers of leases, in the order of these numbers.
fn counted(seen: &[Seen], workers: &[String]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = workers.iter().map(|worker| (worker.as_str(), 0)).collect();
    for seen in seen.iter().filter(|seen| !seen.is_free) {
        if let Some(count) = seen.lease.actual_owner().and_then(|owner| counts.get_mut(owner)) {
            *count += 1;
        }
    }
    let mut counts: Vec<(String, usize)> =
        counts.into_iter().map(|(worker, count)| (worker.to_owned(), count)).collect();
    counts.sort_by_key(|(_, count)| *count);
    counts
}

fn move_to(seen: &mut Seen, to: &str, moves: &mut Moves) {
    moves.insert(seen.lease.key.to_string(), to.to_owned());
    seen.lease.owner = Some(to.to_owned());
    seen.lease.checkpoint_owner = None;
}

/// Assigns free and expired leases, the longest idle first: to the worker with the fewest leases until its target, then
/// to the next worker.
pub(super) fn assign_free(seen: &mut [Seen], workers: &[String]) -> Moves {
    let mut moves = Moves::new();
    let target = target(seen.len(), workers.len());
    let mut places = counted(seen, workers).into_iter();
    let mut place = places.next();
    let mut free: Vec<&mut Seen> = seen.iter_mut().filter(|seen| seen.is_free).collect();
    free.sort_by_key(|seen| seen.lease.grown_us);
    for seen in free {
        let Some((worker, count)) = &mut place else {
            break;
        };
        move_to(seen, worker, &mut moves);
        seen.is_free = false;
        *count += 1;
        if *count >= target {
            place = places.next();
        }
    }
    moves
}

/// Moves leases from the worker with the most leases to the worker with the fewest.
pub(super) fn balance(seen: &mut [Seen], workers: &[String], now_us: u64, moves: &mut Moves) {
    let target = target(seen.len(), workers.len());
    let mut counts = counted(seen, workers);
    let (mut left, mut right) = (0, counts.len().saturating_sub(1));
    while left < right {
        if counts[left].1 >= target {
            left += 1;
            continue;
        }
        let of_right = |seen: &&mut Seen| {
            seen.lease.actual_owner() == Some(&counts[right].0) && !seen.is_blocked(now_us) && !seen.is_free
        };
        let spare = counts[right].1 > target;
        let Some(seen) = seen.iter_mut().find(of_right).filter(|_| spare) else {
            right -= 1;
            continue;
        };
        let to = counts[left].0.clone();
        move_to(seen, &to, moves);
        counts[right].1 -= 1;
        counts[left].1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::assign::testing::{self, names};
    use super::*;

    fn seen(owners: &[Option<&str>]) -> Vec<Seen> {
        testing::seen(owners.iter().map(|owner| (*owner, None)))
    }

    #[test]
    fn free_leases_go_to_who_has_least_until_it_has_enough() {
        let mut seen = seen(&[None, Some("a"), None, None]);
        let moves = assign_free(&mut seen, &names(&["a", "b"]));
        let to: Vec<&str> = moves.values().map(String::as_str).collect();
        assert_eq!(to, ["b", "b", "a"]);
        assert!(assign_free(&mut self::seen(&[None]), &[]).is_empty());
    }

    #[test]
    fn leases_move_from_who_has_most_to_who_has_least() {
        let (mut moves, workers) = (Moves::new(), names(&["a", "b"]));
        let mut seen = seen(&[Some("a"), Some("a"), Some("a"), Some("a"), Some("gone")]);
        balance(&mut seen, &workers, 0, &mut moves);
        assert_eq!(moves.into_values().collect::<Vec<_>>(), ["b"]);
        let mut moves = Moves::new();
        for seen in &mut seen {
            seen.lease.owner = Some("b".to_owned());
            seen.lease.checkpoint_owner = Some("a".to_owned());
            seen.until_us = Some(9);
        }
        balance(&mut seen, &workers, 8, &mut moves);
        assert!(moves.is_empty(), "all are being handed over");
        balance(&mut seen, &workers, 9, &mut moves);
        assert_eq!(moves.len(), 2);
    }
}
