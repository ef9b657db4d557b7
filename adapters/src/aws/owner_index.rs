//! Whether the index of owners is there, in which workers of KCL 3.x look for what was assigned to them.

use super::classify::classify;
use super::dynamo::DynamoTable;
use aws_sdk_dynamodb::types::{IndexStatus, TableDescription};
use leasehold_engine::fleet::OWNER_INDEX;
use leasehold_engine::input::{Cause, Outcome, Reply};

impl DynamoTable {
    pub(super) async fn owner_index(self) -> Outcome {
        let sent = self.failures.request();
        let answer = self
            .client
            .describe_table()
            .table_name(&*self.table)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => match answer.table() {
                Some(table) => Outcome::Applied(Reply::OwnerIndex(is_active(table))),
                None => Outcome::Unknown(Cause::Garbled),
            },
            Err(error) => classify(&error, &sent),
        }
    }
}

fn is_active(table: &TableDescription) -> bool {
    let indexes = table.global_secondary_indexes().iter();
    let mut owners = indexes.filter(|index| index.index_name() == Some(OWNER_INDEX));
    owners.any(|index| index.index_status() == Some(&IndexStatus::Active))
}
