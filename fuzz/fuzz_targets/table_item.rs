//! Any item as a lease row: decoded to an answer, and changed without touching what is not ours.
//!
//! Bytes that are JSON are an item as it is in the corpus (`{"leaseKey":{"S":"shardId-000000000000"},…}`); others are
//! taken as structure. Every change that the decoded row allows is encoded, carried out by the engine's own algebra
//! and by the in-memory DynamoDB from the rendered expressions, and both must agree.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use leasehold_engine::format::{LeaseFormat, Kcl};
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{Change, Guard, LeaseRow, RowRead};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::table::{Action, AttributeName, AttributeValue, Item, ItemWrite, holds, render};
use leasehold_local_aws::dynamo::expr::{Binder, parse_condition, parse_update};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

/// Attributes that the format reads or writes.
const OURS: [&str; 14] = [
    "leaseKey",
    "leaseOwner",
    "leaseCounter",
    "ownerSwitchesSinceCheckpoint",
    "checkpoint",
    "checkpointSubSequenceNumber",
    "parentShardId",
    "childShardIds",
    "startingHashKey",
    "endingHashKey",
    "checkpointOwner",
    "pendingCheckpoint",
    "pendingCheckpointSubSequenceNumber",
    "pendingCheckpointState",
];
/// Attributes of other kinds of items, and a stranger's.
const OTHERS: [&str; 8] = [
    "entityType",
    "lut",
    "recordVersionNumber",
    "cv",
    "tm",
    "streamId",
    "stranger",
    "",
];
const TEXTS: [&str; 9] = [
    "",
    "LEASE",
    "TRIM_HORIZON",
    "LATEST",
    "AT_TIMESTAMP",
    "SHARD_END",
    "0",
    "340282366920938463463374607431768211455",
    "49668899999999999999999999999999999999999999999999999999",
];
const NUMBERS: [&str; 8] = ["0", "1", "-1", "1.0", "1E2", "18446744073709551615", "1E99", "x"];

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(if u.ratio(3, 4)? {
        (*u.choose(&TEXTS)?).to_string()
    } else {
        String::arbitrary(u)?
    })
}

fn value(u: &mut Unstructured<'_>, depth: u32) -> Result<AttributeValue> {
    Ok(match u.int_in_range(0..=if depth == 0 { 11 } else { 7 })? {
        0 | 8 => AttributeValue::s(text(u)?),
        1 | 9 => AttributeValue::n(*u.choose(&NUMBERS)?),
        2 | 10 => AttributeValue::Ss([text(u)?, text(u)?].into()),
        3 => AttributeValue::B(Vec::arbitrary(u)?),
        4 => AttributeValue::Bool(bool::arbitrary(u)?),
        5 => AttributeValue::Null,
        6 => AttributeValue::Ns([(*u.choose(&NUMBERS)?).to_string()].into()),
        7 if depth > 0 => AttributeValue::Bs([Vec::arbitrary(u)?].into()),
        7 => AttributeValue::M(BTreeMap::from([(text(u)?, value(u, depth + 1)?)])),
        _ => AttributeValue::L(vec![value(u, depth + 1)?, value(u, depth + 1)?]),
    })
}

fn item(u: &mut Unstructured<'_>) -> Result<Item> {
    let mut item = Item::from([
        ("leaseKey".into(), AttributeValue::s("shardId-000000000000")),
        ("leaseCounter".into(), AttributeValue::n(5)),
        ("ownerSwitchesSinceCheckpoint".into(), AttributeValue::n(0)),
        ("checkpoint".into(), AttributeValue::s("TRIM_HORIZON")),
    ]);
    for _ in 0..u.int_in_range(0..=16)? {
        let name: AttributeName = if u.ratio(3, 4)? {
            (*u.choose(&OURS)?).into()
        } else {
            (*u.choose(&OTHERS)?).into()
        };
        if u.ratio(1, 8)? {
            item.remove(&name);
        } else {
            item.insert(name, value(u, 0)?);
        }
    }
    Ok(item)
}

/// Every change of this row that its holder, or a taker, could ask for.
fn changes(row: &LeaseRow) -> Vec<Change> {
    let key = row.key.clone();
    let holder = row.actual_owner().cloned().unwrap_or_else(|| "w1".into());
    let guard = Guard {
        counter: row.counter,
        next: row.counter.saturating_add(1),
        next_owner: row.handing_over.as_ref().and(row.owner.clone()),
        holder,
    };
    let held = |make: fn(leasehold_engine::ids::LeaseKey, Guard) -> Change| make(key.clone(), guard.clone());
    vec![
        held(|key, guard| Change::Renew { key, guard }),
        held(|key, guard| Change::Release { key, guard }),
        held(|key, guard| Change::HandOver { key, guard }),
        held(|key, guard| Change::Checkpoint {
            key,
            guard,
            position: Position {
                sequence: SequenceNumber::from_words([u64::MAX; 3]),
                sub: u64::MAX,
            },
        }),
        held(|key, guard| Change::End {
            key,
            guard,
            children: vec!["shardId-000000000008".into(), "shardId-000000000009".into()],
        }),
        Change::Take {
            key: key.clone(),
            counter: row.counter,
            next: row.counter.saturating_add(1),
            from: row.owner.clone(),
            checkpoint: row.checkpoint,
            to: "w2".into(),
            named: None,
            stream: None,
        },
        Change::SetRange {
            key: key.clone(),
            range: HashRange {
                start: HashKey(7),
                end: HashKey::MAX,
            },
        },
        Change::Reset {
            key: key.clone(),
            counter: row.counter,
            next: row.counter.saturating_add(1),
            owner: row.owner.clone(),
            handing_over: row.handing_over.clone(),
            checkpoint: row.checkpoint,
            to: Checkpoint::TrimHorizon,
        },
        Change::Delete {
            key,
            counter: row.counter,
        },
    ]
}

/// The same write from its rendered expressions, as the in-memory DynamoDB carries it out; `None`: the guard does not hold.
fn by_expressions(write: &ItemWrite, item: &Item) -> Option<Option<Item>> {
    let rendered = render(write);
    let values: Item = rendered
        .values
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
    let mut binder = Binder::unchecked(rendered.names, values);
    let condition = parse_condition(&rendered.condition, &mut binder).expect("our own condition");
    let update = rendered
        .update
        .map(|text| parse_update(&text, &mut binder).expect("our own update"));
    condition.holds(item).then(|| update?.apply(item).ok())
}

fn check(item: &Item) {
    let read = Kcl.decode(item);
    assert_eq!(read, Kcl.decode(item), "decoding differs from itself");
    let RowRead::Lease(row) = read else {
        return;
    };
    // A take adds one to a count that only ever grows by one: nobody comes to its end by honest means.
    if row.switches == u64::MAX {
        return;
    }
    for change in changes(&row) {
        let write = Kcl.encode(&change);
        let mut after = Some(item.clone());
        let done = write.carry_out(&mut after);
        if !plain(item) {
            continue;
        }
        let expressed = by_expressions(&write, item);
        assert_eq!(
            holds(&write.condition, Some(item)),
            expressed.is_some(),
            "the guard of {change:?} on {item:?}"
        );
        let Some(after) = after.filter(|_| done.is_ok()) else {
            continue;
        };
        if let (Action::Update(_), Some(expressed)) = (&write.action, expressed) {
            assert_eq!(Some(&after), expressed.as_ref(), "{change:?} on {item:?}");
        }
        for (name, value) in item.iter().filter(|(name, _)| !OURS.contains(&&***name)) {
            assert_eq!(after.get(name), Some(value), "{change:?} touched {name}");
        }
        match Kcl.decode(&after) {
            RowRead::Lease(new) => assert_eq!(new.key, row.key),
            other => panic!("{change:?} made {other:?} out of {item:?}"),
        }
    }
    // A row that is created reads back as what it was created from.
    let created = Kcl.encode(&Change::Create(Box::new(row.clone())));
    let mut fresh = None;
    created.carry_out(&mut fresh).expect("there is no such row");
    assert_eq!(fresh.map(|item| Kcl.decode(&item)), Some(RowRead::Lease(row)));
}

/// Whether DynamoDB could hold the item at all: its numbers are numbers.
fn plain(item: &Item) -> bool {
    fn number(text: &str) -> bool {
        leasehold_local_aws::dynamo::decimal::Decimal::parse(text).is_ok()
    }
    fn ok(value: &AttributeValue) -> bool {
        match value {
            AttributeValue::N(text) => number(text),
            AttributeValue::Ns(texts) => texts.iter().all(|text| number(text)),
            AttributeValue::L(list) => list.iter().all(ok),
            AttributeValue::M(map) => map.values().all(ok),
            _ => true,
        }
    }
    item.values().all(ok)
}

fuzz_target!(|bytes: &[u8]| {
    match serde_json::from_slice::<Item>(bytes) {
        Ok(item) => check(&item),
        Err(_) => {
            if let Ok(item) = item(&mut Unstructured::new(bytes)) {
                check(&item);
            }
        }
    }
});
