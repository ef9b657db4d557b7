//! The tables beside the checkpoints: `<application>_clients` and `<application>_metadata`.
//!
//! | table | key | row | what it says |
//! |---|---|---|---|
//! | clients | `ID` | one for each member | `LastUpdate`, and `Name` for people |
//! | metadata | `Key` | `Leader` | `ID`, absent once somebody stepped down; `Name`, `LastUpdate` |
//! | metadata | `Key` | `ShardCache` | `ShardIDs`, a list of S; `LastUpdate` |
//!
//! Its own programs judge lives by `LastUpdate` against their own clocks, and write the shards unguarded.

use super::Kinsumer;
use super::rows::{LAST_UPDATE, is, nothing, stamped, written_at};
use crate::format::membership::{ItemOp, Membership, SideRead, read_page};
use crate::format::reading::{get, number, text, wrong};
use crate::ids::{ShardId, WorkerId};
use crate::input::Reply;
use crate::members::{Leader, Member, MembersChange, MembersOp, Shared, Side};
use crate::table::{Action, AttributeValue, Condition, Item, ItemWrite};

const ID: &str = "ID";
const KEY: &str = "Key";
const NAME: &str = "Name";
const SHARDS: &str = "ShardIDs";
const LEADER: &str = "Leader";
const SHARD_CACHE: &str = "ShardCache";

fn client(id: &WorkerId) -> Item {
    Item::from([(ID.into(), AttributeValue::s(id.clone()))])
}

fn metadata(key: &'static str) -> Item {
    Item::from([(KEY.into(), AttributeValue::s(key))])
}

/// The item with the time of its write.
fn written(mut item: Item, at: u64) -> Item {
    item.extend(stamped(at).set);
    item
}

impl Membership for Kinsumer {
    fn leases(&self, application: &str) -> String {
        format!("{application}_checkpoints")
    }

    fn side(&self, application: &str, side: Side) -> String {
        match side {
            Side::Members => format!("{application}_clients"),
            Side::Fleet => format!("{application}_metadata"),
        }
    }

    fn key_name(&self, side: Side) -> &'static str {
        match side {
            Side::Members => ID,
            Side::Fleet => KEY,
        }
    }

    fn spell(&self, op: &MembersOp) -> (Side, ItemOp) {
        match op {
            MembersOp::Describe(side) => (*side, ItemOp::Describe),
            MembersOp::Create(side) => (*side, ItemOp::Create),
            MembersOp::List { after } => {
                let after = after.as_ref().map(client);
                (Side::Members, ItemOp::Scan { after })
            }
            MembersOp::ReadLeader => (Side::Fleet, ItemOp::Get(metadata(LEADER))),
            MembersOp::ReadShards => (Side::Fleet, ItemOp::Get(metadata(SHARD_CACHE))),
            MembersOp::Write(change) => {
                let (side, write) = write(change);
                (side, ItemOp::Write(write))
            }
        }
    }

    fn read(&self, op: &MembersOp, found: SideRead<'_>) -> Result<Reply, String> {
        match (op, found) {
            (MembersOp::List { .. }, SideRead::Page { items, last }) => {
                let next = last.and_then(|key| key.get(ID)?.as_s()).map(WorkerId::from);
                Ok(Reply::Members(read_page(items, next, member)))
            }
            (MembersOp::ReadLeader, SideRead::Item(item)) => Ok(Reply::Leader(item.map(leader).transpose()?)),
            (MembersOp::ReadShards, SideRead::Item(item)) => Ok(Reply::Shared(item.map(shared).transpose()?)),
            (op, _) => Err(format!("expected what answers {:?}, found something else", op.verb())),
        }
    }
}

fn at(item: &Item) -> Result<u64, String> {
    Ok(number(LAST_UPDATE, get(item, LAST_UPDATE))?.unwrap_or(0))
}

fn member(item: &Item) -> Result<Member, String> {
    let found = get(item, ID);
    match text(ID, found)? {
        Some(id) => Ok(Member { id: WorkerId::new(id.clone()), at: at(item)? }),
        None => Err(wrong(ID, "a string", found)),
    }
}

fn leader(item: &Item) -> Result<Leader, String> {
    let id = text(ID, get(item, ID))?;
    Ok(Leader { id: id.cloned().map(WorkerId::new), at: at(item)? })
}

fn shared(item: &Item) -> Result<Shared, String> {
    let shards = match get(item, SHARDS) {
        None => Vec::new(),
        Some(AttributeValue::L(ids)) => ids
            .iter()
            .map(|id| match id {
                AttributeValue::S(id) => Ok(ShardId::new(id.clone())),
                other => Err(wrong(SHARDS, "a list of strings", Some(other))),
            })
            .collect::<Result<_, _>>()?,
        other => return Err(wrong(SHARDS, "a list of strings", other)),
    };
    Ok(Shared { shards, at: at(item)? })
}

fn write(change: &MembersChange) -> (Side, ItemWrite) {
    let always = || Condition::All(Vec::new());
    let named = |mut item: Item, name: &WorkerId| {
        item.insert(NAME.into(), AttributeValue::s(name.clone()));
        item
    };
    let (side, key, condition, action) = match change {
        MembersChange::Register(me) => {
            let item = written(named(client(&me.id), &me.id), me.at);
            (Side::Members, client(&me.id), always(), Action::Put(item))
        }
        MembersChange::Leave(me) => (Side::Members, client(me), always(), Action::Delete),
        MembersChange::Reap(member) => {
            (Side::Members, client(&member.id), written_at(member.at), Action::Delete)
        }
        MembersChange::Lead { me, seen } => {
            let condition = match seen {
                None => Condition::NotExists(KEY.into()),
                Some(seen) => {
                    let leader = match &seen.id {
                        Some(id) => is(ID, AttributeValue::s(id.clone())),
                        None => nothing(ID),
                    };
                    Condition::All(vec![leader, written_at(seen.at)])
                }
            };
            let mut item = written(named(metadata(LEADER), &me.id), me.at);
            item.insert(ID.into(), AttributeValue::s(me.id.clone()));
            (Side::Fleet, metadata(LEADER), condition, Action::Put(item))
        }
        MembersChange::StepDown(me) => (
            Side::Fleet,
            metadata(LEADER),
            is(ID, AttributeValue::s(me.id.clone())),
            Action::Update(stamped(me.at).remove(ID)),
        ),
        MembersChange::Share { shared, seen } => {
            let condition = match seen {
                None => Condition::NotExists(KEY.into()),
                Some(seen) => written_at(*seen),
            };
            let ids = shared.shards.iter().map(|id| AttributeValue::s(id.clone()));
            let mut item = written(metadata(SHARD_CACHE), shared.at);
            item.insert(SHARDS.into(), AttributeValue::L(ids.collect()));
            (Side::Fleet, metadata(SHARD_CACHE), condition, Action::Put(item))
        }
    };
    let write = ItemWrite { key, condition, action };
    (side, write)
}
