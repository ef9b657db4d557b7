//! Which workers were told last that a stream of theirs is gone, or is another one. They take no lease of the stream then: its shards may be those of
//! a stream that was made anew.

use super::{Fact, LifeNo};
use crate::streams::StreamNo;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Denials {
    /// The streams that were described to each life as they are.
    found: BTreeSet<(LifeNo, StreamNo)>,
    /// The found streams whose last description names another stream, or none.
    denied: BTreeSet<(LifeNo, StreamNo)>,
}

impl Denials {
    pub(super) fn observe(&mut self, fact: &Fact) {
        let Fact::Described { life, stream, right } = *fact else {
            return;
        };
        let of = (life, stream);
        if right {
            self.found.insert(of);
            self.denied.remove(&of);
        } else if self.found.contains(&of) {
            self.denied.insert(of);
        }
    }

    pub(super) fn has(&self, life: LifeNo, stream: StreamNo) -> bool {
        self.denied.contains(&(life, stream))
    }

    /// Whether that is so of some stream.
    pub(super) fn has_any(&self, life: LifeNo) -> bool {
        let of = (life, StreamNo::MIN)..=(life, StreamNo::MAX);
        self.denied.range(of).next().is_some()
    }
}
