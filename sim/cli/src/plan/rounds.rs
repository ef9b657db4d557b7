//! The assignment of leases, round by round until nothing moves: by the functions of a worker's own decisions.
//!
//! In a round, each worker looks at the table once and acts, one after another in the order of names; then owners hand
//! requested leases over. Each worker draws the leases to move from its own seed. No file holds this seed, so the plan
//! draws with a seed of its own.

use super::Assignment;
use super::fleet::Fleet;
use leasehold_engine::config::Config;
use leasehold_engine::ids::{LeaseIx, WorkerId};
use leasehold_engine::internals::draw;
use leasehold_engine::internals::leader_assignment::{
    self, Candidate, LoadOptions, Portion, Rules, by_count, by_load, candidates,
};
use leasehold_engine::internals::self_assignment::{
    self, Balance, Counting, Ours, Standing, Way, drawn, is_plainly_of, may_be_requested, number,
};
use leasehold_engine::policy::{Assign, Policies, Steal};
use leasehold_engine::row::{HandsOver, LeaseRow};
use std::collections::BTreeSet;

/// The highest number of rounds.
const MAX_ROUNDS: usize = 1_000;
/// Nor more than so many looks at a row in all, but twenty rounds at least.
const MAX_LOOKS: usize = 50_000_000;
const MIN_ROUNDS: usize = 20;

/// How assignment goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Course {
    /// The moves of each round. The last round moves a lease.
    pub rounds: Vec<Vec<Assignment>>,
    /// It comes to rest.
    pub rests: bool,
    /// Leases by worker before the first round.
    pub counts: Vec<(WorkerId, usize)>,
}

/// The rows of unfinished leases, in the order of their keys, and what is known of the workers.
struct Table<'a> {
    rows: Vec<LeaseRow>,
    fleet: &'a Fleet,
    policies: Policies,
    workers: BTreeSet<WorkerId>,
    /// The round under way, and its moves.
    round: u64,
    steps: Vec<Assignment>,
}

/// The course of assignment from these leases. `load`: a leader assigns by load.
pub(super) fn course(leases: &[&LeaseRow], fleet: &Fleet, policies: Policies, load: bool) -> Course {
    if policies.assign == Assign::Rank {
        return Course { rests: true, ..Course::default() };
    }
    let mut table = Table::new(leases, fleet, policies);
    let mut course = Course { counts: table.counts(), ..Course::default() };
    let looks = (table.rows.len() * table.workers.len()).max(1);
    let most = (MAX_LOOKS / looks).clamp(MIN_ROUNDS, MAX_ROUNDS);
    for round in 1..=most as u64 {
        table.round = round;
        match fleet.rules() {
            Rules::Led => table.led_round(load),
            Rules::Own | Rules::Reporting => table.own_round(),
        }
        let promised = table.hand_over();
        let steps = std::mem::take(&mut table.steps);
        if steps.is_empty() && !promised {
            course.rests = true;
            break;
        }
        // Workers measure their hosts again after leases have moved: no file holds the new values.
        let measured = load && fleet.rules() == Rules::Led && fleet.measures();
        let unknown = measured && steps.iter().any(|step| step.how == "move");
        course.rounds.push(steps);
        if unknown {
            break;
        }
    }
    course
}

impl<'a> Table<'a> {
    fn new(leases: &[&LeaseRow], fleet: &'a Fleet, policies: Policies) -> Self {
        let unfinished = leases.iter().filter(|lease| !lease.checkpoint.is_end());
        let mut rows: Vec<LeaseRow> = unfinished.map(|lease| (*lease).clone()).collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        let owners = rows.iter().filter_map(LeaseRow::actual_owner);
        let mut workers: BTreeSet<WorkerId> = owners.filter(|owner| !fleet.is_dead(owner)).cloned().collect();
        workers.extend(fleet.reporting().cloned());
        Self { rows, fleet, policies, workers, round: 0, steps: Vec::new() }
    }

    fn counts(&self) -> Vec<(WorkerId, usize)> {
        let owns = |worker: &WorkerId, row: &&LeaseRow| row.actual_owner() == Some(worker);
        let count = |worker: &WorkerId| self.rows.iter().filter(|row| owns(worker, row)).count();
        let counts = self.workers.iter().map(|worker| (worker.clone(), count(worker)));
        counts.collect()
    }

    /// Whether no worker renews this lease.
    fn is_left(&self, row: &LeaseRow) -> bool {
        row.actual_owner().is_none_or(|owner| self.fleet.is_dead(owner))
    }

    fn counting<'w>(&self, me: &'w WorkerId) -> Counting<'w> {
        Counting {
            me,
            hands_over: self.policies.steal == Steal::Ask,
            max_leases: Config::default().max_leases(),
        }
    }

    /// The balance of leases for a worker; the rows name its leases.
    fn look(&self, counting: &Counting<'_>) -> Balance {
        let mut balance = Balance::begin(counting, std::iter::empty());
        for (index, row) in self.rows.iter().enumerate() {
            let held = row.actual_owner() == Some(counting.me);
            let next = row.owner.as_ref().filter(|_| row.handing_over.is_some());
            let standing = Standing {
                expired: self.is_left(row),
                // All workers look at the same rows, so each lease is in one worker's share.
                overdue: false,
                // A hand-over to a worker that is dead does not come to an end.
                young: row.owner.as_ref().is_none_or(|next| !self.fleet.is_dead(next)),
                ours: held.then_some(Ours { next, renewed_by: None }),
            };
            balance.count(counting, number(index), row, &standing, || true);
        }
        let speaking = self.rows.iter().filter(|row| !row.hands_over.is_no());
        balance.hear(speaking.filter_map(LeaseRow::actual_owner));
        balance.settle(counting, |ix| *ix);
        balance
    }

    /// Each worker takes its share.
    fn own_round(&mut self) {
        for me in self.workers.clone() {
            let counting = self.counting(&me);
            let balance = self.look(&counting);
            match self_assignment::next(&counting, &balance) {
                None => {}
                Some((Way::Take, need)) => self.take(&counting, &balance, need),
                Some((Way::Request, need)) => self.ask(&counting, &balance, need),
                Some((Way::Steal, need)) => self.steal(&counting, &balance, need),
            }
        }
    }

    /// A draw of a worker, made like the engine's draw, with another seed.
    fn draw(&self, worker: &WorkerId, purpose: &str, ix: LeaseIx) -> u64 {
        let seed = draw(0, "plan", worker.as_str(), 0);
        draw(seed, purpose, self.rows[ix.index()].key.as_str(), self.round)
    }

    fn order(&self, me: &WorkerId, purpose: &str, some: impl Iterator<Item = LeaseIx>) -> Vec<LeaseIx> {
        drawn(some.map(|ix| (self.draw(me, purpose, ix), ix)))
    }

    /// The leases with `holds` true.
    fn which(&self, holds: impl Fn(&LeaseRow) -> bool) -> impl Iterator<Item = LeaseIx> {
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, row)| holds(row)).map(|(index, _)| number(index))
    }

    fn take(&mut self, counting: &Counting<'_>, balance: &Balance, need: u32) {
        let order = self.order(counting.me, "take", balance.available().iter().copied());
        let row_of = |ix: LeaseIx| self.rows.get(ix.index());
        let taking = self_assignment::take(counting, balance, need, order, false, row_of);
        for (ix, more) in taking.order.into_iter().take(taking.now as usize).zip(0..) {
            let reason = format!(
                "{}, and {} has only {} of a fair share of {}",
                self.why_left(ix),
                counting.me,
                balance.of(counting.me) + more,
                balance.target()
            );
            self.step(ix, "take", counting.me, reason);
        }
    }

    fn ask(&mut self, counting: &Counting<'_>, balance: &Balance, need: u32) {
        self_assignment::request(counting, balance, need, u32::MAX, |owner, most| {
            let order = self.order(counting.me, "ask", self.which(|row| may_be_requested(row, owner)));
            let most = most.min(order.len() as u32);
            let reason = uneven(balance, owner, balance.of(owner), counting.me, balance.of(counting.me));
            for ix in order.into_iter().take(most as usize) {
                let reason = format!("{reason}; its owner is asked for it and hands it over");
                self.step(ix, "ask", counting.me, reason);
            }
            most
        });
    }

    fn steal(&mut self, counting: &Counting<'_>, balance: &Balance, need: u32) {
        let claims = self.policies.steal == Steal::Claim;
        let promised = |row: &LeaseRow| row.handing_over.is_some() && row.owner.as_ref() == Some(counting.me);
        let claimed = if claims { self.which(promised).count() as u32 } else { 0 };
        let most = Config::default().max_steals();
        let Some(stealing) = self_assignment::steal(counting, balance, need, claimed, most) else {
            return;
        };
        let theirs = self.which(|row| is_plainly_of(row, stealing.victim));
        let order = self.order(counting.me, "steal", theirs);
        let reason = uneven(balance, stealing.victim, stealing.theirs, counting.me, stealing.ours);
        let (how, act) = match claims {
            true => ("ask", "its owner is asked for it and gives it up"),
            false => ("steal", "some owner does not say that it hands leases over, so it is stolen"),
        };
        for ix in order.into_iter().take(stealing.spare as usize) {
            self.step(ix, how, counting.me, format!("{reason}; {act}"));
        }
    }

    /// The leader assigns unrenewed leases, and moves leases away from overloaded workers.
    fn led_round(&mut self, load: bool) {
        let Some((leader, _)) = self.fleet.leader() else {
            return;
        };
        let candidates: Vec<Candidate> = candidates(self.fleet.live(), leader, None);
        let portion = |row: &LeaseRow| {
            let available = self.is_left(row);
            leader_assignment::portion(Some(row), available, &candidates, is_plainly_of)
        };
        let portions: Vec<Portion> = self.rows.iter().map(portion).collect();
        let draw = |lease: usize| self.draw(leader, "share out", number(lease));
        let moves = match load {
            true => by_load(&candidates, &portions, &LoadOptions::default(), true, draw),
            false => by_count(&candidates, &portions, true),
        };
        let measure = if load { "load" } else { "leases" };
        for one in moves {
            let (ix, to) = (number(one.lease), &candidates[one.to].id);
            if portions[one.lease].available {
                let reason = format!("{}, and {to} has the least {measure}", self.why_left(ix));
                self.step(ix, "assign", to, reason);
            } else {
                let reason = format!("its owner has more {measure} than {to}, and hands it over");
                self.step(ix, "move", to, reason);
            }
        }
    }

    fn why_left(&self, ix: LeaseIx) -> String {
        match self.rows[ix.index()].actual_owner() {
            Some(nobody) if nobody.as_str().is_empty() => "an owner without a name has it".to_owned(),
            Some(dead) => format!("{dead} has it and does not report any more"),
            None => "no worker has it".to_owned(),
        }
    }

    /// Whether a worker hands over its leases on request: a worker of this library does, in formats with requests.
    fn hands_over(&self, worker: &WorkerId) -> HandsOver {
        let mut of_it = self.rows.iter().filter(|row| row.actual_owner() == Some(worker)).peekable();
        let has_none = of_it.peek().is_none();
        let says = has_none || of_it.any(|row| !row.hands_over.is_no());
        match self.policies.steal == Steal::Ask && self.fleet.is_ours(worker).unwrap_or(says) {
            true => HandsOver::Yes,
            false => HandsOver::No,
        }
    }

    fn give(&mut self, ix: LeaseIx, to: &WorkerId) {
        let hands_over = self.hands_over(to);
        let row = &mut self.rows[ix.index()];
        row.owner = Some(to.clone());
        row.handing_over = None;
        row.hands_over = hands_over;
    }

    /// A move of this round: the next owner has the lease at once, or is promised the lease.
    fn step(&mut self, ix: LeaseIx, how: &'static str, to: &WorkerId, reason: String) {
        let row = &mut self.rows[ix.index()];
        let step = Assignment {
            lease_key: row.key.as_str().to_owned(),
            from: row.actual_owner().map(ToString::to_string),
            to: to.to_string(),
            how,
            reason,
        };
        match how {
            "ask" | "move" => row.handing_over = row.owner.replace(to.clone()),
            _ => self.give(ix, to),
        }
        self.steps.push(step);
    }

    /// Owners hand requested leases over. In the first round, the request may come from before the plan. Returns
    /// whether any lease was handed over.
    fn hand_over(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            let (Some(from), Some(to)) = (row.handing_over.clone(), row.owner.clone()) else {
                continue;
            };
            if self.fleet.is_dead(&from) || self.fleet.is_dead(&to) {
                continue;
            }
            any = true;
            if self.round == 1 && !self.steps.iter().any(|step| step.lease_key == row.key.as_str()) {
                let reason = format!("{from} was asked for it before, and hands it over");
                self.step(number(at), "hand-over", &to, reason);
            } else {
                self.give(number(at), &to);
            }
        }
        any
    }
}

fn uneven(balance: &Balance, owner: &WorkerId, theirs: u32, me: &WorkerId, ours: u32) -> String {
    let target = balance.target();
    format!("{owner} has {theirs} leases and {me} {ours}, {target} would be fair")
}

#[cfg(test)]
mod tests;
