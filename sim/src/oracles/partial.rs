//! Workers that read only some of several streams: the leases of unread streams do not count in their share.

use super::{Fact, LifeNo};
use crate::streams::StreamNo;
use std::collections::{BTreeMap, BTreeSet};

/// The number of whole scans until a stream read anew is known again.
const SCANS: u32 = 2;

/// The lives without one of the streams, or without a view of all leases of a stream read anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial {
    lack: BTreeMap<LifeNo, BTreeSet<StreamNo>>,
    scans: BTreeMap<LifeNo, u32>,
}

impl Partial {
    pub(super) fn observe(&mut self, fact: &Fact) {
        match *fact {
            Fact::StreamLeft { life, stream, .. } => {
                self.lack.entry(life).or_default().insert(stream);
            }
            Fact::StreamBack { life, stream } => {
                if let Some(lack) = self.lack.get_mut(&life) {
                    lack.remove(&stream);
                    self.scans.insert(life, SCANS);
                }
            }
            Fact::ScanEnded { life } => {
                if let Some(scans) = self.scans.get_mut(&life) {
                    *scans = scans.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    /// Whether the set contains a life.
    pub(super) fn has(&self, life: LifeNo) -> bool {
        let lacks = self.lack.get(&life).is_some_and(|lack| !lack.is_empty());
        lacks || self.scans.get(&life).is_some_and(|scans| *scans > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_read_again_is_known_after_two_scans() {
        let (life, mut partial) = (3, Partial::default());
        let stream = 1;
        assert!(!partial.has(life));
        partial.observe(&Fact::StreamLeft { life, stream, lost: false });
        for _ in 0..5 {
            partial.observe(&Fact::ScanEnded { life });
            assert!(partial.has(life), "it lacks the stream");
        }
        partial.observe(&Fact::StreamBack { life, stream });
        partial.observe(&Fact::ScanEnded { life });
        assert!(partial.has(life) && !partial.has(life + 1));
        partial.observe(&Fact::ScanEnded { life });
        assert!(!partial.has(life));
    }
}
