//! The formats of bodies.

use super::cbor;
use serde_json::Value;

/// The accepted form of a body, without the parser's own words: clients show this sentence to people outside the
/// parser's world.
const NOT_JSON: &str = "The request's body cannot be read as JSON: one object, in UTF-8, nested no deeper than 127 levels, is expected.";

/// The format of a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json10,
    Json11,
    Cbor11,
}

impl Format {
    /// The format of a `Content-Type`; parameters such as a charset do not matter.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        match media_type.to_ascii_lowercase().as_str() {
            "application/x-amz-json-1.0" => Some(Format::Json10),
            "application/x-amz-json-1.1" | "application/json" => Some(Format::Json11),
            "application/x-amz-cbor-1.1" | "application/cbor" => Some(Format::Cbor11),
            _ => None,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Json10 => "application/x-amz-json-1.0",
            Format::Json11 => "application/x-amz-json-1.1",
            Format::Cbor11 => "application/x-amz-cbor-1.1",
        }
    }

    /// Reads a body; an empty body is an empty structure. The error is for the client.
    pub(super) fn decode(self, body: &[u8]) -> Result<Value, &'static str> {
        match self {
            _ if body.is_empty() => Ok(Value::Object(serde_json::Map::new())),
            Format::Cbor11 => cbor::decode(body),
            Format::Json10 | Format::Json11 => serde_json::from_slice(body).map_err(|_| NOT_JSON),
        }
    }

    /// Writes a body; null gives an empty body.
    pub(super) fn encode(self, value: &Value) -> Vec<u8> {
        match self {
            _ if value.is_null() => Vec::new(),
            Format::Cbor11 => cbor::encode(value),
            Format::Json10 | Format::Json11 => value.to_string().into_bytes(),
        }
    }
}
