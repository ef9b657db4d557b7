//! A shard, from the take of its lease to the release of the lease.

use super::super::fleet::Application;
use super::super::sdk::{Failure, after};
use super::checkpointer::{Held, SHARD_END};
use super::{Status, Worker};
use leasehold_engine::config::InitialPosition;
use leasehold_engine::output::{EndReason, IteratorFrom};
use leasehold_engine::position::Position;
use std::cell::Cell;
use std::rc::Rc;

/// The most throttled reads in a row.
const MAX_RETRIES: u32 = 5;

/// The limiter of the program allows five reads a second.
const READ_PAUSE_US: u64 = 200_000;

impl Worker {
    pub(super) async fn consume(self: &Rc<Self>, shard: &Rc<Status>) {
        // Cancelling the renewals does not wait for a renewal under way.
        let over = Rc::new(Cell::new(false));
        // Every failure is logged.
        let _ = self.get_records(shard, &over).await;
        over.set(true);
        shard.assigned_to.replace(String::new());
        let _ = self.remove_lease_owner(shard).await;
    }

    async fn get_records(self: &Rc<Self>, shard: &Rc<Status>, over: &Rc<Cell<bool>>) -> Result<(), Failure> {
        let (sdk, host) = (&self.sdk, &self.sdk.host);
        self.wait_on_parent(shard).await?;
        let mut place = sdk.iterator(&shard.id, self.start(shard).await?).await?;
        let token = host.next_token();
        sdk.open(&shard.id, token).await;
        let lost = Rc::new(Cell::new(false));
        let renewals = (self.clone(), shard.clone(), over.clone(), lost.clone());
        host.spawn(async move {
            let (worker, shard, over, lost) = renewals;
            let wait = worker.settings.refresh_wait_us;
            while !worker.sdk.host.until(wait, || over.get()).await {
                if worker.get_lease(&shard).await.is_err() {
                    return lost.set(true);
                }
            }
        });
        let mut retries = 0;
        loop {
            let batch = match sdk.records(&shard.id, place, self.settings.max_records).await {
                Ok(batch) => batch,
                Err(Failure::Throttled) if retries < MAX_RETRIES => {
                    retries += 1;
                    host.sleep(1_000_000).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            retries = 0;
            if let Some(last) = batch.fetched.last {
                sdk.process(&shard.id, token, batch.op).await;
                self.after_batch(shard, last).await;
            }
            if batch.fetched.end.is_some() {
                sdk.close(&shard.id, token, EndReason::ShardEnded).await;
                // The application must confirm the end of the shard.
                let _ = self.checkpoint(shard, SHARD_END).await;
                return Ok(());
            }
            let idles = batch.fetched.count == 0 && batch.fetched.behind_ms * 1_000 < self.settings.idle_us;
            host.sleep(if idles { self.settings.idle_us } else { READ_PAUSE_US }).await;
            // If both are true, Go chooses at random.
            let toss = || host.below("select", 2) == 0;
            match (host.is_stopping(), lost.get()) {
                (true, lost) if !lost || toss() => {
                    if self.settings.application == Application::EndsOnStop {
                        let _ = self.checkpoint(shard, SHARD_END).await;
                    }
                    sdk.close(&shard.id, token, EndReason::Shutdown).await;
                    return Ok(());
                }
                // The application hears nothing of this end.
                (_, true) => return Err(Failure::Condition),
                _ => {}
            }
            place = batch.op;
        }
    }

    /// The application's act at the end of a batch, still in its callback.
    async fn after_batch(&self, shard: &Status, last: Position) {
        let noted = self.sdk.host.take_noted(shard.id.as_str());
        if self.settings.application == Application::Forgetful {
            return;
        }
        let done = std::iter::once(last.sequence.to_string()).chain(noted);
        for sequence in done {
            // A failure is logged; the checkpoint stays in memory all the same, and the next renewal writes the
            // checkpoint.
            let _ = self.checkpoint(shard, &sequence).await;
        }
    }

    /// Waits for the first parent's end. Neither a renewal nor a stop interrupts the wait.
    async fn wait_on_parent(&self, shard: &Status) -> Result<(), Failure> {
        let Some(parent) = &shard.parent else {
            return Ok(());
        };
        let parent = Status::new(parent.clone(), None);
        loop {
            match self.fetch_checkpoint(&parent).await {
                Ok(()) if parent.has_ended() => return Ok(()),
                Ok(()) => {}
                // The program considers the parent long gone.
                Err(Held::NoSequence) => return Ok(()),
                Err(Held::Failed(failure)) => return Err(failure),
            }
            self.sdk.host.sleep(self.settings.parent_poll_us).await;
        }
    }

    /// The place to begin: after the checkpoint, or at the configured position, whatever the shard's parents.
    async fn start(&self, shard: &Status) -> Result<IteratorFrom, Failure> {
        match self.fetch_checkpoint(shard).await {
            Err(Held::Failed(failure)) => return Err(failure),
            Ok(()) | Err(Held::NoSequence) => {}
        }
        let checkpoint = shard.checkpoint.borrow();
        if checkpoint.is_empty() {
            return Ok(match self.settings.initial_position {
                InitialPosition::TrimHorizon => IteratorFrom::TrimHorizon,
                InitialPosition::Latest => IteratorFrom::Latest,
                InitialPosition::AtTimestamp(at) => IteratorFrom::AtTimestamp(at),
            });
        }
        after(&checkpoint)
    }
}
