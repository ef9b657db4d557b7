//! The tables beside the lease table: operations on items, as the format spells them.

use super::classify::classify;
use super::dynamo::{DynamoTable, refused};
use super::values::{item_from_sdk, item_to_sdk};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use leasehold_engine::format::{ItemOp, SideRead};
use leasehold_engine::input::{Outcome, Why};
use leasehold_engine::members::MembersOp;
use leasehold_engine::table::Item;
use std::sync::Arc;

impl DynamoTable {
    pub(super) async fn members(self, op: MembersOp) -> Outcome {
        let format = self.format.clone();
        let Some(membership) = format.membership() else {
            let detail = "expected a format with members, found one without".to_owned();
            return refused(Why::Invalid, detail);
        };
        let (side, spelled) = membership.spell(&op);
        let table: Arc<str> = membership.side(&self.application, side).into();
        let found = match spelled {
            ItemOp::Describe => return self.describe(table, membership.key_name(side)).await,
            ItemOp::Create => return self.create(table, membership.key_name(side)).await,
            ItemOp::Write(write) => return without_row(self.carry_out(table, write).await),
            ItemOp::Get(key) => match self.get(&table, key).await {
                Ok(item) => membership.read(&op, SideRead::Item(item.as_ref())),
                Err(outcome) => return *outcome,
            },
            ItemOp::Scan { after } => match self.page(&table, after, true).await {
                Ok((items, last)) => {
                    let last = last.as_ref();
                    membership.read(&op, SideRead::Page { items: &items, last })
                }
                Err(outcome) => return *outcome,
            },
        };
        match found {
            Ok(reply) => Outcome::Applied(reply),
            Err(detail) => refused(Why::Invalid, detail),
        }
    }

    /// Items of any table, and where the next page starts.
    pub(super) async fn page(
        &self, table: &str, after: Option<Item>, consistent: bool,
    ) -> Result<(Vec<Item>, Option<Item>), Box<Outcome>> {
        let sent = self.failures.request();
        let answer = self
            .client
            .scan()
            .table_name(table)
            .set_exclusive_start_key(after.map(item_to_sdk))
            .consistent_read(consistent)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .customize()
            .interceptor(sent.clone())
            .send()
            .await;
        match answer {
            Ok(answer) => {
                let least = if consistent { 1.0 } else { 0.5 };
                self.bill.read(answer.consumed_capacity(), least);
                let items = answer.items.unwrap_or_default();
                let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
                Ok((items.into_iter().map(item_from_sdk).collect(), last.map(item_from_sdk)))
            }
            Err(error) => Err(Box::new(classify(&error, &sent))),
        }
    }
}

/// Removes the row of a failed guard: the row is no lease here.
pub(super) fn without_row(mut outcome: Outcome) -> Outcome {
    if let Outcome::Refused(refusal) = &mut outcome {
        refusal.current = None;
    }
    outcome
}
