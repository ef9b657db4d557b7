//! Leases of constant throughput, shared out by load again and again among workers without metrics: it comes to an end.

use super::*;
use crate::leader_assignment::by_load::Scale;

/// The weight of the leases of each worker.
fn carried(workers: usize, leases: &[Portion]) -> Vec<u128> {
    let mut carried = vec![0; workers];
    let scale = Scale::of(leases.iter().map(|lease| lease.throughput)).expect("some throughput");
    for lease in leases {
        if let (Owner::Candidate(owner), false) = (lease.owner, lease.available) {
            carried[owner] += u128::from(scale.weight(lease.throughput));
        }
    }
    carried
}

fn squares(carried: &[u128]) -> u128 {
    carried.iter().map(|weight| weight * weight).sum()
}

/// Rounds without a move, each with new draws; afterwards no further move is expected.
const QUIET: u64 = 8;
/// More rounds than any of these fleets needs.
const ROUNDS: u64 = 200;

/// Shares out until nothing moves. Checks that each round makes loads more even.
fn settle(candidates: &[Candidate], leases: &mut [Portion], options: &LoadOptions, seed: u64) -> u64 {
    let n = candidates.len();
    let run = |leases: &[Portion], round: u64| {
        by_load(candidates, leases, options, true, |lease| draw(seed, "move", "", round << 32 | lease as u64))
    };
    let first = run(leases, 0);
    apply(leases, &first);
    let (mut last, mut before) = (0, squares(&carried(n, leases)));
    for round in 1..ROUNDS {
        let moves = run(leases, round);
        if moves.is_empty() && round > last + QUIET {
            return last;
        }
        if !moves.is_empty() {
            last = round;
            apply(leases, &moves);
            let after = squares(&carried(n, leases));
            assert!(after < before, "loads become more even: {moves:?}");
            before = after;
        }
    }
    panic!("expected that nothing moves after {ROUNDS} rounds, found moves in round {last}");
}

fn leases_of(workers: usize) -> impl Strategy<Value = Vec<Portion>> {
    let throughput = prop_oneof![
        1 => Just(None),
        2 => (0..5u64).prop_map(Some),
        4 => (100..1_000u64).prop_map(Some),
        1 => (1_000..20_000u64).prop_map(Some),
    ];
    let owner = prop_oneof![6 => (0..workers).prop_map(Some), 1 => Just(None)];
    let lease = (throughput, owner, any::<u8>()).prop_map(|(throughput, owner, kind)| match (owner, kind) {
        (Some(owner), 0..20) => Portion { movable: false, ..held(owner, throughput) },
        (Some(_), 20..60) => Portion { owner: Owner::Other, ..held(0, throughput) },
        (Some(owner), _) => held(owner, throughput),
        (None, _) => free(throughput),
    });
    // One of the leases has enough throughput that all leases are weighed.
    prop::collection::vec(lease, 1..40).prop_map(|mut leases| {
        leases.push(held(0, 100 * ONE));
        leases
    })
}

/// So many workers alone have leases.
fn among(n: usize, leases: &mut [Portion]) {
    for lease in leases {
        if let Owner::Candidate(owner) = &mut lease.owner {
            *owner %= n;
        }
    }
}

proptest! {
    #[test]
    fn leases_of_constant_throughput_come_to_rest(
        n in 1..7usize,
        mut leases in leases_of(6),
        limits in prop::collection::vec(prop::option::weighted(0.2, 0..10u32), 6),
        threshold in prop_oneof![Just(0), Just(10), 0..60u32],
        dampening in prop_oneof![Just(60), 1..120u32],
        allow_overshoot: bool,
        seed: u64,
    ) {
        among(n, &mut leases);
        let mut candidates = workers(n);
        for (candidate, most) in candidates.iter_mut().zip(limits) {
            candidate.most = most;
        }
        let options = LoadOptions {
            rebalance_threshold_percent: threshold,
            dampening_percent: dampening,
            allow_overshoot,
        };
        settle(&candidates, &mut leases, &options, seed);
    }

    /// A giver had more than the average and keeps more than the taker had before; without overshooting, more than the
    /// average.
    #[test]
    fn who_gives_keeps_enough(
        n in 2..7usize, mut leases in leases_of(6), allow_overshoot: bool, seed: u64,
    ) {
        among(n, &mut leases);
        leases.iter_mut().for_each(|lease| lease.available = false);
        let options = LoadOptions { allow_overshoot, ..LoadOptions::default() };
        let moves = by_load(&workers(n), &leases, &options, true, |lease| draw(seed, "move", "", lease as u64));
        let before = carried(n, &leases);
        let total: u128 = before.iter().sum();
        let mut after = leases.clone();
        apply(&mut after, &moves);
        let kept = carried(n, &after);
        for step in &moves {
            let Owner::Candidate(from) = leases[step.lease].owner else {
                panic!("only what candidates have is moved");
            };
            prop_assert!(before[from] * n as u128 > total);
            prop_assert!(before[step.to] * (n as u128) < total);
            prop_assert!(kept[from] > before[step.to]);
            prop_assert!(allow_overshoot || kept[from] * n as u128 > total);
        }
    }

    /// Leases that are all alike end as even as by number, or within the threshold.
    #[test]
    fn like_leases_are_shared_evenly(n in 1..7usize, owners in prop::collection::vec(0..6usize, 1..60), seed: u64) {
        let mut leases: Vec<Portion> = owners.iter().map(|owner| held(owner % n, ONE)).collect();
        settle(&workers(n), &mut leases, &LoadOptions::default(), seed);
        let after = counts(n, &leases);
        let even = after.iter().max().unwrap() - after.iter().min().unwrap() <= 1;
        let near = |count: &usize| (9 * leases.len()..=11 * leases.len()).contains(&(10 * n * count));
        prop_assert!(even || after.iter().all(near), "{after:?}");
    }
}

/// Beside a worker that is no candidate, a lease counted by the share of all throughput would go to and fro: the lease
/// is 20 of a share of 100, but 20 of the candidates' average of 50.
#[test]
fn leases_of_others_make_none_go_to_and_fro() {
    let mut leases: Vec<Portion> = (0..5).map(|n| held(usize::from(n > 2), 20 * ONE)).collect();
    leases.push(Portion { owner: Owner::Other, ..held(0, 100 * ONE) });
    assert_eq!(carried(2, &leases), [60, 40].map(|weight| weight * u128::from(ONE)));
    assert_eq!(load_moves(&workers(2), &leases, true, 0), []);
}

/// With a threshold of 0 %, a worker of just the average is no source: its only lease would go to and fro.
#[test]
fn a_threshold_of_nothing_swaps_no_leases() {
    let leases = [held(0, 3 * ONE), held(1, 6 * ONE)];
    let options = LoadOptions { rebalance_threshold_percent: 0, ..LoadOptions::default() };
    // The average is 3, and the third worker has no lease.
    assert_eq!(by_load(&workers(3), &leases, &options, true, |_| 0), []);
}
