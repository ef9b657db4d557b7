//! Subscriptions (enhanced fan-out): the consumer of a stream, and the events that the service pushes.
//!
//! A subscription is one response whose body lives five minutes: over `https` all subscriptions share a few HTTP/2
//! connections, and over plain `http` each has a connection of its own. The next event is read from the body when the engine asks for
//! the event; until then flow control holds the service back.

use super::classify::{answered, classify};
use super::kinesis_stream::{KinesisStream, gone, of_another_stream};
use super::sent::Sent;
use super::values::wall_to_sdk;
use super::words::garbled;
use crate::store::Cursor;
use aws_sdk_kinesis::error::SdkError;
use aws_sdk_kinesis::operation::subscribe_to_shard::SubscribeToShardOutput;
use aws_sdk_kinesis::types::error::SubscribeToShardEventStreamError as Exception;
use aws_sdk_kinesis::types::{
    ConsumerStatus, ShardIteratorType, StartingPosition, SubscribeToShardEvent, SubscribeToShardEventStream,
};
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use leasehold_engine::ids::{OpId, ShardId};
use leasehold_engine::input::{Cause, ConsumerState, Outcome, Refusal, Reply, Why};
use leasehold_engine::output::IteratorFrom;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The body of a subscription. Absent while an event is awaited: the end of the wait without an event closes the subscription.
type EventBody = Mutex<Option<SubscribeToShardOutput>>;

impl KinesisStream {
    pub(super) async fn describe_consumer(self, stream: Arc<str>, name: Arc<str>) -> Outcome {
        let sent = self.failures.request();
        let request = self.client.describe_stream_consumer().stream_arn(&*stream).consumer_name(&*name);
        match request.customize().interceptor(sent.clone()).send().await {
            Err(error) => classify(&error, &sent),
            Ok(answer) => match answer.consumer_description() {
                Some(consumer) => state(consumer.consumer_arn(), consumer.consumer_status()),
                None => garbled(&sent, "a description of the consumer", "none"),
            },
        }
    }

    pub(super) async fn register_consumer(self, stream: Arc<str>, name: Arc<str>) -> Outcome {
        let sent = self.failures.request();
        let request = self.client.register_stream_consumer().stream_arn(&*stream).consumer_name(&*name);
        match request.customize().interceptor(sent.clone()).send().await {
            Err(error) => classify(&error, &sent),
            Ok(answer) => match answer.consumer() {
                Some(consumer) => state(consumer.consumer_arn(), consumer.consumer_status()),
                None => garbled(&sent, "the registered consumer", "none"),
            },
        }
    }

    pub(super) async fn subscribe(
        self, id: OpId, shard: ShardId, consumer: Arc<str>, from: IteratorFrom,
    ) -> Outcome {
        let sent = self.failures.request();
        let request = self.client.subscribe_to_shard().consumer_arn(&*consumer).shard_id(shard.as_str());
        let request = match position(from) {
            Ok(position) => request.starting_position(position),
            Err(found) => return garbled(&sent, "a starting position", found),
        };
        match request.customize().interceptor(sent.clone()).send().await {
            Err(error) => of_another_stream(classify(&error, &sent)),
            Ok(events) => {
                let events: Arc<EventBody> = Arc::new(Mutex::new(Some(events)));
                self.store.keep_cursor(&self.shard(&shard), id, Cursor::Subscription(events));
                Outcome::Applied(Reply::Subscribed)
            }
        }
    }

    pub(super) async fn next_event(self, id: OpId, shard: ShardId, via: OpId) -> Outcome {
        let cursor = self.store.cursor(via);
        let Some(Cursor::Subscription(kept)) = cursor else {
            return gone(format!("the subscription of {via}"));
        };
        let Ok(kept) = kept.downcast::<EventBody>() else {
            return gone(format!("the subscription of {via}"));
        };
        let Some(mut events) = kept.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return gone(format!("the subscription of {via}"));
        };
        let sent = self.failures.request();
        let event = match events.event_stream.recv().await {
            Ok(Some(SubscribeToShardEventStream::SubscribeToShardEvent(event))) => event,
            Ok(Some(other)) => return garbled(&sent, "an event of a subscription", format!("{other:?}")),
            Ok(None) => return over(),
            Err(error) => return broken(&error, &sent),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
        self.take_event(id, &shard, event, kept)
    }

    fn take_event(
        &self, id: OpId, shard: &ShardId, event: SubscribeToShardEvent, kept: Arc<EventBody>,
    ) -> Outcome {
        let sent = self.failures.request();
        let goes_on = !event.continuation_sequence_number.is_empty();
        let next = goes_on.then_some(Cursor::Subscription(kept));
        let children = event.child_shards.unwrap_or_default();
        let brought = (event.records, Some(event.millis_behind_latest), children);
        self.take_in(id, &sent, &self.shard(shard), brought, next, true)
    }
}

/// The subscription has ended in good order.
fn over() -> Outcome {
    Outcome::Refused(Refusal {
        why: Why::Expired,
        current: None,
        detail: "the service has ended the subscription".to_owned(),
    })
}

/// The subscription has ended with an exception, or its body has broken off.
fn broken<R: Debug>(error: &SdkError<Exception, R>, sent: &Sent) -> Outcome {
    let outcome = match error {
        SdkError::ServiceError(service) => {
            let exception = service.err();
            let code = code(exception).or_else(|| exception.code());
            answered(400, code, exception.message(), Some("kinesis:SubscribeToShard"))
        }
        SdkError::TimeoutError(_) => Outcome::Unknown(Cause::Timeout),
        SdkError::DispatchFailure(_) | SdkError::ConstructionFailure(_) => Outcome::Unknown(Cause::Network),
        _ => Outcome::Unknown(Cause::Garbled),
    };
    sent.failed(match &outcome {
        Outcome::Refused(refusal) => refusal.detail.clone(),
        _ => DisplayErrorContext(error).to_string(),
    });
    outcome
}

/// The code of an exception. The frame has the code as the exception's type.
fn code(exception: &Exception) -> Option<&'static str> {
    Some(match exception {
        Exception::ResourceNotFoundException(_) => "ResourceNotFoundException",
        Exception::ResourceInUseException(_) => "ResourceInUseException",
        Exception::KmsDisabledException(_) => "KMSDisabledException",
        Exception::KmsInvalidStateException(_) => "KMSInvalidStateException",
        Exception::KmsAccessDeniedException(_) => "KMSAccessDeniedException",
        Exception::KmsNotFoundException(_) => "KMSNotFoundException",
        Exception::KmsOptInRequired(_) => "KMSOptInRequired",
        Exception::KmsThrottlingException(_) => "KMSThrottlingException",
        _ => return None,
    })
}

fn state(arn: &str, status: &ConsumerStatus) -> Outcome {
    let active = *status == ConsumerStatus::Active;
    Outcome::Applied(Reply::Consumer(ConsumerState { arn: arn.into(), active }))
}

fn position(from: IteratorFrom) -> Result<StartingPosition, String> {
    let builder = StartingPosition::builder();
    let builder = match from {
        IteratorFrom::TrimHorizon => builder.r#type(ShardIteratorType::TrimHorizon),
        IteratorFrom::Latest => builder.r#type(ShardIteratorType::Latest),
        IteratorFrom::AtTimestamp(at) => {
            builder.r#type(ShardIteratorType::AtTimestamp).timestamp(wall_to_sdk(at))
        }
        IteratorFrom::At(position) => {
            builder.r#type(ShardIteratorType::AtSequenceNumber).sequence_number(position.sequence.to_string())
        }
        IteratorFrom::After(position) => builder
            .r#type(ShardIteratorType::AfterSequenceNumber)
            .sequence_number(position.sequence.to_string()),
    };
    builder.build().map_err(|error| error.to_string())
}
