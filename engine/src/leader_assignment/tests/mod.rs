//! Fleets and leases for the tests of both rules, and what is true of both.

mod load;
mod number;
mod settling;

use super::{
    Candidate, Load, LoadOptions, Move, Owner, Portion, by_count, by_load, is_even_by_count, is_even_by_load,
};
use crate::draw::draw;
use crate::fleet::FleetMetric;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Millionths in one.
const ONE: u64 = 1_000_000;

/// A worker that reports no metrics.
fn plain(id: &str) -> Candidate {
    Candidate { id: id.into(), metrics: Vec::new(), most: None }
}

/// So many of them, named in order.
fn workers(n: usize) -> Vec<Candidate> {
    (0..n).map(|n| plain(&format!("w{n:04}"))).collect()
}

/// A worker whose processor is busy by this many percent, now and at all earlier times.
fn busy(id: &str, percent: i64, limit: i64) -> Candidate {
    Candidate {
        metrics: vec![FleetMetric {
            name: "C".into(),
            recent: vec![percent * ONE as i64; 3],
            limit: limit * ONE as i64,
        }],
        ..plain(id)
    }
}

/// A lease that a worker processes.
fn held(owner: usize, throughput: impl Into<Option<u64>>) -> Portion {
    Portion { owner: Owner::Candidate(owner), throughput: throughput.into(), available: false, movable: true }
}

/// A lease that nobody has.
fn free(throughput: impl Into<Option<u64>>) -> Portion {
    Portion { owner: Owner::Nobody, available: true, movable: false, ..held(0, throughput) }
}

/// The moves are carried out.
fn apply(leases: &mut [Portion], moves: &[Move]) {
    for step in moves {
        let lease = &mut leases[step.lease];
        lease.owner = Owner::Candidate(step.to);
        if lease.available {
            (lease.available, lease.movable) = (false, true);
        }
    }
}

/// How many leases each worker processes.
fn counts(workers: usize, leases: &[Portion]) -> Vec<usize> {
    let mut counts = vec![0; workers];
    for lease in leases.iter().filter(|lease| !lease.available) {
        if let Owner::Candidate(owner) = lease.owner {
            counts[owner] += 1;
        }
    }
    counts
}

/// How many leases each worker processes after these moves.
fn counts_after(workers: usize, mut leases: Vec<Portion>, moves: &[Move]) -> Vec<usize> {
    apply(&mut leases, moves);
    counts(workers, &leases)
}

fn load_moves(candidates: &[Candidate], leases: &[Portion], balance: bool, seed: u64) -> Vec<Move> {
    by_load(candidates, leases, &LoadOptions::default(), balance, |lease| {
        draw(seed, "move", "", lease as u64)
    })
}

/// Both rules.
fn both(candidates: &[Candidate], leases: &[Portion], balance: bool, seed: u64) -> [Vec<Move>; 2] {
    [by_count(candidates, leases, balance), load_moves(candidates, leases, balance, seed)]
}

/// Whether loads are even, by both rules.
fn are_even(candidates: &[Candidate], leases: &[Portion]) -> [bool; 2] {
    let owner = |lease: &Portion| match lease.owner {
        Owner::Candidate(index) => Some(index),
        Owner::Nobody | Owner::Other => None,
    };
    let load = |lease: &Portion| Load {
        owner: owner(lease),
        leases: 1,
        known: u32::from(lease.throughput.is_some()),
        throughput: lease.throughput.unwrap_or(0).into(),
    };
    let loads: Vec<Load> = leases.iter().map(load).collect();
    let light = |below| {
        let known = leases.iter().filter_map(move |lease| Some((owner(lease), lease.throughput?)));
        known.filter(move |(_, throughput)| *throughput < below)
    };
    [
        is_even_by_count(candidates, &loads),
        is_even_by_load(candidates, &loads, light, &LoadOptions::default()),
    ]
}

fn metric() -> impl Strategy<Value = FleetMetric> {
    let value = prop_oneof![4 => 0..=100 * ONE as i64, 1 => Just(-1), 1 => Just(0)];
    let last = prop_oneof![8 => 0..=100 * ONE as i64, 1 => Just(-1)];
    let recent =
        (prop::collection::vec(value, 0..4), prop::option::of(last)).prop_map(|(mut recent, last)| {
            recent.extend(last);
            recent
        });
    ("[CM]", recent, 0..=100 * ONE as i64).prop_map(|(name, recent, limit)| FleetMetric {
        name,
        recent,
        limit,
    })
}

/// Workers with different names, with and without metrics and limits.
fn fleet(most: usize) -> impl Strategy<Value = Vec<Candidate>> {
    let metrics = prop_oneof![Just(Vec::new()), prop::collection::vec(metric(), 0..3)];
    let one = (metrics, prop::option::weighted(0.3, 0..6u32));
    prop::collection::btree_map("[a-d]{1,3}", one, 0..=most).prop_map(|named| {
        let candidate = |(id, (metrics, most)): (String, _)| Candidate { id: id.into(), metrics, most };
        named.into_iter().map(candidate).collect()
    })
}

/// A lease of a fleet of up to this many workers.
fn portion(workers: usize) -> impl Strategy<Value = Portion> {
    let owner = prop_oneof![
        3 => (0..workers.max(1)).prop_map(Owner::Candidate),
        1 => Just(Owner::Nobody),
        1 => Just(Owner::Other),
    ];
    let throughput = prop::option::weighted(0.8, prop_oneof![1 => Just(0), 4 => 0..1_000 * ONE]);
    (owner, throughput, any::<bool>(), any::<bool>())
        .prop_map(|(owner, throughput, available, movable)| Portion { owner, throughput, available, movable })
}

fn fleet_and_leases() -> impl Strategy<Value = (Vec<Candidate>, Vec<Portion>)> {
    (fleet(8), prop::collection::vec(portion(8), 0..40))
}

proptest! {
    #[test]
    fn moves_are_allowed((candidates, leases) in fleet_and_leases(), balance: bool, seed: u64) {
        for moves in both(&candidates, &leases, balance, seed) {
            let mut after = leases.clone();
            apply(&mut after, &moves);
            let before = counts(8, &leases);
            let after = counts(8, &after);
            let moved: BTreeSet<usize> = moves.iter().map(|step| step.lease).collect();
            prop_assert_eq!(moved.len(), moves.len(), "a lease moves once");
            for step in &moves {
                let lease = &leases[step.lease];
                prop_assert_ne!(lease.owner, Owner::Candidate(step.to));
                let plainly_owned = matches!(lease.owner, Owner::Candidate(owner) if owner < candidates.len());
                prop_assert!(lease.available || balance && lease.movable && plainly_owned);
                if let Some(most) = candidates[step.to].most {
                    prop_assert!(after[step.to] <= (most as usize).max(before[step.to]));
                }
            }
        }
    }

    #[test]
    fn every_available_lease_is_placed_while_there_is_room(
        (mut candidates, leases) in fleet_and_leases(), seed: u64,
    ) {
        for metric in candidates.iter_mut().flat_map(|candidate| &mut candidate.metrics) {
            metric.recent.retain(|value| *value >= 0);
            metric.limit += 1;
        }
        for moves in both(&candidates, &leases, false, seed) {
            let mut after = leases.clone();
            apply(&mut after, &moves);
            let after_counts = counts(8, &after);
            for lease in after.iter().filter(|lease| lease.available) {
                for (n, candidate) in candidates.iter().enumerate() {
                    let full = candidate.most.is_some_and(|most| after_counts[n] >= most as usize);
                    prop_assert!(full || lease.owner == Owner::Candidate(n));
                }
            }
        }
    }

    /// The order of workers in the list does not matter: ids tell equal workers apart.
    #[test]
    fn the_order_of_workers_does_not_matter(
        (candidates, leases) in fleet_and_leases(),
        balance: bool,
        seed: u64,
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let order: Vec<usize> = order.into_iter().filter(|n| *n < candidates.len()).collect();
        let shuffled: Vec<Candidate> = order.iter().map(|n| candidates[*n].clone()).collect();
        let renamed = |lease: &Portion| Portion {
            owner: match lease.owner {
                Owner::Candidate(n) => order.iter().position(|known| *known == n).map_or(Owner::Other, Owner::Candidate),
                owner => owner,
            },
            ..lease.clone()
        };
        let renamed: Vec<Portion> = leases.iter().map(renamed).collect();
        let plain = both(&candidates, &leases, balance, seed);
        for (plain, mut shuffled) in plain.into_iter().zip(both(&shuffled, &renamed, balance, seed)) {
            for step in &mut shuffled {
                step.to = order[step.to];
            }
            prop_assert_eq!(plain, shuffled);
        }
    }

    /// The leader's look in place of all rows: where it finds the loads even, no lease moves.
    #[test]
    fn nothing_moves_where_loads_are_even((candidates, mut leases) in fleet_and_leases(), seed: u64) {
        leases.retain(|lease| !lease.available);
        let even = are_even(&candidates, &leases);
        for (even, moves) in even.into_iter().zip(both(&candidates, &leases, true, seed)) {
            prop_assert!(!even || moves.is_empty(), "{:?}", moves);
        }
    }

    /// Loads are checked to be numbers where they are compared (`Loads::open`).
    #[test]
    fn any_numbers_do(
        metrics in prop::collection::vec((prop::collection::vec(any::<i64>(), 0..4), any::<i64>()), 1..5),
        throughputs in prop::collection::vec((prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..9usize), 0..20),
        percents: (u32, u32),
        seed: u64,
    ) {
        let mut candidates = workers(3);
        for (n, (mut recent, limit)) in metrics.into_iter().enumerate() {
            recent.extend([[i64::MAX, 0, 1][n % 3]]);
            let metrics = vec![FleetMetric { name: "C".into(), recent, limit: limit.max(1) }];
            candidates.push(Candidate { metrics, ..plain(&format!("m{n}")) });
        }
        let options = LoadOptions {
            rebalance_threshold_percent: percents.0,
            dampening_percent: percents.1,
            allow_overshoot: true,
        };
        let leases = throughputs.into_iter().map(|(throughput, owner)| match owner {
            8 => free(throughput),
            owner => held(owner, throughput),
        });
        let leases: Vec<Portion> = leases.collect();
        let moves = by_load(&candidates, &leases, &options, true, |lease| seed ^ lease as u64);
        let placed = moves.iter().filter(|step| leases[step.lease].available).count();
        prop_assert_eq!(placed, leases.iter().filter(|lease| lease.available).count());
    }
}

#[test]
fn without_workers_or_leases_nothing_moves() {
    assert_eq!(both(&[], &[free(1), free(None)], true, 0), [[], []]);
    assert_eq!(both(&workers(3), &[], true, 0), [[], []]);
}

#[test]
fn loads_within_the_threshold_are_even() {
    let share =
        |first: usize| -> Vec<Portion> { (0..100).map(|n| held(usize::from(n >= first), ONE)).collect() };
    assert_eq!(are_even(&workers(2), &share(50)), [true, true]);
    assert_eq!(are_even(&workers(2), &share(54)), [false, true]);
    assert_eq!(are_even(&workers(2), &share(60)), [false, false]);
    assert_eq!(are_even(&workers(3), &share(50)), [false, false]);
    // With reports of hosts, the leases do not decide.
    let hosts = [busy("a", 50, 100), busy("b", 50, 100)];
    assert_eq!(are_even(&hosts, &share(60)), [false, true]);
    let hosts = [busy("a", 70, 100), busy("b", 40, 100)];
    assert_eq!(are_even(&hosts, &share(50)), [true, false]);
    // Without throughput, numbers tell.
    let idle = [held(0, None), held(0, None), held(1, None)];
    assert_eq!(are_even(&workers(2), &idle), [true, true]);
    assert_eq!(are_even(&workers(2), &idle[..2]), [false, false]);
}

#[test]
fn a_worker_that_is_listed_twice_counts_once() {
    let mut listed = workers(3);
    let (again, third) = (listed[0].clone(), listed[2].clone());
    let once = listed.clone();
    listed = vec![listed[0].clone(), again, listed[1].clone(), third];
    let leases: Vec<Portion> = (0..9).map(|n| free(n * ONE)).collect();
    for (twice, once) in both(&listed, &leases, true, 0).into_iter().zip(both(&once, &leases, true, 0)) {
        let twice: Vec<usize> = twice.iter().map(|step| [0, 9, 1, 2][step.to]).collect();
        let once: Vec<usize> = once.iter().map(|step| step.to).collect();
        assert_eq!(twice, once);
    }
    // The leases of the second entry are the worker's, too.
    let held = [held(1, ONE), held(0, ONE), free(ONE), free(ONE), free(ONE), free(ONE)];
    for moves in both(&listed, &held, true, 0) {
        assert_eq!(moves.iter().filter(|step| step.to < 2).count(), 0, "{moves:?}");
    }
}

#[test]
fn a_lease_goes_to_another_than_the_owner_that_failed() {
    let failed = |throughput| Portion { available: true, ..held(0, throughput) };
    for throughput in [0, ONE] {
        // Worker 0 has no lease, so would be the first.
        let leases = [failed(throughput), held(1, throughput), held(1, throughput)];
        for moves in both(&workers(2), &leases, false, 0) {
            assert_eq!(moves, [Move { lease: 0, to: 1 }]);
        }
        for moves in both(&workers(1), &leases[..1], true, 0) {
            assert_eq!(moves, []);
        }
        // A lease that a worker could not process does not hinder other leases.
        for moves in both(&workers(1), &[failed(throughput), free(throughput)], true, 0) {
            assert_eq!(moves, [Move { lease: 1, to: 0 }]);
        }
    }
}

#[test]
fn a_worker_without_measures_gets_nothing_unless_nobody_has_any() {
    let mut candidates = vec![busy("a", 10, 80), busy("b", 50, 80), busy("c", 20, 0)];
    candidates[0].metrics[0].recent.push(-1);
    let leases = [free(ONE), free(ONE), free(ONE), free(ONE)];
    for moves in both(&candidates, &leases, true, 0) {
        assert!(moves.iter().all(|step| step.to == 1), "{moves:?}");
        assert_eq!(moves.len(), 4);
    }
    candidates[1].metrics[0].recent.push(-1);
    for moves in both(&candidates, &leases[..3], true, 0) {
        let to: BTreeSet<usize> = moves.iter().map(|step| step.to).collect();
        assert_eq!(to, BTreeSet::from([0, 1, 2]));
    }
}

#[test]
fn a_large_fleet_shares_evenly() {
    let candidates = workers(1_000);
    let leases: Vec<Portion> = (0..100_000).map(|_| free(ONE)).collect();
    let busy: Vec<Portion> = (0..100_000).map(|n| held(n % 10, ONE)).collect();
    for moves in both(&candidates, &leases, true, 0) {
        assert!(counts_after(1_000, leases.clone(), &moves).iter().all(|count| *count == 100));
    }
    let moved = load_moves(&candidates, &busy, true, 0).len();
    // Less than 60 % of the leases that each of ten workers has above 100.
    assert_eq!(moved, 10 * (9_900 * 60 / 100 - 1));
    let moves = by_count(&candidates, &busy, true);
    assert!(counts_after(1_000, busy, &moves).iter().all(|count| *count == 100));
}
