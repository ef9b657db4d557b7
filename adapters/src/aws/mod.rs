//! The AWS SDK: its clients, and an HTTPS client for them. A worker's bindings to the SDK are private.
//!
//! The clients are the application's own, changed in two ways: the SDK's retries are off, since when to retry is the
//! engine's decision and a hidden retry would make outcomes ambiguous; and time comes from the [`Runtime`](crate::runtime::Runtime) port.
//!
//! A worker does not share connections with the program, though the two share the HTTP client. A connection is driven
//! by the runtime of its creation: with shared connections, handlers blocking the program's runtime would stop
//! renewals on another runtime (see [`Builder::coordination_on_caller`](crate::Builder::coordination_on_caller)). The
//! SDK's HTTP clients keep connections of different timeouts apart: each port has a connect timeout of its own,
//! different by nanoseconds. A custom HTTP client must make progress without the program's runtime, too.

mod bill;
pub(crate) mod bounded;
mod classify;
pub(crate) mod clock;
pub(crate) mod consumers;
pub(crate) mod dynamo;
mod failures;
mod fan_out;
mod fleet_tables;
mod heard;
mod host_cpu;
#[cfg(feature = "https")]
mod http;
mod kinesis_stream;
mod members;
pub(crate) mod named;
mod owner_index;
pub(crate) mod places;
mod pool;
mod sent;
mod several;
pub(crate) mod stream_ref;
pub(crate) mod values;
mod words;

#[cfg(all(test, feature = "tokio-runtime"))]
mod fake;
#[cfg(all(test, feature = "tokio-runtime"))]
mod owner_index_tests;
#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "port_tests.rs"]
mod tests;

pub use aws_sdk_dynamodb as dynamodb;
pub use aws_sdk_kinesis as kinesis;
pub(crate) use clock::{SdkSleep, SdkTime};
pub(crate) use dynamo::DynamoTable;
#[cfg(feature = "https")]
pub use http::{http_client, https_client};
pub(crate) use kinesis_stream::KinesisStream;
pub(crate) use several::SeveralStreams;

use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use leasehold_engine::time::Span;
use pool::Pool;
use std::time::Duration;

fn no_retries() -> RetryConfig {
    RetryConfig::disabled()
}

/// The SDK gives up shortly before the driver does: the SDK's error tells more about the failure.
fn patience(give_up: Span) -> Span {
    give_up.scaled(95, 100)
}

fn timeouts(give_up: Span, pool: &Pool) -> TimeoutConfig {
    let whole = Duration::from(patience(give_up));
    TimeoutConfig::builder()
        .operation_timeout(whole)
        .operation_attempt_timeout(whole)
        .connect_timeout(Duration::from(give_up.per(2)).min(Duration::from_secs(3)) + pool.distinction())
        .build()
}
