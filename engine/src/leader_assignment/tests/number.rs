//! Leases by their number.

use super::*;

fn shared(held_by: &[usize], free_ones: usize) -> Vec<usize> {
    let mut leases: Vec<Portion> = Vec::new();
    for (worker, count) in held_by.iter().enumerate() {
        leases.extend((0..*count).map(|_| held(worker, None)));
    }
    leases.extend((0..free_ones).map(|_| free(None)));
    let candidates = workers(held_by.len());
    let moves = by_count(&candidates, &leases, true);
    apply(&mut leases, &moves);
    assert_eq!(by_count(&candidates, &leases, true), [], "one run is enough");
    counts(candidates.len(), &leases)
}

#[test]
fn everyone_gets_a_share() {
    assert_eq!(shared(&[0, 0, 0], 4), [2, 1, 1]);
    assert_eq!(shared(&[2, 2, 2, 0], 0), [2, 2, 1, 1]);
    assert_eq!(shared(&[9, 0, 0], 0), [3, 3, 3]);
    assert_eq!(shared(&[3, 3, 3, 1], 0), [3, 3, 2, 2]);
    assert_eq!(shared(&[5, 1], 2), [4, 4]);
    assert_eq!(shared(&[1, 0, 0], 0), [1, 0, 0]);
}

#[test]
fn without_balance_only_available_leases_are_placed() {
    let leases = [held(0, None), held(0, None), held(0, None), free(None)];
    assert_eq!(by_count(&workers(2), &leases, false), [Move { lease: 3, to: 1 }]);
    assert_eq!(by_count(&workers(2), &leases, true), [Move { lease: 3, to: 1 }, Move { lease: 0, to: 1 }]);
}

#[test]
fn an_immovable_lease_counts_and_stays() {
    let fixed = || Portion { movable: false, ..held(0, None) };
    let leases = [fixed(), fixed(), fixed(), fixed(), held(1, None), held(1, None), held(1, None)];
    // Worker 0 has most, and gives nothing.
    assert_eq!(by_count(&workers(3), &leases, true), [Move { lease: 4, to: 2 }]);
}

#[test]
fn limits_are_kept() {
    let mut candidates = workers(3);
    candidates[0].most = Some(1);
    candidates[1].most = Some(0);
    let leases = vec![free(None); 6];
    assert_eq!(counts_after(3, leases.clone(), &by_count(&candidates, &leases, true)), [1, 0, 5]);
    candidates[2].most = Some(3);
    assert_eq!(counts_after(3, leases.clone(), &by_count(&candidates, &leases, true)), [1, 0, 3]);
}

proptest! {
    /// One run leaves no lease to move, and then no worker has two more leases than another worker.
    #[test]
    fn one_run_evens_out(
        leases in prop::collection::vec(prop_oneof![
            4 => (0..6usize).prop_map(|owner| held(owner, None)),
            1 => Just(free(None)),
            1 => Just(Portion { owner: Owner::Other, ..held(0, None) }),
        ], 0..60),
        n in 1..6usize,
    ) {
        let candidates = workers(n);
        let mut leases = leases;
        let before = counts(6, &leases);
        let moves = by_count(&candidates, &leases, true);
        let shared = before[..n].iter().sum::<usize>() + leases.iter().filter(|lease| lease.available).count();
        for step in &moves {
            let lease = &leases[step.lease];
            if let (false, Owner::Candidate(owner)) = (lease.available, lease.owner) {
                prop_assert!(before[owner] > shared / n, "who gives has more than the average");
            }
        }
        apply(&mut leases, &moves);
        let after = &counts(6, &leases)[..n];
        prop_assert!(after.iter().max().unwrap() - after.iter().min().unwrap() <= 1);
        prop_assert_eq!(by_count(&candidates, &leases, true), []);
    }

    /// With limits and unmovable leases: no worker with room has two fewer leases than a worker that may give.
    #[test]
    fn one_run_is_enough((candidates, mut leases) in fleet_and_leases()) {
        for lease in leases.iter_mut().filter(|lease| lease.available) {
            lease.owner = Owner::Nobody;
        }
        let moves = by_count(&candidates, &leases, true);
        apply(&mut leases, &moves);
        let again = by_count(&candidates, &leases, true);
        let expected: Vec<Move> = Vec::new();
        prop_assert_eq!(again, expected);
    }
}
