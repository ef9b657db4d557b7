//! A limit on the size of an answer, by operation. The SDK keeps the whole body of an answer in memory, and an endpoint or
//! a proxy that is not the service may send a body without an end.

use aws_sdk_kinesis::Client;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// An answer of GetRecords has 10 MiB of records: 14 MB of JSON. A single record may be allowed as much.
const MOST_RECORDS: u64 = 32 << 20;

/// Other answers are much smaller: a page of DynamoDB has 1 MB.
const MOST: u64 = 16 << 20;

/// Ends answers that are too long. Attached to every client that this crate makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded;

/// The longest answer to one request, in bytes.
#[derive(Clone, Copy, Debug)]
struct Longest(u64);

impl Storable for Longest {
    type Storer = StoreReplace<Self>;
}

/// The client with bounded answers.
pub(super) fn bounded(client: &Client) -> Client {
    Client::from_conf(client.config().to_builder().interceptor(Bounded).build())
}

/// The longest answer to an operation, as in a request's header, in bytes.
fn most(target: Option<&str>) -> u64 {
    match target.and_then(|target| target.rsplit('.').next()) {
        Some("GetRecords") => MOST_RECORDS,
        // Its body is read event by event, and lives five minutes.
        Some("SubscribeToShard") => u64::MAX,
        _ => MOST,
    }
}

#[aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint]
impl Intercept for Bounded {
    fn name(&self) -> &'static str {
        "leasehold::Bounded"
    }

    fn read_before_transmit(
        &self, context: &BeforeTransmitInterceptorContextRef<'_>, _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let most = most(context.request().headers().get("x-amz-target"));
        config.interceptor_state().store_put(Longest(most));
        Ok(())
    }

    fn modify_before_deserialization(
        &self, context: &mut BeforeDeserializationInterceptorContextMut<'_>, _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let most = config.load::<Longest>().map_or(MOST, |longest| longest.0);
        let body = context.response_mut().body_mut();
        let whole = std::mem::replace(body, SdkBody::taken());
        *body = whole.map_preserve_contents(move |body| limited(body, most));
        Ok(())
    }
}

/// An answer is longer than the service's answers are.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected an answer of at most {most} bytes, found more: an endpoint or a proxy that is not the service answers; see whether \
     the endpoint of the client is that of the service"
)]
struct TooLong {
    most: u64,
}

/// The same body, which fails once it is too long.
fn limited(body: SdkBody, most: u64) -> SdkBody {
    // The header of the answer may tell its length.
    let left = if Body::size_hint(&body).lower() > most { 0 } else { most };
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    let too_long = move |error: BoxError| match error.is::<LengthLimitError>() {
        true => TooLong { most }.into(),
        false => error,
    };
    SdkBody::from_body_1_x(Limited::new(body, left).map_err(too_long))
}

#[cfg(all(test, feature = "tokio-runtime"))]
mod tests {
    use super::*;
    use crate::aws::fake::{FakeHttp, Wire, credentials, stream, table};
    use crate::ports::Port;
    use crate::testing::op;
    use bytes::Bytes;
    use http_body::Frame;
    use leasehold_engine::input::{Cause, Outcome, Reply};
    use leasehold_engine::output::{StreamOp, TableOp};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Poll};

    const PIECE: usize = 64 << 10;

    /// A body without an end, and the number of bytes taken from it.
    struct Endless(Arc<AtomicU64>);

    impl Body for Endless {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>, _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.fetch_add(PIECE as u64, Ordering::SeqCst);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; PIECE])))))
        }
    }

    fn endless() -> (FakeHttp, Arc<AtomicU64>) {
        let taken = Arc::new(AtomicU64::new(0));
        let count = taken.clone();
        (FakeHttp::new(move |_, _| Wire::Body(SdkBody::from_body_1_x(Endless(count.clone())))), taken)
    }

    fn get() -> StreamOp {
        StreamOp::GetRecords { shard: "s".into(), via: op(1), limit: 1 }
    }

    #[tokio::test]
    async fn a_body_without_an_end_is_cut_and_the_failure_says_why() {
        let (http, taken) = endless();
        let (stream, store) = stream(http);
        store.keep_cursor(&"s".into(), op(1), "i1".into());
        assert_eq!(stream.execute(op(2), get()).await, Outcome::Unknown(Cause::Garbled));
        let why = stream.failure(op(2)).unwrap().why;
        assert!(why.contains("expected an answer of at most 33554432 bytes, found more"), "{why}");
        assert!(taken.load(Ordering::SeqCst) <= MOST_RECORDS + PIECE as u64);

        let (http, taken) = endless();
        let table = table(http, credentials());
        let scan = TableOp::Scan { after: None, limit: None };
        assert_eq!(table.execute(op(1), scan).await, Outcome::Unknown(Cause::Garbled));
        let why = table.failure(op(1)).unwrap().why;
        assert!(why.contains("expected an answer of at most 16777216 bytes, found more"), "{why}");
        assert!(taken.load(Ordering::SeqCst) <= MOST + PIECE as u64);
    }

    #[tokio::test]
    async fn an_answer_of_the_greatest_length_is_taken_and_no_longer_one() {
        for (more, taken) in [(0, true), (1, false)] {
            let http = FakeHttp::new(move |_, _| {
                let text = "{\"Records\":[],\"NextShardIterator\":\"i2\"}";
                let spaces = usize::try_from(MOST_RECORDS).unwrap() - text.len() + more;
                Wire::Answer(200, " ".repeat(spaces) + text)
            });
            let (stream, store) = stream(http);
            store.keep_cursor(&"s".into(), op(1), "i1".into());
            let outcome = stream.execute(op(2), get()).await;
            assert_eq!(matches!(outcome, Outcome::Applied(Reply::Records(_))), taken, "{outcome:?}");
        }
    }
}
