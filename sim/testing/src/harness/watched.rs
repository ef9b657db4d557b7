//! A handler of the user's with the judge beside it.

use super::stage::Stage;
use leasehold::{Ack, Batch, EndReason, Flush, Handler, ShardInfo};

/// Tells the judge about a handler's call, and makes the call. No other place knows the calls of a handler.
#[derive(Debug)]
pub(super) struct Watched<H> {
    pub(super) inner: H,
    pub(super) stage: Stage,
    /// The handler's life, counted over all workers.
    pub(super) life: usize,
    /// Its worker.
    pub(super) worker: usize,
}

impl<H: Handler> Watched<H> {
    fn opens(&self, info: &ShardInfo) {
        self.stage.note(&("open", self.life, &info.shard, info.token.0));
        let found = self.stage.judges(|judge, stream| judge.opens(stream, self.life, info));
        self.stage.finds(self.worker, found);
    }

    fn hands_over(&self, batch: &Batch) {
        let first = batch.records().first().map(|record| record.position);
        self.stage.note(&("batch", self.life, &batch.shard().shard, first, batch.len()));
        *self.stage.scene().batches.entry(self.worker).or_default() += 1;
        let found = self.stage.scene().judge.hands_over(self.life, batch);
        self.stage.finds(self.worker, found);
    }

    fn closes(&self, info: &ShardInfo, reason: EndReason) {
        self.stage.note(&("close", self.life, &info.shard, reason));
        let found = self.stage.judges(|judge, stream| judge.closes(stream, self.life, info, reason));
        self.stage.finds(self.worker, found);
    }
}

impl<H: Handler> Handler for Watched<H> {
    type Error = H::Error;

    async fn open(&self, shard: &ShardInfo) -> Result<(), Self::Error> {
        self.opens(shard);
        self.inner.open(shard).await
    }

    async fn process(&self, batch: Batch) -> Result<Ack, Self::Error> {
        self.hands_over(&batch);
        self.inner.process(batch).await
    }

    async fn flush(&self, shard: &ShardInfo, flush: Flush) -> Result<(), Self::Error> {
        self.inner.flush(shard, flush).await
    }

    async fn close(&self, shard: &ShardInfo, reason: EndReason) {
        self.closes(shard, reason);
        self.inner.close(shard, reason).await;
    }
}
