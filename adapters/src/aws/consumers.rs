//! Consumers for subscriptions (enhanced fan-out), for an operator: described and deregistered.

use super::classify::{classify, why};
use super::failures::Failures;
use super::named::NamedStream;
use super::places;
use super::stream_ref::in_region;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::operation::describe_stream_consumer::builders::DescribeStreamConsumerFluentBuilder;
use aws_sdk_kinesis::types::ConsumerDescription;
use leasehold_engine::input::{Outcome, Why};
use serde::{Deserialize, Serialize};

/// A consumer that is registered at a stream, as Kinesis describes the consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegisteredConsumer {
    /// Unique in the stream.
    pub name: String,
    /// The ARN, with the second of the registration.
    pub arn: String,
    /// The stream's ARN.
    pub stream_arn: String,
    /// CREATING, ACTIVE or DELETING.
    pub status: String,
}

impl RegisteredConsumer {
    /// Whether the consumer was deregistered, and is still described.
    pub fn is_deleting(&self) -> bool {
        self.status == "DELETING"
    }
}

impl From<&ConsumerDescription> for RegisteredConsumer {
    fn from(description: &ConsumerDescription) -> Self {
        Self {
            name: description.consumer_name().to_owned(),
            arn: description.consumer_arn().to_owned(),
            stream_arn: description.stream_arn().to_owned(),
            status: description.consumer_status().as_str().to_owned(),
        }
    }
}

/// Looks for a consumer by name or ARN. Absent: the stream has no such consumer.
pub(crate) async fn described(
    kinesis: &Client, stream: &NamedStream, consumer: &str,
) -> Result<Option<RegisteredConsumer>, String> {
    if consumer.starts_with("arn:") {
        let client = client_of(kinesis, stream, consumer);
        return answer(client.describe_stream_consumer().consumer_arn(consumer)).await;
    }
    let arn = stream_arn(kinesis, stream).await?;
    let request = stream.client(kinesis).describe_stream_consumer();
    answer(request.stream_arn(arn).consumer_name(consumer)).await
}

/// Looks for a consumer by the name of a known consumer, whose ARN may be gone.
pub(crate) async fn described_again(
    kinesis: &Client, stream: &NamedStream, known: &RegisteredConsumer,
) -> Result<Option<RegisteredConsumer>, String> {
    let request = client_of(kinesis, stream, &known.arn).describe_stream_consumer();
    answer(request.stream_arn(&known.stream_arn).consumer_name(&known.name)).await
}

/// Deregisters this very consumer: a consumer registered anew under the same name has another ARN.
pub(crate) async fn deregister(
    kinesis: &Client, stream: &NamedStream, known: &RegisteredConsumer,
) -> Result<(), String> {
    let request =
        client_of(kinesis, stream, &known.arn).deregister_stream_consumer().consumer_arn(&known.arn);
    let sent = Failures::default().request();
    match request.customize().interceptor(sent.clone()).send().await {
        Ok(_) => Ok(()),
        Err(error) => match classify(&error, &sent) {
            // Somebody else was first, or the answer to the first try was lost.
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => Ok(()),
            outcome => Err(trouble("an answer that the consumer is deregistered", &outcome, why(&error))),
        },
    }
}

/// The client for requests about a consumer: of the region in the consumer's ARN.
fn client_of(kinesis: &Client, stream: &NamedStream, arn: &str) -> Client {
    in_region(&stream.client(kinesis), arn.split(':').nth(3))
}

/// The ARN of the stream: a consumer is named by the stream's ARN and its own name.
async fn stream_arn(kinesis: &Client, stream: &NamedStream) -> Result<String, String> {
    if let Some(arn) = stream.arn() {
        return Ok(arn);
    }
    let found = places::identity(kinesis, stream).await.map_err(|how| {
        format!(
            "expected a description of the stream, found {how}; correct the name or the region, or grant kinesis:DescribeStreamSummary"
        )
    })?;
    let Some(arn) = found.as_ref().and_then(|found| found.arn()) else {
        return Err(
            "expected a description of the stream with its ARN, found none; give the ARN of the consumer"
                .to_owned(),
        );
    };
    match (stream.id(), &found) {
        (Some(id), Some(now)) if !now.is_of(id) => Err(format!(
            "expected the stream of the identifier {id}, found {now}; correct the identifier, which ends with the time of creation"
        )),
        _ => Ok(arn.to_owned()),
    }
}

async fn answer(request: DescribeStreamConsumerFluentBuilder) -> Result<Option<RegisteredConsumer>, String> {
    const EXPECTED: &str = "an answer that describes the consumer";
    let sent = Failures::default().request();
    match request.customize().interceptor(sent.clone()).send().await {
        Ok(answer) => match answer.consumer_description() {
            Some(description) => Ok(Some(description.into())),
            None => Err(format!("expected {EXPECTED}, found none; try again later")),
        },
        Err(error) => match classify(&error, &sent) {
            Outcome::Refused(refusal) if refusal.why == Why::NotFound => Ok(None),
            outcome => Err(trouble(EXPECTED, &outcome, why(&error))),
        },
    }
}

/// A failed request in a sentence. `why`: the failure in the words of the service.
fn trouble(expected: &str, outcome: &Outcome, why: String) -> String {
    let (found, remedy) = match outcome {
        Outcome::Refused(refusal) => (
            refusal.detail.clone(),
            match refusal.why {
                Why::Denied => "grant the permission",
                Why::WrongClock => "set the clock of this host",
                _ => "correct the name or the ARN of the consumer",
            },
        ),
        Outcome::Applied(_) | Outcome::NotSent(_) | Outcome::Unknown(_) => (why, "try again later"),
    };
    format!("expected {expected}, found {found}; {remedy}")
}

#[cfg(all(test, feature = "tokio-runtime"))]
#[path = "consumers_tests.rs"]
mod tests;
