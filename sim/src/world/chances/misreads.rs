//! Who got a wrong answer about which shard. The next answer of the kind is right.

use super::About;
use crate::faults::{Chance, Deed, Site};
use crate::oracles::ShardNo;
use crate::world::context::Context;
use std::collections::BTreeSet;

/// Wrong answers so far: the worker, the kind of request, and the shard. A listing is about none.
#[derive(Clone, Debug, Default)]
pub(super) struct Misreads {
    struck: BTreeSet<(usize, Deed, Option<ShardNo>)>,
}

impl Misreads {
    /// What chance does to a request of ours. Only a shard that has ended has children.
    pub(super) fn draw(&mut self, cx: &Context, site: Site, about: About) -> Option<Chance> {
        let w = usize::from(site.worker);
        let answer = (w, site.deed, site.shard);
        let ends = site.deed != Deed::Fetch || about.ended.is_some();
        if !ends || !cx.plan().runs_ours(w, cx.now()) || self.struck.contains(&answer) {
            return None;
        }
        let mut roll = cx.draws().roll("misread", site.key());
        let found = cx.plan().faults.misread.chance(site.deed, &mut roll)?;
        self.struck.insert(answer);
        Some(found)
    }
}
