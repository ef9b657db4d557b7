//! The services of one world, as the SDK reaches them.

use crate::connector::{Carried, Request};
use leasehold::LeaseKey;
use leasehold::engine::format::{Kcl, LeaseFormat};
use leasehold_local_aws::dynamo::{Dynamo, DynamoConfig};
use leasehold_testing::harness::{APPLICATION, Failing, Served, Stage, wall_ms};
use serde_json::{Value, json};

/// DynamoDB. Kinesis stands on the stage.
#[derive(Debug)]
pub struct Cloud {
    dynamo: Dynamo,
    /// How many requests were executed.
    pub calls: u64,
}

impl Default for Cloud {
    fn default() -> Self {
        Self { dynamo: Dynamo::new(DynamoConfig::default()), calls: 0 }
    }
}

fn answer(status: u16, body: &Value) -> Carried {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Carried::Answer { status, body }
}

impl Cloud {
    /// Executes a worker's request. The digest takes in the parsed request: the SDK writes maps in the order of hash
    /// tables.
    pub fn serve(&mut self, stage: &Stage, worker: usize, request: &Request) -> Served<Carried> {
        self.calls += 1;
        let (now_ms, operation) = (wall_ms(stage.now()), request.operation());
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        stage.note(&(worker, &request.target, &body));
        let done = match request.target.split('.').next().unwrap_or_default() {
            "DynamoDB_20120810" => {
                let done = self.dynamo.call(now_ms, operation, &body);
                done.map_err(|error| (error.http_status, error.to_json()))
            }
            "Kinesis_20131202" => {
                let done = stage.scene().source.kinesis.call(now_ms, operation, body.clone());
                done.map_err(|error| (error.http_status, error.to_json()))
            }
            _ => Err((400, error("UnknownOperationException"))),
        };
        let (status, told) = done.map_or_else(|refused| refused, |told| (200, told));
        stage.note(&(status, &told));
        let row = written(operation, &body).map(|key| {
            let item = self.dynamo.peek(APPLICATION, &Kcl.key(&key));
            let row = item.map(|item| Kcl.decode(item));
            (key, row)
        });
        Served { answer: answer(status, &told), row }
    }
}

/// The lease written by a request.
fn written(operation: &str, body: &Value) -> Option<LeaseKey> {
    let place = match operation {
        "PutItem" => "Item",
        "UpdateItem" | "DeleteItem" => "Key",
        _ => return None,
    };
    let key = body.get(place)?.get(Kcl.key_name())?.get("S")?.as_str()?;
    Some(LeaseKey::from(key))
}

fn error(code: &str) -> Value {
    json!({ "__type": code, "message": "so the simulation wills it" })
}

/// A failed request, in the client's view.
pub fn failure(request: &Request, failing: Failing) -> Carried {
    match failing {
        Failing::Refused => Carried::Refused,
        Failing::Throttled => answer(400, &error(throttle_of(request.operation()))),
        Failing::Status(503) => answer(503, &error("ServiceUnavailable")),
        Failing::Status(status) => answer(status, &error("InternalServerError")),
        Failing::ReadTimeout => Carried::ReadTimeout,
        Failing::Reset => Carried::Reset,
    }
}

fn throttle_of(operation: &str) -> &'static str {
    match operation {
        "DescribeTable" | "CreateTable" => "ThrottlingException",
        "ListShards" | "DescribeStreamSummary" => "LimitExceededException",
        _ => "ProvisionedThroughputExceededException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_testing::harness::{Stage, World};

    /// The status and the body of an answer to a request to Kinesis, and the digest of both.
    fn told(target: &str, body: &str) -> (u16, String, u64) {
        let plan = World::new(1).plan();
        let stage = Stage::new(|| 1_000, plan.source(), plan.judge(), false);
        let request = Request {
            target: target.to_owned(),
            content_type: String::new(),
            body: body.as_bytes().to_vec(),
        };
        match Cloud::default().serve(&stage, 0, &request).answer {
            Carried::Answer { status, body } => {
                (status, String::from_utf8_lossy(&body).into_owned(), stage.digest())
            }
            other => panic!("expected an answer, found {other:?}"),
        }
    }

    #[test]
    fn a_request_is_answered_and_noted_whatever_its_members_order() {
        let list = |body: &str| told("Kinesis_20131202.ListShards", body);
        let (status, body, digest) = list(r#"{"StreamName":"chaos-stream","MaxResults":1}"#);
        assert_eq!((status, body.matches("ShardId").count()), (200, 1), "{body}");
        assert_eq!(list(r#"{"MaxResults":1,"StreamName":"chaos-stream"}"#).2, digest);
        assert_ne!(list(r#"{"MaxResults":2,"StreamName":"chaos-stream"}"#).2, digest);
    }

    #[test]
    fn an_unknown_service_is_refused() {
        assert_eq!(told("Other.Thing", "not json").0, 400);
    }
}
