//! Clients of the AWS SDK for servers on loopback.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_http_client::Builder;
use leasehold::aws::kinesis::config::{Credentials, SharedCredentialsProvider};
use leasehold::aws::{dynamodb, kinesis};

/// A Kinesis client.
pub fn kinesis(endpoint: &str) -> kinesis::Client {
    kinesis::Client::new(&config(endpoint))
}

/// A DynamoDB client.
pub fn dynamodb(endpoint: &str) -> dynamodb::Client {
    dynamodb::Client::new(&config(endpoint))
}

/// With credentials for servers without a check of signatures.
fn config(endpoint: &str) -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(Region::from_static("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(Builder::new().build_http())
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        .build()
}
