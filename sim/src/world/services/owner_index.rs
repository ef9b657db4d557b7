//! The index of owners, in which workers of version 3 of the Java KCL look for their assigned leases. The index lags
//! behind the table like scans.

use super::table::{LeaseTable, Reading, TABLE, key_of};
use leasehold_engine::fleet::OWNER_INDEX;
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::input::{OwnedPage, Reply};
use leasehold_engine::table::AttributeValue;
use leasehold_local_aws::dynamo::expr::KeyCondition;
use leasehold_local_aws::dynamo::{
    ApiError, CreateTable, IndexChange, IndexProjection, IndexSpec, KeyAttribute, KeySchema, KeyType, Query,
    Status, UpdateTable,
};

const OWNER: &str = "leaseOwner";

fn text(name: &'static str) -> KeyAttribute {
    KeyAttribute { name: name.into(), key_type: KeyType::S }
}

/// By owner, then by lease, with no other attributes.
fn index(key: &'static str) -> IndexSpec {
    IndexSpec {
        name: OWNER_INDEX.into(),
        schema: KeySchema { partition: text(OWNER), sort: Some(text(key)) },
        projection: IndexProjection::KeysOnly,
        throughput: None,
        local: false,
    }
}

/// The request that creates the index of a table.
pub(super) fn with_owner_index(name: String, key: &'static str) -> UpdateTable {
    UpdateTable {
        name,
        definitions: vec![text(OWNER)],
        indexes: vec![IndexChange::Create(index(key))],
        ..UpdateTable::default()
    }
}

impl LeaseTable {
    /// Creates the table with the index.
    pub(super) fn create_indexed(&mut self, now_ms: i64, key: &'static str) -> Result<Reply, ApiError> {
        let schema = KeySchema { partition: text(key), sort: None };
        let mut request = CreateTable::new(TABLE, schema);
        request.definitions.push(text(OWNER));
        request.indexes.push(index(key));
        self.dynamo.create_table(now_ms, &request)?;
        Ok(Reply::Done)
    }

    /// Whether the index of owners is usable.
    pub(super) fn owner_index(&mut self, now_ms: i64) -> Result<Reply, ApiError> {
        let table = self.dynamo.describe_table(now_ms, TABLE)?;
        let index = table.indexes.iter().find(|index| index.spec.name == OWNER_INDEX);
        Ok(Reply::OwnerIndex(index.is_some_and(|index| index.status == Status::Active)))
    }

    /// A page of the index of owners.
    pub(super) fn owned(
        &mut self, now_ms: i64, owner: &WorkerId, after: Option<&LeaseKey>, reading: Reading,
    ) -> Result<Reply, ApiError> {
        let name = self.format.owner_index_key().unwrap_or_default();
        let value = AttributeValue::s(owner.as_str());
        let start = after.map(|key| {
            let mut start = self.format.key(key);
            start.insert(name.into(), value.clone());
            start
        });
        let request = Query {
            table: TABLE.to_owned(),
            index: Some(OWNER_INDEX.to_owned()),
            key: KeyCondition::partition(name, value),
            limit: self.limit.map(|limit| limit as usize),
            start,
            as_of: reading.as_of_ms,
            ..Query::default()
        };
        let page = self.dynamo.query(now_ms, &request)?;
        let keys = page.items.iter().map(|item| key_of(self.format, item)).collect();
        let next = page.last_key.as_ref().map(|key| key_of(self.format, key));
        Ok(Reply::Owned(OwnedPage { keys, next }))
    }
}
