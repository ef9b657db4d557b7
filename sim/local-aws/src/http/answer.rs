//! One request, one answer: dispatch by target and format.

use super::hosts::Hosts;
use super::region::signed_for;
use super::service::{Refusal, Service};
use super::subscribe::Events;
use super::wire::Format;
use super::{SharedAws, held};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Above the largest request of either service: 10 MiB of records in base64, 16 MiB of items.
const MOST_BYTES: usize = 20 << 20;
const HEALTH: &str = "leasehold local: Kinesis and DynamoDB are ready\n";

/// A whole body, or events as they come.
pub(super) type Answer = Response<Either<Full<Bytes>, Events>>;

/// The server as a request sees it.
#[derive(Clone)]
pub(super) struct Desk {
    pub aws: SharedAws,
    pub hosts: Arc<Hosts>,
    /// The longest wait for a part of a request's body.
    pub patience: Duration,
    /// Its sender is dropped when the server ends.
    pub closing: watch::Receiver<()>,
}

/// Answers every request; no request is an error of the server. A request for another host is refused, and so is a
/// client without a byte of its body for the desk's patience.
pub(super) async fn answer<B>(desk: &Desk, request: Request<B>) -> Answer
where
    B: Body,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if let Err(stranger) = desk.hosts.check(request.uri(), request.headers()) {
        return refuse(Format::Json11, stranger).map(Either::Left);
    }
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::OK, HEALTH).map(Either::Left);
    }
    let (head, body) = request.into_parts();
    let content_type =
        head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::of(content_type);
    let shown = format.unwrap_or(Format::Json11);
    let outcome = async {
        if head.method != Method::POST {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Err(Refusal::new("UnknownOperationException", status, "Requests are sent by POST."));
        }
        let target = target(&head.headers).map_err(Refusal::unknown_operation)?;
        let format = format.ok_or_else(|| unknown_format(content_type))?;
        let body = whole(body, desk.patience).await?;
        dispatch(desk, signed_for(&head.headers), format, target, &body)
    };
    match outcome.await {
        Ok(Served::Whole(value)) => respond(shown, StatusCode::OK, &value).map(Either::Left),
        Ok(Served::Events(events)) => stream(events),
        Err(refusal) => refuse(shown, refusal).map(Either::Left),
    }
}

/// The answer of a service.
enum Served {
    Whole(Value),
    Events(Events),
}

fn unknown_format(content_type: &str) -> Refusal {
    let message = format!(
        "Content-Type '{content_type}' is not one of application/x-amz-json-1.0, \
        application/x-amz-json-1.1 and application/x-amz-cbor-1.1."
    );
    Refusal::new("UnknownOperationException", StatusCode::NOT_FOUND, &message)
}

/// A body to its end, with a wait of at most `patience` for each part.
async fn whole<B>(body: B, patience: Duration) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    loop {
        let Ok(frame) = timeout(patience, body.frame()).await else {
            let seconds = patience.as_secs_f64();
            let message = format!("Nothing of the request's body was received for {seconds} seconds.");
            return Err(unread("RequestTimeoutException", StatusCode::REQUEST_TIMEOUT, &message));
        };
        let Some(frame) = frame else {
            return Ok(bytes.freeze());
        };
        let Ok(frame) = frame else {
            let message = "The request's body ended before it was complete, or is not framed as HTTP has it.";
            return Err(unread("SerializationException", StatusCode::BAD_REQUEST, message));
        };
        let Ok(mut data) = frame.into_data() else {
            // Trailers say nothing here.
            continue;
        };
        if data.remaining() > MOST_BYTES - bytes.len() {
            let message = format!("The request is larger than {MOST_BYTES} bytes.");
            return Err(unread("RequestEntityTooLargeException", StatusCode::PAYLOAD_TOO_LARGE, &message));
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            bytes.extend_from_slice(chunk);
            let count = chunk.len();
            data.advance(count);
        }
    }
}

/// The refusal of a body that was not read: the rest of the body stands between this request and the next.
fn unread(code: &'static str, status: StatusCode, message: &str) -> Refusal {
    Refusal { ends_connection: true, ..Refusal::new(code, status, message) }
}

fn dispatch(
    desk: &Desk, region: Option<&str>, format: Format, (name, operation): (&str, &str), body: &[u8],
) -> Result<Served, Refusal> {
    let unknown = |message: String| Refusal::unknown_operation(&message);
    let service =
        Service::of(name).ok_or_else(|| unknown(format!("No service is known by the target {name}.")))?;
    if format == Format::Cbor11 && service != Service::Kinesis {
        return Err(unknown(format!("{name} is not spoken to in CBOR.")));
    }
    let body = format
        .decode(body)
        .map_err(|message| Refusal::new("SerializationException", StatusCode::BAD_REQUEST, message))?;
    let aws = &desk.aws;
    aws.check(&format!("{name}.{operation}"), &body)?;
    let (services, now_ms) = (aws.of_region(region), aws.now_ms());
    let subscribes = (service, operation) == (Service::Kinesis, "SubscribeToShard");
    if subscribes {
        let subscription = held(&services).kinesis.call_subscribe(now_ms, body)?;
        // An earlier subscription has lost its place.
        aws.changes.of(subscription.shard()).notify_waiters();
        return Ok(Served::Events(Events::serve(aws, services, subscription, desk.closing.clone())));
    }
    let answer = held(&services).call(service, now_ms, operation, body)?;
    if service == Service::Kinesis {
        aws.changes.follow(operation, &answer);
    }
    Ok(Served::Whole(answer))
}

/// The service's prefix and the operation of `X-Amz-Target`.
fn target(headers: &HeaderMap) -> Result<(&str, &str), &'static str> {
    let value = headers.get("x-amz-target").ok_or("The header X-Amz-Target is missing.")?;
    let text = value.to_str().map_err(|_| "The header X-Amz-Target is not a text.")?;
    text.split_once('.').ok_or("The header X-Amz-Target names no operation.")
}

fn refuse(format: Format, refusal: Refusal) -> Response<Full<Bytes>> {
    let mut response = respond(format, refusal.status, &refusal.body);
    let headers = response.headers_mut();
    headers.insert("x-amzn-errortype", HeaderValue::from_static(refusal.code));
    if refusal.ends_connection {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn stream(events: Events) -> Answer {
    let mut response = Response::new(Either::Right(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/vnd.amazon.eventstream"));
    identify(headers);
    response
}

fn respond(format: Format, status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let body = format.encode(value);
    let checksum = crc32fast::hash(&body);
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert("x-amz-crc32", checksum.into());
    identify(headers);
    response
}

fn identify(headers: &mut HeaderMap) {
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        headers.insert("x-amzn-requestid", id);
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// An id in the form of the services' own ids, unique within this process.
fn request_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("00000000-0000-4000-8000-{:012x}", count & 0xffff_ffff_ffff)
}
