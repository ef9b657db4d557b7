//! The table in the answer of `DescribeTable`.

use super::seconds;
use crate::dynamo::key::{KeyAttribute, KeySchema, scatter};
use crate::dynamo::{Billing, Dynamo, Index, IndexProjection, Status, Table, Throughput};
use serde_json::{Value, json};

/// The description of a table.
pub(super) fn describe_table(dynamo: &Dynamo, table: &Table) -> Value {
    let define =
        |part: &KeyAttribute| json!({ "AttributeName": part.name, "AttributeType": part.key_type.name() });
    let definitions: Vec<Value> = table.definitions.iter().map(define).collect();
    let mut body = json!({
        "TableName": table.name,
        "TableArn": dynamo.arn(&table.name),
        "TableId": table_id(table),
        "TableStatus": table.status.name(),
        "CreationDateTime": seconds(table.created_ms),
        "AttributeDefinitions": definitions,
        "KeySchema": show_schema(&table.schema),
        "ProvisionedThroughput": show_throughput(table.billing.throughput()),
        "TableSizeBytes": table.bytes(),
        "ItemCount": table.len(),
        "DeletionProtectionEnabled": table.deletion_protection,
    });
    let (mode, since_ms) = match table.billing {
        Billing::OnDemand => ("PAY_PER_REQUEST", table.on_demand_since_ms.or(Some(table.created_ms))),
        Billing::Provisioned(_) => ("PROVISIONED", table.on_demand_since_ms),
    };
    if let Some(since_ms) = since_ms {
        let since = seconds(since_ms);
        body["BillingModeSummary"] =
            json!({ "BillingMode": mode, "LastUpdateToPayPerRequestDateTime": since });
    }
    if let Some(class) = &table.class {
        body["TableClassSummary"] = json!({ "TableClass": class });
    }
    for (local, member) in [(false, "GlobalSecondaryIndexes"), (true, "LocalSecondaryIndexes")] {
        let indexes = table.indexes.iter().filter(|index| index.spec.local == local);
        let shown: Vec<Value> = indexes.map(|index| describe_index(dynamo, table, index)).collect();
        if !shown.is_empty() {
            body[member] = Value::Array(shown);
        }
    }
    body
}

fn describe_index(dynamo: &Dynamo, table: &Table, index: &Index) -> Value {
    let projection = match &index.spec.projection {
        IndexProjection::All => json!({ "ProjectionType": "ALL" }),
        IndexProjection::KeysOnly => json!({ "ProjectionType": "KEYS_ONLY" }),
        IndexProjection::Include(names) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": names }),
    };
    let mut body = json!({
        "IndexName": index.spec.name,
        "IndexArn": format!("{}/index/{}", dynamo.arn(&table.name), index.spec.name),
        "KeySchema": show_schema(&index.spec.schema),
        "Projection": projection,
        "IndexSizeBytes": index.bytes(table),
        "ItemCount": index.len(),
    });
    if !index.spec.local {
        body["IndexStatus"] = json!(index.status.name());
        if index.status == Status::Creating && table.status == Status::Active {
            body["Backfilling"] = json!(true);
        }
        body["ProvisionedThroughput"] = show_throughput(index.spec.throughput);
    }
    body
}

fn show_schema(schema: &KeySchema) -> Value {
    let mut parts = vec![json!({ "AttributeName": schema.partition.name, "KeyType": "HASH" })];
    if let Some(sort) = &schema.sort {
        parts.push(json!({ "AttributeName": sort.name, "KeyType": "RANGE" }));
    }
    Value::Array(parts)
}

fn show_throughput(throughput: Option<Throughput>) -> Value {
    let Throughput { read, write } = throughput.unwrap_or(Throughput { read: 0, write: 0 });
    json!({ "NumberOfDecreasesToday": 0, "ReadCapacityUnits": read, "WriteCapacityUnits": write })
}

/// In the form of a UUID, different for each life of a name, and the same in every run.
fn table_id(table: &Table) -> String {
    let part = |tag: u8| scatter(tag, format!("{}/{}", table.name, table.life).as_bytes());
    let (high, low) = (part(b'H'), part(b'L'));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}
