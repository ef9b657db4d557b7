//! The rows left by the format's own programs, and the same rows after our writes: one line each.
//!
//! Rows are told in short: `A` the owner, `T` the second of the deadline, `C` the checkpoint, `R` the claimant, `P` a
//! parent. kcl-rb writes the values `null` and `empty`.

use super::super::{Format, LeaseFormat};
use crate::calendar::{spell_go, spell_ruby};
use crate::ids::LeaseKey;
use crate::position::{Checkpoint, Position};
use crate::row::{Change, Guard, LeaseRow, RowRead};
use crate::table::{AttributeValue, Item};

const SECOND: u64 = 1_000_000_000;
/// The deadline that our writes leave.
const NEXT: u64 = 110 * SECOND + 1;

fn key() -> LeaseKey {
    "shardId-000000000007".into()
}

fn name(kind: Format, short: &str) -> &'static str {
    let names = match kind {
        Format::KclRb => ["assigned_to", "lease_timeout", "checkpoint", "leasehold_claim", "parent_shard_id"],
        _ => ["AssignedTo", "LeaseTimeout", "Checkpoint", "ClaimRequest", "ParentShardId"],
    };
    names["ATCRP".find(short).expect("one of the letters")]
}

/// The item of a row told in short; `-` is none.
fn item(kind: Format, row: &str) -> Option<Item> {
    if row == "-" {
        return None;
    }
    let mut item = kind.key(&key());
    for part in row.split_whitespace() {
        let (short, value) = part.split_once('=').expect("letter and value");
        let value = match (short, value) {
            (_, "null") => AttributeValue::Null,
            (_, "empty") => AttributeValue::s(""),
            ("T", seconds) => {
                let spell = if kind == Format::KclRb { spell_ruby } else { spell_go };
                AttributeValue::s(spell(seconds.parse::<u64>().expect("seconds") * SECOND))
            }
            (_, text) => AttributeValue::s(text),
        };
        item.insert(name(kind, short).into(), value);
    }
    Some(item)
}

/// A row in short, without the attributes that only our workers write.
fn told(kind: Format, item: Option<&Item>) -> String {
    let Some(item) = item else { return "-".to_owned() };
    let mut parts = Vec::new();
    for short in ["A", "T", "C", "R", "P"] {
        let value = match item.get(name(kind, short)) {
            None => continue,
            Some(AttributeValue::Null) => "null".to_owned(),
            Some(AttributeValue::S(text)) if text.is_empty() => "empty".to_owned(),
            Some(AttributeValue::S(text)) if short == "T" => {
                let times = [100, 105, 110, 111];
                let spelled = |seconds: &&u64| match kind {
                    Format::KclRb => spell_ruby(**seconds * SECOND) == **text,
                    _ => spell_go(**seconds * SECOND) == **text || spell_go(**seconds * SECOND + 1) == **text,
                };
                times.iter().find(spelled).map_or_else(|| text.to_string(), ToString::to_string)
            }
            Some(value) => value.as_s().unwrap_or("?").to_owned(),
        };
        parts.push(format!("{short}={value}"));
    }
    parts.join(" ")
}

fn row(kind: Format, text: &str) -> LeaseRow {
    match kind.decode(&item(kind, text).expect("a row")) {
        RowRead::Lease(row) => row,
        other => panic!("{text}: {other:?}"),
    }
}

fn take(kind: Format, seen: &str, to: &str) -> Change {
    let row = row(kind, seen);
    Change::Take {
        key: key(),
        counter: row.counter,
        next: NEXT,
        from: row.owner,
        checkpoint: row.checkpoint,
        to: to.into(),
        began: None,
        named: None,
        stream: None,
    }
}

fn guard(kind: Format, seen: &str, holder: &str) -> Guard {
    let row = row(kind, seen);
    Guard {
        counter: row.counter,
        next: NEXT,
        holder: holder.into(),
        next_owner: row.handing_over.and(row.owner),
    }
}

/// Carries a change out on a row, and tells the result; a refusal leaves the row unchanged.
fn after(kind: Format, before: &str, change: &Change) -> String {
    let mut table = item(kind, before);
    let refused = kind.encode(change).carry_out(&mut table).is_err();
    let told = told(kind, table.as_ref());
    if refused {
        assert_eq!(told, before, "a refused write changes nothing");
        return "refused".to_owned();
    }
    told
}

#[test]
fn rows_of_vmware_go_kcl() {
    let kind = Format::VmwareGoKcl;
    let checkpoint = |seen, holder, to: u64| Change::Checkpoint {
        key: key(),
        guard: guard(kind, seen, holder),
        position: Position::of(to.into()),
    };
    let release = |seen, holder| Change::Release { key: key(), guard: guard(kind, seen, holder) };
    let claim = |seen: &str, by: &str| {
        let row = row(kind, seen);
        Change::Claim {
            key: key(),
            counter: row.counter,
            from: row.handing_over.or(row.owner).expect("an owner"),
            checkpoint: row.checkpoint,
            by: by.into(),
        }
    };
    let rewind = |seen| Change::Reset {
        key: key(),
        counter: row(kind, seen).counter,
        next: NEXT,
        owner: None,
        handing_over: None,
        checkpoint: row(kind, seen).checkpoint,
        to: Checkpoint::TrimHorizon,
    };
    let create = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::TrimHorizon)));
    for (before, change, expected) in [
        // A never owned lease.
        ("-", create, "C=empty"),
        // An empty checkpoint keeps the format's programs from taking the shard for long gone, and from beginning its
        // children.
        ("", take(kind, "", "B"), "A=B T=110 C=empty"),
        ("A=A T=105", take(kind, "A=A T=105", "B"), "A=B T=110 C=empty"),
        // A rewind is also a rewind to the format's programs: without the attribute, the format's programs would keep
        // their remembered checkpoint.
        ("T=105 C=50", rewind("T=105 C=50"), "T=110 C=empty"),
        ("C=5", take(kind, "C=5", "B"), "A=B T=110 C=5"),
        // An expired lease, with the checkpoint unchanged.
        ("A=A T=105 C=50", take(kind, "A=A T=105 C=50", "B"), "A=B T=110 C=50"),
        // Its owner stored a checkpoint after the read; the format's programs store checkpoints without moving the
        // deadline.
        ("A=A T=105 C=60", take(kind, "A=A T=105 C=50", "B"), "refused"),
        ("A=A T=105 C=60", take(kind, "A=A T=105", "B"), "refused"),
        ("A=A T=105 C=SHARD_END", take(kind, "A=A T=105 C=50", "B"), "refused"),
        // An owner without a deadline; the format's programs never get this lease.
        ("A=A C=5", take(kind, "A=A C=5", "B"), "A=B T=110 C=5"),
        // An empty owner, as a checkpoint after a release leaves it.
        ("A=empty T=105 C=5", take(kind, "A=empty T=105 C=5", "B"), "A=B T=110 C=5"),
        // A former owner's late checkpoint.
        ("A=B T=111 C=200", checkpoint("A=A T=105 C=150", "A", 160), "refused"),
        ("A=A T=105 C=5", checkpoint("A=A T=105 C=5", "A", 6), "A=A T=110 C=6"),
        // A claim outlives a checkpoint and a release, and is what a take by the claimant ends.
        ("A=A T=105 C=5 R=X", checkpoint("A=A T=105 C=5 R=X", "A", 6), "A=A T=110 C=6 R=X"),
        ("A=A T=105 C=5 R=X", release("A=A T=105 C=5 R=X", "A"), "T=110 C=5 R=X"),
        ("T=105 C=5 R=X", take(kind, "T=105 C=5 R=X", "X"), "A=X T=110 C=5"),
        // The claim came after the owner looked.
        ("A=A T=105 C=5 R=X", checkpoint("A=A T=105 C=5", "A", 6), "refused"),
        ("A=B T=105 C=5", release("A=A T=105 C=5", "A"), "refused"),
        ("A=A T=105 C=5", claim("A=A T=105 C=5", "X"), "A=A T=105 C=5 R=X"),
        // Never checkpointed: an empty checkpoint lets the format's programs see the owner.
        ("A=A T=105", claim("A=A T=105", "X"), "A=A T=105 C=empty R=X"),
        ("A=A T=105 R=X", claim("A=A T=105 R=X", "Y"), "refused"),
        // Parents are kept, whether a program of the format or a worker of ours wrote them.
        ("A=A T=105 C=5 P=p", take(kind, "A=A T=105 C=5 P=p", "B"), "A=B T=110 C=5 P=p"),
    ] {
        assert_eq!(after(kind, before, &change), expected, "{before}: {change:?}");
    }
}

#[test]
fn rows_of_kcl_rb() {
    let kind = Format::KclRb;
    let end = |seen, holder| Change::End {
        key: key(),
        guard: guard(kind, seen, holder),
        children: vec![],
        last: None,
    };
    let release = |seen, holder| Change::Release { key: key(), guard: guard(kind, seen, holder) };
    for (before, change, expected) in [
        // Leased and never checkpointed.
        ("A=b T=105 C=null", take(kind, "A=b T=105 C=null", "w"), "A=w T=111 C=null"),
        // Released.
        ("T=105 C=90", take(kind, "T=105 C=90", "w"), "A=w T=111 C=90"),
        // The poisoned row left by an update without a lease.
        ("A=null T=empty C=7", take(kind, "A=null T=empty C=7", "w"), "A=w T=111 C=7"),
        // The program writes its cached checkpoint, without a guard.
        ("A=a T=105 C=90", take(kind, "A=a T=105 C=50", "w"), "refused"),
        // Somebody else's lease is neither ended nor released.
        ("A=b T=105 C=5", release("A=a T=105 C=5", "a"), "refused"),
        ("A=b T=105 C=5", end("A=a T=105 C=5", "a"), "refused"),
        ("A=w T=105 C=5", end("A=w T=105 C=5", "w"), "T=111 C=SHARD_END"),
    ] {
        assert_eq!(after(kind, before, &change), expected, "{before}: {change:?}");
    }
}

/// Released and leased again by the same owner within a second, a row of kcl-rb looks the same; ours does not.
#[test]
fn whole_seconds_hide_nothing_of_ours() {
    let kind = Format::KclRb;
    let mut table = None;
    let mut mine = LeaseRow::new(key(), Checkpoint::TrimHorizon);
    mine.owner = Some("w".into());
    mine.counter = NEXT;
    kind.encode(&Change::Create(Box::new(mine.clone()))).carry_out(&mut table).expect("no row");
    let guard = |counter| Guard { counter, next: NEXT + 2, holder: "w".into(), next_owner: None };
    let renew = |counter| Change::Renew { key: key(), guard: guard(counter), began: None };
    let stale = kind.encode(&renew(NEXT - 1));
    assert!(stale.carry_out(&mut table).is_err());
    assert!(kind.encode(&renew(NEXT)).carry_out(&mut table).is_ok());
}
