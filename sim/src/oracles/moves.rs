//! `fair-shares`: while no worker comes or goes, requested leases move a few times, and then stay.
//!
//! The oracle judges leases requested in a calm. In a calm, no request to the table fails, and no row is edited. No
//! lease is created, finished, or taken from an owner without a hand-over. The rows name the same workers. The calm
//! begins after a scan of the table by each worker since the last disturbance, and after the decision on its earlier
//! requests. Then all workers know the same share, and their own number of missing leases:
//!
//! * A worker requests a lease once because the owner has more than the share. The new owner has no more than the
//!   share, then and later.
//! * A worker requests the lease once more if no owner has more than the share, the owner has just the share, and
//!   another worker lacks several leases. The new owner still lacks a lease afterwards, so no worker requests the lease
//!   from the new owner.
//! * The pages of a scan are of different moments. An owner may count with a lease already handed over and with a lease
//!   received since. So one more move is possible.
//!
//! Workers scan, request leases and receive leases in rounds. As long as some owner has more than the share, each round
//! ends the surplus of the busiest owner: all workers request from this owner first. Afterwards, workers lack fewer
//! leases together than the number of workers. Let each worker lack one lease: the rest shrinks in every round, since
//! an owner with many requests lacks all requested leases but one. So two rounds for each worker are enough.

use super::fact::{Ask, How, Owner, Row, Verb, owner};
use super::{
    EVENTS, Fact, History, LifeNo, Property, REPORTS, REQUESTS, ROWS, Sees, ShardNo, Terms, Time, Verdict,
};
use leasehold_engine::policy::{Assign, Steal};
use std::collections::{BTreeMap, BTreeSet};

/// The greatest number of moves of a lease in a calm.
const MOST_MOVES: usize = 3;
/// The number of rounds for each worker.
const ROUNDS: u64 = 2;

/// A lease requested from its owner.
#[derive(Clone, Copy, Debug)]
struct Move {
    shard: ShardNo,
    asked: Time,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// Whether leases are requested, and no other program moves leases.
    binding: bool,
    /// In true time, from above, in µs: the pause between two scans; the time for which a request counts; the length of
    /// a hand-over.
    interval: Time,
    timeout: Time,
    patience: Time,
    /// The time in which a newly started worker requests few leases, as some owner may have died.
    joining: Time,
    /// The time of the last disturbance: an event after which leases have to move.
    disturbed: Time,
    /// The number of unfinished leases of each worker.
    named: BTreeMap<LifeNo, u32>,
    /// The request time of each lease not handed over yet.
    asked: BTreeMap<ShardNo, Time>,
    /// The moves since the last disturbance.
    made: Vec<Move>,
    /// The start of each life's scan under way.
    scans: BTreeMap<LifeNo, Time>,
    longest_scan: Time,
}

fn lives(row: Option<Row>) -> impl Iterator<Item = LifeNo> {
    let row = row.filter(|row| row.is_open());
    let named = row.map_or([None, None], |row| [row.owner, row.next]);
    named.into_iter().filter_map(|owner| owner?.life())
}

impl Moves {
    pub(super) const SEES: Sees = Sees::all(REPORTS | REQUESTS | ROWS | EVENTS);

    pub(super) fn new(terms: &Terms) -> Self {
        let policies = &terms.config.policies();
        Self {
            binding: policies.assign == Assign::Count && policies.steal == Steal::Ask && !terms.clocks_beyond,
            interval: terms.longest(|config| config.scan_interval().scaled(21, 20)),
            timeout: terms.longest(|config| config.table_timeout()),
            patience: terms.longest(|config| config.hand_over_timeout()),
            joining: terms.longest(|config| config.lease_duration().times(2)),
            ..Self::default()
        }
    }

    fn disturb(&mut self, now: Time) {
        self.disturbed = now;
        self.made.clear();
    }

    pub(super) fn observe(&mut self, now: Time, fact: &Fact, history: &History, _: &mut Verdict) {
        if !self.binding {
            return;
        }
        match *fact {
            Fact::RowChanged { shard, by, verb, before, after, .. } => {
                self.changed(now, shard, by, verb, (before, after), history.shard(shard).before)
            }
            Fact::Asked { life, ask: Ask::ScanPage, .. } => drop(self.scans.entry(life).or_insert(now)),
            Fact::ScanEnded { life } => {
                if let Some(began) = self.scans.remove(&life) {
                    self.longest_scan = self.longest_scan.max(now - began);
                }
            }
            Fact::Answered { ask, how, .. } => {
                let refused = how == How::Refused && matches!(ask, Ask::ScanPage | Ask::Read);
                let of_table = matches!(ask, Ask::ScanPage | Ask::Read | Ask::Write(_));
                if refused || (of_table && matches!(how, How::NotSent | How::Unknown)) {
                    self.disturb(now);
                }
            }
            Fact::Died { life } | Fact::Stopped { life, .. } => {
                self.scans.remove(&life);
                self.disturb(now);
            }
            Fact::Booted { .. }
            | Fact::ShutdownAsked { .. }
            | Fact::GivesUp { .. }
            | Fact::Paused { .. }
            | Fact::Resumed { .. }
            | Fact::Blocked { .. }
            | Fact::Unblocked { .. }
            | Fact::StreamLeft { .. }
            | Fact::StreamBack { .. }
            | Fact::Foreign
            | Fact::LostForGood => self.disturb(now),
            _ => {}
        }
    }

    fn changed(
        &mut self, now: Time, shard: ShardNo, by: Option<LifeNo>, verb: Option<Verb>,
        (before, after): (Option<Row>, Option<Row>), known: Option<Row>,
    ) {
        let is_strange =
            |row: Option<Row>| row.is_some_and(|row| [row.owner, row.next].contains(&Some(Owner::Stranger)));
        if verb == Some(Verb::BeginHandOver) || is_strange(before) || is_strange(after) {
            // Another program has leases, or assigns leases.
            self.binding = false;
            return;
        }
        let mut disturbs = self.name(known, after);
        match verb {
            None | Some(Verb::Create | Verb::End) => disturbs = true,
            // A take from an owner without a hand-over, or of a free lease.
            Some(Verb::Take) => disturbs |= owner(before) != by.map(Owner::Life),
            Some(Verb::Release) => disturbs = true,
            _ => {}
        }
        match verb {
            Some(Verb::Claim) => drop(self.asked.insert(shard, now)),
            Some(Verb::HandOver) => {
                let asked = self.asked.remove(&shard);
                let moved = owner(before) != owner(after);
                self.made.extend(asked.filter(|_| moved).map(|asked| Move { shard, asked }));
            }
            Some(Verb::Take | Verb::Release | Verb::Delete | Verb::End) | None => {
                self.asked.remove(&shard);
            }
            _ => {}
        }
        if disturbs {
            self.disturb(now);
        }
    }

    /// Records the row's names. Returns whether the named workers have changed.
    fn name(&mut self, before: Option<Row>, after: Option<Row>) -> bool {
        let mut is_new = false;
        for life in lives(after) {
            let named = self.named.entry(life).or_insert(0);
            is_new |= *named == 0;
            *named += 1;
        }
        for life in lives(before) {
            if let Some(named) = self.named.get_mut(&life) {
                *named -= 1;
            }
        }
        let known = self.named.len();
        self.named.retain(|_, named| *named > 0);
        is_new || self.named.len() < known
    }

    /// Judges the calm at the end of a world. `since`: the end of the faults.
    pub(super) fn look_at_end(&self, since: Time, verdict: &mut Verdict) {
        if !self.binding {
            return;
        }
        let scan = self.interval + self.longest_scan;
        // A worker whose scan began before the calm requests leases on old facts, and such a request takes a while.
        let calm = self.disturbed.max(since) + scan + 2 * self.timeout;
        let round = scan + 2 * self.timeout + self.patience;
        let until = calm + self.joining + ROUNDS * self.named.len() as u64 * round;
        let in_calm = self.made.iter().filter(|made| made.asked > calm);
        let mut moves: BTreeMap<ShardNo, usize> = BTreeMap::new();
        let mut told = BTreeSet::new();
        for made in in_calm {
            let count = moves.entry(made.shard).or_default();
            *count += 1;
            let (shard, count) = (made.shard, *count);
            let too_often = count > MOST_MOVES;
            if (too_often || made.asked > until) && told.insert(shard) {
                let (workers, after) = (self.named.len(), (made.asked - calm) / 1_000);
                verdict.report(Property::FairShares, made.asked, || {
                    format!(
                        "the lease of shard {shard} was asked for {after} ms into a calm of {workers} workers, and it was the lease's move \
                         number {count}; {MOST_MOVES} are allowed, within {} ms",
                        (until - calm) / 1_000
                    )
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Mark;
    use super::super::testing::{answered, blank, changed, row, show_alone};
    use super::*;
    use leasehold_engine::time::Span;

    const SECOND: u64 = 1_000_000;
    /// By then, every worker knows all rows.
    const CALM: u64 = 100 * SECOND;

    fn terms() -> Terms {
        Terms::plain(
            crate::swarm::named(true)
                .with_scan_interval(Span::from_secs(10))
                .with_hand_over_timeout(Span::from_secs(10)),
        )
    }

    /// Lives 0 and 1 have two leases each.
    fn four() -> Vec<(Time, Fact)> {
        let created = |shard: u32| {
            let owned = Some(row(Some(shard % 2), 1, Mark::TrimHorizon));
            (0, changed(shard, Some(shard % 2), Verb::Create, None, owned))
        };
        (0..4).map(created).collect()
    }

    /// The lease of a shard moves from one life to the other, requested at the same time.
    fn moves(at: Time, shard: u32, from: u32, to: u32) -> Vec<(Time, Fact)> {
        let (had, has) = (row(Some(from), 1, Mark::TrimHorizon), row(Some(to), 2, Mark::TrimHorizon));
        let asked = Row { next: Some(Owner::Life(to)), ..had };
        let taken = Row { counter: 3, ..has };
        vec![
            (at, changed(shard, Some(to), Verb::Claim, Some(had), Some(asked))),
            (at + 1, changed(shard, Some(from), Verb::HandOver, Some(asked), Some(has))),
            (at + 2, changed(shard, Some(to), Verb::Take, Some(has), Some(taken))),
        ]
    }

    /// The lease moves to and fro this many times.
    fn to_and_fro(at: Time, times: u32) -> Vec<(Time, Fact)> {
        let step = |n: u32| moves(at + u64::from(n) * SECOND, 0, n % 2, 1 - n % 2);
        (0..times).flat_map(step).collect()
    }

    fn judged(facts: impl IntoIterator<Item = (Time, Fact)>) -> usize {
        let (mut oracle, mut verdict) = (Moves::new(&terms()), Verdict::default());
        show_alone(&mut blank(), four().into_iter().chain(facts), |at, fact, history| {
            oracle.observe(at, fact, history, &mut verdict)
        });
        oracle.look_at_end(0, &mut verdict);
        verdict.violations().len()
    }

    #[test]
    fn a_lease_moves_a_few_times_in_a_calm_and_no_more() {
        let most = MOST_MOVES as u32;
        assert_eq!(judged(to_and_fro(CALM, most)), 0);
        assert_eq!(judged(to_and_fro(CALM, most + 1)), 1);
        assert_eq!(judged(to_and_fro(SECOND, most + 1)), 0, "not everybody has scanned");
    }

    #[test]
    fn leases_stay_after_two_rounds_for_each_worker() {
        let late = CALM + 4 * 60 * SECOND;
        assert_eq!(judged(moves(CALM, 0, 0, 1)), 0);
        assert_eq!(judged(moves(late, 0, 0, 1)), 1);
    }

    #[test]
    fn an_event_in_between_allows_for_more_moves() {
        let most = MOST_MOVES as u32;
        let with = |fact: Fact| {
            // Each time the lease returns to its first owner; the moves together are more than allowed.
            let half = most - most % 2;
            let later = to_and_fro(CALM + 100 * SECOND, half);
            let first = to_and_fro(CALM, half);
            judged(first.into_iter().chain([(CALM + 50 * SECOND, fact)]).chain(later))
        };
        assert_eq!(with(Fact::Said { life: 0 }), 1);
        assert_eq!(with(Fact::Booted { life: 2, worker: 2 }), 0);
        assert_eq!(with(answered(1, Ask::Write(Verb::Renew), 3, 9, How::Unknown)), 0);
        assert_eq!(with(answered(1, Ask::GetRecords, 3, 9, How::Unknown)), 1);
        let had = row(Some(1), 1, Mark::TrimHorizon);
        let ended = row(None, 2, Mark::End);
        assert_eq!(with(changed(3, Some(1), Verb::End, Some(had), Some(ended))), 0);
        let taken = row(Some(0), 2, Mark::TrimHorizon);
        assert_eq!(with(changed(3, Some(0), Verb::Take, Some(had), Some(taken))), 0);
        let another = changed(3, Some(1), Verb::Renew, Some(had), Some(Row { counter: 2, ..had }));
        assert_eq!(with(another), 1);
    }

    #[test]
    fn beside_another_program_nothing_is_said() {
        let stranger = Row { owner: Some(Owner::Stranger), ..row(None, 1, Mark::TrimHorizon) };
        let strange = changed(3, None, Verb::Take, None, Some(stranger));
        let facts = [(1, strange)].into_iter().chain(to_and_fro(CALM, 9));
        assert_eq!(judged(facts), 0);
    }
}
