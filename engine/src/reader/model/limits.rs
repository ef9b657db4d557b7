//! The limits within which a shard was read.

use super::World;
use crate::time::{Mono, Span};

impl World {
    /// Nothing is left, and no window of time saw too many calls or bytes.
    pub(super) fn check_end(&self) {
        assert_eq!(self.frontier, self.parts.len(), "not all was delivered");
        assert!(self.done == self.handed, "not all was processed");
        assert!(self.handed == self.parts.len() || self.handed == 0);
        assert_eq!(self.reader.wake_at(&self.case.cfg), Mono::NEVER);
        let cfg = &self.case.cfg;
        for calls in self.iterator_calls.windows(2) {
            assert!(calls[1].since(calls[0]) >= cfg.min_interval, "GetIterator too soon");
        }
        for calls in self.subscribe_calls.windows(2) {
            assert!(calls[1].since(calls[0]) >= Span::from_secs(1), "SubscribeToShard too soon");
        }
        for (n, (begin, _)) in self.record_calls.iter().enumerate() {
            let mut bytes = 0;
            for (count, (end, brought)) in (0u64..).zip(&self.record_calls[n..]) {
                let window = end.since(*begin);
                assert!(window >= cfg.min_interval.times(count), "GetRecords too soon");
                assert!(
                    u128::from(bytes) * 1_000_000 <= u128::from(window.0) * u128::from(cfg.bytes_per_second),
                    "{bytes} bytes in {window}"
                );
                bytes += brought;
            }
        }
    }
}
