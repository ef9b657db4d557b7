//! The rows of checkpoints as left by kinsumer's own programs, and the same rows after our writes: one line each.
//!
//! Rows are told in short: `O` the owner, `T` the second of the last write, `S` the position read so far, `F` the
//! second of the shard's end. kinsumer's programs write the values `null` and `empty`.

use super::super::{Format, LeaseFormat};
use crate::ids::LeaseKey;
use crate::position::{Checkpoint, Position};
use crate::row::{Change, Guard, LeaseRow, RowRead};
use crate::table::{AttributeValue, Item};

const SECOND: u64 = 1_000_000_000;
/// The time of our writes.
const NOW: u64 = 1_000 * SECOND;
const NAMES: [(&str, &str); 4] =
    [("O", "OwnerID"), ("T", "LastUpdate"), ("S", "SequenceNumber"), ("F", "Finished")];

fn key() -> LeaseKey {
    "shardId-000000000007".into()
}

/// The item of a row told in short; `-` is none.
fn item(row: &str) -> Option<Item> {
    if row == "-" {
        return None;
    }
    let mut item = Format::Kinsumer.key(&key());
    for part in row.split_whitespace() {
        let (short, value) = part.split_once('=').expect("letter and value");
        let (_, name) = NAMES.into_iter().find(|(known, _)| *known == short).expect("one of the letters");
        let value = match (short, value) {
            (_, "null") => AttributeValue::Null,
            (_, "empty") => AttributeValue::s(""),
            ("T" | "F", seconds) => AttributeValue::n(seconds.parse::<u64>().expect("seconds") * SECOND),
            (_, text) => AttributeValue::s(text),
        };
        item.insert(name.into(), value);
    }
    Some(item)
}

fn told(item: Option<&Item>) -> String {
    let Some(item) = item else { return "-".to_owned() };
    let part = |(short, name): (&str, &str)| {
        let value = match item.get(name)? {
            AttributeValue::Null => "null".to_owned(),
            AttributeValue::S(text) if text.is_empty() => "empty".to_owned(),
            AttributeValue::S(text) => text.to_string(),
            AttributeValue::N(time) => (time.parse::<u64>().expect("a time") / SECOND).to_string(),
            other => panic!("{other:?}"),
        };
        Some(format!("{short}={value}"))
    };
    NAMES.into_iter().filter_map(part).collect::<Vec<_>>().join(" ")
}

fn row(text: &str) -> LeaseRow {
    match Format::Kinsumer.decode(&item(text).expect("a row")) {
        RowRead::Lease(row) => row,
        other => panic!("{text}: {other:?}"),
    }
}

fn take(seen: &str, to: &str) -> Change {
    let row = row(seen);
    Change::Take {
        key: key(),
        counter: row.counter,
        next: NOW,
        from: row.owner,
        checkpoint: row.checkpoint,
        to: to.into(),
        began: None,
        named: None,
        stream: None,
    }
}

fn guard(seen: &str, holder: &str) -> Guard {
    Guard { counter: row(seen).counter, next: NOW, holder: holder.into(), next_owner: None }
}

fn commit(seen: &str, holder: &str, to: u64) -> Change {
    Change::Checkpoint { key: key(), guard: guard(seen, holder), position: Position::of(to.into()) }
}

fn renew(seen: &str, holder: &str) -> Change {
    let guard = guard(seen, holder);
    Change::Renew { key: key(), guard, began: None }
}

fn release(seen: &str, holder: &str) -> Change {
    let guard = guard(seen, holder);
    Change::Release { key: key(), guard }
}

/// The end of a shard, and the number of the last record if anything was ever read.
fn finish(seen: &str, holder: &str, last: Option<u64>) -> Change {
    Change::End {
        key: key(),
        guard: guard(seen, holder),
        children: vec!["shardId-000000000009".into()],
        last: last.map(|number| Position::of(number.into())),
    }
}

/// Carries a change out on a row, and tells the result; a refusal leaves the row unchanged.
fn after(before: &str, change: &Change) -> String {
    let mut table = item(before);
    let refused = Format::Kinsumer.encode(change).carry_out(&mut table).is_err();
    let told = told(table.as_ref());
    if refused {
        assert_eq!(told, before, "a refused write changes nothing");
        return "refused".to_owned();
    }
    told
}

#[test]
fn rows_of_kinsumer() {
    let create = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::TrimHorizon)));
    for (before, change, expected) in [
        // An unread shard gets its row, and then an owner.
        ("-", create.clone(), "T=0 S=null"),
        ("T=0 S=null", take("T=0 S=null", "A"), "O=A T=1000 S=null"),
        ("O=A T=701", create, "refused"),
        // An owner silent for long enough; its progress stays.
        ("O=A T=700 S=5", take("O=A T=700 S=5", "B"), "O=B T=1000 S=5"),
        // It was not silent after all.
        ("O=A T=701 S=6", take("O=A T=700 S=5", "B"), "refused"),
        ("O=A T=701 S=5", commit("O=A T=701 S=5", "A", 6), "O=A T=1000 S=6"),
        ("O=A T=701 S=6", release("O=A T=701 S=6", "A"), "T=1000 S=6"),
        // Rows without an owner.
        ("O=null T=999 S=5", take("O=null T=999 S=5", "B"), "O=B T=1000 S=5"),
        ("O=empty T=999 S=5", take("O=empty T=999 S=5", "B"), "O=B T=1000 S=5"),
        ("S=LATEST", take("S=LATEST", "B"), "O=B T=1000 S=LATEST"),
        // Our own row of before.
        ("O=A T=999", take("O=A T=999", "A"), "O=A T=1000"),
        // The lease is somebody else's by now.
        ("O=B T=999 S=5", commit("O=A T=701 S=5", "A", 6), "refused"),
        ("O=B T=999 S=5", release("O=A T=701 S=5", "A"), "refused"),
        ("O=B T=999 S=5", renew("O=A T=701 S=5", "A"), "refused"),
        // Read while the lease was free; since then a worker took the lease, read its shard to the end and released it.
        ("T=980 S=90 F=980", take("T=700 S=5", "A"), "refused"),
        // An owner without progress to commit still shows its life.
        ("O=A T=600 S=5", renew("O=A T=600 S=5", "A"), "O=A T=1000 S=5"),
        // A finished row stays finished, even if its shard is read again.
        ("O=A T=701 S=7 F=900", commit("O=A T=701 S=7 F=900", "A", 8), "O=A T=1000 S=8 F=900"),
        ("O=A T=701 S=null", release("O=A T=701 S=null", "A"), "T=1000 S=null"),
        // A late commit: a later commit of our own came between.
        ("O=A T=900 S=8", commit("O=A T=701 S=5", "A", 6), "refused"),
    ] {
        assert_eq!(after(before, &change), expected, "{before}: {change:?}");
    }
}

/// Beside an end the row holds the number after which kinsumer's programs read on.
#[test]
fn ends_of_kinsumer() {
    let finished = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::ShardEnd)));
    for (before, change, expected) in [
        ("O=A T=701 S=9 F=null", finish("O=A T=701 S=9 F=null", "A", Some(9)), "T=1000 S=9 F=1000"),
        // With the end comes the progress since the last commit: a program that takes the row before the leader drops
        // the shard goes on after this position.
        ("O=A T=701 S=5", finish("O=A T=701 S=5", "A", Some(9)), "T=1000 S=9 F=1000"),
        ("O=A T=701 S=null", finish("O=A T=701 S=null", "A", Some(9)), "T=1000 S=9 F=1000"),
        // No record was ever read: no record follows on the tip of a closed shard.
        ("O=A T=701 S=null", finish("O=A T=701 S=null", "A", None), "T=1000 S=LATEST F=1000"),
        ("-", finished, "T=0 S=LATEST F=0"),
    ] {
        assert_eq!(after(before, &change), expected, "{before}: {change:?}");
    }
}

#[test]
fn rows_say_how_far_a_shard_was_read() {
    for (text, owner, checkpoint) in [
        ("O=A T=1 S=5 F=null", Some("A"), Checkpoint::At(Position::of(5.into()))),
        ("T=1 S=null", None, Checkpoint::TrimHorizon),
        ("O=null T=1", None, Checkpoint::TrimHorizon),
        ("O=empty T=1 S=empty", None, Checkpoint::TrimHorizon),
        ("S=LATEST", None, Checkpoint::Latest),
        ("O=A T=1 S=5 F=1", Some("A"), Checkpoint::ShardEnd),
    ] {
        let row = row(text);
        assert_eq!((row.owner, row.checkpoint), (owner.map(Into::into), checkpoint), "{text}");
    }
}
