//! Wrong answers so far, by worker and shard. The next answer of the kind is right, or, about children, the next but
//! one. A wrong number of a record may come at any time.

use super::About;
use crate::faults::{Chance, Deed, Misread, Site};
use crate::oracles::ShardNo;
use crate::world::context::Context;
use std::collections::BTreeMap;

/// Wrong answers so far: the worker, the kind of request, and the shard (none for a listing). Each with the wrong
/// answer that may come once more.
#[derive(Clone, Debug, Default)]
pub(super) struct Misreads {
    struck: BTreeMap<(usize, Deed, Option<ShardNo>), Option<Misread>>,
}

impl Misreads {
    /// The wrong answer drawn for a request of our workers. Only an ended shard has children.
    pub(super) fn draw(&mut self, cx: &Context, site: Site, about: About) -> Option<Chance> {
        let w = usize::from(site.worker);
        let answer = (w, site.deed, site.shard);
        let ends = site.deed != Deed::Fetch || about.ended.is_some();
        if !cx.plan().runs_ours(w, cx.now()) {
            return None;
        }
        if site.deed == Deed::Fetch {
            let mut roll = cx.draws().roll("misread-number", site.key());
            if cx.plan().faults.misread.lowers_number(&mut roll) {
                let what = Misread::NumberLow;
                return Some(Chance::Misread { what });
            }
        }
        if !ends {
            return None;
        }
        if let Some(again) = self.struck.get_mut(&answer) {
            let what = again.take()?;
            let mut roll = cx.draws().roll("misread-again", site.key());
            return roll.happens(500).then_some(Chance::Misread { what });
        }
        let mut roll = cx.draws().roll("misread", site.key());
        let found = cx.plan().faults.misread.chance(site.deed, &mut roll)?;
        let again = match found {
            Chance::Misread { what } => Some(what).filter(|what| what.is_of_children()),
            _ => None,
        };
        self.struck.insert(answer, again);
        Some(found)
    }
}
