use super::*;

fn call(kinesis: &mut Kinesis, operation: &str, body: Value) -> ApiResult<Value> {
    kinesis.call(T0, operation, body)
}

#[test]
fn a_stream_is_written_split_and_read_to_its_end() {
    let mut kinesis = instant();
    let create = json!({"StreamName": "s", "ShardCount": 1});
    assert_eq!(call(&mut kinesis, "CreateStream", create), Ok(Value::Null));
    let put = json!({"StreamName": "s", "PartitionKey": "k", "Data": "aGk="});
    let put = call(&mut kinesis, "PutRecord", put).unwrap();
    assert_eq!(put["ShardId"], "shardId-000000000000");
    let half = (1u128 << 127).to_string();
    let split =
        json!({"StreamName": "s", "ShardToSplit": "shardId-000000000000", "NewStartingHashKey": half});
    assert_eq!(call(&mut kinesis, "SplitShard", split), Ok(Value::Null));
    let list = call(&mut kinesis, "ListShards", json!({"StreamName": "s"})).unwrap();
    assert_eq!(list["Shards"].as_array().unwrap().len(), 3);
    assert_eq!(list["Shards"][2]["HashKeyRange"]["StartingHashKey"], json!(half));
    assert_eq!(list["Shards"][1]["ParentShardId"], "shardId-000000000000");
    assert!(list["Shards"][0]["SequenceNumberRange"]["EndingSequenceNumber"].is_string());
    assert!(list["Shards"][1]["SequenceNumberRange"].get("EndingSequenceNumber").is_none());

    let ask =
        json!({"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"});
    let token = call(&mut kinesis, "GetShardIterator", ask).unwrap()["ShardIterator"].clone();
    let page = call(&mut kinesis, "GetRecords", json!({"ShardIterator": token})).unwrap();
    assert_eq!(page["Records"][0]["Data"], "aGk=");
    assert_eq!(page["Records"][0]["SequenceNumber"], put["SequenceNumber"]);
    assert_eq!(page["Records"][0]["ApproximateArrivalTimestamp"], json!(T0 / 1000));
    let end = call(&mut kinesis, "GetRecords", json!({"ShardIterator": page["NextShardIterator"]})).unwrap();
    assert!(end.get("NextShardIterator").is_none());
    assert_eq!(end["ChildShards"][1]["ParentShards"], json!(["shardId-000000000000"]));
}

#[test]
fn iterators_that_were_not_given_out_are_refused() {
    let (mut kinesis, _) = with_stream(1);
    let good = iterator(&mut kinesis, T0, 0, IteratorStart::Latest);
    let token = kinesis.iterator_token(&good);
    assert_eq!(kinesis.iterator_from_token(&token), Ok(good));
    assert!(token.len() <= 512);
    let mut cut = token.clone();
    cut.pop();
    for bad in ["x", "AAAAAAAAAAE=", &cut, &format!("{token}AAAA")] {
        let error = call(&mut kinesis, "GetRecords", json!({"ShardIterator": bad})).unwrap_err();
        assert_eq!((error.code, &*error.message), ("InvalidArgumentException", "Invalid ShardIterator."));
    }
}

#[test]
fn the_longest_name_makes_an_iterator_that_fits() {
    let mut kinesis = instant();
    let name = "n".repeat(128);
    kinesis.create_stream(T0, &CreateStream::provisioned(&name, 1)).unwrap();
    let at = kinesis.get_shard_iterator(T0, &*name, ShardIndex(0), IteratorStart::Latest).unwrap();
    let token = kinesis.iterator_token(&at);
    assert!(call(&mut kinesis, "GetRecords", json!({"ShardIterator": token})).is_ok());
}

#[test]
fn violations_are_named_as_the_service_names_them() {
    let (mut kinesis, _) = with_stream(1);
    let mut message = |operation: &str, body: Value| {
        let error = call(&mut kinesis, operation, body).unwrap_err();
        assert_eq!(error.code, "ValidationException", "{error}");
        error.message
    };
    assert_eq!(
        message("GetRecords", json!({"ShardIterator": "x", "Limit": 10_001})),
        "1 validation error detected: Value '10001' at 'limit' failed to satisfy constraint: \
         Member must have value less than or equal to 10000"
    );
    assert_eq!(
        message("GetShardIterator", json!({"StreamName": "s p", "ShardIteratorType": "OLDEST"})),
        "3 validation errors detected: Value 's p' at 'streamName' failed to satisfy constraint: Member must satisfy \
         regular expression pattern: [a-zA-Z0-9_.-]+; Value null at 'shardId' failed to satisfy constraint: Member must \
         not be null; Value 'OLDEST' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value \
         set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON]"
    );
    let list = message("ListShards", json!({"StreamName": "s", "ShardFilter": {}}));
    assert!(list.contains("Value null at 'shardFilter.type'"));
    let records = json!([{"Data": "", "PartitionKey": "k"}, {"Data": ""}]);
    let put = message("PutRecords", json!({"StreamName": "s", "Records": records}));
    assert!(put.contains("Value null at 'records.2.member.partitionKey'"));
}

#[test]
fn wrong_types_are_serialization_errors() {
    let (mut kinesis, _) = with_stream(1);
    for (operation, body) in [
        ("ListShards", json!([])),
        ("ListShards", json!("x")),
        ("ListShards", Value::Null),
        ("ListShards", json!({"StreamName": 5})),
        ("ListShards", json!({"StreamName": "s", "MaxResults": "5"})),
        ("ListShards", json!({"StreamName": "s", "ShardFilter": []})),
        ("ListShards", json!({"StreamName": "s", "StreamCreationTimestamp": "today"})),
        ("PutRecord", json!({"StreamName": "s", "PartitionKey": "k", "Data": "a"})),
        ("PutRecord", json!({"StreamName": "s", "PartitionKey": "k", "Data": 5})),
        ("PutRecords", json!({"StreamName": "s", "Records": {}})),
        ("DeleteStream", json!({"StreamName": "s", "EnforceConsumerDeletion": "yes"})),
        ("AddTagsToStream", json!({"StreamName": "s", "Tags": ["a"]})),
    ] {
        let result = call(&mut kinesis, operation, body.clone()).map_err(|error| error.code);
        assert_eq!(result, Err("SerializationException"), "{operation} {body}");
    }
}

#[test]
fn names_and_arns_have_to_agree() {
    let (mut kinesis, _) = with_stream(1);
    let arn = kinesis.stream("s").unwrap().arn();
    let mut ask = |body: Value| call(&mut kinesis, "DescribeStreamSummary", body);
    assert!(ask(json!({"StreamARN": arn})).is_ok());
    assert!(ask(json!({"StreamARN": arn, "StreamName": "s"})).is_ok());
    assert_eq!(code(ask(json!({"StreamARN": arn, "StreamName": "t"}))), "InvalidArgumentException");
    assert_eq!(code(ask(json!({}))), "InvalidArgumentException");
    assert_eq!(code(ask(json!({"StreamARN": "s"}))), "ValidationException");
    let elsewhere = arn.replace("us-east-1", "eu-west-1");
    assert_eq!(code(ask(json!({"StreamARN": elsewhere}))), "ResourceNotFoundException");
    let unknown = ask(json!({"StreamName": "t"})).unwrap_err();
    assert_eq!(unknown.message, "Stream t under account 000000000000 not found.");
    assert_eq!(unknown.to_json()["__type"], "ResourceNotFoundException");
}

#[test]
fn a_dry_run_changes_nothing() {
    let (mut kinesis, _) = with_stream(1);
    let body = json!({"StreamName": "s", "PartitionKey": "k", "Data": "", "DryRun": true});
    assert_eq!(code(call(&mut kinesis, "PutRecord", body)), "DryRunOperationException");
    let body = json!({"StreamName": "t", "PartitionKey": "k", "Data": "", "DryRun": true});
    assert_eq!(code(call(&mut kinesis, "PutRecord", body)), "ResourceNotFoundException");
    assert_eq!(kinesis.stream("s").unwrap().shard(ShardIndex(0)).unwrap().next_position(), 1);
}

#[test]
fn descriptions_come_in_pages() {
    let (mut kinesis, _) = with_stream(250);
    let mut seen = Vec::new();
    let mut start = Value::Null;
    loop {
        let body = json!({"StreamName": "s", "ExclusiveStartShardId": start, "Limit": 120});
        let answer = call(&mut kinesis, "DescribeStream", body).unwrap()["StreamDescription"].clone();
        let shards = answer["Shards"].as_array().unwrap().clone();
        assert!(shards.len() <= 100);
        seen.extend(shards.iter().map(|shard| shard["ShardId"].as_str().unwrap().to_owned()));
        start = shards.last().unwrap()["ShardId"].clone();
        if answer["HasMoreShards"] == json!(false) {
            break;
        }
    }
    let all: Vec<String> = (0..250).map(|i| ShardIndex(i).to_string()).collect();
    assert_eq!(seen, all);
}

#[test]
fn start_and_number_have_to_fit() {
    let (mut kinesis, _) = with_stream(1);
    let number = put(&mut kinesis, T0, 0).sequence_number.to_string();
    let mut ask = |kind: &str, more: Value| {
        let mut body =
            json!({"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": kind});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call(&mut kinesis, "GetShardIterator", body)
    };
    assert!(ask("AT_SEQUENCE_NUMBER", json!({"StartingSequenceNumber": number})).is_ok());
    assert!(ask("AT_TIMESTAMP", json!({"Timestamp": T0 as f64 / 1000.0 - 0.001})).is_ok());
    assert_eq!(code(ask("AT_TIMESTAMP", json!({}))), "InvalidArgumentException");
    assert_eq!(code(ask("AT_SEQUENCE_NUMBER", json!({}))), "InvalidArgumentException");
    assert_eq!(code(ask("LATEST", json!({"StartingSequenceNumber": number}))), "InvalidArgumentException");
    let long = json!({"StartingSequenceNumber": "9".repeat(129)});
    assert_eq!(code(ask("AT_SEQUENCE_NUMBER", long)), "InvalidArgumentException");
    let longer = json!({"StartingSequenceNumber": "9".repeat(130)});
    assert_eq!(code(ask("AT_SEQUENCE_NUMBER", longer)), "ValidationException");
}

#[test]
fn an_operation_not_offered_says_so() {
    let (mut kinesis, _) = with_stream(1);
    assert_eq!(code(call(&mut kinesis, "Nonsense", json!({}))), "UnknownOperationException");
    assert_eq!(code(call(&mut kinesis, "SubscribeToShard", json!({}))), "InvalidArgumentException");
}
