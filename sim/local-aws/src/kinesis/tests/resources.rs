use super::*;

const ARN: &str = "arn:aws:kinesis:us-east-1:000000000000:stream/s";

#[test]
fn consumers_come_and_go() {
    let mut kinesis = with_settings(KinesisConfig::default(), 1);
    let now = T0 + 1000;
    let consumer = kinesis.register_consumer(now, ARN, "c", BTreeMap::new()).unwrap();
    assert_eq!(consumer.arn, format!("{ARN}/consumer/c:{}", now / 1000));
    assert_eq!(consumer.status, ConsumerStatus::Creating);
    let again = kinesis.register_consumer(now, ARN, "c", BTreeMap::new());
    assert_eq!(code(again), "ResourceInUseException");
    let by_name = kinesis.describe_consumer(now + 500, None, Some((ARN, "c"))).unwrap();
    assert_eq!(by_name.status, ConsumerStatus::Active);
    assert_eq!(kinesis.describe_consumer(now + 500, Some(&consumer.arn), None).unwrap(), by_name);
    let other_life = format!("{ARN}/consumer/c:1");
    assert_eq!(code(kinesis.describe_consumer(now, Some(&other_life), None)), "ResourceNotFoundException");
    assert_eq!(code(kinesis.delete_stream(now, "s", false)), "ResourceInUseException");
    kinesis.deregister_consumer(now + 600, Some(&consumer.arn), None).unwrap();
    let leaving = kinesis.describe_consumer(now + 601, None, Some((ARN, "c"))).unwrap();
    assert_eq!(leaving.status, ConsumerStatus::Deleting);
    let gone = kinesis.describe_consumer(now + 1100, None, Some((ARN, "c")));
    assert_eq!(code(gone), "ResourceNotFoundException");
}

#[test]
fn a_stream_has_twenty_consumers_listed_in_pages() {
    let (mut kinesis, _) = with_stream(1);
    for i in 0..20 {
        kinesis.register_consumer(T0, ARN, &format!("c{i:02}"), BTreeMap::new()).unwrap();
    }
    let more = kinesis.register_consumer(T0, ARN, "more", BTreeMap::new());
    assert_eq!(code(more), "LimitExceededException");
    let page = kinesis.list_consumers(T0, ARN, None, Some(15)).unwrap();
    let token = page.next_token.unwrap();
    let rest = kinesis.list_consumers(T0, ARN, Some(&token), Some(15)).unwrap();
    assert_eq!((page.consumers.len(), rest.consumers.len(), rest.next_token), (15, 5, None));
    assert_eq!(rest.consumers[0].name, "c15");
    kinesis.delete_stream(T0, "s", true).unwrap();
}

#[test]
fn tags_of_streams_and_consumers() {
    let (mut kinesis, _) = with_stream(1);
    let consumer = kinesis.register_consumer(T0, ARN, "c", BTreeMap::new()).unwrap();
    let mut call = |operation: &str, body: Value| kinesis.call(T0, operation, body);
    call("AddTagsToStream", json!({"StreamName": "s", "Tags": {"a": "1", "b": "2", "c": "3"}})).unwrap();
    call("RemoveTagsFromStream", json!({"StreamName": "s", "TagKeys": ["b", "none"]})).unwrap();
    let page = call("ListTagsForStream", json!({"StreamARN": ARN, "Limit": 1})).unwrap();
    assert_eq!(page, json!({"Tags": [{"Key": "a", "Value": "1"}], "HasMoreTags": true}));
    let page = call("ListTagsForStream", json!({"StreamName": "s", "ExclusiveStartTagKey": "a"})).unwrap();
    assert_eq!(page, json!({"Tags": [{"Key": "c", "Value": "3"}], "HasMoreTags": false}));
    call("TagResource", json!({"ResourceARN": consumer.arn, "Tags": {"x": "y"}})).unwrap();
    let tags = call("ListTagsForResource", json!({"ResourceARN": consumer.arn})).unwrap();
    assert_eq!(tags, json!({"Tags": [{"Key": "x", "Value": "y"}]}));
    call("UntagResource", json!({"ResourceARN": ARN, "TagKeys": ["a"]})).unwrap();
    let left = call("ListTagsForResource", json!({"ResourceARN": ARN})).unwrap();
    assert_eq!(left["Tags"].as_array().unwrap().len(), 1);
    let many: Value = (0..50).map(|i| (format!("k{i}"), json!("v"))).collect();
    for tags in [many, json!({"a%": "b"})] {
        let tagged = call("TagResource", json!({"ResourceARN": ARN, "Tags": tags}));
        assert_eq!(tagged.map_err(|error| error.code), Err("InvalidArgumentException"), "{tags}");
    }
}

#[test]
fn monitoring_and_encryption_are_kept_and_shown() {
    let (mut kinesis, _) = with_stream(1);
    let mut call = |operation: &str, body: Value| kinesis.call(T0, operation, body);
    let metrics = json!({"StreamName": "s", "ShardLevelMetrics": ["ALL"]});
    let change = call("EnableEnhancedMonitoring", metrics).unwrap();
    assert_eq!(change["CurrentShardLevelMetrics"], json!([]));
    assert_eq!(change["DesiredShardLevelMetrics"].as_array().unwrap().len(), 7);
    let one = json!({"StreamName": "s", "ShardLevelMetrics": ["IncomingBytes"]});
    let change = call("DisableEnhancedMonitoring", one).unwrap();
    assert_eq!(change["DesiredShardLevelMetrics"].as_array().unwrap().len(), 6);
    let key = json!({"StreamName": "s", "EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"});
    call("StartStreamEncryption", key.clone()).unwrap();
    let put = call("PutRecord", json!({"StreamName": "s", "PartitionKey": "k", "Data": ""})).unwrap();
    assert_eq!(put["EncryptionType"], "KMS");
    let shown = call("DescribeStreamSummary", json!({"StreamName": "s"})).unwrap();
    assert_eq!(shown["StreamDescriptionSummary"]["KeyId"], "alias/aws/kinesis");
    call("StopStreamEncryption", key.clone()).unwrap();
    assert_eq!(code(call("StopStreamEncryption", key)), "InvalidArgumentException");
}
