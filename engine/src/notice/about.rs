//! What every notice is about.

use super::{LossReason, Notice, TakeReason, first_lease};
use crate::ids::{FencingToken, LeaseKey, WorkerId};

impl Notice {
    /// The lease of the notice, if the notice concerns one lease.
    pub fn lease(&self) -> Option<&LeaseKey> {
        match self {
            Notice::Unreadable { key, .. } => Some(key),
            Notice::Trouble { lease, .. } => lease.as_ref(),
            Notice::Stream(news) => news.lease(),
            _ => first_lease(self),
        }
    }

    /// The ownership of the notice, if the notice concerns one ownership.
    pub fn token(&self) -> Option<FencingToken> {
        match self {
            Notice::Took { token, .. } | Notice::Opened { token, .. } | Notice::Closed { token, .. } => {
                Some(*token)
            }
            _ => None,
        }
    }

    /// The worker besides ourselves in the notice, if any.
    pub fn other_worker(&self) -> Option<&WorkerId> {
        match self {
            Notice::Took {
                why:
                    TakeReason::Expired { owner, .. }
                    | TakeReason::Stolen { owner, .. }
                    | TakeReason::LeftLying { owner, .. }
                    | TakeReason::FormerLife { owner },
                ..
            } => Some(owner),
            Notice::MissedTake { owner, .. } => owner.as_ref(),
            Notice::Claimed { owner, .. } => Some(owner),
            Notice::Assigned { to, .. } => Some(to),
            Notice::Migration(news) => news.other_worker(),
            Notice::Lost { why: LossReason::Taken { by, .. }, .. } => by.as_ref(),
            _ => None,
        }
    }
}
