//! Puts records, evenly over a time, in order per partition key.

use super::ledger::{Entry, Ledger};
use crate::clients::Clients;
use leasehold::aws::kinesis::primitives::Blob;
use leasehold::aws::kinesis::types::PutRecordsRequestEntry;
use leasehold_engine::internals::draw;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The number of partition keys.
pub(super) const KEYS: usize = 256;

/// How often records are put.
const EVERY: Duration = Duration::from_millis(50);
/// The pause after a whole request failed.
const PAUSE: Duration = Duration::from_millis(200);

/// A source of records.
pub(super) struct Producer {
    pub clients: Clients,
    pub stream: String,
    pub ledger: Arc<Ledger>,
    pub seed: u64,
    /// How many records are put.
    pub records: u64,
    /// Over this time.
    pub over: Duration,
}

impl Producer {
    /// Puts all records. What did not fit through the shards' limits in half as much time again is left out.
    ///
    /// `PutRecords` promises no order between the records of a request, so a request has at most one of each key, and a
    /// key goes on only after its record is in.
    pub(super) async fn run(self) {
        let names: Vec<String> = (0..KEYS)
            .map(|key| format!("customer-{:06}", draw(self.seed, "key", "", key as u64) % 1_000_000))
            .collect();
        let mut next = vec![0u32; KEYS];
        let mut put = 0u64;
        let mut turn = 0usize;
        let began = Instant::now();
        let deadline = began + self.over.mul_f64(1.5);
        let mut ticks = tokio::time::interval(EVERY);
        while put < self.records && Instant::now() < deadline {
            ticks.tick().await;
            let elapsed = began.elapsed().as_secs_f64() / self.over.as_secs_f64().max(0.001);
            let due = ((self.records as f64 * elapsed.min(1.0)).ceil() as u64).min(self.records);
            while put < due && Instant::now() < deadline {
                let count = usize::try_from(due - put).unwrap_or(KEYS).min(KEYS);
                let keys: Vec<usize> = (0..count).map(|n| (turn + n) % KEYS).collect();
                turn = (turn + count) % KEYS;
                let accepted = self.put(&keys, &names, &next).await;
                for key in &accepted {
                    next[*key] += 1;
                    self.ledger.put(*key);
                }
                put += accepted.len() as u64;
                if accepted.len() < count {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Puts records and returns the keys of the stored records.
    async fn put(&self, keys: &[usize], names: &[String], next: &[u32]) -> Vec<usize> {
        let entries = keys.iter().filter_map(|key| {
            let entry = Entry { key: *key, n: next[*key] };
            PutRecordsRequestEntry::builder()
                .partition_key(names[*key].clone())
                .data(Blob::new(entry.to_bytes()))
                .build()
                .ok()
        });
        let answer = self
            .clients
            .kinesis
            .put_records()
            .stream_name(&self.stream)
            .set_records(Some(entries.collect()))
            .send()
            .await;
        match answer {
            Ok(answer) => {
                let results = answer.records().iter().zip(keys);
                results.filter(|(result, _)| result.error_code().is_none()).map(|(_, key)| *key).collect()
            }
            Err(error) => {
                tracing::warn!(error = %crate::clients::in_full(&error), "records could not be put");
                Vec::new()
            }
        }
    }
}
