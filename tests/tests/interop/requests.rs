//! The requests by which workers of both libraries agree on the readers of shards, word for word where words matter:
//! the text of conditions, attributes of type NULL, keywords in lower case.

use leasehold_tests::http::Caller;
use leasehold_tests::local::{Local, instant};
use serde_json::{Value, json};

const REFUSED: Option<&str> = Some("ConditionalCheckFailedException");
const DONE: Option<&str> = None;

/// A table of one row.
struct Table {
    caller: Caller,
    name: &'static str,
    key: Value,
}

impl Table {
    /// As both libraries create their tables.
    async fn create(name: &'static str, attribute: &str, key: &str) -> Self {
        let local = Local::start(instant()).await;
        let caller = Caller::new(local.endpoint);
        let request = json!({
            "TableName": name,
            "AttributeDefinitions": [{ "AttributeName": attribute, "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": attribute, "KeyType": "HASH" }],
            "ProvisionedThroughput": { "ReadCapacityUnits": 10, "WriteCapacityUnits": 10 },
        });
        let answer = caller.dynamodb("CreateTable", &request).await;
        assert_eq!(answer.code(), None, "{answer:?}");
        let key = json!({ attribute: { "S": key } });
        Self { caller, name, key }
    }

    /// With a condition and its values, or without.
    async fn put(&self, item: &Value, condition: Option<(&str, Value)>, expected: Option<&str>) {
        let mut request = json!({ "TableName": self.name, "Item": item });
        if let Some((condition, values)) = condition {
            request["ConditionExpression"] = json!(condition);
            if !values.is_null() {
                request["ExpressionAttributeValues"] = values;
            }
        }
        let answer = self.caller.dynamodb("PutItem", &request).await;
        assert_eq!(answer.code(), expected, "{request}: {answer:?}");
    }

    async fn update(&self, update: &str, condition: &str, values: &Value, expected: Option<&str>) {
        let request = json!({
            "TableName": self.name,
            "Key": self.key,
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        });
        let answer = self.caller.dynamodb("UpdateItem", &request).await;
        assert_eq!(answer.code(), expected, "{request}: {answer:?}");
    }

    async fn holds(&self, expected: &Value) {
        let request = json!({ "TableName": self.name, "Key": self.key, "ConsistentRead": true });
        let answer = self.caller.dynamodb("GetItem", &request).await;
        assert_eq!(&answer.body["Item"], expected);
    }

    async fn scan(&self, mut request: Value) -> Value {
        request["TableName"] = json!(self.name);
        let answer = self.caller.dynamodb("Scan", &request).await;
        assert_eq!(answer.code(), None, "{request}: {answer:?}");
        answer.body["Items"].clone()
    }
}

#[tokio::test]
async fn leases_of_vmware_go_kcl_are_taken_claimed_and_given_up() {
    const SHARD: &str = "shardId-000000000001";
    const FIRST: &str = "2024-03-04T18:07:06.5Z";
    const SECOND: &str = "2024-03-04T18:07:09Z";
    const FREE: &str = "attribute_not_exists(AssignedTo)";
    const HELD: &str = "ShardID = :id AND AssignedTo = :assigned_to AND LeaseTimeout = :lease_timeout";
    // Without a blank before the fourth condition, as the library has it.
    const CLAIM: &str = "ShardID = :id AND LeaseTimeout = :lease_timeout AND attribute_not_exists(ClaimRequest)AND \
                         AssignedTo = :assigned_to AND Checkpoint = :checkpoint AND attribute_not_exists(ParentShardId)";
    let held = |owner: &str, deadline: &str| json!({ ":id": { "S": SHARD }, ":assigned_to": { "S": owner }, ":lease_timeout": { "S": deadline } });
    let row = |owner: &str, deadline: &str| json!({ "ShardID": { "S": SHARD }, "AssignedTo": { "S": owner }, "LeaseTimeout": { "S": deadline } });
    let table = Table::create("billing", "ShardID", SHARD).await;

    table.put(&row("anna", FIRST), Some((FREE, Value::Null)), DONE).await;
    table.put(&row("bert", FIRST), Some((FREE, Value::Null)), REFUSED).await;
    table.put(&row("anna", SECOND), Some((HELD, held("anna", FIRST))), DONE).await;
    // The same moment, written otherwise.
    let other_form = held("anna", "2024-03-04T18:07:09.0Z");
    table.put(&row("bert", SECOND), Some((HELD, other_form)), REFUSED).await;

    let mut checkpointed = row("anna", SECOND);
    checkpointed["Checkpoint"] = json!({ "S": "5" });
    table.put(&checkpointed, None, DONE).await;
    let mut claimed = checkpointed.clone();
    claimed["ClaimRequest"] = json!({ "S": "bert" });
    let mut claim = held("anna", SECOND);
    claim[":checkpoint"] = json!({ "S": "5" });
    table.put(&claimed, Some((CLAIM, claim.clone())), DONE).await;
    table.put(&claimed, Some((CLAIM, claim)), REFUSED).await;
    table.holds(&claimed).await;

    let (remove, mine) = ("remove AssignedTo", "AssignedTo = :assigned_to");
    table.update(remove, mine, &json!({ ":assigned_to": { "S": "bert" } }), REFUSED).await;
    table.update(remove, mine, &json!({ ":assigned_to": { "S": "anna" } }), DONE).await;
    let given_up = json!({
        "ShardID": { "S": SHARD }, "LeaseTimeout": { "S": SECOND },
        "Checkpoint": { "S": "5" }, "ClaimRequest": { "S": "bert" },
    });
    table.holds(&given_up).await;

    let claimant = format!("{FREE} AND ClaimRequest = :claim_request");
    for (name, expected) in [("carl", REFUSED), ("bert", DONE)] {
        let values = json!({ ":claim_request": { "S": name } });
        table.put(&row(name, SECOND), Some((claimant.as_str(), values)), expected).await;
    }
    table.holds(&row("bert", SECOND)).await;
    let projection = json!({
        "ProjectionExpression": "ShardID,AssignedTo,Checkpoint",
        "Select": "SPECIFIC_ATTRIBUTES",
    });
    let listed = table.scan(projection).await;
    assert_eq!(listed, json!([{ "ShardID": { "S": SHARD }, "AssignedTo": { "S": "bert" } }]));
}

#[tokio::test]
async fn checkpoints_of_kinsumer_are_captured_committed_and_released() {
    const SHARD: &str = "shardId-000000000001";
    const CAPTURE: &str =
        "attribute_not_exists(OwnerID) OR attribute_type(OwnerID, :nullType) OR LastUpdate <= :cutoff";
    const RELEASE: &str = "REMOVE OwnerID, OwnerName SET LastUpdate = :lastUpdate, LastUpdateRFC = :lastUpdateRFC, \
                           SequenceNumber = :sequenceNumber";
    let row = |owner: &Value, updated: u64| {
        json!({
            "Shard": { "S": SHARD }, "SequenceNumber": { "NULL": true }, "OwnerID": owner, "OwnerName": owner,
            "LastUpdate": { "N": updated.to_string() }, "LastUpdateRFC": { "S": "" },
            "Finished": { "NULL": true }, "FinishedRFC": { "NULL": true },
        })
    };
    let (a, b, nobody) = (json!({ "S": "a" }), json!({ "S": "b" }), json!({ "NULL": true }));
    let cutoff = |at: u64| json!({ ":cutoff": { "N": at.to_string() }, ":nullType": { "S": "NULL" } });
    let table = Table::create("billing_checkpoints", "Shard", SHARD).await;

    table.put(&row(&a, 1000), Some((CAPTURE, cutoff(700))), DONE).await;
    table.put(&row(&b, 1001), Some((CAPTURE, cutoff(999))), REFUSED).await;
    table.put(&row(&b, 1300), Some((CAPTURE, cutoff(1000))), DONE).await;
    let (commit, mine) = ("OwnerID = :ownerID", |owner: &Value| json!({ ":ownerID": owner }));
    table.put(&row(&a, 1301), Some((commit, mine(&a))), REFUSED).await;
    // An owner of type NULL is none.
    table.put(&row(&nobody, 1302), Some((commit, mine(&b))), DONE).await;
    table.put(&row(&a, 1303), Some((CAPTURE, cutoff(0))), DONE).await;

    let mut values = json!({
        ":lastUpdate": { "N": "1304" }, ":lastUpdateRFC": { "S": "" }, ":sequenceNumber": { "S": "5" },
    });
    for (owner, expected) in [(&b, REFUSED), (&a, DONE)] {
        values[":ownerID"] = owner.clone();
        table.update(RELEASE, commit, &values, expected).await;
    }
    let mut released = row(&a, 1304);
    released["SequenceNumber"] = json!({ "S": "5" });
    let attributes = released.as_object_mut().expect("an item");
    attributes.retain(|name, _| !name.starts_with("Owner"));
    table.holds(&released).await;

    for (cutoff, found) in [(1303, 1), (1304, 0)] {
        let request = json!({
            "ConsistentRead": true,
            "FilterExpression": "LastUpdate > :cutoff",
            "ExpressionAttributeValues": { ":cutoff": { "N": cutoff.to_string() } },
        });
        assert_eq!(table.scan(request).await.as_array().map(Vec::len), Some(found));
    }
}

#[tokio::test]
async fn one_client_of_kinsumer_leads() {
    const LEAD: &str = "ID = :ID OR attribute_not_exists(ID) OR LastUpdate <= :cutoff";
    const STAND_DOWN: &str = "REMOVE ID SET LastUpdate = :lastUpdate, LastUpdateRFC = :lastUpdateRFC";
    let row = |id: &str, updated: u64| {
        json!({
            "Key": { "S": "Leader" }, "ID": { "S": id }, "Name": { "S": id },
            "LastUpdate": { "N": updated.to_string() }, "LastUpdateRFC": { "S": "" },
        })
    };
    let lead = |id: &str, cutoff: u64| json!({ ":ID": { "S": id }, ":cutoff": { "N": cutoff.to_string() } });
    let table = Table::create("billing_metadata", "Key", "Leader").await;
    table.put(&row("b", 1000), Some((LEAD, lead("b", 700))), DONE).await;
    table.put(&row("a", 1001), Some((LEAD, lead("a", 999))), REFUSED).await;
    table.put(&row("b", 1100), Some((LEAD, lead("b", 800))), DONE).await;
    table.put(&row("a", 1400), Some((LEAD, lead("a", 1100))), DONE).await;
    let down = |id: &str| json!({ ":ID": { "S": id }, ":lastUpdate": { "N": "1401" }, ":lastUpdateRFC": { "S": "" } });
    table.update(STAND_DOWN, "ID = :ID", &down("b"), REFUSED).await;
    table.update(STAND_DOWN, "ID = :ID", &down("a"), DONE).await;
    let mut nobody = row("a", 1401);
    nobody.as_object_mut().expect("an item").remove("ID");
    table.holds(&nobody).await;
    table.put(&row("b", 1402), Some((LEAD, lead("b", 0))), DONE).await;
}
