//! The tables of workers of KCL 3.0 to 3.4 with their reports and leader: operations on items, in the format's
//! spelling.

use super::dynamo::{DynamoTable, refused};
use super::members::without_row;
use super::words::garbled;
use leasehold_engine::fleet::{FleetTable, FleetTableOp};
use leasehold_engine::ids::LeaseKey;
use leasehold_engine::input::{Outcome, Reply, ScanPage, TableState, Why};
use leasehold_engine::table::{AttributeValue, Item};

impl DynamoTable {
    pub(super) async fn fleet_table_op(self, table: FleetTable, op: FleetTableOp) -> Outcome {
        let name = self.fleet_table(table);
        match (op, self.format.fleet_table_key(table)) {
            (FleetTableOp::Describe, Some(key)) => self.describe(name, key).await,
            // A format without such tables.
            (FleetTableOp::Describe, None) => Outcome::Applied(Reply::Table(TableState::Missing)),
            (FleetTableOp::Scan { after }, Some(key)) => {
                let start = after.map(|after| Item::from([(key.into(), AttributeValue::s(after))]));
                let (items, last) = match self.page(&name, start, false).await {
                    Ok(page) => page,
                    Err(outcome) => return *outcome,
                };
                let rows = items.iter().map(|item| self.format.decode_fleet(table, item));
                let next = match last {
                    None => None,
                    Some(last) => match last.get(key).and_then(AttributeValue::as_s) {
                        Some(last) => Some(LeaseKey::from(last)),
                        None => {
                            let sent = self.failures.request();
                            return garbled(
                                &sent,
                                "a key of the table as the key of the next page",
                                "another",
                            );
                        }
                    },
                };
                let rows = rows.collect();
                Outcome::Applied(Reply::Page(ScanPage { rows, next }))
            }
            (FleetTableOp::Scan { .. }, None) => {
                let detail = "expected a format with tables of a fleet, found one without".to_owned();
                refused(Why::Invalid, detail)
            }
            (FleetTableOp::Write(write), _) => without_row(self.fleet(Some(table), write).await),
        }
    }
}
