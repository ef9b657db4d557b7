//! Clients of the AWS SDK for servers on loopback.

use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_http_client::Builder;
use leasehold::aws::kinesis::config::{BehaviorVersion, Credentials, Region};
use leasehold::aws::{dynamodb, kinesis};

/// A Kinesis client.
pub fn kinesis(endpoint: &str) -> kinesis::Client {
    kinesis::Client::from_conf(
        kinesis::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::from_static("us-east-1"))
            .credentials_provider(anybody())
            .http_client(Builder::new().build_http())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .build(),
    )
}

/// A DynamoDB client.
pub fn dynamodb(endpoint: &str) -> dynamodb::Client {
    dynamodb::Client::from_conf(
        dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::from_static("us-east-1"))
            .credentials_provider(anybody())
            .http_client(Builder::new().build_http())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .build(),
    )
}

/// Credentials for servers without a check of signatures.
fn anybody() -> Credentials {
    Credentials::new("test", "test", None, None, "tests")
}
