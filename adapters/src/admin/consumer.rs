//! The end of an application's consumer: no worker deregisters a consumer, since another worker may read under the same.

use super::{Admin, AdminError, NamedStream, RegisteredConsumer};
use crate::aws::consumers;
use leasehold_engine::time::Span;
use serde::Serialize;

/// Kinesis describes a deregistered consumer for some seconds, as DELETING. So often, and so far apart, an operator's command looks
/// whether the consumer is gone.
const LOOKS: u32 = 60;
const APART: Span = Span::from_secs(1);

/// The state of a consumer after its deregistration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Deregistered {
    /// The stream has no consumer of this name any more.
    Gone,
    /// Kinesis has taken the request, and still describes the consumer, a minute later, with this status.
    Remains(String),
    /// A worker has registered a consumer of this name anew, with this ARN.
    Anew(String),
}

impl Admin {
    /// The consumer (enhanced fan-out) of this name, or with this ARN, that is registered at a stream: by default, workers
    /// register a consumer under the application's name. Absent: the stream has no such consumer.
    ///
    /// # Errors
    /// If the service does not describe the stream or the consumer.
    pub async fn consumer(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>, name_or_arn: &str,
    ) -> Result<Option<RegisteredConsumer>, AdminError> {
        let stream = stream.into();
        let found = consumers::described(kinesis, &stream, name_or_arn).await;
        found.map_err(|how| {
            let what = format!("look for the consumer {name_or_arn:?} of {:?}", stream.to_string());
            AdminError::new(what, how)
        })
    }

    /// Deregisters a consumer, and waits until the consumer is gone, for a minute at most. Subscriptions under the consumer
    /// end. A live worker with `reader.mode` `auto` or `fan-out` registers a consumer of the same name anew: stop the
    /// workers first, or let them read by polling.
    ///
    /// # Errors
    /// If the service does not take the request, or does not say whether the consumer is gone.
    pub async fn deregister(
        &self, kinesis: &aws_sdk_kinesis::Client, stream: impl Into<NamedStream>,
        consumer: &RegisteredConsumer,
    ) -> Result<Deregistered, AdminError> {
        let stream = stream.into();
        consumers::deregister(kinesis, &stream, consumer)
            .await
            .map_err(|how| AdminError::new(format!("deregister the consumer {}", consumer.arn), how))?;
        let mut status = String::new();
        for _ in 0..LOOKS {
            let now = consumers::described_again(kinesis, &stream, consumer).await.map_err(|how| {
                AdminError::new(
                    format!("see whether the deregistered consumer {} is gone", consumer.arn),
                    how,
                )
            })?;
            match now {
                None => return Ok(Deregistered::Gone),
                Some(now) if now.arn != consumer.arn => return Ok(Deregistered::Anew(now.arn)),
                Some(now) => status = now.status,
            }
            self.runtime.sleep(APART).await;
        }
        Ok(Deregistered::Remains(status))
    }
}
