//! The truth about the rows by which workers of version 3 of the Java KCL know each other: the leader, and the workers
//! that report their life.

use super::Services;
use crate::oracles::Fact;
use crate::oracles::fact::Owner;
use crate::peers;
use crate::swarm::EPOCH_MS;
use crate::world::context::Context;
use leasehold_engine::fleet::{FleetRow, FleetTable, FleetVersion, LEADER_KEY, VERSION_KEY};
use leasehold_engine::ids::{LeaseKey, WorkerId};
use leasehold_engine::row::RowRead;

/// The true time, in whole seconds since 1970.
fn true_seconds(now: u64) -> i64 {
    EPOCH_MS / 1_000 + (now / 1_000_000) as i64
}

impl Services {
    /// A foreign program wrote an item other than a lease.
    pub(super) fn other_item_written(&mut self, cx: &mut Context, request: &peers::Request) {
        let item = match &request.op {
            peers::ItemOp::Update { key, .. } | peers::ItemOp::Delete { key, .. } => key,
            peers::ItemOp::Put { item, .. } => item,
            peers::ItemOp::Get { .. } | peers::ItemOp::Scan { .. } | peers::ItemOp::CreateOwnerIndex => {
                return;
            }
        };
        let table = FleetTable::ALL.into_iter().find(|table| {
            let name = table.default_name(peers::sdk::LEASES);
            *request.table == *name
        });
        if table.is_none() && request.table != peers::sdk::LEASES {
            return;
        }
        let key = match table {
            None => Some(self.table.format.key_name()),
            Some(table) => self.table.format.fleet_table_key(table),
        };
        let name = key.and_then(|key| item.get(key)?.as_s());
        if let Some(name) = name {
            self.fleet_written(cx, table, &LeaseKey::from(name));
        }
    }

    /// The version of the fleet may have changed. An unchanged version makes no fact.
    fn version_written(cx: &mut Context, read: Option<RowRead>) {
        let Some(RowRead::Foreign { says: Some(says), .. }) = read.filter(|_| cx.plan().fleet.migrates)
        else {
            return;
        };
        if let FleetRow::Version(state) = *says {
            let by = state.written.as_ref().map(|(by, _)| cx.names().owner(&WorkerId::from(by.as_str())));
            let by = by.and_then(Owner::life);
            let led = matches!(state.version, FleetVersion::Version3x | FleetVersion::Version3xWithRollback);
            cx.fact(Fact::Rules { by, led });
            let worker = by.map_or("somebody".to_owned(), |life| format!("w{}", cx.names().worker(life)));
            cx.line(|| format!("{worker} says that the fleet is at {}", state.version.as_str()));
        }
    }

    /// The truth about a row of a fleet may have changed: in the lease table, or in a table beside it.
    pub(in crate::world) fn fleet_written(
        &mut self, cx: &mut Context, table: Option<FleetTable>, key: &LeaseKey,
    ) {
        let read = match table {
            None => self.table.item(key).map(|item| self.table.format.decode(item)),
            Some(table) => self.table.row_beside(table, key.as_str()),
        };
        if key.as_str() == VERSION_KEY {
            return Self::version_written(cx, read);
        }
        if key.as_str() != LEADER_KEY {
            if let Owner::Life(life) = cx.names().owner(&WorkerId::from(key.as_str())) {
                let there = read.is_some();
                let told = match read {
                    Some(RowRead::Foreign { says: Some(says), .. }) => match *says {
                        FleetRow::Worker(report) => Some(report.at),
                        _ => None,
                    },
                    _ => None,
                };
                let ahead_s = told.map_or(0, |told| told.saturating_sub(true_seconds(cx.now())));
                cx.fact(Fact::Reports { life, there, ahead_s });
            }
            return;
        }
        if cx.plan().fleet.tables_beside && table.is_none() {
            // No worker looks for the row in this table.
            return;
        }
        let lock = match read {
            Some(RowRead::Foreign { says: Some(says), .. }) => match *says {
                FleetRow::Leader(lock) if !lock.released => Some(lock.id),
                _ => None,
            },
            _ => None,
        };
        let life = lock.and_then(|id| cx.names().owner(&id).life());
        cx.fact(Fact::Leads { life });
        if self.leader != life {
            self.leader = life;
            let worker = life.map(|life| cx.names().worker(life));
            cx.line(|| match worker {
                Some(worker) => format!("w{worker} leads the fleet"),
                None => "nobody leads the fleet".to_owned(),
            });
        }
    }
}
