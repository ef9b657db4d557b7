//! Rows both ways, and the tables beside them.

use super::*;
use crate::format::tests::checkpoints;
use crate::format::{ItemOp, SideRead};
use crate::ids::{LeaseKey, WorkerId};
use crate::input::Reply;
use crate::members::{Leader, Member, MembersChange, MembersOp, Shared, Side};
use crate::row::LeaseRow;
use crate::stream_identity::StreamIdentity;
use crate::table::{AttributeValue, render};
use crate::testkit::item_of;
use crate::time::Wall;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const NOON: u64 = 1_700_526_840 * SECOND;

fn key() -> LeaseKey {
    "shardId-000000000001".into()
}

proptest! {
    #[test]
    fn rows_are_read_as_they_were_written(
        checkpoint in checkpoints(9, 3),
        counter: u64,
        owner in prop::option::of("[a-z:-]{1,9}"),
        began in prop::option::of(0i64..9),
        stream in prop::sample::select(vec!["", "orders"]),
    ) {
        let row = LeaseRow {
            began: began.map(Wall),
            stream: StreamIdentity::new(stream, Wall(1_700_000_000_000)),
            owner: owner.map(|owner| owner.as_str().into()),
            counter,
            ..LeaseRow::new(key(), checkpoint)
        };
        prop_assert_eq!(Kinsumer.decode(&item_of(&Kinsumer, &row)), RowRead::Lease(row));
    }

    #[test]
    fn no_item_panics(name in "[A-Z][A-Za-z]{1,14}|Shard|LastUpdate|OwnerID|SequenceNumber|Finished", text in "\\PC{0,20}") {
        for value in [AttributeValue::s(text.as_str()), AttributeValue::N(text.into()), AttributeValue::Bool(true)] {
            let mut item = Kinsumer.key(&key());
            item.insert(name.clone().into(), value);
            let _ = Kinsumer.decode(&item);
            for op in [MembersOp::ReadLeader, MembersOp::ReadShards] {
                let _ = Kinsumer.read(&op, SideRead::Item(Some(&item)));
            }
        }
    }
}

#[test]
fn rows_that_are_no_leases_say_why() {
    let item = |name: &'static str, value| {
        let mut item = Kinsumer.key(&key());
        item.insert(name.into(), value);
        item
    };
    for (item, expected) in [
        (
            item("SequenceNumber", AttributeValue::s("x")),
            "SequenceNumber: expected a sequence number or LATEST, found the string \"x\"",
        ),
        (
            item("LastUpdate", AttributeValue::n(-1)),
            "LastUpdate: expected a whole number from 0 to 2^64 - 1, found the number -1",
        ),
        (
            item("Finished", AttributeValue::s("1")),
            "Finished: expected a whole number from 0 to 2^64 - 1, found the string \"1\"",
        ),
        (item("OwnerID", AttributeValue::n(1)), "OwnerID: expected a string, found the number 1"),
    ] {
        let detail = expected.to_owned();
        assert_eq!(Kinsumer.decode(&item), RowRead::Unreadable { key: key(), detail });
    }
    let stranger = Item::from([("Shard".into(), AttributeValue::s("note"))]);
    assert!(matches!(Kinsumer.decode(&stranger), RowRead::Foreign { .. }));
}

fn member(id: &str, seconds: u64) -> Member {
    Member { id: id.into(), at: seconds * SECOND }
}

/// What a write makes of an item.
fn made(change: MembersChange, item: Option<Item>) -> Option<Option<Item>> {
    let (_, ItemOp::Write(write)) = Kinsumer.spell(&MembersOp::Write(change)) else {
        panic!("expected a write");
    };
    let mut item = item;
    write.carry_out(&mut item).is_ok().then_some(item)
}

#[test]
fn a_member_writes_what_its_programs_write() {
    let me = Member { id: "a".into(), at: NOON };
    let item = made(MembersChange::Register(me.clone()), None).flatten().unwrap();
    let expected = Item::from([
        ("ID".into(), AttributeValue::s("a")),
        ("LastUpdate".into(), AttributeValue::n(NOON)),
        ("LastUpdateRFC".into(), AttributeValue::s("Tue, 21 Nov 2023 00:34:00 +0000")),
        ("Name".into(), AttributeValue::s("a")),
    ]);
    assert_eq!(item, expected);
    let list = MembersOp::List { after: None };
    let stranger = Item::from([("ID".into(), AttributeValue::n(1))]);
    let items = [item.clone(), stranger];
    let page = SideRead::Page { items: &items, last: Some(&items[0]) };
    match Kinsumer.read(&list, page) {
        Ok(Reply::Members(page)) => {
            assert_eq!((page.members, page.next), (vec![me], Some("a".into())));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(made(MembersChange::Leave("a".into()), Some(item)), Some(None));
}

/// The row of a member that wrote again after the read stays.
#[test]
fn only_who_is_still_dead_is_removed() {
    let old = || made(MembersChange::Register(member("b", 5)), None).flatten();
    assert_eq!(made(MembersChange::Reap(member("b", 5)), old()), Some(None));
    assert_eq!(made(MembersChange::Reap(member("b", 4)), old()), None);
}

fn leader(item: Option<&Item>) -> Option<Leader> {
    match Kinsumer.read(&MembersOp::ReadLeader, SideRead::Item(item)) {
        Ok(Reply::Leader(leader)) => leader,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_leads_at_a_time() {
    let lead =
        |me: &str, at, seen: Option<&Item>| MembersChange::Lead { me: member(me, at), seen: leader(seen) };
    let first = made(lead("a", 10, None), None).flatten();
    let row = leader(first.as_ref()).unwrap();
    assert_eq!((row.id.clone(), row.at), (Some(WorkerId::from("a")), 10 * SECOND));
    // Two members found no leader: one member comes first.
    assert_eq!(made(lead("b", 11, None), first.clone()), None);
    let again = made(lead("a", 20, first.as_ref()), first.clone()).flatten();
    assert_eq!(made(lead("b", 21, first.as_ref()), again.clone()), None, "it lived meanwhile");
    let other = made(lead("b", 400, again.as_ref()), again.clone()).flatten();
    assert_eq!(made(MembersChange::StepDown(member("a", 401)), other.clone()), None);
    let nobody = made(MembersChange::StepDown(member("b", 401)), other).flatten();
    assert_eq!(leader(nobody.as_ref()).unwrap().id, None);
    assert!(nobody.as_ref().unwrap().contains_key("Name"), "as its programs leave it");
    assert!(made(lead("c", 402, nobody.as_ref()), nobody).is_some());
    // Programs of other versions spell a missing leader in these ways.
    for nothing in [AttributeValue::Null, AttributeValue::s("")] {
        let mut row = again.clone().unwrap();
        row.insert("ID".into(), nothing);
        assert!(made(lead("c", 30, Some(&row)), Some(row.clone())).is_some());
    }
}

#[test]
fn shards_are_shared_out_only_as_they_were_read() {
    let shared = |at, ids: &[&str]| Shared { shards: ids.iter().map(|id| (*id).into()).collect(), at };
    let share = |at, ids: &[&str], seen| MembersChange::Share { shared: shared(at, ids), seen };
    let item = made(share(10, &["x", "y"], None), None).flatten();
    match Kinsumer.read(&MembersOp::ReadShards, SideRead::Item(item.as_ref())) {
        Ok(Reply::Shared(read)) => assert_eq!(read, Some(shared(10, &["x", "y"]))),
        other => panic!("{other:?}"),
    }
    assert_eq!(made(share(11, &["z"], None), item.clone()), None);
    let newer = made(share(12, &["y", "z"], Some(10)), item).flatten();
    assert_eq!(made(share(13, &["x", "y"], Some(10)), newer), None, "an older list");
}

#[test]
fn tables_are_named_after_the_application() {
    assert_eq!(Kinsumer.leases("app"), "app_checkpoints");
    let sides = Side::ALL.map(|side| (Kinsumer.side("app", side), Membership::key_name(&Kinsumer, side)));
    assert_eq!(sides, [("app_clients".to_owned(), "ID"), ("app_metadata".to_owned(), "Key")]);
}

/// Conditions without a text in DynamoDB are left out.
#[test]
fn a_change_without_a_condition_is_rendered_without_one() {
    let (_, ItemOp::Write(write)) = Kinsumer.spell(&MembersOp::Write(MembersChange::Leave("a".into())))
    else {
        panic!("expected a write");
    };
    assert_eq!(render(&write).condition, "");
}
