//! The requests about leases under way at the lease table, and the leases waiting for a turn.
//!
//! Each request takes a connection, and a worker of a thousand leases may want a thousand at once: at its start, at its
//! stop, and after a standstill of its machine. Scans and rows beside the lanes have bounds of their own.
//!
//! * **A request that keeps a lease, or lets it go, comes first.** Requests that begin an action have half of the
//!   turns, and none while a lease waits to be kept. So a renewal waits for renewals only, and not for long: all of
//!   them pass in the time of a few requests.
//! * **A lease waits, not a request.** The write is decided when the turn has come, and `table_timeout` counts from
//!   then.
//! * **A table that throttles is written to slowly**: see `table_pace`.
//! * **Nothing leaks.** A turn ends with the outcome of its request, and every command has exactly one outcome. A lease
//!   looked at without a new request has left the line.

use super::table_pace::TablePace;
use crate::config::Config;
use crate::ids::{LeaseIx, OpId};
use crate::input::Outcome;
use crate::time::Mono;
use std::collections::{BTreeMap, VecDeque};

/// What a request about a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Turn {
    /// A held lease is kept, or let go of.
    Keep,
    /// A lease is taken, or waits for the row of a relative.
    Begin,
}

/// The requests under way, and the leases that wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct TableTurns {
    most: usize,
    /// By number.
    under_way: BTreeMap<u64, Turn>,
    /// How many of these requests begin an action.
    begins: usize,
    keep: Line,
    begin: Line,
    pace: TablePace,
}

/// The waiting leases, the first in front.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Line {
    leases: VecDeque<LeaseIx>,
    /// The lease told to wait since the last look at a lease.
    told: Option<LeaseIx>,
}

impl Line {
    fn leave(&mut self, lease: LeaseIx) {
        if self.told.take() != Some(lease) {
            self.leases.retain(|other| *other != lease);
        }
    }
}

impl TableTurns {
    pub(super) fn new(most: u32) -> Self {
        Self { most: most as usize, ..Self::default() }
    }

    fn has_room(&self, turn: Turn, now: Mono) -> bool {
        let room = self.under_way.len() < self.most && self.pace.allows(now);
        match turn {
            Turn::Keep => room,
            Turn::Begin => room && self.begins < self.most / 2 && self.keep.leases.is_empty(),
        }
    }

    /// Whether a request about this lease may be made now. If not, the lease waits in line.
    pub(super) fn ask(&mut self, lease: LeaseIx, turn: Turn, now: Mono) -> bool {
        let room = self.has_room(turn, now);
        let line = match turn {
            Turn::Keep => &mut self.keep,
            Turn::Begin => &mut self.begin,
        };
        let first = line.leases.front();
        if room && first.is_none_or(|first| *first == lease) {
            line.leases.pop_front();
            return true;
        }
        if !line.leases.contains(&lease) {
            line.leases.push_back(lease);
        }
        line.told = Some(lease);
        false
    }

    /// Whether this lease was told to wait in the present look.
    pub(super) fn waits(&self, lease: LeaseIx, turn: Turn) -> bool {
        let line = match turn {
            Turn::Keep => &self.keep,
            Turn::Begin => &self.begin,
        };
        line.told == Some(lease)
    }

    /// A lease is looked at.
    pub(super) fn look(&mut self) {
        (self.keep.told, self.begin.told) = (None, None);
    }

    /// A lease was looked at. Without a new request, the lease waits no more.
    pub(super) fn looked_at(&mut self, lease: LeaseIx) {
        self.keep.leave(lease);
        self.begin.leave(lease);
    }

    /// A request was made.
    pub(super) fn begun(&mut self, op: OpId, turn: Turn, now: Mono) {
        self.pace.begun(now);
        let before = self.under_way.insert(op.n, turn);
        debug_assert!(before.is_none(), "a request is made once");
        debug_assert!(self.under_way.len() <= self.most, "no more requests are made than may be under way");
        self.begins += usize::from(turn == Turn::Begin);
    }

    /// A request has its outcome.
    pub(super) fn ended(&mut self, op: OpId) {
        let turn = self.under_way.remove(&op.n);
        debug_assert!(turn.is_some(), "a request that ends was made");
        self.begins -= usize::from(turn == Some(Turn::Begin));
    }

    /// A request about a lease has this outcome. `leases`: how many the worker is about.
    pub(super) fn learn(&mut self, now: Mono, config: &Config, leases: u32, outcome: &Outcome) {
        self.pace.learn(now, config, leases, outcome);
    }

    /// Whether a row may have stood still because the table throttled.
    pub(super) fn spares_owners(&self, now: Mono, config: &Config) -> bool {
        self.pace.spares_owners(now, config)
    }

    /// The lease that waits and has its turn.
    pub(super) fn next(&self, now: Mono) -> Option<LeaseIx> {
        let keep = self.keep.leases.front().filter(|_| self.has_room(Turn::Keep, now));
        let begin = || self.begin.leases.front().filter(|_| self.has_room(Turn::Begin, now));
        keep.or_else(begin).copied()
    }

    /// When a lease waiting for the pace may have its turn.
    pub(super) fn wake_at(&self, now: Mono) -> Mono {
        let waits = !self.keep.leases.is_empty() || !self.begin.leases.is_empty();
        match waits && !self.pace.allows(now) {
            true => self.pace.next_at(),
            false => Mono::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Mono = Mono(1_000_000);

    fn lease(n: usize) -> LeaseIx {
        LeaseIx::from_index(n)
    }

    fn op(n: u64) -> OpId {
        OpId { life: 1, n }
    }

    /// Asks, and makes the request if it may.
    fn request(turns: &mut TableTurns, n: u64, turn: Turn) -> bool {
        let lease = lease(n as usize);
        let may = turns.ask(lease, turn, NOW);
        if may {
            turns.begun(op(n), turn, NOW);
        }
        turns.looked_at(lease);
        may
    }

    #[test]
    fn a_beginning_has_half_of_the_turns_in_order_of_arrival() {
        let mut turns = TableTurns::new(4);
        let begun: Vec<bool> = (0..4).map(|n| request(&mut turns, n, Turn::Begin)).collect();
        assert_eq!(begun, [true, true, false, false]);
        assert!(request(&mut turns, 4, Turn::Keep));
        turns.ended(op(1));
        assert_eq!(turns.next(NOW), Some(lease(2)));
        assert!(!request(&mut turns, 3, Turn::Begin), "it is not its turn");
        assert!(!request(&mut turns, 5, Turn::Begin));
        assert!(request(&mut turns, 2, Turn::Begin));
        assert_eq!(turns.next(NOW), None);
    }

    #[test]
    fn keeping_a_lease_waits_for_keepers_and_comes_before_takes() {
        let mut turns = TableTurns::new(4);
        assert!(request(&mut turns, 0, Turn::Begin));
        let kept: Vec<bool> = (1..6).map(|n| request(&mut turns, n, Turn::Keep)).collect();
        assert_eq!(kept, [true, true, true, false, false]);
        assert!(!request(&mut turns, 6, Turn::Begin));
        turns.ended(op(0));
        assert_eq!(turns.next(NOW), Some(lease(4)));
        assert!(!request(&mut turns, 6, Turn::Begin), "another one waits to keep its lease");
        assert!(request(&mut turns, 4, Turn::Keep));
    }

    #[test]
    fn a_lease_that_asks_no_more_has_left_the_line() {
        let mut turns = TableTurns::new(2);
        assert!(request(&mut turns, 0, Turn::Begin));
        assert!(!request(&mut turns, 1, Turn::Begin));
        assert!(!request(&mut turns, 2, Turn::Begin));
        turns.looked_at(lease(1));
        turns.ended(op(0));
        assert_eq!(turns.next(NOW), Some(lease(2)));
        turns.looked_at(lease(2));
        assert_eq!(turns, TableTurns::new(2), "nothing is left of them");
    }

    #[derive(Clone, Debug)]
    enum Deed {
        Ask(u64, Turn),
        End(usize),
        Leave(usize),
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let turn = prop_oneof![Just(Turn::Keep), Just(Turn::Begin)];
        let deed = prop_oneof![
            4 => (0..12u64, turn).prop_map(|(lease, turn)| Deed::Ask(lease, turn)),
            3 => any::<usize>().prop_map(Deed::End),
            1 => (0..12usize).prop_map(Deed::Leave),
        ];
        proptest::collection::vec(deed, 0..200)
    }

    proptest! {
        /// Any requests with any outcomes keep the bounds, the turns call every lease that waits, and no turn is left over at the end.
        #[test]
        fn bounds_are_kept_and_nobody_waits_for_ever(deeds in deeds(), most in 2..6u32) {
            let mut turns = TableTurns::new(most);
            let mut under_way: Vec<u64> = Vec::new();
            for (n, deed) in deeds.into_iter().enumerate() {
                match deed {
                    Deed::Ask(of, turn) => {
                        let of = lease(of as usize);
                        if turns.ask(of, turn, NOW) {
                            turns.begun(op(n as u64), turn, NOW);
                            under_way.push(n as u64);
                        } else {
                            prop_assert!(turns.waits(of, turn));
                        }
                        turns.looked_at(of);
                    }
                    Deed::End(of) if !under_way.is_empty() => {
                        let n = under_way.swap_remove(of % under_way.len());
                        turns.ended(op(n));
                    }
                    Deed::Leave(of) => turns.looked_at(lease(of)),
                    Deed::End(_) => {}
                }
                prop_assert!(under_way.len() <= most as usize && turns.begins <= most as usize / 2);
            }
            for n in under_way {
                turns.ended(op(n));
            }
            let mut left = turns.keep.leases.len() + turns.begin.leases.len();
            while left > 0 {
                let next = turns.next(NOW);
                prop_assert!(next.is_some(), "{turns:?}");
                let turn = if turns.keep.leases.is_empty() { Turn::Begin } else { Turn::Keep };
                prop_assert!(turns.ask(next.unwrap_or(lease(0)), turn, NOW));
                left -= 1;
            }
            prop_assert_eq!(turns, TableTurns::new(most));
        }
    }
}
