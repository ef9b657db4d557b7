//! Whether the index of owners is there, in which workers of KCL 3.x look for what was assigned to them.

use super::dynamo::DynamoTable;
use aws_sdk_dynamodb::types::{IndexStatus, TableDescription};
use leasehold_engine::fleet::OWNER_INDEX;
use leasehold_engine::input::{Outcome, Reply};

impl DynamoTable {
    pub(super) async fn owner_index(self) -> Outcome {
        let table = self.table.clone();
        match self.described(&table).await {
            Ok(table) => Outcome::Applied(Reply::OwnerIndex(is_active(&table))),
            Err(outcome) => outcome,
        }
    }
}

fn is_active(table: &TableDescription) -> bool {
    let indexes = table.global_secondary_indexes().iter();
    let mut owners = indexes.filter(|index| index.index_name() == Some(OWNER_INDEX));
    owners.any(|index| index.index_status() == Some(&IndexStatus::Active))
}
