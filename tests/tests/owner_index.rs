//! The index of owners, asked with a real SDK. A worker in fleets of KCL 3 finds its assigned leases in the index.

use leasehold::aws::dynamodb;
use leasehold::aws::dynamodb::types::{
    AttributeDefinition, AttributeValue, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndexUpdate,
    KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
};
use leasehold::internals::{DynamoTable, TablePort};
use leasehold::runtime::{Runtime, TokioRuntime};
use leasehold::{Config, LeaseKey, OpId};
use leasehold_engine::fleet::OWNER_INDEX;
use leasehold_engine::input::{Outcome, OwnedPage, Reply, Why};
use leasehold_engine::output::TableOp;
use leasehold_tests::clients;
use leasehold_tests::local::{Local, instant};
use std::sync::Arc;

const TABLE: &str = "billing";

fn key(name: &str, kind: KeyType) -> KeySchemaElement {
    let key = KeySchemaElement::builder().attribute_name(name).key_type(kind);
    key.build().expect("a key")
}

/// Creates the index as a worker of KCL 3 does.
async fn create_index(client: &dynamodb::Client) {
    let owner = AttributeDefinition::builder()
        .attribute_name("leaseOwner")
        .attribute_type(ScalarAttributeType::S)
        .build();
    let keys_only = Projection::builder().projection_type(ProjectionType::KeysOnly);
    let create = CreateGlobalSecondaryIndexAction::builder()
        .index_name(OWNER_INDEX)
        .key_schema(key("leaseOwner", KeyType::Hash))
        .key_schema(key("leaseKey", KeyType::Range))
        .projection(keys_only.build())
        .build();
    let update = GlobalSecondaryIndexUpdate::builder().create(create.expect("an index"));
    let key = AttributeDefinition::builder()
        .attribute_name("leaseKey")
        .attribute_type(ScalarAttributeType::S)
        .build();
    client
        .update_table()
        .table_name(TABLE)
        .attribute_definitions(owner.expect("an attribute"))
        .attribute_definitions(key.expect("an attribute"))
        .global_secondary_index_updates(update.build())
        .send()
        .await
        .expect("an index");
}

async fn put(client: &dynamodb::Client, lease: &str, owner: &str) {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    client
        .put_item()
        .table_name(TABLE)
        .item("leaseKey", text(lease))
        .item("leaseOwner", text(owner))
        .item("leaseCounter", AttributeValue::N("1".to_owned()))
        .send()
        .await
        .expect("a row");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_an_owner_are_read_from_the_index_page_by_page() {
    let mut options = instant();
    options.dynamo.max_page_items = Some(2);
    let local = Local::start(options).await;
    let client = clients::dynamodb(&local.endpoint);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current().expect("a runtime"));
    let config = Config::default().with_table(TABLE);
    let table: TablePort = Arc::new(DynamoTable::new(&client, &runtime, &config));
    let mut asked = 0;
    let mut ask = |op: TableOp| {
        asked += 1;
        table.execute(OpId { life: 1, n: asked }, op)
    };
    let owned = |after: Option<&LeaseKey>| TableOp::Owned { owner: "w 1".into(), after: after.cloned() };
    let created = ask(TableOp::Create).await;
    assert_eq!(created, Outcome::Applied(Reply::Done));
    let Outcome::Refused(refusal) = ask(owned(None)).await else { panic!("there is no index yet") };
    assert_eq!(refusal.why, Why::Invalid);
    assert!(refusal.detail.contains(OWNER_INDEX), "{}", refusal.detail);

    create_index(&client).await;
    for (lease, owner) in [("a", "w 1"), ("b", "w 2"), ("c", "w 1"), ("d", "w 1"), ("e", "w 10")] {
        put(&client, lease, owner).await;
    }
    let Outcome::Applied(Reply::Owned(first)) = ask(owned(None)).await else { panic!("a page") };
    assert_eq!(first.keys, ["a".into(), "c".into()]);
    let rest = ask(owned(first.next.as_ref())).await;
    let keys = vec!["d".into()];
    assert_eq!(rest, Outcome::Applied(Reply::Owned(OwnedPage { keys, next: None })));
}
