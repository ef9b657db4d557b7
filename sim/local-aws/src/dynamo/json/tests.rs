//! The protocol from outside: bodies in, bodies out.

use super::*;
use crate::dynamo::testing::{NOW, call, invalid, refused, simple};
use crate::dynamo::{DynamoConfig, Status};

fn lease() -> Value {
    json!({ "p": {"S": "shard-1"}, "leaseOwner": {"S": "w1"}, "leaseCounter": {"N": "5"} })
}

fn leased() -> Dynamo {
    let mut dynamo = simple();
    call(&mut dynamo, "PutItem", json!({ "Item": lease() })).unwrap();
    dynamo
}

#[test]
fn the_legacy_conditions_of_the_java_client_hold_and_fail() {
    let mut dynamo = leased();
    let renew = |counter: &str| {
        json!({
            "Key": { "p": {"S": "shard-1"} },
            "Expected": { "leaseCounter": { "Value": {"N": counter} }, "leaseOwner": { "Value": {"S": "w1"} } },
            "AttributeUpdates": { "leaseCounter": { "Value": {"N": "6"}, "Action": "PUT" }, "seen": { "Value": {"BOOL": true} } },
            "ReturnValues": "ALL_NEW"
        })
    };
    let reply = call(&mut dynamo, "UpdateItem", renew("5")).unwrap();
    assert_eq!(reply["Attributes"]["leaseCounter"], json!({"N": "6"}));
    assert_eq!(reply["Attributes"]["seen"], json!({"BOOL": true}));
    let error =
        refused(call(&mut dynamo, "UpdateItem", renew("5")), "ConditionalCheckFailedException", "failed");
    assert_eq!(error.http_status, 400);
    assert_eq!(
        error.to_json(),
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
            "message": "The conditional request failed"
        })
    );
    let create = json!({ "Item": lease(), "Expected": { "p": { "Exists": false } } });
    refused(call(&mut dynamo, "PutItem", create), "ConditionalCheckFailedException", "failed");
}

#[test]
fn a_failed_condition_carries_the_item_if_asked() {
    let mut dynamo = leased();
    let body = json!({
        "Key": { "p": {"S": "shard-1"} },
        "ConditionExpression": "leaseCounter = :c",
        "ExpressionAttributeValues": { ":c": {"N": "1"} },
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD"
    });
    let error = call(&mut dynamo, "DeleteItem", body).unwrap_err();
    assert_eq!(error.to_json()["Item"], lease());
}

#[test]
fn legacy_operators_and_their_or_are_understood() {
    let mut dynamo = leased();
    let mut put = |operator: Option<&str>, condition: Value| {
        let mut body = json!({ "Item": lease(), "Expected": condition });
        if let Some(operator) = operator {
            body["ConditionalOperator"] = json!(operator);
        }
        call(&mut dynamo, "PutItem", body)
    };
    let op = |operator: &str, values: Value| json!({ "ComparisonOperator": operator, "AttributeValueList": values });
    let unary = |operator: &str| json!({ "ComparisonOperator": operator });
    for (operator, condition) in [
        (None, json!({ "leaseCounter": op("GT", json!([{"N": "4"}])) })),
        (None, json!({ "leaseCounter": op("BETWEEN", json!([{"N": "4"}, {"N": "6"}])) })),
        (None, json!({ "leaseOwner": op("IN", json!([{"S": "w2"}, {"S": "w1"}])) })),
        (None, json!({ "leaseOwner": op("BEGINS_WITH", json!([{"S": "w"}])), "x": unary("NULL") })),
        (None, json!({ "leaseOwner": op("NOT_CONTAINS", json!([{"S": "z"}])), "p": unary("NOT_NULL") })),
        (Some("OR"), json!({ "leaseOwner": op("NE", json!([{"S": "w1"}])), "p": unary("NOT_NULL") })),
    ] {
        put(operator, condition.clone()).unwrap_or_else(|error| panic!("{condition}: {error}"));
    }
    let mut refuse = |part: &str, condition: Value| invalid(put(None, condition), part);
    refuse("Value must be provided when Exists is true", json!({ "a": { "Exists": true } }));
    let with_value = json!({ "a": { "Exists": false, "Value": {"N": "1"} } });
    refuse("Value cannot be used when Exists is false", with_value);
    refuse("cannot be used together", json!({ "a": { "Exists": false, "ComparisonOperator": "NULL" } }));
    refuse("Invalid number of argument(s) for the EQ", json!({ "a": op("EQ", json!([])) }));
    refuse("lower bound is greater", json!({ "a": op("BETWEEN", json!([{"N": "2"}, {"N": "1"}])) }));
    refuse("must be of same type", json!({ "a": op("IN", json!([{"N": "2"}, {"S": "1"}])) }));
    refuse("not valid for BOOL", json!({ "a": op("LT", json!([{"BOOL": true}])) }));
    refuse("enum value set", json!({ "a": op("XX", json!([{"N": "2"}])) }));
    invalid(put(Some("OR"), json!({ "a": { "Exists": false } })), "two or more elements");
    invalid(put(Some("AND"), json!({})), "cannot be used without Filter or Expected");
}

#[test]
fn legacy_updates_put_by_default_and_take_from_sets() {
    let mut dynamo = leased();
    let mut update = |updates: Value| {
        let body = json!({ "Key": { "p": {"S": "shard-1"} }, "AttributeUpdates": updates, "ReturnValues": "UPDATED_NEW" });
        call(&mut dynamo, "UpdateItem", body)
    };
    let add = |value: Value| json!({ "Action": "ADD", "Value": value });
    for (updates, expected) in [
        (
            json!({ "set": { "Value": {"SS": ["a", "b"]} }, "leaseCounter": add(json!({"N": "2"})) }),
            json!({ "set": {"SS": ["a", "b"]}, "leaseCounter": {"N": "7"} }),
        ),
        (json!({ "set": { "Action": "DELETE", "Value": {"SS": ["a"]} } }), json!({ "set": {"SS": ["b"]} })),
        (
            json!({ "set": { "Action": "DELETE" }, "l": add(json!({"L": [{"N": "1"}]})) }),
            json!({ "l": {"L": [{"N": "1"}]} }),
        ),
    ] {
        assert_eq!(update(updates.clone()).unwrap()["Attributes"], expected, "{updates}");
    }
    invalid(update(json!({ "x": { "Action": "PUT" } })), "Only DELETE action is allowed");
    invalid(
        update(json!({ "x": { "Action": "ADD", "Value": {"S": "a"} } })),
        "ADD action is not supported for the type S",
    );
    invalid(update(json!({ "p": { "Value": {"S": "a"} } })), "part of the key");
}

#[test]
fn forms_are_not_mixed_and_nothing_is_given_in_vain() {
    let mut dynamo = leased();
    let key = json!({ "p": {"S": "shard-1"} });
    let conditional = |values: Value| json!({ "Item": lease(), "ConditionExpression": "a = :a", "ExpressionAttributeValues": values });
    let both = "Non-expression parameters: {Expected} Expression parameters: {UpdateExpression}";
    let mixed = json!({ "Key": key, "UpdateExpression": "REMOVE x", "Expected": {} });
    let valued = json!({ "Key": key, "ExpressionAttributeValues": {":a": {"N": "1"}} });
    let named =
        json!({ "Key": key, "ProjectionExpression": "#a, #b", "ExpressionAttributeNames": {"#a": "x"} });
    let only_names = json!({ "Key": key, "ExpressionAttributeNames": {"#a": "a"} });
    let twice = json!({ "Key": key, "AttributesToGet": ["a", "a"] });
    let returning = |values: &str| json!({ "Item": lease(), "ReturnValues": values });
    let unused = conditional(json!({ ":a": {"N": "1"}, ":b": {"N": "1"} }));
    for (operation, body, part) in [
        ("UpdateItem", mixed, both),
        ("GetItem", only_names, "can only be specified when using expressions"),
        ("UpdateItem", valued, "UpdateExpression and ConditionExpression are null"),
        ("PutItem", unused, "unused in expressions: keys: {:b}"),
        ("GetItem", named, "attribute name: #b"),
        ("PutItem", conditional(json!({ ":a": {} })), "invalid value: Supplied AttributeValue is empty"),
        ("GetItem", twice, "Duplicate value in attribute name: a"),
        ("GetItem", json!({}), "Value null at 'key' failed to satisfy constraint"),
        ("PutItem", returning("ALL_NEW"), "ReturnValues can only be ALL_OLD or NONE"),
        (
            "PutItem",
            returning("x"),
            "at 'returnValues' failed to satisfy constraint: Member must satisfy enum",
        ),
        ("Query", json!({}), "Either the KeyConditions or KeyConditionExpression"),
        ("Scan", json!({ "Limit": 0 }), "greater than or equal to 1"),
        ("Scan", json!({ "Segment": 1 }), "TotalSegments parameter is required"),
        ("Scan", json!({ "Select": "SPECIFIC_ATTRIBUTES" }), "Must specify"),
    ] {
        invalid(call(&mut dynamo, operation, body), part);
    }
    let error = dynamo.call(NOW, "GetItem", &json!({ "TableName": 5 })).unwrap_err();
    assert_eq!(
        error.to_json(),
        json!({
            "__type": "com.amazon.coral.service#SerializationException",
            "Message": "NUMBER_VALUE cannot be converted to String"
        })
    );
    assert_eq!(dynamo.call(NOW, "Frobnicate", &json!({})).unwrap_err().code, "UnknownOperationException");
    assert_eq!(dynamo.call(NOW, "GetItem", &json!([])).unwrap_err().code, "SerializationException");
}

#[test]
fn queries_and_scans_speak_both_forms_and_tell_their_cost() {
    let mut dynamo = leased();
    let new = json!({
        "KeyConditionExpression": "p = :p", "FilterExpression": "leaseCounter > :c",
        "ExpressionAttributeValues": { ":p": {"S": "shard-1"}, ":c": {"N": "4"} },
        "ReturnConsumedCapacity": "INDEXES"
    });
    let reply = call(&mut dynamo, "Query", new).unwrap();
    assert_eq!((&reply["Count"], &reply["Items"]), (&json!(1), &json!([lease()])));
    assert_eq!(
        reply["ConsumedCapacity"],
        json!({ "TableName": "tab", "CapacityUnits": 0.5, "Table": { "CapacityUnits": 0.5 } })
    );
    let old = json!({
        "KeyConditions": { "p": { "ComparisonOperator": "EQ", "AttributeValueList": [{"S": "shard-1"}] } },
        "QueryFilter": { "leaseCounter": { "ComparisonOperator": "LT", "AttributeValueList": [{"N": "4"}] } },
        "Select": "COUNT"
    });
    assert_eq!(call(&mut dynamo, "Query", old).unwrap(), json!({ "Count": 0, "ScannedCount": 1 }));
    let scan = json!({ "Limit": 1, "AttributesToGet": ["p"] });
    let reply = call(&mut dynamo, "Scan", scan).unwrap();
    assert_eq!(reply["Items"], json!([{ "p": {"S": "shard-1"} }]));
    assert_eq!(reply["LastEvaluatedKey"], json!({ "p": {"S": "shard-1"} }));
}

#[test]
fn batches_and_transactions_speak_json() {
    let mut dynamo = leased();
    let arn = dynamo.arn("tab");
    let body = json!({ "RequestItems": { "tab": [
        { "PutRequest": { "Item": { "p": {"S": "x"} } } }, { "DeleteRequest": { "Key": { "p": {"S": "y"} } } }
    ] }, "ReturnConsumedCapacity": "TOTAL" });
    let reply = call(&mut dynamo, "BatchWriteItem", body).unwrap();
    assert_eq!(reply["UnprocessedItems"], json!({}));
    assert_eq!(reply["ConsumedCapacity"], json!([{ "TableName": "tab", "CapacityUnits": 2.0 }]));
    let body =
        json!({ "RequestItems": { arn.clone(): { "Keys": [{ "p": {"S": "x"} }, { "p": {"S": "none"} }] } } });
    let reply = call(&mut dynamo, "BatchGetItem", body).unwrap();
    assert_eq!(reply["Responses"][&arn], json!([{ "p": {"S": "x"} }]));
    let body = json!({ "TransactItems": [
        { "ConditionCheck": { "TableName": "tab", "Key": { "p": {"S": "shard-1"} }, "ConditionExpression": "attribute_exists(nothing)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD" } },
        { "Put": { "TableName": "tab", "Item": { "p": {"S": "z"} } } }
    ] });
    let error = call(&mut dynamo, "TransactWriteItems", body).unwrap_err().to_json();
    assert_eq!(
        error["CancellationReasons"],
        json!([
            { "Code": "ConditionalCheckFailed", "Message": "The conditional request failed", "Item": lease() },
            { "Code": "None" }
        ])
    );
    let body = json!({ "TransactItems": [
        { "Get": { "TableName": "tab", "Key": { "p": {"S": "x"} } } },
        { "Get": { "TableName": "tab", "Key": { "p": {"S": "z"} } } }
    ] });
    let reply = call(&mut dynamo, "TransactGetItems", body).unwrap();
    assert_eq!(reply["Responses"], json!([{ "Item": { "p": {"S": "x"} } }, {}]));
}

#[test]
fn a_table_is_made_described_and_changed_in_json() {
    let mut dynamo = Dynamo::new(DynamoConfig::default());
    let body = json!({
        "TableName": "leases",
        "AttributeDefinitions": [
            { "AttributeName": "leaseKey", "AttributeType": "S" }, { "AttributeName": "leaseOwner", "AttributeType": "S" }
        ],
        "KeySchema": [{ "AttributeName": "leaseKey", "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "LeaseOwnerToLeaseKeyIndex",
            "KeySchema": [{ "AttributeName": "leaseOwner", "KeyType": "HASH" }, { "AttributeName": "leaseKey", "KeyType": "RANGE" }],
            "Projection": { "ProjectionType": "KEYS_ONLY" }
        }],
        "BillingMode": "PAY_PER_REQUEST",
        "Tags": [{ "Key": "team", "Value": "a" }]
    });
    let reply = dynamo.call(0, "CreateTable", &body).unwrap();
    assert_eq!(reply["TableDescription"]["TableStatus"], "CREATING");
    let reply = dynamo.call(1000, "DescribeTable", &json!({ "TableName": "leases" })).unwrap();
    let table = &reply["Table"];
    assert_eq!(table["TableStatus"], "ACTIVE");
    assert_eq!(table["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    assert_eq!(table["GlobalSecondaryIndexes"][0]["IndexStatus"], "ACTIVE");
    assert_eq!(table["TableArn"], "arn:aws:dynamodb:us-east-1:000000000000:table/leases");
    let body = json!({ "TableName": "leases", "GlobalSecondaryIndexUpdates": [{ "Delete": { "IndexName": "LeaseOwnerToLeaseKeyIndex" } }] });
    dynamo.call(1000, "UpdateTable", &body).unwrap();
    assert_eq!(dynamo.table("leases").unwrap().status, Status::Updating);
    let body = json!({ "TableName": "leases", "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true } });
    let reply = dynamo.call(2000, "UpdateContinuousBackups", &body).unwrap();
    let recovery = &reply["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"];
    assert_eq!(recovery["PointInTimeRecoveryStatus"], "ENABLED");
    let body = json!({ "TableName": "leases", "TimeToLiveSpecification": { "AttributeName": "x", "Enabled": true } });
    dynamo.call(2000, "UpdateTimeToLive", &body).unwrap();
    let reply = dynamo.call(2000, "DescribeTimeToLive", &json!({ "TableName": "leases" })).unwrap();
    assert_eq!(
        reply["TimeToLiveDescription"],
        json!({ "TimeToLiveStatus": "ENABLED", "AttributeName": "x" })
    );
    let arn = dynamo.arn("leases");
    let reply = dynamo.call(2000, "ListTagsOfResource", &json!({ "ResourceArn": arn })).unwrap();
    assert_eq!(reply, json!({ "Tags": [{ "Key": "team", "Value": "a" }] }));
    for (body, part) in [
        (json!({ "TableName": "bad" }), "attributeDefinitions"),
        (
            json!({ "TableName": "bad", "AttributeDefinitions": [], "KeySchema": [{ "AttributeName": "a", "KeyType": "RANGE" }] }),
            "first KeySchemaElement",
        ),
        (
            json!({ "TableName": "bad", "AttributeDefinitions": [], "KeySchema": [{ "AttributeName": "a", "KeyType": "HASH" }] }),
            "not defined in AttributeDefinitions",
        ),
    ] {
        invalid(dynamo.call(0, "CreateTable", &body), part);
    }
}
