//! The services of the server, and their refusals.

use crate::{dynamo, kinesis};
use hyper::StatusCode;
use serde_json::{Value, json};

/// A service of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Kinesis,
    Dynamo,
}

impl Service {
    /// The service that a target's prefix names.
    pub(super) fn of(prefix: &str) -> Option<Self> {
        match prefix {
            "Kinesis_20131202" => Some(Self::Kinesis),
            "DynamoDB_20120810" => Some(Self::Dynamo),
            _ => None,
        }
    }
}

/// A refusal, ready for the wire.
#[derive(Debug)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub status: StatusCode,
    pub body: Value,
    /// Whether the connection takes no further request.
    pub ends_connection: bool,
}

impl Refusal {
    /// A refusal of the server itself.
    pub(super) fn new(code: &'static str, status: StatusCode, message: &str) -> Self {
        Self { code, status, body: json!({ "__type": code, "message": message }), ends_connection: false }
    }

    fn of_service(code: &'static str, http_status: u16, body: Value) -> Self {
        let status = StatusCode::from_u16(http_status).unwrap_or(StatusCode::BAD_REQUEST);
        Self { code, status, body, ends_connection: false }
    }

    pub(super) fn unknown_operation(message: &str) -> Self {
        Self::new("UnknownOperationException", StatusCode::BAD_REQUEST, message)
    }
}

impl From<kinesis::ApiError> for Refusal {
    fn from(error: kinesis::ApiError) -> Self {
        Self::of_service(error.code, error.http_status, error.to_json())
    }
}

impl From<dynamo::ApiError> for Refusal {
    fn from(error: dynamo::ApiError) -> Self {
        Self::of_service(error.code, error.http_status, error.to_json())
    }
}
