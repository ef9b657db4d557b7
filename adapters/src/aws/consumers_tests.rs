//! Requests about a consumer, and the words of their failures.

use super::*;
use crate::aws::fake::{FakeHttp, Wire, credentials};
use aws_sdk_kinesis::config::{BehaviorVersion, Region};
use aws_smithy_types::retry::RetryConfig;
use serde_json::{Value, json};

const STREAM: &str = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders";
const CONSUMER: &str = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders/consumer/billing:1700000000";

fn client(http: FakeHttp) -> Client {
    let config = aws_sdk_kinesis::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .http_client(http)
        .retry_config(RetryConfig::disabled())
        .credentials_provider(credentials());
    Client::from_conf(config.build())
}

/// An answer to the operation: the stream was created at second 7.
fn said(operation: &str) -> Value {
    match operation {
        "DescribeStreamSummary" => json!({"StreamDescriptionSummary": {
            "StreamName": "orders",
            "StreamARN": STREAM,
            "StreamStatus": "ACTIVE",
            "RetentionPeriodHours": 24,
            "StreamCreationTimestamp": 7,
            "EnhancedMonitoring": [],
            "OpenShardCount": 1,
        }}),
        "DescribeStreamConsumer" => json!({"ConsumerDescription": {
            "ConsumerName": "billing",
            "ConsumerARN": CONSUMER,
            "ConsumerStatus": "ACTIVE",
            "ConsumerCreationTimestamp": 1_700_000_000,
            "StreamARN": STREAM,
        }}),
        _ => json!({}),
    }
}

fn good() -> FakeHttp {
    FakeHttp::new(|operation, _| Wire::Answer(200, said(operation).to_string()))
}

/// Refuses one operation.
fn refusing(refused: &'static str, code: &'static str) -> FakeHttp {
    FakeHttp::new(move |operation, _| match operation == refused {
        true => Wire::Answer(400, json!({"__type": code, "message": "said no"}).to_string()),
        false => Wire::Answer(200, said(operation).to_string()),
    })
}

fn seen(http: &FakeHttp) -> Vec<(String, Value)> {
    http.seen.lock().unwrap().clone()
}

fn asked(operation: &str, request: Value) -> (String, Value) {
    (operation.to_owned(), request)
}

#[tokio::test]
async fn a_name_is_looked_up_with_the_arn_of_its_stream() {
    let http = good();
    let orders: NamedStream = "orders".into();
    let found = described(&client(http.clone()), &orders, "billing").await.unwrap().unwrap();
    assert_eq!((found.arn.as_str(), found.status.as_str(), found.is_deleting()), (CONSUMER, "ACTIVE", false));
    let named = json!({"StreamARN": STREAM, "ConsumerName": "billing"});
    let first = asked("DescribeStreamSummary", json!({"StreamName": "orders"}));
    assert_eq!(seen(&http), [first, asked("DescribeStreamConsumer", named.clone())]);

    let http = good();
    described_again(&client(http.clone()), &orders, &found).await.unwrap();
    assert_eq!(seen(&http), [asked("DescribeStreamConsumer", named)]);
}

#[tokio::test]
async fn an_arn_is_asked_for_as_it_is_and_ends_as_it_is() {
    let (http, by_arn) = (good(), json!({"ConsumerARN": CONSUMER}));
    let orders: NamedStream = "orders".into();
    let found = described(&client(http.clone()), &orders, CONSUMER).await.unwrap().unwrap();
    deregister(&client(http.clone()), &orders, &found).await.unwrap();
    let wanted = [asked("DescribeStreamConsumer", by_arn.clone()), asked("DeregisterStreamConsumer", by_arn)];
    assert_eq!(seen(&http), wanted);
}

#[tokio::test]
async fn a_request_goes_to_the_region_of_the_consumer() {
    let elsewhere = CONSUMER.replace("eu-west-1", "us-east-2");
    let client = client_of(&client(good()), &"orders".into(), &elsewhere);
    assert_eq!(client.config().region().map(AsRef::as_ref), Some("us-east-2"));
}

#[tokio::test]
async fn a_missing_consumer_is_no_failure() {
    let orders: NamedStream = "orders".into();
    let gone = || client(refusing("DescribeStreamConsumer", "ResourceNotFoundException"));
    assert_eq!(described(&gone(), &orders, "billing").await, Ok(None));
    let found = described(&client(good()), &orders, "billing").await.unwrap().unwrap();
    assert_eq!(described_again(&gone(), &orders, &found).await, Ok(None));
    let http = refusing("DeregisterStreamConsumer", "ResourceNotFoundException");
    assert_eq!(deregister(&client(http), &orders, &found).await, Ok(()));
}

#[tokio::test]
async fn a_refusal_names_the_expectation_the_finding_and_the_remedy() {
    let orders: NamedStream = "orders".into();
    let found = described(&client(good()), &orders, "billing").await.unwrap().unwrap();
    for (operation, code, parts) in [
        (
            "DeregisterStreamConsumer",
            "AccessDeniedException",
            [
                "found AccessDeniedException: said no; the IAM action is kinesis:DeregisterStreamConsumer",
                "grant",
            ],
        ),
        (
            "DescribeStreamConsumer",
            "AccessDeniedException",
            [
                "found AccessDeniedException: said no; the IAM action is kinesis:DescribeStreamConsumer",
                "grant",
            ],
        ),
        (
            "DescribeStreamSummary",
            "AccessDeniedException",
            ["found AccessDeniedException: said no", "grant kinesis:DescribeStreamSummary"],
        ),
        (
            "DeregisterStreamConsumer",
            "LimitExceededException",
            ["found LimitExceededException: said no (HTTP status 400)", "try again later"],
        ),
        (
            "DescribeStreamConsumer",
            "InvalidArgumentException",
            ["found InvalidArgumentException: said no", "correct the name or the ARN"],
        ),
    ] {
        let client = client(refusing(operation, code));
        let told = match operation {
            "DeregisterStreamConsumer" => deregister(&client, &orders, &found).await.unwrap_err(),
            _ => described(&client, &orders, "billing").await.unwrap_err(),
        };
        assert!(told.starts_with("expected "), "{told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{operation} {code}: {told}");
    }
}

#[tokio::test]
async fn an_identifier_of_an_earlier_stream_is_refused() {
    let found = described(&client(good()), &"123456789012:orders:7".into(), "billing").await;
    assert!(found.unwrap().is_some());
    let told = described(&client(good()), &"123456789012:orders:6".into(), "billing").await.unwrap_err();
    assert!(
        told.contains("expected the stream of the identifier 123456789012:orders:6, found arn:"),
        "{told}"
    );
}
