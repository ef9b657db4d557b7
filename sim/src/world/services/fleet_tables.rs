//! The tables in which workers of versions 3.0 to 3.4 of the Java KCL know each other: item operations on the same
//! in-memory DynamoDB.

use super::table::{LeaseTable, TABLE, wall_ms};
use crate::oracles::Time;
use leasehold_engine::fleet::{FleetTable, FleetTableOp};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Outcome, Reply, ScanPage};
use leasehold_engine::row::RowRead;
use leasehold_engine::table::{AttributeValue, Item};
use leasehold_local_aws::dynamo::{ApiError, Scan};

impl LeaseTable {
    /// Executes an operation on one of these tables.
    pub(super) fn fleet_table(&mut self, now: Time, table: FleetTable, op: &FleetTableOp) -> Outcome {
        let (now_ms, name) = (wall_ms(now), table.default_name(TABLE));
        let answer = match op {
            FleetTableOp::Describe => Ok(Reply::Table(self.describe(now_ms, &name))),
            FleetTableOp::Scan { after } => self.scan_beside(now_ms, table, name, after.as_ref()),
            FleetTableOp::Write(write) => match self.format.encode_fleet_in(table, write) {
                Some(write) => self.carry_out(now_ms, name, write),
                None => Err(ApiError::new("ValidationException", "the format has no tables of a fleet")),
            },
        };
        match answer {
            Ok(reply) => Outcome::Applied(reply),
            // The item in the error is no lease.
            Err(error) => self.failure(ApiError { item: None, ..error }),
        }
    }

    fn scan_beside(
        &mut self, now_ms: i64, table: FleetTable, name: String, after: Option<&LeaseKey>,
    ) -> Result<Reply, ApiError> {
        let key = self.format.fleet_table_key(table).unwrap_or_default();
        let request = Scan {
            table: name,
            start: after.map(|after| Item::from([(key.into(), AttributeValue::s(after.clone()))])),
            limit: self.limit.map(|limit| limit as usize),
            ..Scan::default()
        };
        let page = self.dynamo.scan(now_ms, &request)?;
        let rows = page.items.iter().map(|item| self.format.decode_fleet(table, item));
        let rows = rows.collect();
        let last = page.last_key.as_ref();
        let next = last.and_then(|last| last.get(key)?.as_s()).map(LeaseKey::from);
        Ok(Reply::Page(ScanPage { rows, next }))
    }

    /// Creates the tables at once.
    pub(super) fn make_fleet_tables_at_once(&mut self, now: Time) {
        for table in FleetTable::ALL {
            if let Some(key) = self.format.fleet_table_key(table) {
                // The error needs no handling here: every worker notices a missing table.
                let _ = self.create_table(wall_ms(now) - 3_600_000, &table.default_name(TABLE), key);
            }
        }
        self.dynamo.advance(wall_ms(now));
    }

    /// Ground truth: the contents of a row in one of these tables.
    pub(super) fn row_beside(&self, table: FleetTable, key: &str) -> Option<RowRead> {
        let name = self.format.fleet_table_key(table)?;
        let key = Item::from([(name.into(), AttributeValue::s(key))]);
        let item = self.dynamo.peek(&table.default_name(TABLE), &key)?;
        Some(self.format.decode_fleet(table, item))
    }
}
