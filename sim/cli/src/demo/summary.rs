//! What the demo found.

use indicatif::HumanCount;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The results.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub records_put: u64,
    pub records_processed: u64,
    pub duplicates: u64,
    pub lost: u64,
    pub out_of_order: u64,
    pub reshards: u64,
    pub workers_killed: u64,
    pub workers_started: u64,
    pub handoffs: u64,
    pub seconds: f64,
    pub records_per_second: f64,
    /// The demo was interrupted. Then `lost` is 0, as the remaining records could still have come.
    pub interrupted: bool,
    pub seed: u64,
    pub traces: Vec<PathBuf>,
}

impl Summary {
    /// Whether the demo lost no record and kept the order.
    pub(super) fn is_well(&self) -> bool {
        self.lost == 0 && self.out_of_order == 0
    }

    pub(super) fn describe(&self, colour: bool) -> String {
        let paint = |code: &str, text: String| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text }
        };
        let mut text = String::from("\n");
        let headline = if !self.is_well() {
            paint(
                "1;31",
                format!(
                    "  ✗ {} records were lost and {} came out of order.",
                    thousands(self.lost),
                    thousands(self.out_of_order)
                ),
            )
        } else if self.interrupted {
            paint("1;33", "  Interrupted; what was processed so far came in order.".to_owned())
        } else {
            paint(
                "1;32",
                "  ✓ Every record was processed, in order for every key, across every split, merge and crash.".to_owned(),
            )
        };
        let _ = writeln!(text, "{headline}\n");
        let mut row = |label: &str, value: String| {
            let _ = writeln!(text, "    {label:<14}{value}");
        };
        row("put", format!("{:>9} records", thousands(self.records_put)));
        row(
            "processed",
            format!(
                "{:>9} records; {} lost, {} out of order, {} delivered again",
                thousands(self.records_processed),
                thousands(self.lost),
                thousands(self.out_of_order),
                thousands(self.duplicates)
            ),
        );
        row("resharding", format!("{:>9} splits and merges", self.reshards));
        row(
            "workers",
            format!("{:>9} started, {} of them killed", self.workers_started, self.workers_killed),
        );
        row("handoffs", format!("{:>9} shards went on with another worker", self.handoffs));
        row(
            "time",
            format!("{:>9.1} seconds, {:.0} records a second", self.seconds, self.records_per_second),
        );
        if let Some(trace) = self.traces.first() {
            let _ = write!(
                text,
                "\n  Every worker recorded what it was told. Compute its decisions again:\n    leasehold replay {}\n",
                trace.display()
            );
        }
        text
    }
}

/// 12345 as 12,345.
fn thousands(n: u64) -> String {
    HumanCount(n).to_string()
}
