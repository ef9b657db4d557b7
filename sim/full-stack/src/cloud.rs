//! The services of one world, and a digest of all requests and answers.

use leasehold_engine::internals::Digest;
use leasehold_local_aws::dynamo::{Dynamo, DynamoConfig};
use leasehold_local_aws::kinesis::{CreateStream, Kinesis, KinesisConfig, Stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The stream's name.
pub const STREAM: &str = "orders";
/// The lease table's name.
pub const TABLE: &str = "billing";
/// What the wall clocks show when a world begins, in milliseconds.
pub const EPOCH_MS: i64 = 1_700_000_000_000;

/// An answer, before its way over the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null is an empty body.
    pub body: Value,
}

impl Answer {
    /// A refusal of this code.
    pub fn error(status: u16, code: &str) -> Self {
        Self { status, body: json!({ "__type": code, "message": "so the simulation wills it" }) }
    }

    /// As on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        match self.body {
            Value::Null => Vec::new(),
            ref body => body.to_string().into_bytes(),
        }
    }
}

/// Kinesis and DynamoDB.
#[derive(Debug)]
pub struct Cloud {
    /// Kinesis.
    pub kinesis: Kinesis,
    /// DynamoDB.
    pub dynamo: Dynamo,
    /// How often each operation was executed.
    pub calls: BTreeMap<String, u64>,
    digest: Digest,
}

impl Cloud {
    /// An account with one stream of `shards` shards.
    pub fn new(shards: u32) -> Self {
        let mut kinesis = Kinesis::new(KinesisConfig::default());
        if let Err(error) = kinesis.create_stream(EPOCH_MS, &CreateStream::provisioned(STREAM, shards)) {
            panic!("the world's stream cannot be created: {error}");
        }
        Self {
            kinesis,
            dynamo: Dynamo::new(DynamoConfig::default()),
            calls: BTreeMap::new(),
            digest: Digest::new(),
        }
    }

    /// Executes a request at a time, in microseconds since the world began.
    pub fn execute(&mut self, now_us: u64, client: &str, target: &str, body: &[u8]) -> Answer {
        let now_ms = wall_ms(now_us);
        let operation = target.rsplit('.').next().unwrap_or_default();
        *self.calls.entry(operation.to_owned()).or_default() += 1;
        let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        self.note(&(now_us, client, target));
        self.note_json(&request);
        let answer = match target.split('.').next().unwrap_or_default() {
            "DynamoDB_20120810" => match self.dynamo.call(now_ms, operation, &request) {
                Ok(body) => Answer { status: 200, body },
                Err(error) => Answer { status: error.http_status, body: error.to_json() },
            },
            "Kinesis_20131202" => match self.kinesis.call(now_ms, operation, request) {
                Ok(body) => Answer { status: 200, body },
                Err(error) => Answer { status: error.http_status, body: error.to_json() },
            },
            _ => Answer::error(400, "UnknownOperationException"),
        };
        self.note(&answer.status);
        self.note_json(&answer.body);
        answer
    }

    /// Ground truth of the stream.
    pub fn stream(&self) -> &Stream {
        match self.kinesis.stream(STREAM) {
            Some(stream) => stream,
            None => panic!("the world's stream is gone"),
        }
    }

    /// Adds a value to the digest.
    pub fn note(&mut self, what: &impl serde::Serialize) {
        self.digest.absorb(what);
    }

    fn note_json(&mut self, value: &Value) {
        absorb_canonical(&mut self.digest, value);
    }

    /// The digest until now.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }
}

/// The services' clock.
pub fn wall_ms(now_us: u64) -> i64 {
    EPOCH_MS + i64::try_from(now_us / 1000).unwrap_or(i64::MAX - EPOCH_MS)
}

/// The SDK writes maps in the order of hash tables. This order is no part of the request, so members are sorted.
fn absorb_canonical(digest: &mut Digest, value: &Value) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            digest.absorb(&("object", sorted.len()));
            for (name, member) in sorted {
                digest.absorb(name);
                absorb_canonical(digest, member);
            }
        }
        Value::Array(elements) => {
            digest.absorb(&("array", elements.len()));
            elements.iter().for_each(|element| absorb_canonical(digest, element));
        }
        scalar => digest.absorb(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_noted_whatever_its_members_order() {
        let run = |body: &str| {
            let mut cloud = Cloud::new(2);
            let answer = cloud.execute(1_000_000, "w", "Kinesis_20131202.ListShards", body.as_bytes());
            (answer, cloud.digest())
        };
        let (answer, digest) = run(r#"{"StreamName":"orders","MaxResults":1}"#);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body["Shards"].as_array().map(Vec::len), Some(1));
        assert_eq!(run(r#"{"MaxResults":1,"StreamName":"orders"}"#).1, digest);
        assert_ne!(run(r#"{"MaxResults":2,"StreamName":"orders"}"#).1, digest);
    }

    #[test]
    fn an_unknown_service_is_refused() {
        let answer = Cloud::new(1).execute(0, "w", "Other.Thing", b"not json");
        assert_eq!(answer.status, 400);
    }
}
