//! Batches: independent reads or writes in one call.

use super::Dynamo;
use super::capacity::{Consumed, read_cost};
use super::error::{ApiError, DynamoResult};
use super::read::projected;
use super::requests::{
    BatchGet, BatchGetRead, BatchGetReply, BatchWrite, BatchWriteAction, BatchWriteReply, DeleteItem,
    PutItem, TransactAction, account,
};
use super::write::{Prepared, Refusal};
use crate::constraint::refuse_if;
use std::collections::BTreeSet;

/// The most reads of a batch.
pub(super) const MAX_GETS: usize = 100;
/// The most writes of a batch.
pub(super) const MAX_WRITES: usize = 25;
/// The largest answer of a batch of reads.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

impl Dynamo {
    /// `BatchGetItem`.
    pub fn batch_get(&mut self, now_ms: i64, request: &BatchGet) -> DynamoResult<BatchGetReply> {
        let asked: usize = request.tables.iter().map(|table| table.keys.len()).sum();
        if asked > MAX_GETS {
            return Err(ApiError::validation("Too many items requested for the BatchGetItem call"));
        }
        // The call checks all parts before its first read.
        let mut positions = Vec::new();
        for part in &request.tables {
            let table = self.usable(&part.table, now_ms)?;
            table.check_projection(part.projection.as_ref())?;
            let mut seen = BTreeSet::new();
            for key in &part.keys {
                let position = table.schema.position_of_key(key)?;
                if !seen.insert(position.clone()) {
                    return Err(ApiError::validation("Provided list of item keys contains duplicates"));
                }
                positions.push(position);
            }
        }
        let mut positions = positions.iter();
        let mut bytes = 0;
        let mut reply = BatchGetReply::default();
        let mut passed = false;
        for part in &request.tables {
            let table = self.usable(&part.table, now_ms)?;
            let mut read = BatchGetRead { table: part.table.clone(), ..BatchGetRead::default() };
            for (key, position) in part.keys.iter().zip(&mut positions) {
                if bytes >= MAX_ANSWER_BYTES || !table.may_read(None, now_ms) {
                    read.unprocessed.push(key.clone());
                    continue;
                }
                passed = true;
                let row = table.store.get(position, None);
                let size = row.map_or(0, |row| row.size);
                bytes += size;
                let cost = read_cost(size, part.consistent);
                if let Some(row) = row {
                    read.items.push(projected(&row.item, part.projection.as_ref()));
                }
                table.reads.take(cost);
                read.consumed.add(Consumed::table(cost));
            }
            reply.tables.push(read);
        }
        refuse_if(asked > 0 && !passed, ApiError::throughput_exceeded)?;
        Ok(reply)
    }

    /// `BatchWriteItem`.
    pub fn batch_write(&mut self, now_ms: i64, request: &BatchWrite) -> DynamoResult<BatchWriteReply> {
        if request.writes.len() > MAX_WRITES {
            return Err(ApiError::validation("Too many items requested for the BatchWriteItem call"));
        }
        let mut seen = BTreeSet::new();
        let mut prepared: Vec<Prepared> = Vec::new();
        for (name, action) in &request.writes {
            let table = self.usable(name, now_ms)?;
            let action = match action {
                BatchWriteAction::Put(item) => {
                    TransactAction::Put(PutItem { item: item.clone(), ..PutItem::default() })
                }
                BatchWriteAction::Delete(key) => {
                    TransactAction::Delete(DeleteItem { key: key.clone(), ..DeleteItem::default() })
                }
            };
            let write = table.prepare(&action).map_err(Refusal::into_error)?;
            if !seen.insert((name.as_str(), write.position.clone())) {
                return Err(ApiError::validation("Provided list of item keys contains duplicates"));
            }
            prepared.push(write);
        }
        let mut reply = BatchWriteReply::default();
        for ((name, action), write) in request.writes.iter().zip(&prepared) {
            let table = self.usable(name, now_ms)?;
            if table.may_write(now_ms) {
                let cost = table.commit(write, now_ms);
                account(&mut reply.consumed, name, cost);
            } else {
                reply.unprocessed.push((name.clone(), action.clone()));
            }
        }
        if !request.writes.is_empty() && reply.unprocessed.len() == request.writes.len() {
            return Err(ApiError::throughput_exceeded());
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::*;

    #[test]
    fn batches_read_and_write_and_refuse_doubles() {
        let mut dynamo = simple();
        let write = |keys: &[&str]| BatchWrite {
            writes: keys
                .iter()
                .map(|key| ("tab".to_owned(), BatchWriteAction::Put(item([("p", s(key))]))))
                .collect(),
        };
        dynamo.batch_write(NOW, &write(&["a", "b", "c"])).unwrap();
        invalid(dynamo.batch_write(NOW, &write(&["d", "d"])), "contains duplicates");
        assert_eq!(dynamo.table("tab").unwrap().len(), 3, "a refused batch writes nothing");
        let many: Vec<String> = (0..26).map(|n| n.to_string()).collect();
        let many = write(&many.iter().map(String::as_str).collect::<Vec<_>>());
        invalid(dynamo.batch_write(NOW, &many), "Too many items");

        let get = |keys: &[&str]| BatchGet {
            tables: vec![BatchGetTable {
                table: "tab".into(),
                keys: keys.iter().map(|key| item([("p", s(key))])).collect(),
                ..BatchGetTable::default()
            }],
        };
        let reply = dynamo.batch_get(NOW, &get(&["a", "x", "c"])).unwrap();
        assert_eq!(reply.tables[0].items.len(), 2);
        assert!(reply.tables[0].unprocessed.is_empty());
        invalid(dynamo.batch_get(NOW, &get(&["a", "a"])), "contains duplicates");
        let many: Vec<String> = (0..101).map(|n| n.to_string()).collect();
        let many = get(&many.iter().map(String::as_str).collect::<Vec<_>>());
        invalid(dynamo.batch_get(NOW, &many), "Too many items");
    }

    #[test]
    fn throttled_items_are_handed_back_and_all_of_them_are_an_error() {
        let mut dynamo = Dynamo::new(DynamoConfig { throttle: true, ..DynamoConfig::default() });
        let billing = Billing::Provisioned(Throughput { read: 1, write: 2 });
        dynamo.create_table(0, &CreateTable { billing, ..creation("tab", false, Vec::new()) }).unwrap();
        let put = |key: &str| ("tab".to_owned(), BatchWriteAction::Put(item([("p", s(key))])));
        let request = BatchWrite { writes: vec![put("a"), put("b"), put("c")] };
        let reply = dynamo.batch_write(NOW, &request).unwrap();
        assert_eq!(reply.unprocessed, [put("c")]);
        refused(dynamo.batch_write(NOW, &request), "ProvisionedThroughputExceededException", "level");
    }
}
