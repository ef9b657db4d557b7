//! Bad rows, whose shards no worker can read: a bad row cannot be read as a lease, or its checkpoint is spoiled. A bad
//! row is reported at once, and again at growing intervals, until the row is mended.

use crate::ids::LeaseKey;
use crate::time::{Mono, Span};
use std::collections::BTreeMap;

/// The shortest time between two reports of one row.
const LEAST: Span = Span::from_secs(1);
/// The longest time between two reports of one row.
const MOST: Span = Span::from_secs(3_600);

/// The reports of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Row {
    /// The number of the last scan with the bad row.
    scan: u64,
    /// When the first answer in a row with the bad row came.
    since: Mono,
    /// When the next report is due, and the pause between the last report and the next.
    again_at: Mono,
    pause: Span,
}

/// All that the last scans showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::worker) struct Reports {
    rows: BTreeMap<LeaseKey, Row>,
}

impl Reports {
    /// A scan shows a bad row. If a report is due: for how long the row has been bad. The second report comes `pause`
    /// after the first, and each later report after twice as long, up to an hour.
    pub(in crate::worker) fn seen(
        &mut self, key: &LeaseKey, scan: u64, now: Mono, pause: Span,
    ) -> Option<Span> {
        let pause = pause.max(LEAST).min(MOST);
        let Some(row) = self.rows.get_mut(key) else {
            let row = Row { scan, since: now, again_at: now + pause, pause };
            self.rows.insert(key.clone(), row);
            return Some(Span::ZERO);
        };
        row.scan = scan;
        if now < row.again_at {
            return None;
        }
        row.pause = row.pause.times(2).min(MOST);
        row.again_at = now + row.pause;
        Some(now.since(row.since))
    }

    /// A whole scan ended: a row not seen bad by the scan is mended, or gone.
    pub(in crate::worker) fn scanned(&mut self, scan: u64) {
        self.rows.retain(|_, row| row.scan == scan);
    }

    pub(in crate::worker) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::worker) fn contains(&self, key: &str) -> bool {
        self.rows.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_at_once_then_ever_more_seldom_down_to_hourly() {
        let mut rows = Reports::default();
        let mut told = Vec::new();
        for scan in 1..=1_000 {
            let now = Mono(0) + Span::from_secs(20).times(scan);
            if let Some(age) = rows.seen(&"a".into(), scan, now, Span::from_secs(20)) {
                told.push(age.as_millis() / 1_000);
            }
            rows.scanned(scan);
        }
        let hours = (1..=4).map(|hour| 5_100 + 3_600 * hour);
        let expected: Vec<u64> =
            [0, 20, 60, 140, 300, 620, 1_260, 2_540, 5_100].into_iter().chain(hours).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn trouble_that_was_mended_in_between_is_news_again() {
        let mut rows = Reports::default();
        let mut seen = |key: &str, scan, at| {
            let told = rows.seen(&key.into(), scan, Mono(0) + Span::from_secs(at), Span::from_secs(20));
            rows.scanned(scan);
            (told.is_some(), rows.contains("a"))
        };
        assert_eq!(seen("a", 1, 0), (true, true));
        assert_eq!(seen("a", 2, 10), (false, true));
        assert_eq!(seen("b", 3, 11), (true, false));
        assert_eq!(seen("a", 4, 12), (true, true));
    }
}
