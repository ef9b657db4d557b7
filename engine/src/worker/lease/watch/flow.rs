//! How much is read of a shard. Where workers of KCL 3.x live, the row says so: their leader assigns leases by this
//! number, and moves no lease while no row has the number.

use crate::fleet::REPORT_INTERVAL;
use crate::leader_assignment::Rules;
use crate::row::Change;
use crate::time::Mono;
use crate::worker::context::Context;
use crate::worker::lease::ownership::Ownership;
use crate::worker::lease_table::LeaseTable;

/// What was read since the row last said how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    bytes: u64,
    since: Mono,
    /// What the row says, in millionths of KiB/s.
    told: Option<u64>,
}

impl Flow {
    pub(super) fn new(now: Mono) -> Self {
        Self { bytes: 0, since: now, told: None }
    }

    /// So many bytes more were read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// How much is read, in millionths of KiB/s: half by the bytes read since the last report, half by the last report.
    /// Then counting begins anew.
    fn measure(&mut self, now: Mono) -> u64 {
        let micros = u128::from(now.since(self.since).0.max(1));
        // Bytes per microsecond are MB/s: 10^6 of them a second, and a KiB has 1,024.
        let latest = u128::from(self.bytes) * 1_000_000 * 1_000_000 / 1_024 / micros;
        let latest = u64::try_from(latest).unwrap_or(u64::MAX);
        let smoothed = self.told.map_or(latest, |told| told / 2 + latest / 2);
        *self = Self { bytes: 0, since: now, told: Some(smoothed) };
        smoothed
    }

    /// Writes into the row how much is read, if workers of KCL 3.x weigh leases, and the last report is old enough.
    pub(super) fn step(&mut self, own: &Ownership, rows: &LeaseTable, cx: &mut Context) {
        let now = cx.now();
        if rows.kcl3().rules() == Rules::Own || now.since(self.since) < REPORT_INTERVAL {
            return;
        }
        let change =
            Change::Weigh { key: own.lease(), owner: cx.me().clone(), throughput: self.measure(now) };
        let why = "workers of KCL 3.x weigh leases by it".to_owned();
        cx.write_row(change, why, None, now + REPORT_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn it_is_measured_in_kib_a_second_and_smoothed() {
        let start = Mono(0) + Span::from_secs(1_000);
        let at = |seconds| start + Span::from_secs(seconds);
        let mut flow = Flow::new(start);
        flow.read(30 * 1_024 * 10);
        assert_eq!(flow.measure(at(30)), 10_000_000, "10 KiB/s");
        assert_eq!(flow.measure(at(60)), 5_000_000, "nothing came");
        flow.read(u64::MAX);
        flow.read(1);
        assert!(flow.measure(at(60)) > 1_000_000_000_000, "however much came in no time");
    }
}
