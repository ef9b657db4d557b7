//! Any item as a lease row of any format: decoded to an answer, and changed without touching what is not the format's.
//!
//! Bytes in JSON are an item in the corpus's form (`{"leaseKey":{"S":"shardId-000000000000"},…}`), and every format
//! reads the item. For other bytes, the first byte chooses the format, and the rest changes an item made by the
//! format's codec. Every change allowed by the decoded row is encoded, then carried out by the engine's own algebra and
//! by the in-memory DynamoDB from the rendered expressions. Both must agree. Parts of the row outside the change read
//! as before.
//!
//! The codec tells the format's own attributes: attributes of created rows, and attributes with an effect on a row's
//! reading. A change leaves every other attribute alone, whatever program wrote it.
#![no_main]

#[path = "table_item/creation.rs"]
mod creation;

use arbitrary::{Arbitrary, Result, Unstructured};
use leasehold_engine::format::{Format, LeaseFormat};
use leasehold_engine::position::{Checkpoint, Position, SequenceNumber};
use leasehold_engine::row::{Change, Guard, HandsOver, LeaseRow, RowRead};
use leasehold_engine::shard::{HashKey, HashRange};
use leasehold_engine::stream_identity::StreamIdentity;
use leasehold_engine::table::{Action, AttributeName, AttributeValue, Item, ItemWrite, holds, render};
use leasehold_engine::time::Wall;
use leasehold_local_aws::dynamo::expr::{Binder, parse_condition, parse_update};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Attributes of other kinds of items, and of a stranger: no change of a lease touches these attributes.
const OTHERS: [&str; 7] = ["lut", "recordVersionNumber", "cv", "tm", "streamId", "stranger", ""];
/// A checkpoint prepared by a worker of KCL. No row of Leasehold has a prepared checkpoint, and no worker of Leasehold
/// reads it: a stored checkpoint removes the prepared checkpoint, as in KCL.
const PREPARED: [&str; 3] =
    ["pendingCheckpoint", "pendingCheckpointSubSequenceNumber", "pendingCheckpointState"];
const TEXTS: [&str; 14] = [
    "",
    "LEASE",
    "TRIM_HORIZON",
    "LATEST",
    "AT_TIMESTAMP",
    "SHARD_END",
    "0",
    "w1",
    "w2",
    "2026-01-02T03:04:05.000000006Z",
    "9999-12-31T23:59:59+23:59",
    "111122223333:orders:1700000000:shardId-000000000001",
    "340282366920938463463374607431768211455",
    "49668899999999999999999999999999999999999999999999999999",
];
const NUMBERS: [&str; 8] = ["0", "1", "-1", "1.0", "1E2", "18446744073709551615", "1E99", "x"];

/// The facts about a format from its codec alone.
struct Known {
    format: Format,
    /// Rows as the codec creates them.
    created: Vec<Item>,
    /// Every attribute that the codec names in a creation or in a change.
    names: Vec<AttributeName>,
    /// The format's own attributes among all attributes.
    own: BTreeSet<AttributeName>,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| Format::ALL.into_iter().map(Known::of).collect());

/// Rows with every possible attribute.
fn full_rows() -> Vec<LeaseRow> {
    let mut free = LeaseRow::new("shardId-000000000000".into(), Checkpoint::TrimHorizon);
    free.counter = 1_767_323_045_000_000;
    let mut owned = free.clone();
    owned.owner = Some("w1".into());
    owned.checkpoint = Checkpoint::At(Position { sequence: SequenceNumber::from_words([1, 2, 3]), sub: 4 });
    owned.parents = vec!["shardId-000000000001".into()];
    owned.range = Some(HashRange { start: HashKey(5), end: HashKey(50) });
    (owned.hands_over, owned.switches, owned.throughput) = (HandsOver::Yes, 2, Some(3_000_000));
    let mut given = owned.clone();
    given.handing_over = Some("w2".into());
    given.hands_over = HandsOver::Later;
    let mut ended = owned.clone();
    (ended.owner, ended.checkpoint) = (None, Checkpoint::ShardEnd);
    ended.children = vec!["shardId-000000000002".into()];
    let mut of_several = owned.clone();
    of_several.key = "111122223333:orders:1700000000:shardId-000000000000".into();
    let mut latest = owned.clone();
    (latest.checkpoint, latest.began) = (Checkpoint::Latest, Some(Wall(1_767_323_045_000)));
    latest.stream =
        StreamIdentity::new("arn:aws:kinesis:us-east-1:111122223333:stream/orders", Wall(1_700_000_000_000));
    let mut at_timestamp = latest.clone();
    at_timestamp.checkpoint = Checkpoint::AtTimestamp;
    vec![free, owned, given, ended, of_several, latest, at_timestamp]
}

impl Known {
    fn of(format: Format) -> Self {
        let rows = full_rows();
        let create = |row: &LeaseRow| {
            let mut item = None;
            let created = format.encode(&Change::Create(Box::new(row.clone()))).carry_out(&mut item);
            created.expect("there is no such row");
            item.expect("a creation makes a row")
        };
        let created: Vec<Item> = rows.iter().map(create).collect();
        let mut own: BTreeSet<AttributeName> = created.iter().flat_map(|item| item.keys().cloned()).collect();
        let mut names = own.clone();
        for change in rows.iter().flat_map(changes) {
            if let Action::Update(update) = format.encode(&change).action {
                names.extend(update.set.into_iter().map(|(name, _)| name));
                names.extend(update.add.into_iter().map(|(name, _)| name));
                names.extend(update.remove);
            }
        }
        own.extend(names.iter().filter(|name| is_read(format, &created, name)).cloned());
        let strange: Vec<_> =
            names.iter().filter(|name| !own.contains(*name) && !PREPARED.contains(&&***name)).collect();
        assert!(strange.is_empty(), "{format} changes {strange:?}, and neither reads nor creates them");
        assert!(
            OTHERS.iter().all(|name| !names.contains(*name)),
            "{format} changes what is another program's"
        );
        let names = names.into_iter().chain(PREPARED.map(Into::into)).collect();
        Self { format, created, names, own }
    }

    /// Whether a change may touch an attribute.
    fn may_touch(&self, change: &Change, name: &AttributeName) -> bool {
        let progress =
            matches!(change, Change::Checkpoint { .. } | Change::End { .. } | Change::Reset { .. });
        self.own.contains(name) || progress && self.format == Format::Kcl && PREPARED.contains(&&**name)
    }
}

/// Whether an attribute makes a difference when a row is read.
fn is_read(format: Format, created: &[Item], name: &AttributeName) -> bool {
    let probes = [
        None,
        Some(AttributeValue::s("w1")),
        Some(AttributeValue::s("w9")),
        Some(AttributeValue::n(7)),
        Some(AttributeValue::Ss(["shardId-000000000007".to_owned()].into())),
        Some(AttributeValue::Bool(true)),
    ];
    created.iter().any(|item| {
        let read: BTreeSet<String> = probes
            .iter()
            .map(|probe| {
                let mut item = item.clone();
                item.remove(name);
                item.extend(probe.clone().map(|value| (name.clone(), value)));
                format!("{:?}", format.decode(&item))
            })
            .collect();
        read.len() > 1
    })
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(if u.ratio(3, 4)? { (*u.choose(&TEXTS)?).to_string() } else { String::arbitrary(u)? })
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

fn item(u: &mut Unstructured<'_>, known: &Known) -> Result<Item> {
    let mut item = u.choose(&known.created)?.clone();
    for _ in 0..u.int_in_range(0..=16)? {
        let name: AttributeName =
            if u.ratio(3, 4)? { u.choose(&known.names)?.clone() } else { (*u.choose(&OTHERS)?).into() };
        if u.ratio(1, 4)? {
            item.remove(&name);
        } else {
            item.insert(name, value(u, 0)?);
        }
    }
    Ok(item)
}

/// Every possible change of this row by its holder, a taker, a leader or an operator.
fn changes(row: &LeaseRow) -> Vec<Change> {
    [of_a_holder(row), of_a_taker(row), of_a_leader(row)].concat()
}

fn of_a_holder(row: &LeaseRow) -> Vec<Change> {
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
        held(|key, guard| Change::Renew { key, guard, began: None }),
        held(|key, guard| Change::Release { key, guard }),
        held(|key, guard| Change::HandOver { key, guard }),
        held(|key, guard| Change::Checkpoint {
            key,
            guard,
            position: Position { sequence: SequenceNumber::from_words([u64::MAX; 3]), sub: u64::MAX },
        }),
        held(|key, guard| Change::End {
            key,
            guard,
            children: vec!["shardId-000000000008".into(), "shardId-000000000009".into()],
            last: None,
        }),
    ]
}

/// The changes of a taker, and changes to fill in or reset a row.
fn of_a_taker(row: &LeaseRow) -> Vec<Change> {
    let key = row.key.clone();
    let (counter, next) = (row.counter, row.counter.saturating_add(1));
    let (from, handing_over) = (row.owner.clone(), row.handing_over.clone());
    let owner = from.clone().unwrap_or_else(|| "w1".into());
    vec![
        Change::Take {
            key: key.clone(),
            counter,
            next,
            from: from.clone(),
            checkpoint: row.checkpoint,
            to: "w2".into(),
            began: None,
            named: None,
            stream: None,
        },
        Change::Claim { key: key.clone(), counter, from: owner, checkpoint: row.checkpoint, by: "w3".into() },
        Change::SetRange {
            key: key.clone(),
            was: row.range,
            range: HashRange { start: HashKey(7), end: HashKey::MAX },
        },
        Change::Reset {
            key,
            counter,
            next,
            owner: from,
            handing_over,
            checkpoint: row.checkpoint,
            to: Checkpoint::TrimHorizon,
        },
    ]
}

/// The changes by a leader, and the removals of a row.
fn of_a_leader(row: &LeaseRow) -> Vec<Change> {
    let key = row.key.clone();
    let (counter, next) = (row.counter, row.counter.saturating_add(1));
    let (from, handing_over) = (row.owner.clone(), row.handing_over.clone());
    let owner = from.clone().unwrap_or_else(|| "w1".into());
    vec![
        Change::Assign {
            key: key.clone(),
            counter,
            next,
            from: from.clone(),
            handing_over: handing_over.clone(),
            to: "w2".into(),
        },
        Change::Offer { key: key.clone(), from: owner.clone(), to: "w3".into() },
        Change::Weigh { key: key.clone(), owner, throughput: 12_500_000 },
        Change::Delete { key: key.clone(), counter },
        Change::Forget { key, counter, owner: from, handing_over },
    ]
}

/// The same write from its rendered expressions, carried out by the in-memory DynamoDB; `None`: the guard does not
/// hold.
fn by_expressions(write: &ItemWrite, item: &Item) -> Option<Option<Item>> {
    let rendered = render(write);
    let values: Item = rendered.values.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let mut binder = Binder::unchecked(rendered.names, values);
    let condition = parse_condition(&rendered.condition, &mut binder).expect("our own condition");
    let update = rendered.update.map(|text| parse_update(&text, &mut binder).expect("our own update"));
    condition.holds(item).then(|| update?.apply(item).ok())
}

fn check(known: &Known, item: &Item) {
    let format = known.format;
    let read = format.decode(item);
    assert_eq!(read, format.decode(item), "decoding differs from itself");
    let RowRead::Lease(row) = read else {
        return;
    };
    // A take adds one to a count that only ever grows by one: no honest worker reaches the count's end.
    if row.switches == u64::MAX {
        return;
    }
    for change in changes(&row) {
        let write = format.encode(&change);
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
        let names: BTreeSet<&AttributeName> = item.keys().chain(after.keys()).collect();
        for name in names {
            let touched = item.get(name) != after.get(name);
            assert!(
                !touched || known.may_touch(&change, name),
                "{format}: {change:?} touched {name} of {item:?}"
            );
        }
        match format.decode(&after) {
            RowRead::Lease(new) => compare(&change, &row, &new),
            other => panic!("{format}: {change:?} made {other:?} out of {item:?}"),
        }
    }
    creation::check(format, row);
}

/// Parts of the row outside the change read as before.
fn compare(change: &Change, old: &LeaseRow, new: &LeaseRow) {
    let said = || format!("{change:?} made {new:?} out of {old:?}");
    let progress = matches!(change, Change::Checkpoint { .. } | Change::End { .. } | Change::Reset { .. });
    assert_eq!(new.key, old.key, "{}", said());
    assert_eq!(new.parents, old.parents, "{}", said());
    assert!(progress || new.checkpoint == old.checkpoint, "{}", said());
    assert!(matches!(change, Change::End { .. }) || new.children == old.children, "{}", said());
    assert!(matches!(change, Change::SetRange { .. }) || new.range == old.range, "{}", said());
    match change {
        // A former owner's reading tells nothing about the next owner.
        Change::Take { .. } => assert_eq!(new.throughput, None, "{}", said()),
        Change::Weigh { .. } => {}
        _ => assert_eq!(new.throughput, old.throughput, "{}", said()),
    }
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
    if let Ok(item) = serde_json::from_slice::<Item>(bytes) {
        KNOWN.iter().for_each(|known| check(known, &item));
        return;
    }
    let [first, rest @ ..] = bytes else {
        return;
    };
    let known = &KNOWN[usize::from(*first) % KNOWN.len()];
    if let Ok(item) = item(&mut Unstructured::new(rest), known) {
        check(known, &item);
    }
});
