//! One request, one answer: dispatch by target and format.

use super::hosts::Hosts;
use super::region::signed_for;
use super::service::Refusal;
use super::wire::Format;
use super::{SharedAws, held};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// Above the largest request of either service: 10 MiB of records in base64, 16 MiB of items.
const MOST_BYTES: usize = 20 << 20;
const HEALTH: &str = "leasehold local: Kinesis and DynamoDB are ready\n";

/// Answers every request; no request is an error of the server. A request for another host is refused, and so is a
/// client without a byte of its body for `patience`.
pub(super) async fn answer<B>(
    aws: &SharedAws, hosts: &Hosts, request: Request<B>, patience: Duration,
) -> Response<Full<Bytes>>
where
    B: Body,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let headers = request.headers();
    if let Err(stranger) = hosts.check(request.uri(), headers) {
        return refuse(Format::Json11, stranger.code, stranger.status, &stranger.message);
    }
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::OK, HEALTH);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::of(content_type);
    let shown = format.unwrap_or(Format::Json11);
    if request.method() != Method::POST {
        return refuse(
            shown,
            "UnknownOperationException",
            StatusCode::METHOD_NOT_ALLOWED,
            "Requests are sent by POST.",
        );
    }
    let target = match target(headers) {
        Ok(target) => target,
        Err(message) => {
            return refuse(shown, "UnknownOperationException", StatusCode::BAD_REQUEST, message);
        }
    };
    let Some(format) = format else {
        let message = format!(
            "Content-Type '{content_type}' is not one of application/x-amz-json-1.0, \
            application/x-amz-json-1.1 and application/x-amz-cbor-1.1."
        );
        return refuse(shown, "UnknownOperationException", StatusCode::NOT_FOUND, &message);
    };
    let region = signed_for(headers).map(str::to_owned);
    let body = match whole(request.into_body(), patience).await {
        Ok(body) => body,
        Err(unfit) => return unfit.refuse(format, patience),
    };
    dispatch(aws, region.as_deref(), format, &target, &body)
}

/// Why a body was not read.
enum Unfit {
    TooLarge,
    Stalled,
    Broken,
}

impl Unfit {
    fn refuse(self, format: Format, patience: Duration) -> Response<Full<Bytes>> {
        let (code, status, message) = match self {
            Unfit::TooLarge => (
                "RequestEntityTooLargeException",
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("The request is larger than {MOST_BYTES} bytes."),
            ),
            Unfit::Stalled => (
                "RequestTimeoutException",
                StatusCode::REQUEST_TIMEOUT,
                format!("Nothing of the request's body was received for {} seconds.", patience.as_secs_f64()),
            ),
            Unfit::Broken => (
                "SerializationException",
                StatusCode::BAD_REQUEST,
                "The request's body ended before it was complete, or is not framed as HTTP has it."
                    .to_owned(),
            ),
        };
        let mut response = refuse(format, code, status, &message);
        // The rest of the body stands between this request and the next.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }
}

/// A body to its end, with a wait of at most `patience` for each part.
async fn whole<B>(body: B, patience: Duration) -> Result<Bytes, Unfit>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    loop {
        let frame = timeout(patience, body.frame()).await.map_err(|_| Unfit::Stalled)?;
        let Some(frame) = frame else {
            return Ok(bytes.freeze());
        };
        let Ok(mut data) = frame.map_err(|_| Unfit::Broken)?.into_data() else {
            // Trailers say nothing here.
            continue;
        };
        if data.remaining() > MOST_BYTES - bytes.len() {
            return Err(Unfit::TooLarge);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            bytes.extend_from_slice(chunk);
            let count = chunk.len();
            data.advance(count);
        }
    }
}

fn dispatch(
    aws: &SharedAws, region: Option<&str>, format: Format, target: &Target, body: &[u8],
) -> Response<Full<Bytes>> {
    let unknown =
        |message: String| refuse(format, "UnknownOperationException", StatusCode::BAD_REQUEST, &message);
    let parsed = format.decode(body);
    let now_ms = aws.now_ms();
    let services = aws.of_region(region);
    let mut services = held(&services);
    let Some(service) = services.service(&target.service) else {
        return unknown(format!("No service is known by the target {}.", target.service));
    };
    if format == Format::Cbor11 && !service.speaks_cbor() {
        return unknown(format!("{} is not spoken to in CBOR.", target.service));
    }
    let body = match parsed {
        Ok(body) => body,
        Err(message) => {
            return refuse(format, "SerializationException", StatusCode::BAD_REQUEST, message);
        }
    };
    let outcome = service.call(now_ms, &target.operation, body);
    drop(services);
    match outcome {
        Ok(value) => respond(format, StatusCode::OK, format.encode(&value)),
        Err(Refusal { code, http_status, body }) => {
            let status = StatusCode::from_u16(http_status).unwrap_or(StatusCode::BAD_REQUEST);
            let mut response = respond(format, status, format.encode(&body));
            response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(code));
            response
        }
    }
}

/// `X-Amz-Target`: a service's prefix and an operation.
struct Target {
    service: String,
    operation: String,
}

fn target(headers: &HeaderMap) -> Result<Target, &'static str> {
    let value = headers.get("x-amz-target").ok_or("The header X-Amz-Target is missing.")?;
    let text = value.to_str().map_err(|_| "The header X-Amz-Target is not a text.")?;
    let (service, operation) = text.split_once('.').ok_or("The header X-Amz-Target names no operation.")?;
    Ok(Target { service: service.to_owned(), operation: operation.to_owned() })
}

fn refuse(format: Format, code: &'static str, status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let mut response = respond(format, status, format.encode(&json!({ "__type": code, "message": message })));
    response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(code));
    response
}

fn respond(format: Format, status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let checksum = crc32fast::hash(&body);
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert("x-amz-crc32", checksum.into());
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        headers.insert("x-amzn-requestid", id);
    }
    response
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
