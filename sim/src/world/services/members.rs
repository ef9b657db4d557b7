//! The tables beside the lease table, in formats with such tables: item operations on the same in-memory DynamoDB.

use super::table::{LeaseTable, TABLE, wall_ms};
use crate::oracles::Time;
use leasehold_engine::format::{ItemOp, SideRead};
use leasehold_engine::ids::{ShardId, WorkerId};
use leasehold_engine::input::{Outcome, Refusal, Reply, Why};
use leasehold_engine::members::{MembersOp, Side};
use leasehold_engine::table::{AttributeValue, Item, ItemWrite};
use leasehold_local_aws::dynamo::{ApiError, GetItem, Scan};

impl LeaseTable {
    /// Executes an operation on the tables of members.
    pub(super) fn members(&mut self, now: Time, op: &MembersOp) -> Outcome {
        let refused = |detail: String| Outcome::Refused(Refusal { why: Why::Invalid, current: None, detail });
        let Some(membership) = self.format.membership() else {
            return refused("there are no members in this format".into());
        };
        let (side, spelled) = membership.spell(op);
        let table = membership.side(TABLE, side);
        let now_ms = wall_ms(now);
        let answer = match spelled {
            ItemOp::Describe => Ok(Ok(Reply::Table(self.describe(now_ms, &table)))),
            ItemOp::Create => self.create_table(now_ms, &table, membership.key_name(side)).map(Ok),
            ItemOp::Write(write) => self.write_member(now_ms, table, write).map(Ok),
            ItemOp::Get(key) => {
                let found = self.get_member(now_ms, table, key);
                found.map(|item| membership.read(op, SideRead::Item(item.as_ref())))
            }
            ItemOp::Scan { after: start } => {
                let request =
                    Scan { table, start, limit: self.limit.map(|limit| limit as usize), ..Scan::default() };
                self.dynamo.scan(now_ms, &request).map(|page| {
                    let items: Vec<Item> = page.items.iter().map(|item| Item::clone(item)).collect();
                    let last = page.last_key.as_ref();
                    membership.read(op, SideRead::Page { items: &items, last })
                })
            }
        };
        match answer {
            Ok(Ok(reply)) => Outcome::Applied(reply),
            Ok(Err(detail)) => refused(detail),
            // The item in the error is no lease.
            Err(error) => self.failure(ApiError { item: None, ..error }),
        }
    }

    fn write_member(&mut self, now_ms: i64, table: String, write: ItemWrite) -> Result<Reply, ApiError> {
        #[cfg(debug_assertions)]
        self.compare_with_text(&write);
        self.carry_out(now_ms, table, write)
    }

    fn get_member(&mut self, now_ms: i64, table: String, key: Item) -> Result<Option<Item>, ApiError> {
        let request = GetItem { table, key, consistent: true, ..GetItem::default() };
        let found = self.dynamo.get_item(now_ms, &request)?;
        Ok(found.item.map(|item| Item::clone(&item)))
    }

    /// Creates the tables beside the lease table at once.
    pub(super) fn make_sides_at_once(&mut self, now: Time) {
        let Some(membership) = self.format.membership() else {
            return;
        };
        for side in Side::ALL {
            let (table, key) = (membership.side(TABLE, side), membership.key_name(side));
            // The error needs no handling here: every worker notices a missing table.
            let _ = self.create_table(wall_ms(now) - 3_600_000, &table, key);
        }
        self.dynamo.advance(wall_ms(now));
    }

    /// Ground truth: the shared list of shards.
    pub(super) fn shared(&self) -> Vec<ShardId> {
        let Some(membership) = self.format.membership() else {
            return Vec::new();
        };
        let op = MembersOp::ReadShards;
        let (side, ItemOp::Get(key)) = membership.spell(&op) else {
            return Vec::new();
        };
        let item = self.dynamo.peek(&membership.side(TABLE, side), &key);
        match membership.read(&op, SideRead::Item(item.map(|item| &**item))) {
            Ok(Reply::Shared(Some(shared))) => shared.shards,
            _ => Vec::new(),
        }
    }

    /// Ground truth: the age of a member's row by the member's own clock; absent: the member has no row.
    pub(super) fn silent_for(&self, now: Time, member: &WorkerId) -> Option<Time> {
        let membership = self.format.membership()?;
        let (side, list) = (Side::Members, MembersOp::List { after: None });
        let name = AttributeValue::s(member.clone());
        let key = Item::from([(membership.key_name(side).into(), name)]);
        let item = self.dynamo.peek(&membership.side(TABLE, side), &key)?;
        let items = [Item::clone(item)];
        let page = SideRead::Page { items: &items, last: None };
        match membership.read(&list, page) {
            Ok(Reply::Members(page)) => {
                let now_us = u64::try_from(wall_ms(now)).ok()?.saturating_mul(1_000);
                Some(now_us.saturating_sub(page.members.first()?.at / 1_000))
            }
            _ => None,
        }
    }
}
