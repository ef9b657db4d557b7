//! The tables beside the lease table, as items.

use super::{Rig, refused, shard_id};
use leasehold_engine::format::{ItemOp, Kinsumer, LeaseFormat, SideRead};
use leasehold_engine::ids::{ShardId, WorkerId};
use leasehold_engine::input::{Outcome, Reply, TableState, Why};
use leasehold_engine::members::{Leader, Member, MembersChange, MembersOp, MembersPage, Shared, Side};
use leasehold_engine::table::Item;
use std::collections::BTreeMap;

/// By their keys. A page of a scan has two items.
#[derive(Default)]
pub struct SideTables(BTreeMap<Side, BTreeMap<Item, Item>>);

const PAGE: usize = 2;

impl SideTables {
    pub fn execute(&mut self, format: &dyn LeaseFormat, op: &MembersOp) -> Outcome {
        let membership = format.membership().expect("a format with members");
        let (side, spelled) = membership.spell(op);
        if spelled == ItemOp::Describe {
            let there = self.0.contains_key(&side);
            let state = if there { TableState::Usable } else { TableState::Missing };
            return Outcome::Applied(Reply::Table(state));
        }
        if spelled == ItemOp::Create {
            self.0.entry(side).or_default();
            return Outcome::Applied(Reply::Done);
        }
        let Some(rows) = self.0.get_mut(&side) else {
            return refused(Why::NotFound, None);
        };
        let read = match &spelled {
            ItemOp::Scan { after } => {
                let from = |(key, _): &(&Item, &Item)| after.as_ref().is_none_or(|after| *key > after);
                let page: Vec<_> = rows.iter().filter(from).take(PAGE).collect();
                let items: Vec<Item> = page.iter().map(|(_, item)| (*item).clone()).collect();
                let last = page.last().map(|(key, _)| *key).filter(|_| items.len() == PAGE);
                membership.read(op, SideRead::Page { items: &items, last })
            }
            ItemOp::Get(key) => membership.read(op, SideRead::Item(rows.get(key))),
            ItemOp::Write(write) => {
                let mut item = rows.remove(&write.key);
                let done = write.carry_out(&mut item);
                rows.extend(item.map(|item| (write.key.clone(), item)));
                if done.is_err() {
                    return refused(Why::ConditionFailed, None);
                }
                Ok(Reply::Done)
            }
            ItemOp::Describe | ItemOp::Create => unreachable!(),
        };
        Outcome::Applied(read.expect("a readable item"))
    }

    /// Writes like another program of this format.
    pub fn write(&mut self, change: MembersChange) {
        let done = self.execute(&Kinsumer, &MembersOp::Write(change));
        assert!(matches!(done, Outcome::Applied(_)), "{done:?}");
    }

    /// A member whose row bears the time `at`.
    pub fn register(&mut self, id: &str, at: u64) {
        self.write(MembersChange::Register(Member { id: id.into(), at }));
    }

    /// The shards that are shared out.
    pub fn shared(&mut self) -> Option<Shared> {
        match self.execute(&Kinsumer, &MembersOp::ReadShards) {
            Outcome::Applied(Reply::Shared(shared)) => shared,
            other => panic!("{other:?}"),
        }
    }

    pub fn shards(&mut self) -> Vec<ShardId> {
        self.shared().map(|shared| shared.shards).unwrap_or_default()
    }

    pub fn leader(&mut self) -> Option<Leader> {
        match self.execute(&Kinsumer, &MembersOp::ReadLeader) {
            Outcome::Applied(Reply::Leader(leader)) => leader,
            other => panic!("{other:?}"),
        }
    }

    /// The member that leads, as the row says.
    pub fn leads(&mut self) -> Option<WorkerId> {
        self.leader().expect("a row of the leader").id
    }

    /// The ids of all rows.
    pub fn members(&mut self) -> Vec<WorkerId> {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            match self.execute(&Kinsumer, &MembersOp::List { after }) {
                Outcome::Applied(Reply::Members(MembersPage { members, next })) => {
                    ids.extend(members.into_iter().map(|member| member.id));
                    match next {
                        Some(next) => after = Some(next),
                        None => return ids,
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

pub fn fleet(shards: u32, workers: u32) -> Rig {
    Rig::with_format(&Kinsumer, shards, workers)
}

/// The same, with empty tables beside the lease table.
pub fn fleet_with_tables(shards: u32, workers: u32) -> Rig {
    let mut rig = fleet(shards, workers);
    for side in Side::ALL {
        rig.side.execute(&Kinsumer, &MembersOp::Create(side));
    }
    rig
}

/// The present time in nanoseconds since 1970, as a right clock shows it.
pub fn stamp(rig: &Rig) -> u64 {
    rig.now.0 / 1_000 * 1_000_000
}

/// A client of another program, alive at every check for `secs` seconds; the client takes no lease.
pub fn beside(rig: &mut Rig, id: &str, secs: u64) {
    for _ in 0..secs / 2 {
        let now = stamp(rig);
        rig.side.register(id, now);
        rig.secs(2);
    }
}

/// Another program shares out these shards.
pub fn share(rig: &mut Rig, shards: std::ops::Range<u32>) {
    let shared = Shared { shards: shards.map(shard_id).collect(), at: stamp(rig) };
    rig.side.write(MembersChange::Share { shared, seen: None });
}
