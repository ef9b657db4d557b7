//! How soon the table is scanned again.
//!
//! A *round* comes every `scan_interval`: after the scan of a round, the worker looks for holes, removes finished
//! leases and watches the stream. Quick scans come between two rounds where workers request leases, and every live
//! owner hands leases over, or where a leader assigns leases. Quick scans show within moments which worker died, which
//! lease is free and which worker has too many leases.

use super::Balance;
use crate::config::Config;
use crate::time::Span;
use crate::worker::context::Context;

/// What a row takes in a scan, in bytes, with a little to spare.
const ROW_BYTES: u64 = 400;
/// An eventually consistent read of so many bytes costs half a read unit.
const READ_BYTES: u64 = 4_096;
/// DynamoDB's price of one write unit is the price of this many half read units.
const WRITE_PRICE: u64 = 10;
/// Quick scans may cost this part of the cost of renewals of a worker's share: a quarter.
const PART: u64 = 4;
/// The longest pause after failed scans is this power of two, in pauses.
pub(super) const MAX_DOUBLINGS: u32 = 5;

/// Whether there are quick scans now. `led`: whether a leader assigns leases, which is found out by scans.
pub(super) fn is_quick(cx: &Context, balance: &Balance, led: bool) -> bool {
    let config = cx.config();
    cx.hands_over()
        && config.quick_scan_interval < config.scan_interval
        && (led || !balance.has_other_programs())
}

/// The pause before a quick scan of a table with `rows` rows, for a worker with a share of `share` leases. `failed`:
/// the recent pages that could not be read.
pub(super) fn quick_pause(config: &Config, rows: u64, share: u64, failed: u32) -> Span {
    let halves = rows.saturating_mul(ROW_BYTES).div_ceil(READ_BYTES).max(1);
    let renewals = WRITE_PRICE.saturating_mul(share.max(1));
    let affordable = config.renew_interval.scaled(halves.saturating_mul(PART), renewals);
    let pause = config.quick_scan_interval.max(affordable);
    let doubled = pause.times(1 << failed.min(MAX_DOUBLINGS));
    doubled.min(config.scan_interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_table_is_scanned_as_configured_and_a_large_one_less() {
        let config = Config::default();
        let pause = |rows, share| quick_pause(&config, rows, share, 0);
        assert_eq!(pause(10, 10), Span::from_millis(500));
        // 200 rows are 20 half read units, and 40 renewals in 3.3 s are 400.
        assert_eq!(pause(200, 40), Span::from_millis(660));
        assert_eq!(pause(100_000, 100), config.scan_interval);
        assert_eq!(pause(10, 0), pause(10, 1), "a worker without leases is no reason for a long pause");
        assert_eq!(quick_pause(&config, 10, 10, 2), Span::from_millis(2_000));
        assert_eq!(quick_pause(&config, 10, 10, 1_000), Span::from_millis(16_000));
    }

    proptest! {
        #[test]
        fn quick_scans_cost_no_more_than_a_quarter_of_the_renewals(rows in 1u64..200_000, share in 1u64..2_000) {
            let config = Config::default();
            let pause = quick_pause(&config, rows, share, 0);
            prop_assume!(pause < config.scan_interval);
            let halves = (rows * ROW_BYTES).div_ceil(READ_BYTES);
            // Of an hour, in half read units; a thousandth more for the division.
            let scans = 3_600_000_000 / pause.0 * halves;
            let renewals = 3_600_000_000 / config.renew_interval.0 * share * WRITE_PRICE;
            prop_assert!(scans * PART * 1_000 <= renewals * 1_002, "{scans} {renewals}");
        }
    }
}
