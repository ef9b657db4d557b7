//! Any sequence of JSON calls to the in-memory DynamoDB and Kinesis: answered or refused, never a panic.
//!
//! One call a line: `dynamo <operation> <body>` or `kinesis <operation> <body>`; `wait <milliseconds>` lets time pass.
//! A string `$` in a body stands for the last token (iterator or next page) that was answered.
#![no_main]

use leasehold_local_aws::dynamo::{Dynamo, DynamoConfig};
use leasehold_local_aws::kinesis::{Kinesis, KinesisConfig, Push};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The most lines of one run; a longer run finds no more and takes longer.
const MOST: usize = 64;
const TOKENS: [&str; 6] = [
    "ShardIterator",
    "NextShardIterator",
    "NextToken",
    "LastEvaluatedKey",
    "LastEvaluatedTableName",
    "ContinuationSequenceNumber",
];

fn fill_in(body: &mut Value, token: &Value) {
    match body {
        Value::String(text) if text == "$" => *body = token.clone(),
        Value::Array(list) => list.iter_mut().for_each(|value| fill_in(value, token)),
        Value::Object(map) => map.values_mut().for_each(|value| fill_in(value, token)),
        _ => {}
    }
}

fuzz_target!(|text: &str| {
    let mut dynamo = Dynamo::new(DynamoConfig {
        create_ms: 0,
        throttle: true,
        max_page_items: Some(2),
        keep_versions: 2,
        ..DynamoConfig::default()
    });
    // Few shards: a stream of thousands is legal, and slow to make under instrumentation.
    let mut kinesis = Kinesis::new(KinesisConfig { shard_limit: 64, ..KinesisConfig::instant() });
    let mut now_ms: i64 = 1_700_000_000_000;
    let mut token = Value::Null;
    for line in text.lines().take(MOST) {
        let mut words = line.splitn(3, ' ');
        let (Some(service), Some(operation)) = (words.next(), words.next()) else {
            continue;
        };
        if service == "wait" {
            now_ms += i64::from(operation.parse::<u32>().unwrap_or(0));
            dynamo.advance(now_ms);
            kinesis.advance(now_ms);
            continue;
        }
        let Ok(mut body) = serde_json::from_str(words.next().unwrap_or("{}")) else {
            continue;
        };
        fill_in(&mut body, &token);
        let answer = match service {
            "dynamo" => {
                dynamo.call(now_ms, operation, &body).map_err(|error| assert!(error.to_json().is_object()))
            }
            "kinesis" if operation == "SubscribeToShard" => {
                let subscribed = kinesis.call_subscribe(now_ms, body);
                subscribed.map_err(|error| assert!(!error.code.is_empty())).map(|mut subscription| {
                    match kinesis.push(now_ms, &mut subscription) {
                        Push::Event(event) => event.to_json(),
                        _ => Value::Null,
                    }
                })
            }
            "kinesis" => {
                kinesis.call(now_ms, operation, body).map_err(|error| assert!(!error.code.is_empty()))
            }
            _ => continue,
        };
        if let Ok(Value::Object(answer)) = answer
            && let Some(found) = TOKENS.iter().find_map(|name| answer.get(*name))
        {
            token = found.clone();
        }
    }
});
