//! The server's interface to a service.

use crate::dynamo::Dynamo;
use crate::kinesis::Kinesis;
use serde_json::Value;

/// A refusal, ready for the wire.
#[derive(Debug)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub http_status: u16,
    pub body: Value,
}

/// A service called with JSON.
pub(super) trait JsonService {
    /// One request; null stands for an empty body.
    fn call(&mut self, now_ms: i64, operation: &str, body: Value) -> Result<Value, Refusal>;

    /// Whether the service accepts CBOR.
    fn speaks_cbor(&self) -> bool;
}

impl JsonService for Kinesis {
    fn call(&mut self, now_ms: i64, operation: &str, body: Value) -> Result<Value, Refusal> {
        Kinesis::call(self, now_ms, operation, body).map_err(|error| Refusal {
            code: error.code,
            http_status: error.http_status,
            body: error.to_json(),
        })
    }

    fn speaks_cbor(&self) -> bool {
        true
    }
}

impl JsonService for Dynamo {
    fn call(&mut self, now_ms: i64, operation: &str, body: Value) -> Result<Value, Refusal> {
        Dynamo::call(self, now_ms, operation, &body).map_err(|error| Refusal {
            code: error.code,
            http_status: error.http_status,
            body: error.to_json(),
        })
    }

    fn speaks_cbor(&self) -> bool {
        false
    }
}
