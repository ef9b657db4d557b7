//! Workers with a last description of a stream as gone or as another stream. Such a worker takes no lease of the stream
//! then: the shards may belong to a stream made anew.

use super::{Fact, LifeNo};
use crate::streams::StreamNo;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default)]
pub(super) struct Denials {
    /// The streams correctly described to each life.
    found: BTreeSet<(LifeNo, StreamNo)>,
    /// Found streams with a last description of another stream, or of no stream.
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

    /// Whether some stream of the life is denied.
    pub(super) fn has_any(&self, life: LifeNo) -> bool {
        let of = (life, StreamNo::MIN)..=(life, StreamNo::MAX);
        self.denied.range(of).next().is_some()
    }
}
