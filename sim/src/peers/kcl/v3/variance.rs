//! Assignment by load, the default: free leases go to the worker with the most room, and leases move away from workers
//! above the average.
//!
//! No worker measures its host here, so the load of a worker is the throughput of its leases, in percent of its share
//! of all throughput. Limits of the number of leases and of the throughput of a worker are left out.

use super::assign::{Moves, Seen};
use std::cmp::Ordering;

/// The allowed distance of a worker from the average.
const THRESHOLD: f64 = 0.1;

/// The part of a worker's excess over the average that moves at once.
const DAMPENING: f64 = 0.6;

/// The highest load of a worker, in percent.
const LIMIT: f64 = 100.0;

/// A worker in the queue for leases. Its score is from the beginning of its wait.
#[derive(Clone, Copy, Debug)]
struct Place {
    score: f64,
    worker: usize,
}

/// Java's `PriorityQueue`, the highest score first: among equal scores, the heap decides the order. NaN is equal to NaN
/// and above all numbers.
#[derive(Debug, Default)]
struct Queue(Vec<Place>);

fn order(a: Place, b: Place) -> Ordering {
    let numbers = || b.score.partial_cmp(&a.score);
    numbers().unwrap_or_else(|| b.score.is_nan().cmp(&a.score.is_nan()))
}

impl Queue {
    fn add(&mut self, place: Place) {
        self.0.push(place);
        let mut at = self.0.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if order(place, self.0[parent]).is_ge() {
                break;
            }
            self.0.swap(at, parent);
            at = parent;
        }
    }

    fn poll(&mut self) -> Option<Place> {
        let last = self.0.pop()?;
        let Some(first) = self.0.first_mut() else {
            return Some(last);
        };
        let first = std::mem::replace(first, last);
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < self.0.len() && order(self.0[child], self.0[child + 1]).is_gt() {
                child += 1;
            }
            if child >= self.0.len() || order(last, self.0[child]).is_le() {
                return Some(first);
            }
            self.0.swap(at, child);
            at = child;
        }
    }
}

/// The workers and their leases in the leader's memory.
struct Fleet<'a> {
    seen: &'a [Seen],
    workers: &'a [String],
    /// The throughput of each lease; the average for a lease without a measurement.
    throughput: Vec<f64>,
    /// A worker's share of all throughput.
    share: f64,
    /// The leases of each worker, and their throughput.
    leases: Vec<Vec<usize>>,
    assigned: Vec<f64>,
    /// The load of each worker, and the first average.
    load: Vec<f64>,
    average: f64,
    queue: Queue,
    moves: Moves,
}

impl<'a> Fleet<'a> {
    fn new(seen: &'a [Seen], workers: &'a [String]) -> Self {
        let known: Vec<f64> = seen.iter().filter_map(|seen| seen.lease.throughput).collect();
        let mean = match known.len() {
            0 => 0.0,
            many => known.iter().sum::<f64>() / many as f64,
        };
        let throughput: Vec<f64> = seen.iter().map(|seen| seen.lease.throughput.unwrap_or(mean)).collect();
        let share = mean * seen.len() as f64 / workers.len().max(1) as f64;
        let of = |worker: &String| -> Vec<usize> {
            let is_its = |n: &usize| seen[*n].lease.actual_owner() == Some(worker.as_str());
            (0..seen.len()).filter(is_its).collect()
        };
        let leases: Vec<Vec<usize>> = workers.iter().map(of).collect();
        let assigned: Vec<f64> =
            leases.iter().map(|leases| leases.iter().map(|n| throughput[*n]).sum()).collect();
        // 0 by 0 at first: then every load is NaN.
        let load: Vec<f64> = assigned.iter().map(|kbps| LIMIT * kbps / share).collect();
        let average = load.iter().sum::<f64>() / load.len().max(1) as f64;
        let mut fleet = Self {
            seen,
            workers,
            throughput,
            share,
            leases,
            assigned,
            load,
            average,
            queue: Queue::default(),
            moves: Moves::new(),
        };
        (0..workers.len()).for_each(|worker| fleet.wait(worker));
        fleet
    }

    fn wait(&mut self, worker: usize) {
        let load = self.load[worker];
        let score = match load {
            0.0 => 1.0,
            _ => (self.average - load) / load,
        };
        self.queue.add(Place { score, worker });
    }

    /// The increase of a worker's load by a lease.
    fn step(&self, lease: usize) -> f64 {
        match self.share > 0.0 {
            true => self.throughput[lease] * self.average / self.share,
            false => self.average / (self.seen.len() / self.workers.len().max(1)).max(1) as f64,
        }
    }

    /// A worker may get its own expired lease again: then the row stays unchanged.
    fn assign(&mut self, lease: usize, worker: usize, expired: bool) {
        let known = &self.seen[lease].lease;
        let anew = expired && known.is_handed_over();
        if anew || known.actual_owner() != Some(self.workers[worker].as_str()) {
            self.load[worker] += self.step(lease);
            for (leases, assigned) in self.leases.iter_mut().zip(&mut self.assigned) {
                if leases.contains(&lease) {
                    leases.retain(|known| *known != lease);
                    *assigned -= self.throughput[lease];
                }
            }
            self.leases[worker].push(lease);
            self.assigned[worker] += self.throughput[lease];
            let key = known.key.to_string();
            self.moves.insert(key, self.workers[worker].clone());
        }
        self.wait(worker);
    }

    fn assign_free(&mut self) {
        let mut free: Vec<usize> = (0..self.seen.len()).filter(|n| self.seen[*n].is_free).collect();
        free.sort_by_key(|n| self.seen[*n].lease.grown_us);
        for lease in free {
            let Some(place) = self.queue.poll() else { return };
            self.assign(lease, place.worker, true);
        }
    }

    /// The workers with leases to give and the load to give, the greatest first.
    fn sources(&self) -> Vec<(f64, usize)> {
        let (upper, lower) = (self.average * (1.0 + THRESHOLD), self.average * (1.0 - THRESHOLD));
        let is_off = |load: &f64| *load > upper || *load < lower || *load > LIMIT;
        if !self.load.iter().any(is_off) {
            return Vec::new();
        }
        let all = 0..self.load.len();
        let mut from: Vec<usize> =
            all.clone().filter(|n| self.load[*n] >= upper || self.load[*n] > LIMIT).collect();
        if from.is_empty() {
            from.extend(all.max_by(|a, b| self.load[*a].total_cmp(&self.load[*b])));
        }
        let take = |n: usize| {
            let above = (self.load[n] - self.average) / self.load[n];
            (self.assigned[n] * above * DAMPENING, n)
        };
        let mut sources: Vec<(f64, usize)> = from.into_iter().map(take).collect();
        sources.sort_by(|a, b| b.0.total_cmp(&a.0));
        sources
    }

    /// The leases that a worker gives. If none is small enough, the worker gives its smallest lease.
    fn pick(&self, worker: usize, mut left: f64, draw: &mut impl FnMut(u64) -> u64) -> Vec<usize> {
        let mut leases = self.leases[worker].clone();
        if self.assigned[worker] == 0.0 {
            leases.truncate(1);
            return leases;
        }
        for n in (1..leases.len()).rev() {
            leases.swap(n, draw(n as u64 + 1) as usize);
        }
        let mut picked = Vec::new();
        for lease in &leases {
            if left - self.throughput[*lease] > 0.0 {
                left -= self.throughput[*lease];
                picked.push(*lease);
            }
        }
        if picked.is_empty() {
            let smallest =
                leases.into_iter().min_by(|a, b| self.throughput[*a].total_cmp(&self.throughput[*b]));
            picked.extend(smallest);
        }
        picked
    }

    /// A worker leaves the queue for this round if a lease would lift its load above the average.
    fn balance(&mut self, draw: &mut impl FnMut(u64) -> u64) {
        for (take, worker) in self.sources() {
            for lease in self.pick(worker, take, draw) {
                let Some(place) = self.queue.poll() else { continue };
                let load = self.load[place.worker] + self.step(lease);
                if load > self.average || load > LIMIT {
                    break;
                }
                self.assign(lease, place.worker, false);
            }
        }
    }
}

/// Assigns free and expired leases and, with `balance`, moves leases. `draw` gives a number below its argument.
pub(super) fn share_out(
    seen: &[Seen], workers: &[String], balance: bool, mut draw: impl FnMut(u64) -> u64,
) -> Moves {
    let mut fleet = Fleet::new(seen, workers);
    fleet.assign_free();
    if balance {
        fleet.balance(&mut draw);
    }
    fleet.moves
}

#[cfg(test)]
mod tests {
    use super::super::assign::testing::{names, seen};
    use super::*;

    fn moved(seen: &[Seen], workers: &[&str], balance: bool) -> Vec<String> {
        let moves = share_out(seen, &names(workers), balance, |below| below - 1);
        moves.into_iter().map(|(key, to)| format!("{key} {to}")).collect()
    }

    /// All loads are NaN: of three workers, the first and the last get all leases.
    #[test]
    fn a_fleet_that_starts_leaves_workers_without_a_lease() {
        let seen = seen([(None, None); 4]);
        let moves = moved(&seen, &["a", "b", "c"], true);
        assert_eq!(moves, ["s00 a", "s01 c", "s02 a", "s03 c"]);
    }

    #[test]
    fn a_free_lease_goes_to_who_has_most_room() {
        let seen =
            seen([(Some("a"), Some(9.0)), (Some("b"), Some(5.0)), (Some("c"), Some(7.0)), (None, Some(1.0))]);
        assert_eq!(moved(&seen, &["a", "b", "c"], false), ["s03 b"]);
    }

    #[test]
    fn a_worker_above_the_average_gives_until_others_are_there() {
        let seen = seen([(Some("a"), Some(1.0)); 8]);
        // 60 % of its excess over the average is 2.4: two leases of 1.
        assert_eq!(moved(&seen, &["a", "b"], true).len(), 2);
        assert!(moved(&seen, &["a", "b"], false).is_empty());
    }

    /// Each of two leases is too heavy for the idle worker and would lift the worker above the average.
    #[test]
    fn a_lease_that_is_too_heavy_is_left_beside_an_idle_worker() {
        let seen = seen([(Some("a"), Some(9.0)), (Some("a"), Some(9.0)), (Some("b"), Some(1.0))]);
        assert!(moved(&seen, &["a", "b"], true).is_empty());
    }

    /// The silent owner has most room, and gets its lease again: no write follows.
    #[test]
    fn an_expired_lease_may_be_left_to_the_silent_worker() {
        let mut seen = seen([(Some("a"), Some(0.1)), (Some("b"), Some(9.0))]);
        seen[0].is_free = true;
        assert!(moved(&seen, &["a", "b"], false).is_empty());
    }
}
