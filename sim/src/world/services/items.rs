//! Requests of foreign programs: item operations on the in-memory DynamoDB.

use super::owner_index::with_owner_index;
use super::stream::Carry;
use super::table::LeaseTable;
use crate::names::{number, shard_of};
use crate::oracles::ShardNo;
use crate::oracles::fact::Ask as Asked;
use crate::peers::sdk::LEASES;
use crate::peers::{ItemOp, Request};
use leasehold_engine::format::LeaseFormat;
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Outcome, Reply};
use leasehold_engine::table::AttributeValue;
use leasehold_local_aws::dynamo::{ApiError, DeleteItem, GetItem, PutItem, Scan, UpdateItem};

impl Request {
    /// The lease of the request.
    pub(super) fn lease(&self, format: &dyn LeaseFormat) -> Option<LeaseKey> {
        let item = match &self.op {
            ItemOp::Get { key, .. } | ItemOp::Update { key, .. } | ItemOp::Delete { key, .. } => key,
            ItemOp::Put { item, .. } => item,
            ItemOp::Scan { .. } | ItemOp::CreateOwnerIndex => return None,
        };
        if self.table != LEASES {
            return None;
        }
        let name = item.get(format.key_name()).and_then(AttributeValue::as_s)?;
        number(name).map(|_| LeaseKey::from(name))
    }

    /// The kind of the request and its shard, for faults.
    pub(in crate::world) fn ask(&self, format: &dyn LeaseFormat) -> (Asked, Option<ShardNo>) {
        let ask = match (self.verb, &self.op) {
            _ if self.table != LEASES => Asked::Members,
            (Some(verb), _) => Asked::Write(verb),
            (None, ItemOp::Scan { .. }) => Asked::ScanPage,
            (None, ItemOp::Get { .. }) => Asked::Read,
            (None, _) => Asked::Setup,
        };
        (ask, self.lease(format).as_ref().and_then(shard_of))
    }
}

impl LeaseTable {
    /// Executes an operation on items. `as_of_ms`: an eventually consistent read shows rows in their state at this
    /// time.
    pub(crate) fn execute_item(
        &mut self, now_ms: i64, request: &Request, as_of_ms: Option<i64>,
    ) -> (Outcome, Carry) {
        match self.item_result(now_ms, request, as_of_ms) {
            Ok(carry) => (Outcome::Applied(Reply::Done), carry),
            Err(error) => (self.failure(error), Carry::Nothing),
        }
    }

    fn item_result(
        &mut self, now_ms: i64, request: &Request, as_of_ms: Option<i64>,
    ) -> Result<Carry, ApiError> {
        let table = request.table.to_owned();
        match request.op.clone() {
            ItemOp::Get { key, consistent } => {
                let request = GetItem {
                    table,
                    key,
                    consistent,
                    as_of: as_of_ms.filter(|_| !consistent),
                    ..GetItem::default()
                };
                let found = self.dynamo.get_item(now_ms, &request)?;
                return Ok(Carry::Items(found.item.into_iter().collect(), None));
            }
            ItemOp::Scan { consistent, after } => {
                let request = Scan {
                    table,
                    consistent,
                    start: after,
                    limit: self.limit.map(|limit| limit as usize),
                    as_of: as_of_ms.filter(|_| !consistent),
                    ..Scan::default()
                };
                let page = self.dynamo.scan(now_ms, &request)?;
                return Ok(Carry::Items(page.items, page.last_key));
            }
            ItemOp::Put { item, condition } => {
                let request = PutItem { table, item, condition, ..PutItem::default() };
                self.dynamo.put_item(now_ms, &request)?;
            }
            ItemOp::Update { key, update, condition } => {
                let request = UpdateItem { table, key, update, condition, ..UpdateItem::default() };
                self.dynamo.update_item(now_ms, &request)?;
            }
            ItemOp::Delete { key, condition } => {
                let request = DeleteItem { table, key, condition, ..DeleteItem::default() };
                self.dynamo.delete_item(now_ms, &request)?;
            }
            ItemOp::CreateOwnerIndex => {
                self.dynamo.update_table(now_ms, &with_owner_index(table, self.format.key_name()))?;
            }
        }
        Ok(Carry::Nothing)
    }
}
