//! Who reads a shard, and by which feed: marks where a shard passes between a foreign subscriber and a worker of ours.

use crate::oracles::ShardNo;
use crate::oracles::fact::Ask;
use crate::world::context::Context;
use leasehold_engine::input::{Outcome, Reply};
use std::collections::BTreeMap;

/// The last reader of each shard.
#[derive(Debug, Default)]
pub(super) struct Readers(BTreeMap<ShardNo, Reader>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader {
    is_ours: bool,
    subscribes: bool,
}

impl Readers {
    /// Notes an answer about a shard.
    pub(super) fn note(
        &mut self, cx: &mut Context, is_ours: bool, (ask, shard): (Ask, ShardNo), outcome: &Outcome,
    ) {
        match outcome {
            Outcome::Applied(Reply::Iterator | Reply::Subscribed) => {
                let reader = Reader { is_ours, subscribes: ask == Ask::Subscribe };
                let before = self.0.insert(shard, reader);
                if !is_ours && reader.subscribes {
                    cx.mark("other-subscribes");
                }
                if let Some(mark) = before.and_then(|before| passed(before, reader)) {
                    cx.mark(mark);
                }
            }
            Outcome::Applied(Reply::Records(event)) if ask == Ask::NextEvent && !is_ours => {
                match event.end.as_deref() {
                    Some([_]) => cx.mark("other-merge-pushed"),
                    Some([_, _]) => cx.mark("other-split-pushed"),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// The mark of a shard's way from one reader to the next.
fn passed(from: Reader, to: Reader) -> Option<&'static str> {
    let other = if from.is_ours { to } else { from };
    if from.is_ours == to.is_ours || !other.subscribes {
        return None;
    }
    Some(match (from.is_ours, from.subscribes, to.subscribes) {
        (true, true, _) => "other-after-subscribed",
        (true, false, _) => "other-after-polled",
        (false, _, true) => "subscribed-after-other",
        (false, _, false) => "polled-after-other",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_way_from_or_to_a_foreign_subscriber_is_marked() {
        let reader = |is_ours, subscribes| Reader { is_ours, subscribes };
        let (ours, other) = (|subscribes| reader(true, subscribes), |subscribes| reader(false, subscribes));
        assert_eq!(passed(ours(true), other(true)), Some("other-after-subscribed"));
        assert_eq!(passed(ours(false), other(true)), Some("other-after-polled"));
        assert_eq!(passed(other(true), ours(true)), Some("subscribed-after-other"));
        assert_eq!(passed(other(true), ours(false)), Some("polled-after-other"));
        assert_eq!(passed(other(false), ours(true)), None);
        assert_eq!(passed(ours(true), other(false)), None);
        assert_eq!(passed(ours(true), ours(true)), None);
    }
}
