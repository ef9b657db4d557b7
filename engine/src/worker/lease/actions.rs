//! This worker's actions on leases, by the numbers of the leases.

use super::acquisition::Acquisition;
use super::held::HeldLease;
use crate::ids::LeaseIx;

/// What this worker does about a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LeaseAction {
    /// An attempt to become its owner.
    Taking(Box<Acquisition>),
    /// Our ownership, from the take until the application let go of the lease.
    Holding(Box<HeldLease>),
}

/// All actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Actions {
    /// The last one is present.
    slots: Vec<Option<LeaseAction>>,
}

impl Actions {
    pub(super) fn held(&self, ix: LeaseIx) -> Option<&HeldLease> {
        match self.slots.get(ix.index())? {
            Some(LeaseAction::Holding(held)) => Some(held),
            _ => None,
        }
    }

    pub(super) fn held_mut(&mut self, ix: LeaseIx) -> Option<&mut HeldLease> {
        match self.slots.get_mut(ix.index())? {
            Some(LeaseAction::Holding(held)) => Some(held),
            _ => None,
        }
    }

    /// All held leases, by their numbers.
    pub(super) fn all_held(&self) -> impl Iterator<Item = &HeldLease> {
        self.slots.iter().filter_map(|slot| match slot {
            Some(LeaseAction::Holding(held)) => Some(&**held),
            _ => None,
        })
    }

    pub(super) fn all_held_mut(&mut self) -> impl Iterator<Item = (LeaseIx, &mut HeldLease)> {
        self.slots.iter_mut().enumerate().filter_map(|(at, slot)| match slot {
            Some(LeaseAction::Holding(held)) => Some((LeaseIx::from_index(at), &mut **held)),
            _ => None,
        })
    }

    /// All acquisitions, by the numbers of their leases.
    pub(super) fn acquisitions_mut(&mut self) -> impl Iterator<Item = &mut Acquisition> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Some(LeaseAction::Taking(acquisition)) => Some(&mut **acquisition),
            _ => None,
        })
    }

    pub(super) fn acquisition(&self, ix: LeaseIx) -> Option<&Acquisition> {
        match self.slots.get(ix.index())? {
            Some(LeaseAction::Taking(acquisition)) => Some(acquisition),
            _ => None,
        }
    }

    pub(super) fn acquisition_mut(&mut self, ix: LeaseIx) -> Option<&mut Acquisition> {
        match self.slots.get_mut(ix.index())? {
            Some(LeaseAction::Taking(acquisition)) => Some(acquisition),
            _ => None,
        }
    }

    /// An attempt to take a lease begins.
    pub(super) fn take(&mut self, ix: LeaseIx, acquisition: Acquisition) {
        let before = self.set(ix, LeaseAction::Taking(Box::new(acquisition)));
        debug_assert!(before.is_none(), "one acquisition at a time, and none of a held lease");
    }

    /// The lease is held from now on.
    pub(super) fn hold(&mut self, ix: LeaseIx, held: HeldLease) {
        let before = self.set(ix, LeaseAction::Holding(Box::new(held)));
        debug_assert!(
            matches!(before, Some(LeaseAction::Taking(_))),
            "a lease is held after its acquisition"
        );
    }

    fn set(&mut self, ix: LeaseIx, action: LeaseAction) -> Option<LeaseAction> {
        let at = ix.index();
        if self.slots.len() <= at {
            self.slots.resize(at + 1, None);
        }
        self.slots[at].replace(action)
    }

    /// The action is over.
    pub(super) fn clear(&mut self, ix: LeaseIx) {
        let over = self.slots.get_mut(ix.index()).and_then(Option::take);
        debug_assert!(over.is_some(), "only what is under way ends");
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
    }
}
