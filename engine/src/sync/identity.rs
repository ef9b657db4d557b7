//! Whether the leases of a table are of the stream whose shards were listed.
//!
//! All streams name their shards alike, so a table filled from another stream, or from an earlier one of the same name,
//! looks familiar. Reading on at its checkpoints would skip records, and shards it calls finished would never be read. But
//! what a shard is does not change: the keys it takes, its parents, where it begins and where it ended. A row that
//! contradicts these is of another shard.

use crate::ids::LeaseKey;
use crate::position::Checkpoint;
use crate::row::LeaseRow;
use crate::shard::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// A row that does not fit the shard of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Its key.
    pub lease: LeaseKey,
    /// How it does not fit: what follows "of (the lease)" in a sentence.
    pub detail: String,
    /// Whether this alone proves it. If not, the listing may lag, and another one will tell.
    pub certain: bool,
}

/// The traits of a row that prove another stream if the traits of the shard differ. In a row that names the stream, hash keys and parents prove
/// nothing: one wrong answer may have put them there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub range: bool,
    pub parents: bool,
}

impl Judged {
    /// All of them.
    pub(crate) const ALL: Judged = Judged {
        range: true,
        parents: true,
    };
}

/// How a row does not fit a shard of the same name; absent: it may well be that shard's.
pub(super) fn misfit(row: &LeaseRow, shard: &Shard, judged: Judged) -> Option<Misfit> {
    let found = |detail: String| Misfit {
        lease: row.key.clone(),
        detail,
        certain: true,
    };
    if let Some(range) = row.range.filter(|range| judged.range && *range != shard.range) {
        return Some(found(format!(
            "the row says that it takes the hash keys {} to {}, and its shard takes {} to {}",
            range.start, range.end, shard.range.start, shard.range.end
        )));
    }
    let theirs: BTreeSet<_> = shard.parents().collect();
    // A listing need not name parents that were trimmed.
    if judged.parents && !theirs.is_empty() && row.parents.iter().any(|parent| !theirs.contains(parent)) {
        let names = |ids: Vec<&str>| ids.join(" and ");
        return Some(found(format!(
            "the row says that it came from {}, and its shard came from {}",
            names(row.parents.iter().map(|id| id.as_str()).collect()),
            names(theirs.iter().map(|id| id.as_str()).collect())
        )));
    }
    match row.checkpoint {
        Checkpoint::At(position) if position.sequence < shard.starting => Some(found(format!(
            "the checkpoint {position} is before the first number of its shard, {}",
            shard.starting
        ))),
        Checkpoint::At(position) if shard.ending.is_some_and(|ending| position.sequence > ending) => {
            Some(found(format!(
                "the checkpoint {position} is after the last number of its shard"
            )))
        }
        Checkpoint::ShardEnd if shard.is_open() => Some(Misfit {
            certain: false,
            ..found("the row says that it has ended, and its shard is open".to_owned())
        }),
        _ => None,
    }
}

/// The first row that certainly does not fit; failing that, the first that perhaps does not. `judged`: the
/// traits of a row that count.
pub(crate) fn misfits<'a>(
    rows: impl Iterator<Item = &'a LeaseRow>,
    shards: &BTreeMap<&str, &Shard>,
    judged: impl Fn(&LeaseRow) -> Judged,
) -> Option<Misfit> {
    let mut perhaps = None;
    for row in rows {
        let Some(shard) = shards.get(row.key.as_str()) else {
            continue;
        };
        match misfit(row, shard, judged(row)) {
            Some(found) if found.certain => return Some(found),
            found => perhaps = perhaps.or(found),
        }
    }
    perhaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use crate::shard::{HashKey, HashRange};

    const NAMED: Judged = Judged {
        range: false,
        parents: false,
    };

    fn shard(name: &str, ending: Option<u64>) -> Shard {
        Shard {
            id: name.into(),
            parent: Some("p".into()),
            adjacent_parent: None,
            range: HashRange::ALL,
            starting: 100.into(),
            ending: ending.map(Into::into),
        }
    }

    fn row(checkpoint: Checkpoint) -> LeaseRow {
        LeaseRow {
            range: Some(HashRange::ALL),
            parents: vec!["p".into()],
            ..LeaseRow::new("a".into(), checkpoint)
        }
    }

    fn at(number: u64) -> Checkpoint {
        Checkpoint::At(Position::of(number.into()))
    }

    #[test]
    fn a_row_of_the_shard_fits_wherever_it_is() {
        for checkpoint in [
            at(100),
            at(150),
            at(200),
            Checkpoint::TrimHorizon,
            Checkpoint::ShardEnd,
        ] {
            assert_eq!(
                misfit(&row(checkpoint), &shard("a", Some(200)), Judged::ALL),
                None
            );
        }
        for checkpoint in [
            at(100),
            at(1_000_000),
            Checkpoint::Latest,
            Checkpoint::AtTimestamp,
        ] {
            assert_eq!(misfit(&row(checkpoint), &shard("a", None), Judged::ALL), None);
        }
        let bare = LeaseRow::new("a".into(), Checkpoint::Latest);
        assert_eq!(misfit(&bare, &shard("a", None), Judged::ALL), None);
        let orphan = Shard {
            parent: None,
            ..shard("a", None)
        };
        assert_eq!(
            misfit(&row(at(100)), &orphan, Judged::ALL),
            None,
            "parents may have been trimmed"
        );
    }

    #[test]
    fn a_row_of_another_shard_is_told_by_what_never_changes() {
        let half = HashRange {
            start: HashKey(0),
            end: HashKey(1 << 127),
        };
        let others = [
            LeaseRow {
                range: Some(half),
                ..row(at(150))
            },
            LeaseRow {
                parents: vec!["q".into()],
                ..row(at(150))
            },
            row(at(99)),
            row(at(201)),
        ];
        for other in others {
            let found = misfit(&other, &shard("a", Some(200)), Judged::ALL);
            assert!(found.is_some_and(|found| found.certain), "{other:?}");
            let numbers_alone = other.checkpoint != at(150);
            let found = misfit(&other, &shard("a", Some(200)), NAMED);
            assert_eq!(
                found.is_some(),
                numbers_alone,
                "the row names the stream: {other:?}"
            );
        }
    }

    #[test]
    fn an_end_that_a_lagging_listing_may_not_show_proves_nothing_alone() {
        let found = misfit(&row(Checkpoint::ShardEnd), &shard("a", None), Judged::ALL);
        assert!(found.is_some_and(|found| !found.certain));
    }

    #[test]
    fn proof_comes_before_suspicion() {
        let (a, b) = (shard("a", None), shard("b", None));
        let shards = BTreeMap::from([("a", &a), ("b", &b)]);
        let rows = [
            row(Checkpoint::ShardEnd),
            LeaseRow {
                key: "b".into(),
                ..row(at(1))
            },
        ];
        let first =
            |rows: &[LeaseRow]| misfits(rows.iter(), &shards, |_| Judged::ALL).map(|found| found.lease);
        assert_eq!(first(&rows), Some("b".into()));
        assert_eq!(first(&rows[..1]), Some("a".into()));
        assert_eq!(first(&[LeaseRow::new("z".into(), at(1))]), None);
    }
}
