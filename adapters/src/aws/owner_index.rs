//! The index of owners: workers of KCL 3.x fleets look up their assigned leases in the index.

use super::classify::classify;
use super::dynamo::{DynamoTable, refused};
use super::values::{item_from_sdk, item_to_sdk};
use super::words::garbled;
use aws_sdk_dynamodb::types::{
    AttributeValue as SdkValue, IndexStatus, ReturnConsumedCapacity, TableDescription,
};
use leasehold_engine::fleet::OWNER_INDEX;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::{Outcome, OwnedPage, Reply, Why};
use leasehold_engine::table::{AttributeValue, Item};

impl DynamoTable {
    pub(super) async fn owner_index(self) -> Outcome {
        let table = self.table.clone();
        match self.described(&table).await {
            Ok(table) => Outcome::Applied(Reply::OwnerIndex(is_active(&table))),
            Err(outcome) => outcome,
        }
    }

    /// A page of the keys of an owner's leases, after this key.
    pub(super) async fn owned(self, owner: WorkerId, after: Option<LeaseKey>) -> Outcome {
        let Some(attribute) = self.format.owner_index_key() else {
            let detail = "expected a format with an index of owners, found one without".to_owned();
            return refused(Why::Invalid, detail);
        };
        // Where a page of an index starts is told by the keys of both, of the index and of the table.
        let start = after.map(|key| {
            let owner = (attribute.into(), AttributeValue::s(owner.as_str()));
            self.format.key(&key).into_iter().chain([owner]).collect::<Item>()
        });
        let sent = self.failures.request();
        let answer = self
            .client
            .query()
            .table_name(&*self.table)
            .index_name(OWNER_INDEX)
            .key_condition_expression("#owner = :owner")
            .expression_attribute_names("#owner", attribute)
            .expression_attribute_values(":owner", SdkValue::S(owner.as_str().to_owned()))
            .set_exclusive_start_key(start.map(item_to_sdk))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return classify(&error, &sent),
        };
        self.bill.read(answer.consumed_capacity(), 0.5);
        let key_of = |item| {
            let item = item_from_sdk(item);
            let key = item.get(self.format.key_name()).and_then(AttributeValue::as_s);
            key.map(LeaseKey::from)
        };
        let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
        let next = last.map(key_of);
        let keys: Option<Vec<LeaseKey>> = answer.items.unwrap_or_default().into_iter().map(key_of).collect();
        match (keys, next) {
            (Some(keys), None) => Outcome::Applied(Reply::Owned(OwnedPage { keys, next: None })),
            (Some(keys), Some(Some(next))) => {
                Outcome::Applied(Reply::Owned(OwnedPage { keys, next: Some(next) }))
            }
            _ => garbled(&sent, "the keys of leases", "items without them"),
        }
    }
}

fn is_active(table: &TableDescription) -> bool {
    let indexes = table.global_secondary_indexes().iter();
    let mut owners = indexes.filter(|index| index.index_name() == Some(OWNER_INDEX));
    owners.any(|index| index.index_status() == Some(&IndexStatus::Active))
}
