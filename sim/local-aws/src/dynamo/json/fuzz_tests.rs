//! Whatever the body, an answer or a refusal: never a panic.

use super::*;
use crate::dynamo::testing::{NOW, item, put, s, simple};
use proptest::prelude::*;

fn simple_with_lease() -> Dynamo {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("shard-1"))]));
    dynamo
}

/// JSON that often has the members of real requests, in all manner of wrong places.
fn any_json() -> impl Strategy<Value = Value> {
    let words = "tab p S N SS 1 :v #n HASH EQ ALL_OLD COUNT é by-owner \
        arn:aws:dynamodb:us-east-1:000000000000:table/tab PAY_PER_REQUEST";
    let words = words.split(' ').chain(["p = :v", "SET x = :v", ""]).collect::<Vec<_>>();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words).prop_map(Value::from),
        Just(json!({ "p": {"S": "shard-1"} })),
        Just(json!({"N": "1"})),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(member(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn member() -> impl Strategy<Value = String> {
    let members = "TableName Key Item Expected AttributeUpdates UpdateExpression ConditionExpression \
        ExpressionAttributeValues ExpressionAttributeNames ProjectionExpression FilterExpression \
        KeyConditionExpression KeyConditions QueryFilter ScanFilter AttributesToGet Limit Select \
        ExclusiveStartKey Segment TotalSegments IndexName RequestItems TransactItems Keys Get Put Update \
        Delete ConditionCheck PutRequest DeleteRequest AttributeDefinitions AttributeName AttributeType \
        KeySchema KeyType GlobalSecondaryIndexes Projection ProjectionType NonKeyAttributes \
        GlobalSecondaryIndexUpdates Create ProvisionedThroughput ReadCapacityUnits WriteCapacityUnits Tags \
        TagKeys ResourceArn Value Exists Action ComparisonOperator AttributeValueList ConditionalOperator \
        ReturnValues ReturnConsumedCapacity PointInTimeRecoverySpecification TimeToLiveSpecification \
        Enabled p tab S N M L :v #n BillingMode StreamSpecification ClientRequestToken \
        RecoveryPeriodInDays PointInTimeRecoveryEnabled";
    prop::sample::select(members.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// Successful bodies, one or more for each operation, full of members.
fn good_bodies() -> Vec<(&'static str, Value)> {
    let key = json!({ "p": {"S": "shard-1"} });
    let names = json!({ "#n": "name" });
    let values = json!({ ":v": {"N": "1"}, ":l": {"L": [{"SS": ["a"]}]} });
    let filter = json!({ "x": { "ComparisonOperator": "NULL" }, "y": { "ComparisonOperator": "NE", "AttributeValueList": [{"N": "1"}] } });
    let request = json!({ "TableName": "tab", "Key": key, "ConditionExpression": "#n <> :v AND size(a.b[0]) <> :l",
        "ExpressionAttributeNames": names, "ExpressionAttributeValues": values, "ReturnValuesOnConditionCheckFailure": "ALL_OLD" });
    let with = |extra: Value| {
        let mut body = request.clone();
        for (name, value) in extra.as_object().cloned().unwrap_or_default() {
            body[name] = value;
        }
        body
    };
    let update = with(json!({
        "UpdateExpression": "SET #n = if_not_exists(#n, :v) + :v, b = list_append(:l, :l) REMOVE c ADD d :v"
    }));
    let mut put = with(
        json!({ "Item": { "p": {"S": "shard-1"}, "m": {"M": { "b": {"B": "AAE="}, "ns": {"NS": ["1", "2"]} }} } }),
    );
    put.as_object_mut().unwrap().remove("Key");
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/tab";
    let get = json!({ "TableName": "tab", "Key": key, "ProjectionExpression": "#n, a.b[0]", "ExpressionAttributeNames": names });
    let create = json!({
        "TableName": "other", "BillingMode": "PROVISIONED",
        "AttributeDefinitions": [{ "AttributeName": "a", "AttributeType": "S" }, { "AttributeName": "b", "AttributeType": "N" }],
        "KeySchema": [{ "AttributeName": "a", "KeyType": "HASH" }, { "AttributeName": "b", "KeyType": "RANGE" }],
        "ProvisionedThroughput": { "ReadCapacityUnits": 1, "WriteCapacityUnits": 1 },
        "GlobalSecondaryIndexes": [{ "IndexName": "index", "KeySchema": [{ "AttributeName": "b", "KeyType": "HASH" }],
            "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"] },
            "ProvisionedThroughput": { "ReadCapacityUnits": 1, "WriteCapacityUnits": 1 } }],
        "Tags": [{ "Key": "k", "Value": "v" }]
    });
    vec![
        ("GetItem", get.clone()),
        ("PutItem", put.clone()),
        ("UpdateItem", update.clone()),
        ("DeleteItem", request.clone()),
        (
            "UpdateItem",
            json!({ "TableName": "tab", "Key": key, "Expected": filter, "ConditionalOperator": "OR", "ReturnValues": "ALL_NEW",
            "AttributeUpdates": { "x": { "Value": {"N": "1"} }, "y": { "Action": "ADD", "Value": {"SS": ["a"]} }, "z": { "Action": "DELETE" } } }),
        ),
        (
            "Query",
            json!({ "TableName": "tab", "KeyConditionExpression": "p = :p", "FilterExpression": "#n <> :v", "Limit": 5,
            "ExpressionAttributeNames": names, "ExpressionAttributeValues": { ":p": {"S": "shard-1"}, ":v": {"N": "1"} }, "ReturnConsumedCapacity": "INDEXES" }),
        ),
        (
            "Query",
            json!({ "TableName": "tab", "QueryFilter": filter, "AttributesToGet": ["p"], "ScanIndexForward": false,
            "KeyConditions": { "p": { "ComparisonOperator": "EQ", "AttributeValueList": [{"S": "shard-1"}] } } }),
        ),
        (
            "Scan",
            json!({ "TableName": "tab", "ScanFilter": filter, "ConditionalOperator": "AND", "Segment": 0, "TotalSegments": 1,
            "ExclusiveStartKey": key, "Limit": 1 }),
        ),
        (
            "BatchGetItem",
            json!({ "RequestItems": { "tab": { "Keys": [key, { "p": {"S": "b"} }], "ConsistentRead": true } } }),
        ),
        (
            "BatchWriteItem",
            json!({ "RequestItems": { "tab": [{ "PutRequest": { "Item": key } }, { "DeleteRequest": { "Key": { "p": {"S": "b"} } } }] } }),
        ),
        ("TransactGetItems", json!({ "TransactItems": [{ "Get": get }] })),
        (
            "TransactWriteItems",
            json!({ "TransactItems": [{ "Update": update }], "ClientRequestToken": "token" }),
        ),
        (
            "TransactWriteItems",
            json!({ "TransactItems": [{ "Put": put }], "ReturnConsumedCapacity": "TOTAL" }),
        ),
        (
            "TransactWriteItems",
            json!({ "TransactItems": [{ "Delete": request }, { "ConditionCheck": { "TableName": "tab",
            "Key": { "p": {"S": "b"} }, "ConditionExpression": "attribute_not_exists(p)" } }] }),
        ),
        ("CreateTable", create.clone()),
        (
            "UpdateTable",
            json!({ "TableName": "tab", "AttributeDefinitions": create["AttributeDefinitions"], "DeletionProtectionEnabled": true,
            "GlobalSecondaryIndexUpdates": [{ "Create": { "IndexName": "index", "KeySchema": [{ "AttributeName": "b", "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "ALL" } } }] }),
        ),
        ("DescribeTable", json!({ "TableName": arn })),
        ("DeleteTable", json!({ "TableName": "tab" })),
        ("ListTables", json!({ "Limit": 1, "ExclusiveStartTableName": "a" })),
        (
            "UpdateContinuousBackups",
            json!({ "TableName": "tab",
            "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 3 } }),
        ),
        ("DescribeContinuousBackups", json!({ "TableName": "tab" })),
        (
            "UpdateTimeToLive",
            json!({ "TableName": "tab", "TimeToLiveSpecification": { "AttributeName": "x", "Enabled": true } }),
        ),
        ("DescribeTimeToLive", json!({ "TableName": "tab" })),
        ("TagResource", json!({ "ResourceArn": arn, "Tags": [{ "Key": "k", "Value": "v" }] })),
        ("UntagResource", json!({ "ResourceArn": arn, "TagKeys": ["k"] })),
        ("ListTagsOfResource", json!({ "ResourceArn": arn })),
        ("DescribeLimits", json!({})),
        ("DescribeEndpoints", json!({})),
    ]
}

/// Pointers to every place in a body.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| places(inner, &format!("{at}/{index}"), found));
        }
        Value::Object(map) => {
            map.iter().for_each(|(name, inner)| places(inner, &format!("{at}/{name}"), found))
        }
        _ => {}
    }
}

#[test]
fn the_good_bodies_are_good_and_cover_every_operation() {
    let bodies = good_bodies();
    for (operation, body) in &bodies {
        let answer = simple_with_lease().call(NOW, operation, body);
        answer.unwrap_or_else(|error| panic!("{operation}: {error}"));
    }
    for operation in Dynamo::operations() {
        assert!(bodies.iter().any(|(name, _)| *name == operation), "{operation}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn no_body_makes_any_operation_panic(
        members in prop::collection::btree_map(member(), any_json(), 0..8),
        named in any::<bool>(),
        now in prop_oneof![Just(NOW), any::<i64>()],
    ) {
        let mut body = Value::Object(members.into_iter().collect());
        if named {
            body["TableName"] = json!("tab");
            body["Key"] = json!({ "p": {"S": "shard-1"} });
        }
        for operation in Dynamo::operations() {
            let mut dynamo = simple_with_lease();
            if let Err(error) = dynamo.call(now, operation, &body) {
                prop_assert_eq!(error.http_status, 400);
                prop_assert!(error.to_json()["__type"].is_string());
            }
        }
    }

    #[test]
    fn good_bodies_with_a_part_replaced_are_answered_or_refused(
        chosen in any::<prop::sample::Index>(),
        parts in prop::collection::vec((any::<prop::sample::Index>(), any_json()), 1..3),
        text in "[ab#n:v()\\[\\].,=<>+\\-0 ANDORTIESZ_]{0,20}",
        as_text in any::<bool>(),
    ) {
        let bodies = good_bodies();
        let (operation, mut body) = chosen.get(&bodies).clone();
        for (place, replacement) in parts {
            let mut found = Vec::new();
            places(&body, "", &mut found);
            if let Some(part) = body.pointer_mut(place.get(found.as_slice()).as_str()) {
                *part = if as_text && part.is_string() { json!(text) } else { replacement };
            }
        }
        let mut dynamo = simple_with_lease();
        for now in [NOW, NOW + 10_000] {
            if let Err(error) = dynamo.call(now, operation, &body) {
                prop_assert_eq!(error.http_status, 400);
                prop_assert!(!error.code.is_empty());
            }
        }
    }

    #[test]
    fn no_value_at_all_makes_any_operation_panic(body in any_json()) {
        for operation in Dynamo::operations() {
            let _ = simple_with_lease().call(NOW, operation, &body);
        }
    }
}
