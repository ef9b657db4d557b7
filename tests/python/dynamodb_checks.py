"""DynamoDB: every operation, in today's forms and in those of old."""

from boto3.dynamodb.conditions import Attr, Key

from checks import FAST, check, dynamodb, eventually, refused, resource

LEASE_KEY = {
    "AttributeDefinitions": [{"AttributeName": "leaseKey", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "leaseKey", "KeyType": "HASH"}],
}


def lease(key, counter=0, **more):
    return {"leaseKey": {"S": key}, "leaseCounter": {"N": str(counter)}, "checkpoint": {"S": "TRIM_HORIZON"}, **more}


def dynamodb_tables():
    made = dynamodb.create_table(
        TableName="leases", BillingMode="PAY_PER_REQUEST", Tags=[{"Key": "team", "Value": "billing"}], **LEASE_KEY
    )["TableDescription"]
    check("CreateTable begins as CREATING", made["TableStatus"], "CREATING")
    refused(
        "CreateTable twice",
        "ResourceInUseException",
        dynamodb.create_table,
        TableName="leases",
        BillingMode="PAY_PER_REQUEST",
        **LEASE_KEY,
    )
    refused(
        "GetItem while CREATING",
        "ResourceNotFoundException",
        dynamodb.get_item,
        TableName="leases",
        Key={"leaseKey": {"S": "x"}},
    )
    dynamodb.get_waiter("table_exists").wait(TableName="leases", **FAST)
    check("waiter table_exists", dynamodb.describe_table(TableName="leases")["Table"]["TableStatus"], "ACTIVE")
    refused("DescribeTable of no table", "ResourceNotFoundException", dynamodb.describe_table, TableName="nowhere")
    refused(
        "CreateTable with a key that is not defined",
        "ValidationException",
        dynamodb.create_table,
        TableName="odd",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=LEASE_KEY["AttributeDefinitions"],
        KeySchema=[{"AttributeName": "other", "KeyType": "HASH"}],
    )
    check("ListTables", dynamodb.list_tables()["TableNames"], ["leases"])
    check(
        "paginator list_tables",
        [
            page["TableNames"]
            for page in dynamodb.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1})
        ][0],
        ["leases"],
    )


def dynamodb_settings():
    arn = dynamodb.describe_table(TableName="leases")["Table"]["TableArn"]
    check(
        "ListTagsOfResource shows the tags of creation",
        dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"],
        [{"Key": "team", "Value": "billing"}],
    )
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "cost", "Value": "low"}])
    dynamodb.untag_resource(ResourceArn=arn, TagKeys=["team"])
    check(
        "TagResource and UntagResource",
        dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"],
        [{"Key": "cost", "Value": "low"}],
    )
    recovery = dynamodb.update_continuous_backups(
        TableName="leases", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )["ContinuousBackupsDescription"]
    check("UpdateContinuousBackups", recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"], "ENABLED")
    check(
        "DescribeContinuousBackups",
        dynamodb.describe_continuous_backups(TableName="leases")["ContinuousBackupsDescription"][
            "PointInTimeRecoveryDescription"
        ]["PointInTimeRecoveryStatus"],
        "ENABLED",
    )
    dynamodb.update_time_to_live(
        TableName="leases", TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"}
    )
    check(
        "UpdateTimeToLive",
        dynamodb.describe_time_to_live(TableName="leases")["TimeToLiveDescription"]["AttributeName"],
        "expires",
    )
    dynamodb.update_table(TableName="leases", DeletionProtectionEnabled=True)
    dynamodb.get_waiter("table_exists").wait(TableName="leases", **FAST)
    refused("DeleteTable of a protected table", "ValidationException", dynamodb.delete_table, TableName="leases")
    dynamodb.update_table(TableName="leases", DeletionProtectionEnabled=False)
    dynamodb.get_waiter("table_exists").wait(TableName="leases", **FAST)


def dynamodb_items():
    dynamodb.put_item(TableName="leases", Item=lease("a"), ConditionExpression="attribute_not_exists(leaseKey)")
    failed = refused(
        "PutItem of a row that is there",
        "ConditionalCheckFailedException",
        dynamodb.put_item,
        TableName="leases",
        Item=lease("a", 7),
        ConditionExpression="attribute_not_exists(leaseKey)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    check("ReturnValuesOnConditionCheckFailure", failed["Item"], lease("a"))
    check(
        "GetItem",
        dynamodb.get_item(TableName="leases", Key={"leaseKey": {"S": "a"}}, ConsistentRead=True)["Item"],
        lease("a"),
    )
    check("GetItem of no item", "Item" in dynamodb.get_item(TableName="leases", Key={"leaseKey": {"S": "none"}}), False)
    check(
        "ProjectionExpression",
        dynamodb.get_item(
            TableName="leases",
            Key={"leaseKey": {"S": "a"}},
            ProjectionExpression="#c",
            ExpressionAttributeNames={"#c": "leaseCounter"},
        )["Item"],
        {"leaseCounter": {"N": "0"}},
    )
    renew = {
        "TableName": "leases",
        "Key": {"leaseKey": {"S": "a"}},
        "UpdateExpression": "SET leaseCounter = :next, leaseOwner = :me ADD ownerSwitchesSinceCheckpoint :one",
        "ConditionExpression": "leaseCounter = :seen AND attribute_not_exists(leaseOwner)",
        "ExpressionAttributeValues": {":next": {"N": "1"}, ":seen": {"N": "0"}, ":me": {"S": "w1"}, ":one": {"N": "1"}},
    }
    taken = dynamodb.update_item(ReturnValues="ALL_NEW", **renew)["Attributes"]
    check(
        "UpdateItem takes a lease",
        taken,
        lease("a", 1, leaseOwner={"S": "w1"}, ownerSwitchesSinceCheckpoint={"N": "1"}),
    )
    refused("UpdateItem with a stale guard", "ConditionalCheckFailedException", dynamodb.update_item, **renew)
    old = dynamodb.update_item(
        TableName="leases",
        Key={"leaseKey": {"S": "a"}},
        UpdateExpression="REMOVE leaseOwner SET leaseCounter = leaseCounter + :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_OLD",
    )
    check("ReturnValues UPDATED_OLD", old["Attributes"], {"leaseOwner": {"S": "w1"}, "leaseCounter": {"N": "1"}})
    refused(
        "a reserved word",
        "ValidationException",
        dynamodb.update_item,
        TableName="leases",
        Key={"leaseKey": {"S": "a"}},
        UpdateExpression="SET name = :v",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    refused(
        "an unused value",
        "ValidationException",
        dynamodb.update_item,
        TableName="leases",
        Key={"leaseKey": {"S": "a"}},
        UpdateExpression="REMOVE leaseOwner",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    refused(
        "a key of the wrong type",
        "ValidationException",
        dynamodb.get_item,
        TableName="leases",
        Key={"leaseKey": {"N": "1"}},
    )
    refused(
        "a key attribute updated",
        "ValidationException",
        dynamodb.update_item,
        TableName="leases",
        Key={"leaseKey": {"S": "a"}},
        UpdateExpression="SET leaseKey = :v",
        ExpressionAttributeValues={":v": {"S": "x"}},
    )
    gone = dynamodb.delete_item(
        TableName="leases",
        Key={"leaseKey": {"S": "a"}},
        ConditionExpression="leaseCounter = :c",
        ExpressionAttributeValues={":c": {"N": "2"}},
        ReturnValues="ALL_OLD",
    )
    check("DeleteItem ALL_OLD", gone["Attributes"]["leaseCounter"], {"N": "2"})
    used = dynamodb.put_item(TableName="leases", Item=lease("a"), ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
    check("ReturnConsumedCapacity", (used["TableName"], used["CapacityUnits"]), ("leases", 1.0))


def dynamodb_legacy():
    """As KCL 1.x and the older parts of 2.x write."""
    key = {"leaseKey": {"S": "old"}}
    dynamodb.put_item(TableName="leases", Item=lease("old"), Expected={"leaseKey": {"Exists": False}})
    refused(
        "Expected: Exists false",
        "ConditionalCheckFailedException",
        dynamodb.put_item,
        TableName="leases",
        Item=lease("old"),
        Expected={"leaseKey": {"Exists": False}},
    )
    dynamodb.update_item(
        TableName="leases",
        Key=key,
        AttributeUpdates={"leaseCounter": {"Value": {"N": "1"}, "Action": "PUT"}, "leaseOwner": {"Value": {"S": "w1"}}},
        Expected={"leaseCounter": {"Value": {"N": "0"}}, "leaseOwner": {"Exists": False}},
    )
    check(
        "AttributeUpdates; without Action it is PUT",
        dynamodb.get_item(TableName="leases", Key=key)["Item"],
        lease("old", 1, leaseOwner={"S": "w1"}),
    )
    refused(
        "Expected: another value",
        "ConditionalCheckFailedException",
        dynamodb.update_item,
        TableName="leases",
        Key=key,
        AttributeUpdates={"leaseOwner": {"Action": "DELETE"}},
        Expected={"leaseCounter": {"Value": {"N": "0"}, "Exists": True}},
    )
    dynamodb.update_item(
        TableName="leases",
        Key=key,
        AttributeUpdates={
            "ownerSwitchesSinceCheckpoint": {"Action": "ADD", "Value": {"N": "2"}},
            "leaseOwner": {"Action": "DELETE"},
        },
        Expected={
            "leaseCounter": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "0"}]},
            "checkpoint": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "nonsense"}]},
        },
        ConditionalOperator="OR",
    )
    check(
        "ADD, DELETE and ConditionalOperator OR",
        dynamodb.get_item(TableName="leases", Key=key)["Item"],
        lease("old", 1, ownerSwitchesSinceCheckpoint={"N": "2"}),
    )
    refused(
        "legacy and expression parameters mixed",
        "ValidationException",
        dynamodb.update_item,
        TableName="leases",
        Key=key,
        AttributeUpdates={"x": {"Action": "DELETE"}},
        ConditionExpression="attribute_exists(leaseKey)",
    )
    check(
        "AttributesToGet",
        dynamodb.get_item(TableName="leases", Key=key, AttributesToGet=["leaseCounter"])["Item"],
        {"leaseCounter": {"N": "1"}},
    )
    found = dynamodb.scan(
        TableName="leases",
        ScanFilter={"leaseKey": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "ol"}]}},
    )
    check("ScanFilter", [item["leaseKey"]["S"] for item in found["Items"]], ["old"])
    found = dynamodb.query(
        TableName="leases",
        KeyConditions={"leaseKey": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "old"}]}},
    )
    check("KeyConditions", found["Count"], 1)


def dynamodb_batches():
    requests = [{"PutRequest": {"Item": lease(f"shard-{n:02}", n)}} for n in range(20)]
    check("BatchWriteItem", dynamodb.batch_write_item(RequestItems={"leases": requests})["UnprocessedItems"], {})
    refused(
        "BatchWriteItem with a key twice",
        "ValidationException",
        dynamodb.batch_write_item,
        RequestItems={"leases": [requests[0], requests[0]]},
    )
    refused(
        "BatchWriteItem of 26",
        "ValidationException",
        dynamodb.batch_write_item,
        RequestItems={"leases": [{"PutRequest": {"Item": lease(f"n{n}")}} for n in range(26)]},
    )
    found = dynamodb.batch_get_item(
        RequestItems={
            "leases": {"Keys": [{"leaseKey": {"S": "shard-01"}}, {"leaseKey": {"S": "none"}}], "ConsistentRead": True}
        }
    )
    check("BatchGetItem", found["Responses"]["leases"], [lease("shard-01", 1)])


def dynamodb_scans():
    pages = list(dynamodb.get_paginator("scan").paginate(TableName="leases", PaginationConfig={"PageSize": 7}))
    keys = sorted(item["leaseKey"]["S"] for page in pages for item in page["Items"])
    check("paginator scan", (len(pages) > 3, keys), (True, ["a", "old"] + [f"shard-{n:02}" for n in range(20)]))
    halves = [
        {item["leaseKey"]["S"] for item in dynamodb.scan(TableName="leases", Segment=n, TotalSegments=2)["Items"]}
        for n in range(2)
    ]
    check("segments part the table", (sorted(halves[0] | halves[1]), halves[0] & halves[1]), (keys, set()))
    found = dynamodb.scan(
        TableName="leases",
        FilterExpression="leaseCounter >= :n AND begins_with(leaseKey, :p)",
        ExpressionAttributeValues={":n": {"N": "15"}, ":p": {"S": "shard"}},
        Select="COUNT",
    )
    check("FilterExpression and COUNT", (found["Count"], found["ScannedCount"], "Items" in found), (5, 22, False))
    refused("a segment too many", "ValidationException", dynamodb.scan, TableName="leases", Segment=2, TotalSegments=2)


def dynamodb_transactions():
    def put(key, **more):
        return {
            "Put": {
                "TableName": "leases",
                "Item": lease(key),
                "ConditionExpression": "attribute_not_exists(leaseKey)",
                **more,
            }
        }

    check_parent = {
        "ConditionCheck": {
            "TableName": "leases",
            "Key": {"leaseKey": {"S": "shard-00"}},
            "ConditionExpression": "leaseCounter = :c",
            "ExpressionAttributeValues": {":c": {"N": "0"}},
        }
    }
    dynamodb.transact_write_items(
        TransactItems=[check_parent, put("child-1"), put("child-2")], ClientRequestToken="once"
    )
    check(
        "TransactWriteItems",
        sorted(
            dynamodb.get_item(TableName="leases", Key={"leaseKey": {"S": key}})["Item"]["leaseKey"]["S"]
            for key in ["child-1", "child-2"]
        ),
        ["child-1", "child-2"],
    )
    dynamodb.transact_write_items(
        TransactItems=[check_parent, put("child-1"), put("child-2")], ClientRequestToken="once"
    )
    check("an idempotency token says it again", True)
    refused(
        "an idempotency token for something else",
        "IdempotentParameterMismatchException",
        dynamodb.transact_write_items,
        TransactItems=[put("child-9")],
        ClientRequestToken="once",
    )
    cancelled = refused(
        "a cancelled transaction",
        "TransactionCanceledException",
        dynamodb.transact_write_items,
        TransactItems=[put("child-3"), put("child-1", ReturnValuesOnConditionCheckFailure="ALL_OLD")],
    )
    check(
        "CancellationReasons",
        [reason["Code"] for reason in cancelled["CancellationReasons"]],
        ["None", "ConditionalCheckFailed"],
    )
    check("the item that stood in the way", cancelled["CancellationReasons"][1]["Item"], lease("child-1"))
    check(
        "a cancelled transaction wrote nothing",
        "Item" in dynamodb.get_item(TableName="leases", Key={"leaseKey": {"S": "child-3"}}),
        False,
    )
    found = dynamodb.transact_get_items(
        TransactItems=[{"Get": {"TableName": "leases", "Key": {"leaseKey": {"S": key}}}} for key in ["child-1", "none"]]
    )
    check("TransactGetItems", found["Responses"], [{"Item": lease("child-1")}, {}])


def dynamodb_resource():
    table = resource.Table("leases")
    table.update_item(
        Key={"leaseKey": "child-1"},
        UpdateExpression="SET leaseOwner = :me, childShardIds = :c",
        ConditionExpression=Attr("leaseCounter").eq(0) & Attr("leaseOwner").not_exists(),
        ExpressionAttributeValues={":me": "w2", ":c": {"x", "y"}},
    )
    item = table.get_item(Key={"leaseKey": "child-1"})["Item"]
    check(
        "a condition of the resource level",
        (item["leaseOwner"], item["childShardIds"], item["leaseCounter"]),
        ("w2", {"x", "y"}, 0),
    )
    check(
        "Key condition of the resource level",
        table.query(KeyConditionExpression=Key("leaseKey").eq("child-1"))["Count"],
        1,
    )
    found = table.scan(FilterExpression=Attr("leaseOwner").is_in(["w1", "w2"]) | Attr("leaseCounter").between(18, 19))
    check(
        "filters of the resource level",
        sorted(item["leaseKey"] for item in found["Items"]),
        ["child-1", "shard-18", "shard-19"],
    )
    with table.batch_writer() as batch:
        for n in range(30):
            batch.put_item(Item={"leaseKey": f"bulk-{n}", "leaseCounter": n})
    check(
        "batch_writer of the resource level",
        table.scan(FilterExpression=Key("leaseKey").begins_with("bulk-"), Select="COUNT")["Count"],
        30,
    )


def dynamodb_indexes():
    dynamodb.update_table(
        TableName="leases",
        AttributeDefinitions=[{"AttributeName": "leaseOwner", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "owners",
                    "KeySchema": [{"AttributeName": "leaseOwner", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            }
        ],
    )

    def index():
        return [
            each["IndexStatus"]
            for each in dynamodb.describe_table(TableName="leases")["Table"].get("GlobalSecondaryIndexes", [])
        ]

    check("UpdateTable begins an index", index(), ["CREATING"])
    eventually("the index becomes ACTIVE", lambda: index() == ["ACTIVE"])
    query = {
        "TableName": "leases",
        "IndexName": "owners",
        "KeyConditionExpression": "leaseOwner = :o",
        "ExpressionAttributeValues": {":o": {"S": "w2"}},
    }
    check(
        "Query of an index",
        dynamodb.query(**query)["Items"],
        [{"leaseKey": {"S": "child-1"}, "leaseOwner": {"S": "w2"}}],
    )
    check("an index is sparse", dynamodb.scan(TableName="leases", IndexName="owners")["Count"], 1)
    refused("a consistent read of an index", "ValidationException", dynamodb.query, ConsistentRead=True, **query)
    dynamodb.update_table(TableName="leases", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "owners"}}])
    eventually("the index is deleted", lambda: index() == [])


def dynamodb_ranges():
    dynamodb.create_table(
        TableName="events",
        AttributeDefinitions=[
            {"AttributeName": "app", "AttributeType": "S"},
            {"AttributeName": "at", "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": "app", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    dynamodb.get_waiter("table_exists").wait(TableName="events", **FAST)
    for at in [10, 9, -3, 100]:
        dynamodb.put_item(TableName="events", Item={"app": {"S": "x"}, "at": {"N": str(at)}})

    def found(condition, **more):
        values = {":a": {"S": "x"}, ":b": {"N": "9"}, ":c": {"N": "50"}}
        values = {name: value for name, value in values.items() if name in condition}
        answer = dynamodb.query(
            TableName="events",
            KeyConditionExpression=condition,
            ExpressionAttributeNames={"#at": "at"} if "#at" in condition else {"#app": "app"},
            ExpressionAttributeValues=values,
            **more,
        )
        return [int(item["at"]["N"]) for item in answer["Items"]]

    check("Query in order of numbers", found("#app = :a"), [-3, 9, 10, 100])
    check("Query backwards, limited", found("#app = :a", ScanIndexForward=False, Limit=2), [100, 10])
    check("Query BETWEEN", found("app = :a AND #at BETWEEN :b AND :c"), [9, 10])
    pages = dynamodb.get_paginator("query").paginate(
        TableName="events",
        KeyConditionExpression="app = :a",
        ExpressionAttributeValues={":a": {"S": "x"}},
        PaginationConfig={"PageSize": 3},
    )
    check("paginator query", [page["Count"] for page in pages], [3, 1])
    refused(
        "Query without a partition key",
        "ValidationException",
        dynamodb.query,
        TableName="events",
        KeyConditionExpression="#at = :b",
        ExpressionAttributeNames={"#at": "at"},
        ExpressionAttributeValues={":b": {"N": "9"}},
    )


def dynamodb_end():
    check("DeleteTable", dynamodb.delete_table(TableName="leases")["TableDescription"]["TableStatus"], "DELETING")
    dynamodb.get_waiter("table_not_exists").wait(TableName="leases", **FAST)
    refused("waiter table_not_exists", "ResourceNotFoundException", dynamodb.scan, TableName="leases")
    refused("DeleteTable of no table", "ResourceNotFoundException", dynamodb.delete_table, TableName="leases")


def run():
    dynamodb_tables()
    dynamodb_settings()
    dynamodb_items()
    dynamodb_legacy()
    dynamodb_batches()
    dynamodb_scans()
    dynamodb_transactions()
    dynamodb_resource()
    dynamodb_indexes()
    dynamodb_ranges()
    dynamodb_end()
