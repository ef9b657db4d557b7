//! The services of one world, as the SDK reaches them.

use crate::carried::{Call, Carried, Pushed, Request};
use leasehold::LeaseKey;
use leasehold::engine::format::{Kcl, LeaseFormat};
use leasehold_local_aws::dynamo::{Dynamo, DynamoConfig};
use leasehold_local_aws::http::frames;
use leasehold_local_aws::kinesis::{ApiError, Push, Subscription};
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
        match request {
            Request::Call(call) => self.call(stage, worker, call),
            Request::Event(subscription) => {
                let pushed = push(stage, worker, subscription.clone());
                Served { answer: Carried::Pushed(pushed), row: None }
            }
        }
    }

    fn call(&mut self, stage: &Stage, worker: usize, call: &Call) -> Served<Carried> {
        let (now_ms, operation) = (wall_ms(stage.now()), call.operation());
        let body: Value = serde_json::from_slice(&call.body).unwrap_or(Value::Null);
        stage.note(&(worker, &call.target, &body));
        let refused = |error: ApiError| (error.http_status, error.to_json());
        let done = match call.target.split('.').next().unwrap_or_default() {
            "DynamoDB_20120810" => {
                let done = self.dynamo.call(now_ms, operation, &body);
                done.map_err(|error| (error.http_status, error.to_json()))
            }
            "Kinesis_20131202" if operation == "SubscribeToShard" => {
                let subscribed = stage.scene().source.kinesis.call_subscribe(now_ms, body.clone());
                match subscribed {
                    Ok(subscription) => {
                        *stage.scene().events.entry("subscribe").or_default() += 1;
                        return Served { answer: Carried::Subscribed(subscription), row: None };
                    }
                    Err(error) => Err(refused(error)),
                }
            }
            "Kinesis_20131202" => {
                let done = stage.scene().source.kinesis.call(now_ms, operation, body.clone());
                done.map_err(refused)
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

/// The next event of a subscription.
fn push(stage: &Stage, worker: usize, mut subscription: Subscription) -> Pushed {
    let now_ms = wall_ms(stage.now());
    let pushed = stage.scene().source.kinesis.push(now_ms, &mut subscription);
    match pushed {
        Push::Event(event) => {
            stage.note(&(worker, event.to_json()));
            Pushed::Frame(frames::event(&event), Some(subscription))
        }
        Push::Failed(error) => {
            stage.note(&(worker, error.to_json()));
            Pushed::Frame(frames::exception(&error), None)
        }
        Push::WaitUntil(_) => Pushed::NotYet(subscription),
        Push::Over => Pushed::Over,
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
    match (request, failing) {
        (_, Failing::Refused) => Carried::Refused,
        (Request::Call(call), Failing::Throttled) => answer(400, &error(throttle_of(call.operation()))),
        (Request::Call(_), Failing::Status(503)) => answer(503, &error("ServiceUnavailable")),
        (Request::Call(_), Failing::Status(status)) => answer(status, &error("InternalServerError")),
        (Request::Event(_), Failing::Throttled) => exception("KMSThrottlingException"),
        (Request::Event(_), Failing::Status(_)) => exception("InternalFailureException"),
        (_, Failing::ReadTimeout) => Carried::ReadTimeout,
        (_, Failing::Reset) => Carried::Reset,
    }
}

/// The frame of an exception, which ends a subscription.
fn exception(code: &'static str) -> Carried {
    let error = ApiError::client(code, "so the simulation wills it");
    Carried::Pushed(Pushed::Frame(frames::exception(&error), None))
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
        let request = Request::Call(Call {
            target: target.to_owned(),
            content_type: String::new(),
            body: body.as_bytes().to_vec(),
        });
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
