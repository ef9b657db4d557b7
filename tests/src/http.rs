//! JSON requests without an SDK, which can be as wrong as a test wants.

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Speaks to one server.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    endpoint: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Value,
}

impl Answer {
    /// The error's code, without its namespace; none for success.
    pub fn code(&self) -> Option<&str> {
        if self.status == 200 {
            return None;
        }
        let code = self.body.get("__type")?.as_str()?;
        Some(code.rsplit('#').next().unwrap_or(code))
    }

    /// The error's message.
    pub fn message(&self) -> &str {
        let message = self.body.get("message").or_else(|| self.body.get("Message"));
        message.and_then(Value::as_str).unwrap_or_default()
    }
}

impl Caller {
    /// For a server that listens there.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), endpoint: endpoint.into() }
    }

    /// One operation of DynamoDB.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn dynamodb(&self, operation: &str, body: &Value) -> Answer {
        let request = Request::post(&self.endpoint)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("x-amz-date", "20250101T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=test/20250101/us-east-1/dynamodb/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature=0",
            )
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a well-formed request");
        let response = self.client.request(request).await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a whole answer").to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status, body }
    }
}
