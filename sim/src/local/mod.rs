//! The in-memory services behind HTTP, for any AWS SDK.
//!
//! A server answers Kinesis and DynamoDB on one port, told apart by `X-Amz-Target`, in the JSON formats of
//! the SDKs (Kinesis in CBOR too), over HTTP/1.1 and over HTTP/2 with prior knowledge. Signatures are accepted unchecked, so it belongs on
//! loopback.

mod answer;
mod cbor;
mod server;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub use server::serve;

use crate::fakes::dynamo::{Dynamo, DynamoConfig};
use crate::fakes::kinesis::{Kinesis, KinesisConfig};
use service::JsonService;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells milliseconds since the epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The machine's own clock.
#[allow(clippy::disallowed_methods)]
pub fn wall_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// How the services behave.
#[derive(Clone, Debug, Default)]
pub struct LocalOptions {
    /// Kinesis: its limits, delays, account and region.
    pub kinesis: KinesisConfig,
    /// DynamoDB: its throttling, delays, account and region.
    pub dynamo: DynamoConfig,
}

/// The services of one account.
#[derive(Debug)]
pub struct LocalAws {
    /// Kinesis Data Streams.
    pub kinesis: Kinesis,
    /// DynamoDB.
    pub dynamo: Dynamo,
}

impl LocalAws {
    /// An account with nothing in it.
    pub fn new(options: LocalOptions) -> Self {
        LocalAws {
            kinesis: Kinesis::new(options.kinesis),
            dynamo: Dynamo::new(options.dynamo),
        }
    }

    /// The service a target's prefix names.
    fn service(&mut self, prefix: &str) -> Option<&mut dyn JsonService> {
        match prefix {
            "Kinesis_20131202" => Some(&mut self.kinesis),
            "DynamoDB_20120810" => Some(&mut self.dynamo),
            _ => None,
        }
    }
}

/// The services and their clock, shared by all connections.
#[derive(Clone)]
pub struct SharedAws {
    aws: Arc<Mutex<LocalAws>>,
    clock: Clock,
}

impl SharedAws {
    /// Shares services that go by this clock.
    pub fn new(aws: LocalAws, clock: Clock) -> Self {
        SharedAws {
            aws: Arc::new(Mutex::new(aws)),
            clock,
        }
    }

    /// The services themselves, for looking and meddling; requests wait meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, LocalAws> {
        // The services hold no half-done change between calls, so a panic elsewhere does not spoil them.
        self.aws.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        (self.clock)()
    }
}
