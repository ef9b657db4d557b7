//! Registered stream consumers (enhanced fan-out).

use super::Kinesis;
use super::error::{ApiError, ApiResult};
use super::ids::{Arn, ShardIndex, StreamId, StreamRef};
use super::meter::Meter;
use super::stream::Stream;
use super::subscribe::Subscribed;
use super::token::{Kind, Opener, Sealer, invalid_token, of_other_stream};
use std::collections::BTreeMap;

/// `ConsumerStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerStatus {
    /// Not usable yet.
    Creating,
    /// Usable.
    Active,
    /// Soon gone.
    Deleting,
}

impl ConsumerStatus {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ConsumerStatus::Creating => "CREATING",
            ConsumerStatus::Active => "ACTIVE",
            ConsumerStatus::Deleting => "DELETING",
        }
    }
}

/// A registered consumer in the stream's own form.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub status: ConsumerStatus,
    /// The end of a status other than ACTIVE.
    pub until_ms: i64,
    pub created_ms: i64,
    pub tags: BTreeMap<String, String>,
    /// The last successful subscriptions.
    pub holders: BTreeMap<ShardIndex, Subscribed>,
    /// The rate of subscriptions.
    pub calls: BTreeMap<ShardIndex, Meter>,
}

/// The service's description of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSummary {
    /// Unique in the stream.
    pub name: String,
    /// Its ARN, with the second of its creation.
    pub arn: String,
    /// Its state.
    pub status: ConsumerStatus,
    /// When it was registered.
    pub created_ms: i64,
    /// The stream's ARN.
    pub stream_arn: String,
}

/// What `ListStreamConsumers` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerPage {
    /// By name.
    pub consumers: Vec<ConsumerSummary>,
    /// There is more.
    pub next_token: Option<String>,
}

const CONSUMERS_PER_STREAM: usize = 20;
const PAGE: u32 = 100;

impl Kinesis {
    /// `RegisterStreamConsumer`.
    pub fn register_consumer(
        &mut self, now_ms: i64, stream_arn: &str, name: &str, tags: BTreeMap<String, String>,
    ) -> ApiResult<ConsumerSummary> {
        let create_ms = self.config().consumer_ms;
        let stream = self.found(now_ms, StreamRef::Arn(stream_arn))?;
        stream.settle_consumers(now_ms);
        stream.require_ready()?;
        if stream.consumers.contains_key(name) {
            return Err(ApiError::in_use(format!(
                "Consumer {name} under stream {} already exists for account {}.",
                stream.name, stream.config.account_id
            )));
        }
        if stream.consumers.len() >= CONSUMERS_PER_STREAM {
            let title = stream.title();
            return Err(ApiError::limit(format!(
                "Stream {title} has {CONSUMERS_PER_STREAM} consumers already."
            )));
        }
        super::tags::check(&tags, 0)?;
        let until_ms = now_ms.saturating_add(create_ms);
        let consumer = Consumer {
            status: ConsumerStatus::Creating,
            until_ms,
            created_ms: now_ms,
            tags,
            holders: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
        let summary = stream.consumer_summary(name, &consumer);
        stream.consumers.insert(name.to_owned(), consumer);
        Ok(summary)
    }

    /// `DescribeStreamConsumer`: by its own ARN, or by its name and the stream's ARN.
    pub fn describe_consumer(
        &mut self, now_ms: i64, arn: Option<&str>, by_name: Option<(&str, &str)>,
    ) -> ApiResult<ConsumerSummary> {
        let (id, name) = self.find_consumer(now_ms, arn, by_name)?;
        let stream = self.stream_by_id(id)?;
        stream.consumer(&name).map(|consumer| stream.consumer_summary(&name, consumer))
    }

    /// `DeregisterStreamConsumer`.
    pub fn deregister_consumer(
        &mut self, now_ms: i64, arn: Option<&str>, by_name: Option<(&str, &str)>,
    ) -> ApiResult<()> {
        let delete_ms = self.config().delete_ms;
        let (id, name) = self.find_consumer(now_ms, arn, by_name)?;
        let stream = self.stream_mut(id)?;
        if let Some(consumer) = stream.consumers.get_mut(&name)
            && consumer.status != ConsumerStatus::Deleting
        {
            consumer.status = ConsumerStatus::Deleting;
            consumer.until_ms = now_ms.saturating_add(delete_ms);
        }
        stream.settle_consumers(now_ms);
        Ok(())
    }

    /// `ListStreamConsumers`.
    pub fn list_consumers(
        &mut self, now_ms: i64, stream_arn: &str, next_token: Option<&str>, max_results: Option<u32>,
    ) -> ApiResult<ConsumerPage> {
        let id = self.find(now_ms, StreamRef::Arn(stream_arn))?;
        let after = match next_token.map(open) {
            None => None,
            Some(None) => return Err(invalid_token()),
            Some(Some((_, of, _))) if of != id => return Err(of_other_stream()),
            Some(Some((issued_ms, _, name))) => {
                self.refuse_expired(now_ms, issued_ms)?;
                Some(name)
            }
        };
        let stream = self.stream_mut(id)?;
        stream.settle_consumers(now_ms);
        let max = max_results.unwrap_or(PAGE).clamp(1, 10_000) as usize;
        let mut rest =
            stream.consumers.iter().filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
        let consumers: Vec<ConsumerSummary> =
            rest.by_ref().take(max).map(|(name, consumer)| stream.consumer_summary(name, consumer)).collect();
        let more = rest.next().is_some();
        let next_token = match consumers.last() {
            Some(last) if more => {
                Some(Sealer::new(Kind::Consumers).i64(now_ms).u32(id.0).text(&last.name).seal())
            }
            _ => None,
        };
        Ok(ConsumerPage { consumers, next_token })
    }

    /// The stream and the name of an existing consumer.
    pub(crate) fn find_consumer(
        &mut self, now_ms: i64, arn: Option<&str>, by_name: Option<(&str, &str)>,
    ) -> ApiResult<(StreamId, String)> {
        let (id, name, created) = match (arn, by_name) {
            (Some(arn), _) => {
                let (name, created) = Arn::parse(arn).and_then(|arn| arn.consumer).ok_or_else(|| {
                    ApiError::argument(format!("ConsumerARN {arn} is not a valid consumer ARN."))
                })?;
                (self.find(now_ms, StreamRef::Arn(arn))?, name, Some(created))
            }
            (None, Some((stream_arn, name))) => (self.find(now_ms, StreamRef::Arn(stream_arn))?, name, None),
            (None, None) => {
                return Err(ApiError::argument(
                    "Either ConsumerARN or both of StreamARN and ConsumerName should be provided.",
                ));
            }
        };
        let stream = self.stream_mut(id)?;
        stream.settle_consumers(now_ms);
        let found = stream.consumer(name)?;
        if created.is_some_and(|created| created != found.created_ms.div_euclid(1000).to_string()) {
            return Err(stream.no_such_consumer(name));
        }
        Ok((id, name.to_owned()))
    }
}

fn open(token: &str) -> Option<(i64, StreamId, String)> {
    let mut opener = Opener::new(Kind::Consumers, token)?;
    Some((opener.i64()?, StreamId(opener.u32()?), opener.text()?))
}

impl Stream {
    pub(crate) fn settle_consumers(&mut self, now_ms: i64) {
        self.consumers
            .retain(|_, consumer| consumer.status != ConsumerStatus::Deleting || consumer.until_ms > now_ms);
        for consumer in self.consumers.values_mut() {
            if consumer.status == ConsumerStatus::Creating && consumer.until_ms <= now_ms {
                consumer.status = ConsumerStatus::Active;
            }
        }
    }

    pub(crate) fn consumer(&self, name: &str) -> ApiResult<&Consumer> {
        self.consumers.get(name).ok_or_else(|| self.no_such_consumer(name))
    }

    pub(crate) fn no_such_consumer(&self, name: &str) -> ApiError {
        ApiError::not_found(format!(
            "Consumer {name}, Stream {} not found for account {}.",
            self.name, self.config.account_id
        ))
    }

    fn consumer_summary(&self, name: &str, consumer: &Consumer) -> ConsumerSummary {
        let stream_arn = self.arn();
        ConsumerSummary {
            name: name.to_owned(),
            arn: format!("{stream_arn}/consumer/{name}:{}", consumer.created_ms.div_euclid(1000)),
            status: consumer.status,
            created_ms: consumer.created_ms,
            stream_arn,
        }
    }
}
