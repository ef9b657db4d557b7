//! The last record before `--max-records` ends the worker.

use leasehold::{Control, Notice, Position};
use leasehold_engine::ids::LeaseKey;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::Notify;

/// How long the last record's checkpoint is waited for before the worker is shut down anyway.
const LAST_CHECKPOINT: Duration = Duration::from_secs(3);

/// The last record to print.
#[derive(Debug, Default)]
pub(super) struct Last {
    record: OnceLock<(LeaseKey, Position)>,
    printed: Notify,
    durable: Notify,
}

impl Last {
    pub(super) fn is_printed(&self, lease: LeaseKey, position: Position) {
        if self.record.set((lease, position)).is_ok() {
            self.printed.notify_one();
        }
    }

    pub(super) fn observe(&self, notice: &Notice) {
        if let Notice::Checkpointed { lease, position } = notice
            && let Some((last, at)) = self.record.get()
            && last == lease
            && position >= at
        {
            self.durable.notify_one();
        }
    }

    /// Shuts the worker down once the last record is printed and its progress durable. The next worker then goes on
    /// right behind this record.
    pub(super) async fn end(&self, control: Control) {
        self.printed.notified().await;
        // In vain if the lease is lost meanwhile: then the record will come again elsewhere.
        let _ = tokio::time::timeout(LAST_CHECKPOINT, self.durable.notified()).await;
        control.shutdown();
    }
}
