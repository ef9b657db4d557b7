//! Dead letters of a batch before its hand-over: the batch's records of other shards.

use super::Consumer;
use crate::batch::{Batch, ShardInfo};
use crate::catch::{Panicked, catch};
use crate::dead_letter::{AnyDeadLetter, Letter};
use crate::kpl::hash_of;
use crate::metrics::{self, Meter};
use crate::receipt::Receipt;
use crate::record::Record;
use crate::store::Fetched;
use leasehold_engine::position::Position;
use std::future::Future;
use std::sync::Arc;

/// What of a batch is to be given to the dead-letter sink before the batch is handed over.
pub(super) struct Letters {
    fetched: Arc<Fetched>,
    shard: Arc<ShardInfo>,
    /// Everything up to here was processed before.
    after: Option<Position>,
    receipt: Receipt,
    sink: Option<Arc<dyn AnyDeadLetter>>,
    meter: Meter,
}

impl Consumer {
    /// The dead letters of a call.
    pub(super) fn letters(&self, call: &Batch, after: Option<Position>, receipt: Receipt) -> Letters {
        Letters {
            fetched: call.fetched.clone(),
            shard: call.shard.clone(),
            after,
            receipt,
            sink: self.0.dead_letters.clone(),
            meter: self.0.meter.clone(),
        }
    }
}

impl Letters {
    /// Makes a call once the sink has all dead letters.
    ///
    /// # Errors
    /// The reason of the sink's failure; the call was not made.
    pub(super) async fn before<T>(self, call: impl Future<Output = T>) -> Result<T, String> {
        while let Some(record) = self.fetched.outside.next(self.after) {
            if let Err(why) = self.store(record.clone()).await {
                self.receipt.answered();
                return Err(format!(
                    "expected the dead-letter sink to store the record {}, which belongs to another shard: {why}; the batch is \
                     handed over when it is stored",
                    record.position
                ));
            }
            self.fetched.outside.stored_next();
            self.meter.count(&metrics::SET_ASIDE, ["misplaced".into()], 1);
        }
        // A receipt kept here would hide a batch dropped by the handler.
        drop(self);
        Ok(call.await)
    }

    async fn store(&self, record: Record) -> Result<(), String> {
        let Some(sink) = self.sink.clone() else {
            return Err("there is no sink; call `.dead_letter(sink)` on the builder".to_owned());
        };
        let error = format!(
            "it is part of an aggregated record in shard {}, and its hash key {} belongs to another shard",
            record.shard,
            hash_of(&record).0
        );
        let letter = Letter { record, shard: self.shard.clone(), attempts: 0, error };
        match catch(async move { sink.store(letter).await }).await {
            Ok(stored) => stored,
            Err(Panicked(message)) => Err(format!("the sink panicked: {message}")),
        }
    }
}
