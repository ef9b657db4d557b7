//! One call of a handler with a batch, seen from outside: a span around the call, its duration, its result, and the
//! processed records.

use crate::batch::Batch;
use crate::catch::Panicked;
use crate::metrics::{self, Meter};
use crate::record::Record;
use crate::runtime::Runtime;
use crate::store::Reading;
use leasehold_engine::time::{Mono, Wall};
use std::future::Future;
use std::sync::Arc;
use tracing::{Instrument, Span};

/// A planned call. An attempt dropped before the call returned was stopped by the worker.
pub(crate) struct Attempt {
    meter: Meter,
    clock: Arc<dyn Runtime>,
    span: Span,
    began: Option<Mono>,
    /// The answer with the batch, and the arrival of the first record. Absent: an earlier call had the batch.
    first: Option<(Reading, Option<Wall>)>,
}

impl Attempt {
    /// For this batch.
    pub(crate) fn new(meter: &Meter, clock: &Arc<dyn Runtime>, batch: &Batch) -> Self {
        let [application, stream, worker] = meter.names();
        // Fields are made only if a subscriber wants the span.
        let span = tracing::info_span!(
            target: "leasehold",
            "process",
            worker,
            application,
            stream,
            shard = batch.shard().shard.as_str(),
            attempt = batch.attempt(),
            records = batch.len() as u64,
        );
        let first = batch.records().first().filter(|_| batch.attempt() == 1);
        let first = first.map(|record| (batch.fetched.reading, record.arrival));
        Self { meter: meter.clone(), clock: clock.clone(), span, began: None, first }
    }

    /// Makes the call within the span, and measures the duration.
    pub(crate) async fn around<T>(
        mut self, call: impl Future<Output = Result<Result<T, String>, Panicked>>,
    ) -> Result<Result<T, String>, Panicked> {
        let now = self.clock.now();
        self.began = Some(now);
        if let Some((reading, arrival)) = self.first {
            let reader = if reading.is_pushed { "fan-out" } else { "polling" };
            self.meter.observe(&metrics::ARRIVAL, [reader.into()], reading.age(arrival, now));
        }
        let result = call.instrument(self.span.clone()).await;
        self.ended(match &result {
            Ok(Ok(_)) => "ok",
            Ok(Err(_)) => "failed",
            Err(Panicked(_)) => "panicked",
        });
        result
    }

    fn ended(&mut self, result: &'static str) {
        // Without a start, the call was not made.
        let Some(began) = self.began.take() else { return };
        let took = self.clock.now().since(began);
        self.meter.count(&metrics::BATCHES, [result.into()], 1);
        self.meter.observe(&metrics::HANDLER, [result.into()], took);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.ended("stopped");
    }
}

/// Counts records that were processed, and their payload.
pub(crate) fn count_processed(meter: &Meter, records: &[Record]) {
    let bytes = records.iter().map(|record| record.data.len() as u64).sum();
    meter.count(&metrics::PROCESSED_RECORDS, [], records.len() as u64);
    meter.count(&metrics::PROCESSED_BYTES, [], bytes);
}
