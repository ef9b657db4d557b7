//! Whatever the body, an answer or a refusal: never a panic.

use super::*;
use crate::fakes::dynamo::testing::{NOW, item, put, s, simple};
use proptest::prelude::*;

fn simple_with_lease() -> Dynamo {
    let mut dynamo = simple();
    put(&mut dynamo, item([("p", s("shard-1"))]));
    dynamo
}

/// JSON that often has the members of real requests, in all manner of wrong places.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "tab",
        "p",
        "S",
        "N",
        "SS",
        "1",
        ":v",
        "#n",
        "p = :v",
        "SET x = :v",
        "HASH",
        "EQ",
        "ALL_OLD",
        "COUNT",
        "",
        "é",
        "by-owner",
        "arn:aws:dynamodb:us-east-1:000000000000:table/tab",
        "PAY_PER_REQUEST",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
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
    let members = [
        "TableName",
        "Key",
        "Item",
        "Expected",
        "AttributeUpdates",
        "UpdateExpression",
        "ConditionExpression",
        "ExpressionAttributeValues",
        "ExpressionAttributeNames",
        "ProjectionExpression",
        "FilterExpression",
        "KeyConditionExpression",
        "KeyConditions",
        "QueryFilter",
        "ScanFilter",
        "AttributesToGet",
        "Limit",
        "Select",
        "ExclusiveStartKey",
        "Segment",
        "TotalSegments",
        "IndexName",
        "RequestItems",
        "TransactItems",
        "Keys",
        "Get",
        "Put",
        "Update",
        "Delete",
        "ConditionCheck",
        "PutRequest",
        "DeleteRequest",
        "AttributeDefinitions",
        "AttributeName",
        "AttributeType",
        "KeySchema",
        "KeyType",
        "GlobalSecondaryIndexes",
        "Projection",
        "ProjectionType",
        "NonKeyAttributes",
        "GlobalSecondaryIndexUpdates",
        "Create",
        "ProvisionedThroughput",
        "ReadCapacityUnits",
        "WriteCapacityUnits",
        "Tags",
        "TagKeys",
        "ResourceArn",
        "Value",
        "Exists",
        "Action",
        "ComparisonOperator",
        "AttributeValueList",
        "ConditionalOperator",
        "ReturnValues",
        "ReturnConsumedCapacity",
        "PointInTimeRecoverySpecification",
        "TimeToLiveSpecification",
        "Enabled",
        "p",
        "tab",
        "S",
        "N",
        "M",
        "L",
        ":v",
        "#n",
        "BillingMode",
        "StreamSpecification",
        "ClientRequestToken",
        "RecoveryPeriodInDays",
        "PointInTimeRecoveryEnabled",
    ];
    prop::sample::select(members.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

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
        for operation in Dynamo::OPERATIONS {
            let mut dynamo = simple_with_lease();
            if let Err(error) = dynamo.call(now, operation, &body) {
                prop_assert_eq!(error.http_status, 400);
                prop_assert!(error.to_json()["__type"].is_string());
            }
        }
    }

    #[test]
    fn no_value_at_all_makes_any_operation_panic(body in any_json()) {
        for operation in Dynamo::OPERATIONS {
            let _ = simple_with_lease().call(NOW, operation, &body);
        }
    }
}
