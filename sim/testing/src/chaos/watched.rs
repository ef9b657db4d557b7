//! A handler of the user's with the judge beside it.

use super::stage::{Scene, Stage};
use leasehold::{Ack, Batch, EndReason, Flush, Handler, ShardInfo};

/// Tells the judge about a handler's call, and makes the call. No other place knows the calls of a handler.
#[derive(Debug)]
pub(crate) struct Watched<H> {
    pub(crate) inner: H,
    pub(crate) stage: Stage,
    /// The handler's life, counted over all workers.
    pub(crate) life: usize,
    /// Its worker.
    pub(crate) worker: usize,
}

impl<H: Handler> Watched<H> {
    fn opens(&self, info: &ShardInfo) {
        let (now, token) = (self.stage.now(), info.token.0);
        self.stage.note(&("open", self.life, &info.shard, token));
        let found = {
            let scene = &mut *self.stage.scene();
            let Scene { services, judge, .. } = scene;
            judge.opens(services, now, self.life, info)
        };
        for (property, what) in found {
            self.stage.fail(property, format!("worker-{}: {what}", self.worker));
        }
    }

    fn hands_over(&self, batch: &Batch) {
        let first = batch.records().first().map(|record| record.position);
        self.stage.note(&("batch", self.life, &batch.shard().shard, first, batch.len()));
        let found = {
            let mut scene = self.stage.scene();
            *scene.batches.entry(self.worker).or_default() += 1;
            scene.judge.hands_over(self.life, batch)
        };
        for (property, what) in found {
            self.stage.fail(property, format!("worker-{}: {what}", self.worker));
        }
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
        self.stage.note(&("close", self.life, &shard.shard, reason));
        self.stage.scene().judge.closes(self.life, shard);
        self.inner.close(shard, reason).await;
    }
}
