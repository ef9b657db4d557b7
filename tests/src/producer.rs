//! Records put all the time, and the list of them for comparison.

use leasehold::aws::kinesis;
use leasehold::aws::kinesis::types::PutRecordsRequestEntry;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// What was put: sequence numbers and payloads by shard, in their order.
pub type Put = BTreeMap<String, Vec<(String, String)>>;

/// Puts ten small records every 100 ms, until it is told to stop.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    run: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    pause: AtomicBool,
    put: Mutex<Put>,
}

impl Shared {
    fn put(&self) -> MutexGuard<'_, Put> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Producer {
    /// Starts it. Payloads are numbers, each used once.
    pub fn start(client: kinesis::Client, stream: &str) -> Self {
        let shared = Arc::new(Shared::default());
        let (stream, own) = (stream.to_owned(), shared.clone());
        let run = tokio::spawn(async move {
            let mut number = 0u32;
            while !own.stop.load(Ordering::Relaxed) {
                if !own.pause.load(Ordering::Relaxed) {
                    put_batch(&client, &stream, (number..number + 10).collect(), &own).await;
                    number += 10;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { shared, run }
    }

    /// Puts nothing, except for the batch under way, until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.shared.pause.store(true, Ordering::Relaxed);
    }

    /// Puts again.
    pub fn resume(&self) {
        self.shared.pause.store(false, Ordering::Relaxed);
    }

    /// What was put so far.
    pub fn so_far(&self) -> Put {
        self.shared.put().clone()
    }

    /// Ends it; what was put at all.
    ///
    /// # Panics
    /// If it panicked.
    pub async fn finish(self) -> Put {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.run.await.expect("the producer not to panic");
        self.shared.put().clone()
    }
}

/// Puts all of a batch; refused records (while the stream changes, for example) are put again.
async fn put_batch(client: &kinesis::Client, stream: &str, mut left: Vec<u32>, shared: &Shared) {
    while !left.is_empty() {
        let entries = left.iter().map(|number| {
            PutRecordsRequestEntry::builder()
                .partition_key(format!("key-{}", number % 97))
                .data(payload(*number).into_bytes().into())
                .build()
                .expect("an entry")
        });
        let request = client.put_records().stream_name(stream);
        let Ok(answer) = request.set_records(Some(entries.collect())).send().await else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let mut refused = Vec::new();
        let mut put = shared.put();
        for (number, record) in left.iter().zip(&answer.records) {
            match (record.shard_id(), record.sequence_number()) {
                (Some(shard), Some(sequence)) => {
                    let line = (sequence.to_owned(), payload(*number));
                    put.entry(shard.to_owned()).or_default().push(line);
                }
                _ => refused.push(*number),
            }
        }
        left = refused;
    }
}

fn payload(number: u32) -> String {
    format!("{number:06}")
}
