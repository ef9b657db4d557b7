//! The rows left by the formats' own programs, and the same rows after our writes: one line each.
//!
//! Rows are told in short, by letters of their attributes: see [`GO`], [`RUBY`] and [`KINSUMER`]. Programs of other
//! libraries write the values `null` and `empty`, and times are told in seconds.

use super::{Format, LeaseFormat};
use crate::calendar::{read_go, read_ruby, spell_go, spell_ruby};
use crate::ids::LeaseKey;
use crate::position::{Checkpoint, Position};
use crate::row::{Change, Guard, LeaseRow, RowRead};
use crate::table::{AttributeValue, Item};
use crate::testkit::{reset_of, take_of};

const SECOND: u64 = 1_000_000_000;

/// How rows of a format are told in short.
struct Short {
    format: Format,
    /// The letter of each attribute, and the attribute.
    names: &'static [(&'static str, &'static str)],
    /// The letters of times.
    times: &'static str,
    /// A time as the format's programs write it. In nanoseconds.
    spell: fn(u64) -> AttributeValue,
    /// A time in a row, in nanoseconds.
    read: fn(&AttributeValue) -> Option<u64>,
    /// The time that our writes leave, in nanoseconds.
    next: u64,
}

/// `A` the owner, `T` the deadline, `C` the checkpoint, `R` the claimant, `P` a parent.
const GO: Short = Short {
    format: Format::VmwareGoKcl,
    names: &[
        ("A", "AssignedTo"),
        ("T", "LeaseTimeout"),
        ("C", "Checkpoint"),
        ("R", "ClaimRequest"),
        ("P", "ParentShardId"),
    ],
    times: "T",
    spell: |time| AttributeValue::s(spell_go(time)),
    read: |value| read_go(value.as_s()?),
    next: 110 * SECOND + 1,
};

/// `A` the owner, `T` the deadline, `C` the checkpoint.
const RUBY: Short = Short {
    format: Format::KclRb,
    names: &[("A", "assigned_to"), ("T", "lease_timeout"), ("C", "checkpoint")],
    spell: |time| AttributeValue::s(spell_ruby(time)),
    read: |value| read_ruby(value.as_s()?),
    ..GO
};

/// `O` the owner, `T` the last write, `S` the position read so far, `F` the shard's end.
const KINSUMER: Short = Short {
    format: Format::Kinsumer,
    names: &[("O", "OwnerID"), ("T", "LastUpdate"), ("S", "SequenceNumber"), ("F", "Finished")],
    times: "TF",
    spell: |time| AttributeValue::n(time),
    read: |value| value.as_n()?.parse().ok(),
    next: 1_000 * SECOND,
};

fn key() -> LeaseKey {
    "shardId-000000000007".into()
}

impl Short {
    /// The item of a row told in short; `-` is none.
    fn item(&self, row: &str) -> Option<Item> {
        if row == "-" {
            return None;
        }
        let mut item = self.format.key(&key());
        for part in row.split_whitespace() {
            let (short, value) = part.split_once('=').expect("letter and value");
            let (_, name) = self.names.iter().find(|(known, _)| *known == short).expect("one of the letters");
            let value = match value {
                "null" => AttributeValue::Null,
                "empty" => AttributeValue::s(""),
                seconds if self.times.contains(short) => {
                    (self.spell)(seconds.parse::<u64>().expect("seconds") * SECOND)
                }
                text => AttributeValue::s(text),
            };
            item.insert((*name).into(), value);
        }
        Some(item)
    }

    /// A row in short, without the attributes that only our workers write.
    fn told(&self, item: Option<&Item>) -> String {
        let Some(item) = item else { return "-".to_owned() };
        let part = |(short, name): &(&str, &str)| {
            let value = item.get(*name)?;
            let time = (self.read)(value).filter(|_| self.times.contains(short));
            let told = match value {
                AttributeValue::Null => "null".to_owned(),
                AttributeValue::S(text) if text.is_empty() => "empty".to_owned(),
                value => time.map_or_else(
                    || value.as_s().unwrap_or("?").to_owned(),
                    |time| (time / SECOND).to_string(),
                ),
            };
            Some(format!("{short}={told}"))
        };
        self.names.iter().filter_map(part).collect::<Vec<_>>().join(" ")
    }

    fn row(&self, text: &str) -> LeaseRow {
        match self.format.decode(&self.item(text).expect("a row")) {
            RowRead::Lease(row) => row,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn take(&self, seen: &str, to: &str) -> Change {
        take_of(&self.row(seen), self.next, to)
    }

    fn guard(&self, seen: &str, holder: &str) -> Guard {
        let row = self.row(seen);
        let next_owner = row.handing_over.and(row.owner);
        Guard { counter: row.counter, next: self.next, holder: holder.into(), next_owner }
    }

    fn checkpoint(&self, seen: &str, holder: &str, to: u64) -> Change {
        Change::Checkpoint { key: key(), guard: self.guard(seen, holder), position: Position::of(to.into()) }
    }

    fn renew(&self, seen: &str, holder: &str) -> Change {
        Change::Renew { key: key(), guard: self.guard(seen, holder), began: None }
    }

    fn release(&self, seen: &str, holder: &str) -> Change {
        Change::Release { key: key(), guard: self.guard(seen, holder) }
    }

    /// The end of a shard, and the number of the last record if anything was ever read.
    fn end(&self, seen: &str, holder: &str, last: Option<u64>) -> Change {
        Change::End {
            key: key(),
            guard: self.guard(seen, holder),
            children: vec!["shardId-000000000009".into()],
            last: last.map(|number| Position::of(number.into())),
        }
    }

    fn claim(&self, seen: &str, by: &str) -> Change {
        let row = self.row(seen);
        Change::Claim {
            key: key(),
            counter: row.counter,
            from: row.handing_over.or(row.owner).expect("an owner"),
            checkpoint: row.checkpoint,
            by: by.into(),
        }
    }

    /// Carries changes out, each on its row, and compares the results. A refusal leaves the row unchanged.
    fn all<const N: usize>(&self, cases: [(&str, Change, &str); N]) {
        for (before, change, expected) in cases {
            let mut table = self.item(before);
            let refused = self.format.encode(&change).carry_out(&mut table).is_err();
            let told = self.told(table.as_ref());
            if refused {
                assert_eq!(told, before, "a refused write changes nothing: {change:?}");
            }
            let told = if refused { "refused" } else { &told };
            assert_eq!(told, expected, "{before}: {change:?}");
        }
    }
}

#[test]
fn rows_of_vmware_go_kcl() {
    let take = |seen: &str, to: &str| GO.take(seen, to);
    let checkpoint = |seen: &str, holder: &str, to| GO.checkpoint(seen, holder, to);
    let release = |seen: &str, holder: &str| GO.release(seen, holder);
    let claim = |seen: &str, by: &str| GO.claim(seen, by);
    let create = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::TrimHorizon)));
    GO.all([
        // A never owned lease.
        ("-", create, "C=empty"),
        // An empty checkpoint keeps the format's programs from taking the shard for long gone, and from beginning its
        // children.
        ("", take("", "B"), "A=B T=110 C=empty"),
        ("A=A T=105", take("A=A T=105", "B"), "A=B T=110 C=empty"),
        // A rewind is also a rewind to the format's programs: without the attribute, the format's programs would keep
        // their remembered checkpoint.
        ("T=105 C=50", reset_of(&GO.row("T=105 C=50"), GO.next, Checkpoint::TrimHorizon), "T=110 C=empty"),
        ("C=5", take("C=5", "B"), "A=B T=110 C=5"),
        // An expired lease, with the checkpoint unchanged.
        ("A=A T=105 C=50", take("A=A T=105 C=50", "B"), "A=B T=110 C=50"),
        // Its owner stored a checkpoint after the read; the format's programs store checkpoints without moving the
        // deadline.
        ("A=A T=105 C=60", take("A=A T=105 C=50", "B"), "refused"),
        ("A=A T=105 C=60", take("A=A T=105", "B"), "refused"),
        ("A=A T=105 C=SHARD_END", take("A=A T=105 C=50", "B"), "refused"),
        // An owner without a deadline; the format's programs never get this lease.
        ("A=A C=5", take("A=A C=5", "B"), "A=B T=110 C=5"),
        // An empty owner, as a checkpoint after a release leaves it.
        ("A=empty T=105 C=5", take("A=empty T=105 C=5", "B"), "A=B T=110 C=5"),
        // A former owner's late checkpoint.
        ("A=B T=111 C=200", checkpoint("A=A T=105 C=150", "A", 160), "refused"),
        ("A=A T=105 C=5", checkpoint("A=A T=105 C=5", "A", 6), "A=A T=110 C=6"),
        // A claim outlives a checkpoint and a release, and is what a take by the claimant ends.
        ("A=A T=105 C=5 R=X", checkpoint("A=A T=105 C=5 R=X", "A", 6), "A=A T=110 C=6 R=X"),
        ("A=A T=105 C=5 R=X", release("A=A T=105 C=5 R=X", "A"), "T=110 C=5 R=X"),
        ("T=105 C=5 R=X", take("T=105 C=5 R=X", "X"), "A=X T=110 C=5"),
        // The claim came after the owner looked.
        ("A=A T=105 C=5 R=X", checkpoint("A=A T=105 C=5", "A", 6), "refused"),
        ("A=B T=105 C=5", release("A=A T=105 C=5", "A"), "refused"),
        ("A=A T=105 C=5", claim("A=A T=105 C=5", "X"), "A=A T=105 C=5 R=X"),
        // Never checkpointed: an empty checkpoint lets the format's programs see the owner.
        ("A=A T=105", claim("A=A T=105", "X"), "A=A T=105 C=empty R=X"),
        ("A=A T=105 R=X", claim("A=A T=105 R=X", "Y"), "refused"),
        // Parents are kept, whether a program of the format or a worker of ours wrote them.
        ("A=A T=105 C=5 P=p", take("A=A T=105 C=5 P=p", "B"), "A=B T=110 C=5 P=p"),
    ]);
}

#[test]
fn rows_of_kcl_rb() {
    let take = |seen: &str, to: &str| RUBY.take(seen, to);
    let release = |seen: &str, holder: &str| RUBY.release(seen, holder);
    let end = |seen: &str, holder: &str, last| RUBY.end(seen, holder, last);
    RUBY.all([
        // Leased and never checkpointed.
        ("A=b T=105 C=null", take("A=b T=105 C=null", "w"), "A=w T=111 C=null"),
        // Released.
        ("T=105 C=90", take("T=105 C=90", "w"), "A=w T=111 C=90"),
        // The poisoned row left by an update without a lease.
        ("A=null T=empty C=7", take("A=null T=empty C=7", "w"), "A=w T=111 C=7"),
        // The program writes its cached checkpoint, without a guard.
        ("A=a T=105 C=90", take("A=a T=105 C=50", "w"), "refused"),
        // Somebody else's lease is neither ended nor released.
        ("A=b T=105 C=5", release("A=a T=105 C=5", "a"), "refused"),
        ("A=b T=105 C=5", end("A=a T=105 C=5", "a", None), "refused"),
        ("A=w T=105 C=5", end("A=w T=105 C=5", "w", None), "T=111 C=SHARD_END"),
    ]);
}

/// Released and leased again by the same owner within a second, a row of kcl-rb looks the same; ours does not.
#[test]
fn whole_seconds_hide_nothing_of_ours() {
    let (kind, next) = (RUBY.format, RUBY.next);
    let mut table = None;
    let mut mine = LeaseRow::new(key(), Checkpoint::TrimHorizon);
    mine.owner = Some("w".into());
    mine.counter = next;
    kind.encode(&Change::Create(Box::new(mine.clone()))).carry_out(&mut table).expect("no row");
    let guard = |counter| Guard { counter, next: next + 2, holder: "w".into(), next_owner: None };
    let renew = |counter| Change::Renew { key: key(), guard: guard(counter), began: None };
    let stale = kind.encode(&renew(next - 1));
    assert!(stale.carry_out(&mut table).is_err());
    assert!(kind.encode(&renew(next)).carry_out(&mut table).is_ok());
}

#[test]
fn rows_of_kinsumer() {
    let take = |seen: &str, to: &str| KINSUMER.take(seen, to);
    let checkpoint = |seen: &str, holder: &str, to| KINSUMER.checkpoint(seen, holder, to);
    let release = |seen: &str, holder: &str| KINSUMER.release(seen, holder);
    let renew = |seen: &str, holder: &str| KINSUMER.renew(seen, holder);
    let create = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::TrimHorizon)));
    KINSUMER.all([
        // An unread shard gets its row, and then an owner.
        ("-", create.clone(), "T=0 S=null"),
        ("T=0 S=null", take("T=0 S=null", "A"), "O=A T=1000 S=null"),
        ("O=A T=701", create, "refused"),
        // An owner silent for long enough; its progress stays.
        ("O=A T=700 S=5", take("O=A T=700 S=5", "B"), "O=B T=1000 S=5"),
        // It was not silent after all.
        ("O=A T=701 S=6", take("O=A T=700 S=5", "B"), "refused"),
        ("O=A T=701 S=5", checkpoint("O=A T=701 S=5", "A", 6), "O=A T=1000 S=6"),
        ("O=A T=701 S=6", release("O=A T=701 S=6", "A"), "T=1000 S=6"),
        // Rows without an owner.
        ("O=null T=999 S=5", take("O=null T=999 S=5", "B"), "O=B T=1000 S=5"),
        ("O=empty T=999 S=5", take("O=empty T=999 S=5", "B"), "O=B T=1000 S=5"),
        ("S=LATEST", take("S=LATEST", "B"), "O=B T=1000 S=LATEST"),
        // Our own row of before.
        ("O=A T=999", take("O=A T=999", "A"), "O=A T=1000"),
        // The lease is somebody else's by now.
        ("O=B T=999 S=5", checkpoint("O=A T=701 S=5", "A", 6), "refused"),
        ("O=B T=999 S=5", release("O=A T=701 S=5", "A"), "refused"),
        ("O=B T=999 S=5", renew("O=A T=701 S=5", "A"), "refused"),
        // Read while the lease was free; since then a worker took the lease, read its shard to the end and released it.
        ("T=980 S=90 F=980", take("T=700 S=5", "A"), "refused"),
        // An owner without progress to commit still shows its life.
        ("O=A T=600 S=5", renew("O=A T=600 S=5", "A"), "O=A T=1000 S=5"),
        // A finished row stays finished, even if its shard is read again.
        ("O=A T=701 S=7 F=900", checkpoint("O=A T=701 S=7 F=900", "A", 8), "O=A T=1000 S=8 F=900"),
        ("O=A T=701 S=null", release("O=A T=701 S=null", "A"), "T=1000 S=null"),
        // A late commit: a later commit of our own came between.
        ("O=A T=900 S=8", checkpoint("O=A T=701 S=5", "A", 6), "refused"),
    ]);
}

/// Beside an end the row holds the number after which kinsumer's programs read on.
#[test]
fn ends_of_kinsumer() {
    let end = |seen: &str, holder: &str, last| KINSUMER.end(seen, holder, last);
    let finished = Change::Create(Box::new(LeaseRow::new(key(), Checkpoint::ShardEnd)));
    KINSUMER.all([
        ("O=A T=701 S=9 F=null", end("O=A T=701 S=9 F=null", "A", Some(9)), "T=1000 S=9 F=1000"),
        // With the end comes the progress since the last commit: a program that takes the row before the leader drops
        // the shard goes on after this position.
        ("O=A T=701 S=5", end("O=A T=701 S=5", "A", Some(9)), "T=1000 S=9 F=1000"),
        ("O=A T=701 S=null", end("O=A T=701 S=null", "A", Some(9)), "T=1000 S=9 F=1000"),
        // No record was ever read: no record follows on the tip of a closed shard.
        ("O=A T=701 S=null", end("O=A T=701 S=null", "A", None), "T=1000 S=LATEST F=1000"),
        ("-", finished, "T=0 S=LATEST F=0"),
    ]);
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
        let row = KINSUMER.row(text);
        assert_eq!((row.owner, row.checkpoint), (owner.map(Into::into), checkpoint), "{text}");
    }
}
