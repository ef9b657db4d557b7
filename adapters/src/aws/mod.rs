//! The bindings to the AWS SDK.
//!
//! The clients are the application's own, changed in two ways: the SDK's retries are off, since when to retry is the
//! engine's decision and a hidden retry would make outcomes ambiguous; and time comes from the [`Runtime`] port.
//!
//! A worker does not share connections with the program around it, though it shares the HTTP client. A connection is
//! driven by the runtime it was made on: with shared ones, handlers that block the program's runtime would stop renewals
//! that run on another (see [`Builder::coordination_on_caller`](crate::Builder::coordination_on_caller)). The SDK's own
//! HTTP clients keep the connections of different timeouts apart, so each port has a connect timeout of its own, which
//! differs by nanoseconds. Another HTTP client must not need the runtime of the program to make progress either.

mod classify;
mod dynamo;
mod failures;
mod kinesis_stream;
mod members;
mod pool;
mod sent;
mod values;

#[cfg(all(test, feature = "tokio-runtime"))]
mod fake;
#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "port_tests.rs"]
mod tests;

pub use aws_sdk_dynamodb as dynamodb;
pub use aws_sdk_kinesis as kinesis;
pub use dynamo::DynamoTable;
pub use kinesis_stream::KinesisStream;

use crate::runtime::Runtime;
use aws_smithy_async::rt::sleep::{AsyncSleep, Sleep};
use aws_smithy_async::time::TimeSource;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use leasehold_engine::time::{Span, Wall};
use pool::Pool;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Timers of the [`Runtime`] port, for the SDK.
#[derive(Clone, Debug)]
pub struct SdkSleep(pub Arc<dyn Runtime>);

impl AsyncSleep for SdkSleep {
    fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self.0.sleep(duration.into()))
    }
}

/// The wall clock of the [`Runtime`] port, for the SDK.
#[derive(Clone, Debug)]
pub struct SdkTime(pub Arc<dyn Runtime>);

impl TimeSource for SdkTime {
    fn now(&self) -> SystemTime {
        let Wall(millis) = self.0.wall();
        let since = Duration::from_millis(millis.unsigned_abs());
        let time = if millis < 0 {
            UNIX_EPOCH.checked_sub(since)
        } else {
            UNIX_EPOCH.checked_add(since)
        };
        time.unwrap_or(UNIX_EPOCH)
    }
}

/// An HTTPS client for the SDK: hyper and rustls, with the system's root certificates.
///
/// ```no_run
/// # async fn example() {
/// use leasehold::aws;
///
/// let config = aws::kinesis::Config::builder()
///     .behavior_version(aws::kinesis::config::BehaviorVersion::latest())
///     .http_client(aws::https_client());
/// # }
/// ```
#[cfg(feature = "https")]
pub fn https_client() -> aws_smithy_runtime_api::client::http::SharedHttpClient {
    use aws_smithy_http_client::Builder;
    use aws_smithy_http_client::tls::Provider;
    use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

fn no_retries() -> RetryConfig {
    RetryConfig::disabled()
}

/// The SDK gives up shortly before the driver does, as it knows more about what happened.
fn timeouts(give_up: Span, pool: &Pool) -> TimeoutConfig {
    let whole = Duration::from(give_up.scaled(95, 100));
    TimeoutConfig::builder()
        .operation_timeout(whole)
        .operation_attempt_timeout(whole)
        .connect_timeout(Duration::from(give_up.per(2)).min(Duration::from_secs(3)) + pool.distinction())
        .build()
}
