//! Leases by what workers report, and by throughput.

use super::*;
use crate::leader_assignment::measure::smoothed;

#[test]
fn a_metric_is_smoothed_over_what_was_captured() {
    let metric = |recent: &[i64]| FleetMetric { name: "C".into(), recent: recent.to_vec(), limit: 1 };
    assert_eq!(smoothed(&metric(&[10, 20, -1, 40])), 27.5);
    assert_eq!(smoothed(&metric(&[-1, 8])), 8.0);
    assert_eq!(smoothed(&metric(&[-1])), 0.0);
    assert_eq!(smoothed(&metric(&[])), 0.0);
}

/// Two workers at 70 % and 40 %, with leases of 700 and 400 KiB/s. The average is 55 %, and a worker's share 550 KiB/s.
fn two(first: &[u64]) -> Vec<Portion> {
    assert_eq!(first.iter().sum::<u64>(), 7_000);
    let first = first.iter().map(|tenths| held(0, tenths * ONE / 10));
    first.chain((0..4).map(|_| held(1, 100 * ONE))).collect()
}

fn moved(candidates: &[Candidate], leases: &[Portion]) -> usize {
    let moves = load_moves(candidates, leases, true, 7);
    assert!(moves.iter().all(|step| step.to == 1 && step.lease < leases.len() - 4));
    moves.len()
}

#[test]
fn the_busy_worker_gives_sixty_percent_of_its_excess() {
    let candidates = [busy("a", 70, 100), busy("b", 40, 100)];
    // 90 KiB/s are to be moved; the moved load stays below this.
    assert_eq!(moved(&candidates, &two(&[100; 70])), 8);
    assert_eq!(moved(&candidates, &two(&[280; 25])), 3);
    // No lease is small enough: the smallest is moved if 15 % at the destination have room for it: 150 KiB/s.
    assert_eq!(moved(&candidates, &two(&[1_499, 1_499, 2_000, 2_002])), 1);
    assert_eq!(moved(&candidates, &two(&[1_501, 1_501, 2_000, 1_998])), 0);
    // Unless overshooting is not wanted.
    let options = LoadOptions { allow_overshoot: false, ..LoadOptions::default() };
    let leases = two(&[1_499, 1_499, 2_000, 2_002]);
    assert_eq!(by_load(&candidates, &leases, &options, true, |_| 0), []);
    // 10 % off the average are borne: 60 and 50 are within, 61 and 49 are not.
    let leases = two(&[100; 70]);
    assert_eq!(moved(&[busy("a", 60, 100), busy("b", 50, 100)], &leases), 0);
    assert_ne!(moved(&[busy("a", 61, 100), busy("b", 49, 100)], &leases), 0);
    assert_eq!(load_moves(&candidates, &leases, false, 7), []);
}

#[test]
fn a_worker_above_its_limit_gives_and_one_near_it_gets_no_more() {
    let leases = two(&[100; 70]);
    // Both are near the average.
    assert_eq!(moved(&[busy("a", 56, 100), busy("b", 54, 100)], &leases), 0);
    // 700 * (56 - 50) / 56 * 0.6 = 45, and 54 + 1 are at the average.
    assert_eq!(moved(&[busy("a", 56, 50), busy("b", 54, 100)], &leases), 1);
    // 40 + 3 are at the limit.
    assert_eq!(moved(&[busy("a", 70, 100), busy("b", 40, 43)], &leases), 3);
    assert_eq!(moved(&[busy("a", 70, 100), busy("b", 40, 39)], &leases), 0);
}

#[test]
fn the_metric_with_most_to_move_decides() {
    let with = |id: &str, values: [i64; 2]| {
        let mut candidate = busy(id, values[0], 100);
        let memory = busy(id, values[1], 100).metrics.remove(0);
        candidate.metrics.push(FleetMetric { name: "M".into(), ..memory });
        candidate
    };
    let leases: Vec<Portion> = (0..100).map(|n| held(n % 2, 10 * ONE)).collect();
    // By C, the first gives; by M, the second gives more. Worker c gets the lease, as each of the other two is above
    // one average.
    let candidates = [with("a", [60, 30]), with("b", [40, 60]), with("c", [40, 30])];
    let moves = load_moves(&candidates, &leases, true, 7);
    assert!(moves.iter().all(|step| step.to == 2 && leases[step.lease].owner == Owner::Candidate(1)));
    assert!(!moves.is_empty());
}

#[test]
fn the_least_busy_worker_gets_what_is_free() {
    let candidates = [busy("a", 70, 100), busy("b", 20, 100), busy("c", 60, 100)];
    let leases: Vec<Portion> = (0..6).map(|n| held(n % 3, ONE)).chain([free(ONE)]).collect();
    assert_eq!(load_moves(&candidates, &leases, false, 0), [Move { lease: 6, to: 1 }]);
    // Of ten leases, a worker's share is 3.33: a lease adds 15 of the average of 50 %. After three, worker b is at 65 %.
    let leases: Vec<Portion> = leases.into_iter().chain(vec![free(ONE); 3]).collect();
    let to: Vec<usize> = load_moves(&candidates, &leases, false, 0).iter().map(|step| step.to).collect();
    assert_eq!(to, [1, 1, 1, 2]);
}

#[test]
fn an_idle_worker_comes_before_one_with_little() {
    let leases = [held(1, 2 * ONE), held(2, 10 * ONE), held(2, 10 * ONE), free(ONE)];
    assert_eq!(load_moves(&workers(3), &leases, false, 0), [Move { lease: 3, to: 0 }]);
}

#[test]
fn without_throughput_everyone_gets_a_share() {
    for throughput in [None, Some(0)] {
        for n in 3..6 {
            let mut leases = vec![free(throughput); 2 * n + 1];
            let moves = load_moves(&workers(n), &leases, true, 0);
            assert_eq!(moves, by_count(&workers(n), &leases, true));
            apply(&mut leases, &moves);
            let shares = counts(n, &leases);
            assert!(shares.iter().all(|count| (2..=3).contains(count)), "{shares:?}");
        }
    }
    // Where hosts are measured, too.
    let candidates = [busy("a", 70, 100), busy("b", 20, 100), plain("c")];
    let leases = vec![free(None); 6];
    assert_eq!(counts_after(3, leases.clone(), &load_moves(&candidates, &leases, true, 0)), [2, 2, 2]);
}

#[test]
fn idle_leases_and_idle_hosts_are_shared_out_too() {
    let mut leases = vec![free(0); 31];
    leases[0] = free(100 * ONE);
    let moves = load_moves(&workers(4), &leases, true, 0);
    apply(&mut leases, &moves);
    assert_eq!(counts(4, &leases), [1, 10, 10, 10]);
    // The averages of metrics are 0.
    let idle = [busy("a", 0, 100), busy("b", 0, 100), busy("c", 0, 100)];
    let leases = vec![free(ONE); 6];
    assert_eq!(counts_after(3, leases.clone(), &load_moves(&idle, &leases, true, 0)), [2, 2, 2]);
}

#[test]
fn a_fleet_that_starts_shares_by_throughput() {
    let leases = [free(6 * ONE), free(2 * ONE), free(2 * ONE), free(2 * ONE)];
    let to: Vec<usize> = load_moves(&workers(2), &leases, true, 0).iter().map(|step| step.to).collect();
    assert_eq!(to, [0, 1, 1, 1]);
}

#[test]
fn a_destination_that_refuses_is_asked_for_the_next_source() {
    // The average is 50. No worker has room for a lease of 45 of the first worker; the second worker has small leases.
    let mut leases = vec![held(0, 45 * ONE), held(0, 45 * ONE)];
    leases.extend((0..16).map(|_| held(1, 5 * ONE)));
    leases.extend([held(2, 10 * ONE), held(2, 10 * ONE), held(3, 10 * ONE)]);
    let moves = load_moves(&workers(4), &leases, true, 3);
    let moves: Vec<(Owner, usize)> = moves.iter().map(|step| (leases[step.lease].owner, step.to)).collect();
    // With 20 leases, the last worker has more leases than the third worker.
    let expected = [3, 3, 2].map(|to| (Owner::Candidate(1), to));
    assert_eq!(moves, expected);
}

#[test]
fn two_busy_leases_are_separated() {
    let mut leases = vec![held(0, 100 * ONE), held(0, 100 * ONE)];
    leases.extend((1..6).map(|owner| held(owner, ONE)));
    let moves = load_moves(&workers(7), &leases, true, 0);
    assert_eq!(moves.len(), 1);
    assert_eq!(moves[0].to, 6);
    apply(&mut leases, &moves);
    // Neither can be made less busy.
    assert_eq!(load_moves(&workers(7), &leases, true, 0), []);
}
