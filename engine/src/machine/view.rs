//! The leases as this worker knows them: rows, when each was last seen to change, and what it does with each.

use super::tenure::{Taking, Tenure};
use super::timers::Timers;
use crate::engine::Held;
use crate::ids::{LeaseKey, WorkerId};
use crate::row::LeaseRow;
use crate::time::{Mono, Span};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// What takes no part in comparisons: it says nothing of the state that answers depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aside<T>(T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl<T> Hash for Aside<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// One lease. What every step looks at lies in front: see [`Tenure`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Lease {
    /// The time of the live entry in the timers; `NEVER` for none.
    pub(crate) armed: Mono,
    /// Our ownership, from the take until the application let go of it.
    pub(crate) tenure: Option<Box<Tenure>>,
    /// An attempt to become its owner.
    pub(crate) taking: Option<Box<Taking>>,
    pub(crate) key: LeaseKey,
    /// When the first answer was received that showed the row's present counter and owner.
    pub(crate) observed_at: Mono,
    /// When the last answer was asked for that showed them so: they stood still from the one to the other, for all that is
    /// known. A scan may take longer than a lease lasts, and what its first page showed says nothing of the time since.
    pub(crate) seen_at: Mono,
    /// The number of the last scan that showed the row.
    pub(crate) seen_by: u64,
    /// The newest row known; absent if only our own doings name this lease.
    pub(crate) row: Option<LeaseRow>,
    /// When the row was first seen to be at the end of its shard; `NEVER` while it is not.
    pub(crate) ended_at: Mono,
    /// The greatest counter that the row is known to have had.
    pub(crate) highest: u64,
    /// How often in a row an older counter than the known one was read.
    pub(crate) older_seen: u8,
    /// An attempt to steal it was given up, and may have been applied: its owner may believe in it beside us.
    pub(crate) robbed: bool,
}

impl Lease {
    /// For how long the row is known to have stood still.
    pub(crate) fn idle(&self) -> Span {
        self.seen_at.since(self.observed_at)
    }

    /// Whether the row says that the shard is unfinished.
    pub(crate) fn unfinished(&self) -> bool {
        self.row.as_ref().is_some_and(|row| !row.checkpoint.is_end())
    }

    /// Whether an attempt of ours to become its owner, who we are, can still succeed: its row was not seen to be a third
    /// worker's since.
    pub(crate) fn may_come_to(&self, me: &WorkerId) -> bool {
        let row = self.row.as_ref();
        let owner = row.and_then(|row| row.owner.as_ref());
        // A row that we are to hand over shows that our write was applied.
        let ours = owner == Some(me) || row.and_then(|row| row.handing_over.as_ref()) == Some(me);
        let taking = self.taking.as_ref();
        taking.is_some_and(|taking| ours || owner == taking.from.as_ref())
    }

    /// Whether anything of ours is going on with it.
    pub(crate) fn busy(&self) -> bool {
        self.taking.is_some() || self.tenure.is_some()
    }

    /// What we say we hold of it, if we own it.
    pub(crate) fn held(&self) -> Option<Held<'_>> {
        let tenure = self.tenure.as_ref().filter(|tenure| !tenure.lost)?;
        Some(Held {
            lease: &self.key,
            token: tenure.token,
            counter: tenure.counter,
            checkpoint: tenure.durable,
            valid_until: tenure.valid_until,
            open: tenure.stage.is_open(),
            stalled: tenure.movement.is_stalled(),
        })
    }

    /// Whether we own it, as far as we know.
    pub(crate) fn ours(&self) -> bool {
        self.tenure.as_ref().is_some_and(|tenure| !tenure.lost)
    }
}

/// All leases, by a small number that never changes while a lease is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    slots: Vec<Option<Lease>>,
    free: Vec<u32>,
    by_key: BTreeMap<LeaseKey, u32>,
    timers: Aside<Timers>,
    touched: Aside<Touched>,
}

/// The slots of leases that may have changed since somebody asked for them: each once, even if nobody ever asks.
#[derive(Clone, Debug, Default)]
struct Touched {
    list: Vec<u32>,
    listed: Vec<bool>,
}

impl Touched {
    fn add(&mut self, ix: u32) {
        let at = ix as usize;
        if self.listed.len() <= at {
            self.listed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.listed[at], true) {
            self.list.push(ix);
        }
    }
}

/// The keys follow from the slots, and timers from what each lease is armed for.
impl Hash for View {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.slots, &self.free).hash(state);
    }
}

impl View {
    /// The number of a lease, new if need be.
    pub(crate) fn intern(&mut self, key: &LeaseKey) -> u32 {
        if let Some(ix) = self.by_key.get(key) {
            return *ix;
        }
        let lease = Lease {
            key: key.clone(),
            row: None,
            observed_at: Mono(0),
            seen_at: Mono(0),
            ended_at: Mono::NEVER,
            seen_by: 0,
            highest: 0,
            older_seen: 0,
            robbed: false,
            taking: None,
            tenure: None,
            armed: Mono::NEVER,
        };
        let ix = match self.free.pop() {
            Some(ix) => {
                self.slots[ix as usize] = Some(lease);
                ix
            }
            None => {
                self.slots.push(Some(lease));
                (self.slots.len() - 1) as u32
            }
        };
        self.by_key.insert(key.clone(), ix);
        ix
    }

    pub(crate) fn find(&self, key: &str) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn get(&self, ix: u32) -> Option<&Lease> {
        self.slots.get(ix as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, ix: u32) -> Option<&mut Lease> {
        let lease = self.slots.get_mut(ix as usize)?.as_mut()?;
        self.touched.0.add(ix);
        Some(lease)
    }

    /// Moves out the numbers of the leases that may have changed since the last time.
    pub(crate) fn take_touched(&mut self, into: &mut Vec<u32>) {
        let Touched { list, listed } = &mut self.touched.0;
        for ix in list.drain(..) {
            listed[ix as usize] = false;
            into.push(ix);
        }
    }

    /// The row of a key, if one is known.
    pub(crate) fn row(&self, key: &str) -> Option<&LeaseRow> {
        self.get(self.find(key)?)?.row.as_ref()
    }

    pub(crate) fn forget(&mut self, ix: u32) {
        if let Some(lease) = self.slots.get_mut(ix as usize).and_then(Option::take) {
            self.by_key.remove(&lease.key);
            self.free.push(ix);
            self.touched.0.add(ix);
        }
    }

    /// All leases in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Lease)> {
        self.by_key.values().filter_map(|ix| Some((*ix, self.get(*ix)?)))
    }

    /// All leases by their numbers: several times as fast as in key order.
    pub(crate) fn unordered(&self) -> impl Iterator<Item = &Lease> {
        self.slots.iter().flatten()
    }

    /// The numbers of all leases, in key order.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.by_key.values().copied().collect()
    }

    /// Makes sure that a lease is looked at again at `at` at the latest.
    pub(crate) fn arm(&mut self, ix: u32, at: Mono) {
        let Some(lease) = self.slots.get_mut(ix as usize).and_then(Option::as_mut) else {
            return;
        };
        if at < lease.armed {
            lease.armed = at;
            self.timers.0.push(at, ix);
        }
    }

    /// The next lease whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Mono) -> Option<u32> {
        while let Some((at, ix)) = self.timers.0.first() {
            let live = self.get(ix).is_some_and(|lease| lease.armed == at);
            if live && at > now {
                return None;
            }
            self.timers.0.pop();
            if live {
                if let Some(lease) = self.get_mut(ix) {
                    lease.armed = Mono::NEVER;
                }
                return Some(ix);
            }
        }
        None
    }

    /// The earliest deadline. Stale entries only make it earlier, never later.
    pub(crate) fn wake_at(&mut self) -> Mono {
        while let Some((at, ix)) = self.timers.0.first() {
            if self.get(ix).is_some_and(|lease| lease.armed == at) {
                return at;
            }
            self.timers.0.pop();
        }
        Mono::NEVER
    }
}
